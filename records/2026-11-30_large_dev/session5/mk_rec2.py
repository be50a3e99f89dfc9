i=t.index('// warp w: rows 16 i.. of columns 8 w..; g: tiles of G'); j=t.index('__device__ __forceinline__ void update_block(')
t=t[:i]+'''// warp w: columns 8 w..; g: tiles of G, a: tiles of A while w is to come, then of X; 16 rows each, the first one that of block b
__device__ __forceinline__ void publish_block(const Block64 &z, const int b, const int w, const int lane, const float (&g)[4][4],
                                              float (&a)[4][4]) {
  const int gr = lane >> 2, q = lane & 3, at = (8 * w + 2 * q) * LB + gr;
  const bool odd = b & 1;
  float *in = (w < b ? z.xin : z.ain) + at;
  in[0] = odd ? a[0][2] : a[0][0];
  in[LB] = odd ? a[0][3] : a[0][1];
  if (w >= b) {
    z.gin[at] = odd ? g[0][2] : g[0][0];
    z.gin[at + LB] = odd ? g[0][3] : g[0][1];
  }
  if (w == b)
    UNROLL for (int i = 0; i < 4; i++)
      UNROLL for (int h = 0; h < 2; h++) {
        float2 x = make_float2(a[i][2 * h], a[i][2 * h + 1]);
        if (i == 0 && h == odd && (gr < 4 || q > 1)) x = make_float2(gr == 2 * q, gr == 2 * q + 1); // (the rest is L)
        if (2 * i + h >= odd && (b >> 1) + i < 4) *(float2 *)(z.xin + (16 * ((b >> 1) + i) + 8 * h + gr) * LB + 2 * q) = x;
        a[i][2 * h] = a[i][2 * h + 1] = 0.f;
      }
}
'''+t[j:]
sub('''  const bool done = w <= b;
  const uint32_t lx =''','''  const bool done = w <= b;
  const int first = (b + 1) >> 1; // row tile of the next block: the first one from here on
  if (b & 1)
    UNROLL for (int i = 0; i < 3; i++)
      UNROLL for (int e = 0; e < 4; e++) {
        a[i][e] = a[i + 1][e];
        g[i][e] = g[i + 1][e];
      }
  const uint32_t lx =''')
sub("  const uint32_t at = ((lane & 15) * LB + (lane >> 4) * 4) * 4, la","  const uint32_t at = ((first * 16 + (lane & 15)) * LB + (lane >> 4) * 4) * 4, la")
sub('''  rank8(a, 2, la, 0);
  if (b < 3) rank8(a, 0, la, 0);
  if (!done) {
    if (w >= 4) rank8(g, 2, lg, 2);
    if (b < 3) rank8(g, 0, lg, 2);
  }
''','''  rank8(a, 0, la, 0);
  if (!done) rank8(g, 0, lg, 2);
  if (first < 2) {
    rank8(a, 2, la, 0);
    if (!done && first + 2 <= w >> 1) rank8(g, 2, lg, 2);
  }
''')
sub('''  return (i >> 2) == (j >> 2) ? z.r[block_r(j >> 3) + j * LB + (i & 7)] : z.lx[(j >> 3) * BLOCK + i * LB + (j & 7)];
''','''  return *((i >> 2) == (j >> 2) ? z.r + block_r(j >> 3) + j * LB + (i & 7) : z.lx + (j >> 3) * BLOCK + i * LB + (j & 7));
''')
sub('''      ROLL for (int f = w; f < 64; f += NW) {
        const int j = (f & 15)''','''      UNROLL for (int f = w; f < 64; f += NW) {
        const int j = (f & 15)''')
sub('UNROLL for (int f = w; f < 64; f += NW) {\n        const int j = (f & 15) * 4 + (lane >> 3), i = (f >> 4)','UNROLL for (int t = 0; t < 64 / NW; t++) {\n        const int f = t * NW + w, j = (f & 15) * 4 + (lane >> 3), i = (f >> 4)')
# bulk stores by all warps: a thread issues one after the other
i=t.index('    if (w == 7) { // V^T with the rows above the panel'); j=t.index('    // the CTA above needs 64 rows of V')
t=t[:i]+'''    if (lane < 8) { // V^T with the rows above the panel: a pair of panels is applied as one block of 128
      const int r = w * 8 + lane, rows = min(RP, m - (int)rank * RP);
      __half *out = p.vt + (mat * n + c0 + r) * (size_t)n + rb + rank * RP;
      if (rows > 0) bulk_store(out, aVsm + r * LD * 2, rows * 2);
      if (TWO && rows > 0) bulk_store(out + p.low, aVlow + r * LD * 2, rows * 2);
      bulk_commit();
    }
'''+t[j:]
sub('    if (threadIdx.x >= 224) bulk_wait(); // V^T\n','    if ((threadIdx.x & 31) < 8) bulk_wait(); // V^T\n')
i=t.index('      ROLL for (int f = w; f < 128; f += NW) {\n        const int i = (f >> 3) * 4 + (lane >> 3)'); j=t.index('    sum_and_spread(smem_addr(sm + P::X), std::false_type());')
t=t[:i]+'''      UNROLL for (int t = 0; t < 32 / NW; t++) {
        const int f = t * NW + w, i4 = f >> 1, half = f & 1; // rows 4 i4..
        float *out = p.h + (mat * n + c0) * (size_t)n + c0;
        if (int j = half * 32 + lane; i4 <= j >> 2) { // R, and L in the 4 x 4 blocks on the diagonal: by columns
          float x[4];
          read4(x, z.r + block_r(i4 >> 1) + j * LB + (i4 & 1) * 4);
          UNROLL for (int e = 0; e < 4; e++) out[(size_t)(4 * i4 + e) * n + j] = 4 * i4 + e > j ? two_terms(x[e]) : x[e] * sUnscale[j];
        }
        if (int i = 4 * i4 + (lane >> 3), j4 = half * 8 + (lane & 7); j4 < i4) { // L: by rows
          float x[4];
          read4(x, z.lx + (j4 >> 1) * BLOCK + i * LB + (j4 & 1) * 4);
          UNROLL for (int e = 0; e < 4; e++) x[e] = two_terms(x[e]);
          write4(out + (size_t)i * n + 4 * j4, x);
        }
      }
'''+t[j:]
