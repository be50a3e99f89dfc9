
// Left-looking Householder QR of a batch of n x n FP32 matrices, one cluster of C CTAs a matrix.
//
// DATA FLOW (panel k = columns 64k .. 64k+63; it stays in registers from load to store)
//
//    A, shared memory -> load (bulk copies while the last panel ends), scale columns by powers of two (their largest entry: one exchange over the cluster)
//       |
//    apply_block(j), j = 0 .. k-1 (larfb)     V_j by bulk copy, two stages, only this CTA's rows, by warpgroup
//       |    W^T  = C^T V_j      wgmma, every warpgroup over its own rows
//       |    W    summed over the warpgroups, sent to the CTA that owns these 16 columns, summed there
//       |    W'   = T_j' W       two fp16 terms each, by the owner, rounded to fp16, sent to all CTAs
//       |    C   -= V_j W'       wgmma into the panel's own registers
//       |
//    twice, 32 columns each (geqr2), repeated where the guard stops a pass early:
//       |    G = P'P             P as two fp16 terms (H, L = 2 (P - H)) in shared memory; exchange
//       |    G, top 32 x 32  ->  R, top of V, M        three warps, the same in every CTA
//       |    V = P M             wgmma, rounded to fp16: from here on V is exact. R to H
//       |    V'[V1, V2, C]       exchange (V to H meanwhile): tau = 2/v'v, V'V (for T), and W for the columns still open
//       |    C -= V (W T)        T of the pass by block inversion
//    larft: T by block inversion, beside the loads of the next panel; V to the workspace
//
// LAYOUT. A warpgroup holds its rows of the panel as C TRANSPOSED, in the layout of wgmma's accumulators: M = 64 columns
// (16 a warp), N = rows. With g = lane / 4, q = lane % 4, cg = warp % 4, of a 16-row piece (two tiles of 8 rows):
//
//      acc[chunk][tile * 4 + 2 * half + e]    column 32 * half + 8 * cg + g, row 4 q + 2 (tile % 2) + e
//
// half 0 is the sub-panel at work, half 1 the other (they change places after the first), so that all warps work on
// both. Rounded to fp16 the same registers are the A operand (64 columns x 16 rows) of every product over rows; no
// staging of C, no transposition. The order of rows inside 16 is free as long as V has the same: this one gives a
// thread four consecutive rows, hence 16-byte stores of H, which is kept by columns and returned as a transposed view.
//
// V lies in shared memory and in the workspace as 8 x 8 cores [reflector][row] of 128 bytes: K-major for C^T V (K = rows),
// MN-major for W'^T V^T (K = reflectors). One image serves both products.
//
// ROWS are dealt 16 at a time to the cluster's warpgroups, so that finished rows drop out of all of them alike.
//
// EXCHANGES use st.async on an mbarrier of the receiver, which takes about one message a cycle whatever its size:
// sum first, send 16 bytes at a time. Buffers are safe to overwrite either by dependence (in apply_block nobody can send
// block j+1 before everybody has read block j: see the order of waits) or by the cluster barrier in two halves: arrive
// when the inbox has been read, wait before the next send.
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
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}"
        : "=r"(done) : "r"(bar), "r"(phase) : "memory");
  }
}
DEVICE void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(bar) : "memory");
}
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

// ------------------------------------------------------------------ sizes

constexpr int PANEL = 64;             // columns of a panel = reflectors of a block = M of wgmma
constexpr int SUB = 32;               // columns factorised from one Gram matrix = lanes
constexpr int TILE_BYTES = 1024;      // V of 8 rows: 8 groups of 8 reflectors, 8 x 8 halves each
constexpr int CHUNK_BYTES = 4 * TILE_BYTES;
constexpr int MAX_SCALE_LOG2 = 6;     // columns are scaled to a largest entry of 2^6 .. 2^7
constexpr int T_BYTES = 20 * 512;     // -T': tiles of 16 x 16 on and under the diagonal as A operands, two fp16 terms
constexpr unsigned ALL = ~0u;
constexpr float ZERO_PIVOT = 1e-20f;

// row strides in floats
constexpr int LD_X = 33, LD_TOP = 36, LD_SHIFT = 36, LD_M = 40, LD_R = 33;

