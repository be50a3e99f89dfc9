# less code: one form of the Gram units, one publish, T by a loop, pivot rows by short loops
i=t.index('// Upper 16 x 16 blocks (i, j) of a 64 x 64 product'); j=t.index('// T (64 x 64, upper) = inverse of the upper triangular n, by 256 threads')
t=t[:i]+'''// Upper 16 x 16 blocks (i, j) of a 64 x 64 product, row by row
__device__ __forceinline__ int unit_row(int u) { return (u >= 4) + (u >= 7) + (u >= 9); }
__device__ __forceinline__ int unit_col(int u) { return u < 4 ? u : u < 7 ? u - 3 : u < 9 ? u - 5 : 3; }
// d = block u of H'H (or (H + L)'(H + L) without L'L) over 16 `steps` rows; H, L: [column][row], ld halves a row
template <bool LOW>
__device__ __forceinline__ void gram_unit(uint32_t high, uint32_t low, int ld, int steps, int u, int lane, float (&d)[2][4]) {
  float x[2][4]; // the cross terms apart: shorter chains
  UNROLL for (int nt = 0; nt < 2; nt++)
    UNROLL for (int e = 0; e < 4; e++) d[nt][e] = x[nt][e] = 0.f;
  const uint32_t at = ((lane & 15) * ld + (lane >> 4) * 8) * 2, ra = unit_row(u) * 16 * ld * 2 + at, rb = unit_col(u) * 16 * ld * 2 + at;
#pragma unroll 2
  for (int ks = 0; ks < steps; ks++) {
    uint32_t ah[4], al[4], bh[4], bl[4];
    ldsm4(ah, high + ra + ks * 32);
    ldsm4(bh, high + rb + ks * 32);
    if (LOW) {
      ldsm4(al, low + ra + ks * 32);
      ldsm4(bl, low + rb + ks * 32);
    }
    UNROLL for (int nt = 0; nt < 2; nt++) {
      mma(d[nt], ah, bh[nt], bh[nt + 2]);
      if (LOW) {
        mma(x[nt], ah, bl[nt], bl[nt + 2]);
        mma(x[nt], al, bh[nt], bh[nt + 2]);
      }
    }
  }
  if (LOW)
    UNROLL for (int nt = 0; nt < 2; nt++)
      UNROLL for (int e = 0; e < 4; e++) d[nt][e] += x[nt][e];
}
'''+t[j:]
i=t.index('  auto send_units = [&]'); j=t.index('  auto sum_and_spread = ',i)
t=t[:i]+t[j:]
sub('''    float d[2][2][4];
    gram64<true>(smem_addr(sm + P::PH), smem_addr(sm + P::PL), LD, RP / 16, w, lane, d);
    send_units(d);
''','''    float d[2][4];
    ROLL for (int u = w; u < 10; u += NW) {
      gram_unit<true>(smem_addr(sm + P::PH), smem_addr(sm + P::PL), LD, RP / 16, u, lane, d);
      send_unit(u, d);
    }
''')
sub('''      float d[2][2][4];
      gram64<TWO>(aVsm, aVlow, LD, RP / 16, w, lane, d);
      send_units(d);
''','''      float d[2][4];
      ROLL for (int u = w; u < 10; u += NW) {
        gram_unit<TWO>(aVsm, aVlow, LD, RP / 16, u, lane, d);
        send_unit(u, d);
      }
''')
t=t.replace('of a row of the blocks of gram64;','of a row of the blocks of gram_unit;')
# T
i=t.index('  float d[4], zero[4] = {0, 0, 0, 0};\n  {\n    const int b0 = 32 * (w >> 1 & 1)'); j=t.index('// The careful way: 32 columns at a time')
t=t[:i]+'''  float d[4], zero[4] = {0, 0, 0, 0};
  ROLL for (int s = 0; s < 4; s++) { // blocks of 16, both products, then of 32
    const int size = s < 2 ? 16 : 32, b0 = s < 2 ? 16 * (w & 2) : 0, b1 = b0 + size, r = b0 + (s < 2 ? 0 : (w >> 2) * 16), c = (w & (s < 2 ? 1 : 3)) * 8;
    const bool second = s & 1;
    if (s >= 2 || w < 4) {
      product(size / 16, second ? t + r * LDM + b0 : n + r * LDM + b1, second ? y + b0 * LDM + c : t + b1 * LDM + b1 + c, d);
      put(second ? t + r * LDM + b1 + c : y + r * LDM + c, second ? -1.f : 1.f, d);
      if (second) put(t + (size + r) * LDM + b0 + c, 1.f, zero);
    }
    block_sync<256>();
  }
}
'''+t[j:]
sub('''  auto product = [&](auto steps, const float *left, const float *right, float (&d)[4]) {
    UNROLL for (int e = 0; e < 4; e++) d[e] = 0.f;
    UNROLL for (int ks = 0; ks < decltype(steps)::value; ks++) {''','''  auto product = [&](int steps, const float *left, const float *right, float (&d)[4]) {
    UNROLL for (int e = 0; e < 4; e++) d[e] = 0.f;
    ROLL for (int ks = 0; ks < steps; ks++) {''')
