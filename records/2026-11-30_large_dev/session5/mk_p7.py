# maxima of the next panel's columns with its columns; report when the stores have had time; sums in messages of 16 bytes
sub('''__device__ __forceinline__ void cp_commit()''','''__device__ __forceinline__ void cp4(uint32_t dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit()''')
sub('bool &loaded, bool &waiting, bool &here) {','bool &loaded, bool &waiting, bool &here, bool &owed) {')
sub('''  // V and T of the panel before: in shared memory (`here`''','''  auto report = [&] { // the panel before is in memory for the workers; every CTA reports
    if (owed && tid == 224) add_release(p.done + mat, 1);
    owed = false;
  };
  if (!loaded) report();
  // V and T of the panel before: in shared memory (`here`''')
sub('''  if (tid < 64) {
    uint32_t b = __ldcg(p.colmax + mat * n + c0 + tid);
    sScale[tid] = column_scale(b);
    sUnscale[tid] = column_unscale(b);
  }
''','')
sub('''  auto load_c = [&](const float *from, int rows) { // RP rows of 64 columns, zeros from `rows` on
''','''  const uint32_t *maxima = (uint32_t *)sScale;
  auto load_c = [&](const float *from, int rows, int column) { // RP rows of 64 columns, zeros from `rows` on; their maxima
    if (tid < 64) cp4(smem_addr(maxima + tid), p.colmax + mat * n + column + tid);
''')
sub('  if (!loaded) load_c(src, m);','  if (!loaded) load_c(src, m, c0);')
sub('(size_t)c0 * n + c0 + 64, n - c0);','(size_t)c0 * n + c0 + 64, n - c0, c0 + 64);')
sub('''      const float sc = sScale[col];
''','''      const float sc = column_scale(maxima[col]);
''')
sub('''          acc[mt][nt][2 * h2 + e] = ((float *)(sm + P::CIN))[((nt * NW + w) * 8 + 2 * q + e) * P::LDC + col] * sc;
    }
''','''          acc[mt][nt][2 * h2 + e] = ((float *)(sm + P::CIN))[((nt * NW + w) * 8 + 2 * q + e) * P::LDC + col] * sc;
    }
  if (tid < 64) sUnscale[tid] = column_unscale(maxima[tid]);
  report(); // (the stores that it waits for have had time)
''')
i=t.index('  auto finish = [&](int k) {'); j=t.index('  int k = 0;\n#pragma unroll 1',i)
t=t[:i]+'''  bool owed = false;         // has the panel before not been reported yet?
  auto finish = [&] {        // the panel is in memory for its cluster and for the workers
    // a later panel of this cluster reads V and T from memory, or the careful way has used buffers of its own: all stores count
    if (!here) __threadfence();
    if ((threadIdx.x & 31) < 8) bulk_wait(); // V^T
    block_sync<256>();
    owed = true;
    if (here) cluster_meet();
    else cluster_sync();
  };
'''+t[j:]
t=t.replace('waiting, here);\n    finish(k);','waiting, here, owed);\n    finish();')
sub('''__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }''','''__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
}''')
sub('''    UNROLL for (int nt = 0; nt < 2; nt++)
      UNROLL for (int h = 0; h < 2; h++) {
        const int f = u * 64 + (g + 8 * h) * 4 + nt * 2 + (q >> 1), own = f / F;
        st_async2(map_rank(aXin + (rank * F + f % F) * 16 + (q & 1) * 8, own), d[nt][2 * h], d[nt][2 * h + 1], map_rank(xbar_in, own));
      }
''','''    const bool odd = q & 1;
    UNROLL for (int nt = 0; nt < 2; nt++) { // two lanes make whole float4, row g by the even one, row g + 8 by the odd one
      const float x = __shfl_xor_sync(~0u, odd ? d[nt][0] : d[nt][2], 1), y = __shfl_xor_sync(~0u, odd ? d[nt][1] : d[nt][3], 1);
      const int f = u * 64 + (g + 8 * odd) * 4 + nt * 2 + (q >> 1), own = f / F;
      st_async(map_rank(aXin + (rank * F + f % F) * 16, own), odd ? make_float4(x, y, d[nt][2], d[nt][3]) : make_float4(d[nt][0], d[nt][1], x, y),
               map_rank(xbar_in, own));
    }
''')
sub('a row of the blocks of gram64; a lane holds two of them.','a row of the blocks of gram64; a lane holds two of them.')
i=t.index('__device__ __forceinline__ void st_async2('); j=t.index('}\n',i)+2; t=t[:i]+t[j:]
