# W'^T = W^T T by warpgroup products: T lies in tiles; after xl.larft, xg.select (no xg.exchange)
APPLY='''// W'^T = W^T T: the accumulators w are the A operand of it, T the other one. A warpgroup makes 32 reflectors of it, which take the
// first 32 rows of T or all 64.
template <bool TWO>
DEVICE void apply_t(float (&d)[4][4], const uint32_t (&hi)[4][4], const uint32_t (&lo)[4][4], Shared& s, int t_stage, const Lane& me) {
#if WARPGROUP_MMA
  constexpr int LOW = T_TILES * 128 / 16;
  const uint32_t t = tile_descriptor(shared_address(t_tile(s, t_stage, 0, 0, 4 * me.wg)), 512);
  const auto add = [&](int from) {
    wgmma_fence();
#pragma unroll
    for (int st = from; st < from + 2; st++) {
      wgmma_32<0, 128>(d[0], d[1], d[2], d[3], hi[st], t + 64 * st + LOW);
      if (TWO) wgmma_32<0, 128>(d[0], d[1], d[2], d[3], lo[st], t + 64 * st);
      wgmma_32<0, 128>(d[0], d[1], d[2], d[3], hi[st], t + 64 * st);
    }
    wgmma_commit();
    wgmma_wait();
  };
  if (me.wg == 1) add(2);
  add(0);
#else
#pragma unroll
  for (int st = 0; st < 4; st++) {
    if (st < 2 || me.wg == 1) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        uint32_t t[2][2];
#pragma unroll
        for (int z = 0; z < 4; z++) t[z >> 1][z & 1] = t_tile(s, t_stage, z >> 1, 2 * st + (z & 1), 4 * me.wg + r)[me.lane];
        mma_fp16(d[r], hi[st], t[1][0], t[1][1]);
        if (TWO) mma_fp16(d[r], lo[st], t[0][0], t[0][1]);
        mma_fp16(d[r], hi[st], t[0][0], t[0][1]);
      }
    }
  }
#endif
}

'''
def t_tiles(b, own=True):
    b.rep('''constexpr int T_OPERANDS = 20;     // 16 x 8 operands of an upper triangular 64 x 64
''','''constexpr int T_TILES = 48, T_WORDS = 2 * T_TILES * 32;  // of an upper triangular 64 x 64 without its 32 rows of zeros, in two terms
''')
    b.rep('''  uint4 t[2][T_OPERANDS][32];        // T as mma operands: hi b0, hi b1, lo b0, lo b1
''','''  uint32_t t[2][2][T_TILES][32];     // T, hi and lo: 4 x 4 tiles of its first 32 columns, then 8 x 4 of the others; [column][row]
''')
    b.rep('''DEVICE Scratch& scratch(Shared& s)''','''DEVICE uint32_t* t_tile(Shared& s, int stage, int term, int k, int r) { return s.t[stage][term][(r >> 2) * 16 + 4 * k + (r & 3)]; }
DEVICE Scratch& scratch(Shared& s)''')
    b.rep('(chunk == CHUNKS - 1 ? T_OPERANDS * 512 : 0)','(chunk == CHUNKS - 1 ? T_WORDS * 4 : 0)')
    b.rep('bulk_load(&s.t[j & 1][0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, &s.full[chunk]);','bulk_load(&s.t[j & 1][0][0][0], job.t + (size_t)j * T_WORDS, T_WORDS * 4, &s.full[chunk]);')
    b.rep('barrier_expect(&s.full[stage], bytes + T_OPERANDS * 512);','barrier_expect(&s.full[stage], bytes + T_WORDS * 4);')
    b.rep('bulk_load(&s.t[stage][0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, &s.full[stage]);','bulk_load(&s.t[stage][0][0][0], job.t + (size_t)j * T_WORDS, T_WORDS * 4, &s.full[stage]);')
    b.rep('bulk_store(job.t + (size_t)k * T_OPERANDS * 128, &s.t[1][0][0], T_OPERANDS * 512);','bulk_store(job.t + (size_t)k * T_WORDS, &s.t[1][0][0][0], T_WORDS * 4);')
    b.rep('matrix * panels * (T_OPERANDS * 128)','matrix * panels * T_WORDS')
    b.rep('t: batch * panels * 10240.','t: batch * panels * 12288.')
    b.cut('''// W'^T = W^T T as d + rest; the accumulators w''','''struct Part { int window''',APPLY)
    b.rep('''  float d[4][4], rest[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&d[0][0])[i] = (&rest[0][0])[i] = 0.f;
  uint32_t hi[''','''  float d[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&d[0][0])[i] = 0.f;
  uint32_t hi[''')
    b.rep('''      if (r < 6 || me.wg == 0) {  // the last two groups enter W' of warpgroup 0 only
''','''      if (r < 4 || me.wg == 1) {  // the others enter W' of warpgroup 1 only
''')
    b.rep('apply_t<true>(d, rest, hi, lo, s.t[t_stage], me);','apply_t<true>(d, hi, lo, s, t_stage, me);')
    b.rep('apply_t<false>(d, rest, hi, hi, s.t[t_stage], me);','apply_t<false>(d, hi, hi, s, t_stage, me);')
    b.rep('''      mine[st][me.lane] = {hi[st][0], hi[st][1], hi[st][2], hi[st][3]};
''','''      if (st < 2 || me.wg == 0) mine[st][me.lane] = {hi[st][0], hi[st][1], hi[st][2], hi[st][3]};
''')
    b.cut('''    for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = other[st][me.lane];
''','''    apply_t<false>''','''    for (int st = 0; st < GROUPS / 2; st++) {
      if (st < 2 || me.wg == 1) {
        const uint4 x = other[st][me.lane];
        hi[st][0] = plus_half2(hi[st][0], x.x);
        hi[st][1] = plus_half2(hi[st][1], x.y);
        hi[st][2] = plus_half2(hi[st][2], x.z);
        hi[st][3] = plus_half2(hi[st][3], x.w);
      }
    }
''')
    b.rep('''  for (int pair = 0; pair < 2; pair++) {  // reflectors 0 .. 15 and 48 .. 63, or 16 .. 31 and 32 .. 47
    const bool on = full || pair == 0;
''','''  for (int pair = 0; pair < 2; pair++) {
    const bool on = full || me.wg == 0;
''')
    b.rep('''      const float x = on ? -d[u][e] - rest[u][e] : 0.f, y = on ? -d[u][e + 1] - rest[u][e + 1] : 0.f;
''','''      const float x = on ? -d[u][e] : 0.f, y = on ? -d[u][e + 1] : 0.f;
''')
    b.rep('''    const int st = me.wg == 0 ? 3 * pair : 1 + pair;
''','''    const int st = 2 * me.wg + pair;
''')
    b.rep('''    const int st = me.wg == (i >> 1) ? 3 * (i & 1) : 1 + (i & 1);
''','''    const int st = 2 * (me.wg ^ (i >> 1)) + (i & 1);
''')
    b.cut('''// T as operands: (st, r) is rows''','''// ---------------------------------------------------------------- geqrf
''','''// T in tiles: k, r are rows 8 k .. + 7, columns 8 r .. + 7 of it; the 32 rows of zeros do not exist.
DEVICE void store_t_tile(Shared& s, int k, int r, float x, float y, const Lane& me) {
  uint32_t hi, lo;
  split(x, y, hi, lo);
  t_tile(s, 1, 0, k, r)[me.lane] = hi;
  t_tile(s, 1, 1, k, r)[me.lane] = lo;
}
// Those of a window's own T, and with the second window those of T12 = -X T22, transposed as they come from the tensor cores.
DEVICE void store_t(Shared& s, int h, const Lane& me) {
  const Triangle& tri = scratch(s).tri;
  if (h == 1 && me.warp < 4) {
    float d[2][4];
    product_part(d, me.warp, [&](int c, int j) { return *(const float2*)&tri.t22t[c][j]; },
                 [&](int j, int a) { return *(const float2*)&tri.x[a][j]; }, me);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      store_t_tile(s, (me.warp & 2) + (i & 1), 4 + 2 * (me.warp & 1) + (i >> 1), -d[i & 1][i & 2], -d[i & 1][(i & 2) + 1], me);
    }
  } else {
#pragma unroll 1
    for (int i = h == 0 ? me.warp : me.warp - 4; i < 16; i += h == 0 ? WARPS : 4) {
      const float* t = &(h == 0 ? s.t11t : tri.t22t)[8 * (i & 3) + me.g][8 * (i >> 2) + 2 * me.q];
      store_t_tile(s, 4 * h + (i >> 2), 4 * h + (i & 3), t[0], t[1], me);
    }
  }
}

''')
    b.rep('store_t: T as operands','store_t: T in tiles')
