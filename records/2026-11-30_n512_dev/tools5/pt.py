# trace
def tr(b):
    new='recurrence_cholesky' in b.b
    b.rep('struct Lane { int tid','''__device__ uint32_t trace_words[8][2560];
#define TICK(w, id) if (me.lane == 0) { uint32_t t_; asm volatile("mov.u32 %0, %%clock;" : "=r"(t_) :: "memory"); trace_words[me.warp][(w) * 128 + (id)] = t_; }
struct Lane { int tid''')
    b.rep('Part part, uint32_t phase, const Lane& me) {','Part part, uint32_t phase, int slot, const Lane& me) {')
    b.rep('part, phase, me);','part, phase, (step + 1) * 128 + 40 + 8 * (inside ? 7 : j), me);')
    b.rep('''  // The two halves of W meet. Where''','''  TICK(0, slot + 2);
  // The two halves of W meet. Where''')
    if 'apply_t_again' in b.b:
        b.rep('''#pragma unroll
    for (int u = 0; u < 4; u++) {
      uint2 y = {0u, 0u};''','''    TICK(0, slot + 4);
#pragma unroll
    for (int u = 0; u < 4; u++) {
      uint2 y = {0u, 0u};''')
    elif 'apply_t_two_terms' in b.b:
        b.rep("""    apply_t(d, rest, sum, s.t[t_stage], me);
""","""    apply_t(d, rest, sum, s.t[t_stage], me);
    TICK(0, slot + 4);
""")
    else:
        b.rep("""#pragma unroll
  for (int pair = 0; pair < 2; pair++) {  // reflectors 0""","""  TICK(0, slot + 4);
#pragma unroll
  for (int pair = 0; pair < 2; pair++) {  // reflectors 0""")
    b.rep('''  bar_sync(1 + me.ws, 64);
  // C^T -= W'^T V^T''','''  TICK(0, slot + 3);
  bar_sync(1 + me.ws, 64);
  TICK(0, slot + 5);
  // C^T -= W'^T V^T''')
    b.rep('''        if (terms == 2) phase ^= 2u >> stage;
''','''        TICK(step + 1, 46 + 8 * (inside ? 7 : j));
        if (terms == 2) phase ^= 2u >> stage;
''')
    b.rep('''        if (!inside) {
          barrier_wait(&s.full[stage]''','''        TICK(step + 1, 40 + 8 * (inside ? 7 : j));
        if (!inside) {
          barrier_wait(&s.full[stage]''')
    b.rep('''        const float order = (float)job.n, error''','''        TICK(step + 1, 41 + 8 * (inside ? 7 : j));
        const float order = (float)job.n, error''')
    b.rep('''      sync_all();
      if (me.ws >> 1 == h) {
        stage_window(c, s, first, me);''','''      TICK(step + 1, 1);
      sync_all();
      TICK(step + 1, 2);
      if (me.ws >> 1 == h) {
        stage_window(c, s, first, me);''')
    b.rep('''    bool end = false, whole = true;
''','''    TICK(step + 1, 3);
    bool end = false, whole = true;
''')
    b.rep('''    const bool low_before = low_blocks >> k & 1;
''','''    TICK(step + 1, 4);
    const bool low_before = low_blocks >> k & 1;
''')
    if new:
        b.rep('DEVICE Norm gram(Shared& s, int first, const Lane& me) {','DEVICE Norm gram(Shared& s, int first, const Lane& me, int w) {')
        b.rep('gram(s, first, me);','gram(s, first, me, step + 1);')
        b.rep('''  store_products(sc.partial[me.warp], sums, me.lane);
  sync_all();
''','''  TICK(w, 5);
  store_products(sc.partial[me.warp], sums, me.lane);
  sync_all();
  TICK(w, 6);
''')
        b.rep('''    recurrence(s, job, h, first, done, norm, me);
    sync_all();
''','''    TICK(step + 1, 7);
    recurrence(s, job, h, first, done, norm, me);
    TICK(step + 1, 20);
    sync_all();
    TICK(step + 1, 21);
''')
        b.rep('''DEVICE void recurrence_cholesky(Window& win, int lane) {''','''DEVICE void recurrence_cholesky(Window& win, int lane, int w, const Lane& me) {''')
        b.rep('recurrence_cholesky(win, lane);','recurrence_cholesky(win, lane, job.k * 2 + h + 1, me);')
        b.rep('''g[1][1], g[2][2], g[3][3]);
    sync_all();''','''g[1][1], g[2][2], g[3][3]);
    TICK(w, 8 + o / 4);
    sync_all();''')
        rec_roles(b)
        b.rep('''DEVICE void recurrence_rest(Window& win, int warp, int lane) {''','''DEVICE void recurrence_rest(Window& win, int warp, int lane, int slot, const Lane& me) {''')
        b.rep('recurrence_rest(win, me.warp - %s, lane);'%('3' if 'recurrence_rows' in b.b else '4'),'recurrence_rest(win, me.warp - %s, lane, job.k * 2 + h + 1, me);'%('3' if 'recurrence_rows' in b.b else '4'))
        b.rep('''  for (int t = 1; t < IB / 4; t++) {
    sync_all();
''','''  for (int t = 1; t < IB / 4; t++) {
    TICK(slot, 7 + t);
    sync_all();
''')
    else:
        b.rep('''  Scratch& sc = scratch(s);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float(&y)[4]''','''  TICK(job.k * 2 + h + 1, 5);
  Scratch& sc = scratch(s);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float(&y)[4]''')
        b.rep('''  sync_all();
  {
    const float4 y = sum_partials(sc.partial, me.warp, me.lane);
    const int row = (me.warp >> 2)''','''  sync_all();
  TICK(job.k * 2 + h + 1, 6);
  {
    const float4 y = sum_partials(sc.partial, me.warp, me.lane);
    const int row = (me.warp >> 2)''')
        b.rep('''    if (s.two_terms) low_blocks |= 1u << k;
    clear_second''','''    TICK(step + 1, 7);
    if (s.two_terms) low_blocks |= 1u << k;
    clear_second''')
        b.rep('''    recurrence(s, me);
    sync_all();
''','''    recurrence(s, me, step + 1);
    TICK(step + 1, 20);
    sync_all();
    TICK(step + 1, 21);
''')
        b.rep('DEVICE void recurrence(Shared& s, const Lane& me) {','DEVICE void recurrence(Shared& s, const Lane& me, int w) {')
        b.rep('DEVICE void recurrence_role(Window& win, int lane) {','DEVICE void recurrence_role(Window& win, int lane, int w, const Lane& me) {')
        for r in (0,1,2): b.rep('recurrence_role<%d>(win, lane);'%r,'recurrence_role<%d>(win, lane, w, me);'%r)
        b.rep('''    if (o == IB - 4) break;
    sync_all();''','''    TICK(w, 8 + o / 4);
    if (o == IB - 4) break;
    sync_all();''')
        b.rep('DEVICE void recurrence_rest(Window& win, int warp, int lane) {','DEVICE void recurrence_rest(Window& win, int warp, int lane, int w, const Lane& me) {')
        b.rep('recurrence_rest(win, me.warp - 3, lane);','recurrence_rest(win, me.warp - 3, lane, w, me);')
        b.rep('''      }
    }
    sync_all();
  }
}

DEVICE void recurrence(''','''      }
    }
    TICK(w, 8 + o / 4);
    sync_all();
  }
}

DEVICE void recurrence(''')
    b.rep('''    whole = good == IB;
    if (h == 1) fence_async();
    sync_all();
''','''    whole = good == IB;
    TICK(step + 1, 22);
    if (h == 1) fence_async();
    sync_all();
    TICK(step + 1, 23);
''')
    if 'n21' in b.b:
        b.rep("""  if (me.warp < 6) {
    const int i = me.warp < 4 ? me.warp : me.warp - 2;
    const int row = 16 * (me.warp >> 2) + 2""","""  TICK(job.k * 2 + h + 1, 24);
  if (me.warp < 6) {
    const int i = me.warp < 4 ? me.warp : me.warp - 2;
    const int row = 16 * (me.warp >> 2) + 2""")
        b.rep("""  sync_all();
  if (!need_t) return;""","""  TICK(job.k * 2 + h + 1, 25);
  sync_all();
  TICK(job.k * 2 + h + 1, 26);
  if (!need_t) return;""")
        b.rep("""    store_t(s, h, me);
""","""    TICK(step + 1, 32);
    store_t(s, h, me);
    TICK(step + 1, 33);
""")
    else: old_t(b)
    b.rep('''    if (end) break;
    const bool next''','''    TICK(step + 1, 27);
    if (end) break;
    const bool next''')
    b.rep('''      barrier_wait(&s.panel, 0);
''','''      barrier_wait(&s.panel, 0);
      TICK(step + 1, 28);
''')
    b.rep('''    sync_all();
    if (next && EXACT && me.tid == MOVER) fetch_half''','''    TICK(step + 1, 29);
    sync_all();
    TICK(step + 1, 30);
    if (next && EXACT && me.tid == MOVER) fetch_half''')
    b.rep('''    fence_async();
    sync_all();
    if (h == 1 && whole && me.tid == MOVER) {
      bulk_store(job.v''','''    fence_async();
    sync_all();
    TICK(step + 1, 34);
    if (h == 1 && whole && me.tid == MOVER) {
      bulk_store(job.v''')
    b.rep('''        barrier_wait(&s.panel, 1);
        read_half<1>(c, s.half, me);
      }
      scale_panel(c, s, me);
''','''        barrier_wait(&s.panel, 1);
        TICK(step + 1, 35);
        read_half<1>(c, s.half, me);
      }
      TICK(step + 1, 36);
      scale_panel(c, s, me);
      TICK(step + 1, 37);
''')
    b.rep('''    const int k = step >> 1, h = step & 1;
    const int first''','''    const int k = step >> 1, h = step & 1;
    TICK(step + 1, 0);
    const int first''')
    b.b+='''
extern "C" int trace_read(void* to) { return (int)cudaMemcpyFromSymbol(to, n512::trace_words, sizeof(n512::trace_words)); }
'''
def tr2(b):
    tr(b)
    b.rep('''#pragma unroll 1
  for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
    const int row = (tile - first) * TILE + 2 * me.q;''','''#pragma unroll 1
  for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
    if (WHOLE) TICK(job.k * 2 + h + 1, 104 + ((tile - first) >> 3));
    const int row = (tile - first) * TILE + 2 * me.q;''')

def rec_roles(b):
    if 'recurrence_rows' in b.b:
        for n in ('rows','columns'):
            b.rep('DEVICE void recurrence_%s(Window& win, int lane) {'%n,'DEVICE void recurrence_%s(Window& win, int lane, int slot, const Lane& me) {'%n)
            b.rep('recurrence_%s(win, lane);'%n,'recurrence_%s(win, lane, job.k * 2 + h + 1, me);'%n)
        b.rep("""  for (int o = 0; o < IB; o += 4) {
    sync_all();
    float4 v[4]""","""  for (int o = 0; o < IB; o += 4) {
    TICK(slot, 8 + o / 4);
    sync_all();
    float4 v[4]""",2)
    else:
        b.rep('''DEVICE void recurrence_role(Window& win, int lane) {''','''DEVICE void recurrence_role(Window& win, int lane, int slot, const Lane& me) {''')
        for r in (0,1,2): b.rep('recurrence_role<%d>(win, lane);'%r,'recurrence_role<%d>(win, lane, job.k * 2 + h + 1, me);'%r)
        b.rep('''    sync_all();
    float4 v[4], w[4]; ''','''    TICK(slot, 8 + o / 4);
    sync_all();
    float4 v[4], w[4]; ''')
