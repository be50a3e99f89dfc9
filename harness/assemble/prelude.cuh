// What the families share: one function an instruction. No family's text repeats what stands here.
//
// NAMES in every family. A is n x n, FP32; a panel P is its next 16 to 64 columns; R, V, tau and T are LAPACK's; M makes
// V = P M; W = V'C. A warp's lane is (g, q) = (lane / 4, lane % 4), as tensor cores see it: an accumulator d of `mma`
// holds rows g and g + 8, columns 2q and 2q + 1 of a 16 x 8 tile. 8 x 8 tiles of halves are 128 contiguous bytes of shared
// memory: ldmatrix reads them plain or transposed, wgmma takes them as its cores without swizzle, so one image of V serves
// V'C and V W'.
//
// TWO TERMS. x = hi + lo, both FP16, keeps 22 bits of x (`split`). A product of two such numbers is taken as
// hi hi + hi lo + lo hi on tensor cores with FP32 sums. Columns are scaled by powers of two first, which is exact, so that
// neither term overflows.
//
// BARRIERS. Within a warp's neighbours: named barriers (bar.sync, 15 of them), on which a producer arrives without waiting.
// For what arrives by itself (bulk copies, stores from another CTA of the cluster): mbarriers, which count bytes; a wait
// names the parity of the phase it waits for. All of them are the light forms: a release or an acquire at the cluster's scope
// is a fence of the whole GPU (MEMBAR.GPU, CCTL.IVALL), and so is a proxy fence without a state space. What they guard is in
// shared memory, where a peer's stores are when its bytes are counted, or is read from L2.
//
// FEW INSTRUCTIONS. What bounds a panel is a serial chain that few warps run once: code is fetched as slowly as it is
// executed. Hence ROLL on the serial loops, and rank-4 steps in them; UNROLL only where registers are indexed.
#include <cstdint>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <type_traits>

#define DEVICE __device__ __forceinline__
#define NOINLINE __device__ __noinline__
#define UNROLL _Pragma("unroll")
#define ROLL _Pragma("unroll 1")

