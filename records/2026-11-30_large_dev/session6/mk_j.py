# two matrices share a cluster of 16 where a matrix has 8 CTAs (after c5/c6)
sub('''__device__ __forceinline__ uint32_t map_rank(uint32_t addr, uint32_t rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(r) : "r"(addr), "r"(rank));
''','''// (two matrices share a cluster of 16 where a matrix has 8 CTAs: see `panels`)
template <int C> __device__ __forceinline__ uint32_t map_rank(uint32_t addr, uint32_t rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(r) : "r"(addr), "r"(C < 16 ? rank | (blockIdx.x & 8) : rank));
''')
i=t.index('template <int C> __device__ __forceinline__ uint32_t map_rank'); i=t.index('}\n',i)
t=t[:i]+t[i:].replace('map_rank(','map_rank<C>(')
i=t.index('// guards reads that have returned, orders no stores'); j=t.index('__device__ __forceinline__ void mbar_init(',i); t=t[:i]+t[j:]
sub('''// All-reduce of 2048 floats''','''__device__ __forceinline__ void mbar_arrive_remote(uint32_t b) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%0];" ::"r"(b) : "memory");
}
__device__ __forceinline__ void mbar_wait_acquire(uint32_t b, uint32_t phase) {
  uint32_t ok;
  do {
    asm volatile("{\\n.reg .pred p;\\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],%2;\\nselp.u32 %0,1,0,p;\\n}"
                 : "=r"(ok)
                 : "r"(b), "r"(phase)
                 : "memory");
  } while (!ok);
}
// the C CTAs of a matrix meet; what they have stored is seen by all. `bar`: counts C
template <int C> __device__ __forceinline__ void group_sync(uint32_t bar, int &phase) {
  if (C == 16) {
    cluster_sync();
    return;
  }
  block_sync<256>();
  if (threadIdx.x < C) mbar_arrive_remote(map_rank<C>(bar, threadIdx.x));
  mbar_wait_acquire(bar, phase);
  phase ^= 1;
}
// All-reduce of 2048 floats''')
sub('  cluster_sync(); // the sums\' buffers lie where other things were\n','')
sub('''    here = false;
    rphase = careful''','''    here = false;
    group_sync<C>(bar_group, gphase); // the buffers of the sums lie where other things were
    rphase = careful''')
sub('int &nphase, bool &loaded','int &nphase, int &gphase, bool &loaded')
t=t.replace('rphase, nphase, loaded, waiting','rphase, nphase, gphase, loaded, waiting')
sub('bar_next = bar_in + 64;','bar_next = bar_in + 64, bar_group = bar_in + 72;')
sub('''  cluster_sync();
  int phase = 0, xphase = 0, rphase = 0, nphase = 0;
''','''  cluster_sync();
  if (slot >= p.matrices) return; // an odd number of matrices
  const uint32_t bar_group = smem_addr(sm + P::BARS + 72);
  int phase = 0, xphase = 0, rphase = 0, nphase = 0, gphase = 0;
''')
sub('''sums of the careful way in, in, out, out; rows of V from below
    for (int i = 0; i < 9; i++) mbar_init(smem_addr(sm + P::BARS) + 8 * i);
''','''sums of the careful way in, in, out, out; rows of V from below; all meet
    for (int i = 0; i < 10; i++) mbar_init(smem_addr(sm + P::BARS) + 8 * i, i < 9 ? 1 : C);
''')
sub('''    if (!here) cluster_sync();
    else if (TWO) cluster_meet();
''','''    if (!here || TWO) group_sync<C>(bar_group, gphase);
''')
sub('''  cluster_sync(); // nobody ends while others may still write to it
''','''  group_sync<C>(bar_group, gphase); // nobody ends while others may still write to it
''')
sub('''  const int *applied;
  int n, mat0;
};
__device__ __forceinline__ int load_acquire''','''  const int *applied;
  int n, mat0, matrices;
};
__device__ __forceinline__ int load_acquire''')
sub('made, applied, n, mat0};','made, applied, n, mat0, matrices};')
sub('''    if (C > 8) cudaFuncSetAttribute(k, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
''','''    cudaFuncSetAttribute(k, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
''')
sub('''  cfg.gridDim = dim3(matrices * C);
''','''  // A cluster of 16 fills most of a GPC. The SMs of a GPC fetch instructions through one cache, and a panel waits for instructions more than for
  // anything else: beside other panels it takes 47 000 cycles (of 256 rows a CTA), beside workers 56 000.
  cfg.gridDim = dim3((matrices * C + 15) / 16 * 16);
''')
sub('  at[0].val.clusterDim.x = C;\n','  at[0].val.clusterDim.x = 16;\n')
