# p106.py IN OUT: v29's kernel text (body or whole file) -> with FP32_CLASS. Every change is a replacement of text that must occur once.
import sys
b = open(sys.argv[1]).read()
import re
def rep(x, y):
    """Lines //@... (profile hooks) may stand between the lines of x; those are lost unless y has them."""
    global b
    parts = re.split('\n', x)
    m = list(re.finditer('\n(?://@.*\n)*'.join(re.escape(p) for p in parts), b))
    assert len(m) == 1, (len(m), x)
    b = b[:m[0].start()] + y + b[m[0].end():]

# ---- constants
rep('''constexpr float TINY_SQUARE = 1e-30f;''', '''#ifndef FP32_CLASS_V
#define FP32_CLASS_V 1
#endif
#ifndef TRUST_V
#define TRUST_V 64.f
#endif
#ifndef SAFER_V
#define SAFER_V 16.f
#endif
// FP32_CLASS: V, C and W' take two terms everywhere, for column-wise residuals of torch.geqrf's order. How far the recurrence is to
// be trusted then depends on what is left of a column, |p|, against the whole of it (its absolute sum is 128 .. 256): R and V of a
// window are wrong by about 2^-22 growth^2 |p|, which may be a fraction of n eps times the column's sum. So
// ratio = |p| / (TRUST n), at least 1 / MOST_TRUST; pivot / |p|^2 > ratio and growth^2 < 4 / ratio; SAFER times stricter where a
// pass has to end.
constexpr bool FP32_CLASS = FP32_CLASS_V;
constexpr float TRUST = TRUST_V, MOST_TRUST = 1e5f, SAFER = SAFER_V;
constexpr float TINY_SQUARE = 1e-30f;''')
rep('''  float beta[IB];
  int trip; ''', '''  float beta[IB];
  float ratio[IB];                   // FP32_CLASS: the smallest pivot to trust
  int trip; ''')
rep('''  unsigned long long panel;          // and of the next panel's halves
''', '''  unsigned long long panel;          // and of the next panel's halves
  unsigned long long low;            // and of the first window's low term
''')
rep('''DEVICE Scratch& scratch(Shared& s)''', '''// Words of V's low term in its workspace. FP32_CLASS: the tiles of 8 reflectors follow one another, as in p[1], where they are
// formed, so that a window is four copies and yet all 64 reflectors are the N of one product.
DEVICE size_t low_at(int k, int tile, int group) {
  return FP32_CLASS ? (size_t)((k * GROUPS + group) * TILES + tile) * 32 : (size_t)((k * TILES + tile) * GROUPS + group) * 32;
}
constexpr uint32_t LOW_GROUP = TILES * 128;  // bytes
constexpr int P_TILE = FP32_CLASS ? 128 : 512, P_GROUP = FP32_CLASS ? LOW_GROUP : 128;
DEVICE uint32_t* p_tile(Shared& s, int term, int tile, int group) { return &s.p[term][0][0][0] + (tile * P_TILE + group * P_GROUP) / 4; }
DEVICE Scratch& scratch(Shared& s)''')

# ---- larfb
rep('''DEVICE void fetch_low(Shared& s, const Job& job, int stage, int j) {  // one thread
  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes);
''', '''DEVICE void fetch_low(Shared& s, const Job& job, int stage, int j) {  // one thread
  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes);
  if (FP32_CLASS) {
#pragma unroll 1
    for (int i = 0; i < GROUPS; i++) {
      bulk_load(&s.v[stage][0][0][0] + (i * TILES + 8 * j) * 32, job.v_lo + low_at(j, 8 * j, i), bytes / GROUPS, &s.full[stage]);
    }
    return;
  }
''')
rep('''DEVICE void apply_block(Panel& c, Shared& s, int stage,''', '''// FP32_CLASS: the low term always counts; `inside` the panel it is where form_reflectors left it. `next`: the block to fetch
// over low terms that are no longer needed; -1: none.
DEVICE void next_block(Shared& s, const Job& job, int next, const Lane& me);
DEVICE void apply_block(Panel& c, Shared& s, const Job& job, bool inside, int next, int stage,''')
rep('''#pragma unroll 1
  for (int term = 0; term < terms; term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
    if (term == 1)''', '''#pragma unroll 1
  for (int term = 0; term < (FP32_CLASS ? 1 : terms); term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
    if (term == 1)''')
