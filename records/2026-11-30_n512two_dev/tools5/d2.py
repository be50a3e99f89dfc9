# d2.py IN OUT: development macros on top of w1.cu
import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
rep('''DEVICE void bulk_load(void* to''','''#ifndef HINT_A
#define HINT_A 0
#endif
#ifndef HINT_V
#define HINT_V 0
#endif
#define EVICT_FIRST 0x12F0000000000000ull
#define EVICT_LAST 0x14F0000000000000ull
DEVICE void bulk_load(void* to''')
rep('''  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
''','''  if (HINT_V & 1) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0],[%1],%2,[%3],%4;" ::"r"(
                   shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(b)), "l"(EVICT_LAST) : "memory");
  else asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
''')
rep('''  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;" ::"l"(to)''','''  if (HINT_V & 2) asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0],[%1],%2,%3;" ::"l"(to), "r"(shared_address(from)),
               "r"(bytes), "l"(EVICT_LAST) : "memory");
  else asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;" ::"l"(to)''')
rep('''  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3}],[%4];" ::"r"(
''','''  if (HINT_A) asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0],[%1,{%2,%3}],[%4],%5;" ::"r"(
                   shared_address(to)), "l"(map), "r"(column), "r"(row), "r"(shared_address(b)), "l"(EVICT_FIRST) : "memory");
  else asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3}],[%4];" ::"r"(
''')
rep('''  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0,{%1,%2}];" ::"l"(map)''','''  if (HINT_A == 1) asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint [%0,{%1,%2}],%3;" ::"l"(map), "r"(column), "r"(row), "l"(EVICT_FIRST) : "memory");
  else asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0,{%1,%2}];" ::"l"(map)''')
rep('''  job.v = v + matrix *''','''  size_t slot = matrix;
#ifdef SLOTS
  uint32_t smid;
  asm volatile("mov.u32 %0,%%smid;" : "=r"(smid));
  slot = smid;
#endif
  job.v = v + slot *''')
rep("job.v_lo = v_lo + matrix *","job.v_lo = v_lo + slot *"); rep("job.t = t + matrix *","job.t = t + slot *")
rep("  job.flags = low_blocks;\n","#ifdef SLOTS\n  if (me.tid == MOVER) bulk_store_wait();\n#endif\n  job.flags = low_blocks;\n  TICKEND;\n")
# bounded spins
rep('''  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait''','''  uint32_t done = 0;
  for (int spin = 0; !done; spin++) {
    if (spin > 20000000) __trap();
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait''')
rep('''  me.tid = threadIdx.x;
''','''#if OPQ & 1
  asm volatile("mov.u32 %0,%%tid.x;" : "=r"(me.tid));
#else
  me.tid = threadIdx.x;
#endif
''')
rep('''  const size_t matrix = blockIdx.x;
''','''#if OPQ & 2
  uint32_t matrix_;
  asm volatile("mov.u32 %0,%%ctaid.x;" : "=r"(matrix_));
  const size_t matrix = matrix_;
#else
  const size_t matrix = blockIdx.x;
#endif
''')
# profile
rep('''struct Lane { int tid''','''#ifdef PROF
__device__ unsigned long long prof_total[24];
#define TICK(i) if (me.tid == 0) { unsigned long long t_ = clock64(); s.prof[i] += t_ - s.prof_last; s.prof_last = t_; }
#define TICKEND if (me.tid == 0) { for (int i_ = 0; i_ < 24; i_++) atomicAdd(&prof_total[i_], s.prof[i_]); }
#else
#define TICK(i)
#define TICKEND
#endif
struct Lane { int tid''')
rep('''static_assert(sizeof(Scratch) <=''','''static_assert(sizeof(Scratch) <=''')
rep('''  float ratio[IB];                   // TERMS = 2: the smallest pivot to trust
''','''  float ratio[IB];                   // TERMS = 2: the smallest pivot to trust
#ifdef PROF
  unsigned long long prof[24], prof_last;
#endif
''')
g='    barrier_init(&s.panel);\n' if '    barrier_init(&s.panel);\n' in t else '    barrier_init(&s.panel[1]);\n'
rep(g,g+'''#ifdef PROF
    for (int i = 0; i < 24; i++) s.prof[i] = 0;
    s.prof_last = clock64();
#endif
''')
import re
m=re.search(r"  if \(!low.inside\) barrier_wait\(&s.full\[.*\n",t); t=t[:m.end()]+"  TICK(1)\n"+t[m.end():]
rep('''  // The two halves of W meet.''','''  TICK(2)
  // The two halves of W meet.''')
rep('''  // C^T -= W'^T V^T
#if''','''  TICK(3)
  // C^T -= W'^T V^T
#if''')
rep('''        if (TERMS == 2) {
          if (!inside) phase''','''        TICK(4)
        if (TERMS == 2) {
          if (!inside) phase''')
g='    const Norm norm = gram(s, first, me);\n' if 'const Norm norm = gram' in t else '    gram(s, job, h, first, done, me);\n'
rep(g,'    TICK(5)\n'+g+'    TICK(6)\n')
g='    recurrence(s, job, h, first, done, norm, me);\n    sync_all();\n' if 'const Norm norm = gram' in t else '    recurrence(s, me);\n    sync_all();\n'
rep(g,g+'    TICK(7)\n')
rep('''    whole = good == IB;
''','''    whole = good == IB;
    TICK(8)
''')
rep('''    const bool next = h == 1 && whole;  // the next''','''    TICK(9)
    const bool next = h == 1 && whole;  // the next''')
rep('''    if (next && !EXACT) load_panel''','''    TICK(10)
    if (next && !EXACT) load_panel''')
rep('''    if (next) {
      if (EXACT) {
''','''    TICK(11)
    if (next) {
      if (EXACT) {
''')
rep('''    before = whole ? 0 : done;
''','''    TICK(0)
    before = whole ? 0 : done;
''')
i=t.index('static int launch('); 
rep('''  auto kernel = n == ROWS && panel_map(map, a, n, batch) ? geqrf_kernel<true> : geqrf_kernel<false>;
''','''#ifdef ONLY_EXACT
  panel_map(map, a, n, batch);
  auto kernel = geqrf_kernel<true>;
#else
  auto kernel = n == ROWS && panel_map(map, a, n, batch) ? geqrf_kernel<true> : geqrf_kernel<false>;
#endif
''')
rep('''int n512_launch(''','''#ifdef PROF
extern "C" void n512_prof(unsigned long long*p){cudaMemcpyFromSymbol(p,n512::prof_total,192);unsigned long long z[24]={};cudaMemcpyToSymbol(n512::prof_total,z,192);}
#endif
extern "C" int n512_launch(''')
pass
t='#ifndef TRUST_V\n#define TRUST_V 64.f\n#endif\n'+t
open(sys.argv[2],'w').write(t)