template <int C_, int G_, int CHUNKS_, int TERMS_>
struct Config {
  static constexpr int TERMS = TERMS_;          // fp16 terms of V, C and W'
  // The guard: pivot / column norm^2 under which the Gram matrix is not trusted, and the largest sum_k |p_k| |M_kj|. With
  // two terms the rounding of the Gram matrix (2^-22, magnified by up to AMPLIFIED^2 in R) must not be what is left.
  static constexpr float CANCELLED = TERMS == 1 ? 1e-5f : 1e-4f, AMPLIFIED = TERMS == 1 ? 300.f : 30.f;
  static constexpr int CHUNKS = CHUNKS_;        // a warp's rows: chunks of 32 rows (4 tiles of 8)
  static constexpr int C = C_;                  // CTAs of a cluster = of a matrix
  static constexpr int G = G_;                  // warpgroups of a CTA
  static constexpr int THREADS = 128 * G;
  static constexpr int UNITS = C * G;           // warpgroups of a matrix; rows are dealt to them 16 at a time
  static constexpr int ROWS = 32 * CHUNKS * UNITS;      // rows that fit
  static constexpr int STEP = CHUNKS == 3 ? 1 : CHUNKS / 4;       // finished rows are skipped in steps of so many chunks
  static constexpr int CHUNK_ROWS = 32 * UNITS; // rows of one chunk over the whole matrix
  static constexpr int OWNED = 4 / C;           // groups of 16 columns whose W a CTA sums
  static constexpr int SLAB = CHUNKS * CHUNK_BYTES;  // V of a warpgroup's rows
  static constexpr int STAGE = G * SLAB;
  static constexpr int V_BYTES = TERMS * STAGE;  // of a block, a CTA's share: high terms, low terms
  static constexpr int MAX3(int a, int b, int c) { return a > b ? (a > c ? a : c) : (b > c ? b : c); }
  static_assert(T_BYTES <= OWNED * 4096 + 8192, "T passes through the places of W and W'");
  static_assert(8 * OWNED <= 4 * G, "16 x 8 pieces of W': at most one a warp");
  // the inbox: what peers send, then room for the sums over the CTA's own warpgroups
  static constexpr int IN_W = OWNED * (C - 1) * 4096, IN_X = C * 4096, IN_PW = (C - 1) * 8192;
  // the inbox of a pass: the scratch of the recurrence or [W of the peers, W of the own warpgroups], then W and W' of the pass
  static constexpr int SCRATCH = 27 * 1024 + 512, W_BYTES = PANEL * LD_SHIFT * 4, IN_PASS = SCRATCH > IN_PW + G * 8192 ? SCRATCH : IN_PW + G * 8192;
  static constexpr int SHARE = (8 + G - 1) / G;  // groups of 8 reflectors whose sums over the warpgroups a warp makes
  static constexpr int SUMS = SHARE * (G - 1) * 512;  // what the other warpgroups hand to a warp for that
  static constexpr int INBOX = MAX3(IN_W + 4 * G * SUMS, IN_X + (G - 1) * 4096, IN_PASS + 2 * W_BYTES);
  // the next panel's entries, over both stages: [pair of 16-row pieces][half of the columns] as tensor copies lay them
  static constexpr int COPY = G * 16 * SUB * 4;
  static_assert(2 * CHUNKS * COPY == STAGE, "half of the pieces fill a stage");
  static constexpr int O_INBOX = 2 * STAGE;
  static constexpr int O_W = O_INBOX + INBOX;            // summed W as A operand of W'; S in the panel
  static constexpr int O_WOP = O_W + OWNED * 4096;       // -W' as A operand of the update; S in the panel
  static constexpr int O_TOP = O_WOP + 8192;             // top 32 x 32 of the sub-panel, [column][row]
  static constexpr int O_T1 = O_TOP + SUB * LD_TOP * 4;  // V'V of the first sub-panel
  static constexpr int O_WLOW = O_TOP;                   // low terms of -W', while neither of the two is in use
  static_assert(O_WLOW == O_WOP + 8192);
  static constexpr int O_TAU = O_T1 + SUB * LD_SHIFT * 4;
  static constexpr int O_UNSCALE = O_TAU + 256;
  static constexpr int O_MISC = O_UNSCALE + 256;         // m_scale[32], stop, barriers
  static constexpr int O_T = O_MISC + 384;               // T of the block that is being applied
  static constexpr int O_STATE = O_T + T_BYTES;     // k, s, done during the recurrence, by warp
  static constexpr int BYTES = O_STATE + THREADS / 32 * 16;
  // inside the inbox, once its sums are taken (the recurrence's scratch)
  // (x is written while the inbox is still read; x and m while peers send W of the next panel's first block)
  static constexpr int O_V = O_INBOX, O_R1 = O_V + SUB * LD_SHIFT * 4, O_WR = O_R1 + SUB * LD_SHIFT * 4, O_R = O_WR + SUB * LD_SHIFT * 4,
                       O_X = O_R + SUB * LD_R * 4, O_M = O_X + SUB * LD_TOP * 4,
                       O_INV = O_M + SUB * LD_M * 4, SCRATCH_END = O_INV + 384;
  static_assert(SCRATCH + 3 * 4096 <= INBOX, "three warps' registers beside the scratch");
  static_assert(SCRATCH_END <= O_INBOX + SCRATCH && O_X >= O_INBOX + IN_X && O_X >= O_INBOX + IN_W, "scratch fits the inbox");
  // inside stage 1 during the panel: H and L tiles; with two terms V's low terms take L's place once L is spent
  static constexpr int O_H = STAGE, O_L = STAGE + STAGE / 2;
  static constexpr int O_PW = O_INBOX + IN_PASS, O_PWP = O_PW + W_BYTES;
  static constexpr int O_PARTIAL = O_INBOX + IN_PW;  // W of a pass, by warpgroup
};

