def apply(B):
    rep=B.rep
    rep('''  bar_sync(1 + me.ws, 64);
  float scale[2], square''','''  // The pieces of 32 rows that are not all zero: nearly always all of them.
  auto some = [&](int piece) {
    uint32_t x = 0u;
#pragma unroll
    for (int z = 0; z < 8; z++) x |= float_bits(c[2 * piece + (z >> 2)][z & 3]);
    return ballot(x << 1 != 0u) != 0u;
  };
  uint32_t live = (1u << PIECES) - 1;
  if (!some(0) || !some(PIECES - 1)) {
    live = 0u;
#pragma unroll
    for (int piece = 0; piece < PIECES; piece++) live |= some(piece) ? 1u << piece : 0u;
  }
  if (me.lane == 0) atomic_or(&s.live, live);
  bar_sync(1 + me.ws, 64);
  float scale[2], square''')
    rep('''constexpr int BOX = 128;''','''constexpr int PIECES = ROWS / 32;
constexpr int BOX = 128;''')
    rep('''  uint32_t largest_sum; ''','''  uint32_t live;                     // pieces of this panel that are not all zero, as loaded
  int end[ROWS / NB];                // of each block: V is zero from this piece on
  uint32_t largest_sum; ''')
    rep('''    s.largest_sum = 0u;
''','''    s.largest_sum = 0u;
    s.live = 0u;
''')
    rep('''      s.largest_column = 0u;
      bulk_store''','''      s.largest_column = 0u;
      s.live = 0u;
      bulk_store''')
    rep('''      if (first_lane(s.largest_column) == 0u) {  // a panel of zeros
        job.k = step >> 1;
''','''      const uint32_t live = first_lane(s.live);
      job.k = step >> 1;
      if (live != (1u << PIECES) - 1) from = skip_blocks(s, job, live, phase, me);
      else if (me.tid == MOVER) s.end[job.k] = PIECES;
      if (live == 0u) {  // a panel of zeros
''')
    rep('''    bool idle = step < 0;  // only load the next panel
''','''    bool idle = step < 0;  // only load the next panel
    int from = 0;
''')
    rep('''for (int j = inside ? k : 0; j < k + inside; j++) {''','''for (int j = inside ? k : from; j < k + inside; j++) {''')
    rep('''          if (j > 0) {
            if (me.warp == WARPS - 1) {''','''          if (j > from) {
            if (me.warp == WARPS - 1) {''')
    rep('''            if (j == 0) bulk_store_read();''','''            if (j == from) bulk_store_read();''')
    rep('''// A panel of zeros: R, V''','''// Rows of zeros (a band, say). The first blocks change nothing where they end above the panel's first row that is not zero: the
// number of them. And where the panel's own block will end. Exact, and rare.
NOINLINE int skip_blocks(Shared& s, const Job& job, uint32_t live, uint32_t& phase, const Lane& me) {
  int from = 0, end = 0;
  while (end < PIECES && live >> end != 0u) end++;
  if (live != 0u) {
    const int start = lowest_bit(live);
    while (from < job.k && s.end[from] <= start) from++;
    if (from > 0) {  // V_0 has come or will come for nothing
      barrier_wait(&s.full[0], phase & 1);
      phase ^= 1u;
      if (me.tid == MOVER && from < job.k) {
        bulk_store_read();
        if (from + 1 == job.k) bulk_store_wait();
        prefetch_block(s, job, from);
      }
    }
    for (int j = from; j < job.k; j++) end = end > s.end[j] ? end : s.end[j];
    end = end > 2 * job.k + 2 ? end : 2 * job.k + 2;
  }
  if (me.tid == MOVER) s.end[job.k] = end;
  return from;
}

// A panel of zeros: R, V''')
