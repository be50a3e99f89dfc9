#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v122 n1024 both operands of the Gram matrix from shared memory: v129 with fewer instructions before the recurrence, two terms without spills.

Algorithm  panels of 64 columns, held in registers from load to store, rows dealt 16 at a time to 8 warpgroups of 2 CTAs
           (n > 1024: 16 of 4);
           larfb of the earlier blocks (W summed and W' = T'W distributed over the cluster's shared memory), then twice
           geqr2 of 32 columns: Gram matrix (wgmma) -> recurrence (three warps) -> V = P M (wgmma), then larft
Precision  one term (n > TWO_TERMS_TO): V rounded to fp16 and then exact: tau = 2/v'v of the rounded v, so H is orthogonal to
           fp32. larfb: C and W' one fp16 term, fp32 accumulation; T' W in two fp16 terms; inside the panel two terms.
           Two terms: V = hi + lo in fp16, and H holds exactly that; every product takes hi lo + lo hi + hi hi: residuals
           of the FP32 class (columnwise under 1)
Shapes     513 <= n <= 1536, any batch; everything else: torch.geqrf
Parent     v129_n1024_registers_kept
Result     see records/
Bound by   one term: v99. Two terms: three times the products of larfb and twice its traffic, and V of a block cannot come
           before the block before it has left the place

What is new:
  Gram     cores of H and L by turns in one tile, so that [H; L]'H takes both operands from shared memory, without ldmatrix
  larfb    C -= V W' loads all of its operands before the first product
  two terms  the panel's products chunk by chunk through one function, H's address by Config: forms for which ptxas neither moves
           accumulators nor spills (n <= 768: 13 % faster)

One source, compiled for one term and for two (FP16_TERMS), side by side. TWO_TERMS_TO = 1536 makes the file one of the FP32
class. What two terms add:
  V     its low term lies in stage 1 once H and L are spent, and leaves for the workspace a sub-panel at a time
  larfb both stages hold one block, high terms in stage 0, low terms in stage 1; a warpgroup asks for the next block's
        rows, 64 at a time, as soon as it has used those of this block
  W'    its low terms lie over the top of the sub-panel and T1, which are not in use then
  guard tighter: growth 15 and pivot 1e-4 instead of 100 and 1e-5
  n     up to 768 a warpgroup holds three chunks of rows instead of four

Guard. A pass over 32 columns stops before column j where its pivot cancelled (pivot < CANCELLED |p_j|^2) or where
sum_k |p_k| |M_kj| > AMPLIFIED, both exact in every CTA; the columns before j are applied and a new pass starts with a new
Gram matrix. The first column always passes, so at worst a pass is one column (zero column: tau = 0, v = 0).
"""
import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch
from task import input_t, output_t

MIN_N, MAX_N = 513, 1536  # larger n: more rows than a cluster holds
TWO_TERMS_TO = 999  # one term leaves a factor residual over 10 at n < 1000 (band: 14.7 at 513, 11.2 at 960). A file of the FP32 class: 1536

CUDA = r"""
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
//       |    G = P'P             P as two fp16 terms (H, L = P - H) in shared memory; exchange
//       |    G, top 32 x 32  ->  R, top of V, M        three warps, the same in every CTA
//       |    V = P M             wgmma, rounded to fp16: from here on V is exact. R to H
//       |    V'[V1, V2, C]       exchange (V to H meanwhile): tau = 2/v'v, V'V (for T), and W for the columns still open
//       |    C -= V (W T)        T of the pass by blocks
//    larft: T by blocks, beside the loads of the next panel; V to the workspace
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
// A warpgroup g's groups of eight reflectors lie in the order r ^ 2 g: W's two groups whose sums over the warpgroups it makes
// are then the first in its accumulators (registers cannot be indexed by g).
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
// The same with A from shared memory, its cores [m][k]
DEVICE void wgmma_shared(float (&d)[16], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},%16,%17,1,1,1,0,0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a), "l"(b));
}
// d += A B, B [k][n] with n = 32 or 64 rows: one chunk of the accumulators for every 32
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
DEVICE void load_matrices(uint32_t row_at, uint32_t (&x)[4]);
DEVICE void wgmma_shared(float (&d)[16], uint64_t a, uint64_t b) {
  const int lane = threadIdx.x & 31;
  uint32_t x[4];
  load_matrices(((uint32_t)(a & 0x3fff) << 4) + ((threadIdx.x >> 5 & 3) * 2 + (lane >> 3 & 1)) * ((uint32_t)(a >> 32 & 0x3fff) << 4) + (lane >> 4) * ((uint32_t)(a >> 16 & 0x3fff) << 4) + (lane & 7) * 16, x);
  wgmma<true>(d, x, b);
}
template <class... X>
DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, X&... x) {
  ((wgmma<false>(x, a, b), b += 4 * (b >> 32 & 0x3fff)), ...);  // four tiles further
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
// it would wait for all stores of the thread to global memory (MEMBAR.GPU).
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

DEVICE void named_arrive(int id, int threads = 64) { asm volatile("bar.arrive %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void named_join(int id, int threads = 64) { asm volatile("bar.sync %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void copy_word(uint32_t to, const float* from, bool on) {  // 0 where not `on`
  asm volatile("cp.async.ca.shared.global [%0],[%1],4,%2;" ::"r"(to), "l"(from), "r"(on ? 4 : 0) : "memory");
}
DEVICE void copies_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }
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
constexpr int LD_X = 36, LD_TOP = 36, LD_SHIFT = 36, LD_M = 40, LD_R = 33;

template <int C_, int CHUNKS_, int TERMS_>
struct Config {
  static constexpr int TERMS = TERMS_;          // fp16 terms of V, C and W'
  // The guard: pivot / column norm^2 under which the Gram matrix is not trusted, and the largest sum_k |p_k| |M_kj|. With
  // two terms the rounding of the Gram matrix (2^-22, magnified by up to AMPLIFIED^2 in R) must not be what is left.
  static constexpr float CANCELLED = TERMS == 1 ? 1e-5f : 1e-4f, AMPLIFIED = TERMS == 1 ? 100.f : 15.f;
  static constexpr int CHUNKS = CHUNKS_;        // a warp's rows: chunks of 32 rows (4 tiles of 8)
  static constexpr int C = C_;                  // CTAs of a cluster = of a matrix
  static constexpr int G = 4;                   // warpgroups of a CTA
  static constexpr int THREADS = 128 * G;
  static constexpr int UNITS = C * G;           // warpgroups of a matrix; rows are dealt to them 16 at a time
  static constexpr int ROWS = 32 * CHUNKS * UNITS;      // rows that fit
  static constexpr int CHUNK_ROWS = 32 * UNITS; // rows of one chunk over the whole matrix
  static constexpr int OWNED = 4 / C;           // groups of 16 columns whose W a CTA sums
  static constexpr int SLAB = CHUNKS * CHUNK_BYTES;  // V of a warpgroup's rows
  static constexpr int STAGE = G * SLAB;
  static constexpr int V_BYTES = TERMS * STAGE;  // of a block, a CTA's share: high terms, low terms
  static constexpr int MAX3(int a, int b, int c) { return a > b ? (a > c ? a : c) : (b > c ? b : c); }
  static_assert(T_BYTES <= OWNED * 4096 + 8192, "T passes through the places of W and W'");
  // the inbox: what peers send, then room for the sums over the CTA's own warpgroups
  static constexpr int IN_W = OWNED * (C - 1) * 4096, IN_X = C * 4096, IN_PW = (C - 1) * 8192;
  // the inbox of a pass: the scratch of the recurrence or [W of the peers, W of the own warpgroups], then W and W' of the pass
  static constexpr int SCRATCH = 27 * 1024 + 512, W_BYTES = PANEL * LD_SHIFT * 4, IN_PASS = SCRATCH > IN_PW + G * 8192 ? SCRATCH : IN_PW + G * 8192;
  static constexpr int INBOX = MAX3(IN_W + 2 * (G - 1) * THREADS * 16, IN_X + (G - 1) * 4096, IN_PASS + 2 * W_BYTES);
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
  // three warps' registers, beside the scratch and beside the sums of the Gram matrix
  static constexpr int O_KEPT = O_INBOX + (SCRATCH > IN_X + (G - 1) * 4096 ? SCRATCH : IN_X + (G - 1) * 4096);
  static_assert(O_KEPT + 3 * CHUNKS * 2048 <= O_W, "three warps' registers fit the inbox");
  static_assert(SCRATCH_END <= O_INBOX + SCRATCH && O_X >= O_INBOX + IN_X && O_X >= O_INBOX + IN_W, "scratch fits the inbox");
  // inside stage 1 during the panel: tiles of 8 rows, cores of H and L by turns; with two terms V's low terms lie over half of them once they are spent
  static constexpr int O_H = STAGE, O_L = O_H + 128, O_LOW = STAGE + STAGE / 2;
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
  for (int c = K::CHUNKS - 1; c >= 0; c--) {  // the last chunk is always live
    if (c == K::CHUNKS - 1 || c >= first) {
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
    if (c + 1 == K::CHUNKS || c >= first) {
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
DEVICE void subtract_v_times_w(Acc<K>& acc, uint32_t wop, uint32_t at16, int first, int group) {
  uint32_t a[4][4];
  auto load = [&](int k) { load_matrices(wop + (k ^ group) * 512, a[k]); };
  load(0);
  load(1);
  load(2);
  load(3);
  auto b = [&](int c, int k) { return descriptor(at16, c * CHUNK_BYTES + k * 256, 128, TILE_BYTES); };
  wgmma_fence();
#pragma unroll
  for (int c = K::CHUNKS - 2; c > -2; c -= 2) {  // 64 rows a product where both chunks live: shorter ones would wait for each other
    if (c >= 0 && first <= c) {
#pragma unroll
      for (int k = 0; k < 4; k++) {
        wgmma_rows(a[k], b(c, k), acc[c < 0 ? 0 : c], acc[c + 1]);
      }
    } else if (c == K::CHUNKS - 2 || first == c + 1) {
#pragma unroll
      for (int k = 0; k < 4; k++) {
        wgmma_rows(a[k], b(c + 1, k), acc[c + 1]);
      }
    }
  }
  wgmma_commit();
  wgmma_wait();
}

// The same with both terms; `spent`: these two chunks of V have been used
template <class K, class F>
DEVICE void subtract_two_terms(Acc<K>& acc, uint32_t wop, uint32_t at16, int first, int group, F spent) {
  uint32_t hi[4][4], lo[4][4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    load_matrices(wop + (k ^ group) * 512, hi[k]);
    load_matrices(wop + (k ^ group) * 512 + K::O_WLOW - K::O_WOP, lo[k]);
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
    else if (d + 1 == K::CHUNKS || first <= d) product(acc[d]);  // the last chunk is always live
    spent(c / 2);
  }
}

struct Args {
  const float* a;
  float* h;    // column-major: h[column * ld + row], ld even and > n if n is odd
  float* tau;
  unsigned char* v;  // [matrix][block][rank] V_BYTES
  uint4* t;          // [matrix][rank][block] T_BYTES
  int n, ld, staged;  // staged: panels come by load_panel
  int zero;           // 0, but the compiler cannot know it
};

// Barriers in shared memory: what has arrived. The parity to wait for follows from the loop counters: a variable for it
// would be spilled. Block j of panel k is the turn k (k - 1) / 2 + j: an even turn takes stage 0. PANEL_BAR completes
// once for the scales and twice a pass. FULL_BARS: V of a turn, by warpgroup and stage (two terms: and half of the chunks).
enum { A_BAR, T_BAR, INBOX_BAR, WOP_BAR, PANEL_BAR, FULL_BARS };
DEVICE int turn_of(int k, int j) { return (int)((uint32_t)(k * (k - 1)) >> 1) + j; }
template <class K>
DEVICE uint32_t barrier_at(uint32_t base, int i) {
  return base + K::O_MISC + 192 + 8 * i;
}
template <class K>
DEVICE void wait_for(uint32_t base, int i, uint32_t parity) {
  barrier_wait(barrier_at<K>(base, i), parity);
}

template <class K>
DEVICE unsigned char* v_block(const Args& p, int block, int j) {
  const int panels = (opaque(p.n) + PANEL - 1) / PANEL;
  return p.v + (size_t)(uint32_t)((block / K::C * panels + j) * K::C + block % K::C) * K::V_BYTES;
}
DEVICE uint4* t_block(const Args& p, int block, int j) {  // every CTA keeps its own copy
  return p.t + (size_t)(uint32_t)(block * ((opaque(p.n) + PANEL - 1) / PANEL) + j) * (T_BYTES / 16);
}
DEVICE int t_tile(int mt, int kk) { return (mt * (mt + 1) / 2 + kk) * 1024; }  // rows 16 mt.., columns 16 kk.. of T', kk <= mt: high terms, low terms
// Copies i, i + 1 .. end - 1 of the 4 K::CHUNKS that bring the next panel over both stages: 32 columns of this CTA's rows in one
// 16-row place of all warpgroups, from a warp each. The order of rows and the swizzle are those of panel_map: rows with bits
// [piece][x1][q][x0] for row 4q + 2 x1 + x0, so that the lanes' reads do not collide. The caller arrives on A_BAR once
// all have been issued.
template <class K>
DEVICE void load_panel(const Args& p, const CUtensorMap& map, uint32_t base, int i, int end, int top, uint32_t rank, int thread) {
  const uint32_t bar = barrier_at<K>(base, A_BAR);
  if (thread % 32 == 0 && thread < 32 * (end - i)) {
    const int half = i + (thread >> 5) & 1, pair = i + (thread >> 5) >> 1;
    barrier_expect_more(bar, K::COPY);
    panel_copy(base + (pair * 2 + half) * K::COPY, map, top + SUB * half, (block_index() / K::C * (2 * K::CHUNKS) + pair) * K::UNITS + rank * K::G, bar);
  }
}
template <class K>
DEVICE void load_t(const Args& p, uint32_t base, int j) {  // one thread
  const uint32_t bar = barrier_at<K>(base, T_BAR);
  barrier_expect(bar, T_BYTES);
  bulk_load(base + K::O_T, t_block(p, block_index(), j), T_BYTES, bar);
}
template <class K>
DEVICE int first_chunk(int j) { return j * PANEL / K::CHUNK_ROWS; }
// The warp of each warpgroup whose first lane copies V: one that does not sum W
template <class K>
DEVICE int copier(uint32_t rank) { return (rank * K::OWNED) ^ 3; }
template <class K>
DEVICE bool copies_t(const Lane& me, uint32_t rank) { return me.group == 0 && me.cg == copier<K>(rank) && me.lane == 0; }
// V_j of a warpgroup's rows into the turn's stage; one thread
template <class K>
DEVICE void load_slab(const Args& p, uint32_t base, int k, int j, int group) {
  const int stage = turn_of(k, j) & 1, at = group * K::SLAB + first_chunk<K>(j) * CHUNK_BYTES, bytes = K::SLAB - first_chunk<K>(j) * CHUNK_BYTES;
  const uint32_t bar = barrier_at<K>(base, FULL_BARS + 2 * group + stage);
  barrier_expect(bar, bytes);
  bulk_load(base + stage * K::STAGE + at, v_block<K>(p, block_index(), j) + at, bytes, bar);
}

// Two terms: both of two chunks of a warpgroup's rows; a turn without live rows among them completes its barrier at once
template <class K>
DEVICE void load_half_slab(const Args& p, uint32_t base, int j, int group, int half) {
  const int first = max(first_chunk<K>(j), 2 * half), bytes = max(min(2 * half + 2, K::CHUNKS) - first, 0) * CHUNK_BYTES, at = group * K::SLAB + first * CHUNK_BYTES;
  const uint32_t bar = barrier_at<K>(base, FULL_BARS + 2 * group + half);
  barrier_expect(bar, 2 * bytes);
  if (bytes) {
    const unsigned char* from = v_block<K>(p, block_index(), j) + at;
    bulk_load(base + at, from, bytes, bar);
    bulk_load(base + K::STAGE + at, from + K::STAGE, bytes, bar);
  }
}

// C = (I - V_j T_j' V_j') C. The parts of W^T = C^T V are summed over the CTA's warpgroups and sent to the CTA that owns
// their columns; the owner sums, multiplies by T and sends -W' to all CTAs. What can be done early is: T' waits in
// registers, the copies of V and T are issued by threads that would wait.
template <class K>
DEVICE void apply_block(Acc<K>& acc, const Args& p, unsigned char* sm, int& j, int& blocks) {
  Lane me = lane_of(thread_index());
  uint32_t base = opaque(shared_address(sm)), rank = cluster_rank();
  auto locate = [&]() {  // anew, so that little has to live across the products
    me = lane_of(thread_index());
    base = opaque(shared_address(sm));
    rank = cluster_rank();
  };
  const uint32_t parity = K::TERMS == 2 ? uniform(turn_of(blocks, j) & 1) : 0;  // one vector register less than `turn`
  auto turn = [&]() { return K::TERMS == 2 ? (int)parity : turn_of(opaque(blocks), j); };
  auto v_at = [&](int stage) { return uniform(operand_address(base + stage * K::STAGE + me.group * K::SLAB)); };
  uint32_t at16;
  int first;
  {
    const int t = turn();
    at16 = v_at(K::TERMS == 2 ? 0 : t & 1);
    first = uniform(first_chunk<K>(j));
    if (K::TERMS == 1) wait_for<K>(base, FULL_BARS + 2 * me.group + (t & 1), t >> 1 & 1);
  }
  uint32_t t_hi[4][4], t_lo[4][4];  // -T' of this warp's 16 reflectors
  {
    float w[32];
#pragma unroll
    for (int i = 0; i < 32; i++) w[i] = 0.f;
    if constexpr (K::TERMS == 1) multiply_by_v<K>(w, acc, at16, first);
    else multiply_two_terms<K>(w, acc, at16, first, [&](int half) {
      wait_for<K>(opaque(shared_address(sm)), FULL_BARS + 2 * (thread_index() >> 7) + half, turn() & 1);
    });
    locate();
    me = lane_of(thread_index() | (__float_as_int(w[0]) & p.zero));  // addresses not before the product is there: they would be spilled
    // sum over the CTA's warpgroups, a share of the reflectors in each of the G warps that hold the same columns; the
    // sums go to the columns' owner, or are at home
    const int owner = me.cg / K::OWNED, column = me.cg % K::OWNED;
    float4 sum[2] = {make_float4(w[0], w[1], w[2], w[3]), make_float4(w[4], w[5], w[6], w[7])};  // the own share comes first
#pragma unroll
    for (int i = 1; i < K::G; i++) {
      float4* to = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_W) + (i - 1) * 2 * K::THREADS + (me.thread ^ i * 128);  // warpgroup ^ i
      to[0] = make_float4(w[8 * i], w[8 * i + 1], w[8 * i + 2], w[8 * i + 3]);
      to[K::THREADS] = make_float4(w[8 * i + 4], w[8 * i + 5], w[8 * i + 6], w[8 * i + 7]);
    }
    named_join(1 + me.cg, 32 * K::G);
    if (j == 0 && copies_t<K>(me, rank)) bulk_store_wait_read();  // T has left the place of W and W': now peers may go on
    const float4* partial = reinterpret_cast<const float4*>(sm + K::O_INBOX + K::IN_W) + me.thread;
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int u = 0; u < K::G - 1; u++) add4(sum[i], partial[(2 * u + i) * K::THREADS]);
      if (owner != (int)rank) {
        const int slot = column * (K::C - 1) + (K::C == 2 ? 0 : rank < owner ? rank : rank - 1);
        send(map_address(base + K::O_INBOX + slot * 4096 + (me.group * 2 + i) * 512 + me.lane * 16, owner), sum[i], map_address(barrier_at<K>(base, INBOX_BAR), owner));
      }
    }
    // a thread that sends, not sums: the next block into the stage of the last one, which its warpgroup has left
    const bool more = K::TERMS == 1 && j > 0 && j + 1 < blocks;  // two terms: both stages hold this block
    if (me.cg == copier<K>(rank)) {
      if (more) named_join(5 + me.group, 128);
      if (me.lane == 0) {
        if (me.group == 0) {
          barrier_expect(barrier_at<K>(base, INBOX_BAR), K::IN_W);
          barrier_expect(barrier_at<K>(base, WOP_BAR), (4 - K::OWNED) * 2048 * K::TERMS);
        }
        if (more) load_slab<K>(p, base, blocks, j + 1, me.group);
      }
    } else if (more) named_arrive(5 + me.group, 128);
    wait_for<K>(base, T_BAR, turn() & 1);
    {
      const int mt = (me.cg + me.group) & 3;
      const uint32_t t_at = base + K::O_T + t_tile(mt, 0) + me.lane * 16;
#pragma unroll
      for (int kk = 0; kk < 4; kk++) {  // T' is lower triangular
#pragma unroll
        for (int z = 0; z < 4; z++) t_hi[kk][z] = t_lo[kk][z] = 0u;
        load_if(kk <= mt, t_at + kk * 1024, t_hi[kk]);
        load_if(kk <= mt, t_at + kk * 1024 + 512, t_lo[kk]);
      }
    }
    if (owner == (int)rank) {
      wait_for<K>(base, INBOX_BAR, turn() & 1);
      const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + (column * (K::C - 1) * 8 + me.group * 2) * 32 + me.lane;
      uint32_t x[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int r = 0; r < K::C - 1; r++) add4(sum[i], in[r * 256 + i * 32]);
        split_fp16(sum[i].x, sum[i].y, x[i][0], x[i][1]);
        split_fp16(sum[i].z, sum[i].w, x[i][2], x[i][3]);
      }
      // as B operands of T'W for 8 columns each: 16 reflectors' high terms, then their low terms
      uint4* to = reinterpret_cast<uint4*>(sm + K::O_W) + (column * 8 + me.group) * 32 + me.lane;
      to[0] = make_uint4(x[0][0], x[1][0], x[0][1], x[1][1]);
      to[128] = make_uint4(x[0][2], x[1][2], x[0][3], x[1][3]);
    }
  }
  locate();
  const int mt = (me.cg + me.group) & 3, nt = me.group;  // 16 reflectors of W' of 8 columns a warp
  __syncthreads();
  if (K::C == 2 || nt < 2 * K::OWNED) {
    float d_main[4] = {0, 0, 0, 0}, d_rest[4] = {0, 0, 0, 0}, d_also[4] = {0, 0, 0, 0};
    const uint4* w_at = reinterpret_cast<const uint4*>(sm + K::O_W) + nt * 128 + me.lane;
#pragma unroll
    for (int kk = 0; kk < 4; kk++) {
      if (kk <= mt) {
        const uint4 x = w_at[kk * 32];
        mma_fp16(d_main, t_hi[kk], x.x, x.y);
        mma_fp16(d_rest, t_lo[kk], x.x, x.y);
        mma_fp16(d_also, t_hi[kk], x.z, x.w);
      }
    }
#pragma unroll
    for (int z = 0; z < 4; z++) d_main[z] += d_rest[z] + d_also[z];
    const uint32_t at = base + K::O_WOP + ((rank * K::OWNED + (nt >> 1)) * 4 + mt) * 512 + ((nt & 1) + (me.lane >> 3 & 1) * 2) * 128 + (me.lane & 7) * 16;
    uint32_t from = at;
    if constexpr (K::TERMS == 1) {
      store_transposed(at, pack(d_main[0], d_main[1]), pack(d_main[2], d_main[3]));
    } else {
      uint32_t hi[2], lo[2];
      split_fp16(d_main[0], d_main[1], hi[0], lo[0]);
      split_fp16(d_main[2], d_main[3], hi[1], lo[1]);
      store_transposed(at, hi[0], hi[1]);
      store_transposed(at + K::O_WLOW - K::O_WOP, lo[0], lo[1]);
      if (me.lane >= 16) from = at + K::O_WLOW - K::O_WOP;  // the other half of the lanes sends these
    }
    __syncwarp();
    if (K::TERMS == 2 || me.lane < 16) {
      const float4 x = load_float4(from);
#pragma unroll
      for (int r = 1; r < K::C; r++) {
        const uint32_t peer = (rank + r) % K::C;
        send(map_address(from, peer), x, map_address(barrier_at<K>(base, WOP_BAR), peer));
      }
    }
  }
  __syncthreads();
  if (copies_t<K>(me, rank) && j + 1 < blocks) {
    if (j + 2 == blocks) bulk_store_wait();  // T of the last block
    load_t<K>(p, base, j + 1);
  }
  locate();
  at16 = v_at(K::TERMS == 2 ? 0 : turn() & 1);
  first = uniform(first_chunk<K>(opaque(j)));
  if (me.cg / K::OWNED != (int)rank) wait_for<K>(base, WOP_BAR, turn() & 1);  // else this CTA has made them
  const uint32_t wop = base + K::O_WOP + me.cg * 2048 + me.lane * 16;
  if constexpr (K::TERMS == 1) subtract_v_times_w<K>(acc, wop, at16, first, me.group);
  else subtract_two_terms<K>(acc, wop, at16, first, me.group, [&](int half) {
    if (j + 1 < blocks) {
      named_join(5 + me.group, 128);  // all four warps have used them
      if (me.cg == copier<K>(rank) && me.lane == 0) load_half_slab<K>(p, base, j + 1, me.group, half);
    }
  });
}

// ------------------------------------------------------------------ the recurrence: three warps in a pipeline
//
// From the Gram matrix G = P'P and the top A of P to R, the top of V, and M with V = P M below the top:
//   warp 0   G = |R|'|R|                    Cholesky, no signs needed
//   warp 1   A - R = V_top W                elimination without pivoting; row i's sign is chosen when alpha_i is known,
//                                           so that W_ii = alpha_i - beta_i does not cancel
//   warp 2   M = W^-1
// A lane owns a column and keeps its unfinished rows in registers, row i at index 0: a rolled loop cannot index
// registers by i, and unrolled 32 times the code is bound by instruction fetch. Four rows a step: the 4 x 4 diagonal
// block is factorised by every lane alike, for which one trip through shared memory serves four rows, and this serial
// chain runs beside the update of the rows further down.

struct Scratch {
  float *x, *top, *v, *r1, *w, *r, *m, *inverse, *threshold, *g_diagonal, *a_diagonal;
  int* stop;
};
struct Quad {
  float e[4];
};
DEVICE Quad load4(const float* p) {
  const float4 x = *reinterpret_cast<const float4*>(p);
  return Quad{{x.x, x.y, x.z, x.w}};
}
// Rows 4q .. 4q+3 move up by four and lose sum_u x_u y_u; x: four rows of stride LD_SHIFT
DEVICE void update_quad(float (&a)[SUB], int q, const float* x, const float (&y)[4]) {
  const Quad x0 = load4(x + 4 * q), x1 = load4(x + LD_SHIFT + 4 * q), x2 = load4(x + 2 * LD_SHIFT + 4 * q), x3 = load4(x + 3 * LD_SHIFT + 4 * q);
#pragma unroll
  for (int e = 0; e < 4; e++) {
    float t = fmaf(-x0.e[e], y[0], a[4 * q + e]);
    t = fmaf(-x1.e[e], y[1], t);
    t = fmaf(-x2.e[e], y[2], t);
    a[4 * q - 4 + e] = fmaf(-x3.e[e], y[3], t);
  }
}

// Stops where a pivot cancels.
DEVICE void warp_cholesky(const Scratch& z, int lane, int done, float cancelled) {
  float g[SUB];
#pragma unroll
  for (int r = 0; r < SUB; r += 4) {
    const Quad x = load4(z.x + lane * LD_X + r), y = load4(z.m + lane * LD_X + r);
#pragma unroll
    for (int e = 0; e < 4; e++) g[r + e] = x.e[e] + y.e[e];
  }
  const float g0 = 2.f * z.x[lane * (LD_X + 1)];
  z.threshold[lane] = fmaxf(cancelled * g0, ZERO_PIVOT);
  int stop = SUB;
  float rs[4], r01, r02, r03, r12, r13, r23;
  auto save_diagonal = [&](int i) {
    if ((unsigned)(lane - i) < 4) *reinterpret_cast<float4*>(z.g_diagonal + (lane - i) * 4) = make_float4(g[0], g[1], g[2], g[3]);
  };
  // 0 for a zero column. What follows a cancelled pivot is garbage that nobody reads: the pass stops there.
  auto inverse_root = [&](int column, float pivot, float threshold) {
    const bool good = pivot > threshold;
    if (!good && (unsigned)(column - done) < (unsigned)(stop - done)) stop = column;
    return reciprocal_sqrt(fmaxf(pivot, 1e-30f)) * (good ? 1.f : 0.f);  // the comparison beside the root, not before it
  };
  auto factor = [&](int i, float first, const Quad& d0, const Quad& d1, const Quad& d2, const Quad& d3, const Quad& th) {
    rs[0] = inverse_root(i, first, th.e[0]);
    r01 = d1.e[0] * rs[0], r02 = d2.e[0] * rs[0], r03 = d3.e[0] * rs[0];
    rs[1] = inverse_root(i + 1, fmaf(-r01, r01, d1.e[1]), th.e[1]);
    r12 = fmaf(-r01, r02, d2.e[1]) * rs[1], r13 = fmaf(-r01, r03, d3.e[1]) * rs[1];
    rs[2] = inverse_root(i + 2, fmaf(-r12, r12, fmaf(-r02, r02, d2.e[2])), th.e[2]);
    r23 = fmaf(-r12, r13, fmaf(-r02, r03, d3.e[2])) * rs[2];
    rs[3] = inverse_root(i + 3, fmaf(-r23, r23, fmaf(-r13, r13, fmaf(-r03, r03, d3.e[3]))), th.e[3]);
  };
  save_diagonal(0);
  __syncwarp();
  factor(0, z.g_diagonal[0], load4(z.g_diagonal), load4(z.g_diagonal + 4), load4(z.g_diagonal + 8), load4(z.g_diagonal + 12), load4(z.threshold));
  auto block = [&](auto LEN, int i) {
    constexpr int L = decltype(LEN)::value;
    float r[4];
    r[0] = g[0] * rs[0];
    r[1] = fmaf(-r01, r[0], g[1]) * rs[1];
    r[2] = fmaf(-r12, r[1], fmaf(-r02, r[0], g[2])) * rs[2];
    r[3] = fmaf(-r23, r[2], fmaf(-r13, r[1], fmaf(-r03, r[0], g[3]))) * rs[3];
    float* rows = z.r1 + i * LD_SHIFT;
#pragma unroll
    for (int u = 0; u < 4; u++) rows[u * LD_SHIFT + lane] = r[u];
    __syncwarp();
    named_arrive(1 + i / 4);
    update_quad(g, 1, rows + i, r);
    save_diagonal(i + 4);
    const float first = __shfl_sync(ALL, g[0], i + 4);  // the first pivot sooner than through shared memory
    __syncwarp();
    const Quad d0 = load4(z.g_diagonal), d1 = load4(z.g_diagonal + 4), d2 = load4(z.g_diagonal + 8), d3 = load4(z.g_diagonal + 12), th = load4(z.threshold + i + 4);
    factor(i + 4, first, d0, d1, d2, d3, th);
#pragma unroll
    for (int q = 2; q < L / 4; q++) update_quad(g, q, rows + i, r);
  };
#pragma unroll 1
  for (int i = 0; i < SUB / 2; i += 4) block(std::integral_constant<int, SUB>(), i);
#pragma unroll 1
  for (int i = SUB / 2; i < SUB; i += 4) block(std::integral_constant<int, SUB / 2>(), i);
  const unsigned nonzero = __ballot_sync(ALL, lane >= done && g0 > ZERO_PIVOT);
  if (stop == done) stop = nonzero ? done + 1 : SUB;  // a zero column goes alone with tau = 0; all zero: finished
  if (lane == 0) *z.stop = stop;
}

DEVICE void warp_top(const Scratch& z, int lane) {
  float a[SUB];
#pragma unroll
  for (int r = 0; r < SUB / 4; r++) {
    const Quad x = load4(z.top + lane * LD_TOP + 4 * r);
#pragma unroll
    for (int e = 0; e < 4; e++) a[4 * r + e] = x.e[e];
  }
  bool good[4];  // not a zero column; from R's diagonal, so known early
  float iv[4], sign[4], row_r[4], l10, l20, l30, l21, l31, l32, w01, w02, w03, w12, w13, w23;
  auto save_diagonal = [&](int i) {
    if ((unsigned)(lane - i) < 4) *reinterpret_cast<float4*>(z.a_diagonal + (lane - i) * 4) = make_float4(a[0], a[1], a[2], a[3]);
  };
  auto pivot = [&](int u, float alpha, float r) {  // minus the sign of R_ii, and 1 / (alpha - beta), 0 for a zero column
    good[u] = r > 0.f;
    sign[u] = copysignf(1.f, alpha);
    iv[u] = reciprocal_if_positive(r, alpha + copysignf(r, alpha));
  };
  auto multiplier = [&](int u, float x, float r) { return good[u] ? fmaf(sign[u], r, x) : 0.f; };
  // d_v: column v of the diagonal block, r_u: row u of |R|
  auto factor = [&](float alpha, const Quad& d0, const Quad& d1, const Quad& d2, const Quad& d3, const Quad& r0, const Quad& r1, const Quad& r2, const Quad& r3) {
    pivot(0, alpha, r0.e[0]);
    w01 = multiplier(0, d1.e[0], r0.e[1]), w02 = multiplier(0, d2.e[0], r0.e[2]), w03 = multiplier(0, d3.e[0], r0.e[3]);
    l10 = d0.e[1] * iv[0], l20 = d0.e[2] * iv[0], l30 = d0.e[3] * iv[0];
    pivot(1, fmaf(-l10, w01, d1.e[1]), r1.e[1]);
    w12 = multiplier(1, fmaf(-l10, w02, d2.e[1]), r1.e[2]), w13 = multiplier(1, fmaf(-l10, w03, d3.e[1]), r1.e[3]);
    l21 = fmaf(-l20, w01, d1.e[2]) * iv[1], l31 = fmaf(-l30, w01, d1.e[3]) * iv[1];
    pivot(2, fmaf(-l21, w12, fmaf(-l20, w02, d2.e[2])), r2.e[2]);
    w23 = multiplier(2, fmaf(-l21, w13, fmaf(-l20, w03, d3.e[2])), r2.e[3]);
    l32 = fmaf(-l31, w12, fmaf(-l30, w02, d2.e[3])) * iv[2];
    pivot(3, fmaf(-l32, w23, fmaf(-l31, w13, fmaf(-l30, w03, d3.e[3]))), r3.e[3]);
  };
  auto load_r = [&](int i, int u) { return load4(z.r1 + (i + u) * LD_SHIFT + i); };
  save_diagonal(0);
  named_join(1);
  __syncwarp();
  factor(z.a_diagonal[0], load4(z.a_diagonal), load4(z.a_diagonal + 4), load4(z.a_diagonal + 8), load4(z.a_diagonal + 12), load_r(0, 0), load_r(0, 1), load_r(0, 2), load_r(0, 3));
#pragma unroll
  for (int u = 0; u < 4; u++) row_r[u] = z.r1[u * LD_SHIFT + lane];
  auto block = [&](auto LEN, int i) {
    constexpr int L = decltype(LEN)::value;
    float* columns = z.v + i * LD_SHIFT;  // the four columns from row i on, as they are: guard_and_top makes V of them
    if ((unsigned)(lane - i) < 4) {
#pragma unroll
      for (int q = 0; q < L / 4; q++) *reinterpret_cast<float4*>(z.v + lane * LD_SHIFT + 4 * q) = make_float4(a[4 * q], a[4 * q + 1], a[4 * q + 2], a[4 * q + 3]);
    }
    __syncwarp();
    // the next four rows of the four columns: loaded beside the chain of w and y
    const Quad x0 = load4(columns + 4), x1 = load4(columns + LD_SHIFT + 4), x2 = load4(columns + 2 * LD_SHIFT + 4), x3 = load4(columns + 3 * LD_SHIFT + 4);
    float w[4], y[4], b[4];
    b[0] = a[0];
    w[0] = multiplier(0, b[0], row_r[0]);
    b[1] = fmaf(-l10, w[0], a[1]);
    w[1] = multiplier(1, b[1], row_r[1]);
    b[2] = fmaf(-l21, w[1], fmaf(-l20, w[0], a[2]));
    w[2] = multiplier(2, b[2], row_r[2]);
    b[3] = fmaf(-l32, w[2], fmaf(-l31, w[1], fmaf(-l30, w[0], a[3])));
    w[3] = multiplier(3, b[3], row_r[3]);
#pragma unroll
    for (int u = 0; u < 4; u++) {
      z.r[(i + u) * LD_R + lane] = b[u] - w[u];  // R; the lanes left of the diagonal write what nobody reads
      if (lane > i + u) z.w[(i + u) * LD_SHIFT + lane - (i + u) - 1] = w[u];
    }
    if (lane == 0) *reinterpret_cast<float4*>(z.inverse + i) = make_float4(iv[0], iv[1], iv[2], iv[3]);
    // rows below lose l w = x (W^-1 w) with x the four columns as stored
    y[3] = w[3] * iv[3];
    y[2] = fmaf(-w23, y[3], w[2]) * iv[2];
    y[1] = fmaf(-w13, y[3], fmaf(-w12, y[2], w[1])) * iv[1];
    y[0] = fmaf(-w03, y[3], fmaf(-w02, y[2], fmaf(-w01, y[1], w[0]))) * iv[0];
    __syncwarp();
    if (i > 0) named_arrive(8 + i / 4);
    if (i + 4 < SUB) named_join(1 + (i + 4) / 4);
    const Quad r0 = load_r(i + 4, 0), r1 = load_r(i + 4, 1), r2 = load_r(i + 4, 2), r3 = load_r(i + 4, 3);
#pragma unroll
    for (int u = 0; u < 4; u++) row_r[u] = z.r1[(i + 4 + u) * LD_SHIFT + lane];
#pragma unroll
    for (int e = 0; e < 4; e++) a[e] = fmaf(-x0.e[e], y[0], fmaf(-x1.e[e], y[1], fmaf(-x2.e[e], y[2], fmaf(-x3.e[e], y[3], a[4 + e]))));
    save_diagonal(i + 4);
    const float alpha = __shfl_sync(ALL, a[0], i + 4);  // the first pivot sooner than through shared memory
    __syncwarp();
    const Quad d0 = load4(z.a_diagonal), d1 = load4(z.a_diagonal + 4), d2 = load4(z.a_diagonal + 8), d3 = load4(z.a_diagonal + 12);
    factor(alpha, d0, d1, d2, d3, r0, r1, r2, r3);
#pragma unroll
    for (int q = 2; q < L / 4; q++) update_quad(a, q, columns, y);
  };
#pragma unroll 1
  for (int i = 0; i < SUB / 2; i += 4) block(std::integral_constant<int, SUB>(), i);
#pragma unroll 1
  for (int i = SUB / 2; i < SUB; i += 4) block(std::integral_constant<int, SUB / 2>(), i);
}

// lane = panel column k, row i = reflector
DEVICE void warp_m(const Scratch& z, int lane) {
  float m[SUB + 1];
  float *w_row = z.w, *m_entry = z.m + lane;
#pragma unroll
  for (int r = 0; r <= SUB; r++) m[r] = r == lane ? 1.f : 0.f;
  auto step = [&](auto LEN, int i, float inverse) {
    constexpr int L = decltype(LEN)::value;
    const float mi = m[0] * inverse;
    *m_entry = mi;
#pragma unroll
    for (int q = 0; q < 4; q++) {
      const Quad x = load4(w_row + 4 * q);
#pragma unroll
      for (int e = 0; e < 4; e++) m[4 * q + e] = fmaf(-x.e[e], mi, m[4 * q + e + 1]);
    }
    if (i < SUB / 2) {
#pragma unroll
      for (int q = 4; q < L / 4; q++) {
        const Quad x = load4(w_row + 4 * q);
#pragma unroll
        for (int e = 0; e < 4; e++) m[4 * q + e] = fmaf(-x.e[e], mi, m[4 * q + e + 1]);
      }
    }
    w_row += LD_SHIFT;
    m_entry += LD_M;
  };
  auto block = [&](auto LEN, int i) {
    if (i != 4) named_join(i == 0 ? 9 : 8 + i / 4);
    const Quad inverse = load4(z.inverse + i);
#pragma unroll
    for (int u = 0; u < 4; u++) step(LEN, i, inverse.e[u]);
  };
#pragma unroll 1
  for (int i = 0; i < SUB; i += 4) block(std::integral_constant<int, SUB>(), i);
}

// 16 x 8 entries of sign A B, DEPTH terms each, on the tensor cores in two fp16 terms of both factors: a warp. All row
// strides LD_SHIFT.
template <int DEPTH>
DEVICE void product_tile(float* c, const float* a, const float* b, float sign, int lane) {
  const int g = lane >> 2, q = lane & 3;
  float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < DEPTH; k += 16) {
    uint32_t a_hi[4], a_lo[4], b_hi[2], b_lo[2];
#pragma unroll
    for (int y = 0; y < 4; y++) {
      const float2 x = *reinterpret_cast<const float2*>(a + (g + (y & 1) * 8) * LD_SHIFT + k + (y >> 1) * 8 + 2 * q);
      split_fp16(x.x, x.y, a_hi[y], a_lo[y]);
    }
#pragma unroll
    for (int y = 0; y < 2; y++) {
      const float* x = b + (k + 8 * y + 2 * q) * LD_SHIFT + g;
      split_fp16(x[0], x[LD_SHIFT], b_hi[y], b_lo[y]);
    }
    mma_fp16(d, a_hi, b_hi[0], b_hi[1]);
    mma_fp16(e, a_hi, b_lo[0], b_lo[1]);
    mma_fp16(e, a_lo, b_hi[0], b_hi[1]);
  }
  float* to = c + g * LD_SHIFT + 2 * q;
  *reinterpret_cast<float2*>(to) = make_float2(sign * (d[0] + e[0]), sign * (d[1] + e[1]));
  *reinterpret_cast<float2*>(to + 8 * LD_SHIFT) = make_float2(sign * (d[2] + e[2]), sign * (d[3] + e[3]));
}
// C = sign A B, 32 x 32: tile 0 .. 7 of it
DEVICE void product_32(float* c, const float* a, const float* b, float sign, int tile, int lane) {
  const int row = (tile >> 2) * 16 * LD_SHIFT, column = (tile & 3) * 8;
  product_tile<SUB>(c + row + column, a + row, b + column, sign, lane);
}
// T of 32 reflectors by two warps (`thread` of 64, barrier `id`), without a serial substitution over all of them:
// T^-1 = diag(1/tau) + striu(S), S = V'V, inverted in blocks of 8, which are then joined, T = [Ta, -Ta Sab Tb; 0, Tb].
// Scratch: 16 x 16.
DEVICE void form_t_32(float* t, const float* s, const float* tau, float* scratch, int thread, int id) {
  const int warp = thread >> 5, lane = thread & 31;
  if (warp == 0) {  // the diagonal blocks, a lane a column
    const int b = lane >> 3, c = lane & 7;
    const float* from = s + 8 * b * (LD_SHIFT + 1);
    float x[8];
#pragma unroll
    for (int r = 7; r >= 0; r--) {
      const Quad y[2] = {load4(from + r * LD_SHIFT), load4(from + r * LD_SHIFT + 4)};
      float sum = 0.f;
#pragma unroll
      for (int m = 7; m > r; m--) sum = fmaf(y[m >> 2].e[m & 3], x[m], sum);
      x[r] = tau[8 * b + r] * ((r == c ? 1.f : 0.f) - sum);
      t[8 * b * (LD_SHIFT + 1) + r * LD_SHIFT + c] = x[r];
    }
  } else if (lane < 24) {  // zeros under them
#pragma unroll
    for (int q = 0; q < 6; q++)
      if (q < 2 * (lane / 8 + 1)) *reinterpret_cast<float4*>(t + (8 + lane) * LD_SHIFT + 4 * q) = make_float4(0.f, 0.f, 0.f, 0.f);
  }
  named_join(id);
  {  // blocks of 16, each by a warp
    const int i = lane >> 2, j = (lane & 3) * 2;
    float* corner = t + 16 * warp * (LD_SHIFT + 1);
    float* y = scratch + 8 * warp * LD_SHIFT + j;
    auto product = [&](const float* a, const float* b) {
      const Quad x[2] = {load4(a + i * LD_SHIFT), load4(a + i * LD_SHIFT + 4)};
      float2 sum = make_float2(0.f, 0.f);
#pragma unroll
      for (int m = 0; m < 8; m++) {
        const float2 z = *reinterpret_cast<const float2*>(b + m * LD_SHIFT);
        sum.x = fmaf(x[m >> 2].e[m & 3], z.x, sum.x);
        sum.y = fmaf(x[m >> 2].e[m & 3], z.y, sum.y);
      }
      return sum;
    };
    *reinterpret_cast<float2*>(y + i * LD_SHIFT) = product(s + 16 * warp * (LD_SHIFT + 1) + 8, corner + 8 * (LD_SHIFT + 1) + j);
    __syncwarp();
    const float2 z = product(corner, y);
    *reinterpret_cast<float2*>(corner + i * LD_SHIFT + 8 + j) = make_float2(-z.x, -z.y);
  }
  named_join(id);
  product_tile<16>(scratch + 8 * warp, s + 16, t + 16 * (LD_SHIFT + 1) + 8 * warp, 1.f, lane);
  __syncwarp();
  product_tile<16>(t + 16 + 8 * warp, t, scratch + 8 * warp, -1.f, lane);
}

template <class K>
DEVICE void guard_and_top(const Scratch& z, float* m_scale, const float* unscale, int done, int thread) {
  // guard: sum_k ||p_k|| |M_kj| bounds how much V = P M magnifies rounding
  if (thread < 256) {
    const int i = thread >> 3, k4 = (thread & 7) * 4;
    float amplified = 0.f, biggest = 0.f;
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const float m = fabsf(z.m[i * LD_M + k4 + e]);
      amplified = fmaf(m, square_root(2.f * fabsf(z.x[(k4 + e) * (LD_X + 1)])), amplified);
      biggest = fmaxf(biggest, m);
    }
#pragma unroll
    for (int o = 1; o < 8; o <<= 1) {
      amplified += __shfl_xor_sync(ALL, amplified, o);
      biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, o));
    }
    if ((thread & 7) == 0) {
      if (!(amplified <= K::AMPLIFIED)) atomicMin(z.stop, i > done ? i : done + 1);
      int e = (int)(__float_as_uint(biggest) >> 23) - 127;
      e = min(max(e, -100), 100);
      m_scale[i] = power_of_two(12 - e);
    }
  }
  // beside it the top of V, rounded, over |R|, and of H (R above V), over z.top; both [column][row]
  if (thread >= 256) {
    float* v_top = z.r1;
    const int row = thread & 31, i = (thread - 256) >> 5 << 2;  // four columns, i .. i + 3
    const Quad iv = load4(z.inverse + i);
    const float* x = z.v + i * LD_SHIFT + max(row - i, 0);
    const float* w = z.w + i * LD_SHIFT;
    float l[4];
    l[0] = x[0] * iv.e[0];
    l[1] = fmaf(-l[0], w[0], x[LD_SHIFT]) * iv.e[1];
    l[2] = fmaf(-l[1], w[LD_SHIFT], fmaf(-l[0], w[1], x[2 * LD_SHIFT])) * iv.e[2];
    l[3] = fmaf(-l[2], w[2 * LD_SHIFT], fmaf(-l[1], w[LD_SHIFT + 1], fmaf(-l[0], w[2], x[3 * LD_SHIFT]))) * iv.e[3];
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int j = i + u;
      float below = __half2float(__float2half_rn(l[u]));
      if (K::TERMS == 2) below += __half2float(__float2half_rn(l[u] - below));
      v_top[j * LD_TOP + row] = row < done ? 0.f : (row > j ? below : (row == j && iv.e[u] != 0.f ? 1.f : 0.f));
      z.top[j * LD_TOP + row] = row > j ? below : z.r[row * LD_R + j] * unscale[j];
    }
  }
  __syncthreads();
}

