# bulk stores of V^T, pivot rows without bank conflicts, H by whole 64-byte pieces
i=t.index('__device__ __forceinline__ void fence_shared()'); j=t.index('\n',i)+1; line=t[i:j]; t=t[:i]+t[j:]
sub('__device__ __forceinline__ void cp_commit()','''// shared to global memory by the copy engine
__device__ __forceinline__ void bulk_store(void *dst, uint32_t src, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;" ::"l"(dst), "r"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void bulk_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
'''+line+'__device__ __forceinline__ void cp_commit()')
sub('''    float *out = p.h + (mat * n + row + g) * n + cc + 2 * q;
    UNROLL for (int half = 0; half < 2; half++) {
      uint32_t v[4], vl[4] = {0u, 0u, 0u, 0u};
      ldsm4t(v, aVsm + ((half * 32 + lane) * LD + 8 * i) * 2);
      if (TWO) ldsm4t(vl, aVlow + ((half * 32 + lane) * LD + 8 * i) * 2);
      UNROLL for (int u = 0; u < 4; u++) *(float2 *)(out + half * 32 + 8 * u) = sum2(v[u], vl[u]);
    }
''','''    // a pair of 8 x 8 pieces gives a lane 4 neighbouring columns: columns 4q, 4q + 1 come with the first where q < 2, else with the second
    // (each piece has 8 different banks)
    float *out = p.h + (mat * n + row + g) * n + cc + 4 * q;
    const int from = (((lane >> 4) * 16 + (lane >> 1 & 3) * 4 + ((lane >> 3 & 1) ^ (lane >> 2 & 1)) * 2 + (lane & 1)) * LD + 8 * i) * 2;
    UNROLL for (int half = 0; half < 2; half++) {
      uint32_t v[4], vl[4] = {0u, 0u, 0u, 0u};
      ldsm4t(v, aVsm + half * 64 * LD + from);
      if (TWO) ldsm4t(vl, aVlow + half * 64 * LD + from);
      UNROLL for (int u = 0; u < 4; u += 2) {
        const float2 x = sum2(v[u], vl[u]), y = sum2(v[u + 1], vl[u + 1]);
        *(float4 *)(out + half * 32 + 8 * u) = q < 2 ? make_float4(x.x, x.y, y.x, y.y) : make_float4(y.x, y.y, x.x, x.y);
      }
    }
''')
sub('''      ROLL for (int f = tid; f < 64 * 32; f += NT) {
        const int j = f >> 5, i = (f & 31) * 2;
        const float x = lower(z, i, j), y = lower(z, i + 1, j);
''','''      ROLL for (int f = w; f < 64; f += NW) {
        const int j = (f & 15) * 4 + (lane >> 3), i = (f >> 4) * 16 + (lane & 7) * 2;
        const float x = lower(z, i, j), y = lower(z, i + 1, j);
''')
sub('''    }
    block_sync<NT>();
    if (loaded) { // the updates''','''    }
    fence_shared(); // V, for the copies
    block_sync<NT>();
    if (loaded) { // the updates''')
i=t.index('    { // V^T, whole lines, with the rows above the panel'); j=t.index('    // the CTA above needs 64 rows of V')
t=t[:i]+'''    if (w == 7) { // V^T with the rows above the panel: a pair of panels is applied as one block of 128
      const int rows = min(RP, m - (int)rank * RP);
      __half *out = p.vt + (mat * n + c0) * (size_t)n + rb + rank * RP;
      if (rows > 0)
        UNROLL for (int r = lane; r < 64; r += 32) {
          bulk_store(out + (size_t)r * n, aVsm + r * LD * 2, rows * 2);
          if (TWO) bulk_store(out + p.low + (size_t)r * n, aVlow + r * LD * 2, rows * 2);
        }
      bulk_commit();
    }
'''+t[j:]
sub('''      ROLL for (int f = tid; f < 64 * 16; f += NT) {
        const int i = f >> 4, c = (f & 15) * 4;
        float x[4];
        UNROLL for (int e = 0; e < 4; e++) {
          const int j = c + e;
          x[e] = i > j ? two_terms(lower(z, i, j)) : entry_r(z.r, i, j) * sUnscale[j];
        }
        *(float4 *)(p.h + (mat * n + c0 + i) * n + c0 + c) = make_float4(x[0], x[1], x[2], x[3]);
      }
''','''      ROLL for (int f = w; f < 128; f += NW) {
        const int i = (f >> 3) * 4 + (lane >> 3), j = (f & 7) * 8 + (lane & 7);
        p.h[(mat * n + c0 + i) * n + c0 + j] = i > j ? two_terms(lower(z, i, j)) : entry_r(z.r, i, j) * sUnscale[j];
      }
''')
sub('''__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
}''','''__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }''')
sub('''    if (!here) __threadfence();
    block_sync<256>(); // (the fence''','''    if (!here) __threadfence();
    if (threadIdx.x >= 224) bulk_wait(); // V^T
    block_sync<256>(); // (the fence''')
sub('''    if (threadIdx.x == 224) add_release(p.done + p.mat0 + slot, 1); // every CTA reports
    if (here) cluster_meet();
''','''    if (here) cluster_arrive();
    if (threadIdx.x == 224) add_release(p.done + p.mat0 + slot, 1); // every CTA reports
    if (here) cluster_wait();
''')
