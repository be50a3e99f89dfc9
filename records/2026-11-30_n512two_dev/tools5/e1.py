t=open('w0.py').read(); v85=open('a.py').read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
def cut(a,b,y,incl=False):
    global t
    assert t.count(a)==1,(t.count(a),a); i=t.index(a); j=t.index(b,i)+(len(b) if incl else 0); t=t[:i]+y+t[j:]
# launch and tensor maps as v85
i=v85.index("template <bool EXACT>\n__global__"); j=v85.index("}  // namespace n512\n",i)
cut("template <bool EXACT>\n__global__","}  // namespace n512\n",v85[i:j])
cut("// Low terms of V: 16 tiles of 4 groups","DEVICE void bulk_store_commit()","")
rep("  const TensorMap* map; int row; const TensorMap* low_map; int low_row;\n","  const TensorMap* map; int row;\n")
rep("constexpr int SHARED_BYTES = sizeof(Shared);\n\n","")
# constants
rep("constexpr int TERMS = 2;\n","")
rep("// TERMS == 2: V, C and W' take two terms everywhere, for column-wise","// TERMS = 2: V, C and W' take two terms everywhere, for column-wise")
rep("// ---------------------------------------------------------------- sizes\n","""// ---------------------------------------------------------------- sizes

#ifndef FP16_TERMS  // of V, C and W': the build says
#define FP16_TERMS 1
#endif
constexpr int TERMS = FP16_TERMS;
constexpr bool FUSED = TERMS == 2 && WARPGROUP_MMA;  // larfb's products with all terms a wait
""")
# shared
rep("  float ratio[IB];                   // TERMS == 2: the smallest pivot to trust\n","")
rep("  unsigned long long full[4];        // mbarriers of the stages; TERMS == 2: of the chunks\n","  unsigned long long full[TERMS == 2 ? 5 : 2];  // mbarriers of the stages; of the chunks, and of the first window's low terms\n")
rep("  unsigned long long low;            // and of the first window's low term\n","  float ratio[IB];                   // TERMS = 2: the smallest pivot to trust\n")
cut("// Words of V's low term in its workspace.","DEVICE uint32_t* p_tile",'''// TERMS = 2: P and V's low terms lie by chunks of 16 tiles, 16 KB, the 8 x 8 tiles of a group one after the other: of P high and low
// terms of 4 groups, of V the low terms of 8, in v[1] and in the workspace. V's low terms of a window are formed over P's, and yet all
// 64 reflectors are the N of one product.
constexpr int CHUNKS = TILES / 16, CHUNK = 16384;
constexpr int P_GROUP = TERMS == 2 ? 2048 : 128, P_LOW = TERMS == 2 ? 4 * P_GROUP : TILES * 512;  // bytes
DEVICE int p_offset(int tile) { return TERMS == 2 ? (tile >> 4) * CHUNK + (tile & 15) * 128 : tile * 512; }
// Where a tile of V's low term is in its workspace.
DEVICE uint32_t* low_at(const Job& job, int tile, int group) {
  return job.v_lo + (size_t)job.k * TILES * GROUPS * 32 + (TERMS == 2 ? (p_offset(tile) + group * P_GROUP) / 4 : (tile * GROUPS + group) * 32);
}
''')
# chunks
cut("// TERMS == 2: blocks in place, high terms in v[0]","// A chunk of this block is not needed",'''// TERMS = 2: blocks in place, high terms in v[0], low ones in v[1], T in turn; by chunks of 16 tiles.
DEVICE void expect_chunk(Shared& s, int j, int chunk, bool high) {  // one thread
  const int tile = max(8 * j, 16 * chunk);
  barrier_expect(&s.full[chunk], CHUNK + (high ? (16 * chunk + 16 - tile) * 1024 : 0) + (chunk == j >> 1 ? T_OPERANDS * 512 : 0));
}
DEVICE void fetch_high_chunk(Shared& s, const Job& job, int j, int chunk) {
  const int tile = max(8 * j, 16 * chunk);
  bulk_load(&s.v[0][tile][0][0], job.v + (size_t)(j * TILES + tile) * GROUPS * 32, (16 * chunk + 16 - tile) * 1024, &s.full[chunk]);
  if (chunk == j >> 1) bulk_load(&s.t[j & 1][0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, &s.full[chunk]);
}
DEVICE void fetch_low_chunk(Shared& s, const Job& job, int j, int chunk) {
  bulk_load(&s.v[1][16 * chunk][0][0], job.v_lo + (size_t)(j * CHUNKS + chunk) * (CHUNK / 4), CHUNK, &s.full[chunk]);
}
''')
# mma.sync passes with low terms elsewhere
rep('''    const uint32_t tiles = shared_address(&s.v[stage ^ (pass >> 1)][me.wg][0][0]);
    if (TERMS == 1 && pass == 2) barrier_wait(&s.full[1 - stage], phase >> (1 - stage) & 1);
''','''    const uint32_t tiles = shared_address(&s.v[stage ^ (pass >> 1)][me.wg][0][0]);
    if (TERMS == 1 && pass == 2) barrier_wait(&s.full[1 - stage], phase >> (1 - stage) & 1);
''')
rep('''          load_matrix(b0, tiles + (4 * st) * 1024 + half * 512 + me.lane * 16);
          load_matrix(b1, tiles + (4 * st + 2) * 1024 + half * 512 + me.lane * 16);
''','''          if (TERMS == 2 && pass == 2) {
            if (inside && half != low.window) continue;
            const uint32_t at = low.lane(me) + half * low.other() + p_offset(4 * st);
            load_matrix(b0, at);
            load_matrix(b1, at + 256);
          } else {
            load_matrix(b0, tiles + (4 * st) * 1024 + half * 512 + me.lane * 16);
            load_matrix(b1, tiles + (4 * st + 2) * 1024 + half * 512 + me.lane * 16);
          }
''')
rep('''            load_matrix_transposed(b[u], tiles + (8 * quad + 2 * u) * 1024 + half * 512 + me.lane * 16);
          }
''','''            const uint32_t at = tiles + (8 * quad + 2 * u) * 1024 + half * 512 + me.lane * 16;
            load_matrix_transposed(b[u], TERMS == 2 && pass == 3 ? low.lane(me) + half * low.other() + p_offset(8 * quad + 2 * u) : at);
          }
''')
rep('''  for (int pass = FUSED ? 4 : two_w ? 0 : 1; pass < 2 * terms; pass += two_w ? 1 : 2) {  // low and high term of W' for each term of V
    const int low = 1 - (pass & 1);
''','''  for (int pass = FUSED ? 4 : two_w ? 0 : 1; pass < 2 * terms; pass += two_w && !(TERMS == 2 && pass == 1) ? 1 : 2) {  // low and high term of W' for each term of V
    const int term = 1 - (pass & 1);
''')
rep("x_change.operand[low][me.ws]","x_change.operand[term][me.ws]")
rep("struct LowTerms { uint32_t tiles; bool inside; int window; };\n",'''struct LowTerms {
  uint32_t tiles; bool inside; int window;
  DEVICE uint32_t other() const { return inside ? 0u : 4 * P_GROUP; }  // from the first 32 reflectors to the others
  DEVICE uint32_t lane(const Lane& me) const { return tiles + (me.lane >> 3) * P_GROUP + (me.lane & 7) * 16; }  // for ldmatrix
};
''')
rep("v_lo = tile_descriptor(low.tiles, P_GROUP), other = low.inside ? 0u : 4 * P_GROUP / 16;","v_lo = tile_descriptor(low.tiles, P_GROUP);")
rep("(st < 2 ? 0u : other);","(st < 2 ? 0u : low.other() / 16);")
cut('''#if !WARPGROUP_MMA
  if (TERMS == 2) {
#pragma unroll 1
    for (int i = 0; i < CHUNKS; i++) release''','#endif\n','''#if !WARPGROUP_MMA
  if constexpr (TERMS == 2) {
#pragma unroll 1
    for (int i = 0; i < CHUNKS; i++) release_chunk(s, job, next, i, me);
  }
#endif
''',True)
rep('''  // Passes: C's high term with''','''  if constexpr (TERMS == 2 && !WARPGROUP_MMA) {
#pragma unroll 1
    for (int i = inside ? CHUNKS : quad0 >> 1; i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
  }
  // Passes: C's high term with''')