// ------------------------------------------------------------------ the kernel


template <class K>
__global__ void __launch_bounds__(K::THREADS, K::BYTES <= 115712 ? 2 : 1) geqrf_kernel(const __grid_constant__ Args p, const __grid_constant__ CUtensorMap map) {
  extern __shared__ __align__(1024) unsigned char sm[];
  Lane me = lane_of(thread_index());
  uint32_t rank = cluster_rank(), base_address = shared_address(sm);
  float* tau = reinterpret_cast<float*>(sm + K::O_TAU);
  float* unscale = reinterpret_cast<float*>(sm + K::O_UNSCALE);
  float* m_scale = reinterpret_cast<float*>(sm + K::O_MISC);
  int* stop_at = reinterpret_cast<int*>(sm + K::O_MISC + 128);
  if (me.thread == 0) {
    for (int i = 0; i < FULL_BARS + 2 * K::G; i++) barrier_init(barrier_at<K>(base_address, i));
    barrier_init_fence();
  }
  __syncthreads();
  const int n = p.n;
  const bool staged = p.staged;
  if (staged) {
    load_panel<K>(p, map, base_address, 2 * K::CHUNKS, 4 * K::CHUNKS, 0, rank, me.thread);
    load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, 0, rank, me.thread);
    __syncthreads();
  }
  cluster_arrive();

  Scratch z;
  z.x = reinterpret_cast<float*>(sm + K::O_X);
  z.top = reinterpret_cast<float*>(sm + K::O_TOP);
  z.v = reinterpret_cast<float*>(sm + K::O_V);
  z.r1 = reinterpret_cast<float*>(sm + K::O_R1);
  z.w = reinterpret_cast<float*>(sm + K::O_WR);
  z.r = reinterpret_cast<float*>(sm + K::O_R);
  z.m = reinterpret_cast<float*>(sm + K::O_M);
  z.inverse = reinterpret_cast<float*>(sm + K::O_INV);
  z.threshold = z.inverse + 32;
  z.g_diagonal = z.inverse + 64;
  z.a_diagonal = z.inverse + 80;
  z.stop = stop_at;
  float* s1 = reinterpret_cast<float*>(sm + K::O_T1);
  float *t_pass = z.r1, *t_scratch = z.w;  // free after the recurrence, with x, v, r, m
  float* pw = reinterpret_cast<float*>(sm + K::O_PW);
  float* pwp = reinterpret_cast<float*>(sm + K::O_PWP);