rep('''#pragma unroll
  for (int r = 0; r < GROUPS; r++) {
    s.partial''', '''  // The low terms of V, 8 reflectors 8 KB apart. Inside the panel there are those of one window; W of the other 32 reflectors is
  // then anything and is not used, and their W' is zero beside low terms of this window.
  const int window = part.window == 1;
  const uint32_t low_tiles = shared_address(inside ? &s.p[1][0][0][0] : &s.v[stage ^ 1][0][0][0]) + me.wg * 128;
  if (FP32_CLASS && !inside) barrier_wait(&s.full[1 - stage], phase >> (1 - stage) & 1);
#if WARPGROUP_MMA
  if (FP32_CLASS) {
    const uint32_t low = tile_descriptor(low_tiles - window * 4 * LOW_GROUP, 256);
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        uint32_t hi[2][4];
#pragma unroll
        for (int z = 0; z < 8; z++) {
          float(&x)[4] = c[4 * quad + (z >> 1)];
          hi[z >> 2][z & 3] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
        }
        wgmma_fence();
#pragma unroll
        for (int u = 0; u < 2; u++) {
          wgmma_64<0, LOW_GROUP>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], low + (8 * quad + 4 * u) * 8);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
  }
#else
  const uint32_t low_lane = low_tiles + (me.lane >> 3) * LOW_GROUP + (me.lane & 7) * 16;
  if (FP32_CLASS) {
#pragma unroll
    for (int st = 0; st < OWN / 2; st++) {
      if (st / 2 >= quad0) {
        uint32_t hi[4];
#pragma unroll
        for (int z = 0; z < 4; z++) {
          float(&x)[4] = c[2 * st + (z >> 1)];
          hi[z] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
          if (inside && half != window) continue;
          const uint32_t b = low_lane + (inside ? 0 : half * 4 * LOW_GROUP) + 4 * st * 128;
          uint32_t b0[4], b1[4];
          load_matrix(b0, b);
          load_matrix(b1, b + 256);
#pragma unroll
          for (int r = 0; r < 4; r++) mma_fp16(w[4 * half + r], hi, b0[r], b1[r]);
        }
      }
    }
  }
#endif
//@TICK(15)
  uint4(*operand)[4][4][32] = FP32_CLASS && inside ? reinterpret_cast<uint4(*)[4][4][32]>(&scratch(s)) : s.operand;
#pragma unroll
  for (int r = 0; r < GROUPS; r++) {
    s.partial''')
for i in '01':
    b = b.replace('s.operand[%s][me.ws]' % i, 'operand[%s][me.ws]' % i)
rep('''#pragma unroll 1
  for (int term = 0; term < terms; term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
#if WARPGROUP_MMA
    const uint32_t v_rows''', '''  if (FP32_CLASS) {
#if WARPGROUP_MMA
    const uint32_t low = tile_descriptor(low_tiles, LOW_GROUP), other = inside ? 0u : 4 * LOW_GROUP / 16;
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        const int i = 4 * quad;
        wgmma_fence();
#pragma unroll
        for (int st = 0; st < 4; st++) {
          wgmma_32<1, 256>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], low + 8 * quad * 8 + (st & 1) * (2 * LOW_GROUP / 16) + (st < 2 ? 0u : other));
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
#else
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          if (inside && half != window) continue;
#pragma unroll
          for (int u = 0; u < 4; u++) {
            uint32_t b[4];
            load_matrix_transposed(b, low_lane + (inside ? 0 : half * 4 * LOW_GROUP) + (8 * quad + 2 * u) * 128);
            mma_fp16(c[4 * quad + u], wh[2 * half], b[0], b[1]);
            mma_fp16(c[4 * quad + u], wh[2 * half + 1], b[2], b[3]);
          }
        }
      }
    }
#endif
    next_block(s, job, next, me);
  }
//@TICK(16)
#pragma unroll 1
  for (int term = 0; term < (FP32_CLASS ? 1 : terms); term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
#if WARPGROUP_MMA
    const uint32_t v_rows''')