# clear_done in shared memory
rep("    s.p[0][tile][group][word] &= keep;\n    s.p[1][tile][group][word] &= keep;\n","    p_tile(s, 0, tile, group)[word] &= keep;\n    p_tile(s, 1, tile, group)[word] &= keep;\n")
# gram
rep('''    if (TERMS == 2) s.ratio[me.lane] =''','''    if constexpr (TERMS == 2) s.ratio[me.lane] =''')
rep("// TERMS == 2: the first 32 rows of V's second","// TERMS = 2: the first 32 rows of V's second")
rep('''        const size_t at_low = low_at(job.k, tile, 4 * h + (j >> 3)) + (j & 7) * 4 + me.q;
        if (WHOLE || j >= done) {
          job.v_lo[at_low] = low;
        } else if (!low_before) {
          job.v_lo[at_low] = 0u;
        }
''','''        uint32_t* at_low = low_at(job, tile, 4 * h + (j >> 3)) + (j & 7) * 4 + me.q;
        if (WHOLE || j >= done) {
          *at_low = low;
        } else if (!low_before) {
          *at_low = 0u;
        }
''')
rep("  if (two) fence_global();\n","  if (TERMS == 1 && two) fence_global();\n")
rep('''// TERMS == 2: after such a pass, all of the window's low terms so far to where one pass leaves them.
NOINLINE void take_low_back(Shared& s, const Job& job, int h, int first, const Lane& me) {''','''// TERMS = 2: after such a pass, all of the window's low terms so far to where one pass leaves them.
NOINLINE void take_low_back(Shared& s, Job job, int h, int first, Lane me) {''')
rep("p_tile(s, 1, tile, group)[me.lane] = load_word(job.v_lo + low_at(job.k, tile, 4 * h + group) + me.lane);","p_tile(s, 1, tile, group)[me.lane] = load_word(low_at(job, tile, 4 * h + group) + me.lane);")
# larft
rep("barrier_wait(&s.low, low_phase);","barrier_wait(&s.full[CHUNKS], phase >> CHUNKS & 1);")
rep('''bool need_t, bool whole, uint32_t low_phase,
                     const Lane& me) {''','''bool need_t, bool whole, uint32_t phase,
                     const Lane& me) {''')
