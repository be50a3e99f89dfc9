#define DEVICE __device__ __forceinline__
#define NOINLINE __device__ __noinline__

// ---------------------------------------------------------------- instructions

DEVICE float bits_float(uint32_t u) { return __uint_as_float(u); }
DEVICE uint32_t float_bits(float x) { return __float_as_uint(x); }
DEVICE uint32_t pack_half2(float x, float y) {
  __half2 h = __floats2half2_rn(x, y);
  return *reinterpret_cast<uint32_t*>(&h);
}
DEVICE float2 unpack_half2(uint32_t u) { return __half22float2(*reinterpret_cast<__half2*>(&u)); }
DEVICE uint32_t twice(uint32_t u) {
  __half2 h = __hadd2(*reinterpret_cast<__half2*>(&u), *reinterpret_cast<__half2*>(&u));
  return *reinterpret_cast<uint32_t*>(&h);
}
DEVICE uint32_t times_half2(uint32_t u, uint32_t v) {
  __half2 h = __hmul2(*reinterpret_cast<__half2*>(&u), *reinterpret_cast<__half2*>(&v));
  return *reinterpret_cast<uint32_t*>(&h);
}
DEVICE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float reciprocal_sqrt(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
// d += A B, A 16 x 16 (row), B 16 x 8 (col), fp16 in, fp32 out
DEVICE void mma_fp16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// the same with K = 8: A 16 x 8, B 8 x 8
DEVICE void mma_fp16_k8(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b));
}
DEVICE void load_matrix(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
DEVICE void load_matrix_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
DEVICE void store_matrix(uint32_t address, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]),
               "r"(r[3]) : "memory");
}
DEVICE uint32_t transpose_8x8(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(y) : "r"(x));
  return y;
}
DEVICE float shfl(float x, int lane) { return __shfl_sync(~0u, x, lane); }
DEVICE float shfl_xor(float x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
DEVICE float largest(float x) { return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(x))); }  // x >= 0
DEVICE uint32_t ballot(bool p) { return __ballot_sync(~0u, p); }
DEVICE void sync_warp() { __syncwarp(); }
DEVICE void sync_all() { __syncthreads(); }
DEVICE void bar_sync(int id, int threads) { asm volatile("bar.sync %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void bar_arrive(int id, int threads) { asm volatile("bar.arrive %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
// A is read once and H written once: out of the way of V in L2.
DEVICE float load_once(const float* p) { return __ldcs(p); }
DEVICE void store_once2(float* p, float2 x) { __stcs(reinterpret_cast<float2*>(p), x); }
DEVICE uint32_t load_word(const uint32_t* p) { return *reinterpret_cast<const volatile uint32_t*>(p); }
// Bulk copies between global and shared memory, counted in bytes by an mbarrier on the way in.
DEVICE void barrier_init(unsigned long long* b) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0],1;" ::"r"(shared_address(b)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
DEVICE void barrier_expect(unsigned long long* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}
DEVICE void barrier_wait(unsigned long long* b, uint32_t parity) {
  uint32_t done = 0;
#ifdef SPIN_LIMIT
  for (int spin = 0; !done; spin++) {
    if (spin > SPIN_LIMIT) __trap();
#else
  while (!done) {
#endif
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.u32 %0,1,0,p;}"
        : "=r"(done) : "r"(shared_address(b)), "r"(parity) : "memory");
  }
}
// Without the state space this is a fence of everything, H's stores included.
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Between ordinary stores to global memory and a bulk copy that reads them: rare.
DEVICE void fence_all() { asm volatile("fence.proxy.async;" ::: "memory"); }
DEVICE float two_over(float x) {  // 2/x to an ulp
  const float y = reciprocal(x);
  return 2.f * fmaf(fmaf(-x, y, 1.f), y, y);
}
DEVICE void bulk_load(void* to, const void* from, int bytes, unsigned long long* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
                   shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(b)) : "memory");
}
DEVICE void bulk_store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;" ::"l"(to), "r"(shared_address(from)),
               "r"(bytes) : "memory");
}
typedef CUtensorMap TensorMap;
DEVICE void tensor_load(void* to, const TensorMap* map, int column, int row, unsigned long long* b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3}],[%4];" ::"r"(
                   shared_address(to)), "l"(map), "r"(column), "r"(row), "r"(shared_address(b)) : "memory");
}
DEVICE void tensor_prefetch(const TensorMap* map, int column, int row) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0,{%1,%2}];" ::"l"(map), "r"(column), "r"(row) : "memory");
}
// Low terms of V: 16 tiles of 4 groups of reflectors.
DEVICE void tensor_load_low(void* to, const TensorMap* map, int tile, int group, unsigned long long* b) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3,%4}],[%5];" ::"r"(
                   shared_address(to)), "l"(map), "r"(0), "r"(tile), "r"(group), "r"(shared_address(b)) : "memory");
}
DEVICE void tensor_store_low(const TensorMap* map, const void* from, int tile, int group) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0,{%1,%2,%3}],[%4];" ::"l"(map), "r"(0), "r"(tile),
               "r"(group), "r"(shared_address(from)) : "memory");
}
DEVICE void bulk_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void bulk_store_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
DEVICE void bulk_store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

DEVICE void atomic_min(int* p, int x) { atomicMin(p, x); }
DEVICE int lowest_bit(uint32_t x) { return __ffs((int)x) - 1; }
DEVICE void atomic_max(uint32_t* p, uint32_t x) { atomicMax(p, x); }
DEVICE void prefetch_line(const float* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

DEVICE uint32_t first_lane(uint32_t x) { return __shfl_sync(~0u, x, 0); }

// Hopper's warpgroup products: four warps, 64 x N x 16, A from registers (the layout of mma's A, 16 rows a warp), B from
// shared memory in 8 x 8 tiles of 128 bytes without swizzle. `k_stride`, `n_stride`: bytes between tiles along K and N.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(NO_WGMMA)
#define WARPGROUP_MMA 1
#else
#define WARPGROUP_MMA 0
#endif
#if WARPGROUP_MMA
// The lower word of a descriptor (the upper one is a constant: n_stride / 16). Made once and the same in all lanes, so that it
// can stay in a uniform register: a wgmma does not wait for its descriptor then. Offsets count in 16 bytes.
DEVICE uint32_t tile_descriptor(uint32_t address, uint32_t k_stride) {
  return first_lane((address >> 4 & 0x3fff) | (k_stride >> 4) << 16);
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
#define ACC4(x) "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
// d (8 tiles of 8 columns) += A B; TRANSPOSED: B's tiles are stored with N contiguous
template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_64(float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], float (&d4)[4], float (&d5)[4],
                     float (&d6)[4], float (&d7)[4], const uint32_t (&a)[4], uint32_t b) {
  asm volatile(
      "{.reg .b64 d; mov.b64 d,{%36,%37};"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31},{%32,%33,%34,%35},d,1,1,1,%38;}"
      : ACC4(d0), ACC4(d1), ACC4(d2), ACC4(d3), ACC4(d4), ACC4(d5), ACC4(d6), ACC4(d7)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(N_STRIDE >> 4), "n"(TRANSPOSED));
}
template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_32(float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], const uint32_t (&a)[4], uint32_t b) {
  asm volatile(
      "{.reg .b64 d; mov.b64 d,{%20,%21};"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19},d,1,1,1,%22;}"
      : ACC4(d0), ACC4(d1), ACC4(d2), ACC4(d3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(N_STRIDE >> 4), "n"(TRANSPOSED));
}
#endif

