# a tenth warp sends C out and reports
sub('''  static constexpr int T = DEPTH * STAGE, BARS = T + 32768, FREE = BARS + 8 * DEPTH, BAR_T = FREE + 8 * DEPTH, BAR_S = BAR_T + 8,
                       NEXT = BAR_S + 8, READY = NEXT + 8, DONE = READY + 8, BYTES = DONE + 8 + 1024;
''','''  static constexpr int T = DEPTH * STAGE, BARS = T + 32768, FREE = BARS + 8 * DEPTH, OUT = FREE + 8 * DEPTH, BAR_T = OUT + 8 * DEPTH,
                       BAR_S = BAR_T + 8, NEXT = BAR_S + 8, TAKEN = NEXT + 8, CLEAR = TAKEN + 8, READY = CLEAR + 8, DONE = READY + 8,
                       BYTES = DONE + 8 + 1024;
''')
sub('''  // T0^T, T1^T in two terms; barriers: a stage is full, is free; T, S have come; a task is there; W' is in registers, so that all stages are
  // free; a task without copies has been done
''','''  // T0^T, T1^T in two terms; barriers: a stage is full, is free, holds the new C; T, S have come; a task is there, has been seen by `drain`;
  // all stages are free for sums; W' is in registers; a task without copies has been done
''')
sub('''    if (working) {
      mbar_wait_cta(s + L::DONE, done);
      done ^= 1;
    }
    next[i] = k;
    mbar_arrive(s + L::NEXT);
    if (k.x < 0) break;
    const Task task(k, p.mat0);
    working = task.coupling || task.maxima;
    if (working) continue;
''','''    const Task task(k, p.mat0);
    if (working) {
      mbar_wait_cta(s + L::DONE, done);
      done ^= 1;
    }
    working = task.coupling || task.maxima;
    if (working) wait_free();
    mbar_wait_cta(s + L::TAKEN, i ^ 1); // (the task before, so that nobody is two phases behind; nothing before the first one)
    next[i] = k;
    mbar_arrive(s + L::NEXT);
    if (k.x < 0) break;
    if (working) continue;
''')
sub('''  int stage = 0;
  bool working = false;                   // on a task without copies
#pragma unroll 1
''','''  int stage = 0;
  bool working = false;                   // on a task without copies
  auto wait_free = [&] {
    ROLL for (int d = 0; d < L::DEPTH; d++) mbar_wait_cta(s + L::FREE + 8 * d, ~(used >> d) & 1);
  };
#pragma unroll 1
''')
sub('''      if (pass) break;
      if (blocks == 2) {''','''      if (pass) break;
      if (blocks == 1) {
        wait_free();
        mbar_arrive(s + L::CLEAR);
      } else {''')