# ---- geqr2
rep('''    const bool two = error > TWO_TERM_AT * 1.1920929e-7f * (float)job.n * bits_float(s.largest_sum);
''', '''    const bool two = error > TWO_TERM_AT * 1.1920929e-7f * (float)job.n * bits_float(s.largest_sum);
    if (FP32_CLASS) s.ratio[me.lane] = fmaxf(own == 0.f ? 0.f : reciprocal(TRUST * (float)job.n * own), 1.f / MOST_TRUST);
''')
rep('''      s.two_terms = h == 0 && done == 0 ? two : two || s.two_terms;''', '''      s.two_terms = FP32_CLASS || (h == 0 && done == 0 ? two : two || s.two_terms);''')
rep('''    const bool bad = whole != 0.f && !(win.pivot[lane] > PIVOT_RATIO * whole);
''', '''    const bool bad = whole != 0.f && !(win.pivot[lane] > (FP32_CLASS ? s.ratio[lane] : PIVOT_RATIO) * whole);
''')
rep('''    if (me.lane == 0 && !(x < M_SAFE)) atomic_min''', '''    if (me.lane == 0 && !(FP32_CLASS ? x * x * s.ratio[j] * SAFER < 4.f : x < M_SAFE)) atomic_min''')
rep('''    const uint32_t unsafe = ballot(whole != 0.f && !(win.pivot[me.lane] > PIVOT_SAFE * whole));
''', '''    const float ratio = FP32_CLASS ? SAFER * s.ratio[me.lane] : PIVOT_SAFE;
    const uint32_t unsafe = ballot(whole != 0.f && !(win.pivot[me.lane] > ratio * whole));
''')
rep('''// Partial sums of V_h'V_h (the upper''', '''// FP32_CLASS: the first 32 rows of V's second window, which form_reflectors does not write. Before the first panel the second
// half of the stage holds anything: it is cleared so that nothing times it is nothing.
DEVICE void clear_corner(Shared& s, const Job& job, int h, const Lane& me) {
  if (h == 1) {
    const int tile = 8 * job.k + (me.tid >> 6), word = me.tid & 63;
    *reinterpret_cast<uint2*>(&s.v[0][tile][4][word * 2]) = make_uint2(0u, 0u);
    *reinterpret_cast<uint2*>(p_tile(s, 1, tile, word >> 4) + (word & 15) * 2) = make_uint2(0u, 0u);
  } else if (job.k == 0) {
#pragma unroll 1
    for (int i = me.tid; i < TILES * 32; i += THREADS) {
      *reinterpret_cast<uint4*>(&s.v[0][i >> 5][4][(i & 31) * 4]) = uint4{0u, 0u, 0u, 0u};
    }
  }
}

// Partial sums of V_h'V_h (the upper''')
rep('''DEVICE void store_products(''', '''DEVICE int low_row(int lane) {  // operand_row among low terms, in bytes
  const int row = 16 * (lane >> 4) + 2 * (lane & 7) + (lane >> 3 & 1);
  return (row >> 3) * LOW_GROUP + (row & 7) * 16;
}
// What the low term adds: v low' + low v', both in one product of K = 16.
DEVICE void add_low(Products& x, const uint32_t (&v)[4], const uint32_t (&low)[4]) {
  const uint32_t a0[4] = {v[0], v[1], low[0], low[1]}, a1[4] = {v[2], v[3], low[2], low[3]};
#pragma unroll
  for (int i = 0; i < 4; i++) mma_fp16(x.own[i], a0, low[i], v[i]);
#pragma unroll
  for (int i = 2; i < 4; i++) mma_fp16(x.own[i + 2], a1, low[i], v[i]);
}
DEVICE void store_products(''')
rep('''    large = large || !(x < M_NORM);
''', '''    large = large || !(FP32_CLASS ? x * x * s.ratio[16 * (i >> 1) + 2 * me.g + (i & 1)] < 4.f : x < M_NORM);
''')
rep('''  const bool two = s.two_terms;
  // This lane's''', '''  const uint32_t low_to = shared_address(p_tile(s, 1, 0, 0)) + low_row(me.lane);
  const bool two = s.two_terms;
  // This lane's''')
