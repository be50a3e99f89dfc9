# S T1 instead of S, and the warpgroups make W0' and W1' side by side
sub('''// S^T = V1'V0 of the pair of panels from column r0 on, for all the strips that apply the pair
''','''// (S T1)^T with S = V0'V1 of the pair of panels from column r0 on, for all the strips that apply the pair
''')
i=t.index('''  cp_wait<0>();
  UNROLL for (int nt = 0; nt < 4; nt++)
    UNROLL for (int h = 0; h < 2; h++) {
      __half *to = pair_s('''); j=t.index('\n}\n',i)
t=t[:i]+'''  cp_wait<0>();
  __half *high = (__half *)(sm + 131072), *low = high + 64 * 72; // S^T in two terms
  const int row = wm * 16 + g, column = wn * 32 + 2 * q;
  UNROLL for (int nt = 0; nt < 4; nt++)
    UNROLL for (int h = 0; h < 2; h++) {
      const int at = (row + 8 * h) * 72 + column + nt * 8;
      split(st[nt][2 * h], st[nt][2 * h + 1], *(uint32_t *)(high + at), *(uint32_t *)(low + at));
      st[nt][2 * h] = st[nt][2 * h + 1] = 0.f;
    }
  block_sync<256>();
  const __half *t1 = p.ts + (mat * (n / 64) + r0 / 64 + 1) * TS;
  UNROLL for (int ks = 0; ks < 4; ks++) {
    uint32_t a[2][4];
    UNROLL for (int e = 0; e < 2; e++)
      UNROLL for (int v = 0; v < 4; v++) a[e][v] = __ldcg((const unsigned int *)(t1 + e * TLOW + (row + 8 * (v & 1)) * 64 + ks * 16 + 2 * q + 8 * (v >> 1)));
    UNROLL for (int nt = 0; nt < 4; nt += 2) {
      uint32_t b[4], bl[4];
      const int at = (ks * 16 + (lane & 15)) * 72 + wn * 32 + nt * 8 + (lane >> 4) * 8;
      ldsm4t(b, smem_addr(high + at));
      ldsm4t(bl, smem_addr(low + at));
      UNROLL for (int h = 0; h < 2; h++) {
        mma(st[nt + h], a[1], b[2 * h], b[2 * h + 1]);
        mma(st[nt + h], a[0], bl[2 * h], bl[2 * h + 1]);
        mma(st[nt + h], a[0], b[2 * h], b[2 * h + 1]);
      }
    }
  }
  UNROLL for (int nt = 0; nt < 4; nt++)
    UNROLL for (int h = 0; h < 2; h++) {
      __half *to = pair_s(p, mat, r0 / 128) + (row + 8 * h) * 64 + column + nt * 8;
      split(st[nt][2 * h], st[nt][2 * h + 1], *(uint32_t *)to, *(uint32_t *)(to + TLOW));
    }'''+t[j:]
# strip
i=t.index('  { // each warpgroup adds up half of W: first'); j=t.index('  fence_shared();\n  block_sync<256>();\n  if (tid == 0) mbar_arrive(s + L::READY);',i)
old=t[i:j]
k=old.index('    UNROLL for (int i = 0; i < H; i++) buf[(2 * H + wg * H + i) * 128 + t128] = half[i];')
head=old[:k]
head=head.replace('  { // each warpgroup adds up half of W: first the other\'s part, then those of the other CTAs\n    constexpr int H = KB * 4;\n    float4 *buf = (float4 *)(sm + L::SUMS), half[H];\n','''  // each warpgroup adds up half of W (of two panels: the first's or the second's): first the other's part, then those of the other CTAs
  constexpr int H = KB * 4;
  float4 *buf = (float4 *)(sm + L::SUMS), half[H];
  {
''')
assert 'constexpr int H = KB * 4;\n  float4' in head
t=t[:i]+head+'''  }
  // ---- -W'^T: W0' = T0'W0, W1' = T1'W1 - (S T1)'W0'
  uint32_t high[KB][4][4], low[KB][4][4];
  float d[32];
  auto times = [&](int b, uint32_t right) { // d += .. times T or S T1
    wg_fence();
    multiply<true, TWO, true>(d, high[b], low[b], right, right + 8192);
    wg_commit();
    wg_wait();
  };
  mbar_wait(s + L::BAR_T, phase >> 7 & 1);
  phase ^= 128;
  if constexpr (K == 64) {
    UNROLL for (int i = 0; i < H; i++) buf[(2 * H + wg * H + i) * 128 + t128] = half[i];
    block_sync<256>();
    UNROLL for (int i = 0; i < 2 * H; i++) read4(&w[0][4 * i], (const float *)&buf[(2 * H + i) * 128 + t128]);
    as_operand(w[0], 1.f, high[0], low[0]);
    UNROLL for (int e = 0; e < 32; e++) d[e] = 0.f;
    times(0, s + L::T);
    as_operand(d, -1.f, high[0], low[0]);
  } else {
    // a warpgroup makes -W0' or T1'W1 - .., and gets the other one through shared memory, thread by thread
    uint4 *given = (uint4 *)(buf + 2 * H * 128) + t128;
    auto give = [&](int b) {
      UNROLL for (int i = 0; i < 4; i++) given[(8 * b + i) * 128] = make_uint4(high[b][i][0], high[b][i][1], high[b][i][2], high[b][i][3]);
      if (TWO)
        UNROLL for (int i = 0; i < 4; i++) given[(8 * b + 4 + i) * 128] = make_uint4(low[b][i][0], low[b][i][1], low[b][i][2], low[b][i][3]);
    };
    auto take = [&](int b) {
      UNROLL for (int i = 0; i < (TWO ? 8 : 4); i++) {
        const uint4 x = given[(8 * b + i) * 128];
        uint32_t *to = i < 4 ? high[b][i] : low[b][i - 4];
        to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
      }
    };
    UNROLL for (int i = 0; i < H; i++) {
      float *to = &w[0][4 * i];
      to[0] = half[i].x, to[1] = half[i].y, to[2] = half[i].z, to[3] = half[i].w;
    }
    as_operand(w[0], 1.f, high[0], low[0]);
    UNROLL for (int e = 0; e < 32; e++) d[e] = 0.f;
    times(0, s + L::T + wg * 16384);
    if (wg == 0) {
      as_operand(d, -1.f, high[0], low[0]);
      give(0);
    }
    block_sync<256>();
    if (wg == 1) {
      take(0);
      mbar_wait(s + L::BAR_S, phase >> 6 & 1);
      times(0, s + L::S);
      as_operand(d, -1.f, high[1], low[1]);
      give(1);
    }
    phase ^= 64;
    block_sync<256>();
    if (wg == 0) take(1);
  }
'''+t[j:]