struct Lane {
  int thread, warp, lane, group, cg, g, q;  // warpgroup, its group of 16 columns, lane/4, lane%4
};
DEVICE Lane lane_of(int thread) {
  Lane me;
  me.thread = thread;
  me.lane = thread & 31;
  me.warp = thread >> 5;
  me.group = me.warp >> 2;
  me.cg = me.warp & 3;
  me.g = me.lane >> 2;
  me.q = me.lane & 3;
  return me;
}
template <class K>
using Acc = float[K::CHUNKS][16];  // [chunk][tile*4 + 2*(column+8) + row]

DEVICE uint32_t pack(float x, float y) { return bits(__floats2half2_rn(x, y)); }
DEVICE __half2 halves(uint32_t u) { return *reinterpret_cast<__half2*>(&u); }
DEVICE void split_fp16(float x, float y, uint32_t& hi, uint32_t& lo) {
  __half2 h = __floats2half2_rn(x, y);
  float2 f = __half22float2(h);
  hi = bits(h);
  lo = pack(x - f.x, y - f.y);
}
DEVICE float power_of_two(int e) { return __uint_as_float((uint32_t)(127 + e) << 23); }

DEVICE void add4(float4& w, float4 x) {
  w.x += x.x;
  w.y += x.y;
  w.z += x.z;
  w.w += x.w;
}

template <class K>
DEVICE int chunk_row(int chunk, int tile, int unit) {  // + 4 q + e: the row of a thread's element
  return ((2 * chunk + (tile >> 1)) * K::UNITS + unit) * 16 + (tile & 1) * 2;
}
// ------------------------------------------------------------------ applying an earlier block

