# tr.py IN OUT: bounded spins, marks of thread 0, staggered start
from lib import *
def dev(b):
    b.rep('''  uint32_t done = 0;
  while (!done) {
''','''  uint32_t done = 0;
  for (int spin = 0; !done; spin++) {
    if (spin > 20000000) __trap();
''')
    b.rep('''int n512_launch(const''','''extern "C" int n512_launch(const''')
    b.rep('''  auto kernel = n == ROWS && panel_map(map, a, n, batch) ? geqrf_kernel<true> : geqrf_kernel<false>;
''','''#ifdef ONLY_EXACT
  if (!panel_map(map, a, n, batch)) return 1;
  auto kernel = geqrf_kernel<true>;
#else
  auto kernel = n == ROWS && panel_map(map, a, n, batch) ? geqrf_kernel<true> : geqrf_kernel<false>;
#endif
''')
def marks(b):
    b.rep('struct Lane { int tid','''constexpr int MARKS = 17 * 32;
__device__ uint32_t mark_words[1280 * MARKS];
#define MARK(w, id) if (me.tid == 0) { uint32_t t_; asm volatile("mov.u32 %0, %%clock;" : "=r"(t_) :: "memory"); mark_words[blockIdx.x * MARKS + (w) * 32 + (id)] = t_; }
struct Lane { int tid''')
    b.rep('''    const int k = step >> 1, h = step & 1;
''','''    MARK(step + 1, 0);
    const int k = step >> 1, h = step & 1;
''')
    b.rep('''          if (!FP32_CLASS) {
            barrier_wait(&s.full[stage], phase >> stage & 1);
            phase ^= 1u << stage;
          }
''','''          if (!FP32_CLASS) {
            MARK(step + 1, 16 + j);
            barrier_wait(&s.full[stage], phase >> stage & 1);
            phase ^= 1u << stage;
            MARK(step + 1, 24 + j);
          }
''')
    b.rep('''      sync_all();
      if (me.ws >> 1 == h) {
        stage''','''      MARK(step + 1, 1);
      sync_all();
      if (me.ws >> 1 == h) {
        stage''')
    b.rep('''    const Norm norm = gram(s, first, me);
    recurrence(s, job, h, first, done, norm, me);
    sync_all();
''','''    MARK(step + 1, 2);
    const Norm norm = gram(s, first, me);
    MARK(step + 1, 3);
    recurrence(s, job, h, first, done, norm, me);
    sync_all();
    MARK(step + 1, 4);
''')
    b.rep('''    if (FP32_CLASS || h == 1) fence_async();
    sync_all();
''','''    if (FP32_CLASS || h == 1) fence_async();
    sync_all();
    MARK(step + 1, 5);
''')
    b.rep('''    if (end) break;
''','''    MARK(step + 1, 6);
    if (end) break;
''')
    b.rep('''      read_half<0>(c, half_at(s, 0), me);
    }
''','''      read_half<0>(c, half_at(s, 0), me);
    }
    MARK(step + 1, 7);
''')
    b.rep('''    if (next) {
      if (EXACT) {
        barrier_wait(&s.panel[1]''','''    MARK(step + 1, 8);
    if (next) {
      if (EXACT) {
        barrier_wait(&s.panel[1]''')
    b.rep('''      scale_panel(c, s, me);
    }
''','''      MARK(step + 1, 9);
      scale_panel(c, s, me);
      MARK(step + 1, 10);
    }
''')
    b.rep('''  Job job;
''','''  if (me.tid == 0) {
    uint64_t g_; uint32_t sm_;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g_) :: "memory");
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm_));
    mark_words[blockIdx.x * MARKS + 12] = (uint32_t)g_; mark_words[blockIdx.x * MARKS + 13] = (uint32_t)(g_ >> 32); mark_words[blockIdx.x * MARKS + 14] = sm_;
  }
  MARK(0, 11);
  Job job;
''')
    b.rep('''  factor_matrix<EXACT>(s, job, me);
}
''','''  factor_matrix<EXACT>(s, job, me);
  MARK(0, 15);
}
''')
    b.b+='''
extern "C" int n512_marks(void* to, int words) { cudaMemcpyFromSymbol(to, n512::mark_words, words * 4); return (int)cudaGetLastError(); }
extern "C" int n512_marks_clear() { void* p; cudaGetSymbolAddress(&p, n512::mark_words); cudaMemset(p, 0, sizeof(n512::mark_words)); return (int)cudaGetLastError(); }
'''
def stagger(b):
    b.rep('''  const size_t matrix = blockIdx.x;
''','''  if (blockIdx.x < 132) {
    const uint32_t wait_ = (blockIdx.x % stagger_mod) * stagger_cycles;
    uint32_t t0_, t1_;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(t0_) :: "memory");
    do { asm volatile("mov.u32 %0, %%clock;" : "=r"(t1_) :: "memory"); } while (t1_ - t0_ < wait_);
  }
  const size_t matrix = blockIdx.x;
''')
    b.rep('struct Lane { int tid','''__device__ uint32_t stagger_mod = 1, stagger_cycles = 0;
struct Lane { int tid''')
    b.b+='''
extern "C" int n512_stagger(unsigned m, unsigned c) { cudaMemcpyToSymbol(n512::stagger_mod, &m, 4); cudaMemcpyToSymbol(n512::stagger_cycles, &c, 4); return (int)cudaGetLastError(); }
'''
if __name__=='__main__':
    b=B(sys.argv[1]); dev(b)
    if 'm' in sys.argv[3]: marks(b)
    if 's' in sys.argv[3]: stagger(b)
    b.save(sys.argv[2])