rep('''    if (two) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
        const uint32_t low = pack''', '''    if (FP32_CLASS && WHOLE) {  // to where P's low term was: only this warp has read this tile
      uint32_t low[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        low[i] = pack_half2(x[i] - out[i].x, y[i] - out[i].y);
        const float2 f = unpack_half2(low[i]);
        out[i].x += f.x;
        out[i].y += f.y;
      }
      sync_warp();
      store_matrix(low_to + tile * 128, low);
      add_low(sums, word, low);
    } else if (two) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
        const uint32_t low = pack''')
rep('''        const size_t at_low = ((size_t)(job.k * TILES + tile) * GROUPS + 4 * h + (j >> 3)) * 32 + (j & 7) * 4 + me.q;
''', '''        const size_t at_low = low_at(job.k, tile, 4 * h + (j >> 3)) + (j & 7) * 4 + me.q;
''')
rep('''  if (two) fence_all();
  return true;''', '''  if (!FP32_CLASS && two) fence_all();
  return true;''')
rep('''// ---------------------------------------------------------------- larft

''', '''// FP32_CLASS: after such a pass, all of the window's low terms so far to where one pass leaves them.
NOINLINE void take_low_back(Shared& s, const Job& job, int h, int first, const Lane& me) {
#pragma unroll 1
  for (int i = me.warp; i < (TILES - first) * 4; i += WARPS) {
    const int tile = first + (i >> 2), group = i & 3;
    p_tile(s, 1, tile, group)[me.lane] = load_word(job.v_lo + low_at(job.k, tile, 4 * h + group) + me.lane);
  }
}

// ---------------------------------------------------------------- larft

''')
rep('''// Those sums from V as it is stored''', '''DEVICE void next_block(Shared& s, const Job& job, int next, const Lane& me) {
  if (next < 0) return;
  if (me.warp == WARPS - 1) {
    bar_sync(6, THREADS);
    if (me.tid == MOVER) {
      if (next == 1) bulk_store_read();           // T's stage is free
      if (next + 1 == job.k) bulk_store_wait();  // block k - 1 is in memory
      prefetch_block(s, job, next);
    }
  } else {
    bar_arrive(6, THREADS);
  }
}

// Those sums from V as it is stored''')
rep('''    if (s.two_terms) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
        low[i] = low_word''', '''    if (FP32_CLASS) {
      load_matrix(low, shared_address(p_tile(s, 1, tile, 0)) + low_row(me.lane));
      add_low(x, v, low);
    } else if (s.two_terms) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
        low[i] = low_word''')
rep('''    mma_fp16(x[1], a1, b[2], b[3]);
  }
  if (s.two_terms) {''', '''    mma_fp16(x[1], a1, b[2], b[3]);
    if (FP32_CLASS) {
      uint32_t low[4];
      load_matrix(low, low1 + tile * 128);
      mma_fp16(x[0], a0, low[0], low[1]);
      mma_fp16(x[1], a1, low[2], low[3]);
      load_matrix(a0, low0 + tile * 128);
      load_matrix(a1, low0 + (tile + 2) * 128);
      mma_fp16(x[0], a0, b[0], b[1]);
      mma_fp16(x[1], a1, b[2], b[3]);
    }
  }
  if (!FP32_CLASS && s.two_terms) {''')
rep('''  float x[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll 2''', '''  // low terms of V_0 in p[0], of V_1 in p[1]
  const uint32_t low0 = shared_address(p_tile(s, 0, first + (me.lane >> 4), 2 * half + (me.lane >> 3 & 1))) + (me.lane & 7) * 16;
  const uint32_t low1 = shared_address(p_tile(s, 1, first + (me.lane >> 3), r)) + (me.lane & 7) * 16;
  float x[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll 2''')
rep('''DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool whole, const Lane& me) {''',
'''DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool whole, uint32_t low_phase,
                     const Lane& me) {''')
rep('''  if (h == 1 && need_t) cross_products(s, job, first, sc.tri.n12t, me);
  if (me.warp < 6) {''', '''  if (!FP32_CLASS && h == 1 && need_t) cross_products(s, job, first, sc.tri.n12t, me);
  if (me.warp < 6) {''')
