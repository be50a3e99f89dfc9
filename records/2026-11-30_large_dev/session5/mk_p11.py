# what the next block does not need is updated beside its solve
i=t.index('__device__ __forceinline__ void update_block('); j=t.index('// row i of R~, and of L below the diagonal')
t=t[:i]+'''// row tiles T .. T + N - 1 of one matrix: d += left right, left in rows of 8 at `from`, right in two terms
template <int T, int N>
__device__ __forceinline__ void rank8(float (&d)[4][4], uint32_t from, const uint32_t *bh, const uint32_t *bl) {
  uint32_t x[N][4], h[N][4], l[N][4];
  UNROLL for (int i = 0; i < N; i++) ldsm4(x[i], from + (T + i) * 16 * LB * 4);
  UNROLL for (int i = 0; i < N; i++)
    UNROLL for (int v = 0; v < 4; v++) split_tf32(x[i][v], h[i][v], l[i][v]);
  UNROLL for (int i = 0; i < N; i++) mma_tf32(d[T + i], l[i], bh[0], bh[1]);
  UNROLL for (int i = 0; i < N; i++) mma_tf32(d[T + i], h[i], bl[0], bl[1]);
  UNROLL for (int i = 0; i < N; i++) mma_tf32(d[T + i], h[i], bh[0], bh[1]);
}
// The 16 rows that hold the next block. bh, bl: columns 8 w.. of this step, negative: of U or X, of R
__device__ __forceinline__ void update_first(const Block64 &z, const int b, const int w, const int lane, float (&g)[4][4], float (&a)[4][4],
                                             uint32_t (&bh)[4], uint32_t (&bl)[4]) {
  const bool done = w <= b;
  if (b & 1)
    UNROLL for (int i = 0; i < 3; i++)
      UNROLL for (int e = 0; e < 4; e++) {
        a[i][e] = a[i + 1][e];
        g[i][e] = g[i + 1][e];
      }
  const uint32_t lx = smem_addr(z.lx + b * BLOCK), r = smem_addr(z.r + block_r(b)), u = smem_addr(block_u(z, b));
  const uint32_t at = (((b + 1) / 2 * 16 + (lane & 15)) * LB + (lane >> 4) * 4) * 4;
  uint32_t right[4];
  ldsm4(right, ((lane & 16) ? r : done ? lx : u) + ((8 * w + (lane & 7)) * LB + (lane & 8) / 2) * 4);
  if (w == b && lane >= 16) right[0] = 0u; // L, not X
  UNROLL for (int i = 0; i < 4; i++) split_tf32(right[i] ^ 0x80000000u, bh[i], bl[i]);
  rank8<0, 1>(a, (done ? u : lx) + at, bh, bl);
  if (!done) rank8<0, 1>(g, r + at, bh + 2, bl + 2);
}
// the other rows
__device__ __forceinline__ void update_rest(const Block64 &z, const int b, const int w, const int lane, float (&g)[4][4], float (&a)[4][4],
                                            const uint32_t (&bh)[4], const uint32_t (&bl)[4]) {
  const bool done = w <= b;
  const int first = (b + 1) / 2, last_g = done ? 0 : w >> 1; // row tiles
  const uint32_t at = ((first * 16 + (lane & 15)) * LB + (lane >> 4) * 4) * 4, lg = smem_addr(z.r + block_r(b)) + at,
                 la = smem_addr(done ? block_u(z, b) : z.lx + b * BLOCK) + at;
  if (first < 3) rank8<1, 1>(a, la, bh, bl);
  if (first + 1 <= last_g) rank8<1, 1>(g, lg, bh + 2, bl + 2);
  if (first < 2) rank8<2, 2>(a, la, bh, bl);
  if (first + 2 <= last_g) rank8<2, 2>(g, lg, bh + 2, bl + 2);
}
'''+t[j:]
sub('''__device__ __forceinline__ float entry_r(const float *m, int i, int j)''','''__device__ __forceinline__ float *block_u(const Block64 &z, int b) { return z.u + (b & 1) * 4 * BLOCK; } // (the one before is still in use)
__device__ __forceinline__ float entry_r(const float *m, int i, int j)''')
sub('  float *u, *gin, *ain, *xin; // one block each: U of this step; rows and columns as they come','  float *u, *gin, *ain, *xin; // one block each: U of this step (see block_u); rows and columns as they come')
sub('*const r = z.r + block_r(b), *const lx = z.lx + b * BLOCK;','*const r = z.r + block_r(b), *const lx = z.lx + b * BLOCK, *const u = block_u(z, b);')
sub('  write4(z.u + e * LB, ac);','  write4(u + e * LB, ac);'); sub('  write4(z.u + e * LB + 4, ac + 4);','  write4(u + e * LB + 4, ac + 4);')
sub('    float x[4], y[4], t[4];\n','    float x[4], y[4], s[4];\n'); sub('    read4(t, z.u + (i0 + 4 + v) * LB);','    read4(s, u + (i0 + 4 + v) * LB);')
i=t.index('    UNROLL for (int u = 0; u < 4; u++) {\n      gc[4 + v] = fmaf('); j=t.index('  if (second) { // what is left',i)
t=t[:i]+'''    UNROLL for (int c = 0; c < 4; c++) {
      gc[4 + v] = fmaf(-x[c], gc[c], gc[4 + v]);
      ac[4 + v] = fmaf(-y[c], ac[c], ac[4 + v]);
      xc[4 + v] = fmaf(-s[c], xc[c], xc[4 + v]);
    }
  }
'''+t[j:]
sub('  UNROLL for (int u = 0; u < 4; u++) xc[u] = second ? 0.f : xc[u];','  UNROLL for (int c = 0; c < 4; c++) xc[c] = second ? 0.f : xc[c];')
sub('''//   update   G -= R'R, A -= L U where columns are open, X -= U'X where they are done
''','''//   update   G -= R'R, A -= L U where columns are open, X -= U'X where they are done: first what the next block needs, the rest beside its
//            solve
''')
i=t.index('#pragma unroll 1\n    for (int b = 0; b < 8; b++) {\n      publish_block'); j=t.index('  waiting = false;',i)
t=t[:i]+'''    uint32_t bh[4], bl[4];
#pragma unroll 1
    for (int b = 0; b < 8; b++) {
      publish_block(z, b, w, lane, tg, ta);
      block_sync<NT>();
      if (w < 2) solve_block(z, b, tid);
      else {
        if (b && w != b) update_rest(z, b - 1, w, lane, tg, ta, bh, bl);
        if (waiting && b > 1)
          ROLL for (int i = b * 12 + 2 * w - 28, end = i + 2; i < end; i++)
            if (i < RP / 8) write_rows(k - 1, i);
      }
      block_sync<NT>();
      if (b == 7) break;
      update_first(z, b, w, lane, tg, ta, bh, bl);
      if (w < 2 || w == b + 1) update_rest(z, b, w, lane, tg, ta, bh, bl); // these columns are needed whole, these warps are busy then
    }
  }
'''+t[j:]