# the warp's own half of W' from its registers, one term
def own(b):
    b.rep('''    uint32_t wh[GROUPS / 2][4];
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = x_change.operand[term][me.ws][st][me.lane];
      wh[st][0] = x.x; wh[st][1] = x.y; wh[st][2] = x.z; wh[st][3] = x.w;
    }
''','''    uint32_t wh[GROUPS / 2][4];
#pragma unroll
    for (int i = 0; i < GROUPS / 2; i++) {  // the first two are this warp's
      if (OWN_TEST) {
        const uint4 x = x_change.operand[term][me.ws][W_ORDER(i)][me.lane];
        wh[i][0] = x.x; wh[i][1] = x.y; wh[i][2] = x.z; wh[i][3] = x.w;
      } else {
#pragma unroll
        for (int z = 0; z < 4; z++) wh[i][z] = hi[i & 1][z];
      }
    }
'''.replace('OWN_TEST','i >= 2 || two_w').replace('W_ORDER(i)','2 * (me.wg ^ (i >> 1)) + (i & 1)'))
    b.rep('''          wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], v_rows + 8 * quad * 64 + st * 16);
''','''          wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], (st < 2 ? v_own : v_other) + 8 * quad * 64 + (st & 1) * 16);
''')
    b.rep('''    const uint32_t v_rows = tile_descriptor(tiles, 128);
''','''    const uint32_t v_own = tile_descriptor(tiles, 128) + 32 * me.wg, v_other = v_own ^ V_SWAP;
'''.replace('v_own ^ V_SWAP','v_own + 32 - 64 * me.wg'))
    b.rep('''            const uint32_t at = tiles + (8 * quad + 2 * u) * 1024 + half * 512 + me.lane * 16;
            load_matrix_transposed(b[u], FP32_CLASS && pass == 3 ? low.lane(me) + half * low.other() + p_offset(8 * quad + 2 * u) : at);
''','''            const uint32_t at = tiles + (8 * quad + 2 * u) * 1024 + (half ^ me.wg) * 512 + me.lane * 16;
            load_matrix_transposed(b[u], FP32_CLASS && pass == 3 ? low.lane(me) + (half ^ me.wg) * low.other() + p_offset(8 * quad + 2 * u) : at);
''')