#pragma unroll 1
  for (int k = 0; k * PANEL < opaque(n); k++) {
    me = lane_of(thread_index());
    rank = cluster_rank();
    base_address = opaque(shared_address(sm));
    int top = k * PANEL, live = top / K::CHUNK_ROWS;  // first live row and chunk
    // ---- load and scale
    Acc<K> acc;
    {
      int* column_max = reinterpret_cast<int*>(sm + K::O_TOP);
      if (me.thread < PANEL) column_max[me.thread] = 0;
      // T = [T1, -T1 S12 T2; 0, T2] of the last block: T1 and T2 while the new panel is on its way, T12 while the columns'
      // largest entries are; pw holds [V1'V2; V2'V2]
      float *t1 = pwp, *t2 = pwp + SUB * LD_SHIFT, *t12 = z.x, *y = z.m;  // not where peers may send W of the first block already
      if (staged && me.thread == 0) barrier_arrive(barrier_at<K>(base_address, A_BAR));
      if (k > 0 && me.thread < 128) {
        const int half = me.warp >> 1;
        form_t_32(half ? t2 : t1, half ? pw + SUB * LD_SHIFT : s1, tau + SUB * half, half ? t12 : y, me.thread & 63, 1 + half);
      }
      if (staged) {  // on its way since the last pass
        wait_for<K>(base_address, A_BAR, k & 1);
      } else {  // word by word to the same places, zeros outside
        const int column = me.thread % PANEL, r = me.thread / PANEL, line = (r >> 2) * 2 + (r & 1);  // rows r and r + 8 of every 16
        const uint32_t to = base_address + (column >> 5) * K::COPY + (r >> 1 & 1) * 1024 + line * 128 + ((column >> 2 & 7) ^ line) * 16 + (column & 3) * 4;
        const int open = top + column < n ? n : 0;
        int row = rank * K::G * 16 + r;
        const float* from = p.a + ((size_t)(block_index() / K::C) * n + row) * n + top + column;
#pragma unroll 1
        for (int pair = 0; pair < 2 * K::CHUNKS; pair++) {
#pragma unroll
          for (int i = 0; i < 2 * K::G; i++) {
            const uint32_t at = to + pair * 2 * K::COPY + (i >> 1) * 2048;
            copy_word(i & 1 ? (at + 512) ^ 64 : at, from, row < open);
            row += 8, from += (size_t)8 * n;
          }
          row += (K::UNITS - K::G) * 16, from += (size_t)((K::UNITS - K::G) * 16) * n;
        }
        copies_wait();
        __syncthreads();
        fence_async();
      }
      {
        const int core = (2 * me.cg + (me.g >> 2)) ^ (2 * me.q);  // of 16 bytes, swizzled by the row's last three bits
        const unsigned char* even = sm + opaque(me.group * 2048 + me.q * 256 + core * 16 + (me.g & 3) * 4);
        const unsigned char* odd = sm + opaque(me.group * 2048 + me.q * 256 + 128 + (core ^ 1) * 16 + (me.g & 3) * 4);
#pragma unroll
        for (int pair = 0; pair < 2 * K::CHUNKS; pair++) {
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const int i = (pair & 1) * 8 + (r >> 1) * 4 + (r & 1);
            const unsigned char* from = (r & 1 ? odd : even) + pair * 2 * K::COPY + (r >> 1) * 1024;
            acc[pair >> 1][i] = *reinterpret_cast<const float*>(from);
            acc[pair >> 1][i + 2] = *reinterpret_cast<const float*>(from + K::COPY);
          }
        }
      }
      __syncthreads();
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float biggest = 0.f;
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++)
            if ((i >> 1 & 1) == half) biggest = fmaxf(biggest, fabsf(acc[c][i]));
        }
        biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, 1));
        biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, 2));
        if (me.q == 0) atomicMax(&column_max[me.cg * 8 + me.g + SUB * half], __float_as_int(biggest));
      }
      __syncthreads();
      cluster_wait();
      if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::C * 256);
      if (me.thread < PANEL) {
        const uint32_t at = base_address + K::O_TOP + 256 + (rank * PANEL + me.thread) * 4;
#pragma unroll
        for (int r = 0; r < K::C; r++) send(map_address(at, r), column_max[me.thread], map_address(barrier_at<K>(base_address, PANEL_BAR), r));
      }
      if (K::TERMS == 2 && k > 0 && me.cg == copier<K>(rank)) {  // every lane has stored low terms
        bulk_store_wait();
        __syncwarp();
      }
      if (k > 0 && me.cg == copier<K>(rank) && me.lane == 0) {  // the stages have been read
        if constexpr (K::TERMS == 1) {
          bulk_store_wait();
          load_slab<K>(p, base_address, k, 0, me.group);
          if (k > 1) load_slab<K>(p, base_address, k, 1, me.group);
        } else {
          load_half_slab<K>(p, base_address, 0, me.group, 0);
          load_half_slab<K>(p, base_address, 0, me.group, 1);
        }
      }
      if (k > 0) {
        if (me.warp < 8) product_32(y, pw, t2, 1.f, me.warp, me.lane);
        __syncthreads();
        if (me.warp < 8) product_32(t12, t1, y, -1.f, me.warp, me.lane);
        __syncthreads();
#pragma unroll 1
        for (int tile = me.warp; tile < 16; tile += 4 * K::G) {
          const int mt = tile >> 2, kk = tile & 3;
          if (kk <= mt) {
            const float* from = (kk >= 2 ? t2 : mt < 2 ? t1 : t12) + ((kk & 1) * 16 + 2 * me.q) * LD_SHIFT + (mt & 1) * 16 + me.g;
            uint4 hi, lo;
            split_fp16(-from[0], -from[LD_SHIFT], hi.x, lo.x);
            split_fp16(-from[8], -from[LD_SHIFT + 8], hi.y, lo.y);
            split_fp16(-from[8 * LD_SHIFT], -from[9 * LD_SHIFT], hi.z, lo.z);
            split_fp16(-from[8 * LD_SHIFT + 8], -from[9 * LD_SHIFT + 8], hi.w, lo.w);
            uint4* to = reinterpret_cast<uint4*>(sm + K::O_W + t_tile(mt, kk)) + me.lane;  // on its way to the workspace; W of block 0 waits for that
            to[0] = hi;
            to[32] = lo;
          }
        }
        fence_async();
      }
      wait_for<K>(base_address, PANEL_BAR, k & 1);
      const int* all_max = reinterpret_cast<const int*>(sm + K::O_TOP + 256);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int column = me.cg * 8 + me.g + SUB * half;
        int biggest = 0;
