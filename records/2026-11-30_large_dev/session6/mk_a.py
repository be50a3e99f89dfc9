# v127 + drain warp with two rings: t is the text
def sub(o,n,c=1):
    global t
    assert t.count(o)==c,(t.count(o),o); t=t.replace(o,n)
def cut(a,b,new):
    global t
    i=t.index(a); j=t.index(b,i); t=t[:i]+new+t[j:]
v126=open('/work/main/submissions/v126_large_drain.py').read()
cut('struct StripSmem {','// all with rows of 128 bytes','''struct StripSmem {
  static constexpr int C = TERMS * 16384, STAGE = C + 16384; // V^T in blocks of 64 x 64, its second term, C as two blocks of 32 columns
  static constexpr int DEPTH = TWO ? 2 : 3, STAGES = 2 * DEPTH; // of a warpgroup; of both
  static constexpr int S = 0, SUMS = 16384;                  // between the passes: S^T in two terms, sums
  // T0^T, T1^T in two terms; barriers: a stage is full, is free, holds the new C; T, S have come; a task is there, has been seen by `drain`;
  // all stages are free for sums; W' is in registers; a task without copies has been done
  static constexpr int T = STAGES * STAGE, BARS = T + 32768, FREE = BARS + 8 * STAGES, OUT = FREE + 8 * STAGES, BAR_T = OUT + 8 * STAGES,
                       BAR_S = BAR_T + 8, NEXT = BAR_S + 8, TAKEN = NEXT + 8, CLEAR = TAKEN + 8, READY = CLEAR + 8, DONE = READY + 8,
                       BYTES = DONE + 8 + 1024;
  static __device__ __forceinline__ int stage(int v) { return (v & 1) * DEPTH + (v >> 1) % DEPTH; } // of a pass's chunk number v
};
''')
sub('__device__ __forceinline__ void warpgroup_sync(int wg) { asm volatile("bar.sync %0,128;" ::"r"(2 + wg) : "memory"); }\n','')
# feed
sub('''  bool working = false;                   // on a task without copies
''','''  bool working = false;                   // on a task without copies
  auto wait_free = [&] {
    ROLL for (int d = 0; d < L::STAGES; d++) mbar_wait(s + L::FREE + 8 * d, ~(used >> d) & 1);
  };
''')
sub('''    if (working) {
      mbar_wait(s + L::DONE, done);
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
      mbar_wait(s + L::DONE, done);
      done ^= 1;
    }
    working = task.coupling || task.maxima;
    if (working) wait_free();
    mbar_wait(s + L::TAKEN, i ^ 1); // (the task before, so that nobody is two phases behind; nothing before the first one)
    next[i] = k;
    mbar_arrive(s + L::NEXT);
    if (k.x < 0) break;
    if (working) continue;
''')
sub('const int stage = (v & 1) * L::DEPTH + (v >> 1) % L::DEPTH, row','const int stage = L::stage(v), row')
sub('''      if (pass) break;
      if (blocks == 2) {
        poll(p.coupled + task.mat * (n / 128) + r0 / 128, 1);
        fence_global();
        mbar_wait(s + L::FREE, ~used & 1); // S^T goes where the first stage is
        load_t(s + L::S, pair_s(p, task.mat, r0 / 128), 1, s + L::BAR_S);
      }
''','''      if (pass) break;
      wait_free();
      mbar_arrive(s + L::CLEAR);
      if (blocks == 2) {
        poll(p.coupled + task.mat * (n / 128) + r0 / 128, 1);
        fence_global();
        load_t(s + L::S, pair_s(p, task.mat, r0 / 128), 1, s + L::BAR_S); // where the first stage is
      }
''')
i=v126.index('// one thread sends the new C out'); j=v126.index('#if defined(__CUDA_ARCH_FEAT_SM90_ALL)',i); D=v126[i:j]
D=D.replace('  int stage = 0;\n','').replace('    stage = (stage + chunks) % L::DEPTH; // pass 1\n','').replace('''    for (int v = chunks - 1; v >= 0; v--) {
''','''    for (int v = 0; v < chunks; v++) { // the last rows first
      const int stage = L::stage(v), row = (int)task.mat * n + task.top + 64 * (first + chunks - 1 - v);
''').replace('      stage = stage + 1 == L::DEPTH ? 0 : stage + 1;\n','').replace('(int)task.mat * n + task.top + 64 * (first + v), s','row, s')
assert 'stage = stage' not in D
i=t.index('#if defined(__CUDA_ARCH_FEAT_SM90_ALL)'); t=t[:i]+D+t[i:]
# strip
sub('warpgroup_strip(const LarfbArgs &p, const StripMaps &maps, const size_t mat,','warpgroup_strip(const LarfbArgs &p, const size_t mat,')
t=t.replace('>(p, maps, task.mat, task.top','>(p, task.mat, task.top')
sub('''  const int row0 = r0 + 64 * first;
''','')
cut('  // chunks wg, wg + 2, .. (the last first','  // ---- pass 1: W^T','''  // chunks wg, wg + 2, .. of a pass (pass 2: the last rows first): f(stage, its number)
  auto pass = [&](auto &&f) {
    int d = 0;
#pragma unroll 1
    for (int v = wg; v < chunks; v += 2) {
      mbar_wait(s + L::BARS + 8 * (wg * L::DEPTH + d), phase >> d & 1);
      phase ^= 1u << d;
      f(s + (wg * L::DEPTH + d) * L::STAGE, wg * L::DEPTH + d);
      d = d + 1 == L::DEPTH ? 0 : d + 1;
    }
  };

''')
sub('const uint32_t s = smem_addr(sm), stages = s + wg * L::DEPTH * L::STAGE, bars = s + L::BARS + wg * L::DEPTH * 8;','const uint32_t s = smem_addr(sm);')
sub('  pass(false, [&](int, uint32_t stage, uint32_t free) {','  pass([&](uint32_t stage, int number) {')
sub('    if (lane == 0) mbar_arrive(free);\n  });','    if (lane == 0) mbar_arrive(s + L::FREE + 8 * number);\n  });')
sub('''    UNROLL for (int i = 0; i < 2 * H; i++)
      if (i / H != wg) buf''','''    mbar_wait(s + L::CLEAR, phase >> 5 & 1);
    phase ^= 32;
    UNROLL for (int i = 0; i < 2 * H; i++)
      if (i / H != wg) buf''')
cut('  // The new C takes the place of the old one and leaves from there','    float d[32];','''  pass([&](uint32_t stage, int number) {
''')
sub('''    give_back();
    char *c''','''    char *c''')
cut('    fence_shared();\n    warpgroup_sync(wg);','// A task: x = matrix |','''    fence_shared(); // for the copy engine
    __syncwarp();
    if (lane == 0) mbar_arrive(s + L::OUT + 8 * number);
  });
}
''')
i=v126.index('constexpr int LARFB_THREADS = 320;'); j=v126.index('// ---------------------------------------------------------------- 6.',i); K=v126[i:j]
K=K.replace('StripSmem::DEPTH','StripSmem::STAGES').replace('FREE + 8 * i, 8); // all warps','FREE + 8 * i, 4); // the warps of a warpgroup').replace('OUT + 8 * i, 4); // those of a warpgroup','OUT + 8 * i, 4);').replace('  Ring ring = {0, 0};\n','  uint32_t phase = 0;\n').replace('task.parts, ring)','task.parts, phase)')
assert 'ring' not in K.replace('string','')
cut('constexpr int LARFB_THREADS = 288;','// ---------------------------------------------------------------- 6.',K)