namespace qr {

// ---------------------------------------------------------------- numbers

// approximate to an ulp or two: where it matters a residual is taken
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
DEVICE float square_root(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float power_of_two(int e) { return __uint_as_float((uint32_t)(127 + e) << 23); }
DEVICE uint32_t bits(__half2 h) { return *reinterpret_cast<uint32_t*>(&h); }
DEVICE __half2 halves(uint32_t u) { return *reinterpret_cast<__half2*>(&u); }
DEVICE uint32_t pack(float x, float y) { return bits(__floats2half2_rn(x, y)); }
// x = hi + lo to about 22 bits, two numbers at a time
DEVICE void split(float x, float y, uint32_t& hi, uint32_t& lo) {
  __half2 h = __floats2half2_rn(x, y);
  float2 f = __half22float2(h);
  hi = bits(h);
  lo = pack(x - f.x, y - f.y);
}
DEVICE void add4(float4& w, float4 x) {
  w.x += x.x;
  w.y += x.y;
  w.z += x.z;
  w.w += x.w;
}

// ---------------------------------------------------------------- what the compiler may know

// The same value, but the compiler cannot know it: keeps it from computing hundreds of addresses ahead of a loop and
// spilling them (a function that spills gets its wgmma serialised).
DEVICE int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
// A value that is the same in all lanes, so that the compiler keeps what follows from it in uniform registers
DEVICE uint32_t uniform(uint32_t x) { return __shfl_sync(~0u, x, 0); }

// ---------------------------------------------------------------- shared memory

DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
// A place in shared memory is named by its address or by a pointer: Place is either
DEVICE uint32_t address(uint32_t a) { return a; }
DEVICE uint32_t address(const void* p) { return shared_address(p); }
template <class Place>
DEVICE float4 load_float4(Place a) {
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(address(a)) : "memory");
  return x;
}
template <class Place>
DEVICE void store_float4(Place a, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0],{%1,%2,%3,%4};" ::"r"(address(a)), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}
DEVICE void load_matrix(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
}
DEVICE void load_matrix_transposed(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
}
DEVICE void store_matrix(uint32_t a, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(a), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE void store_matrix(uint32_t a, const uint32_t (&r)[4]) { store_matrix(a, r[0], r[1], r[2], r[3]); }
DEVICE uint32_t transpose_8x8(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(y) : "r"(x));
  return y;
}

// ---------------------------------------------------------------- tensor cores

// d += A B by a warp: A 16 x 16 (rows), B 16 x 8 (columns), FP16 in, FP32 out
DEVICE void mma(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) { mma(d, a[0], a[1], a[2], a[3], b0, b1); }

// Hopper's product of a warpgroup. Address / 16 of an operand inside the CTA: within a cluster the upper bits name the CTA,
// and would run into the descriptor's next field.
DEVICE uint32_t operand_address(uint32_t address) { return (address & 0x3ffff) >> 4; }
// Descriptor of an operand in shared memory, no swizzle: 8 x 8 core matrices of 128 contiguous bytes; `lead` is the
// distance between cores along K, `stride` along N. at16: address / 16, uniform; offset in bytes.
DEVICE uint64_t descriptor(uint32_t at16, uint32_t offset, uint32_t lead, uint32_t stride) {
  return (uint64_t)(stride >> 4) << 32 | (at16 + (offset >> 4) + (lead >> 4 << 16));
}
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WARPGROUP_MMA 1
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING = 0>
DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }
// d += A B: A 64 x 16 from registers (a warp holds 16 rows), B 16 x 32 (or 64) from shared memory; B's cores are
// [n][k] where K_MAJOR, else [k][n].
#define PLACES4(x, i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3])
#define PLACES16(x, i) PLACES4(x, i), PLACES4(x, i + 4), PLACES4(x, i + 8), PLACES4(x, i + 12)
template <bool K_MAJOR>
DEVICE void wgmma(float (&d)[16], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19},%20,1,1,1,%21;"
      : PLACES16(d, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(K_MAJOR ? 0 : 1));
}
template <bool K_MAJOR>
DEVICE void wgmma(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31},{%32,%33,%34,%35},%36,1,1,1,%37;"
      : PLACES16(d, 0), PLACES16(d, 16) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(K_MAJOR ? 0 : 1));
}
// d += A B, B [k][n] with n = 32 or 64 rows: one chunk of the accumulators for every 32
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, float (&x0)[16]) { wgmma<false>(x0, a, b); }
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, float (&x0)[16], float (&x1)[16]) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31},{%32,%33,%34,%35},%36,1,1,1,1;"
      : PLACES16(x0, 0), PLACES16(x1, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
#else
// Chips without wgmma: the same product tile by tile with ldmatrix and mma.sync, from the same descriptor.
#define WARPGROUP_MMA 0
DEVICE void wgmma_fence() {}
DEVICE void wgmma_commit() {}
template <int PENDING = 0>
DEVICE void wgmma_wait() {}
template <bool K_MAJOR, int SIZE>
DEVICE void wgmma(float (&d)[SIZE], const uint32_t (&a)[4], uint64_t b) {
  const uint32_t lead = (uint32_t)(b >> 16 & 0x3fff) << 4, stride = (uint32_t)(b >> 32 & 0x3fff) << 4;
  const int lane = threadIdx.x & 31;  // 8 lanes address one core: (k 0, n t), (k 1, n t), (k 0, n t+1), (k 1, n t+1)
  const uint32_t at = ((uint32_t)(b & 0x3fff) << 4) + (lane >> 3 & 1) * lead + (lane >> 4) * stride + (lane & 7) * 16;
  UNROLL for (int t = 0; t < SIZE / 4; t += 2) {
    uint32_t r[4];
    if (K_MAJOR) load_matrix(r, at + t * stride);
    else load_matrix_transposed(r, at + t * stride);
    UNROLL for (int u = 0; u < 2; u++) mma(reinterpret_cast<float(&)[4]>(d[(t + u) * 4]), a, r[2 * u], r[2 * u + 1]);
  }
}
template <class... X>
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, X&... x) {
  ((wgmma<false>(x, a, b), b += 4096 >> 4), ...);
}
#endif
// The same for accumulators that are kept by tiles of 8 columns: the first 4 or 8 of them from `d` on
template <bool K_MAJOR, int TILES>
DEVICE void wgmma_tiles(float (*d)[4], const uint32_t (&a)[4], uint64_t b) {
  wgmma<K_MAJOR>(reinterpret_cast<float(&)[4 * TILES]>(d[0][0]), a, b);
}

// ---------------------------------------------------------------- barriers within a CTA

