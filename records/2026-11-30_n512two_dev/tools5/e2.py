# e2.py: w1.py -> w2.py (low terms of the first window come back tile by tile; next panel's first half asked for early), w3.py (+ low chunks 0, 1 early)
t=open('w1.py').read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
def cut(a,b,y,incl=False):
    global t
    assert t.count(a)==1,(t.count(a),a); i=t.index(a); j=t.index(b,i)+(len(b) if incl else 0); t=t[:i]+y+t[j:]
rep("DEVICE uint32_t load_word(const uint32_t* p)","DEVICE uint4 load_quad(const uint4* p) { return __ldcg(p); }\nDEVICE uint32_t load_word(const uint32_t* p)")
rep("full[TERMS == 2 ? 5 : 2];  // mbarriers of the stages; of the chunks, and of the first window's low terms\n","full[TERMS == 2 ? 4 : 2];  // mbarriers of the stages; TERMS = 2: of the chunks\n")
rep('''  if (WHOLE) clear_products(sums);
#pragma unroll 1
  for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
''','''  if (WHOLE) clear_products(sums);
  // TERMS = 2: the first window's low terms take the place of P's high ones on the way, for cross_products.
  const bool bring = TERMS == 2 && WHOLE && h == 1;
  const int unit = (me.lane >> 3) * (P_GROUP / 16) + (me.lane & 7);
#pragma unroll 1
  for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
    uint4 other;
    if (bring) other = load_quad((const uint4*)low_at(job, tile, 0) + unit);
''')
rep('''      store_matrix(low_to + p_offset(tile), low);
''','''      store_matrix(low_to + p_offset(tile), low);
      if (bring) ((uint4*)p_tile(s, 0, tile, 0))[unit] = other;
''')
rep('''// TERMS = 2: after such a pass, all of the window's low terms so far to where one pass leaves them.
''','''// TERMS = 2: after such a pass, all of the window's low terms so far to where one pass leaves them, and those of the first window.
''')
rep('''    p_tile(s, 1, tile, group)[me.lane] = load_word(low_at(job, tile, 4 * h + group) + me.lane);
''','''    p_tile(s, 1, tile, group)[me.lane] = load_word(low_at(job, tile, 4 * h + group) + me.lane);
    if (h == 1) p_tile(s, 0, tile, group)[me.lane] = load_word(low_at(job, tile, group) + me.lane);
''')
rep('''bool need_t, bool whole, uint32_t phase,
                     const Lane& me) {''','''bool need_t, bool whole, const Lane& me) {''')
rep('''  if (TERMS == 1 && h == 1 && need_t) cross_products(s, job, first, sc.tri.n12t, me);
''','''  if (h == 1 && need_t) cross_products(s, job, first, sc.tri.n12t, me);
  if (TERMS == 2 && EXACT && h == 1 && need_t && whole) {  // the low terms have been read
    fence_async();
    if (me.warp == WARPS - 1) {
      bar_sync(6, THREADS);
      if (me.tid == MOVER) {
        bulk_store_read();
        fetch_half(s, job, job.k + 1, 0, s.half);
      }
    } else {
      bar_arrive(6, THREADS);
    }
  }
''')
cut('''  if (TERMS == 2 && h == 1 && need_t) {
    barrier_wait(''','''  sync_all();
''','')
cut('''  if (h == 1 && need_t && whole && (TERMS == 2 || job.k > 0) &&''','''  if (need_t) invert_diagonal''','''  if (h == 1 && need_t && whole && job.k > 0 && me.tid == MOVER) {  // V's stage is free once it has been read
    bulk_store_read();
    prefetch_block(s, job, 0);
  }
''')
rep("      if (TERMS == 2 && h == 1 && me.tid == MOVER) bulk_store_read();  // the first window's low terms, where P's go\n",
    "      if (TERMS == 2 && h == 1 && me.tid == MOVER) bulk_store_wait();  // the first window's low terms: P's take their place\n")
cut("    if (TERMS == 2 && me.tid == MOVER && !(h == 1 && whole && last)) {","    if (h == 1 && whole && !last && me.tid == MOVER) {",'''    if (TERMS == 2 && whole && !(h == 1 && last) && me.tid == MOVER) {
#pragma unroll 1
      for (int i = k >> 1; i < CHUNKS; i++) bulk_store(low_at(job, 16 * i, 4 * h), p_tile(s, 1, 16 * i, 0), P_LOW);
      bulk_store_commit();
    }
''')
rep("!end, whole, phase, me);\n    if (TERMS == 2 && h == 1 && !end) phase ^= 1u << CHUNKS;\n","!end, whole, me);\n")
open('w2.py','w').write(t)
rep('''  if (TERMS == 2) {  // the low terms come later
#pragma unroll 1
    for (int i = 0; i < CHUNKS; i++) {
      expect_chunk(s, j, i, true);
      fetch_high_chunk(s, job, j, i);
    }
    return;
  }
''','''  if (TERMS == 2) {  // the low terms of the other chunks come later
#pragma unroll 1
    for (int i = 0; i < CHUNKS; i++) {
      expect_chunk(s, j, i, true);
      fetch_high_chunk(s, job, j, i);
      if (i < FREE_CHUNKS) fetch_low_chunk(s, job, j, i);
    }
    return;
  }
''')
rep('''      for (int i = 0; TERMS == 2 && i < CHUNKS; i++) fetch_low_chunk(s, job, 0, i);
''','''      for (int i = k == 0 ? 0 : FREE_CHUNKS; TERMS == 2 && i < CHUNKS; i++) fetch_low_chunk(s, job, 0, i);
''')
rep('''constexpr int CHUNKS = TILES / 16, CHUNK = 16384;
''','''constexpr int CHUNKS = TILES / 16, CHUNK = 16384, FREE_CHUNKS = 2;  // those under Scratch's sums, which are free before its matrices
static_assert(sizeof(Scratch::partial) >= FREE_CHUNKS * CHUNK, "");
''')
open('w3.py','w').write(t)
