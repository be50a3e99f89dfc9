# patch "pers": a CTA an SM takes one unit (panels of a matrix) after the other; the next unit's first panel comes as a next panel does
def pers(b):
    b.rep('''DEVICE uint32_t first_lane(''','''DEVICE unsigned long long load_state(const unsigned long long* p) {
  unsigned long long x;
  asm volatile("ld.acquire.gpu.u64 %0,[%1];" : "=l"(x) : "l"(p) : "memory");
  return x;
}
DEVICE void store_state(unsigned long long* p, unsigned long long x) { asm volatile("st.release.gpu.u64 [%0],%1;" ::"l"(p), "l"(x) : "memory"); }
DEVICE int take_number(int* p) { return atomicAdd(p, 1); }
DEVICE void short_sleep() { __nanosleep(200); }
DEVICE uint32_t first_lane(''')
    b.rep('''struct Window {            // scratch''','''// The batch in equal shares: matrix i < cuts is done in two parts, panels 0 .. at[i] - 1 and the rest. The first parts are the first
// units of work, the second parts the last ones.
constexpr int MAX_CUTS = 512;
struct Plan { int cuts, units, ctas; unsigned char at[MAX_CUTS]; };
struct Unit { int matrix, panel, end; };  // panels panel .. end - 1 of a matrix
// What a first part leaves for the second one: zero until then, and again afterwards.
__device__ unsigned long long handed_on[MAX_CUTS];
__device__ int numbers;  // given out so far
constexpr unsigned long long PART_DONE = 1ull << 32;  // beside the flags of low blocks; below them largest_sum
struct Window {            // scratch''')
    b.rep('''struct Job {
  const float* a; float* h; float* tau; uint32_t* v; uint32_t* v_lo; uint32_t* t; int n; int panels; int k; uint32_t flags;
  const TensorMap* map; int row;
};''','''struct Job {
  const float* a; float* h; float* tau; uint32_t* v; uint32_t* v_lo; uint32_t* t; int n; int panels; int k; int matrix, end;
  const TensorMap* map; const Plan* plan;
};
struct Args { const float* a; float* h; float* tau; uint32_t* v; uint32_t* v_lo; uint32_t* t; };''')
    b.rep('''  int trip;                          //''','''  Unit next;                         // what the panel after this one belongs to; matrix < 0: nothing
  int trip;                          //''')
    # load
    b.rep('''DEVICE void load_panel(Panel& c, const Job& job, int k, const Lane& me) {
  const int col''','''DEVICE void load_panel(Panel& c, const Job& job, const float* a, int k, const Lane& me) {
  const int col''')
    b.rep('''load_once(job.a + (size_t)row * job.n + col) : 0.f;''','''load_once(a + (size_t)row * job.n + col) : 0.f;''')
    b.rep('''load_once(job.a + (size_t)row * job.n + col + 1) : 0.f;''','''load_once(a + (size_t)row * job.n + col + 1) : 0.f;''')
    b.rep('''DEVICE void fetch_boxes(Shared& s, const Job& job, int k, int half, int from, int end) {  // one thread
''','''DEVICE void fetch_boxes(Shared& s, const Job& job, int half, int from, int end) {  // of the next panel; one thread
  const int k = s.next.panel, row = s.next.matrix * job.n;
''')
    b.rep('''job.map, k * NB + (i & 1) * IB, job.row + (2 * half''','''job.map, k * NB + (i & 1) * IB, row + (2 * half''')
    b.rep('''DEVICE void fetch_half(Shared& s, const Job& job, int k, int half) {''','''DEVICE void fetch_half(Shared& s, const Job& job, int half) {''')
    b.rep('''  fetch_boxes(s, job, k, half, 0, 4);''','''  fetch_boxes(s, job, half, 0, 4);''')
    b.rep('''DEVICE void prefetch_panel(const Job& job, int k, const Lane& me) {
  if (EXACT) {''','''DEVICE void prefetch_panel(const Shared& s, const Job& job, const float* a, const Lane& me) {
  const int k = s.next.panel, first = s.next.matrix * job.n;
  if (EXACT) {''')
    b.rep('''job.map, k * NB + (i & 1) * IB, job.row + (i >> 1) * BOX);''','''job.map, k * NB + (i & 1) * IB, first + (i >> 1) * BOX);''')
    b.rep('''if (col < job.n) prefetch_line(job.a + (size_t)(i >> 1) * job.n + col);''','''if (col < job.n) prefetch_line(a + (size_t)(first + (i >> 1)) * job.n + col);''')
    # window_t
    b.rep('''DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool whole, uint32_t''','''DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool fetch, uint32_t''')
    b.rep('''  if (EXACT && h == 1 && need_t && whole && me.tid == MOVER) {''','''  if (EXACT && h == 1 && fetch && me.tid == MOVER) {''')
    b.rep('''    if (FP32_CLASS) fetch_boxes(s, job, job.k + 1, 0, job.k >> 1, 4);
    fetch_half(s, job, job.k + 1, 1);''','''    if (FP32_CLASS) fetch_boxes(s, job, 0, job.k >> 1, 4);
    fetch_half(s, job, 1);''')
    b.rep('''// Windows one after the other: step 2k + h is''','''DEVICE Unit unit(const Plan& plan, int i) {
  const int second = plan.units - plan.cuts;
  if (i >= plan.units) return {-1, 0, 0};
  const int matrix = i < second ? i : i - second, at = matrix < plan.cuts ? plan.at[matrix] : 8;
  return i < second ? Unit{matrix, 0, at} : Unit{matrix, at, 8};
}
// The last CTA to be told that there is nothing left makes all ready for the next call.
NOINLINE Unit next_unit(Job job) {
  const Plan& plan = *job.plan;
  const int i = take_number(&numbers);
  if (i == plan.units - 1) numbers = 0;
  return unit(plan, plan.ctas + i);
}
// Between two units, one thread: what this one leaves, what the next one finds.
NOINLINE void hand_on(Shared& s, Job job, uint32_t low_blocks) {
  bulk_store_wait();
  fence_global();
  store_state(&handed_on[job.matrix], PART_DONE | (unsigned long long)low_blocks << 33 | s.largest_sum);
}
NOINLINE void take_over(Shared& s) {
  unsigned long long x = 0;
  if (s.next.panel > 0) {
    unsigned long long* p = &handed_on[s.next.matrix];
    while (!((x = load_state(p)) & PART_DONE)) short_sleep();
    store_state(p, 0ull);
    fence_global();
  }
  s.largest_sum = (uint32_t)x;
  s.good = (int)(x >> 33);
}

// Windows one after the other: step 2k + h is''')
    b.rep('''DEVICE void factor_matrix(Shared& s, Job& job, const Lane& me) {''','''DEVICE void factor_matrices(Shared& s, Job& job, const Args& args, int start, const Lane& me) {''')
    b.rep('''    s.largest_sum = 0u;
    s.largest_column = 0u;
  }
''','''    s.largest_column = 0u;
    s.next = unit(*job.plan, start);
  }
  job.end = 0;
''')
    b.rep('''    const bool last = k + 1 == job.panels, again = done > 0;
''','''    const bool last = k + 1 == job.panels, more = k + 1 < job.end, again = done > 0;
''')
    b.rep('''    job.k = k;
    if (step >= 0) {
''','''    job.k = k;
    if (step >= 0) {
      if (h == 0 && !again && me.tid == MOVER) s.next = more ? Unit{job.matrix, k + 1, job.end} : next_unit(job);
''')
    b.rep('''              if (zero_tail<EXACT>(job, me)) return;
''','''              if (zero_tail<EXACT>(job, me)) {
                if (me.tid == MOVER) {
                  if (more) s.next = next_unit(job);
                  if (job.end < job.panels) hand_on(s, job, low_blocks);
                }
                empty = true;
                break;
              }
''')
    b.rep('''      for (int j = inside ? k : 0; j < k + inside; j++) {
''','''      for (int j = inside ? k : 0; j < k + inside; j++) {
''')
    b.rep('''      if (FP32_CLASS && h == 1 && me.tid == MOVER) bulk_store_read();  // the first window's low terms, where P's go
      sync_all();
''','''      if (RARE(empty)) {  // to the next unit as to the first one
        step = -1;
        job.end = end_of_empty;
        continue;
      }
      if (FP32_CLASS && h == 1 && me.tid == MOVER) bulk_store_read();  // the first window's low terms, where P's go
      sync_all();
''')
    b.b=b.b.replace('''        job.end = end_of_empty;
''','''        job.end = 0;
        empty = false;
''')
    b.rep('''  int step = -1;             // only loads
''','''  int step = -1;             // only loads
  bool empty = false;        // the rest of the matrix is zero
''')
    b.rep('''    if (step < 0) {
      sync_all();
      if (EXACT && me.tid == MOVER) {
        fetch_half(s, job, 0, 0);
        fetch_half(s, job, 0, 1);
      }
    } else {
''','''    if (step < 0) {
      sync_all();
      if (EXACT && me.tid == MOVER && s.next.matrix >= 0) {
        fetch_half(s, job, 0);
        fetch_half(s, job, 1);
      }
    } else {
''')
    b.rep('''    if (!inside && !last) prefetch_panel<EXACT>(job, k + 1, me);''','''    if (!inside && s.next.matrix >= 0) prefetch_panel<EXACT>(s, job, args.a, me);''')
    b.rep('''    if (FP32_CLASS && EXACT && h == 0 && whole && !last && me.tid == MOVER) {''','''    if (FP32_CLASS && EXACT && h == 0 && whole && s.next.matrix >= 0 && me.tid == MOVER) {''')
    b.rep('''      fetch_boxes(s, job, k + 1, 0, 0, k >> 1);
''','''      fetch_boxes(s, job, 0, 0, k >> 1);
''')
    b.rep('''    if (h == 1 && whole && !last && me.tid == MOVER) {
      s.largest_column = 0u;
      bulk_store(job.v + (size_t)(k * TILES + 8 * k) * GROUPS * 32, &s.v[0][8 * k][0][0], (TILES - 8 * k) * 1024);
      bulk_store_commit();
      if (EXACT && !FP32_CLASS) fetch_half(s, job, k + 1, 0);
    }
''','''    if (h == 1 && whole && me.tid == MOVER) {
      s.largest_column = 0u;
      if (!last) {
        bulk_store(job.v + (size_t)(k * TILES + 8 * k) * GROUPS * 32, &s.v[0][8 * k][0][0], (TILES - 8 * k) * 1024);
        bulk_store_commit();
      }
      if (EXACT && !FP32_CLASS && s.next.matrix >= 0) fetch_half(s, job, 0);
    }
''')
    b.rep('''    window_t<EXACT>(ready, s, job, h, first, !end, whole, phase, me);''','''    window_t<EXACT>(ready, s, job, h, first, !end, whole && s.next.matrix >= 0, phase, me);''')
    b.rep('''    if (end) break;
    const bool next = h == 1 && whole;  // the next panel comes now; so it does in step -1
    if (next && EXACT) {
      barrier_wait(&s.panel[0], (k + 1) & 1);
''','''    const bool next = h == 1 && whole && s.next.matrix >= 0;  // the next panel comes now; so it does in step -1
    if (next && EXACT) {
      barrier_wait(&s.panel[0], phase >> 8 & 1);
''')
    b.rep('''    if (next && !EXACT) load_panel(c, job, k + 1, me);
    if (step >= 0) {
''','''    if (next && !EXACT) load_panel(c, job, args.a + (size_t)s.next.matrix * job.n * job.n, s.next.panel, me);
    if (step >= 0 && !end) {
''')
    b.rep('''    if (next) {
      if (EXACT) {
        barrier_wait(&s.panel[1], (k + 1) & 1);
        read_half<1>(c, half_at(s, 1), me);
        fence_async();
        sync_all();
      }
      if (step >= 0 && me.tid == MOVER) {
        if (k == 0) bulk_store_wait();  // block 0 is in memory
        prefetch_block(s, job, 0);
      }
''','''    if (h == 1 && whole && !more && me.tid == MOVER) {
      if (step >= 0 && !last) hand_on(s, job, low_blocks);
      take_over(s);
    }
    if (h == 1 && whole && !next) break;
    if (next) {
      if (EXACT) {
        barrier_wait(&s.panel[1], phase >> 8 & 1);
        read_half<1>(c, half_at(s, 1), me);
        phase ^= 256u;
      }
      const Unit u = s.next;
      fence_async();
      sync_all();
      if (!more) {
        const size_t matrix = first_lane(u.matrix);
        job.a = args.a + matrix * job.n * job.n;
        job.h = args.h + matrix * job.n * job.n;
        job.tau = args.tau + matrix * job.n;
        job.v = args.v + matrix * job.panels * (TILES * GROUPS * 32);
        job.v_lo = args.v_lo + matrix * job.panels * (TILES * GROUPS * 32);
        job.t = args.t + matrix * job.panels * (T_OPERANDS * 128);
        job.matrix = matrix;
        job.end = first_lane(u.end);
        step = 2 * (int)first_lane(u.panel) - 1;
        low_blocks = s.good;
      }
      if (step >= 0 && me.tid == MOVER) {
        if (k == 0) bulk_store_wait();  // block 0 is in memory
        prefetch_block(s, job, 0);
      }
''')
    b.rep('''  job.flags = low_blocks;
''','')
    b.rep('''uint32_t* t, int n, int panels,
                 const __grid_constant__ TensorMap map) {''','''uint32_t* t, int n, int panels,
                 const __grid_constant__ TensorMap map, const __grid_constant__ Plan plan) {''')
    i=b.b.index('  const size_t matrix = blockIdx.x;\n'); j=b.b.index('  job.n = n;\n',i)
    b.b=b.b[:i]+'  Job job;\n'+b.b[j:]
    b.rep('''  job.row = (int)matrix * n;
  factor_matrix<EXACT>(s, job, me);
''','''  job.plan = &plan;
  factor_matrices<EXACT>(s, job, Args{a, h, tau, v, v_lo, t}, blockIdx.x, me);
''')
    b.b=b.b.replace("plan.at[matrix] : 8;","plan.at[matrix] : plan.panels;").replace("Unit{matrix, at, 8};","Unit{matrix, at, plan.panels};").replace('struct Plan { int cuts, units, ctas;','struct Plan { int cuts, units, ctas, panels;')
    b.rep('''  kernel<<<batch, THREADS, sizeof(Shared)>>>(''','''  const Plan plan = make_plan(batch, (n + NB - 1) / NB);
  kernel<<<plan.ctas, THREADS, sizeof(Shared)>>>(''')
    b.rep('''(n + NB - 1) / NB, map);
''','''(n + NB - 1) / NB, map, plan);
''')
    b.rep('''// Launches on the default queue; returns''','''PLAN
// Launches on the default queue; returns''')
PLAN_FREE='''static Plan test_plan;
static Plan make_plan(int batch, int panels) {
  test_plan.panels = panels;
  test_plan.units = batch + test_plan.cuts;
  test_plan.ctas = test_plan.units < 132 ? test_plan.units : 132;
  return test_plan;
}
'''