DEVICE void named_arrive(int id, int threads = 64) { asm volatile("bar.arrive %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void named_join(int id, int threads = 64) { asm volatile("bar.sync %0,%1;" ::"r"(id), "r"(threads) : "memory"); }

template <class Place>
DEVICE void barrier_init(Place bar, uint32_t count = 1) {
  asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(address(bar)), "r"(count) : "memory");
}
// the same for copies that this thread starts
template <class Place>
DEVICE void barrier_init_for_copies(Place bar) {
  asm volatile("mbarrier.init.shared.b64 [%0],1;" ::"r"(address(bar)) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// between barrier_init and the first use by a peer (behind a cluster barrier)
DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
template <class Place>
DEVICE void barrier_arrive(Place bar) { asm volatile("mbarrier.arrive.shared.b64 _,[%0];" ::"r"(address(bar)) : "memory"); }
// arrives, and announces so many bytes
template <class Place>
DEVICE void barrier_expect(Place bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;" ::"r"(address(bar)), "r"(bytes) : "memory");
}
// until the phase of this parity is complete
template <class Place>
DEVICE void barrier_wait(Place bar, uint32_t parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2; selp.u32 %0,1,0,p;}"
                 : "=r"(done) : "r"(address(bar)), "r"(parity) : "memory");
}

// ---------------------------------------------------------------- copies

// This thread's ordinary stores, before wgmma or copies read them: in shared memory, in global memory, or in both (which waits
// for what is on its way to H)
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void fence_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
DEVICE void fence_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }
// Bulk copies between global and shared memory, counted in bytes by an mbarrier on the way in
template <class Place, class Barrier>
DEVICE void bulk_load(Place to, const void* from, uint32_t bytes, Barrier bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(address(to)),
               "l"(from), "r"(bytes), "r"(address(bar)) : "memory");
}
// Out: nothing waits for a part before it is committed
template <class Place>
DEVICE void bulk_store_part(void* to, Place from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;" ::"l"(to), "r"(address(from)), "r"(bytes) : "memory");
}
DEVICE void bulk_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <class Place>
DEVICE void bulk_store(void* to, Place from, uint32_t bytes) {
  bulk_store_part(to, from, bytes);
  bulk_store_commit();
}
DEVICE void bulk_store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }  // they are in memory
DEVICE void bulk_store_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }  // their source is free
// A box of a tensor map in two dimensions
template <class Place, class Barrier>
DEVICE void tensor_load(Place to, const CUtensorMap* map, int column, int row, Barrier bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3}],[%4];" ::"r"(
                   address(to)), "l"(map), "r"(column), "r"(row), "r"(address(bar)) : "memory");
}
DEVICE void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// ---------------------------------------------------------------- clusters

DEVICE uint32_t cluster_rank() {
  uint32_t r;
  asm volatile("mov.u32 %0,%%cluster_ctarank;" : "=r"(r));
  return r;
}
// The cluster's barrier in two halves. Relaxed: it guards reads that have returned and barriers that barrier_init_fence orders.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// the same place in another CTA
template <class Place>
DEVICE uint32_t map_address(Place a, uint32_t rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(r) : "r"(address(a)), "r"(rank));
  return r;
}
// Stores to another CTA that its mbarrier counts by their bytes: no fence. An mbarrier takes about one message a cycle,
// whatever its size.
DEVICE void send(uint32_t to, float4 v, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0],{%1,%2,%3,%4},[%5];" ::"r"(to),
               "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(bar) : "memory");
}
DEVICE void send(uint32_t to, float2 v, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0],{%1,%2},[%3];" ::"r"(to), "f"(v.x),
               "f"(v.y), "r"(bar) : "memory");
}
DEVICE void send(uint32_t to, uint4 v, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0],{%1,%2,%3,%4},[%5];" ::"r"(to),
               "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(bar) : "memory");
}
DEVICE void send(uint32_t to, uint32_t v, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0],%1,[%2];" ::"r"(to), "r"(v), "r"(bar) : "memory");
}

// ---------------------------------------------------------------- grids

// Programmatic dependent launch: a grid may be set up while the one before it runs, but touches global memory only when
// that one is complete. Without the launch attribute both instructions do nothing.
DEVICE void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE void grid_release_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// ---------------------------------------------------------------- host

// The driver's function that makes tensor maps; null where it has none
inline auto tensor_map_encoder() {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {
    void* f = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &f, cudaEnableDefault, &found);
#endif
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(f) : nullptr;
  }();
  return encode;
}

}  // namespace qr