i=t.index('      mbar_wait_cta(s + L::READY, ready);'); j=t.index('#if defined(__CUDA_ARCH_FEAT_SM90_ALL)',i)
x=t[i:j]; e=x.index('\n}\n')+3
t=t[:i]+x[:e]+'''// one thread sends the new C out, from where the old one came in, and reports what is done
__device__ __forceinline__ void drain(const LarfbArgs &p, const StripMaps &maps, const int4 *next) {
  extern __shared__ __align__(128) char sm_raw[];
  using L = StripSmem;
  const uint32_t s = smem_addr(strip_base(sm_raw));
  const int n = p.n;
  uint32_t out = 0; // phases
  int stage = 0;
#pragma unroll 1
  for (int i = 0;; i ^= 1) {
    mbar_wait_cta(s + L::NEXT, i);
    const int4 k = next[i];
    mbar_arrive(s + L::TAKEN);
    if (k.x < 0) break;
    const Task task(k, p.mat0);
    if (task.coupling || task.maxima) continue;
    const int all = (n - task.top) / 64, first = all * task.part / task.parts, chunks = all * (task.part + 1) / task.parts - first;
    stage = (stage + chunks) % L::DEPTH; // pass 1
#pragma unroll 1
    for (int v = chunks - 1; v >= 0; v--) {
      mbar_wait_cta(s + L::OUT + 8 * stage, out >> stage & 1);
      out ^= 1u << stage;
      ROLL for (int h = 0; h < (task.single ? 2 : 4); h++)
        tensor_store(&maps.h, task.column + 32 * h, (int)task.mat * n + task.top + 64 * (first + v), s + stage * L::STAGE + L::C + h * 8192);
      bulk_commit();
      bulk_wait_read();
      mbar_arrive(s + L::FREE + 8 * stage, task.single ? 4 : 8);
      stage = stage + 1 == L::DEPTH ? 0 : stage + 1;
    }
    bulk_wait(); // written
    if (task.parts > 1) __threadfence(); // the last part reports for all
    if (task.parts == 1 || atomicAdd(p.joined + gang_of(p, task.mat, task.top, task.column, task.single), 1) == 2 * task.parts - 1) {
      int *made = p.applied + task.mat * (n / 64) + task.panel;
      add_release(made, 1);
      if (!task.single) add_release(made + 1, 1); // 128 columns
    }
  }
}
'''+x[e:]+t[j:]
sub('''  // all chunks (the last first, if `up`), or every other one: f(chunk, stage, barrier that gives it back). The other''','''  // all chunks (the last first, if `up`), or every other one: f(stage, its number). The other''')
sub('''      const uint32_t free = s + L::FREE + 8 * d;
''','')
sub('''      if (PAIR || (v & 1) == wg) f(up ? chunks - 1 - v : v, s + d * L::STAGE, free);
      else {
        __syncwarp();
        if (lane == 0) mbar_arrive(free);
      }
''','''      if (PAIR || (v & 1) == wg) f(s + d * L::STAGE, d);
      else {
        __syncwarp();
        if (lane == 0) mbar_arrive(s + L::FREE + 8 * d);
      }
''')
sub('  auto pass = [&](bool up, auto &&f) {','  auto pass = [&](auto &&f) {')
sub('(the last first, if `up`), or','(in pass 2 the last first), or')
sub("  pass(false, [&](int, uint32_t stage, uint32_t free) {","  pass([&](uint32_t stage, int d) {")
sub("    if (lane == 0) mbar_arrive(free);\n  });","    if (lane == 0) mbar_arrive(s + L::FREE + 8 * d);\n  });")
sub('''  if (!PAIR) { // each warpgroup adds up half of W
''','''  if (!PAIR) { // each warpgroup adds up half of W
    mbar_wait_cta(s + L::CLEAR, ring.phase >> 8 & 1);
    ring.phase ^= 256;
''')
i=t.index('  // The new C takes the place of the old one and leaves from there'); j=t.index('    float d[32];',i)
t=t[:i]+'''  pass([&](uint32_t stage, int number) {
'''+t[j:]
sub('''    give_back();
    char *c''','''    char *c''')
i=t.index('    fence_shared();\n    warpgroup_sync(wg);'); j=t.index('// A task: x = matrix |',i)
t=t[:i]+'''    fence_shared(); // for the copy engine
    __syncwarp();
    if (lane == 0) mbar_arrive(s + L::OUT + 8 * number, PAIR ? 1 : 2);
  });
}
'''+t[j:]
i=t.index('__device__ __forceinline__ void warpgroup_sync('); j=t.index('\n',i)+1; t=t[:i]+t[j:]
sub('warpgroup_strip(const LarfbArgs &p, const StripMaps &maps, const size_t mat,','warpgroup_strip(const LarfbArgs &p, const size_t mat,')
t=t.replace('>(p, maps, task.mat, task.top','>(p, task.mat, task.top')
sub('  const int row0 = r0 + 64 * first;\n  const uint32_t *cmax','  const uint32_t *cmax')
sub('constexpr int LARFB_THREADS = 288;','constexpr int LARFB_THREADS = 320;')
sub('''      mbar_init(s + StripSmem::FREE + 8 * i, 8); // all warps
    }
    for (int i = 0; i < 5; i++) mbar_init(''','''      mbar_init(s + StripSmem::FREE + 8 * i, 8); // all warps
      mbar_init(s + StripSmem::OUT + 8 * i, 8);
    }
    for (int i = 0; i < 7; i++) mbar_init(''')
sub('''    if (tid == 256) feed(p, maps, next);
''','''    if (tid == 256) feed(p, maps, next);
    if (tid == 288) drain(p, maps, next);
''')
i=t.index('      if (no_copies) fence_shared();\n'); j=t.index('  asm volatile("griddepcontrol.wait;" ::\n',i)
t=t[:i]+'''      if (!no_copies) continue; // `drain` reports
      fence_shared();
      fence_global(); // S^T, for the copies of others
      block_sync<256>();
      if (tid == 0) {
        mbar_arrive(s + StripSmem::DONE);
        int *made = task.coupling ? p.coupled + task.mat * (p.n / 128) + task.top / 128 : p.applied + task.mat * (p.n / 64) + task.panel;
        add_release(made, 1);
        if (task.maxima) add_release(made + 1, 1); // 128 columns
      }
    }
'''+t[j:]