// w += C^T V over the live chunks of this warpgroup's rows
template <class K>
DEVICE void multiply_by_v(float (&w)[32], Acc<K>& acc, uint32_t at16, int first) {
#pragma unroll
  for (int c = 0; c < K::CHUNKS; c++) {
    if (c >= first) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint32_t a[4];
#pragma unroll
        for (int z = 0; z < 4; z++) a[z] = pack(acc[c][h * 8 + (z >> 1) * 4 + (z & 1) * 2], acc[c][h * 8 + (z >> 1) * 4 + (z & 1) * 2 + 1]);
        wgmma_fence();
        wgmma<true>(w, a, descriptor(at16, c * CHUNK_BYTES + h * 2 * TILE_BYTES, TILE_BYTES, 128));
        wgmma_commit();
        wgmma_wait();  // more in flight would need more registers for operands: spills
      }
    }
  }
}
// The same with both terms: V's high terms lie in stage 0, its low terms in stage 1; `arrived` waits for two chunks
template <class K, class F>
DEVICE void multiply_two_terms(float (&w)[32], Acc<K>& acc, uint32_t at16, int first, F arrived) {
#pragma unroll
  for (int c = 0; c < K::CHUNKS; c++) {
    if (c % 2 == 0) arrived(c / 2);
    if (c >= first) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint32_t a[4], low[4];  // one after the other in the same registers: eight would spill
        auto entry = [&](int z) { return &acc[c][h * 8 + (z >> 1) * 4 + (z & 1) * 2]; };
        const uint32_t at = c * CHUNK_BYTES + h * 2 * TILE_BYTES;
#pragma unroll
        for (int z = 0; z < 4; z++) split_fp16(entry(z)[0], entry(z)[1], a[z], low[z]);
        wgmma_fence();
        wgmma<true>(w, a, descriptor(at16, at + K::STAGE, TILE_BYTES, 128));
        wgmma<true>(w, a, descriptor(at16, at, TILE_BYTES, 128));
        wgmma_commit();
        wgmma_wait();
        wgmma_fence();
        wgmma<true>(w, low, descriptor(at16, at, TILE_BYTES, 128));
        wgmma_commit();
        wgmma_wait();
      }
    }
  }
}
// C -= V W'; wop: -W' of this warp's 16 columns as cores of 8 columns x 8 reflectors
template <class K>
DEVICE void subtract_v_times_w(Acc<K>& acc, uint32_t wop, uint32_t at16, int first) {
  uint32_t a[4][4];
#pragma unroll
  for (int k = 0; k < 4; k++) load_matrices(wop + k * 512, a[k]);
  static_assert(K::CHUNKS == 4 && K::STEP == 1);
  auto b = [&](int c, int k) { return descriptor(at16, c * CHUNK_BYTES + k * 256, 128, TILE_BYTES); };
  wgmma_fence();
#pragma unroll
  for (int c = 0; c < K::CHUNKS; c += 2) {  // 64 rows a product where both chunks live: shorter ones would wait for each other
    if (first <= c) {
#pragma unroll
      for (int k = 0; k < 4; k++) wgmma_rows(a[k], b(c, k), acc[c], acc[c + 1]);
    } else if (first == c + 1) {
#pragma unroll
      for (int k = 0; k < 4; k++) wgmma_rows(a[k], b(c + 1, k), acc[c + 1]);
    }
  }
  wgmma_commit();
  wgmma_wait();
}

// The same with both terms; `spent`: these two chunks of V have been used
template <class K, class F>
DEVICE void subtract_two_terms(Acc<K>& acc, uint32_t wop, uint32_t at16, int first, F spent) {
  uint32_t hi[4][4], lo[4][4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    load_matrices(wop + k * 512, hi[k]);
    load_matrices(wop + k * 512 + K::O_WLOW - K::O_WOP, lo[k]);
  }
  auto b = [&](int c, int k) { return descriptor(at16, c * CHUNK_BYTES + k * 256, 128, TILE_BYTES); };
#pragma unroll
  for (int c = 0; c < K::CHUNKS; c += 2) {
    auto product = [&](auto&... chunks) {
      const int at = sizeof...(chunks) == 2 || c + 1 == K::CHUNKS ? c : c + 1;
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 4; k++) {
        wgmma_rows(lo[k], b(at, k), chunks...);
        wgmma_rows(hi[k], b(at, k) + (K::STAGE >> 4), chunks...);
        wgmma_rows(hi[k], b(at, k), chunks...);
      }
      wgmma_commit();
      wgmma_wait();
    };
    const int d = c + 1 < K::CHUNKS ? c + 1 : c;
    if (first <= c && d > c) product(acc[c], acc[d]);
    else if (first <= d) product(acc[d]);
    spent(c / 2);
  }
}


