#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cstdint>
#include <type_traits>

namespace qr1024 {
#define DEVICE __device__ __forceinline__

// ------------------------------------------------------------------ instructions

DEVICE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x));
  return y;
}
// 1 / x where r > 0, else 0; r may be known earlier than x
DEVICE float reciprocal_if_positive(float r, float x) {
  float y;
  asm("{\n.reg .pred p;\nsetp.gt.f32 p,%2,0f00000000;\nmov.f32 %0,0f00000000;\n@p rcp.approx.ftz.f32 %0,%1;\n}" : "=&f"(y) : "f"(x), "f"(r));
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
DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
DEVICE uint32_t bits(__half2 h) { return *reinterpret_cast<uint32_t*>(&h); }

// The same value, but the compiler cannot know it: keeps it from computing hundreds of addresses ahead of a loop and
// spilling them (a function that spills gets its wgmma serialised).
DEVICE int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// threadIdx.x, read anew: it need not stay in a register
DEVICE int thread_index() {
  int x;
  asm volatile("mov.u32 %0,%%tid.x;" : "=r"(x));
  return x;
}
DEVICE int block_index() {
  int x;
  asm volatile("mov.u32 %0,%%ctaid.x;" : "=r"(x));
  return x;
}
// Four words in shared memory and back: where the compiler would spill them, each thread for itself
DEVICE void save_words(uint32_t at, int a, int b, int c, int d) {
  asm volatile("st.shared.v4.b32 [%0],{%1,%2,%3,%4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEVICE void load_words(uint32_t at, int& a, int& b, int& c, int& d) {
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3},[%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
}

DEVICE void save_floats(uint32_t at, float a, float b, float c, float d) {
  asm volatile("st.shared.v4.f32 [%0],{%1,%2,%3,%4};" ::"r"(at), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
DEVICE void load_floats(uint32_t at, float& a, float& b, float& c, float& d) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "r"(at) : "memory");
}

// d += A B: A 16 x 16, B 16 x 8
DEVICE void mma_fp16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d += A B in 3xTF32's single term: A 16 x 8, B 8 x 8
DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A value that is the same in all lanes, so that the compiler keeps what follows from it in uniform registers
DEVICE uint32_t uniform(uint32_t x) { return __shfl_sync(~0u, x, 0); }
// Address / 16 inside the CTA: within a cluster the upper bits name the CTA, and would run into the descriptor's
// next field.
DEVICE uint32_t operand_address(uint32_t address) { return (address & 0x3ffff) >> 4; }
// Descriptor of an operand in shared memory, no swizzle: 8 x 8 core matrices of 128 contiguous bytes; `lead` is the
// distance between cores along K, `stride` along N. at16: address / 16, uniform; offset in bytes.
DEVICE uint64_t descriptor(uint32_t at16, uint32_t offset, uint32_t lead, uint32_t stride) {
  return (uint64_t)(stride >> 4) << 32 | (at16 + (offset >> 4) + (lead >> 4 << 16));
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING = 0>
DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }
// d += A B: A 64 x 16 from registers (a warp holds 16 rows), B 16 x 32 (or 64) from shared memory; B's cores are
// [n][k] where K_MAJOR, else [k][n].
template <bool K_MAJOR>
DEVICE void wgmma(float (&d)[16], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19},%20,1,1,1,%21;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(K_MAJOR ? 0 : 1));
}
template <bool K_MAJOR>
DEVICE void wgmma(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31},{%32,%33,%34,%35},%36,1,1,1,%37;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(K_MAJOR ? 0 : 1));
}
// d += A B, B [k][n] with n = 32 .. 128 rows: one chunk of the accumulators for every 32
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, float (&x0)[16]) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
      "},{%16,%17,%18,%19},%20,1,1,1,1;"
      : "+f"(x0[0]), "+f"(x0[1]), "+f"(x0[2]), "+f"(x0[3]), "+f"(x0[4]), "+f"(x0[5]), "+f"(x0[6]), "+f"(x0[7]), "+f"(x0[8]), "+f"(x0[9]), "+f"(x0[10]), "+f"(x0[11]), "+f"(x0[12]), "+f"(x0[13]), "+f"(x0[14]), "+f"(x0[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, float (&x0)[16], float (&x1)[16]) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
      "},{%32,%33,%34,%35},%36,1,1,1,1;"
      : "+f"(x0[0]), "+f"(x0[1]), "+f"(x0[2]), "+f"(x0[3]), "+f"(x0[4]), "+f"(x0[5]), "+f"(x0[6]), "+f"(x0[7]), "+f"(x0[8]), "+f"(x0[9]), "+f"(x0[10]), "+f"(x0[11]), "+f"(x0[12]), "+f"(x0[13]), "+f"(x0[14]), "+f"(x0[15]),
        "+f"(x1[0]), "+f"(x1[1]), "+f"(x1[2]), "+f"(x1[3]), "+f"(x1[4]), "+f"(x1[5]), "+f"(x1[6]), "+f"(x1[7]), "+f"(x1[8]), "+f"(x1[9]), "+f"(x1[10]), "+f"(x1[11]), "+f"(x1[12]), "+f"(x1[13]), "+f"(x1[14]), "+f"(x1[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, float (&x0)[16], float (&x1)[16], float (&x2)[16]) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
      "},{%48,%49,%50,%51},%52,1,1,1,1;"
      : "+f"(x0[0]), "+f"(x0[1]), "+f"(x0[2]), "+f"(x0[3]), "+f"(x0[4]), "+f"(x0[5]), "+f"(x0[6]), "+f"(x0[7]), "+f"(x0[8]), "+f"(x0[9]), "+f"(x0[10]), "+f"(x0[11]), "+f"(x0[12]), "+f"(x0[13]), "+f"(x0[14]), "+f"(x0[15]),
        "+f"(x1[0]), "+f"(x1[1]), "+f"(x1[2]), "+f"(x1[3]), "+f"(x1[4]), "+f"(x1[5]), "+f"(x1[6]), "+f"(x1[7]), "+f"(x1[8]), "+f"(x1[9]), "+f"(x1[10]), "+f"(x1[11]), "+f"(x1[12]), "+f"(x1[13]), "+f"(x1[14]), "+f"(x1[15]),
        "+f"(x2[0]), "+f"(x2[1]), "+f"(x2[2]), "+f"(x2[3]), "+f"(x2[4]), "+f"(x2[5]), "+f"(x2[6]), "+f"(x2[7]), "+f"(x2[8]), "+f"(x2[9]), "+f"(x2[10]), "+f"(x2[11]), "+f"(x2[12]), "+f"(x2[13]), "+f"(x2[14]), "+f"(x2[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, float (&x0)[16], float (&x1)[16], float (&x2)[16], float (&x3)[16]) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
      "},{%64,%65,%66,%67},%68,1,1,1,1;"
      : "+f"(x0[0]), "+f"(x0[1]), "+f"(x0[2]), "+f"(x0[3]), "+f"(x0[4]), "+f"(x0[5]), "+f"(x0[6]), "+f"(x0[7]), "+f"(x0[8]), "+f"(x0[9]), "+f"(x0[10]), "+f"(x0[11]), "+f"(x0[12]), "+f"(x0[13]), "+f"(x0[14]), "+f"(x0[15]),
        "+f"(x1[0]), "+f"(x1[1]), "+f"(x1[2]), "+f"(x1[3]), "+f"(x1[4]), "+f"(x1[5]), "+f"(x1[6]), "+f"(x1[7]), "+f"(x1[8]), "+f"(x1[9]), "+f"(x1[10]), "+f"(x1[11]), "+f"(x1[12]), "+f"(x1[13]), "+f"(x1[14]), "+f"(x1[15]),
        "+f"(x2[0]), "+f"(x2[1]), "+f"(x2[2]), "+f"(x2[3]), "+f"(x2[4]), "+f"(x2[5]), "+f"(x2[6]), "+f"(x2[7]), "+f"(x2[8]), "+f"(x2[9]), "+f"(x2[10]), "+f"(x2[11]), "+f"(x2[12]), "+f"(x2[13]), "+f"(x2[14]), "+f"(x2[15]),
        "+f"(x3[0]), "+f"(x3[1]), "+f"(x3[2]), "+f"(x3[3]), "+f"(x3[4]), "+f"(x3[5]), "+f"(x3[6]), "+f"(x3[7]), "+f"(x3[8]), "+f"(x3[9]), "+f"(x3[10]), "+f"(x3[11]), "+f"(x3[12]), "+f"(x3[13]), "+f"(x3[14]), "+f"(x3[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
#else
// Chips without wgmma: the same product tile by tile with ldmatrix and mma.sync, from the same descriptor.
DEVICE void wgmma_fence() {}
DEVICE void wgmma_commit() {}
template <int PENDING = 0>
DEVICE void wgmma_wait() {}
template <bool K_MAJOR, int SIZE>
DEVICE void wgmma(float (&d)[SIZE], const uint32_t (&a)[4], uint64_t b) {
  const uint32_t lead = (uint32_t)(b >> 16 & 0x3fff) << 4, stride = (uint32_t)(b >> 32 & 0x3fff) << 4;
  const int lane = threadIdx.x & 31;  // 8 lanes address one core: (k 0, n t), (k 1, n t), (k 0, n t+1), (k 1, n t+1)
  const uint32_t at = ((uint32_t)(b & 0x3fff) << 4) + (lane >> 3 & 1) * lead + (lane >> 4) * stride + (lane & 7) * 16;
#pragma unroll
  for (int t = 0; t < SIZE / 4; t += 2) {
    uint32_t r[4];
    if (K_MAJOR)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at + t * stride) : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at + t * stride) : "memory");
#pragma unroll
    for (int u = 0; u < 2; u++)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
          : "+f"(d[(t + u) * 4]), "+f"(d[(t + u) * 4 + 1]), "+f"(d[(t + u) * 4 + 2]), "+f"(d[(t + u) * 4 + 3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(r[2 * u]), "r"(r[2 * u + 1]));
  }
}
template <class... X>
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, X&... x) {
  ((wgmma<false>(x, a, b), b += 4096 >> 4), ...);
}
#endif

// Four 8 x 8 matrices of halves, a thread's words (row lane/4, columns 2 (lane%4)) to the rows that lanes 8i .. 8i+7 name
DEVICE void store_matrices(uint32_t row_at, const uint32_t (&x)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(row_at), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
}

// Two, transposed, to the rows that lanes 0 .. 15 name
DEVICE void store_transposed(uint32_t row_at, uint32_t x, uint32_t y) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0],{%1,%2};" ::"r"(row_at), "r"(x), "r"(y) : "memory");
}
// Four of them, from the rows that the lanes name
DEVICE void load_matrices(uint32_t row_at, uint32_t (&x)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(row_at) : "memory");
}
DEVICE void load_if(bool on, uint32_t at, uint32_t (&x)[4]) {  // x stays as it is where not `on`
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p,%5,0;\n@p ld.shared.v4.b32 {%0,%1,%2,%3},[%4];\n}" : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]) : "r"(at), "r"((int)on));
}
DEVICE float4 load_float4(uint32_t at) {
  float4 x;
  load_floats(at, x.x, x.y, x.z, x.w);
  return x;
}

