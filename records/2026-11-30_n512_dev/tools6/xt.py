# trace (from pt.py): clock stamps of every warp at 40 places of a window and 7 of an apply
def tr(b):
    b.rep('struct Lane { int tid','''__device__ uint32_t trace_words[8][2560];
#define TICK(w, id) if (me.lane == 0) { uint32_t t_; asm volatile("mov.u32 %0, %%clock;" : "=r"(t_) :: "memory"); trace_words[me.warp][(w) * 128 + (id)] = t_; }
struct Lane { int tid''')
    b.rep('bool two_c, bool two_w, bool full, Part part, uint32_t phase, const Lane& me) {','bool two_c, bool two_w, bool full, Part part, uint32_t phase, int slot, const Lane& me) {')
    b.rep('part, phase, me);\n','part, phase, (step + 1) * 128 + 40 + 8 * (inside ? 7 : j), me);\n')
    b.rep('''  // The two halves of W meet. Where''','''  TICK(0, slot + 2);
  // The two halves of W meet. Where''')
    x="  for (int pair = 0; pair < 2; pair++) {"
    b.rep("#pragma unroll\n"+x,"  TICK(0, slot + 4);\n#pragma unroll\n"+x)
    b.rep('''  bar_sync(1 + me.ws, 64);
  // C^T -= W'^T V^T''','''  TICK(0, slot + 3);
  bar_sync(1 + me.ws, 64);
  TICK(0, slot + 5);
  // C^T -= W'^T V^T''')
    b.rep('''        if (FP32_CLASS) {
          if (!inside) phase ^= 15u''','''        TICK(step + 1, 46 + 8 * (inside ? 7 : j));
        if (FP32_CLASS) {
          if (!inside) phase ^= 15u''')
    b.rep('''        if (!inside) {
          if (!FP32_CLASS) {
            barrier_wait''','''        TICK(step + 1, 40 + 8 * (inside ? 7 : j));
        if (!inside) {
          if (!FP32_CLASS) {
            barrier_wait''')
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
    b.rep('''    whole = good == IB;
''','''    TICK(step + 1, 22);
    whole = good == IB;
''')
    b.rep('''    if (FP32_CLASS && me.tid == MOVER && !(h == 1 && whole && last)) {''','''    TICK(step + 1, 23);
    if (FP32_CLASS && me.tid == MOVER && !(h == 1 && whole && last)) {''')
    b.rep("""  if (me.warp < 6) {
    const int i = me.warp < 4 ? me.warp : me.warp - 2;
    const int row = 16 * (me.warp >> 2) + 2""","""  TICK(job.k * 2 + h + 1, 24);
  if (me.warp < 6) {
    const int i = me.warp < 4 ? me.warp : me.warp - 2;
    const int row = 16 * (me.warp >> 2) + 2""")
    b.rep("""  sync_all();
  // Apart from the roles""","""  TICK(job.k * 2 + h + 1, 25);
  sync_all();
  TICK(job.k * 2 + h + 1, 26);
  // Apart from the roles""")
    b.rep("""    store_t(s, h, me);
""","""    TICK(step + 1, 32);
    store_t(s, h, me);
    TICK(step + 1, 33);
""")
    b.rep('''    if (end) break;
    const bool next''','''    TICK(step + 1, 27);
    if (end) break;
    const bool next''')
    b.rep('''      barrier_wait(&s.panel[0], (k + 1) & 1);
''','''      barrier_wait(&s.panel[0], (k + 1) & 1);
      TICK(step + 1, 28);
''')
    b.rep('''    sync_all();
    if (next && !EXACT)''','''    TICK(step + 1, 29);
    sync_all();
    TICK(step + 1, 30);
    if (next && !EXACT)''')
    b.rep('''    fence_async();
    sync_all();
    if (h == 1 && whole && me.tid == MOVER) {
      bulk_store(job.t''','''    fence_async();
    sync_all();
    TICK(step + 1, 34);
    if (h == 1 && whole && me.tid == MOVER) {
      bulk_store(job.t''')
    b.rep('''        barrier_wait(&s.panel[1], (k + 1) & 1);
''','''        barrier_wait(&s.panel[1], (k + 1) & 1);
        TICK(step + 1, 35);
''')
    b.rep('''      scale_panel(c, s, me);
''','''      TICK(step + 1, 36);
      scale_panel(c, s, me);
      TICK(step + 1, 37);
''')
    b.rep('''    const int k = step >> 1, h = step & 1;
''','''    const int k = step >> 1, h = step & 1;
    TICK(step + 1, 0);
''')
    b.rep('''#pragma unroll 1
  for (int tile = own; tile < TILES; tile += WARPS) {
    const int row = (tile - first) * TILE + 2 * me.q;''','''#pragma unroll 1
  for (int tile = own; tile < TILES; tile += WARPS) {
    if (WHOLE) TICK(job.k * 2 + h + 1, 104 + ((tile - first) >> 3));
    const int row = (tile - first) * TILE + 2 * me.q;''')
    b.rep('''g[1][1], g[2][2], g[3][3]);
    sync_all();''','''g[1][1], g[2][2], g[3][3]);
    TICK(w, 8 + o / 4);
    sync_all();''')
    b.rep('''DEVICE void recurrence_cholesky(Window& win, int lane) {''','''DEVICE void recurrence_cholesky(Window& win, int lane, int w, const Lane& me) {''')
    b.rep('recurrence_cholesky(win, lane);','recurrence_cholesky(win, lane, job.k * 2 + h + 1, me);')
    for n,a in (('rows',''),('columns','Shared& s, ')):
        b.rep('DEVICE void recurrence_%s(%sWindow& win, int lane) {'%(n,a),'DEVICE void recurrence_%s(%sWindow& win, int lane, int slot, const Lane& me) {'%(n,a))
    b.rep('recurrence_rows(win, lane);','recurrence_rows(win, lane, job.k * 2 + h + 1, me);')
    b.rep('recurrence_columns(s, win, lane);','recurrence_columns(s, win, lane, job.k * 2 + h + 1, me);')
    b.rep("""  for (int o = 0; o < IB; o += 4) {
    sync_all();
    float4 v[4]""","""  for (int o = 0; o < IB; o += 4) {
    TICK(slot, 8 + o / 4);
    sync_all();
    float4 v[4]""",2)
    b.rep('DEVICE void recurrence_rest(Window& win, int warp, int lane) {','DEVICE void recurrence_rest(Window& win, int warp, int lane, int slot, const Lane& me) {')
    b.rep('recurrence_rest(win, me.warp - 3, lane);','recurrence_rest(win, me.warp - 3, lane, job.k * 2 + h + 1, me);')
    b.rep('''  for (int t = 1; t < IB / 4; t++) {
    sync_all();''','''  for (int t = 1; t < IB / 4; t++) {
    TICK(slot, 7 + t);
    sync_all();''')
    b.b+='''
extern "C" int trace_read(void* to) { return (int)cudaMemcpyFromSymbol(to, n512::trace_words, sizeof(n512::trace_words)); }
extern "C" int trace_launch(const void* a, void* h, void* tau, void* v, void* v_lo, void* t, int batch, int n) { return n512::launch(a, h, tau, v, v_lo, t, batch, n); }
'''
