b=open('body98.cuh').read()
def rep(x,y,n=1):
    global b
    assert b.count(x)==n,(b.count(x),x)
    b=b.replace(x,y)
# zero panels
rep('''    if (me.q == 0 && x > 0.f) {''','''    if (me.q == 0 && x != 0.f) {''')
rep('''  while (true) {
    const int k = step >> 1, h = step & 1;
''','''  while (true) {
    bool idle = step < 0;  // only load the next panel
    if (!(step & 1) && done == 0) {
      sync_all();
      if (first_lane(s.largest_column) == 0u) {  // a panel of zeros
        job.k = step >> 1;
        zero_panel<EXACT>(s, job, me);
        if (job.k + 1 == job.panels) break;
        idle = true;
        step++;
      }
    }
    const int k = step >> 1, h = step & 1;
''')
rep('''    if (step >= 0) {
//@TICK(0)
#pragma unroll 1
      for (int j''','''    if (!idle) {
//@TICK(0)
#pragma unroll 1
      for (int j''')
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
rep('''    if (step < 0) {
      sync_all();
      if (EXACT && me.tid == MOVER) fetch_half(s, job, 0, 0, s.half);
    } else {''','''    if (idle) {
      fence_async();
      sync_all();
      if (EXACT && me.tid == MOVER) fetch_half(s, job, k + 1, 0, s.half);
      if (k == 0 && me.tid == MOVER) prefetch_block(s, job, 0);
    } else {''')
rep('''    if (step >= 0) {
    invert_window''','''    if (!idle) {
    invert_window''')
rep('''// ---------------------------------------------------------------- geqrf
''','''// ---------------------------------------------------------------- geqrf

// A panel of zeros: R, V, tau and T are zero, exactly. V_0 and T_0 stay where the next panel wants them.
template <bool EXACT>
NOINLINE void zero_panel(Shared& s, const Job& job, const Lane& me) {
#pragma unroll 4
  for (int row = me.warp; row < job.n; row += WARPS) store_pair<EXACT>(job, row, job.k * NB + 2 * me.lane, 0.f, 0.f);
  if (me.tid < NB && job.k * NB + me.tid < job.n) job.tau[job.k * NB + me.tid] = 0.f;
  if (job.k + 1 < job.panels) {
    const uint4 zero = {0u, 0u, 0u, 0u};
    uint4* v = reinterpret_cast<uint4*>(job.v + (size_t)job.k * TILES * GROUPS * 32);
    uint4* t = reinterpret_cast<uint4*>(job.t + (size_t)job.k * T_OPERANDS * 128);
    for (int i = 8 * job.k * 64 + me.tid; i < TILES * 64; i += THREADS) v[i] = zero;
    for (int i = me.tid; i < T_OPERANDS * 32; i += THREADS) t[i] = zero;
    fence_all();
  }
}
''')
open('body110.cuh','w').write(b)
