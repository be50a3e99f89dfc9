def clear(B):
    rep=B.rep
    B.cut('''// The first `done` rows and columns of a window''','''// P to shared memory as fp16''','''// The first `done` rows and columns of a window are finished: they are zero in what is left of it. Rare, so out of the way.
NOINLINE void clear_done(Shared& s, int first, int done, const Lane& me) {
#pragma unroll 1
  for (int i = me.tid; i < (TILES - first) * 128; i += THREADS) {
    const int tile = first + (i >> 7), group = i >> 5 & 3, word = i & 31;
    const int col = 8 * group + (word >> 2 ^ (group & 1)), row = 8 * (i >> 7) + 2 * (word & 3);
    const uint32_t keep = col < done || row + 1 < done ? 0u : row < done ? 0xffff0000u : ~0u;
    s.p[0][tile][group][word] &= keep;
    s.p[1][tile][group][word] &= keep;
  }
  sync_all();
}

''')
    rep('''        if (again) clear_done(c, first, done, me);
''','')
    rep('''    gram(s, job, h''','''    if (RARE(again)) clear_done(s, first, done, me);
    gram(s, job, h''')
def store(B):
    rep=B.rep
    rep('''  const float u0 = s.unscale[col], u1 = s.unscale[col + 1];
#pragma unroll
  for (int quad''','''  const float u0 = s.unscale[col], u1 = s.unscale[col + 1];
  float* out = job.h + (me.wg * TILE + 2 * me.q) * ROWS + job.k * NB + col;
#pragma unroll
  for (int quad''')
    rep('''          const int row = (2 * i + me.wg) * TILE + 2 * me.q;
          store_pair<EXACT>(job, row, job.k * NB + col, c[i][0] * u0, c[i][2] * u1);
          store_pair<EXACT>(job, row + 1, job.k * NB + col, c[i][1] * u0, c[i][3] * u1);
''','''          const float2 x = make_float2(c[i][0] * u0, c[i][2] * u1), y = make_float2(c[i][1] * u0, c[i][3] * u1);
          if (EXACT) {  // one pointer and constants
            store_once2(out + 2 * i * TILE * ROWS, x);
            store_once2(out + (2 * i * TILE + 1) * ROWS, y);
          } else {
            const int row = (2 * i + me.wg) * TILE + 2 * me.q;
            store_pair<false>(job, row, job.k * NB + col, x.x, x.y);
            store_pair<false>(job, row + 1, job.k * NB + col, y.x, y.y);
          }
''')
def update(B):
    rep=B.rep
    rep('''  uint32_t wh[GROUPS / 2][4], wl[GROUPS / 2][4];
#pragma unroll
  for (int pair''','''#pragma unroll
  for (int pair''')
    B.cut('''#pragma unroll
  for (int st = 0; st < GROUPS / 2; st++) {
    const uint4 x = s.operand[0]''','''  // C^T -= W'^T V^T
''','')
    B.cut('''  for (int term = 0; term < terms; term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
#if WARPGROUP_MMA
    const uint32_t v_rows''','''#else
    // four tiles at a time''','''  for (int pass = two_w ? 1 : 0; pass < 2 * terms; pass += 1) {
    // passes: low and high term of W' for V, and once more for V's low term
    const int low = PASS_LOW;
    const uint32_t tiles = shared_address(&s.v[stage ^ (pass >> 1)][me.wg][0][0]);
    uint32_t wh[GROUPS / 2][4];
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = s.operand[low][me.ws][st][me.lane];
      wh[st][0] = x.x; wh[st][1] = x.y; wh[st][2] = x.z; wh[st][3] = x.w;
    }
#if WARPGROUP_MMA
    const uint32_t v_rows = tile_descriptor(tiles, 128);
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        const int i = 4 * quad;
        wgmma_fence();
#pragma unroll
        for (int st = 0; st < 4; st++) {
          wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], v_rows + 8 * quad * 64 + st * 16);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
''')
    # passes in order: term 0: low (if two_w), high; term 1: low (if two_w), high
    B.rep('''  for (int pass = two_w ? 1 : 0; pass < 2 * terms; pass += 1) {
    // passes: low and high term of W' for V, and once more for V's low term
    const int low = PASS_LOW;
''','''  for (int pass = two_w ? 0 : 1; pass < 2 * terms; pass += two_w ? 1 : 2) {  // low and high term of W' for each term of V
    const int low = 1 - (pass & 1);
''')
    B.rep('''mma_fp16(c[4 * quad + u], wl[2 * half + z], b[u][2 * z], b[u][2 * z + 1]);
#pragma unroll
            for (int u = 0; u < 4; u++) mma_fp16(''','''mma_fp16(''')
