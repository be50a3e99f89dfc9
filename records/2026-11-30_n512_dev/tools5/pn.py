# V_1'V_0 by one warpgroup while the other one sums V'V and starts the copies
def cross4(b):
    b.cut('''// V_1'V_0 over the rows of this warpgroup (every''','''#if WARPGROUP_MMA
''','''// V_1'V_0 by the first warpgroup, four products a wait; from the panel's first row, where V_1 is zero, so that there are always four.
''')
    b.cut('''#if WARPGROUP_MMA
DEVICE void cross_products(''','''#else
DEVICE void cross_products(''','''#if WARPGROUP_MMA
DEVICE void cross_products(Shared& s, int first, float (*out)[PAD], const Lane& me) {
  float x[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&x[0][0])[i] = 0.f;
  const uint32_t v = tile_descriptor(shared_address(&s.stage[0].v[first - 4][0][0]), 1024);
#pragma unroll 1
  for (int tile = 0; tile < TILES - first + 4; tile += 8) {  // rows 32 .. 63 of the product are of no use
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t at = v + (tile + 2 * i) * 64;
      wgmma_tiles<128>(x[0], x[1], x[2], x[3], at + 32, at);
    }
    wgmma_commit();
    wgmma_wait();
  }
  if (me.ws < 2) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(float2*)&out[16 * me.ws + me.g][8 * i + 2 * me.q] = make_float2(x[i][0], x[i][1]);
      *(float2*)&out[16 * me.ws + me.g + 8][8 * i + 2 * me.q] = make_float2(x[i][2], x[i][3]);
    }
  }
}
''')
    b.cut('''#else
DEVICE void cross_products(''','''#endif

// V's low terms in it''','''#else
DEVICE void cross_products(Shared& s, int first, float (*out)[PAD], const Lane& me) {
#pragma unroll 1
  for (int half = 0; half < 2; half++) {
    float x[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll 4
    for (int tile = first; tile < TILES; tile += 2) {
      const uint32_t *v = &s.stage[0].v[tile][0][me.lane], *next = v + GROUPS * 32;
      const uint32_t a[4] = {v[(4 + 2 * half) * 32], v[(5 + 2 * half) * 32], next[(4 + 2 * half) * 32], next[(5 + 2 * half) * 32]};
      mma_fp16(x, a, v[me.ws * 32], next[me.ws * 32]);
    }
    *(float2*)&out[16 * half + me.g][8 * me.ws + 2 * me.q] = make_float2(x[0], x[1]);
    *(float2*)&out[16 * half + me.g + 8][8 * me.ws + 2 * me.q] = make_float2(x[2], x[3]);
  }
}
''')
    b.rep('float(&out)[IB][PAD] = scratch(s).tri.n21[0];','float(&out)[IB][PAD] = scratch(s).tri.n21;')
    b.rep('''  float n21[2][IB][PAD];   // V_1'V_0 of either warpgroup's rows
''','''  float n21[IB][PAD];      // V_1'V_0
''')
    b.cut('''  if (cross) {
    cross_products(s, first''','''    sc.tri.n[row][col] = y.x;
''','''  if (cross && me.wg == 0) cross_products(s, first, sc.tri.n21, me);
  if (RARE(cross && s.two_terms)) cross_products_low(s, job, first, me);
  const int summing = cross ? 3 : 6;  // warps from 4 or from 0
#pragma unroll 1
  for (int piece = cross ? me.warp - 4 : me.warp; piece >= 0 && piece < 6 && me.warp < 7 && me.warp - (cross ? 4 : 0) < summing; piece += summing) {
    const int i = piece < 4 ? piece : piece - 2;
    const int row = 16 * (piece >> 2) + 2 * me.g, col = 16 * (i >> 1) + 4 * me.q + (i & 1);
    const float4 y = sum_partials(sc.partial, piece, me.lane);
    sc.tri.n[row][col] = y.x;
''')
    b.rep('''  } else if (me.warp == 6) {  // lane = reflector
''','''  }
  if (me.warp == 6) {  // lane = reflector
''')
    b.rep('''[&](int j, int m) {
      const float2 x = *(const float2*)&sc.tri.n21[0][j][m], y = *(const float2*)&sc.tri.n21[1][j][m];
      return make_float2(x.x + y.x, x.y + y.y);
    }, [&](int m, int a) {''','''[&](int j, int m) { return *(const float2*)&sc.tri.n21[j][m]; }, [&](int m, int a) {''')
    b.rep('''  for (int piece = cross ? me.warp - 4 : me.warp; piece >= 0 && piece < 6 && me.warp < 7 && me.warp - (cross ? 4 : 0) < summing; piece += summing) {
''','''  for (int piece = me.warp - (cross ? 4 : 0); piece >= 0 && piece < 6 && me.warp < WARPS - 1; piece += summing) {
''')
    b.rep('''  const int summing = cross ? 3 : 6;  // warps from 4 or from 0
''','''  const int summing = cross ? 3 : 6;  // warps, from 4 or from 0: the others are at work
''')