// Makes this thread's ordinary stores to shared memory visible to wgmma and to bulk copies. Without the state space
// it would wait for all stores of the thread to global memory (MEMBAR.GPU); `all` does.
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void fence_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }

DEVICE void named_arrive(int id, int threads = 64) { asm volatile("bar.arrive %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void named_join(int id, int threads = 64) { asm volatile("bar.sync %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE float load_once(const float* p) {  // past L1
  float x;
  asm("ld.global.nc.L1::no_allocate.f32 %0,[%1];" : "=f"(x) : "l"(p));
  return x;
}
DEVICE void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// The cluster: rank, barrier in two halves, address of the same place in another CTA, stores that arrive on a barrier
DEVICE uint32_t cluster_rank() {
  uint32_t r;
  asm volatile("mov.u32 %0,%%cluster_ctarank;" : "=r"(r));
  return r;
}
// relaxed: what the barrier guards are reads that have returned; a release would be a fence of the whole GPU
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE uint32_t map_address(uint32_t a, uint32_t rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(rank));
  return r;
}
DEVICE void send(uint32_t to, float4 v, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0],{%1,%2,%3,%4},[%5];" ::"r"(to),
               "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(bar) : "memory");
}
DEVICE void send(uint32_t to, float2 v, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0],{%1,%2},[%3];" ::"r"(to), "f"(v.x),
               "f"(v.y), "r"(bar) : "memory");
}
DEVICE void send(uint32_t to, int v, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0],%1,[%2];" ::"r"(to), "r"(v), "r"(bar)
               : "memory");
}
DEVICE void barrier_init(uint32_t bar, uint32_t count = 1) {
  asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(bar), "r"(count) : "memory");
}
DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void barrier_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;" ::"r"(bar), "r"(bytes) : "memory");
}
// in two steps, where many threads announce their own bytes: expect_more by each, then one arrival
DEVICE void barrier_expect_more(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0],%1;" ::"r"(bar), "r"(bytes) : "memory");
}
DEVICE void barrier_arrive(uint32_t bar) { asm volatile("mbarrier.arrive.shared.b64 _,[%0];" ::"r"(bar) : "memory"); }
DEVICE void barrier_wait(uint32_t bar, uint32_t phase) {
#ifdef TESTWAIT
#define WAIT_WORD "mbarrier.test_wait"
#else
#define WAIT_WORD "mbarrier.try_wait"
#endif
  uint32_t done = 0;
#ifdef BOUNDED_SPIN
  int spins = 0;
#endif
  while (!done) {
    asm volatile(
        "{\n.reg .pred p;\n" WAIT_WORD ".parity.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}"
        : "=r"(done) : "r"(bar), "r"(phase) : "memory");
#ifdef BOUNDED_SPIN
    if (++spins > BOUNDED_SPIN) asm volatile("trap;");
#endif
  }
}
DEVICE void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(bar) : "memory");
}
DEVICE void bulk_prefetch(const void* p, uint32_t bytes) { asm volatile("cp.async.bulk.prefetch.L2.global [%0],%1;" ::"l"(p), "r"(bytes) : "memory"); }
// 32 columns from `column` on of the rows that panel_map arranges, from 16-row piece `piece` on
DEVICE void panel_copy(uint32_t to, const CUtensorMap& map, int column, int piece, uint32_t bar) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3,%3,%3,%4}],[%5];" ::"r"(to),
               "l"(&map), "r"(column), "r"(0), "r"(piece), "r"(bar) : "memory");
}
DEVICE void panel_prefetch(const CUtensorMap& map, int column, int piece) {
  asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0,{%1,%2,%2,%2,%3}];" ::"l"(&map), "r"(column), "r"(0), "r"(piece) : "memory");
}
DEVICE void bulk_store(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;\ncp.async.bulk.commit_group;" ::"l"(to),
               "r"(from), "r"(bytes) : "memory");
}
DEVICE void bulk_store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }  // the source may be overwritten
DEVICE void bulk_store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