# main loop
rep("  uint32_t phase = 0, low_blocks = 0, low_phase = 0;\n","  uint32_t phase = 0, low_blocks = 0;\n")
rep('''    for (int i = 0; i < 4; i++) barrier_init(&s.full[i]);
    barrier_init(&s.panel);
    barrier_init(&s.low);
''','''    for (auto& full : s.full) barrier_init(&full);
    barrier_init(&s.panel);
''')
cut("        const int stage = inside || TERMS == 2 ? 0","      sync_all();\n      if (me.ws >> 1 == h) {",'''        const int stage = inside || TERMS == 2 ? 0 : j & 1;
        const int terms = TERMS == 2 ? 2 : 1 + (low_blocks >> j & 1);
        if (!inside) {
          if (TERMS == 1) {
            barrier_wait(&s.full[stage], phase >> stage & 1);
            phase ^= 1u << stage;
          }
          // the other stage is free: only its filler has to wait for the others
          if (j == 0) {
            sync_all();
            if (RARE(first_lane(s.largest_column) == 0u)) {  // a panel of zeros
              for (int i = 0; TERMS == 2 && i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
              if (zero_tail<EXACT>(job, me)) return;
            }
          } else if (TERMS == 1) {
            if (me.warp == WARPS - 1) {
              bar_sync(6, THREADS);
            } else {
              bar_arrive(6, THREADS);
            }
          }
          if (TERMS == 1 && me.tid == MOVER) {
            if (j == 0) bulk_store_read();       // T's stage is free
            if (j + 2 == k) bulk_store_wait();  // block k - 1 is in memory
            if (terms == 1 && j + 1 < k) prefetch_block(s, job, j + 1);
            if (terms == 2) fetch_low(s, job, 1 - stage, j);
          }
        }
        if (TERMS == 1 && inside && terms == 2 && me.tid == MOVER) fetch_low(s, job, 1, j);
        const float order = (float)job.n, error = V_ROUNDING * bits_float(s.largest_column);
        const float allowed = TWO_TERM_AT * 1.1920929e-7f * order * reciprocal_sqrt(order) * bits_float(s.largest_sum);
        // Where W and W' are rounded to one term beside C, all together must stay below the bound.
        const bool two_c = TERMS == 2 || again || error > allowed, two_w = TERMS == 2 || again || 2.f * error > allowed;
        const Part part = {again ? h : -1, h * IB + before, h * IB + done};
        const int next = !inside && j + 1 < k ? j + 1 : -1;
        apply_block(c, s, job, inside, next, stage, inside ? 1 : j & 1, j, terms, two_c, two_w, again ? h == 1 : h == 0, part, phase, me);
        if (TERMS == 2) {
          if (!inside) phase ^= 15u << (j >> 1) & 15u;
        } else {
          if (terms == 2) phase ^= 2u >> stage;
          if (!inside && terms == 2) {
            sync_all();
            if (j + 1 < k && me.tid == MOVER) prefetch_block(s, job, j + 1);
          }
        }
      }
      if (TERMS == 2 && h == 1 && me.tid == MOVER) bulk_store_read();  // the first window's low terms, where P's go
''')
cut("      if (h == 1) {  // the first window's low term to where P was","    if (h == 1 && whole && !last && me.tid == MOVER) {",'''      if (h == 1) {  // the first window's low terms to where P was
        bulk_store_wait();
        barrier_expect(&s.full[CHUNKS], (CHUNKS - (k >> 1)) * P_LOW);
#pragma unroll 1
        for (int i = k >> 1; i < CHUNKS; i++) bulk_load(p_tile(s, 0, 16 * i, 0), low_at(job, 16 * i, 0), P_LOW, &s.full[CHUNKS]);
      }
      if (whole) {
#pragma unroll 1
        for (int i = k >> 1; i < CHUNKS; i++) bulk_store(low_at(job, 16 * i, 4 * h), p_tile(s, 1, 16 * i, 0), P_LOW);
        bulk_store_commit();
      }
    }
''')
rep("!end, whole, low_phase, me);\n    if (h == 1 && !end) low_phase ^= 1u;\n","!end, whole, phase, me);\n    if (TERMS == 2 && h == 1 && !end) phase ^= 1u << CHUNKS;\n")
open('w1.py','w').write(t)