# one publish
sub('''    publish_block(z, 0, w, lane, tg, ta);
    block_sync<NT>();
#pragma unroll 1
    for (int b = 0; b < 8; b++) {
''','''#pragma unroll 1
    for (int b = 0; b < 8; b++) {
      publish_block(z, b, w, lane, tg, ta);
      block_sync<NT>();
''')
sub('''      update_block(z, b, w, lane, tg, ta);
      publish_block(z, b + 1, w, lane, tg, ta);
      block_sync<NT>();
    }
''','''      update_block(z, b, w, lane, tg, ta);
    }
''')
# pivot rows
i=t.index('// L of A - R~ = L U below the diagonal\n'); j=t.index('// Upper 16 x 16 blocks (i, j)')
t=t[:i]+'''// row i of R~, and of L below the diagonal (A - R~ = L U): columns j .. j + 3, a multiple of 4
__device__ __forceinline__ void pivot_row(const Block64 &z, int i, int j, float (&x)[4]) {
  const bool l = (i >> 2) > (j >> 2);
  const float *p = l ? z.lx + (j >> 3) * BLOCK + i * LB + (j & 7) : z.r + block_r(i >> 3) + j * LB + (i & 7);
  UNROLL for (int e = 0; e < 4; e++) x[e] = p[l ? e : e * LB];
}
'''+t[j:]
i=t.index('      UNROLL for (int t = 0; t < 64 / NW; t++) {\n        const int f = t * NW + w, j ='); j=t.index('    fence_shared(); // V, for the copies',i)
t=t[:i]+'''      ROLL for (int f = tid; f < 512; f += NT) {
        const int i = (f & 31) * 2, j = (f >> 5) * 4;
        float x[4], y[4];
        pivot_row(z, i, j, x);
        pivot_row(z, i + 1, j, y);
        UNROLL for (int e = 0; e < 4; e++) {
          const int at = ((j + e) * LD + above * 64 + i) * 2;
          uint32_t high, low;
          split(i > j + e ? x[e] : i == j + e, i + 1 > j + e ? y[e] : i + 1 == j + e, high, low);
          *(uint32_t *)(sm + P::VSM + at) = high;
          if (TWO) *(uint32_t *)(sm + P::VLOW + at) = low;
        }
      }
    }
'''+t[j:]
i=t.index('      UNROLL for (int t = 0; t < 32 / NW; t++) {\n        const int f = t * NW + w, i4'); j=t.index('    sum_and_spread(smem_addr(sm + P::X), std::false_type());')
t=t[:i]+'''      ROLL for (int f = tid; f < 1024; f += NT) {
        const int i = f >> 4, j = (f & 15) * 4;
        float x[4];
        pivot_row(z, i, j, x);
        UNROLL for (int e = 0; e < 4; e++) x[e] = i > j + e ? two_terms(x[e]) : x[e] * sUnscale[j + e];
        write4(p.h + (mat * n + c0 + i) * n + c0 + j, x);
      }
'''+t[j:]
