i=t.index('// All three live in the accumulators of 8 warps, a column tile'); j=t.index('constexpr float PIVOT_MIN64')
t=t[:i]+'''// All three live in the accumulators of 8 warps, a column tile of 8 each, and are updated by mma in three tf32 products (22 bits). A step:
//   publish  the next 8 rows of G, A and X and the next 8 columns of A go to shared memory, [column][8], so that a lane reads its own
//            column by two loads and ldmatrix reads the solved ones as operands
//   solve    two warps, a lane a column, four pivots and then four more: every lane factors the 4 x 4 blocks on the diagonal itself (no
//            exchange in the chain of pivots) and applies each pivot to its own column of R~ and U and to its row of L or column of X (L
//            has what X has not yet). A warp alone takes two cycles an instruction or more, so few instructions are what counts
//   update   G -= R'R, A -= L U where columns are open, X -= U'X where they are done
// A cancelled pivot shows in |R| afterwards, as a small number or as NaN; then the panel goes the careful way.
'''+t[j:]
i=t.index('struct Block64 {'); j=t.index('// D (16x8) += A (16x8, tf32, rows)')
t=t[:i]+'''struct Block64 {
  float *r, *lx;              // solved, 8 blocks each: R~ (see block_r), with L below it in the 4 x 4 blocks on the diagonal; L right of X
  float *u, *gin, *ain, *xin; // one block each: U of this step; rows and columns as they come
};
__device__ __forceinline__ float entry_r(const float *m, int i, int j) { return m[block_r(i >> 3) + j * LB + (i & 7)]; }
__device__ __forceinline__ float entry(const float *m, int i, int j) { return m[(i >> 3) * BLOCK + j * LB + (i & 7)]; }
__device__ __forceinline__ void read4(float *x, const float *p) {
  const float4 v = *(const float4 *)p;
  x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}
__device__ __forceinline__ void write4(float *p, const float *x) { *(float4 *)p = make_float4(x[0], x[1], x[2], x[3]); }
// four pivots, on the diagonal ([column][row]) and on this lane's columns of R~ and U and its row of L or column of X
__device__ __forceinline__ void solve_four(float (&g)[4][4], float (&a)[4][4], int me, float *gc, float *ac, float *xc) {
  float rs = fast_rsqrt(g[0][0]);
  UNROLL for (int u = 0; u < 4; u++) {
    // R~_uu has the sign opposite to that of the eliminated pivot
    const float srs = __uint_as_float(__float_as_uint(rs) | (~__float_as_uint(a[u][u]) & 0x80000000u)), iv = fast_rcp(fmaf(-srs, g[u][u], a[u][u]));
    UNROLL for (int v = u + 1; v < 4; v++) g[v][u] *= srs;
    if (u < 3) { // one column ahead of the elimination
      g[u + 1][u + 1] = fmaf(-g[u + 1][u], g[u + 1][u], g[u + 1][u + 1]);
      rs = fast_rsqrt(g[u + 1][u + 1]);
    }
    UNROLL for (int v = u + 1; v < 4; v++)
      UNROLL for (int c = v; c < 4; c++)
        if (c > u + 1) g[c][v] = fmaf(-g[v][u], g[c][u], g[c][v]);
    UNROLL for (int v = u + 1; v < 4; v++) {
      a[v][u] -= g[v][u];
      a[u][v] *= iv;
    }
    UNROLL for (int v = u + 1; v < 4; v++)
      UNROLL for (int c = u + 1; c < 4; c++) a[c][v] = fmaf(-a[u][v], a[c][u], a[c][v]);
    gc[u] *= srs;
    ac[u] -= gc[u];
    xc[u] *= iv;
    UNROLL for (int v = u + 1; v < 4; v++) {
      gc[v] = fmaf(-g[v][u], gc[u], gc[v]);
      ac[v] = fmaf(-a[u][v], ac[u], ac[v]);
      xc[v] = fmaf(-a[v][u], xc[u], xc[v]);
    }
  }
  UNROLL for (int u = 0; u < 3; u++)
    UNROLL for (int v = u + 1; v < 4; v++) gc[v] = me == u ? a[u][v] : gc[v]; // L on the diagonal, below R~
}
__device__ __forceinline__ void solve_block(const Block64 &z, const int b, const int e) { // e: this lane's column
  const int i0 = 8 * b, me = e - i0;
  float *const gin = z.gin + i0 * LB, *const ain = z.ain + i0 * LB, *const r = z.r + block_r(b), *const lx = z.lx + b * BLOCK;
  float g[4][4], a[4][4], gc[8], ac[8], xc[8];
  UNROLL for (int c = 0; c < 4; c++) {
    read4(g[c], gin + c * LB);
    read4(a[c], ain + c * LB);
  }
  UNROLL for (int i = 0; i < 8; i += 4) {
    read4(gc + i, z.gin + e * LB + i);
    read4(ac + i, z.ain + e * LB + i);
    read4(xc + i, z.xin + e * LB + i);
  }
  solve_four(g, a, me, gc, ac, xc);
  if (e >= i0) write4(r + e * LB, gc);
  write4(z.u + e * LB, ac);
  write4(lx + e * LB, xc);
  bar_join(1); // the two warps
  const bool second = (me >> 2) == 1; // of the next four columns: so far L, from here on X
  UNROLL for (int u = 0; u < 4; u++) xc[u] = second ? 0.f : xc[u];
  UNROLL for (int v = 0; v < 4; v++) {
    float x[4], y[4], t[4];
    read4(x, r + (i0 + 4 + v) * LB);
    read4(y, lx + (i0 + 4 + v) * LB);
    read4(t, z.u + (i0 + 4 + v) * LB);
    UNROLL for (int u = 0; u < 4; u++) {
      gc[4 + v] = fmaf(-x[u], gc[u], gc[4 + v]);
      ac[4 + v] = fmaf(-y[u], ac[u], ac[4 + v]);
      xc[4 + v] = fmaf(-t[u], xc[u], xc[4 + v]);
    }
  }
  if (second) { // what is left of their diagonal
    write4(z.gin + e * LB + 4, gc + 4);
    write4(z.ain + e * LB + 4, ac + 4);
  }
  bar_join(1);
  UNROLL for (int c = 0; c < 4; c++) {
    read4(g[c], gin + (4 + c) * LB + 4);
    read4(a[c], ain + (4 + c) * LB + 4);
  }
  solve_four(g, a, me - 4, gc + 4, ac + 4, xc + 4);
  if (e >= i0) write4(r + e * LB + 4, gc + 4);
  write4(z.u + e * LB + 4, ac + 4);
  write4(lx + e * LB + 4, xc + 4);
}
'''+t[j:]
# publish: rows of L in the block itself
sub('''        if (2 * i + h == b) x = make_float2(gr == 2 * q, gr == 2 * q + 1);
''','''        if (2 * i + h == b && (gr < 4 || q > 1)) x = make_float2(gr == 2 * q, gr == 2 * q + 1); // (the rest is L)
''')
i=t.index('__device__ __forceinline__ void update_block('); j=t.index('// Upper 16 x 16 blocks (i, j)')
t=t[:i]+'''__device__ __forceinline__ void update_block(const Block64 &z, const int b, const int w, const int lane, float (&g)[4][4],
                                             float (&a)[4][4]) {
  const bool done = w <= b;
  const uint32_t lx = smem_addr(z.lx + b * BLOCK), r = smem_addr(z.r + block_r(b)), u = smem_addr(z.u);
  const uint32_t at = ((lane & 15) * LB + (lane >> 4) * 4) * 4, la = (done ? u : lx) + at, lg = r + at;
  uint32_t bh[4], bl[4], right[4]; // columns 8 w..: of U or X, of R
  ldsm4(right, ((lane & 16) ? r : done ? lx : u) + ((8 * w + (lane & 7)) * LB + (lane & 8) / 2) * 4);
  if (w == b && lane >= 16) right[0] = 0u; // L, not X
  UNROLL for (int i = 0; i < 4; i++) split_tf32(right[i] ^ 0x80000000u, bh[i], bl[i]);
  // row tiles t, t + 1 of one matrix
  auto rank8 = [&](float (&d)[4][4], const int t, uint32_t from, const int s) {
    uint32_t x[2][4], h[2][4], l[2][4];
    UNROLL for (int i = 0; i < 2; i++) ldsm4(x[i], from + (t + i) * 16 * LB * 4);
    UNROLL for (int i = 0; i < 2; i++)
      UNROLL for (int v = 0; v < 4; v++) split_tf32(x[i][v], h[i][v], l[i][v]);
    UNROLL for (int i = 0; i < 2; i++) mma_tf32(d[t + i], l[i], bh[s], bh[s + 1]);
    UNROLL for (int i = 0; i < 2; i++) mma_tf32(d[t + i], h[i], bl[s], bl[s + 1]);
    UNROLL for (int i = 0; i < 2; i++) mma_tf32(d[t + i], h[i], bh[s], bh[s + 1]);
  };
  rank8(a, 2, la, 0);
  if (b < 3) rank8(a, 0, la, 0);
  if (!done) {
    if (w >= 4) rank8(g, 2, lg, 2);
    if (b < 3) rank8(g, 0, lg, 2);
  }
}
// L of A - R~ = L U below the diagonal
__device__ __forceinline__ float lower(const Block64 &z, int i, int j) {
  return (i >> 2) == (j >> 2) ? z.r[block_r(j >> 3) + j * LB + (i & 7)] : z.lx[(j >> 3) * BLOCK + i * LB + (j & 7)];
}
'''+t[j:]
sub("const Block64 z = {sG, sA, sX, sX + BLOCK, sX + 2 * BLOCK, sX + 3 * BLOCK, sThr, sFlag};","const Block64 z = {sG, sA, sX, sX + BLOCK, sX + 2 * BLOCK, sX + 3 * BLOCK};")
sub("if (w < 2) solve_block(z, b, tid, lane);","if (w < 2) solve_block(z, b, tid);")
sub("    if (!(grow <= GROWTH_MAX)) *sFlag = 1;","    const float pivot = entry_r(z.r, j, j);\n    if (!(grow <= GROWTH_MAX) || !(pivot * pivot > sThr[j])) *sFlag = 1;")