#pragma unroll
        for (int r = 0; r < K::C; r++) biggest = max(biggest, all_max[r * PANEL + column]);
        int e = (biggest >> 23) - 127;
        e = biggest == 0 ? MAX_SCALE_LOG2 : max(e, -119);
        const float scale = power_of_two(MAX_SCALE_LOG2 - e);
        if (me.group == 0 && me.q == 0) unscale[column] = power_of_two(e - MAX_SCALE_LOG2);
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++)
            if ((i >> 1 & 1) == half) acc[c][i] *= scale;
        }
      }
      __syncthreads();
      if (k > 0 && copies_t<K>(me, rank)) {
        bulk_store(t_block(p, block_index(), k - 1), base_address + K::O_W, T_BYTES);
        if (k == 1) bulk_store_wait();
        load_t<K>(p, base_address, 0);
      }
      if (K::TERMS == 1) cluster_arrive();
    }
    // ---- earlier blocks
#pragma unroll 1
    for (int j = 0; j < k; j++) {
      apply_block<K>(acc, p, sm, j, k);
    }
    if (K::TERMS == 2) cluster_arrive();  // W's low terms lie where peers send the top: not before they have been read
    __syncthreads();
    // ---- the panel
#pragma unroll 1
    for (int s = 0; s < 2; s++) {
      int done = 0;
#pragma unroll 1
      while (done < SUB) {
        int first, lim, unit, local;  // lim: rows under it are finished; local: this thread's column of the sub-panel
        uint32_t h16, v16;   // this warpgroup's tiles of H and of V
        // from the few numbers that matter: called again after the recurrence, so that nothing else has to live (spill)
        // across it
        auto locate = [&]() {
          me = lane_of(thread_index());
          rank = cluster_rank();
          unit = rank * K::G + me.group;
          base_address = opaque(shared_address(sm));
          top = k * PANEL;
          live = uniform(top / K::CHUNK_ROWS);
          first = top + SUB * s;
          lim = first + done;
          h16 = uniform(operand_address(base_address + K::O_H + me.group * K::SLAB));
          v16 = uniform(operand_address(base_address + me.group * K::SLAB + (s ^ me.group >> 1) * 512));
          local = me.cg * 8 + me.g;
        };
        locate();
        auto h_column = [&]() {
          const int row = unit * 16 + 4 * me.q;
          if constexpr (K::TERMS == 2 && K::CHUNKS == 3)  // the same address; each form is the one with which ptxas does not spill
            return p.h + (size_t)((uint32_t)block_index() / K::C) * (uint32_t)(n * p.ld) + (uint32_t)((first + local) * p.ld + row);
          else
            return p.h + ((size_t)(block_index() / K::C) * n + first + local) * p.ld + row;
        };
        // (1) Gram: H and L = P - H of the open rows and columns to shared memory as wgmma operands
        const uint32_t tiles_to = base_address + K::O_H + me.group * K::SLAB + (me.lane >> 3) * TILE_BYTES + me.cg * 256 + (me.lane & 7) * 16;
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
          if (c >= live) {
            uint32_t hi[4], lo[4];
#pragma unroll
            for (int tile = 0; tile < 4; tile++) split_fp16(acc[c][tile * 4], acc[c][tile * 4 + 1], hi[tile], lo[tile]);
            if (c == live || done > 0) {  // finished rows lie in the first live chunk, finished columns come of a restart
#pragma unroll
              for (int tile = 0; tile < 4; tile++) {
                const int row = chunk_row<K>(c, tile, unit) + 4 * me.q;
                const uint32_t open = local < done || row + 1 < lim ? 0u : row < lim ? 0xffff0000u : ~0u;
                hi[tile] &= open;
                lo[tile] &= open;
              }
            }
            store_matrices(tiles_to + c * CHUNK_BYTES, hi);
            store_matrices(tiles_to + c * CHUNK_BYTES + (K::O_L - K::O_H), lo);
          }
        }
        fence_async();
        __syncthreads();
        cluster_wait();
        if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::C * 4096 + 4096);
        // the top 32 x 32, from its owners to all; finished rows and columns are 0 in H and L already
        if (me.thread < 256) {
          const int part = first / 16 + (me.thread >> 7), owner = part % K::UNITS, pair = part / K::UNITS;
          if (owner / K::G == (int)rank) {
            const int column = me.thread >> 2 & 31;
            const int at = owner % K::G * K::SLAB + pair * (2 * TILE_BYTES) + (column >> 3) * 256 + (column & 7) * 16 + me.q * 4;
            auto two_rows = [&](int offset) { return __half22float2(halves(*reinterpret_cast<uint32_t*>(sm + at + offset))); };
            const float2 h0 = two_rows(K::O_H), h1 = two_rows(K::O_H + TILE_BYTES), l0 = two_rows(K::O_L), l1 = two_rows(K::O_L + TILE_BYTES);
            const float4 x = make_float4(h0.x + l0.x, h0.y + l0.y, h1.x + l1.x, h1.y + l1.y);
            const uint32_t to = base_address + K::O_TOP + (column * LD_TOP + (me.thread >> 7) * 16 + me.q * 4) * 4;
#pragma unroll
            for (int r = 0; r < K::C; r++) send(map_address(to, r), x, map_address(barrier_at<K>(base_address, PANEL_BAR), r));
          }
        }
        {
          float x[16];
          wgmma_fence();
#pragma unroll
          for (int i = 0; i < 16; i++) x[i] = 0.f;
#pragma unroll
          for (int c = K::CHUNKS - 1; c >= 0; c--) {
            if (c == K::CHUNKS - 1 || c >= live) {
#pragma unroll
              for (int u = 0; u < 2; u++)  // cores of H' and L' by turns: a thread has H'H and L'H of the same entries
                wgmma_shared(x, descriptor(h16, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 128), descriptor(h16, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 256));
            }
          }
          wgmma_commit();
          wgmma_wait();
          float4 x4[2] = {make_float4(fmaf(2.f, x[2], x[0]), fmaf(2.f, x[3], x[1]), fmaf(2.f, x[6], x[4]), fmaf(2.f, x[7], x[5])), make_float4(fmaf(2.f, x[10], x[8]), fmaf(2.f, x[11], x[9]), fmaf(2.f, x[14], x[12]), fmaf(2.f, x[15], x[13]))};
          float4* partial = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_X) + (me.cg * (K::G - 1) + me.group - 1) * 64 + me.lane;
          if (me.group > 0) {
            partial[0] = x4[0];
            partial[32] = x4[1];
            named_arrive(1 + me.cg, 32 * K::G);
          } else {
            named_join(1 + me.cg, 32 * K::G);
#pragma unroll
            for (int u = 1; u < K::G; u++) {
#pragma unroll
              for (int i = 0; i < 2; i++) add4(x4[i], partial[u * 64 + i * 32]);
            }
            const uint32_t at = base_address + K::O_INBOX + (rank * 4 + me.cg) * 1024 + me.lane * 16;
#pragma unroll
            for (int r = 0; r < K::C; r++) {
              const uint32_t to = map_address(at, r), to_bar = map_address(barrier_at<K>(base_address, PANEL_BAR), r);
              send(to, x4[0], to_bar);
              send(to + 512, x4[1], to_bar);
            }
          }
        }
        if (local >= done && first + local < n) {  // R of the finished rows (rows from lim on that come along are stored again below)
          const int row0 = unit * 16 + 4 * me.q, end = min(lim, n);
          const float undo = unscale[SUB * s + local];
          float* h_to = h_column();
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c < live + 1) {
#pragma unroll
            for (int tile = 0; tile < 4; tile += 2) {
              const int row = chunk_row<K>(c, tile, 0);
              const float *x = &acc[c][tile * 4], *y = x + 4;
              if (row0 + row < end) *reinterpret_cast<float4*>(h_to + row) = make_float4(x[0] * undo, x[1] * undo, y[0] * undo, y[1] * undo);
            }
            }
          }
        }
        if (me.warp < 3) {  // the panel's registers would be spilled in the recurrence: they wait in shared memory
          const uint32_t at = base_address + K::O_KEPT + me.warp * (K::CHUNKS * 2048) + me.lane * 16;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int t = 0; t < 4; t++) save_floats(at + (4 * c + t) * 512, acc[c][4 * t], acc[c][4 * t + 1], acc[c][4 * t + 2], acc[c][4 * t + 3]);
          }
        }
        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        if (me.thread < 256) {
          const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + me.thread;
#pragma unroll
          for (int u = 0; u < K::C; u++) add4(sum, in[u * 256]);
        }
        if (me.thread < 256) {  // X = HH/2 + HL, so that the Gram matrix is X + X'; X' in the place of M
          const int row = (me.thread >> 6) * 8 + me.g, column = (me.thread >> 5 & 1) * 16 + 2 * me.q;
          const float4 x = make_float4(0.5f * sum.x, 0.5f * sum.y, 0.5f * sum.z, 0.5f * sum.w);
          float *to = z.x + row * LD_X + column, *transposed = z.m + column * LD_X + row;
          *reinterpret_cast<float2*>(to) = make_float2(x.x, x.y);
          *reinterpret_cast<float2*>(to + 8) = make_float2(x.z, x.w);
          transposed[0] = x.x;
          transposed[LD_X] = x.y;
          transposed[8 * LD_X] = x.z;
          transposed[9 * LD_X] = x.w;
        }
        __syncthreads();
        // (2) recurrence. P is in H and L, its registers are free meanwhile
        save_words(base_address + K::O_STATE + me.warp * 16, k, s, done, 0);
        if (me.warp < 3) {
          if (me.warp == 0) warp_cholesky(z, me.lane, done, K::CANCELLED);
          else if (me.warp == 1) warp_top(z, me.lane);
          else warp_m(z, me.lane);
          const uint32_t from = shared_address(sm) + K::O_KEPT + (thread_index() >> 5) * (K::CHUNKS * 2048) + (thread_index() & 31) * 16;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int t = 0; t < 4; t++) load_floats(from + (4 * c + t) * 512, acc[c][4 * t], acc[c][4 * t + 1], acc[c][4 * t + 2], acc[c][4 * t + 3]);
          }
        } else if (me.warp >= 4 && s == 0 && done == 0 && top + PANEL < n) {  // the next panel's rows of this CTA into L2
          if (staged) {
            if (me.lane == 0) {
#pragma unroll 1
              for (int i = me.warp - 4; i < 4 * K::CHUNKS; i += 4 * K::G - 4)
                panel_prefetch(map, top + PANEL + SUB * (i & 1), (block_index() / K::C * (2 * K::CHUNKS) + (i >> 1)) * K::UNITS + rank * K::G);
            }
          } else
#pragma unroll 1
          for (int i = me.thread - 128; i < K::ROWS / K::C * 2; i += K::THREADS - 128) {
            const int chunk = i >> 5, row = (chunk / K::G * K::UNITS + rank * K::G + chunk % K::G) * 16 + (i >> 1 & 15);
            if (row < n) prefetch_l2(p.a + ((size_t)(block_index() / K::C) * n + row) * n + min(top + PANEL + (i & 1) * 32, n - 1));
          }
        }
        __syncthreads();
        {
          int unused;
          load_words(shared_address(sm) + K::O_STATE + (thread_index() >> 5) * 16, k, s, done, unused);
          k = uniform(k), s = uniform(s), done = uniform(done);
        }
        locate();
        guard_and_top<K>(z, m_scale, unscale + SUB * s, done, me.thread);
        const int stop = uniform(*stop_at);
        auto by_chunks = [&](auto product) {  // the order for which ptxas moves no accumulators
#pragma unroll
          for (int c = K::CHUNKS - 2; c > -2; c -= 2) {
            if (c >= 0 && live <= c) product(c, acc[c < 0 ? 0 : c]);
            if (c == K::CHUNKS - 2 || live <= c + 1) product(c + 1, acc[c + 1]);
          }
          wgmma_commit();
          wgmma_wait();
        };
        // (3) V = P M, rounded to fp16
        const bool in = local >= done && local < stop;
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {  // the columns of other passes stay
#pragma unroll
          for (int tile = 0; tile < 4; tile++) {
            acc[c][tile * 4] = in ? 0.f : acc[c][tile * 4];
            acc[c][tile * 4 + 1] = in ? 0.f : acc[c][tile * 4 + 1];
          }
        }
        {
          uint32_t m_hi[2][4], m_lo[2][4];
#pragma unroll
          for (int kk = 0; kk < 2; kk++) {
#pragma unroll
            for (int y = 0; y < 4; y++) {
              float2 x = make_float2(0.f, 0.f);  // rows of the other sub-panel
              if (!(y & 1)) {
                x = *reinterpret_cast<float2*>(&z.m[local * LD_M + kk * 16 + 2 * me.q + 8 * (y >> 1)]);
                const float by = m_scale[local];
                x = in ? make_float2(x.x * by, x.y * by) : make_float2(0.f, 0.f);
              }
              split_fp16(x.x, x.y, m_hi[kk][y], m_lo[kk][y]);
            }
          }
          if constexpr (K::TERMS == 1) {
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], m_lo[kk], descriptor(h16, c * CHUNK_BYTES + kk * 512, 256, TILE_BYTES));
                wgmma<false>(acc[c], m_hi[kk], descriptor(h16, c * CHUNK_BYTES + kk * 512 + (K::O_L - K::O_H), 256, TILE_BYTES));
                wgmma<false>(acc[c], m_hi[kk], descriptor(h16, c * CHUNK_BYTES + kk * 512, 256, TILE_BYTES));
              }
              wgmma_commit();
            }
          }
          wgmma_wait();
          } else {
          by_chunks([&](int c, auto& rows) {
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < 2; kk++) {
              const uint32_t at = c * CHUNK_BYTES + kk * 512;
              wgmma_rows(m_lo[kk], descriptor(h16, at, 256, TILE_BYTES), rows);
              wgmma_rows(m_hi[kk], descriptor(h16, at + (K::O_L - K::O_H), 256, TILE_BYTES), rows);
              wgmma_rows(m_hi[kk], descriptor(h16, at, 256, TILE_BYTES), rows);
            }
          });
          }
        }
        if (K::TERMS == 2) __syncthreads();  // H and L are spent: V's low terms take their place
        {
          const float by = in ? __uint_as_float((254u << 23) - __float_as_uint(m_scale[local])) : 1.f;  // 1 / 2^e
          const int row0 = unit * 16 + 4 * me.q;
          const uint32_t v_to = base_address + me.group * K::SLAB + (me.lane >> 3) * TILE_BYTES + ((4 * s + me.cg) ^ 2 * me.group) * 128 + (me.lane & 7) * 16;
          const uint32_t low_to = base_address + K::O_LOW + me.group * (K::SLAB / 2) + (me.lane >> 3) * 512 + (me.cg ^ 2 * (me.group & 1)) * 128 + (me.lane & 7) * 16;
          const float* v_from = z.r1 + local * LD_TOP + row0 - first;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              uint32_t to_tiles[4], low_tiles[4];
#pragma unroll
              for (int tile = 0; tile < 4; tile += 2) {
                const int row = chunk_row<K>(c, tile, 0);
                float *x = &acc[c][tile * 4], *y = x + 4;
                float4 v = make_float4(x[0] * by, x[1] * by, y[0] * by, y[1] * by);
                const bool in_top = in && (unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB;
                if (in_top) v = *reinterpret_cast<const float4*>(v_from + row);
                const __half2 v0 = __floats2half2_rn(v.x, v.y), v1 = __floats2half2_rn(v.z, v.w);
                float2 f0 = __half22float2(v0), f1 = __half22float2(v1);
                if constexpr (K::TERMS == 2) {
                  const __half2 l0 = __floats2half2_rn(v.x - f0.x, v.y - f0.y), l1 = __floats2half2_rn(v.z - f1.x, v.w - f1.y);
                  const float2 g0 = __half22float2(l0), g1 = __half22float2(l1);
                  f0 = make_float2(f0.x + g0.x, f0.y + g0.y);
                  f1 = make_float2(f1.x + g1.x, f1.y + g1.y);
                  low_tiles[tile] = local < stop ? bits(l0) : 0u;
                  low_tiles[tile + 1] = local < stop ? bits(l1) : 0u;
                }
                if (in) {
                  x[0] = f0.x;
                  x[1] = f0.y;
                  y[0] = f1.x;
                  y[1] = f1.y;
                }
                to_tiles[tile] = local < stop ? bits(v0) : 0u;  // a column of an earlier pass: the same again
                to_tiles[tile + 1] = local < stop ? bits(v1) : 0u;
              }
              store_matrices(v_to + c * CHUNK_BYTES, to_tiles);
              if constexpr (K::TERMS == 2) store_matrices(low_to + c * 2048, low_tiles);
            }
          }
        }
        fence_async();
        __syncthreads();
        const bool last = s == 1 && stop == SUB;  // V is complete, H and L are spent: the next panel may come
        if (last) {
          if (me.cg == copier<K>(rank) && me.lane == 0) {
            const int at = me.group * K::SLAB + live * CHUNK_BYTES;
            bulk_store(v_block<K>(p, block_index(), k) + at, base_address + at, K::SLAB - live * CHUNK_BYTES);
          }
          if (staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, rank, me.thread);
        }
        if (K::TERMS == 2 && stop == SUB && me.cg == copier<K>(rank) && me.lane >= 4 * live && me.lane < 4 * K::CHUNKS)  // low terms, a tile a lane
          bulk_store(v_block<K>(p, block_index(), k) + K::STAGE + me.group * K::SLAB + me.lane * TILE_BYTES + (s ^ me.group >> 1) * 512, base_address + K::O_LOW + me.group * (K::SLAB / 2) + me.lane * 512, 512);
        cluster_arrive();  // the inbox and its scratch are free
        // (4) W^T = [V1, V2, C]^T V, V the reflectors of this sub-panel
        {
          const uint32_t low16 = K::TERMS == 1 ? 0 : uniform(operand_address(base_address + K::O_LOW + me.group * (K::SLAB / 2)));
          float w[16];
#pragma unroll
          for (int i = 0; i < 16; i++) w[i] = 0.f;
#pragma unroll
          for (int c = K::CHUNKS - 1; c >= 0; c--) {
            if (c == K::CHUNKS - 1 || c >= live) {
              if constexpr (K::TERMS == 1) {
                uint32_t a[2][4];
#pragma unroll
                for (int y = 0; y < 8; y++) a[y >> 2][(y & 1) + (y >> 1 & 1) * 2] = pack(acc[c][2 * y], acc[c][2 * y + 1]);
                wgmma_fence();
#pragma unroll
                for (int u = 0; u < 2; u++) wgmma<true>(w, a[u], descriptor(v16, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 128));
                wgmma_commit();
                wgmma_wait();
              } else {
#pragma unroll
                for (int u = 0; u < 2; u++) {
                  uint32_t hi[4], lo[4];
#pragma unroll
                  for (int y = 0; y < 4; y++) split_fp16(acc[c][8 * u + 2 * y], acc[c][8 * u + 2 * y + 1], hi[(y & 1) + (y >> 1) * 2], lo[(y & 1) + (y >> 1) * 2]);
                  const uint64_t v = descriptor(v16, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 128);
                  wgmma_fence();
                  wgmma<true>(w, hi, descriptor(low16, c * 2048 + u * 1024, 512, 128));
                  wgmma<true>(w, lo, v);
                  wgmma<true>(w, hi, v);
                  wgmma_commit();
                  wgmma_wait();
                }
              }
            }
          }
          float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.group * 512 + me.cg * 128 + me.lane;
#pragma unroll
          for (int ct = 0; ct < 4; ct++) partial[(ct & 1) * 32 + ((ct & 2) ^ (me.group & 1) * 2) * 32] = make_float4(w[4 * ct], w[4 * ct + 1], w[4 * ct + 2], w[4 * ct + 3]);
        }
        if (K::TERMS == 1 ? last && me.cg == copier<K>(rank) && me.lane == 0 : me.cg == copier<K>(rank)) bulk_store_wait_read();
        __syncthreads();
        if (last && staged && top + PANEL < n) {
          load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, top + PANEL, rank, me.thread);
          if (K::TERMS == 2) load_panel<K>(p, map, base_address, 3 * K::CHUNKS, 4 * K::CHUNKS, top + PANEL, rank, me.thread);
        }
        cluster_wait();
        if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::IN_PW);
        float4 own;
        {
          const float4* partial = reinterpret_cast<const float4*>(sm + K::O_PARTIAL) + me.thread;
          own = partial[0];
#pragma unroll
          for (int u = 1; u < K::G; u++) add4(own, partial[u * 512]);
#pragma unroll
          for (int r = 1; r < K::C; r++) {
            const uint32_t peer = (rank + r) % K::C, at = base_address + K::O_INBOX + ((rank < peer ? rank : rank - 1) * 512 + me.thread) * 16;
            send(map_address(at, peer), own, map_address(barrier_at<K>(base_address, PANEL_BAR), peer));
          }
        }
        // V and the top of R to H while W is on its way
        if (in && first + local < n) {
          const int row0 = unit * 16 + 4 * me.q;
          const float* h_from = z.top + local * LD_TOP + row0 - first;
          float* h_to = h_column();
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
#pragma unroll
              for (int tile = 0; tile < 4; tile += 2) {
                const int row = chunk_row<K>(c, tile, 0);
                const float *x = &acc[c][tile * 4], *y = x + 4;
                float4 v = make_float4(x[0], x[1], y[0], y[1]);
                if ((unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB) v = *reinterpret_cast<const float4*>(h_from + row);
                if (row0 + row >= lim && row0 + row < n) *reinterpret_cast<float4*>(h_to + row) = v;
              }
            }
          }
          // the rest of the four rows in which lim lies, by the thread that stored those four before
          if ((done & 3) && lim / 16 % K::UNITS == unit && me.q == (lim >> 2 & 3)) {
#pragma unroll 1
            for (int row = lim; row <= (lim | 3) && row < n; row++)
              p.h[((size_t)(block_index() / K::C) * n + first + local) * p.ld + row] = z.top[local * LD_TOP + row - first];
          }
        }
        wait_for<K>(base_address, PANEL_BAR, k & 1);
        {
          const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + me.thread;
          float4 x = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
          for (int r = 0; r < K::C; r++)  // in the same order in every CTA: they must agree to the last bit
            add4(x, r == (int)rank ? own : in[(r < (int)rank ? r : r - 1) * 512]);
          const int column = SUB * s + me.group * 8 + me.g, other = column ^ SUB, reflector = me.cg * 8 + 2 * me.q;
          *reinterpret_cast<float2*>(&pw[column * LD_SHIFT + reflector]) = make_float2(x.x, x.y);
          *reinterpret_cast<float2*>(&pw[other * LD_SHIFT + reflector]) = make_float2(x.z, x.w);
        }
        __syncthreads();
        // tau = 2 / v'v; 0 where a reflector is not of this pass, or of a zero column
        const float* s_own = pw + SUB * s * LD_SHIFT;  // V'V of this sub-panel; at the last pass all of it
        if (me.warp < 2) {
          const float vv = s_own[me.lane * (LD_SHIFT + 1)];
          const bool on = me.lane >= done && me.lane < stop;
          const float t = on && vv > 0.5f ? 2.f * reciprocal(vv) : 0.f;
          m_scale[me.lane] = t;  // both warps write the same
          if (on) tau[SUB * s + me.lane] = t;
          if (on && me.warp == 0 && rank == 0 && first + me.lane < n) p.tau[(size_t)(block_index() / K::C) * n + first + me.lane] = t;
          __syncwarp();
        }
        // (5) C -= V W' for the columns still open
        if (SUB * s + stop < PANEL) {
          if (me.warp < 2) form_t_32(t_pass, s_own, m_scale, t_scratch, me.thread, 1);
          else if (s == 0 && stop == SUB && me.thread >= 128 && me.thread < 384) {  // S for T of the whole panel
            const int at = (me.thread - 128 >> 3) * LD_SHIFT + (me.thread & 7) * 4;
            *reinterpret_cast<float4*>(s1 + at) = *reinterpret_cast<const float4*>(s_own + at);
          }
          __syncthreads();
#pragma unroll 1
          for (int tile = me.warp; tile < 16; tile += 4 * K::G) {  // W' = W T, a column of C a row
            const int columns = (tile >> 3) * SUB;
            if (columns + (tile >> 2 & 1) * 16 + 15 >= SUB * s + stop) product_32(pwp + columns * LD_SHIFT, pw + columns * LD_SHIFT, t_pass, 1.f, tile & 7, me.lane);
          }
          __syncthreads();
          uint32_t w_hi[2][4], w_lo[2][4];
#pragma unroll
          for (int kk = 0; kk < 2; kk++) {
#pragma unroll
            for (int y = 0; y < 4; y++) {
              const int column = (y & 1 ? SUB - SUB * s : SUB * s) + local;
              float2 x = *reinterpret_cast<float2*>(&pwp[column * LD_SHIFT + (kk ^ (me.group & 1)) * 16 + 2 * me.q + 8 * (y >> 1)]);
              const bool on = column >= SUB * s + stop;
              split_fp16(on ? -x.x : 0.f, on ? -x.y : 0.f, w_hi[kk][y], w_lo[kk][y]);
            }
          }
          const uint32_t low16 = K::TERMS == 1 ? 0 : uniform(operand_address(base_address + K::O_LOW + me.group * (K::SLAB / 2)));
          if constexpr (K::TERMS == 1) {
#pragma unroll
          for (int i = 0; i < K::CHUNKS; i++) {
            const int c = K::CHUNKS - 1 - i;  // either order is right: ptxas moves no accumulators in this one
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
                wgmma<false>(acc[c], w_hi[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
              }
              wgmma_commit();
            }
          }
          wgmma_wait();
          } else {
          by_chunks([&](int c, auto& rows) {
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < 2; kk++) {
              const uint32_t at = c * CHUNK_BYTES + kk * 256;
              wgmma_rows(w_hi[kk], descriptor(low16, c * 2048 + kk * 256, 128, 512), rows);
              wgmma_rows(w_lo[kk], descriptor(v16, at, 128, TILE_BYTES), rows);
              wgmma_rows(w_hi[kk], descriptor(v16, at, 128, TILE_BYTES), rows);
            }
          });
          }
          __syncthreads();
        }
        done = stop;
        if (!(s == 1 && done == SUB)) cluster_arrive();
      }
      if (s == 0) {  // the second sub-panel moves to the front
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++) {
            if (!(i & 2)) {
              const float x = acc[c][i];
              acc[c][i] = acc[c][i + 2];
              acc[c][i + 2] = x;
            }
          }
        }
      }
    }
    __syncthreads();
    cluster_arrive();
  }
  cluster_wait();
}

