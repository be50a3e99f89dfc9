def apply(B):
    rep=B.rep
    rep('''    if (me.q == 0 && x > 0.f) {''','''    if (me.q == 0 && x != 0.f) {''')
    rep('''  while (true) {
    const int k = step >> 1, h = step & 1;
''','''  while (true) {
    const int k = step >> 1, h = step & 1;
    if (h == 0 && done == 0) {
      sync_all();
      if (RARE(first_lane(s.largest_column) == 0u)) {  // a panel of zeros
        job.k = k;
        if (zero_tail<EXACT>(s, job, phase, me)) break;
      }
    }
''')
    rep('''          if (j == 0) {
            sync_all();
          } else if (me.warp == WARPS - 1) {
            bar_sync(6, THREADS);
          } else {
            bar_arrive(6, THREADS);
          }''','''          if (j > 0) {
            if (me.warp == WARPS - 1) {
              bar_sync(6, THREADS);
            } else {
              bar_arrive(6, THREADS);
            }
          }''')
    rep('''// ---------------------------------------------------------------- geqrf
''','''// ---------------------------------------------------------------- geqrf

// A panel of zeros: if all columns from here on are zero, so are their R, V and tau, exactly, and the matrix is done.
template <bool EXACT>
NOINLINE bool zero_tail(Shared& s, const Job& job, uint32_t phase, const Lane& me) {
  uint32_t x = 0u;
#pragma unroll 4
  for (int row = me.warp; row < job.n; row += WARPS) {
    for (int col = (job.k + 1) * NB + me.lane; col < job.n; col += 32) {
      x |= float_bits(load_once(job.a + (size_t)row * job.n + col)) << 1;
    }
  }
  if (any_thread(x != 0u)) return false;
  if (job.k > 0) barrier_wait(&s.full[0], phase & 1);  // no copy may outlive the block
  if (me.tid == MOVER) bulk_store_wait();
#pragma unroll 1
  for (int row = me.warp; row < job.n; row += WARPS) {
    for (int col = job.k * NB + 2 * me.lane; col < job.n; col += 64) store_pair<EXACT>(job, row, col, 0.f, 0.f);
  }
  for (int col = job.k * NB + me.tid; col < job.n; col += THREADS) job.tau[col] = 0.f;
  return true;
}
''')
