# patch "cut": some matrices in two parts, on two SMs (or the same), one after the other
def cut2(b):
    b.rep('''DEVICE uint32_t first_lane(''','''DEVICE unsigned long long load_state(const unsigned long long* p) {
  unsigned long long x;
  asm volatile("ld.acquire.gpu.u64 %0,[%1];" : "=l"(x) : "l"(p) : "memory");
  return x;
}
DEVICE void store_state(unsigned long long* p, unsigned long long x) { asm volatile("st.release.gpu.u64 [%0],%1;" ::"l"(p), "l"(x) : "memory"); }
DEVICE void short_sleep() { __nanosleep(200); }
DEVICE uint32_t first_lane(''')
    b.rep('''struct Lane { int tid, warp''','''// The batch in equal shares: matrix i < cuts is done in two parts, panels 0 .. at[i] - 1 by one CTA, the rest by another. The first parts
// are the first CTAs of the grid, the second parts the last ones.
constexpr int MAX_CUTS = 512;
struct Plan { int cuts; unsigned char at[MAX_CUTS]; };
constexpr unsigned long long PART_DONE = 1ull << 63;  // in what a first part leaves: flags of low blocks, largest_sum
struct Lane { int tid, warp''')
    b.rep('''const TensorMap* map; int row;
};''','''const TensorMap* map; int row; int from, to;
};''')
    b.rep('''// Windows one after the other: step 2k + h is''','''// Zero until a first part has left its words there: where the last block's V would be, which nobody needs.
DEVICE unsigned long long* state(const Job& job) { return reinterpret_cast<unsigned long long*>(job.v + (size_t)(job.panels - 1) * TILES * GROUPS * 32); }
// The end of a first part: its blocks are in memory. One thread.
NOINLINE void hand_on(Job job, uint32_t low_blocks, uint32_t largest_sum) {
  bulk_store_wait();
  fence_global();
  store_state(state(job), PART_DONE | (unsigned long long)low_blocks << 32 | largest_sum);
}
// The start of a second part. One thread.
NOINLINE void take_over(Shared& s, Job job) {
  unsigned long long x;
  while (!((x = load_state(state(job))) & PART_DONE)) short_sleep();
  fence_global();
  s.largest_sum = (uint32_t)x;
  s.good = (int)(x >> 32 & 0xff);
}

// Windows one after the other: step 2k + h is''')
    b.rep('''              if (zero_tail<EXACT>(job, me)) return;
''','''              if (zero_tail<EXACT>(job, me)) break_off = true;
              if (break_off) break;
''')
    b.rep('''  int step = -1;             // only loads
''','''  const int begin = 2 * job.from;
  int step = begin - 1;      // only loads
''')
    b.rep('''    const bool last = k + 1 == job.panels, again = done > 0;
''','''    const bool last = k + 1 == job.panels, more = k + 1 < job.to, again = done > 0;
''')
    b.rep('''    if (step >= 0) {
#pragma unroll 1
      for (int j = inside''','''    if (step >= begin) {
#pragma unroll 1
      for (int j = inside''')
    b.rep('''    if (step < 0) {
      sync_all();
      if (EXACT && me.tid == MOVER) {
        fetch_half(s, job, 0, 0);
        fetch_half(s, job, 0, 1);
      }
    } else {
''','''    if (step < begin) {
      sync_all();
      if (me.tid == MOVER) {
        if (EXACT) {
          fetch_half(s, job, k + 1, 0);
          fetch_half(s, job, k + 1, 1);
        }
        if (begin > 0) take_over(s, job);
      }
    } else {
''')
    b.rep('''    if (!inside && !last) prefetch_panel''','''    if (!inside && more) prefetch_panel''')
    b.rep('''    if (FP32_CLASS && EXACT && h == 0 && whole && !last && me.tid''','''    if (FP32_CLASS && EXACT && h == 0 && whole && more && me.tid''')
    b.rep('''      if (EXACT && !FP32_CLASS) fetch_half(s, job, k + 1, 0);
''','''      if (EXACT && !FP32_CLASS && more) fetch_half(s, job, k + 1, 0);
''')
    b.rep('''first, !end, whole, phase, me);
    if (FP32''','''first, !end, whole && more, phase, me);
    if (FP32''')
    b.rep('''DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool whole, uint32_t''','''DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool fetch, uint32_t''')
    cond='EXACT && cross && whole && me.tid == MOVER' if 'EXACT && cross' in b.b else 'EXACT && h == 1 && need_t && whole && me.tid == MOVER'
    b.rep(cond,cond.replace('whole','fetch'))
    b.rep('''    const bool next = h == 1 && whole;  // the next panel comes now; so it does in step -1
''','''    const bool next = h == 1 && whole && more;  // the next panel comes now; so it does in the first step
''')
    b.rep('barrier_wait(&s.panel[0], (k + 1) & 1);','barrier_wait(&s.panel[0], (k + 1 - job.from) & 1);')
    b.rep('barrier_wait(&s.panel[1], (k + 1) & 1);','barrier_wait(&s.panel[1], (k + 1 - job.from) & 1);')
    after='store_t' if '    if (step >= 0) {\n    store_t' in b.b else 'invert'
    b.rep('    if (step >= 0) {\n    '+after,'    if (step >= begin) {\n    '+after)
    b.rep('''    if (next) {
      if (EXACT) {
        barrier_wait(&s.panel[1]''','''    if (h == 1 && whole && !more) break;
    if (next) {
      if (EXACT) {
        barrier_wait(&s.panel[1]''')
    b.rep('''      if (step >= 0 && me.tid == MOVER) {
        if (k == 0) bulk_store_wait();''','''      if (step < begin && k >= 0) low_blocks = s.good;
      if (k >= 0 && me.tid == MOVER) {
        if (k == 0) bulk_store_wait();''')
    b.rep('''  job.flags = low_blocks;
''','''  if (me.tid == MOVER && job.to < job.panels) hand_on(job, low_blocks, s.largest_sum);
''')
    b.b=b.b.replace('''              if (zero_tail<EXACT>(job, me)) break_off = true;
              if (break_off) break;
''','''              if (zero_tail<EXACT>(job, me)) {
                if (me.tid == MOVER && job.to < job.panels) hand_on(job, low_blocks, s.largest_sum);
                return;
              }
''')
    b.rep('''uint32_t* t, int n, int panels,
                 const __grid_constant__ TensorMap map) {''','''uint32_t* t, int n, int panels,
                 const __grid_constant__ TensorMap map, const __grid_constant__ Plan plan) {''')
    b.rep('''  const size_t matrix = blockIdx.x;
  Job job;
''','''  const bool second = blockIdx.x >= gridDim.x - plan.cuts;
  const size_t matrix = second ? blockIdx.x - (gridDim.x - plan.cuts) : blockIdx.x;
  Job job;
  const int at = (int)matrix < plan.cuts ? plan.at[matrix] : panels;
  job.from = second ? at : 0;
  job.to = second ? panels : at;
''')
    b.rep('''  kernel<<<batch, THREADS, sizeof(Shared)>>>(''','''  const int panels = (n + NB - 1) / NB;
  const Plan plan = make_plan(batch, panels);
  if (plan.cuts > 0) {  // the words that the parts hand on
    const size_t pitch = (size_t)panels * (TILES * GROUPS * 32 * 4);
    e = cudaMemset2DAsync((char*)v + pitch - TILES * GROUPS * 32 * 4, pitch, 0, 8, plan.cuts);
    if (e != cudaSuccess) return (int)e;
  }
  kernel<<<batch + plan.cuts, THREADS, sizeof(Shared)>>>(''')
    b.rep('''(n + NB - 1) / NB, map);
''','''panels, map, plan);
''')
    b.rep('''// Launches on the default queue; returns''','''PLAN
// Launches on the default queue; returns''')
PLAN_FREE='''static Plan test_plan;
static Plan make_plan(int batch, int panels) { return test_plan; }
'''
if __name__=='__main__':
    import sys
    from lib import B
    import tr
    b=B(sys.argv[1]); cut(b); b.rep('PLAN\n',PLAN_FREE); tr.dev(b)
    b.rep('while (!((x = load_state(job.state)) & PART_DONE)) short_sleep();','for (int spin = 0; !((x = load_state(job.state)) & PART_DONE); spin++) {\n    if (spin > 2000000) __trap();\n    short_sleep();\n  }')
    if 'm' in sys.argv[3]: tr.marks(b)
    b.b+='''
extern "C" void n512_plan(int cuts, const unsigned char* at) { n512::test_plan.cuts = cuts; for (int i = 0; i < cuts; i++) n512::test_plan.at[i] = at[i]; }
'''
    b.save(sys.argv[2])
