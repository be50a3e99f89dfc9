# pass 2: C leaves by the tensor copy engine, from where it came in
sub('''__device__ __forceinline__ void mbar_arrive(uint32_t b) { asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0];" ::"r"(b) : "memory"); }
''','''__device__ __forceinline__ void tensor_store(const CUtensorMap *map, int x, int y, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0,{%1,%2}],[%3];" ::"l"(map), "r"(x), "r"(y), "r"(from) : "memory");
}
__device__ __forceinline__ void mbar_arrive(uint32_t b, uint32_t times = 1) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0],%1;" ::"r"(b), "r"(times) : "memory");
}
__device__ __forceinline__ void warpgroup_sync(int wg) { asm volatile("bar.sync %0,128;" ::"r"(2 + wg) : "memory"); }
''')
sub('''__device__ __forceinline__ void bulk_wait() { asm''','''__device__ __forceinline__ void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); } // the source may change
__device__ __forceinline__ void bulk_wait() { asm''')
sub('__device__ __forceinline__ void warpgroup_strip(const LarfbArgs &p, const size_t mat,','__device__ __forceinline__ void warpgroup_strip(const LarfbArgs &p, const StripMaps &maps, const size_t mat,')
sub('  float *dst = p.h + mat * n * n + (size_t)row0 * n + cbase;\n  const uint32_t *cmax = p.colmax + mat * n + cbase;\n  const uint32_t s = smem_addr(sm), stages','  const uint32_t *cmax = p.colmax + mat * n + cbase;\n  const uint32_t s = smem_addr(sm), stages')
i=t.index('      f(up ? chunks - 1 - v : v, stages + d * L::STAGE, [&] {'); j=t.index('      d = d + 1 == L::DEPTH ? 0 : d + 1;',i)
t=t[:i]+'''      f(up ? chunks - 1 - v : v, stages + d * L::STAGE, bars + (L::FREE - L::BARS) + 8 * d);
'''+t[j:]
sub('  auto pass = [&](bool up, auto &&f) {\n','  // chunks wg, wg + 2, .. (the last first, if `up`); f(chunk, stage, barrier that gives it back)\n  auto pass = [&](bool up, auto &&f) {\n')
sub("  pass(false, [&](int, uint32_t stage, auto &&done) {","  pass(false, [&](int, uint32_t stage, uint32_t free) {")
sub('''    wg_wait();
    done();
  });
''','''    wg_wait();
    FENCE
    __syncwarp();
    if (lane == 0) mbar_arrive(free);
  });
'''.replace('    FENCE\n','    fence_shared(); // C has been read\n' if 'fence' in OPT else ''))
i=t.index('  pass(true, [&](int t, uint32_t stage, auto &&done) {'); j=t.index('// A task: x = matrix |',i)
t=t[:i]+'''  // The new C takes the place of the old one and leaves from there; the stage goes back when the copy engine has read it, a chunk later.
  uint32_t leaving = 0;
  auto give_back = [&] {
    if (t128 == 0 && leaving) {
      bulk_wait_read();
      mbar_arrive(leaving, 4);
    }
  };
  pass(true, [&](int t, uint32_t stage, uint32_t free) {
    float d[32];
    UNROLL for (int e = 0; e < 32; e++) d[e] = 0.f;
    wg_fence();
    UNROLL for (int b = 0; b < KB; b++) multiply<false, TWO, TWO>(d, high[b], low[b], stage + b * 8192, stage + b * 8192 + 16384);
    wg_commit();
    give_back();
    char *c = sm + (stage - s);
    float2 x[8][2];
    UNROLL for (int nt = 0; nt < 8; nt++) {
      x[nt][0] = *(const float2 *)(c + even + nt * 1024);
      x[nt][1] = *(const float2 *)(c + odd + nt * 1024);
    }
    wg_wait();
    UNROLL for (int nt = 0; nt < 8; nt++)
      UNROLL for (int e = 0; e < 2; e++)
        *(float2 *)(c + (e ? odd : even) + nt * 1024) =
            make_float2(fmaf(us0, d[4 * nt + e], x[nt][e].x), fmaf(us1, d[4 * nt + 2 + e], x[nt][e].y));
    fence_shared();
    warpgroup_sync(wg);
    leaving = free;
    if (t128 == 0) {
      UNROLL for (int h = 0; h < 2; h++) tensor_store(&maps.h, cbase + 32 * h, (int)mat * n + row0 + 64 * t, stage + L::C + h * 8192);
      bulk_commit();
    }
  });
  give_back();
  if (t128 == 0) bulk_wait(); // written
}
'''+t[j:]
t=t.replace('warpgroup_strip<64>(p, task.mat','warpgroup_strip<64>(p, maps, task.mat').replace('warpgroup_strip<128>(p, task.mat','warpgroup_strip<128>(p, maps, task.mat')