rep('''  sync_all();
  if (h == 1 && need_t && whole && job.k > 0 && me.tid == MOVER) {  // V's stage is free once it has been read
    bulk_store_read();
    prefetch_block(s, job, 0);
  }''', '''  if (FP32_CLASS && h == 1 && need_t) {
    barrier_wait(&s.low, low_phase);
    cross_products(s, job, first, sc.tri.n12t, me);
    fence_async();
  }
  sync_all();
  if (h == 1 && need_t && whole && (FP32_CLASS || job.k > 0) && me.tid == MOVER) {  // V's stage is free once it has been read
    bulk_store_read();
    if (FP32_CLASS && EXACT) fetch_half(s, job, job.k + 1, 0, s.half);
    if (job.k > 0) prefetch_block(s, job, 0);
  }''')

# ---- geqrf
rep('''  uint32_t phase = 0, low_blocks = 0;
''', '''  uint32_t phase = 0, low_blocks = 0, low_phase = 0;
''')
rep('''    barrier_init(&s.panel);
''', '''    barrier_init(&s.panel);
    barrier_init(&s.low);
''')
rep('''          if (me.tid == MOVER) {
            if (j == 0) bulk_store_read();       // T's stage is free
''', '''          if (FP32_CLASS && j > 0 && me.tid == MOVER) fetch_low(s, job, 1 - stage, j);  // that of block 0 is on its way
          if (!FP32_CLASS && me.tid == MOVER) {
            if (j == 0) bulk_store_read();       // T's stage is free
''')
rep('''        if (inside && terms == 2 && me.tid == MOVER) fetch_low(s, job, 1, j);
''', '''        if (!FP32_CLASS && inside && terms == 2 && me.tid == MOVER) fetch_low(s, job, 1, j);
''')
rep('''const bool two_c = again || error > allowed, two_w = again || 2.f * error > allowed;''',
'''const bool two_c = FP32_CLASS || again || error > allowed, two_w = FP32_CLASS || again || 2.f * error > allowed;''')
rep('''        apply_block(c, s, stage, inside ? 1 : stage, j, terms, two_c, two_w, again ? h == 1 : h == 0, part, phase, me);
        if (terms == 2) phase ^= 2u >> stage;
        if (!inside && terms == 2) {''', '''        const int next_j = FP32_CLASS && !inside && j + 1 < k ? j + 1 : -1;
        if (FP32_CLASS && s.largest_column == 0u) {  // C is zero and stays so
          if (!inside) barrier_wait(&s.full[1 - stage], phase >> (1 - stage) & 1);
          next_block(s, job, next_j, me);
        } else {
          apply_block(c, s, job, inside, next_j, stage, inside ? 1 : stage, j, terms, two_c, two_w, again ? h == 1 : h == 0, part, phase, me);
        }
        if (FP32_CLASS ? !inside : terms == 2) phase ^= 2u >> stage;
        if (!FP32_CLASS && !inside && terms == 2) {''')
rep('''      sync_all();
      if (me.ws >> 1 == h) {
        if (again) clear_done''', '''      if (FP32_CLASS && h == 1 && me.tid == MOVER) bulk_store_read();  // the first window's low terms, where P's go
      sync_all();
//@TICK(3)
      if (me.ws >> 1 == h) {
        if (again) clear_done''')