// The batch as a tensor of five dimensions, column | row bits x0 | q | x1 | piece of 16 rows (row 4q + 2 x1 + x0 of it), of
// which a copy takes 32 columns of `units` pieces, swizzled in units of 16 bytes. False where the driver cannot.
static bool panel_map(CUtensorMap& map, const float* a, int n, int batch, int units) {
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
  if (!encode || reinterpret_cast<uintptr_t>(a) % 16) return false;
  const cuuint64_t row = 4 * (cuuint64_t)n, sizes[5] = {(cuuint64_t)n, 2, 4, 2, (cuuint64_t)batch * n / 16}, strides[4] = {row, 4 * row, 2 * row, 16 * row};
  const cuuint32_t box[5] = {SUB, 2, 4, 2, (cuuint32_t)units}, steps[5] = {1, 1, 1, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 5, const_cast<float*>(a), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <class K>
static int run(Args args, int batch) {
  CUtensorMap map{};
  args.staged = args.n == K::ROWS && panel_map(map, args.a, args.n, batch, K::G);
  static bool ready = false;
  if (!ready) {
    if (cudaFuncSetAttribute(geqrf_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, K::BYTES)) return -1;
    ready = true;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(batch * K::C);
  config.blockDim = dim3(K::THREADS);
  config.dynamicSmemBytes = K::BYTES;
  cudaLaunchAttribute cluster[1];
  cluster[0].id = cudaLaunchAttributeClusterDimension;
  cluster[0].val.clusterDim.x = K::C;
  cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
  config.attrs = cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, geqrf_kernel<K>, args, map);
}

#ifndef FP16_TERMS  // of V, C and W': the build says
#define FP16_TERMS 1
#endif
template <class F>
static auto dispatch(int n, F f) {
  if (FP16_TERMS == 2 && n <= 768) return f(Config<2, FP16_TERMS == 2 ? 3 : 4, FP16_TERMS>());
  if (n <= 1024) return f(Config<2, 4, FP16_TERMS>());
  return f(Config<4, 3, FP16_TERMS>());
}

// Bytes of the two workspaces: V of all blocks, T of all blocks.
long v_workspace(int n, int batch) {
  return dispatch(n, [&](auto k) { return (long)batch * ((n + PANEL - 1) / PANEL) * decltype(k)::C * decltype(k)::V_BYTES; });
}
long t_workspace(int n, int batch) { return (long)batch * 4 * ((n + PANEL - 1) / PANEL) * T_BYTES; }  // at most four CTAs
int geqrf(const float* a, float* h, float* tau, void* v, void* t, int n, int ld, int batch) {
  const Args args{a, h, tau, static_cast<unsigned char*>(v), static_cast<decltype(Args::t)>(t), n, ld};
  return n > 1536 ? -1 : dispatch(n, [&](auto k) { return run<decltype(k)>(args, batch); });
}
}  // namespace qr1024
"""

CPP = r"""
#include <torch/extension.h>
#include <map>
#include <tuple>
namespace qr1024 {
long v_workspace(int n, int batch);
long t_workspace(int n, int batch);
int geqrf(const float* a, float* h, float* tau, void* v, void* t, int n, int ld, int batch);
}
// a (batch, n, n) contiguous -> H, a transposed view of its column-major store, and tau. Workspaces hold V and T during
// the call; they are kept by shape, and every entry that is read was written in the same call.
std::tuple<torch::Tensor, torch::Tensor> geqrf_n1024(torch::Tensor a) {
  static std::map<std::tuple<int, int, int>, std::pair<torch::Tensor, torch::Tensor>> kept;
  const int batch = a.size(0), n = a.size(1), ld = (n + 3) / 4 * 4;
  auto& space = kept[{a.get_device(), batch, n}];
  if (!space.first.defined()) {
    auto bytes = a.options().dtype(torch::kUInt8);
    space.first = torch::empty({qr1024::v_workspace(n, batch)}, bytes);
    space.second = torch::empty({qr1024::t_workspace(n, batch)}, bytes);
  }
  auto h = torch::empty({batch, n, ld}, a.options());
  auto tau = torch::empty({batch, n}, a.options());
  const int error = qr1024::geqrf(a.data_ptr<float>(), h.data_ptr<float>(), tau.data_ptr<float>(),
                                  space.first.data_ptr(), space.second.data_ptr(), n, ld, batch);
  TORCH_CHECK(error == 0, "geqrf_n1024: launch failed with CUDA error ", error);
  return {h.narrow(2, 0, n).transpose(1, 2), tau};
}
"""


def build(terms):
    """geqrf_n1024 with so many fp16 terms, or None (with a warning) where there is no CUDA device."""
    if not torch.cuda.is_available():
        if terms == 2:  # one warning for both
            warnings.warn("n1024_v122: no CUDA device, torch.geqrf is used")
        return None
    from torch.utils.cpp_extension import load_inline

    major, minor = torch.cuda.get_device_capability()
    arch = f"{major}{minor}a"
    extra = {}
    if "no_implicit_headers" in inspect.signature(load_inline).parameters:
        extra["no_implicit_headers"] = True  # the CUDA part needs no torch header: 20 s less
    return load_inline(
        name=f"n1024_v122_{terms}",
        cpp_sources=CPP,
        cuda_sources=CUDA,
        functions=["geqrf_n1024"],
        extra_cuda_cflags=["-O3", "-std=c++17", f"-DFP16_TERMS={terms}", f"-gencode=arch=compute_{arch},code=sm_{arch}"],
        **extra,
    ).geqrf_n1024


TERMS = (1, 2) if TWO_TERMS_TO < MAX_N else (2,)
with ThreadPoolExecutor(2) as pool:
    EXTENSIONS = dict(zip(TERMS, pool.map(build, TERMS), strict=True))


def geqrf_n1024(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """QR of a (batch, n, n), MIN_N <= n <= MAX_N: (H, tau) in LAPACK's form. The input is not changed."""
    return EXTENSIONS[2 if a.shape[-1] <= TWO_TERMS_TO else 1](a.contiguous())


def custom_kernel(data: input_t) -> output_t:
    n = data.shape[-1]
    if EXTENSIONS[2] is None or not data.is_cuda or data.shape[0] == 0 or not MIN_N <= n <= MAX_N:
        return torch.geqrf(data)
    return geqrf_n1024(data)