template <int MODE>
__global__ void __launch_bounds__(512, 1) micro(float* out, long long* clk, int reps, int first) {
  extern __shared__ __align__(1024) unsigned char sm[];
  using K = Config<2, 4, 4, 2>;
  for (int i = threadIdx.x; i < K::BYTES / 4; i += 512) reinterpret_cast<uint32_t*>(sm)[i] = 0x04000400u;
  fence_async();
  __syncthreads();
  Acc<K> acc;
  for (int c = 0; c < 4; c++) for (int i = 0; i < 16; i++) acc[c][i] = threadIdx.x * 1e-3f + i;
  const uint32_t base = shared_address(sm), at16 = uniform(operand_address(base + (threadIdx.x >> 7) * K::SLAB)), wop = base + K::O_WOP + (threadIdx.x >> 5 & 3) * 2048 + (threadIdx.x & 31) * 16;
  float total = 0.f;
  __syncthreads();
  long long t0 = clock64();
#pragma unroll 1
  for (int r = 0; r < reps; r++) {
    auto b = [&](int c, int k) { return descriptor(at16, c * CHUNK_BYTES + k * 256, 128, TILE_BYTES); };
    if constexpr (MODE < 10) {
      uint32_t hi[4][4], lo[4][4];
#pragma unroll
      for (int k = 0; k < 4; k++) { load_matrices(wop + k * 512, hi[k]); load_matrices(wop + k * 512 + 8192, lo[k]); }
      constexpr int W = MODE == 4 || MODE == 5 ? 4 : MODE == 2 || MODE == 3 ? 1 : 2;
#pragma unroll
      for (int c = 0; c < 4; c += W) {
        if (c >= first) {
        wgmma_fence();
        auto one = [&](const uint32_t (&a)[4], uint64_t d) {
          if constexpr (W == 1) wgmma_rows(a, d, acc[c]);
          if constexpr (W == 2) wgmma_rows(a, d, acc[c], acc[c + 1]);
          if constexpr (W == 4) wgmma_rows(a, d, acc[0], acc[1], acc[2], acc[3]);
          if (MODE & 1) { wgmma_commit(); wgmma_wait(); wgmma_fence(); }
        };
#pragma unroll
        for (int k = 0; k < 4; k++) { one(lo[k], b(c, k)); one(hi[k], b(c, k) + (K::STAGE >> 4)); one(hi[k], b(c, k)); }
        wgmma_commit();
        wgmma_wait();
        }
      }
    } else {
      float w[32];
#pragma unroll
      for (int i = 0; i < 32; i++) w[i] = 0.f;
#pragma unroll
      for (int c = 0; c < 4; c++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          uint32_t a[4], low[4];
          auto entry = [&](int z) { return &acc[c][h * 8 + (z >> 1) * 4 + (z & 1) * 2]; };
          const uint32_t at = c * CHUNK_BYTES + h * 2 * TILE_BYTES;
#pragma unroll
          for (int z = 0; z < 4; z++) split_fp16(entry(z)[0], entry(z)[1], a[z], low[z]);
          wgmma_fence();
          auto step = [&]() { if (MODE & 1) { wgmma_commit(); wgmma_wait(); wgmma_fence(); } };
          if (MODE == 12) { wgmma<true>(w, a, descriptor(at16, at, TILE_BYTES, 128)); wgmma_commit(); wgmma_wait(); continue; }
          wgmma<true>(w, a, descriptor(at16, at + K::STAGE, TILE_BYTES, 128)); step();
          wgmma<true>(w, a, descriptor(at16, at, TILE_BYTES, 128)); step();
          wgmma<true>(w, low, descriptor(at16, at, TILE_BYTES, 128));
          wgmma_commit(); wgmma_wait();
        }
#pragma unroll
      for (int i = 0; i < 32; i++) total += w[i];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) clk[blockIdx.x] = clock64() - t0;
  for (int c = 0; c < 4; c++) for (int i = 0; i < 16; i++) total += acc[c][i];
  out[blockIdx.x * 512 + threadIdx.x] = total;
}
}
using namespace qr1024;
extern "C" int run_micro(float* out, long long* clk, int reps, int first, int mode, int blocks) {
#define M(i) if (mode == i) { cudaFuncSetAttribute(micro<i>, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024); micro<i><<<blocks, 512, 227 * 1024>>>(out, clk, reps, first); return cudaGetLastError(); }
  M(0) M(1) M(2) M(3) M(4) M(5) M(10) M(11) M(12)
  return -1;
}