rep('''    clear_second_half(s, job, h, low_before, me);
''', '''    if (FP32_CLASS) {
      clear_corner(s, job, h, me);
    } else {
      clear_second_half(s, job, h, low_before, me);
    }
''')
rep('''    bool ready = !s.two_terms;
    if (again || s.trip || !form_reflectors<EXACT, true>(s, job, h, first, 0, IB, low_before, me)) {
      ready = false;
      good = safe_columns(s, done, me);
      form_some_reflectors<EXACT>(s, job, h, first, done, good, low_before, me);
    }
    whole = good == IB;
    if (h == 1) fence_async();
    sync_all();
''', '''    bool ready = FP32_CLASS || !s.two_terms;
    if (again || s.trip || !form_reflectors<EXACT, true>(s, job, h, first, 0, IB, low_before, me)) {
      ready = false;
      good = safe_columns(s, done, me);
      form_some_reflectors<EXACT>(s, job, h, first, done, good, FP32_CLASS || low_before, me);
      if (FP32_CLASS) {
        sync_all();
        take_low_back(s, job, h, first, me);
      }
    }
    whole = good == IB;
//@TICK(14)
    if (FP32_CLASS || h == 1) fence_async();
    sync_all();
    if (FP32_CLASS && me.tid == MOVER && !(h == 1 && whole && last)) {
      if (h == 1) {  // the first window's low term to where P was
        bulk_store_wait();
        barrier_expect(&s.low, (TILES - 8 * k) * 512);
#pragma unroll 1
        for (int i = 0; i < 4; i++) {
          bulk_load(p_tile(s, 0, 8 * k, i), job.v_lo + low_at(k, 8 * k, i), (TILES - 8 * k) * 128, &s.low);
        }
      }
      if (whole) {
#pragma unroll 1
        for (int i = 0; i < 4; i++) {
          bulk_store(job.v_lo + low_at(k, 8 * k, 4 * h + i), p_tile(s, 1, 8 * k, i), (TILES - 8 * k) * 128);
        }
        bulk_store_commit();
      }
    }
''')
rep('''      if (EXACT) fetch_half(s, job, k + 1, 0, s.half);
    }
    end = h == 1''', '''      if (EXACT && !FP32_CLASS) fetch_half(s, job, k + 1, 0, s.half);
    }
    end = h == 1''')
rep('''    window_t<EXACT>(ready, s, job, h, first, !end, whole, me);
''', '''    window_t<EXACT>(ready, s, job, h, first, !end, whole, low_phase, me);
    if (h == 1 && !end) low_phase ^= 1u;
''')
rep('''        bulk_load(&s.t[0][0][0], job.t, T_OPERANDS * 512, &s.full[0]);
      }
''', '''        bulk_load(&s.t[0][0][0], job.t, T_OPERANDS * 512, &s.full[0]);
      }
      if (FP32_CLASS) fetch_low(s, job, 1, 0);
''')
rep('''struct Lane { int tid''', '''// FP32_CLASS: inside a panel W of 32 absent reflectors is taken from beyond p[1].
constexpr int SHARED_BYTES = FP32_CLASS ? sizeof(Shared) + 8192 : sizeof(Shared);

struct Lane { int tid''')
# ---- P as its low term is to be
rep('''&s.p[me.lane >> 4][me.wg][group][(((2 * r + b) & 7) ^ (group & 1)) * 4]);''', '''p_tile(s, me.lane >> 4, me.wg, group) + (((2 * r + b) & 7) ^ (group & 1)) * 4);''')
rep('''store_matrix(at + (8 * quad + 2 * u) * 512, z[u]);''', '''store_matrix(at + (8 * quad + 2 * u) * P_TILE, z[u]);''')
rep('''unpack_half2(s.p[0][first + tile][group][word]), lo = unpack_half2(s.p[1][first + tile][group][word]);''', '''unpack_half2(p_tile(s, 0, first + tile, group)[word]), lo = unpack_half2(p_tile(s, 1, first + tile, group)[word]);''')
rep('''left = p + b1 * 512 + b0 * 128 + (l ^ b0) * 16, right = p + b0 * 512 + b1 * 128 + (l ^ b1) * 16;''',
    '''left = p + b1 * P_TILE + b0 * P_GROUP + (l ^ b0) * 16, right = p + b0 * P_TILE + b1 * P_GROUP + (l ^ b1) * 16;''')
rep('''      load_matrix(a[z], left + u * 1024 + z * 256);
      load_matrix(hi[z], right + u * 1024 + z * 256);
      load_matrix(lo[z], right + u * 1024 + z * 256 + LOW);''', '''      const int at = u * (2 * P_TILE) + z * (2 * P_GROUP);
      load_matrix(a[z], left + at);
      load_matrix(hi[z], right + at);
      load_matrix(lo[z], right + at + LOW);''')
rep('''shared_address(&s.p[0][0][cg][0]) + (l ^ (cg & 1)) * 16;''', '''shared_address(p_tile(s, 0, 0, cg)) + (l ^ (cg & 1)) * 16;''')
rep('''      load_matrix_transposed(hi, at + tile * 512);
      load_matrix_transposed(lo, at + tile * 512 + LOW);''', '''      load_matrix_transposed(hi, at + tile * P_TILE);
      load_matrix_transposed(lo, at + tile * P_TILE + LOW);''')
open(sys.argv[2], 'w').write(b)
