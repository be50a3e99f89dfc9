# the solve by four warps: two for R~ and U, two for L and X
i=t.index('// four pivots, on the diagonal ([column][row])'); j=t.index('// D (16x8) += A (16x8, tf32, rows) B (8x8, tf32, columns)')
t=t[:i]+'''// four pivots, on the diagonal ([column][row]) and on this lane's columns of R~ (y) and U (z), or its row of L or column of X (y)
template <bool X> __device__ __forceinline__ void solve_four(float (&g)[4][4], float (&a)[4][4], int me, float *y, float *z) {
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
    if (X) {
      y[u] *= iv;
      UNROLL for (int v = u + 1; v < 4; v++) y[v] = fmaf(-a[v][u], y[u], y[v]);
    } else {
      y[u] *= srs;
      z[u] -= y[u];
      UNROLL for (int v = u + 1; v < 4; v++) {
        y[v] = fmaf(-g[v][u], y[u], y[v]);
        z[v] = fmaf(-a[u][v], z[u], z[v]);
      }
    }
  }
  if (!X)
    UNROLL for (int u = 0; u < 3; u++)
      UNROLL for (int v = u + 1; v < 4; v++) y[v] = me == u ? a[u][v] : y[v]; // L on the diagonal, below R~
}
__device__ __forceinline__ void bar_solvers() { asm volatile("bar.sync 1,128;" ::: "memory"); }
template <bool X> __device__ __forceinline__ void solve_block(const Block64 &z, const int b, const int e) { // e: this lane's column
  const int i0 = 8 * b, me = e - i0;
  float *const gin = z.gin + i0 * LB, *const ain = z.ain + i0 * LB, *const r = z.r + block_r(b), *const lx = z.lx + b * BLOCK;
  float g[4][4], a[4][4], yc[8], zc[8]; // zc: unless X
  UNROLL for (int c = 0; c < 4; c++) {
    read4(g[c], gin + c * LB);
    read4(a[c], ain + c * LB);
  }
  UNROLL for (int i = 0; i < 8; i += 4) {
    read4(yc + i, (X ? z.xin : z.gin) + e * LB + i);
    if (!X) read4(zc + i, z.ain + e * LB + i);
  }
  auto write = [&](int i) {
    if (X) write4(lx + e * LB + i, yc + i);
    else {
      if (e >= i0) write4(r + e * LB + i, yc + i);
      write4(z.u + e * LB + i, zc + i);
    }
  };
  solve_four<X>(g, a, me, yc, zc);
  write(0);
  bar_solvers();
  const bool second = (me >> 2) == 1; // of the next four columns: so far L, from here on X
  if (X)
    UNROLL for (int u = 0; u < 4; u++) yc[u] = second ? 0.f : yc[u];
  UNROLL for (int v = 0; v < 4; v++) {
    float x[4], y[4];
    if (X) read4(x, z.u + (i0 + 4 + v) * LB);
    else {
      read4(x, r + (i0 + 4 + v) * LB);
      read4(y, lx + (i0 + 4 + v) * LB);
    }
    UNROLL for (int u = 0; u < 4; u++) {
      yc[4 + v] = fmaf(-x[u], yc[u], yc[4 + v]);
      if (!X) zc[4 + v] = fmaf(-y[u], zc[u], zc[4 + v]);
    }
  }
  if (!X && second) { // what is left of their diagonal
    write4(z.gin + e * LB + 4, yc + 4);
    write4(z.ain + e * LB + 4, zc + 4);
  }
  bar_solvers();
  UNROLL for (int c = 0; c < 4; c++) {
    read4(g[c], gin + (4 + c) * LB + 4);
    read4(a[c], ain + (4 + c) * LB + 4);
  }
  solve_four<X>(g, a, me - 4, yc + 4, zc + 4);
  write(4);
}
'''+t[j:]
sub('''      if (w < 2) solve_block(z, b, tid);
      else {
        const int i = b * 6 + w - 2;
''','''      if (w < 2) solve_block<false>(z, b, tid);
      else if (w < 4) solve_block<true>(z, b, tid - 64);
      else {
        const int i = b * 4 + w - 4;
''')
