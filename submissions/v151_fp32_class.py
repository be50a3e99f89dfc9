#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v151 fp32 class: all shapes with the residuals of an FP32 factorization, from v150's families.

Algorithm  as v150_all_shapes with two terms throughout, from the same sources; no mid: n1024 takes 513 to 1536
Precision  FP32 in and out, every operand (V, C, W', T) in two FP16 terms, 22 bits; products hi hi + hi lo + lo hi with FP32
           accumulation; tighter guards. Column-wise scaled residual <= 1 (|Q R - A| of a column by n eps of its norm), where
           the contest's norm-wise measure lets v150 reach 44 in a small column
Shapes     ROUTES below; everything else, and every machine without CUDA: torch.geqrf
Parent     v150_all_shapes
Result     geomean 530.6 µs, 12/12 pass, NVIDIA H200, records/2026-11-30_v151_fp32_class
Bound by   as v150; larfb has three products for one, and V, W and W' are twice the bytes

How it works, in one page. The names are LAPACK's in every family: geqr2 makes a panel, larft its T, larfb applies a block.

geqr2: a panel P of 16 to 64 columns is factored without a loop over its rows for each column. Its Gram matrix G = P'P comes
from tensor cores in one go; a scalar recurrence on G (Cholesky: |R|) and on the panel's top block (signed elimination:
signs and multipliers) gives all of its reflectors at once as V = P M. A Gram matrix squares the panel's condition, so each
panel has a certificate from exact quantities, its pivots against its columns and the growth of M: where it fails, the
columns before the failure are finished and a new Gram matrix is taken behind them (small, large: column by column).

larft: V is rounded to FP16 terms and from then on is what it is: H holds exactly that, V'V of the rounded V gives
tau = 2/v'v, so every reflector is orthogonal to FP32 whatever the rounding did, and T by inverting a triangle of V'V.
What a single term would leave below R's diagonal, 2e-4 of a column's remaining norm, two terms do not leave.

larfb: W = V'C, W' = T'W, C -= V W' on tensor cores. The panel is held transposed, so that its registers are the first
product's operand and the second one's accumulator without a shuffle. small does not wait for V: with H'P = (R; 0),
E = P - (R; 0) spans what V spans and H' = I - E K E', so others project on E while the recurrence that makes K still runs.

Left-looking (small to n1024): a panel is brought up to date by all earlier blocks just before it is factored; A is read once
and H written once. Right-looking (large): few matrices must feed many SMs, so all columns behind a panel are updated, those
that are needed next first, beside the panels that follow.

What bounds each shape, and what to try on it, stands in records/ under the name of its family. sm_100a: compiles, never run;
there products take mma.sync, and the first thing to try is the fifth-generation tensor core for n512's and n1024's larfb.

The file: PRELUDE, what all families share (one function an instruction, the notation); then one string a family, which begins
with its CONTENTS, where its geqr2, larft and larfb stand, and its own page; then ROUTES and the host. The kernels are those
of the files that BACKENDS names, with two terms, less what no route here reaches.
"""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.cpp_extension import load_inline

from task import input_t, output_t

# ---------------------------------------------------------------- what all families share

PRELUDE = r"""
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
"""

# ---------------------------------------------------------------- small: v114

SMALL_CUDA = PRELUDE + r"""
// CONTENTS
//   geqrf: geqrf_body (groups of 16 columns by teams of warps); geqrf_warp (n <= 32); geqrf_by_teams picks
//   A, H:  load; store_step
//   geqr2: factor: geqr2_gram (Gram matrix, cholesky, jordan) or geqr2 (column by column); square (the last)
//   larft: publish_k, publish_record (K for T, from the recurrence); larft (T of a panel that went column by column)
//   larfb: apply: project (E'C), then K and C -= E W'
//
namespace qr_small {
using namespace qr;
constexpr int GROUP = 16;        // columns of a group = reflectors of a block = rows of a step
constexpr int PARTS = 4;         // warps of a team: step s of the rows belongs to warp s % 4
constexpr int STEP_BYTES = 1024; // V of one step: 16 rows x 16 reflectors, two fp16 terms
constexpr int K_BYTES = 1024 + 1024 + 128;  // what a CTA gets of a remote panel's K: E's top rows and the record
constexpr int RECORD_BYTES = 1024 + 128;  // of a block: K as fragments, the scales of its reflectors, what E is
constexpr int BUFFER_BYTES = (PARTS + 1) * 1024;  // one 16 x 16 partial product a warp, and the top rows of C as fragments
constexpr int EXCHANGE_BYTES = 2 * BUFFER_BYTES + 2048 + 128;  // two buffers, the fragments of M, the top block, a flag
constexpr float M_SCALE = 256.f;    // entries of M are about 1 / norm of a column, 2^-4 .. 2^-10: keeps the low fp16 term normal
constexpr float MAX_GROWTH = 8.f;  // bound on the norm of a column of K (columns of P scaled to 1 .. 2), else the panel goes column by column
constexpr float MIN_GRAM = 64.f;  // with MAX_GROWTH it bounds Y below the largest FP16 number, for n <= 512
constexpr float MIN_PIVOT = 1.f / 64;  // squared pivot over its column's entry of the Gram matrix
constexpr int MAX_SHARED = 232448;
constexpr int MAX_STEPS = 32;
constexpr unsigned ALL = 0xffffffffu;
constexpr int LARFT = 0;         // the warp of a team that forms T
constexpr int CHOLESKY = 1;      // the warps of the recurrence: always the same, so their instructions stay near
constexpr int JORDAN = 2;
constexpr uint32_t EMPTY = 0xffffffffu;  // no arithmetic makes this NaN

// ---- instructions
// predicated, so that the compiler makes no branch of it
DEVICE void store_if(bool on, uint32_t at, float x) { asm volatile("{.reg .pred p; setp.ne.u32 p,%0,0; @p st.shared.f32 [%1],%2;}" ::"r"((uint32_t)on), "r"(at), "f"(x) : "memory"); }
DEVICE void store_if(bool on, uint32_t at, float x, float y) { asm volatile("{.reg .pred p; setp.ne.u32 p,%0,0; @p st.shared.v2.f32 [%1],{%2,%3};}" ::"r"((uint32_t)on), "r"(at), "f"(x), "f"(y) : "memory"); }
DEVICE void store_if(bool on, uint32_t at, float x, float y, float z, float w) {
  asm volatile("{.reg .pred p; setp.ne.u32 p,%0,0; @p st.volatile.shared.v4.f32 [%1],{%2,%3,%4,%5};}" ::"r"((uint32_t)on), "r"(at), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}
DEVICE float load_if(bool on, const float* at) {  // volatile: all of a warp's loads are on their way before the first is used
  float x;
  asm volatile("{.reg .pred p; setp.ne.u32 p,%2,0; mov.f32 %0,0f00000000; @p ld.global.nc.f32 %0,[%1];}" : "=f"(x) : "l"(at), "r"((uint32_t)on));
  return x;
}
DEVICE float4 load4(uint32_t at) {
  float4 x;
  asm volatile("ld.volatile.shared.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(at) : "memory");
  return x;
}
DEVICE void store4(uint32_t at, float x, float y, float z, float w) { asm volatile("st.volatile.shared.v4.f32 [%0],{%1,%2,%3,%4};" ::"r"(at), "f"(x), "f"(y), "f"(z), "f"(w) : "memory"); }
DEVICE void store1(uint32_t at, float x) { asm volatile("st.volatile.shared.f32 [%0],%1;" ::"r"(at), "f"(x) : "memory"); }
DEVICE bool holds_empty(float4 x) { return max(max(__float_as_uint(x.x), __float_as_uint(x.y)), max(__float_as_uint(x.z), __float_as_uint(x.w))) == 0xffffffffu; }
DEVICE void remote_store(uint32_t at, uint32_t x) { asm volatile("st.shared::cluster.u32 [%0],%1;" ::"r"(at), "r"(x) : "memory"); }
DEVICE void remote_store(uint32_t at, uint4 x) { asm volatile("st.shared::cluster.v4.u32 [%0],{%1,%2,%3,%4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory"); }
DEVICE void cluster_fence() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }
DEVICE void remote_arrive(uint32_t b) { asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%0];" ::"r"(b) : "memory"); }
DEVICE void flag_set(uint32_t* at, uint32_t x) { asm volatile("st.release.gpu.global.u32 [%0],%1;" ::"l"(at), "r"(x) : "memory"); }
DEVICE uint32_t flag_get(const uint32_t* at) { uint32_t x; asm volatile("ld.acquire.gpu.global.u32 %0,[%1];" : "=r"(x) : "l"(at) : "memory"); return x; }
// Acquire at CTA scope for the peer's data as well: an acquire of the cluster only adds CCTL.IVALL (it empties L1). What waits guard is read from shared
// memory, where the peer's stores are when its arrival or its bytes are counted, or from L2 by ld.cg.
DEVICE bool barrier_passed(uint64_t* b) {
  uint32_t ok;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],0; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(shared_address(b)) : "memory");
  return ok;
}
DEVICE void barrier_wait_once(uint64_t* b) { while (!barrier_passed(b)) {} }

// Programmatic dependent launch: a grid may be set up while the one before it runs, but touches global memory only
// when that one is complete. Without the launch attribute both instructions do nothing.
DEVICE void after_earlier_grids() { grid_wait(); grid_release_next(); }
// Through the driver: the runtime's launch looks its kernel up each time, 0.3 us of the host's 3.7 at n = 32.
template <auto KERNEL, class... A>
int launch(int grid, int threads, int bytes, A... args) {
  static CUfunction function = nullptr;
  static decltype(&cuLaunchKernelEx) start = nullptr;
  if (!function) {
    cudaFuncSetAttribute(KERNEL, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes > 0 ? MAX_SHARED : 0);
    cudaDriverEntryPointQueryResult found;
    cudaError_t e = cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", (void**)&start, 12000, cudaEnableDefault, &found);
    if (e == cudaSuccess) e = cudaGetFuncBySymbol(&function, (const void*)KERNEL);
    if (e != cudaSuccess || !start) return e != cudaSuccess ? (int)e : (int)cudaErrorNotSupported;
  }
  CUlaunchAttribute attribute = {};
  attribute.id = static_cast<CUlaunchAttributeID>(6);  // programmatic serialization (its name is not allowed here)
  *reinterpret_cast<int*>(&attribute.value) = 1;
  CUlaunchConfig c = {};
  c.gridDimX = grid; c.gridDimY = c.gridDimZ = 1; c.blockDimX = threads; c.blockDimY = c.blockDimZ = 1; c.sharedMemBytes = bytes;
  c.attrs = &attribute; c.numAttrs = 1;
  void* pointers[] = {&args...};
  int rc = (int)start(&c, function, pointers, nullptr);
  if (rc == CUDA_ERROR_INVALID_CONTEXT) { cudaFree(nullptr); rc = (int)start(&c, function, pointers, nullptr); }  // this thread's first call
  return rc;
}
struct Args { const float* a; float* h; float* tau; uint32_t* vglobal; int n, steps, batch, early, helped, lag;
  unsigned char place[MAX_STEPS], until[MAX_STEPS]; };  // helped: the first group that a helper prepares, lag: blocks before its own that its team applies itself

// What a helper and the CTAs that it helps tell each other: a block is in global memory, a warp's part of a group is. Zero between launches: who has read
// them all clears them.
constexpr int MAX_MATRICES = 66;
struct Flags { uint32_t block[MAX_STEPS], group[MAX_STEPS][PARTS]; };
__device__ Flags all_flags[MAX_MATRICES];

// Blocks 0 .. j-1 of V take triangle(j) steps: a block starts at its own top step.
__host__ __device__ inline int triangle(int j, int steps) { return j * steps - j * (j - 1) / 2; }
// Of a matrix in global memory: E of all blocks, their records, the groups that a helper prepares
__host__ __device__ inline int workspace_bytes(int steps, int helped) { return triangle(steps, steps) * STEP_BYTES + steps * RECORD_BYTES + (steps - helped) * (steps * STEP_BYTES + PARTS * 256); }

// ---- geqr2 by one warp, a column a lane (`id`), its rows from the diagonal on in registers. Every lane knows the column x that is reduced and forms the next one
// itself: y is column k + 1 with all reflectors but the last, on its way through shared memory (at `at`) while the scalars of column k are made. A step moves the
// registers up by a row, so its loop is rolled; one loop for each count of live rows that pays (straight-line code is bound by its fetch).
struct Columns {
  float c[33], x[33], y[33], s;
  float tau, factor;  // factor: of this lane's entries in H; becomes 1 / (x - beta) in the lane's own step
  int id;
  uint32_t at;        // 256 bytes
  template <int ROWS> DEVICE void send_step(int k, float (&v)[33]) {  // column k to v in all lanes; the other lanes write to one place behind: no branch
    const uint32_t b = id == k ? at : at + 128;
    UNROLL for (int q = 0; q < ROWS / 4; q++) store4(b + q * 16, c[q * 4], c[q * 4 + 1], c[q * 4 + 2], c[q * 4 + 3]);
    __syncwarp();
    UNROLL for (int q = 0; q < ROWS / 4; q++) { const float4 t = load4(at + q * 16); v[q * 4] = t.x; v[q * 4 + 1] = t.y; v[q * 4 + 2] = t.z; v[q * 4 + 3] = t.w; }
  }
  template <int ROWS> DEVICE void dot() {  // x'c; in lane k that is x'x, in lane k + 1 x'y
    float d[4] = {0, 0, 0, 0};
    UNROLL for (int r = 0; r < ROWS; r++) d[r & 3] = fmaf(x[r], c[r], d[r & 3]);
    s = (d[0] + d[1]) + (d[2] + d[3]);
  }
  template <int ROWS> DEVICE void start() { tau = 0.f; send_step<ROWS>(0, x); dot<ROWS>(); }
  // emit(r): this lane's entry of row k is final, R from the diagonal on, the reflector (not scaled) before it
  template <int ROWS, class Emit> DEVICE void steps(int from, int to, Emit emit) {
    c[ROWS] = x[ROWS] = y[ROWS] = 0.f;
    ROLL for (int k = from; k < to; k++) {
      const float t0 = __shfl_sync(ALL, s, k + 1), g = __shfl_sync(ALL, s, k);
      send_step<ROWS>(k + 1, y);
      const bool zero = !(g > 1e-30f);  // such a column has no reflector: 1 / d = 0
      const uint32_t sign = __float_as_uint(x[0]) & 0x80000000u;
      const float rs = reciprocal_sqrt(g), sg = zero ? __uint_as_float(0x7f800000u) : copysignf(g, x[0]);
      const float d = fmaf(sg, rs, x[0]), inv = reciprocal(d);  // v = x / d below the diagonal, R's entry is x[0] - d
      const float sx = __uint_as_float(__float_as_uint(s) ^ sign), t = __uint_as_float(__float_as_uint(t0) ^ sign);
      emit(k, id >= k && !zero ? -(sx * rs) : c[0]);
      if (id == k) factor = inv;
      if (id == k && !zero) tau = fabsf(d) * rs;
      const float wc = id > k && !zero ? -fmaf(sx, rs, c[0]) * inv : 0.f;
      // the same with the choice before or after the product: which of them the registers like differs
      const float wy = ROWS == 32 ? -(zero ? 0.f : fmaf(t, rs, y[0])) * inv : zero ? 0.f : -fmaf(t, rs, y[0]) * inv;
      UNROLL for (int r = 0; r < ROWS; r++) c[r] = fmaf(wc, x[r + 1], c[r + 1]);
      UNROLL for (int r = 0; r < ROWS; r++) x[r] = fmaf(wy, x[r + 1], y[r + 1]);
      dot<ROWS>();
    }
  }
};

template <int TEAMS, bool RING, int CTAS>
struct Kernel {
  Args p;
  const float* a; float* h; float* tau; uint32_t* vg;
  float* exchange;               // this team's two buffers, the fragments of M, a flag
  unsigned char *sc, *sv, *sk, *sz;  // C of this team, E, the records, a step of zeros
  uint64_t *pbar, *kbar, *fbar;  // per block: P is there, K is there, all of E is in global memory (for other CTAs)
  int team, part, lane, g, q, parity;
  int rank;                      // of this CTA in its cluster
  Flags* flags;                  // of this matrix
  bool helper;                   // this CTA is one
  const unsigned char *place, *until;  // where a block is in the window, and the first one that takes its place
  int mine;                      // where the steps of this team's panel begin in the window, less its number
  static constexpr int OWN = RING ? 6 : 4;  // steps of a warp at most: n <= 384, and n <= 224 where all of E fits
  static constexpr int AT_R = 20, AT_V = 960, AT_D = 340, AT_U = 660, AT_INV = 980, AT_NORM = 1012, AT_RS = 640;  // scratch of the recurrence
  float unscale[2];
  float gw[2][4], gx[2][4], gy[2][4];  // Gram matrix of the live rows of C: hi hi, lo hi, hi lo

  DEVICE bool far(int k) { return RING && (until[k] < p.steps || k < lead(p.steps - 1)); }  // somebody will read block k from global memory
  DEVICE uint32_t peer(int i) { const int r = rank + 1 + i; return r < CTAS ? r : r - CTAS; }
  // a third of a block is in global memory (two warps push it, one sends the top rows): readers of either CTA wait for all three
  DEVICE void arrive_far(int k) {
    if (!far(k)) return;
    barrier_arrive(fbar + k);
    UNROLL for (int i = 0; i < CTAS - 1; i++) remote_arrive(map_address(fbar + k, peer(i)));
  }
  DEVICE void team_sync() { asm volatile("bar.sync %0,128;" ::"r"(team + 1) : "memory"); }
  DEVICE void made_sync() { asm volatile("bar.sync %0,64;" ::"r"(team + 9) : "memory"); }
  DEVICE void made_arrive() { asm volatile("bar.arrive %0,64;" ::"r"(team + 9) : "memory"); }
  DEVICE float* buffer() { float* b = exchange + parity * (BUFFER_BYTES / 4); parity ^= 1; return b; }
  DEVICE static void clear(float (&w)[2][4]) {
    UNROLL for (int t = 0; t < 2; t++)
      UNROLL for (int r = 0; r < 4; r++) w[t][r] = 0.f;
  }
  DEVICE int first_step(int top) { return top + ((part - top) & 3); }  // the first step >= top of this warp
  // one step of C in this lane: [tile][2 * half + row]
  DEVICE float4* cell(int s) { return reinterpret_cast<float4*>(sc + s * STEP_BYTES) + lane; }
  DEVICE void get(int s, float (&c)[2][4]) {
    const float4 x = cell(s)[0], y = cell(s)[32];
    c[0][0] = x.x; c[0][1] = x.y; c[0][2] = x.z; c[0][3] = x.w; c[1][0] = y.x; c[1][1] = y.y; c[1][2] = y.z; c[1][3] = y.w;
  }
  DEVICE void put(int s, const float (&c)[2][4]) {
    cell(s)[0] = make_float4(c[0][0], c[0][1], c[0][2], c[0][3]);
    cell(s)[32] = make_float4(c[1][0], c[1][1], c[1][2], c[1][3]);
  }
  // C or V of a step as the A operand (16 columns x 16 rows), two fp16 terms
  DEVICE static void operand(const float (&c)[2][4], uint32_t (&hi)[4], uint32_t (&lo)[4]) {
    UNROLL for (int z = 0; z < 4; z++) split(c[z >> 1][(z & 1) * 2], c[z >> 1][(z & 1) * 2 + 1], hi[z], lo[z]);
  }

  // ---- sum of a 16 x 16 product over the team's warps, in the same order in every warp
  DEVICE void post(const float (&w)[2][4], float4* b) {
    b[part * 64 + lane] = make_float4(w[0][0], w[0][1], w[0][2], w[0][3]);
    b[part * 64 + 32 + lane] = make_float4(w[1][0], w[1][1], w[1][2], w[1][3]);
  }
  DEVICE void collect(float (&w)[2][4], const float4* b) {
    UNROLL for (int t = 0; t < 2; t++) {
      const float4 x = b[t * 32 + lane], y = b[64 + t * 32 + lane], z = b[128 + t * 32 + lane], u = b[192 + t * 32 + lane];
      w[t][0] = (x.x + y.x) + (z.x + u.x); w[t][1] = (x.y + y.y) + (z.y + u.y);
      w[t][2] = (x.z + y.z) + (z.z + u.z); w[t][3] = (x.w + y.w) + (z.w + u.w);
    }
  }

  // ---- a group of 16 columns from global memory, each scaled by a power of two so that its largest entry is 16 .. 32
  DEVICE void read(int k, float (&c)[OWN][2][4]) {  // all steps of this warp at once: one after the other they cost the latency of L2 each
    const int col = k * GROUP + g;
    const float* x = a + (size_t)(part * 16 + 2 * q) * p.n + col;
    UNROLL for (int i = 0; i < OWN; i++)
      UNROLL for (int t = 0; t < 2; t++)
        UNROLL for (int e = 0; e < 2; e++) {
          const int row = 64 * i + 8 * t + e;
          const bool in = part * 16 + 2 * q + row < p.n;
          c[i][t][e] = load_if(in && col < p.n, x + row * p.n);
          c[i][t][2 + e] = load_if(in && col + 8 < p.n, x + row * p.n + 8);
        }
  }
  DEVICE void load(int k) {
    for (int i = part; i < 17; i += 4) rows_of_r()[32 * i] = EMPTY;  // and the verdicts behind them
    const int col = k * GROUP + g;
    const bool in0 = col < p.n, in1 = col + 8 < p.n;
    float m0 = 0.f, m1 = 0.f, held[OWN][2][4];
    if constexpr (RING) {
#pragma unroll 4
    for (int s = part; s < p.steps; s += 4) {
      float c[2][4];
      const float* x = a + (size_t)(s * 16 + 2 * q) * p.n + col;
      UNROLL for (int t = 0; t < 2; t++)
        UNROLL for (int e = 0; e < 2; e++) {
          const bool in = s * 16 + t * 8 + 2 * q + e < p.n;
          const float* y = x + (t * 8 + e) * p.n;
          c[t][e] = in && in0 ? __ldg(y) : 0.f;
          c[t][2 + e] = in && in1 ? __ldg(y + 8) : 0.f;
        }
      put(s, c);
      UNROLL for (int t = 0; t < 2; t++)
        UNROLL for (int e = 0; e < 2; e++) { m0 = fmaxf(m0, fabsf(c[t][e])); m1 = fmaxf(m1, fabsf(c[t][2 + e])); }
    }
    } else {
      read(k, held);
      UNROLL for (int i = 0; i < OWN; i++)
        UNROLL for (int t = 0; t < 2; t++)
          UNROLL for (int e = 0; e < 2; e++) { m0 = fmaxf(m0, fabsf(held[i][t][e])); m1 = fmaxf(m1, fabsf(held[i][t][2 + e])); }
    }
    m0 = fmaxf(m0, __shfl_xor_sync(ALL, m0, 1)); m0 = fmaxf(m0, __shfl_xor_sync(ALL, m0, 2));
    m1 = fmaxf(m1, __shfl_xor_sync(ALL, m1, 1)); m1 = fmaxf(m1, __shfl_xor_sync(ALL, m1, 2));
    float* b = buffer();
    if (q == 0) { b[g * 4 + part] = m0; b[(8 + g) * 4 + part] = m1; }
    team_sync();
    float scale[2];
    UNROLL for (int hf = 0; hf < 2; hf++) {
      const float4 x = *reinterpret_cast<float4*>(b + (8 * hf + g) * 4);
      const float m = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
      const int e = max((int)(__float_as_uint(m) >> 23) - 127, -118);
      scale[hf] = __uint_as_float((uint32_t)(127 + 4 - e) << 23);
      unscale[hf] = __uint_as_float((uint32_t)(127 - 4 + e) << 23);
    }
    if constexpr (RING) {
    ROLL for (int s = part; s < p.steps; s += 4) {
      float c[2][4];
      get(s, c);
      UNROLL for (int t = 0; t < 2; t++)
        UNROLL for (int r = 0; r < 4; r++) c[t][r] *= scale[r >> 1];
      put(s, c);
    }
    } else {
      UNROLL for (int i = 0; i < OWN; i++) {
        UNROLL for (int t = 0; t < 2; t++)
          UNROLL for (int r = 0; r < 4; r++) held[i][t][r] *= scale[r >> 1];
        if (part + 4 * i < p.steps) put(part + 4 * i, held[i]);
      }
    }
  }

  DEVICE unsigned char* slot(int s) { return sv + (mine + s) * STEP_BYTES; }  // step s of the panel of this team
  // a step of E as two fp16 terms: [2 * tile + half] stored as [2 * half + tile]
  DEVICE void to_slot(int s, const uint32_t (&hi)[4], const uint32_t (&lo)[4]) {
    const uint32_t d = shared_address(slot(s)) + lane * 16;
    store_matrix(d, hi[0], hi[2], hi[1], hi[3]);
    store_matrix(d + 512, lo[0], lo[2], lo[1], lo[3]);
  }
  DEVICE uint4* global_slot(int k, int s) { return reinterpret_cast<uint4*>(vg) + (size_t)(triangle(k, p.steps) + s - k) * (STEP_BYTES / 16) + lane; }
  // transposed: tiles in the order (half, tile) = 00, 10, 01, 11, so that each B operand is a pair of neighbours
  DEVICE int swapped() { return (((lane >> 3) & 1) * 2 + (lane >> 4)) * 128 + (lane & 7) * 16; }
  DEVICE void store_far(int k, int s, uint32_t at) {  // from the slot at `at`, as operands of the product with C
    uint32_t a[4], b[4];
    load_matrix(a, at + lane * 16); load_matrix(b, at + lane * 16 + 512);
    uint4* g4 = global_slot(k, s);
    g4[0] = make_uint4(a[0], a[1], a[2], a[3]); g4[32] = make_uint4(b[0], b[1], b[2], b[3]);
  }
  DEVICE static void turn(uint32_t (&b)[4]) {  // the same operand as ldmatrix would give it transposed, in the order of `swapped`
    const uint32_t b1 = transpose_8x8(b[2]), b2 = transpose_8x8(b[1]);
    b[0] = transpose_8x8(b[0]); b[1] = b1; b[2] = b2; b[3] = transpose_8x8(b[3]);
  }
  // ---- the helper: a third CTA (without a cluster) reads blocks from global memory and applies the first lead(k) of them to the last groups, so
  // that the teams, whose turn comes late, need not
  DEVICE uint4* global_record(int k) { return reinterpret_cast<uint4*>(vg) + triangle(p.steps, p.steps) * (STEP_BYTES / 16) + k * (RECORD_BYTES / 16); }
  DEVICE uint4* global_group(int k) { return global_record(p.steps) + (k - p.helped) * (p.steps * (STEP_BYTES / 16) + PARTS * 16); }
  DEVICE int lead(int k) { return k - p.lag; }  // nobody reads what is below 0: no helper, a lag of all blocks
  DEVICE void export_block(int k) {  // E is there, its writers have passed a barrier of the team
    if (!RING || CTAS == 1 || p.helped == p.steps || k >= lead(p.steps - 1)) return;  // nobody would clear the flag
    const uint32_t at = shared_address(sk + k * RECORD_BYTES);
    uint32_t th[4], tl[4];
    load_matrix_transposed(th, at + lane * 16); load_matrix_transposed(tl, at + 512 + lane * 16);
    uint4* o = global_record(k);
    o[lane] = make_uint4(th[0], th[1], th[2], th[3]); o[32 + lane] = make_uint4(tl[0], tl[1], tl[2], tl[3]);
    reinterpret_cast<uint32_t*>(o + 64)[lane] = reinterpret_cast<const uint32_t*>(sk + k * RECORD_BYTES + 1024)[lane];
    __syncwarp();
    if (lane == 0) flag_set(flags->block + k, 1);
  }
  DEVICE void wait_flag(const uint32_t* at) { while (flag_get(at) == 0) {} }
  DEVICE float2* global_unscale(int k) { return reinterpret_cast<float2*>(global_group(k) + p.steps * 64) + part * 32 + lane; }
  DEVICE void deliver(int k) {
    uint4* o = global_group(k) + lane;
    *global_unscale(k) = make_float2(unscale[0], unscale[1]);
    for (int s = part; s < p.steps; s += 4) {
      const float4 x = cell(s)[0], y = cell(s)[32];
      reinterpret_cast<float4*>(o + s * 64)[0] = x; reinterpret_cast<float4*>(o + s * 64)[32] = y;
    }
    __syncwarp();
    if (lane == 0) flag_set(flags->group[k] + part, 1);
  }
  DEVICE void take(int k) {
    for (int i = part; i < 17; i += 4) rows_of_r()[32 * i] = EMPTY;
    wait_flag(flags->group[k] + part);
    const float4* o = reinterpret_cast<const float4*>(global_group(k)) + lane;
#pragma unroll 2
    for (int s = part; s < p.steps; s += 4) {
      const float4 x = __ldcg(o + s * 64), y = __ldcg(o + s * 64 + 32);
      cell(s)[0] = x; cell(s)[32] = y;
    }
    const float2 u = __ldcg(global_unscale(k));
    unscale[0] = u.x; unscale[1] = u.y;
    team_sync();  // nobody is behind with the exchange of the group before
    if (lane == 0) flags->group[k][part] = 0;
  }
  // one step of the Gram matrix of panel k; below its top step, P goes to its slot for the other teams
  DEVICE void gram_step(const float (&c)[2][4], int k, int s, bool on) {
    uint32_t h[4], l[4];
    operand(c, h, l);  // h[2 * tile + half]
    if (on && s > k) to_slot(s, h, l);
    UNROLL for (int z = 0; z < 4; z++) { h[z] = on ? h[z] : 0u; l[z] = on ? l[z] : 0u; }
    mma(gw[0], h, h[0], h[2]); mma(gw[1], h, h[1], h[3]);
    mma(gx[0], l, h[0], h[2]); mma(gx[1], l, h[1], h[3]);
    mma(gy[0], h, l[0], l[2]); mma(gy[1], h, l[1], l[3]);
  }
  // ---- where V of block j is for group k, and 16 x 16 of it as B operands: bh, bl[2 * n tile + half of k]
  struct Source { const uint4* global; uint32_t shared; };
  DEVICE Source source(int j) {
    Source o;
    o.global = RING ? reinterpret_cast<const uint4*>(vg) + (size_t)(triangle(j, p.steps) - j) * (STEP_BYTES / 16) + lane : nullptr;
    o.shared = shared_address(sv) + (place[j] - j) * STEP_BYTES + lane * 16;
    return o;
  }
  template <bool TRANSPOSED, bool FAR> DEVICE void fetch(const Source& v, int s, uint32_t (&bh)[4], uint32_t (&bl)[4]) {
    const bool on = s < p.steps;  // else zeros
    if (FAR) {
      const uint4 z = make_uint4(0, 0, 0, 0);
      const uint4* g4 = v.global + s * (STEP_BYTES / 16);
      const uint4 x = on ? __ldcg(g4) : z, y = on ? __ldcg(g4 + 32) : z;  // past L1: the other CTA may have written it
      bh[0] = x.x; bh[1] = x.y; bh[2] = x.z; bh[3] = x.w; bl[0] = y.x; bl[1] = y.y; bl[2] = y.z; bl[3] = y.w;
    } else {
      const uint32_t at = on ? v.shared + s * STEP_BYTES : shared_address(sz) + lane * 16;
      if (TRANSPOSED) { const uint32_t u = at - lane * 16 + swapped(); load_matrix_transposed(bh, u); load_matrix_transposed(bl, u + 512); }
      else { load_matrix(bh, at); load_matrix(bl, at + 512); }
    }
  }
  DEVICE void w_step(const float (&c)[2][4], const uint32_t (&bh)[4], const uint32_t (&bl)[4]) {  // += C'E of a step
    uint32_t ah[4], al[4];
    operand(c, ah, al);
    mma(gw[0], ah, bh[0], bh[1]); mma(gw[1], ah, bh[2], bh[3]);
    mma(gx[0], al, bh[0], bh[1]); mma(gx[1], al, bh[2], bh[3]);
    mma(gy[0], ah, bl[0], bl[1]); mma(gy[1], ah, bl[2], bl[3]);
  }

  DEVICE void sum_up(float (&w)[2][4]) {
    UNROLL for (int t = 0; t < 2; t++)
      UNROLL for (int r = 0; r < 4; r++) w[t][r] = gw[t][r] + (gx[t][r] + gy[t][r]);
  }
  // E'C of the steps of this warp below the top step of block j. Two steps at a time for latency; the second may be zeros.
  template <bool FAR, int AHEAD> DEVICE void project(const Source& v, int j, float (&w)[2][4], uint32_t (&bh)[2 * AHEAD][4], uint32_t (&bl)[2 * AHEAD][4]) {
    const int s0 = first_step(j + 1);
    clear(gw); clear(gx); clear(gy);
    UNROLL for (int i = 0; i < 2 * AHEAD; i++) fetch<false, FAR>(v, s0 + 4 * i, bh[i], bl[i]);
    ROLL for (int s = s0; s < p.steps; s += 8 * AHEAD) {
      UNROLL for (int i = 0; i < AHEAD; i++) {
        const int u = s + 8 * i;
        if (i > 0 && u >= p.steps) break;
        float c0[2][4], c1[2][4];
        get(u, c0);
        get(u + 4 < p.steps ? u + 4 : u, c1);
        w_step(c0, bh[2 * i], bl[2 * i]);
        w_step(c1, bh[2 * i + 1], bl[2 * i + 1]);
        if (AHEAD == 1) { fetch<false, FAR>(v, s + 8, bh[0], bl[0]); fetch<false, FAR>(v, s + 12, bh[1], bl[1]); }
      }
    }
    sum_up(w);
  }
  // ---- larfb: C -= E K E' C for block j. Below the top step E is the panel itself, ready before its reflectors are, so that
  // all but 16 rows of E'C is done by the time when K comes. The update of the last block also forms the Gram matrix of
  // what is left, and publishes it as the next panel.
  template <bool FAR> DEVICE void apply(int j, int k) {
    const Source v = source(j);
    const int s0 = first_step(j);
    const bool owner = s0 == j, last = j == k - 1, gram = !FAR && last && k + 1 < p.steps;  // the last block is never far
    constexpr int AHEAD = FAR && TEAMS < 4 ? 3 : 1;
    uint32_t bh[2 * AHEAD][4], bl[2 * AHEAD][4], ah[4], al[4];
    float w[2][4], x[2][4], y[2][4];
    if (FAR && helper) wait_flag(flags->block + j); else barrier_wait_once((FAR ? fbar : pbar) + j);
    project<FAR, AHEAD>(v, j, w, bh, bl);
    float* b = buffer();
    post(w, reinterpret_cast<float4*>(b));
    uint4* top = reinterpret_cast<uint4*>(b) + PARTS * 64 + lane;  // the rows of C that every warp needs at the end
    if (owner) {
      float c[2][4];
      get(j, c);
      operand(c, ah, al);
      top[0] = make_uint4(ah[0], ah[1], ah[2], ah[3]); top[32] = make_uint4(al[0], al[1], al[2], al[3]);
    }
    // Tiles for the update: from global memory they are those of the product (all in registers where AHEAD allows), turned; the owner's top one comes later.
    const int from = FAR ? first_step(j + 1) : s0;
    if (!FAR && !owner) fetch<true, FAR>(v, s0, bh[0], bl[0]);
    if (!FAR) fetch<true, FAR>(v, s0 + 4, bh[1], bl[1]);
    if (FAR && AHEAD == 1) { fetch<false, FAR>(v, from, bh[0], bl[0]); fetch<false, FAR>(v, from + 4, bh[1], bl[1]); }
    team_sync();
    collect(w, reinterpret_cast<const float4*>(b));
    const uint4 uh = top[0], ul = top[32];
    ah[0] = uh.x; ah[1] = uh.y; ah[2] = uh.z; ah[3] = uh.w; al[0] = ul.x; al[1] = ul.y; al[2] = ul.z; al[3] = ul.w;
    if (!(FAR && helper)) barrier_wait_once(kbar + j);
    const unsigned char* record = FAR && helper ? reinterpret_cast<const unsigned char*>(global_record(j)) : sk + j * RECORD_BYTES;
    const bool column = !FAR && *reinterpret_cast<const volatile int*>(record + 1088) != 0;
    uint32_t eh[4], el[4];
    fetch<false, FAR>(v, j, eh, el);
    if (!FAR && owner) fetch<true, FAR>(v, s0, bh[0], bl[0]);
    uint32_t th[4], tl[4];
    float2 u0, u1;
    if (FAR && helper) {
      const uint4 x0 = __ldcg(reinterpret_cast<const uint4*>(record) + lane), x1 = __ldcg(reinterpret_cast<const uint4*>(record) + 32 + lane);
      th[0] = x0.x; th[1] = x0.y; th[2] = x0.z; th[3] = x0.w; tl[0] = x1.x; tl[1] = x1.y; tl[2] = x1.z; tl[3] = x1.w;
      u0 = __ldcg(reinterpret_cast<const float2*>(record + 1024 + 8 * q)); u1 = __ldcg(reinterpret_cast<const float2*>(record + 1056 + 8 * q));
    } else {
      load_matrix_transposed(th, shared_address(record) + lane * 16); load_matrix_transposed(tl, shared_address(record) + 512 + lane * 16);
      u0 = *reinterpret_cast<const float2*>(record + 1024 + 8 * q); u1 = *reinterpret_cast<const float2*>(record + 1056 + 8 * q);
    }
    if (column) {  // the panel went column by column: E is V, not P (and so it is in global memory by now)
      project<FAR, AHEAD>(v, j, w, bh, bl);
      b = buffer();
      post(w, reinterpret_cast<float4*>(b));
      team_sync();
      collect(w, reinterpret_cast<const float4*>(b));
      fetch<true, FAR>(v, s0, bh[0], bl[0]);
      fetch<true, FAR>(v, s0 + 4, bh[1], bl[1]);
    }
    const float sc4[4] = {u0.x, u0.y, u1.x, u1.y};
    clear(x); clear(y);
    mma(w[0], ah, eh[0], eh[1]); mma(w[1], ah, eh[2], eh[3]);
    mma(x[0], al, eh[0], eh[1]); mma(x[1], al, eh[2], eh[3]);
    mma(y[0], ah, el[0], el[1]); mma(y[1], ah, el[2], el[3]);
    uint32_t wh[4], wl[4];
    UNROLL for (int t = 0; t < 2; t++)
      UNROLL for (int r = 0; r < 4; r++) w[t][r] = (w[t][r] + (x[t][r] + y[t][r])) * sc4[2 * t + (r & 1)];
    operand(w, wh, wl);
    clear(w); clear(x); clear(y);
    mma(w[0], wh, th[0], th[1]); mma(w[1], wh, th[2], th[3]);
    mma(x[0], wl, th[0], th[1]); mma(x[1], wl, th[2], th[3]);
    mma(y[0], wh, tl[0], tl[1]); mma(y[1], wh, tl[2], tl[3]);
    UNROLL for (int t = 0; t < 2; t++)
      UNROLL for (int r = 0; r < 4; r++) w[t][r] = -(w[t][r] + (x[t][r] + y[t][r])) * sc4[2 * t + (r & 1)];
    operand(w, wh, wl);
    clear(gw); clear(gx); clear(gy);
    if (FAR && owner) {
      float c[2][4];
      get(j, c);
      turn(eh); turn(el);
      UNROLL for (int t = 0; t < 2; t++) { mma(c[t], wl, eh[2 * t], eh[2 * t + 1]); mma(c[t], wh, el[2 * t], el[2 * t + 1]); mma(c[t], wh, eh[2 * t], eh[2 * t + 1]); }
      put(j, c);
    }
    ROLL for (int u = from; u < p.steps; u += 8 * AHEAD) {
      UNROLL for (int i = 0; i < AHEAD; i++) {
        const int s = u + 8 * i;
        if (i > 0 && s >= p.steps) break;
        const bool on = s + 4 < p.steps;
        const int s1 = on ? s + 4 : s;
        uint32_t (&h0)[4] = bh[2 * i], (&l0)[4] = bl[2 * i], (&h1)[4] = bh[2 * i + 1], (&l1)[4] = bl[2 * i + 1];
        if (FAR) { turn(h0); turn(l0); turn(h1); turn(l1); }
        float c0[2][4], c1[2][4];
        get(s, c0);
        get(s1, c1);
        UNROLL for (int t = 0; t < 2; t++) { mma(c0[t], wl, h0[2 * t], h0[2 * t + 1]); mma(c1[t], wl, h1[2 * t], h1[2 * t + 1]); }
        UNROLL for (int t = 0; t < 2; t++) { mma(c0[t], wh, l0[2 * t], l0[2 * t + 1]); mma(c1[t], wh, l1[2 * t], l1[2 * t + 1]); }
        UNROLL for (int t = 0; t < 2; t++) { mma(c0[t], wh, h0[2 * t], h0[2 * t + 1]); mma(c1[t], wh, h1[2 * t], h1[2 * t + 1]); }
        put(s, c0);
        if (on) put(s1, c1);
        if (gram) { gram_step(c0, k, s, s >= k); gram_step(c1, k, s1, on); }
        if (AHEAD == 1) { fetch<!FAR, FAR>(v, s + 8, bh[0], bl[0]); fetch<!FAR, FAR>(v, s + 12, bh[1], bl[1]); }
      }
    }
  }

  // ---- geqr2 column by column, for panels that the Gram matrix cannot serve: one team barrier a column. The columns
  // stay unscaled reflectors x; inv and beta are per column. The pivot column is read straight from C.
  DEVICE void geqr2(int k, float (&inv)[2], float (&beta)[2]) {
    const bool owner = (k & 3) == part;
    __syncwarp();
    ROLL for (int col = 0; col < 16; col++) {
      const int hc = col >> 3, cc = col & 7, r0 = 2 * q;
      auto pivot = [&](int s, float (&x)[2][2]) {
        UNROLL for (int t = 0; t < 2; t++) {
          const float2 v = *reinterpret_cast<const float2*>(sc + s * STEP_BYTES + t * 512 + (cc * 4 + q) * 16 + hc * 8);
          const bool all = s > k;
          x[t][0] = all || 8 * t + r0 >= col ? v.x : 0.f;
          x[t][1] = all || 8 * t + r0 + 1 >= col ? v.y : 0.f;
        }
      };
      float d0[2] = {0, 0}, d1[2] = {0, 0};
      ROLL for (int s = first_step(k); s < p.steps; s += 4) {
        float c[2][4], x[2][2];
        get(s, c);
        pivot(s, x);
        UNROLL for (int t = 0; t < 2; t++)
          UNROLL for (int e = 0; e < 2; e++) { d0[e] = fmaf(x[t][e], c[t][e], d0[e]); d1[e] = fmaf(x[t][e], c[t][2 + e], d1[e]); }
      }
      float s0 = d0[0] + d0[1], s1 = d1[0] + d1[1];
      s0 += __shfl_xor_sync(ALL, s0, 1); s1 += __shfl_xor_sync(ALL, s1, 1);
      s0 += __shfl_xor_sync(ALL, s0, 2); s1 += __shfl_xor_sync(ALL, s1, 2);
      float* b = buffer();
      if (q == 0) { b[g * 4 + part] = s0; b[(8 + g) * 4 + part] = s1; }
      if (owner && q == cc >> 1) {
        const float* row = reinterpret_cast<const float*>(cell(k) + hc * 32) + (cc & 1);
        b[64 + g] = row[0]; b[72 + g] = row[2];
      }
      team_sync();
      const float4* b4 = reinterpret_cast<const float4*>(b);
      const float4 sp = b4[col], sa = b4[g], sb = b4[8 + g];
      const float alpha = b[64 + col], a0 = b[64 + g], a1 = b[72 + g];
      const float gk = (sp.x + sp.y) + (sp.z + sp.w);
      const bool zero = !(gk > 1e-28f);
      const float rs = reciprocal_sqrt(gk), ib = zero ? 0.f : (alpha >= 0.f ? -rs : rs);
      const float bt = zero ? alpha : gk * ib, d = alpha - bt, iv = zero ? 0.f : reciprocal(d);
      float w0 = g > col ? a0 - ((sa.x + sa.y) + (sa.z + sa.w)) * ib : 0.f;
      float w1 = 8 + g > col ? a1 - ((sb.x + sb.y) + (sb.z + sb.w)) * ib : 0.f;
      w0 *= -iv; w1 *= -iv;
      if (g == cc) { if (hc) { inv[1] = iv; beta[1] = bt; } else { inv[0] = iv; beta[0] = bt; } }
      ROLL for (int s = first_step(k); s < p.steps; s += 4) {
        float c[2][4], x[2][2];
        get(s, c);
        pivot(s, x);
        __syncwarp();
        UNROLL for (int t = 0; t < 2; t++)
          UNROLL for (int e = 0; e < 2; e++) {
            if (s == k && 8 * t + r0 + e == col) x[t][e] = d;
            c[t][e] = fmaf(w0, x[t][e], c[t][e]); c[t][2 + e] = fmaf(w1, x[t][e], c[t][2 + e]);
          }
        put(s, c);
      }
      __syncwarp();
    }
  }

  // ---- the last panel, 16 x 16: one warp (lanes 16.. repeat 0..15) writes R, V and tau as they come, the others the rows above
  DEVICE void square(int k) {
    const uint32_t at = shared_address(buffer());
    team_sync();  // other warps wrote these steps
    if (part == JORDAN) {
      const int j = lane & 15, col = k * GROUP + j;
      Columns me;
      me.id = j; me.at = at;
      const float u0 = __shfl_sync(ALL, unscale[0], (j & 7) * 4), u1 = __shfl_sync(ALL, unscale[1], (j & 7) * 4);
      me.factor = j < 8 ? u0 : u1;
      UNROLL for (int r = 0; r < 16; r += 2) {
        const float2 v = *reinterpret_cast<const float2*>(sc + k * STEP_BYTES + (r >> 3) * 512 + ((j & 7) * 4 + ((r & 7) >> 1)) * 16 + (j >> 3) * 8);
        me.c[r] = v.x; me.c[r + 1] = v.y;
      }
      const bool on = lane < 16 && col < p.n;
      float* o = h + (size_t)col * p.n + k * GROUP;
      auto emit = [&](int i, float row) { if (on) o[i] = row * me.factor; };
      const int left = p.n - k * GROUP;
      me.template start<16>();
      me.template steps<16>(0, min(8, left), emit);
      me.template steps<8>(8, min(16, left), emit);
      if (on) tau[col] = me.tau;
    } else {
      ROLL for (int s = part == 3 ? 2 : part; s < k; s += 3) {
        float c[2][4];
        get(s, c);
        store_step(k, s, c, unscale[0], unscale[1]);
      }
    }
  }

  // ---- X = inverse of (diag(1/d) + U), U strictly upper (rows, stride 20). Lane l makes row l of the two 8 x 8 blocks
  // on the diagonal; the block beside them is -X11 U12 X22. y: 64 floats of scratch.
  DEVICE void invert_upper(const float* rows, const float* d, float* out, float* y) {
    const int l = lane & 7, base = lane & 8;
    const float4* row = reinterpret_cast<const float4*>(rows + base * 20 + base);
    const float4 d0 = *reinterpret_cast<const float4*>(d + base), d1 = *reinterpret_cast<const float4*>(d + base + 4);
    const float dd[8] = {d0.x, d0.y, d0.z, d0.w, d1.x, d1.y, d1.z, d1.w};
    float x[8];
    UNROLL for (int r = 0; r < 8; r++) x[r] = r == l ? 1.f : 0.f;
    UNROLL for (int i = 0; i < 8; i++) {
      const float4 u0 = row[i * 5], u1 = row[i * 5 + 1];
      const float u[8] = {u0.x, u0.y, u0.z, u0.w, u1.x, u1.y, u1.z, u1.w};
      x[i] *= dd[i];
      UNROLL for (int r = i + 1; r < 8; r++) x[r] = fmaf(-u[r], x[i], x[r]);
    }
    float4* o = reinterpret_cast<float4*>(out + (base + l) * 20 + base);
    o[0] = make_float4(x[0], x[1], x[2], x[3]); o[1] = make_float4(x[4], x[5], x[6], x[7]);  // lanes 16.. repeat 0..15
    __syncwarp();
    const int r = g, c2 = 2 * q;  // this lane's two entries of an 8 x 8 product
    float s0 = 0.f, s1 = 0.f;
    UNROLL for (int k = 0; k < 8; k++) {
      const float u = rows[r * 20 + 8 + k];
      const float2 z = *reinterpret_cast<const float2*>(out + (8 + k) * 20 + 8 + c2);
      s0 = fmaf(u, z.x, s0); s1 = fmaf(u, z.y, s1);
    }
    *reinterpret_cast<float2*>(y + r * 8 + c2) = make_float2(s0, s1);
    __syncwarp();
    s0 = s1 = 0.f;
    UNROLL for (int k = 0; k < 8; k++) {
      const float u = out[r * 20 + k];
      const float2 z = *reinterpret_cast<const float2*>(y + k * 8 + c2);
      s0 = fmaf(-u, z.x, s0); s1 = fmaf(-u, z.y, s1);
    }
    *reinterpret_cast<float2*>(out + r * 20 + 8 + c2) = make_float2(s0, s1);
    *reinterpret_cast<float2*>(out + (8 + r) * 20 + c2) = make_float2(0.f, 0.f);
    __syncwarp();
  }
  // X (stride 20) as the B operand of an mma; with registers 1 and 2 swapped the A operand of X transposed.
  DEVICE void fragments(const float* x, float scale, uint32_t (&hi)[4], uint32_t (&lo)[4]) {
    UNROLL for (int z = 0; z < 4; z++) {  // z = column tile * 2 + half of k
      const float* e = x + (8 * (z & 1) + 2 * q) * 20 + 8 * (z >> 1) + g;
      split(e[0] * scale, e[20] * scale, hi[z], lo[z]);
    }
  }
  DEVICE void rows_to(float* m, const float (&w)[2][4]) {  // a 16 x 16 accumulator by rows, stride 20
    UNROLL for (int t = 0; t < 2; t++) {
      *reinterpret_cast<float2*>(m + g * 20 + t * 8 + 2 * q) = make_float2(w[t][0], w[t][1]);
      *reinterpret_cast<float2*>(m + (g + 8) * 20 + t * 8 + 2 * q) = make_float2(w[t][2], w[t][3]);
    }
  }

  // ---- the 16 reflectors of a panel from its Gram matrix G and its top block A1, by two warps. With R~ = R with signs:
  //     E = P - (R~; 0), B = E's top block = V1 U, V = E inv(U), K = inv(E'P) = -inv(B) inv(R~)', H' = I - E K E'.
  // Two eliminations, a column a lane: [G | I] -> [R | inv(R)'] (Cholesky) in one warp, and a step behind it
  // [A1 - R~ | -inv(R~)'] -> [I | K] in the other (Gauss-Jordan, no pivoting: the sign of a row of R~ is chosen when its pivot is known, which
  // keeps the pivot large). Lanes 0..15 hold the left halves, lanes 16..31 the right ones. A step is four rows: every lane holds the 4 x 4 block on
  // the diagonal and factors it itself (no exchange between pivots), then applies it to its own column; one trip through shared memory a step brings
  // the next block and the other rows' factors to all lanes. Registers are shifted by four a step, so the loops are rolled. The rows of
  // [R | inv(R)'] are handed over as words that are EMPTY before, without fences.
  // b (the partial Grams) becomes scratch: at 20 G, at 340 the coming blocks on the diagonal, at 660 the rows of U, at 980 the reciprocals of its
  // diagonal, at 1012 powers of two near the norms of the columns of P. In the other buffer: at 640 R~ by columns (negated), at 960 the columns of
  // A1 as they are when their step begins.
  DEVICE volatile uint32_t* rows_of_r() { return reinterpret_cast<volatile uint32_t*>(exchange + 2 * BUFFER_BYTES / 4) + lane; }  // later M and the top block
  DEVICE volatile uint32_t* fine_flag() { return reinterpret_cast<volatile uint32_t*>(exchange + 2 * BUFFER_BYTES / 4 + 512); }
  DEVICE volatile uint32_t* verdict() { return reinterpret_cast<volatile uint32_t*>(exchange + 2 * BUFFER_BYTES / 4 + 513); }
  DEVICE void cholesky(int k, float* b) {
    float w[2][4];
    collect(w, reinterpret_cast<const float4*>(b));
    __syncwarp();
    rows_to(b + AT_R, w);    // symmetric: its rows are the columns that the low lanes hold
    __syncwarp();
    const int j = lane & 15;
    const bool low = lane < 16;
    float a[16];
    UNROLL for (int r = 0; r < 4; r++) {
      const float4 v = *reinterpret_cast<const float4*>(b + AT_R + j * 20 + 4 * r);
      a[4 * r] = v.x; a[4 * r + 1] = v.y; a[4 * r + 2] = v.z; a[4 * r + 3] = v.w;
    }
    const float g0 = b[AT_R + j * 21], norm = __uint_as_float((uint32_t)(127 + (((int)(__float_as_uint(g0) >> 23) - 127) >> 1)) << 23);
    if (low) b[AT_NORM + j] = norm;
    UNROLL for (int r = 0; r < 16; r++) a[r] = low ? a[r] : (r == j ? norm : 0.f);  // so that K comes with its columns scaled
    const uint32_t rows = shared_address(exchange + 2 * BUFFER_BYTES / 4), b0 = shared_address(b);
    uint32_t out = rows + lane * 16, next = b0 + 4 * AT_D, from = rows + 64;
    float d[4][4];               // the block on the diagonal, in every lane: d[q][p], p <= q
    UNROLL for (int q = 0; q < 4; q++) { const float4 x = load4(b0 + 4 * (AT_R + 20 * q)); d[q][0] = x.x; d[q][1] = x.y; d[q][2] = x.z; d[q][3] = x.w; }
    ROLL for (int i = 0;; i++) {
      // the next block on the diagonal, before this step: every lane brings it up to date itself
      store_if((lane >> 2) == i + 1, next + (lane & 3) * 16, a[4], a[5], a[6], a[7]);
      __syncwarp();
      float4 n[4];
      UNROLL for (int q = 0; q < 4; q++) n[q] = load4(next + 16 * q);
      // Cholesky of 4 x 4 in every lane, two pivots at a time: 1 / r11 = r00 / sqrt(det)
      const float rs0 = reciprocal_sqrt(d[0][0]), rs1 = d[0][0] * rs0 * reciprocal_sqrt(fmaf(d[0][0], d[1][1], -(d[1][0] * d[1][0])));
      const float l10 = d[1][0] * rs0, l20 = d[2][0] * rs0, l30 = d[3][0] * rs0;
      const float l21 = fmaf(-l10, l20, d[2][1]) * rs1, l31 = fmaf(-l10, l30, d[3][1]) * rs1;
      const float d22 = fmaf(-l21, l21, fmaf(-l20, l20, d[2][2])), d32 = fmaf(-l21, l31, fmaf(-l20, l30, d[3][2])), d33 = fmaf(-l31, l31, fmaf(-l30, l30, d[3][3]));
      const float rs2 = reciprocal_sqrt(d22), rs3 = d22 * rs2 * reciprocal_sqrt(fmaf(d22, d33, -(d32 * d32))), l32 = d32 * rs2;
      float x[4];
      x[0] = a[0] * rs0;
      x[1] = fmaf(-l10, x[0], a[1]) * rs1;
      x[2] = fmaf(-l21, x[1], fmaf(-l20, x[0], a[2])) * rs2;
      x[3] = fmaf(-l32, x[2], fmaf(-l31, x[1], fmaf(-l30, x[0], a[3]))) * rs3;
      store4(out, x[0], x[1], x[2], x[3]);        // rows 4 i .. of [R | inv(R)'], this lane's column
      __syncwarp();
      if (i == 3) break;
      float4 y[4];
      UNROLL for (int q = 0; q < 4; q++) y[q] = load4(from + 16 * q);
      UNROLL for (int q = 0; q < 4; q++) {
        const float nq[4] = {n[q].x, n[q].y, n[q].z, n[q].w};
        UNROLL for (int p = 0; p <= q; p++) d[q][p] = fmaf(-y[q].w, y[p].w, fmaf(-y[q].z, y[p].z, fmaf(-y[q].y, y[p].y, fmaf(-y[q].x, y[p].x, nq[p]))));
      }
      UNROLL for (int z = 0; z < 12; z++) {
        const float4 u = z < 4 ? y[z] : load4(from + 16 * z);
        a[z] = fmaf(-u.w, x[3], fmaf(-u.z, x[2], fmaf(-u.y, x[1], fmaf(-u.x, x[0], a[z + 4]))));
      }
      out += 512; next += 64; from += 576;
    }
    const float r = *reinterpret_cast<volatile float*>(exchange + 2 * BUFFER_BYTES / 4 + (j >> 2) * 128 + j * 4 + (j & 3)), pivot = r * r;
    const bool fine = __all_sync(ALL, !low || (g0 >= MIN_GRAM && pivot >= MIN_PIVOT * g0));
    if (lane == 0) *verdict() = fine;
  }
  DEVICE void jordan(int k, float* b, float* m, float (&e)[16]) {
    {
      float top[2][4];
      get(k, top);
      rows_to(m + AT_V, top);  // accumulators of the transpose: the columns of the top block
    }
    __syncwarp();
    const int j = lane & 15;
    const bool low = lane < 16;
    UNROLL for (int r = 0; r < 4; r++) {
      const float4 u = *reinterpret_cast<const float4*>(m + AT_V + j * 20 + 4 * r);
      e[4 * r] = low ? u.x : 0.f; e[4 * r + 1] = low ? u.y : 0.f; e[4 * r + 2] = low ? u.z : 0.f; e[4 * r + 3] = low ? u.w : 0.f;
    }
    __syncwarp();
    // Results go by the low lanes; the high ones write to the gaps between rows (16 of 20 words are used): no branches.
    const uint32_t rows = shared_address(exchange + 2 * BUFFER_BYTES / 4), m0 = shared_address(m), b0 = shared_address(b), vo = m0 + 4 * (AT_V + j * 20);
    uint32_t in = rows + lane * 16, in_block = rows, from = m0 + 4 * AT_V, from_before = from;
    uint32_t uo = b0 + 4 * (AT_U + (low ? j : 16 + (j & 3)) - 80), so = m0 + 4 * (AT_RS + j * 20 + (low ? 0 : 16)), io = b0 + 4 * (AT_INV - 4);
    const uint32_t so_step = low ? 16 : 0;
    float4 p;                    // own column of four rows of R
    float d[4][4], r[4][4];      // the block on the diagonal in every lane: row, column; and that of R: column, row
    float t[4] = {0, 0, 0, 0}, iv[4] = {0, 0, 0, 0}, rt[4] = {0, 0, 0, 0};  // four rows of U, the pivots' reciprocals, four rows of R~
    float z[4] = {0, 0, 0, 0}, done[4] = {e[12], e[13], e[14], e[15]};
    UNROLL for (int l = 15; l >= 8; l--) e[l] = e[l - 4];  // rows 4 .. 11 of the rest are moved up below
    auto take_block = [&]() {
      UNROLL for (int q = 0; q < 4; q++) { const float4 x = load4(from + 80 * q); d[0][q] = x.x; d[1][q] = x.y; d[2][q] = x.z; d[3][q] = x.w; }
    };
    auto take_rows = [&]() {
      p = load4(in);
      UNROLL for (int q = 0; q < 4; q++) { const float4 x = load4(in_block + 16 * q); r[q][0] = x.x; r[q][1] = x.y; r[q][2] = x.z; r[q][3] = x.w; }
    };
    auto eliminate = [&](int part4, const float4 (&x)[4]) {   // four rows more, four up
      e[4 * part4 + 0] = fmaf(-x[3].x, z[3], fmaf(-x[2].x, z[2], fmaf(-x[1].x, z[1], fmaf(-x[0].x, z[0], e[4 * part4 + 4]))));
      e[4 * part4 + 1] = fmaf(-x[3].y, z[3], fmaf(-x[2].y, z[2], fmaf(-x[1].y, z[1], fmaf(-x[0].y, z[0], e[4 * part4 + 5]))));
      e[4 * part4 + 2] = fmaf(-x[3].z, z[3], fmaf(-x[2].z, z[2], fmaf(-x[1].z, z[1], fmaf(-x[0].z, z[0], e[4 * part4 + 6]))));
      e[4 * part4 + 3] = fmaf(-x[3].w, z[3], fmaf(-x[2].w, z[2], fmaf(-x[1].w, z[1], fmaf(-x[0].w, z[0], e[4 * part4 + 7]))));
    };
    auto rest_of_step = [&]() {    // what no chain waits for: the rows below the next block, and the results
      float4 x[4], y[4];
      UNROLL for (int q = 0; q < 4; q++) x[q] = load4(from_before + 80 * q + 32);
      UNROLL for (int q = 0; q < 4; q++) y[q] = load4(from_before + 80 * q + 48);
      UNROLL for (int l = 0; l < 4; l++) store1(uo + 80 * l, t[l]);
      store4(so, rt[0], rt[1], rt[2], rt[3]);
      store4(io, iv[0], iv[1], iv[2], iv[3]);
      eliminate(1, x); eliminate(2, y);
      e[12] = done[0]; e[13] = done[1]; e[14] = done[2]; e[15] = done[3];
    };
    take_block(); take_rows();
    ROLL for (int i = 0;; i++) {
      while (__any_sync(ALL, holds_empty(p))) take_rows();  // its rows of R are not there yet
      rest_of_step();
      const bool mine_now = (lane >> 2) == i, mine_next = (lane >> 2) == i + 1;
      UNROLL for (int part4 = 1; part4 < 4; part4++) store_if(mine_now, vo + 16 * part4, e[4 * part4], e[4 * part4 + 1], e[4 * part4 + 2], e[4 * part4 + 3]);
      __syncwarp();
      float4 c[4];
      UNROLL for (int q = 0; q < 4; q++) c[q] = load4(from + 80 * q + 16);
      const float own[4] = {p.x, p.y, p.z, p.w};
      UNROLL for (int l = 0; l < 4; l++) t[l] = e[l];
// LU of 4 x 4 in every lane, two pivots at a time: with p the first one and a = p d11 - d10 d01, the second is a / p. The sign of a row of
      // R~ is opposite to the pivot before it.
      UNROLL for (int l = 0; l < 4; l += 2) {
        const int m1 = l + 1;
        const float sign = copysignf(1.f, d[l][l]), p0 = fmaf(sign, r[l][l], d[l][l]);
        iv[l] = reciprocal(p0);
        t[l] = fmaf(sign, own[l], t[l]);
        rt[l] = sign * own[l];
        UNROLL for (int q = l + 1; q < 4; q++) d[l][q] = fmaf(sign, r[q][l], d[l][q]);
        const float a = fmaf(d[m1][m1], p0, -(d[m1][l] * d[l][m1])), sign1 = copysignf(sign, __uint_as_float(__float_as_uint(a) ^ __float_as_uint(p0)));
        iv[m1] = p0 * reciprocal(a + copysignf(r[m1][m1] * p0, a));
        UNROLL for (int s = l + 1; s < 4; s++) {
          const float f = d[s][l] * iv[l];
          UNROLL for (int q = l + 1; q < 4; q++) if (s != m1 || q != m1) d[s][q] = fmaf(-f, d[l][q], d[s][q]);
          t[s] = fmaf(-f, t[l], t[s]);
        }
        t[m1] = fmaf(sign1, own[m1], t[m1]);
        rt[m1] = sign1 * own[m1];
        UNROLL for (int q = m1 + 1; q < 4; q++) d[m1][q] = fmaf(sign1, r[q][m1], d[m1][q]);
        UNROLL for (int s = m1 + 1; s < 4; s++) {
          const float f = d[s][m1] * iv[m1];
          UNROLL for (int q = m1 + 1; q < 4; q++) d[s][q] = fmaf(-f, d[m1][q], d[s][q]);
          t[s] = fmaf(-f, t[m1], t[s]);
        }
      }
      in += 512; in_block += 576;
      if (i < 3) take_rows();        // the next ones, if they are there
      UNROLL for (int l = 3; l >= 0; l--) {
        float s = t[l];
        UNROLL for (int q = 3; q > l; q--) s = fmaf(-d[l][q], z[q], s);
        z[l] = s * iv[l]; done[l] = z[l];
      }
      eliminate(0, c);               // first the rows of the next block, for its block on the diagonal
      uo += 320; io += 16;
      from_before = from;
      if (i == 3) break;
      store_if(mine_next, vo, e[0], e[1], e[2], e[3]);
      __syncwarp();
      from += 320;
      take_block();
      if (i) so += so_step;
    }
    so += so_step;
    rest_of_step();
    __syncwarp();
  }
  // ---- K to this CTA and its peers; false where the certificate fails: the pivots have not cancelled, and K, whose columns lanes
  // 16.. hold, does not amplify the rounding of P. NaN fails it.
  DEVICE bool publish_k(int k, const float* b, float (&e)[16]) {
    const float norm = b[AT_NORM + (lane & 15)];
    float big[2] = {0.f, 0.f};
    UNROLL for (int z = 0; z < 4; z++) {
      const float4 y = *reinterpret_cast<const float4*>(b + AT_NORM + 4 * z);
      e[4 * z] *= y.x; e[4 * z + 1] *= y.y; e[4 * z + 2] *= y.z; e[4 * z + 3] *= y.w;
    }
    UNROLL for (int z = 0; z < 16; z++) big[z & 1] = fmaf(e[z], e[z], big[z & 1]);
    while (*verdict() == EMPTY) {}
    const bool fine = lane < 16 ? *verdict() != 0 : big[0] + big[1] <= MAX_GROWTH * MAX_GROWTH;
    const bool all = __all_sync(ALL, fine);
    if (lane == 0) *fine_flag() = all;
    if (!all) return false;
    publish_record(k, e, reciprocal(norm), 0);
    return true;
  }
  // Lane 16 + j holds row j of the transpose of K (T for a block of reflectors): tiles [8 columns][8 rows], so that ldmatrix with
  // transposition gives the B operand. scale: of reflector lane & 15.
  DEVICE void publish_record(int k, const float (&e)[16], float scale, int kind) {
    uint32_t hi[8], lo[8];
    UNROLL for (int z = 0; z < 8; z++) split(e[2 * z], e[2 * z + 1], hi[z], lo[z]);
    unsigned char* record = sk + k * RECORD_BYTES;
    uint4* d = reinterpret_cast<uint4*>(record) + (lane & 15);
    const uint32_t word = lane < 16 ? __float_as_uint(scale) : (uint32_t)kind;
    uint32_t* s = reinterpret_cast<uint32_t*>(record + 1024) + lane;
    const uint4 x0 = make_uint4(hi[0], hi[1], hi[2], hi[3]), x1 = make_uint4(hi[4], hi[5], hi[6], hi[7]);
    const uint4 z0 = make_uint4(lo[0], lo[1], lo[2], lo[3]), z1 = make_uint4(lo[4], lo[5], lo[6], lo[7]);
    if (lane >= 16) { d[0] = x0; d[16] = x1; d[32] = z0; d[48] = z1; }
    *s = word;
    __syncwarp();
    if (lane == 0) barrier_arrive(kbar + k);
    UNROLL for (int i = 0; i < CTAS - 1; i++) {
      const uint32_t o = map_address(d, peer(i)), to = map_address(kbar + k, peer(i));
      if (lane >= 16) { send(o, x0, to); send(o + 256, x1, to); send(o + 512, z0, to); send(o + 768, z1, to); }
      send(map_address(s, peer(i)), word, to);
    }
  }
  // ---- the panel to the other CTAs (and to global memory), by the two warps that would wait for the recurrence
  DEVICE void push(int k) {
    const bool out = far(k);
    if (part == CHOLESKY || part == JORDAN || (CTAS == 1 && !out)) return;
#pragma unroll 2
    for (int s = k + 1 + (part & 1); s < p.steps; s += 2) {
      const uint4* d = reinterpret_cast<const uint4*>(slot(s)) + lane;
      const uint4 x = d[0], y = d[32];
      UNROLL for (int i = 0; i < CTAS - 1; i++) { const uint32_t o = map_address(d, peer(i)); remote_store(o, x); remote_store(o + 512, y); }
      if (out) store_far(k, s, shared_address(slot(s)));
    }
    __syncwarp();
    if (lane == 0) {
      UNROLL for (int i = 0; i < CTAS - 1; i++) remote_arrive(map_address(pbar + k, peer(i)));
      arrive_far(k);
    }
  }
  // a step of E from its slot to the other CTAs and global memory
  DEVICE void send_step(int k, int s) {
    const uint4* d = reinterpret_cast<const uint4*>(slot(s)) + lane;
    if (CTAS > 1) {
      __syncwarp();
      const uint4 x = d[0], y = d[32];
      UNROLL for (int i = 0; i < CTAS - 1; i++) {
        const uint32_t o = map_address(d, peer(i)), to = map_address(kbar + k, peer(i));
        if (s == k) { send(o, x, to); send(o + 512, y, to); } else { remote_store(o, x); remote_store(o + 512, y); }
      }
    }
    if (far(k)) {
      __syncwarp();
      store_far(k, s, shared_address(slot(s)));
    }
  }
  // ---- geqr2 by the Gram matrix, whose sums the last update has left; false (and nothing changed but what is published)
  // where the certificate fails
  DEVICE bool geqr2_gram(int k, uint32_t (&mh)[4], uint32_t (&ml)[4]) {
    if (k == 0) {
      clear(gw); clear(gx); clear(gy);
      ROLL for (int s = part; s < p.steps; s += 4) {
        float c[2][4];
        get(s, c);
        gram_step(c, 0, s, true);
      }
    }
    float w[2][4];
    sum_up(w);
    float* b = buffer();
    post(w, reinterpret_cast<float4*>(b));
    __syncwarp();
    if (lane == 0) barrier_arrive(pbar + k);
    team_sync();
    push(k);
    uint4* fr = reinterpret_cast<uint4*>(exchange + 2 * BUFFER_BYTES / 4);
    float4* made = reinterpret_cast<float4*>(fr + 64);
    float* m = exchange + parity * (BUFFER_BYTES / 4);  // its readers have passed the barriers above
    float e[16];
    if (part == CHOLESKY) cholesky(k, b);
    if (part == JORDAN) jordan(k, b, m, e);
    if (part == JORDAN) {
      made_arrive();
      const bool fine = publish_k(k, b, e);
      if (fine) {
        invert_upper(b + AT_U, b + AT_INV, m, m + 320);
        fragments(m, M_SCALE, mh, ml);
        fr[lane] = make_uint4(mh[0], mh[2], mh[1], mh[3]); fr[32 + lane] = make_uint4(ml[0], ml[2], ml[1], ml[3]);
      }
    }
    if (part == CHOLESKY) {  // the top block of E, and R for H
      made_sync();
      const float* rs = m + AT_RS;
      float top[2][4], c[2][4];
      get(k, c);
      UNROLL for (int z = 0; z < 4; z++) {
        float2 x = *reinterpret_cast<const float2*>(rs + (g + 8 * (z & 1)) * 20 + 8 * (z >> 1) + 2 * q);
        const int row = 8 * (z >> 1) + 2 * q, cl = g + 8 * (z & 1);
        x.x = row <= cl ? -x.x : 0.f; x.y = row < cl ? -x.y : 0.f;  // there with the sign of the pivots
        top[z >> 1][2 * (z & 1)] = x.x; top[z >> 1][2 * (z & 1) + 1] = x.y;
        c[z >> 1][2 * (z & 1)] -= x.x; c[z >> 1][2 * (z & 1) + 1] -= x.y;
      }
      uint32_t hi[4], lo[4];
      operand(c, hi, lo);
      to_slot(k, hi, lo);  // read by nobody before K is there
      __syncwarp();
      while (*fine_flag() == EMPTY) {}
      if (*fine_flag() != 0) {
        if (lane == 0) barrier_arrive(kbar + k);
        send_step(k, k);
        put(k, c);  // V's top rows are formed like the others
        __syncwarp();
        if (lane == 0) arrive_far(k);
      }
      made[lane] = make_float4(top[0][0], top[0][1], top[0][2], top[0][3]);
      made[32 + lane] = make_float4(top[1][0], top[1][1], top[1][2], top[1][3]);
    }
    team_sync();
    if (!*fine_flag()) return false;
    const uint4 u = fr[lane], z = fr[32 + lane];
    mh[0] = u.x; mh[1] = u.y; mh[2] = u.z; mh[3] = u.w; ml[0] = z.x; ml[1] = z.y; ml[2] = z.z; ml[3] = z.w;
    return true;
  }

  // ---- larft by one warp, for panels that went column by column: inv(T) = diag(1/tau) + striu(V'V), tau = 2 / v'v
  DEVICE void larft(int k, float* m) {
    float w[2][4];
    collect(w, reinterpret_cast<const float4*>(m));
    __syncwarp();
    rows_to(m, w);
    __syncwarp();
    const float vv = m[(lane & 15) * 21], tj = vv > 0.f ? 2.f * reciprocal(vv) : 0.f;
    m[640 + (lane & 15)] = tj;
    if (lane < 16 && k * GROUP + lane < p.n) tau[k * GROUP + lane] = tj;
    __syncwarp();
    invert_upper(m, m + 640, m + 320, m + 656);
    float e[16];
    UNROLL for (int z = 0; z < 4; z++) {
      const float4 y = *reinterpret_cast<const float4*>(m + 320 + (lane & 15) * 20 + 4 * z);
      e[4 * z] = y.x; e[4 * z + 1] = y.y; e[4 * z + 2] = y.z; e[4 * z + 3] = y.w;
    }
    UNROLL for (int z = 0; z < 16; z++) e[z] = fminf(fmaxf(e[z], -6e4f), 6e4f);  // only for a T that no fp16 holds: keeps infinities out
    if (lane == 0) { barrier_arrive(kbar + k); arrive_far(k); }  // for the top rows
    publish_record(k, e, 1.f, 1);
  }

  // ---- one step of a column of H; rows above the panel are R of scaled columns
  DEVICE void store_step(int k, int s, const float (&c)[2][4], float f0, float f1) {
    const int col = k * GROUP + g;
    const bool even = (p.n & 1) == 0;
    UNROLL for (int hf = 0; hf < 2; hf++) {
      const float f = hf ? f1 : f0;
      if (col + 8 * hf >= p.n) continue;
      float* o = h + (size_t)(col + 8 * hf) * p.n + s * 16 + 2 * q;
      UNROLL for (int t = 0; t < 2; t++) {
        const int row = s * 16 + t * 8 + 2 * q;
        const float v0 = c[t][hf * 2] * f, v1 = c[t][hf * 2 + 1] * f;
        if (even) { if (row < p.n) *reinterpret_cast<float2*>(o + 8 * t) = make_float2(v0, v1); }
        else { if (row < p.n) o[8 * t] = v0; if (row + 1 < p.n) o[8 * t + 1] = v1; }
      }
    }
  }

  // V (or the reflectors' columns times inv) of a step
  DEVICE void form(int s, bool gram, const uint32_t (&mh)[4], const uint32_t (&ml)[4], const float (&inv)[2], float (&v)[2][4]) {
    float c[2][4];
    get(s, c);
    if (gram) {  // V' = M' P', P' through transposed 8 x 8 tiles
      uint32_t h[4], l[4];
      operand(c, h, l);
      UNROLL for (int z = 0; z < 4; z++) { h[z] = transpose_8x8(h[z]); l[z] = transpose_8x8(l[z]); }
      UNROLL for (int t = 0; t < 2; t++) {
        float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0}, f[4] = {0, 0, 0, 0};
        mma(d, mh, h[2 * t], h[2 * t + 1]); mma(e, ml, h[2 * t], h[2 * t + 1]); mma(f, mh, l[2 * t], l[2 * t + 1]);
        UNROLL for (int r = 0; r < 4; r++) v[t][r] = (d[r] + (e[r] + f[r])) * (1.f / M_SCALE);
      }
    } else {
      UNROLL for (int t = 0; t < 2; t++)
        UNROLL for (int r = 0; r < 4; r++) v[t][r] = c[t][r] * inv[r >> 1];
    }
  }

  // ---- geqr2 of a group, V and tau and R to H. Reflectors that other teams will apply as they are (`columns`) are rounded to two
  // fp16 terms first, so that tau belongs to the rounded ones.
  DEVICE void factor(int k) {
    if (k + 1 == p.steps) return square(k);
    float inv[2] = {0, 0}, beta[2] = {0, 0};
    uint32_t mh[4], ml[4];
    const bool gram = geqr2_gram(k, mh, ml), columns = !gram;
    if (columns) geqr2(k, inv, beta);
    else if (!RING && k + 2 < p.steps && (k + 1) / TEAMS % CTAS == rank) barrier_wait_once(pbar + k + 1);  // first the team of the next group, V is urgent for nobody
    float sums[2] = {0, 0};
    clear(gw); clear(gx); clear(gy);
    ROLL for (int s = first_step(k); s < p.steps; s += 4) {
      float v[2][4], top[2][4];
      if (gram || s != k) form(s, gram, mh, ml, inv, v);
      if (s == k) {
        if (gram) {
          const float4* made = reinterpret_cast<const float4*>(exchange + 2 * BUFFER_BYTES / 4 + 256) + lane;
          const float4 t0 = made[0], t1 = made[32];
          top[0][0] = t0.x; top[0][1] = t0.y; top[0][2] = t0.z; top[0][3] = t0.w; top[1][0] = t1.x; top[1][1] = t1.y; top[1][2] = t1.z; top[1][3] = t1.w;
        } else get(k, top);
        UNROLL for (int t = 0; t < 2; t++)
          UNROLL for (int r = 0; r < 4; r++) {
            const int row = 8 * t + 2 * q + (r & 1), cl = g + 8 * (r >> 1);
            const float below = gram ? v[t][r] : top[t][r] * inv[r >> 1];
            v[t][r] = row > cl ? below : (row == cl && (gram || inv[r >> 1] != 0.f) ? 1.f : 0.f);
            if (row == cl && !gram) top[t][r] = beta[r >> 1];
          }
      }
      if (columns) {
        uint32_t hi[4], lo[4];
        operand(v, hi, lo);
        UNROLL for (int z = 0; z < 4; z++) {
          const float2 fh = __half22float2(halves(hi[z])), fl = __half22float2(halves(lo[z]));
          v[z >> 1][(z & 1) * 2] = fh.x + fl.x; v[z >> 1][(z & 1) * 2 + 1] = fh.y + fl.y;
        }
        to_slot(s, hi, lo);
        send_step(k, s);
        mma(gw[0], hi, hi[0], hi[2]); mma(gw[1], hi, hi[1], hi[3]);
        mma(gx[0], lo, hi[0], hi[2]); mma(gx[1], lo, hi[1], hi[3]);
        mma(gy[0], hi, lo[0], lo[2]); mma(gy[1], hi, lo[1], lo[3]);
      } else {
        UNROLL for (int t = 0; t < 2; t++)
          UNROLL for (int r = 0; r < 4; r++) sums[r >> 1] = fmaf(v[t][r], v[t][r], sums[r >> 1]);
      }
      if (s == k) {
        UNROLL for (int t = 0; t < 2; t++)
          UNROLL for (int r = 0; r < 4; r++) {
            const int row = 8 * t + 2 * q + (r & 1), cl = g + 8 * (r >> 1);
            v[t][r] = row > cl ? v[t][r] : top[t][r] * unscale[r >> 1];
          }
      }
      store_step(k, s, v, 1.f, 1.f);
    }
    float* b = buffer();
    if (columns) {
      float w[2][4];
      sum_up(w);
      post(w, reinterpret_cast<float4*>(b));
      if (CTAS > 1) cluster_fence();  // V of this warp is in the other CTAs before the record that one warp sends
    } else {
      UNROLL for (int hf = 0; hf < 2; hf++) {
        sums[hf] += __shfl_xor_sync(ALL, sums[hf], 1);
        sums[hf] += __shfl_xor_sync(ALL, sums[hf], 2);
        if (q == 0) b[(8 * hf + g) * 4 + part] = sums[hf];
      }
    }
    team_sync();
    if (part == LARFT) {
      if (columns) larft(k, b);
      else if (lane < 16 && k * GROUP + lane < p.n) {
        const float4 x = reinterpret_cast<const float4*>(b)[lane];
        const float vv = (x.x + x.y) + (x.z + x.w);
        tau[k * GROUP + lane] = vv > 0.f ? 2.f * reciprocal(vv) : 0.f;
      }
    }
    if (part == LARFT) export_block(k);
    ROLL for (int s = part; s < k; s += 4) {
      float c[2][4];
      get(s, c);
      store_step(k, s, c, unscale[0], unscale[1]);
    }
  }
};

// Shared memory of a launch: TEAMS x (exchange, C), T, barriers, a step of zeros, V.
// The blocks in turn take the places of older ones where they do not all fit. True where they do not.
inline bool plan(Args& p, int teams, int& bytes) {
  p.steps = p.helped = p.lag = (p.n + 15) / 16;
  const int fixed = teams * (EXCHANGE_BYTES + p.steps * STEP_BYTES) + p.steps * RECORD_BYTES + (p.steps * 24 + 2 * MAX_STEPS + 127) / 128 * 128 + STEP_BYTES;
  const int room = min((MAX_SHARED - fixed) / STEP_BYTES, triangle(p.steps, p.steps));
  bytes = fixed + room * STEP_BYTES;
  bool again = false;
  for (int k = 0, at = 0; k < p.steps; at += p.steps - k++) {
    if (at + p.steps - k > room) at = 0;
    p.place[k] = at; p.until[k] = p.steps;
    for (int j = 0; j < k; j++) if (p.until[j] == p.steps && p.place[j] < at + p.steps - k && at < p.place[j] + p.steps - j) { p.until[j] = k; again = true; }
  }
  return again;
}

template <int TEAMS, bool RING, int CTAS>
DEVICE void geqrf_body(const Args& p) {
  extern __shared__ __align__(128) unsigned char shared[];
  Kernel<TEAMS, RING, CTAS> me;
  me.p = p;
  me.lane = threadIdx.x & 31; const int warp = __shfl_sync(ALL, (int)(threadIdx.x >> 5), 0);  // so that the compiler knows it to be the same in all lanes
  me.part = warp & 3; me.team = warp >> 2;
  me.g = me.lane >> 2; me.q = me.lane & 3; me.parity = 0;
  const int rank = CTAS > 1 ? blockIdx.x % CTAS : 0;  // clusters are consecutive blocks
  me.rank = rank;
  unsigned char* o = shared;
  me.exchange = reinterpret_cast<float*>(o + me.team * EXCHANGE_BYTES); o += TEAMS * EXCHANGE_BYTES;
  me.sc = o + me.team * p.steps * STEP_BYTES; o += TEAMS * p.steps * STEP_BYTES;
  me.sk = o; o += p.steps * RECORD_BYTES;
  me.pbar = reinterpret_cast<uint64_t*>(o); me.kbar = me.pbar + p.steps; me.fbar = me.kbar + p.steps; o += (p.steps * 24 + 2 * MAX_STEPS + 127) / 128 * 128;
  unsigned char* places = reinterpret_cast<unsigned char*>(me.fbar + p.steps);
  me.place = places; me.until = places + MAX_STEPS;
  me.sz = o; o += STEP_BYTES;
  me.sv = o;
  const bool helper = me.helper = RING && CTAS > 1 && blockIdx.x >= CTAS * p.batch;
  const size_t mat = helper ? blockIdx.x - CTAS * p.batch : blockIdx.x / CTAS;
  if (helper && mat >= p.batch) return;  // clusters are pairs
  me.flags = all_flags + mat;
  me.a = p.a + mat * p.n * p.n; me.h = p.h + mat * p.n * p.n; me.tau = p.tau + mat * p.n;
  me.vg = RING ? p.vglobal + mat * (size_t)(workspace_bytes(p.steps, p.helped) / 4) : nullptr;
  // a warp a block: instructions on barriers run one lane after the other
  for (int i = warp; i < p.steps; i += TEAMS * PARTS) {
    const bool own = i / TEAMS % CTAS == rank;
    if (me.lane == 0) {
      barrier_init(me.pbar + i, own ? PARTS : PARTS - 2);  // all warps of the team; from another CTA the two that push
      barrier_init(me.kbar + i, own ? 2 : 1);
      if (RING) barrier_init(me.fbar + i, 3);
      if (!own) barrier_expect(me.kbar + i, K_BYTES);
    }
  }
  if (threadIdx.x < 2 * MAX_STEPS) places[threadIdx.x] = threadIdx.x < MAX_STEPS ? p.place[threadIdx.x] : p.until[threadIdx.x - MAX_STEPS];
  for (int i = threadIdx.x; i < STEP_BYTES / 4; i += TEAMS * 128) reinterpret_cast<uint32_t*>(me.sz)[i] = 0u;
  __syncthreads();
  if (CTAS > 1) { barrier_init_fence(); cluster_arrive(); }
  // A hint only, so it may run while the grid before this one still does: the matrices of the clusters that start late as well
  if (!helper && mat < p.early) for (int b = mat; b < p.batch; b += p.early)
    for (int i = rank * TEAMS * 128 + threadIdx.x; i < p.n * p.n / 32; i += CTAS * TEAMS * 128) prefetch_l2(p.a + (size_t)b * p.n * p.n + (size_t)i * 32);
  after_earlier_grids();
  bool first = CTAS > 1;  // the others may still be setting up their barriers while the first group is loaded
  const int stride = helper ? TEAMS : CTAS * TEAMS;
  ROLL for (int k = helper ? p.helped + me.team : rank * TEAMS + me.team; k < p.steps; k += stride) {
    me.mine = me.place[k] - k;
    const bool taken = RING && CTAS > 1 && !helper && k >= p.helped;
    if (taken) me.take(k); else me.load(k);
    if (first) { cluster_wait(); first = false; }
    const int end = helper ? me.lead(k) : k;
    ROLL for (int j = taken ? me.lead(k) : 0; j < end; j++) if (RING && (helper || k >= me.until[j])) me.template apply<true>(j, k); else me.template apply<false>(j, k);
    if (RING && helper) me.deliver(k); else me.factor(k);
  }
  if (first) cluster_wait();
  if (RING && helper) {  // all teams have seen all blocks
    __syncthreads();
    if (threadIdx.x < MAX_STEPS) me.flags->block[threadIdx.x] = 0;
  }
  if (CTAS > 1 && !helper)  // what the peers send must have come before this memory is given back
    for (int j = threadIdx.x; j < p.steps - 1; j += TEAMS * 128) if (j / TEAMS % CTAS != rank) {
      barrier_wait_once(me.pbar + j); barrier_wait_once(me.kbar + j);
      if (me.far(j)) barrier_wait_once(me.fbar + j);
    }
}
template <int TEAMS, bool RING>
__global__ void __launch_bounds__(TEAMS * 128, 1) geqrf_teams(const __grid_constant__ Args p) { geqrf_body<TEAMS, RING, 1>(p); }
template <int TEAMS, bool RING>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(TEAMS * 128, 1) geqrf_teams2(const __grid_constant__ Args p) { geqrf_body<TEAMS, RING, 2>(p); }

}  // namespace qr_small
// n <= 32: one warp a matrix, lane = column.
namespace qr_small {
template <bool FULL>
__global__ void __launch_bounds__(32) geqrf_warp(const float* __restrict__ a, float* __restrict__ h, float* __restrict__ tau, int n_) {
  __shared__ __align__(16) float buf[2][32];
  const int n = FULL ? 32 : n_, lane = threadIdx.x;
  const float* ip = a + (size_t)blockIdx.x * n * n;
  if (lane * 32 < n * n) prefetch_l2(ip + lane * 32);
  after_earlier_grids();
  Columns me;
  me.id = lane; me.at = shared_address(buf);
  float m[4] = {0, 0, 0, 0};
  UNROLL for (int r = 0; r < 32; r++) me.c[r] = (FULL || (r < n && lane < n)) ? __ldg(ip + r * n + lane) : 0.f;
  UNROLL for (int r = 0; r < 32; r++) m[r & 3] = fmaxf(m[r & 3], fabsf(me.c[r]));
  // a power of two brings the largest entry of each column near 1: no square overflows; R is scaled back
  const int e = max((int)(__float_as_uint(fmaxf(fmaxf(m[0], m[1]), fmaxf(m[2], m[3]))) >> 23) - 127, -118);
  const float scale = __uint_as_float((uint32_t)(127 - e) << 23);
  me.factor = __uint_as_float((uint32_t)(127 + e) << 23);
  UNROLL for (int r = 0; r < 32; r++) me.c[r] *= scale;
  float* out = h + (size_t)blockIdx.x * n * n + lane;
  auto emit = [&](int, float row) { if (FULL || lane < n) *out = row * me.factor; out += n; };
  auto last = [&](int k) { return FULL ? k : min(k, n); };
  me.start<32>();
  me.steps<32>(0, last(8), emit);
  me.steps<24>(8, last(16), emit);
  me.steps<16>(16, last(24), emit);
  me.steps<8>(24, last(32), emit);
  if (FULL || lane < n) tau[blockIdx.x * n + lane] = me.tau;
}
}  // namespace qr_small

// Few instances, for the time to build: one CTA a matrix (large batches) always with the code that can read blocks from global memory.
namespace qr_small {
inline int geqrf_by_teams(Args args, int batch, int processors, float* (*workspace)(size_t)) {
  const bool two = 2 * batch <= processors;
  int bytes;
  const bool ring = plan(args, two ? 3 : 4, bytes);
  // A helper where three processors a matrix are there. More for it to do, and it is the clock; less, and the teams are (measured: 10 of 22, 8 of 18 .. 20, 10 of 24
  // groups).
  if (two && ring && (batch * 3 + 1) / 2 * 2 <= processors) { args.lag = args.steps / 2 - 1; args.helped = args.lag + 2; }
  const int clusters = args.helped < args.steps ? batch + (batch + 1) / 2 : batch, room = (two ? processors / 2 : processors) - batch;
  args.early = room > 0 ? room : batch;  // clusters that start while the grid before this one runs (its helpers are done early)
  if (two && !ring) return launch<geqrf_teams2<3, false>>(2 * batch, 384, bytes, args);
  if (ring) args.vglobal = (uint32_t*)workspace((size_t)batch * workspace_bytes(args.steps, args.helped));
  return two ? launch<geqrf_teams2<3, true>>(2 * clusters, 384, bytes, args) : launch<geqrf_teams<4, true>>(batch, 512, bytes, args);
}
}  // namespace qr_small

extern "C" int qr_small_launch(const float* a, float* h, float* tau, int n, int batch, float* (*workspace)(size_t)) {
  using namespace qr_small;
  if (n == 32) return launch<geqrf_warp<true>>(batch, 32, 0, a, h, tau, n);
  if (n < 32) return launch<geqrf_warp<false>>(batch, 32, 0, a, h, tau, n);
  static int processors = 0;
  if (processors == 0) {
    int device = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  }
  return geqrf_by_teams(Args{a, h, tau, nullptr, n, 0, batch, 0, 0, 0, {}, {}}, batch, processors, workspace);
}
"""

SMALL_BINDING = r"""
#include <torch/extension.h>
#include <torch/csrc/autograd/python_variable.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
// Host path, written for n = 32, where it is the clock: METH_O instead of pybind11's argument parsing, one allocation
// for both outputs straight from the caching allocator, two tensors made on that storage without the dispatcher.
// H is returned column-major (a transposed view) for n > 32, row-major for n <= 32; tau follows H in the same storage.
extern "C" int qr_small_launch(const float* a, float* h, float* tau, int n, int batch, float* (*workspace)(size_t));

static at::Tensor scratch;  // V blocks that do not fit in shared memory: grows, holds nothing between calls that is read
static float* workspace(size_t bytes) {
  if (!scratch.defined() || scratch.nbytes() < bytes || scratch.device().index() != c10::cuda::current_device())
    scratch = at::empty({(int64_t)bytes}, at::TensorOptions().dtype(at::kByte).device(at::kCUDA));
  return (float*)scratch.mutable_data_ptr();
}

static at::Tensor tensor_on(c10::Storage storage, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset) {
  auto t = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), caffe2::TypeMeta::Make<float>());
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return t;
}

// (H, tau) of a contiguous float32 CUDA tensor (b, n, n) on the current device, 1 <= n <= 384; None for anything else.
static PyObject* geqrf_small(PyObject*, PyObject* arg) {
  if (!THPVariable_Check(arg)) Py_RETURN_NONE;
  const at::Tensor& a = THPVariable_Unpack(arg);
  if (a.dim() != 3 || !a.is_cuda() || a.scalar_type() != at::kFloat || !a.is_contiguous()) Py_RETURN_NONE;
  const int64_t b = a.size(0), n = a.size(1);
  if (n < 1 || n > 384 || a.size(2) != n || b < 1 || b > 1000000 || a.requires_grad()) Py_RETURN_NONE;
  static const bool several = c10::cuda::device_count() > 1;
  if (several && a.device().index() != c10::cuda::current_device()) Py_RETURN_NONE;
  try {
  c10::Allocator* allocator = c10::cuda::CUDACachingAllocator::get();
  const int64_t h_floats = b * n * n, bytes = (h_floats + b * n) * (int64_t)sizeof(float);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator, false);
  float* h = static_cast<float*>(storage.mutable_data());
  const int rc = qr_small_launch(static_cast<const float*>(a.const_data_ptr()), h, h + h_floats, (int)n, (int)b, workspace);
  if (rc != 0) { PyErr_Format(PyExc_RuntimeError, "geqrf_small: launch failed, CUDA error %d, batch %lld, n %lld", rc, (long long)b, (long long)n); return nullptr; }
  at::Tensor ht = n > 32 ? tensor_on(storage, {b, n, n}, {n * n, 1, n}, 0) : tensor_on(storage, {b, n, n}, {n * n, n, 1}, 0);
  at::Tensor tau = tensor_on(std::move(storage), {b, n}, {n, 1}, h_floats);
  PyObject* out = PyTuple_New(2);
  PyTuple_SET_ITEM(out, 0, THPVariable_Wrap(std::move(ht)));
  PyTuple_SET_ITEM(out, 1, THPVariable_Wrap(std::move(tau)));
  return out;
  } catch (const std::exception& e) { PyErr_SetString(PyExc_RuntimeError, e.what()); return nullptr; }
}
static PyMethodDef methods[] = {{"geqrf_small", geqrf_small, METH_O, "(H, tau) or None"}, {nullptr, nullptr, 0, nullptr}};
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { PyModule_AddFunctions(m.ptr(), methods); }
"""

# ---------------------------------------------------------------- n512: v117

N512_CUDA = PRELUDE + r"""
// CONTENTS
//   geqrf: factor_matrix
//   A, H:  load_panel, read_half, scale_panel; store_r, form_reflectors (R and V to H)
//   geqr2: stage_window, gram, recurrence (recurrence_cholesky, recurrence_rows, recurrence_columns: a warp each),
//          safe_columns, form_reflectors (V = P M)
//   larft: cross_products; invert_window (T of 32 columns); window_t (tau, T)
//   larfb: apply_block: W = V'C, apply_t (W' = T'W), C -= V W'
//
// Left-looking Householder QR of a batch of n x n FP32 matrices, one CTA (one SM) a matrix, two warpgroups.
//
// DATA FLOW (panel k = columns 64k .. 64k+63; it stays in registers from load to store)
//
//      A, global                             earlier blocks V_j, T_j (j < k), global (L2)
//         | fetch_half, scale_panel             | prefetch_block: bulk copies, two stages
//         v                                       v
//   +-----------------+     apply_block(j), j = 0 .. k-1:
//   | c: panel,       |       W  = V_j' C             rows split over the warpgroups, summed in shared memory
//   | registers       | <-->  W' = T_j' W
//   | (all warps)     |       C  = C - V_j W'
//   +-----------------+     for window h = 0, 1 (32 columns):
//         | stage_window:     P = the unfinished rows, as fp16 hi + lo tiles in shared memory
//         | gram:             G = P'P, columns normalised by powers of two
//         | recurrence: G and the top 32 x 32 of P -> R, M (three warps)
//         | form_reflectors:  V = P M, rounded to fp16; R and V to H
//         | window_t:         V'V -> tau, T (and T11 V_0'V_1 with the second window); store_t: T in tiles
//         | (if the recurrence was to be trusted for some columns only: apply those to the rest of the window, once more)
//         | h = 0: apply the window's block to the other 32 columns (apply_block again)
//         v
//      H, tau, V_k, T_k
//
// REGISTERS: warp = 4 wg + ws holds columns 16 ws .. + 15 of the panel and every second 8-row tile (tile 2i + wg) as mma
// accumulators of C transposed. With g = lane/4 and q = lane%4:
//      c[i][e], c[i][2 + e]: columns 16 ws + 2g, + 1; row 8 (2i + wg) + 2q + e
// Packed in fp16 the same registers are the A operand of W^T = C^T V and the accumulators of C^T -= W'^T V^T: nothing is
// shuffled. The accumulators of W^T are in turn the A operand of W'^T = W^T T, and those of W'^T the A operand of the
// update. Tiles alternate between the warpgroups so that both lose rows at the same pace.
//
// TILES: V and P lie in shared memory as 8 x 8 tiles of halves, 128 bytes, [reflector][row]: what ldmatrix reads, plain
// for one product and transposed for the other; and the 8 x 8 core matrices of wgmma without swizzle, where K-contiguous serves
// W = V'C and N-contiguous serves C -= V W'.
//
// PRECISION. I - tau v v' is orthogonal exactly when tau = 2/v'v. Taking v'v from the v that is stored keeps every reflector
// orthogonal to fp32 accuracy, whatever the Gram matrix or the rounding did to v; the error shows only as a residue under
// the diagonal, about 2e-4 of the column's remaining norm with one fp16 term.
//   FP32_CLASS: V, C and W' are hi + lo, 22 bits; only lo lo is dropped. One term of any of them, at any one block, costs a dense
// column 2 to 3 n eps of its own norm, so no certificate could save a second term (but for V of the last window).
// V's low term is formed over P's low term, used there inside the panel, and kept by chunks of 16 tiles (128 rows): 16 KB of high
// terms in v[0], 16 KB of low ones in v[1], where a chunk of the next block replaces it.
//   Otherwise: where the 1-norm of the residue could count against ||A||_1 (band), V of the window takes two terms. The test uses
// exact column norms (the diagonal of G) and the exact column sums so far, which bound ||A||_1 from below. C in W = V'C is rounded
// to one term by the same test on the panel's whole columns, W' by a stricter one.
//
// FEW INSTRUCTIONS. One matrix an SM, two warps a scheduler, code run once a panel: an instruction on the path costs about
// four cycles, nearly whatever it does. So: one loop body for all windows, short rolled loops for the serial parts, tests
// and rare paths outside. The loop is 100 KB; with 8 KB more the whole kernel was 4 % slower.
//
// ZERO COLUMNS. A panel of zeros has R, V and tau of zero. If all columns after it are zero as well (read to make sure) the
// matrix ends there: exact, and a quarter of the columns of a matrix of rank 3n/4 made with zeros.
//
// WHEN THE RECURRENCE CANNOT BE TRUSTED: rounding in G is 2^-22; a pivot below PIVOT_RATIO of its column, or a column of
// M above M_NORM, would magnify it too much. Both are known exactly. The pass then ends before the first column past stricter
// values (PIVOT_SAFE, M_SAFE): its reflectors are applied to the rest of the window, and a new pass starts there with the
// norms of what is left.

namespace n512 {
using namespace qr;

// ---------------------------------------------------------------- instructions

#define RARE(...) __builtin_expect(!!(__VA_ARGS__), 0)
DEVICE float2 unpack_half2(uint32_t u) { return __half22float2(*reinterpret_cast<__half2*>(&u)); }
DEVICE uint32_t times_half2(uint32_t u, uint32_t v) {
  __half2 h = __hmul2(*reinterpret_cast<__half2*>(&u), *reinterpret_cast<__half2*>(&v));
  return *reinterpret_cast<uint32_t*>(&h);
}
DEVICE uint32_t plus_half2(uint32_t u, uint32_t v) {
  __half2 h = __hadd2(*reinterpret_cast<__half2*>(&u), *reinterpret_cast<__half2*>(&v));
  return *reinterpret_cast<uint32_t*>(&h);
}
// Kept in its register: the compiler would compute it anew in every turn of a loop.
DEVICE void keep(uint32_t& x) { asm volatile("" : "+r"(x)); }
DEVICE void keep(float*& x) { asm volatile("" : "+l"(x)); }
// the same with K = 8: A 16 x 8, B 8 x 8
DEVICE void mma_fp16_k8(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(b));
}
DEVICE float shfl(float x, int lane) { return __shfl_sync(~0u, x, lane); }
DEVICE float shfl_xor(float x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
DEVICE float largest(float x) { return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(x))); }  // x >= 0
DEVICE uint32_t sum_lanes(uint32_t x) { return __reduce_add_sync(~0u, x); }
DEVICE uint32_t ballot(bool p) { return __ballot_sync(~0u, p); }
// A is read once and H written once: out of the way of V in L2.
DEVICE float load_once(const float* p) { return __ldcs(p); }
DEVICE void store_once2(float* p, float2 x) { __stcs(reinterpret_cast<float2*>(p), x); }
DEVICE uint32_t load_word(const uint32_t* p) { return *reinterpret_cast<const volatile uint32_t*>(p); }
DEVICE float two_over(float x) {  // 2/x to an ulp
  const float y = reciprocal(x);
  return 2.f * fmaf(fmaf(-x, y, 1.f), y, y);
}
constexpr uint64_t EVICT_FIRST = 0x12F0000000000000;  // createpolicy's word for all of A: it is read once
DEVICE void tensor_load(void* to, const CUtensorMap* map, int column, int row, unsigned long long* b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0],[%1,{%2,%3}],[%4],%5;"
               ::"r"(shared_address(to)), "l"(map), "r"(column), "r"(row), "r"(shared_address(b)), "l"(EVICT_FIRST) : "memory");
}
DEVICE void tensor_prefetch(const CUtensorMap* map, int column, int row) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint [%0,{%1,%2}],%3;" ::"l"(map), "r"(column), "r"(row),
               "l"(EVICT_FIRST) : "memory");
}

DEVICE int lowest_bit(uint32_t x) { return __ffs((int)x) - 1; }

DEVICE unsigned long long load_state(const unsigned long long* p) {
  unsigned long long x;
  asm volatile("ld.acquire.gpu.u64 %0,[%1];" : "=l"(x) : "l"(p) : "memory");
  return x;
}
DEVICE void store_state(unsigned long long* p, unsigned long long x) { asm volatile("st.release.gpu.u64 [%0],%1;" ::"l"(p), "l"(x) : "memory"); }
DEVICE void short_sleep() { __nanosleep(200); }

// Hopper's warpgroup products: four warps, 64 x N x 16, A from registers (the layout of mma's A, 16 rows a warp), B from
// shared memory in 8 x 8 tiles of 128 bytes without swizzle. `k_stride`, `n_stride`: bytes between tiles along K and N.
#if WARPGROUP_MMA
// The lower word of a descriptor (the upper one is a constant: n_stride / 16). Made once and the same in all lanes, so that it
// can stay in a uniform register: a wgmma does not wait for its descriptor then. Offsets count in 16 bytes.
DEVICE uint32_t tile_descriptor(uint32_t address, uint32_t k_stride) {
  return uniform((address >> 4 & 0x3fff) | (k_stride >> 4) << 16);
}
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
// Two products, or none.
template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_32_if(bool on, float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], const uint32_t (&a)[4], const uint32_t (&a2)[4],
                        uint32_t b, uint32_t b2) {
  asm volatile(
      "{.reg .b64 d,e; .reg .pred p; setp.ne.u32 p,%28,0; @!p bra DONE;\n mov.b64 d,{%24,%26}; mov.b64 e,{%25,%26};"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19},d,1,1,1,%27;"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%20,%21,%22,%23},e,1,1,1,%27;\n DONE: }"
      : ACC4(d0), ACC4(d1), ACC4(d2), ACC4(d3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a2[0]), "r"(a2[1]), "r"(a2[2]), "r"(a2[3]), "r"(b), "r"(b2),
        "n"(N_STRIDE >> 4), "n"(TRANSPOSED), "r"((int)on));
}
#endif

// d += A'B over the pairs of tiles `tile`, tile + 4, ..: A's rows 16 ws .. + 15 and 32 columns of B. Tiles [column][row] in shared memory,
// M_STRIDE, N_STRIDE between those of neighbouring columns; 2048: by chunks. a, b: where tile 0 is.
#if WARPGROUP_MMA
// The loop is the assembler's: in a loop of the compiler's, which copies accumulators, every product would be waited for.
template <int M_STRIDE, int N_STRIDE>
DEVICE void multiply_tiles(float (&d)[4][4], uint32_t a, uint32_t b, int tile) {
  asm volatile(
      "{.reg .b64 d,e; .reg .b32 t,o,c,x,y; .reg .pred p; mov.u32 t,%18; wgmma.fence.sync.aligned;\n"
      "TILE_LOOP: and.b32 o,t,-16; shl.b32 o,o,6; and.b32 c,t,15;"
      "shl.b32 x,c,%21; add.u32 x,x,o; add.u32 x,x,%16; mov.b64 d,{x,%19};"
      "shl.b32 y,c,%22; add.u32 y,y,o; add.u32 y,y,%17; mov.b64 e,{y,%20};"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},d,e,1,1,1,0,0;"
      "add.u32 t,t,4; setp.lt.u32 p,t,64; @p bra TILE_LOOP;\n"
      "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
      : ACC4(d[0]), ACC4(d[1]), ACC4(d[2]), ACC4(d[3])
      : "r"(a), "r"(b), "r"(tile), "n"(M_STRIDE >> 4), "n"(N_STRIDE >> 4), "n"(M_STRIDE == 2048 ? 3 : 6), "n"(N_STRIDE == 2048 ? 3 : 6)
      : "memory");
}
#else
DEVICE uint32_t tile_descriptor(uint32_t address, uint32_t k_stride) { return address | (k_stride >> 4) << 20; }
template <int M_STRIDE, int N_STRIDE>
DEVICE void multiply_tiles(float (&d)[4][4], uint32_t a, uint32_t b, int tile) {
  const int lane = threadIdx.x & 31, ws = threadIdx.x >> 5 & 3, z0 = lane >> 3 & 1, z1 = lane >> 4;
  a = (a & 0xfffff) + (2 * ws + z0) * M_STRIDE + z1 * (a >> 20 << 4) + (lane & 7) * 16;
  b = (b & 0xfffff) + z1 * N_STRIDE + z0 * (b >> 20 << 4) + (lane & 7) * 16;
  ROLL for (; tile < 64; tile += 4) {
    const uint32_t at = (tile & ~15) << 10, c = tile & 15;
    uint32_t x[4], y[4];
    load_matrix(x, a + at + (c << (M_STRIDE == 2048 ? 7 : 10)));
    UNROLL for (int i = 0; i < 4; i += 2) {
      load_matrix(y, b + at + (c << (N_STRIDE == 2048 ? 7 : 10)) + i * N_STRIDE);
      mma(d[i], x, y[0], y[1]);
      mma(d[i + 1], x, y[2], y[3]);
    }
  }
}
#endif

// ---------------------------------------------------------------- sizes

// V, C and W' in two fp16 terms throughout (the FP32 class), or in one where that is enough. The host writes true where it wants the class.
constexpr bool FP32_CLASS = true;
constexpr bool FUSED = WARPGROUP_MMA;  // larfb's products with all terms a wait

constexpr int NB = 64;         // columns of a panel = reflectors of a block
constexpr int IB = 32;         // columns of a window: one Gram and one recurrence
constexpr int TILE = 8;        // rows of a tile, the n of mma m16n8
constexpr int ROWS = 512;      // rows held on chip; a smaller n is padded with zeros
constexpr int TILES = ROWS / TILE;
constexpr int OWN = TILES / 2; // tiles of a warpgroup
constexpr int BOX = 128;       // rows of a tensor copy
constexpr int SHARED_START = 1024;  // the system has the first kilobyte
constexpr int WARPS = 8;
constexpr int THREADS = WARPS * 32;
constexpr int REST = WARPS - 3;   // warps without a role in the recurrence
constexpr int MOVER = THREADS - 32;  // the thread that starts all bulk copies
constexpr int GROUPS = NB / TILE;  // groups of 8 reflectors of a block
constexpr int T_TILES = 48, T_WORDS = 2 * T_TILES * 32;  // of an upper triangular 64 x 64 without its 32 rows of zeros, in two terms
constexpr int PAD = 36;            // row stride in floats: float4 aligned, a warp's rows on different banks

// A column is scaled by a power of two so that its absolute sum is in [128, 256): its norm is then between 5.6 and 256, and
// orthogonal transforms keep it, so fp16 (65504) cannot overflow; entries under 2^-24 are lost, 2^-26 of the norm.
constexpr int SCALE_LOG2 = 7;
// A pivot this small against the squared norm of its column, or a column of M this large, would magnify the rounding
// of the Gram matrix (2^-22) too much: the window then takes several passes, each up to the first column past the safe values.
constexpr float PIVOT_RATIO = 1e-5f, PIVOT_SAFE = 1e-3f;
constexpr float M_NORM = 1000.f, M_SAFE = 30.f;
// FP32_CLASS: V, C and W' take two terms everywhere, for column-wise residuals of torch.geqrf's order. How far the recurrence is to
// be trusted then depends on what is left of a column, |p|, against the whole of it (its absolute sum is 128 .. 256): R and V of a
// window are wrong by about 2^-22 growth^2 |p|, which may be a fraction of n eps times the column's sum. So
// ratio = |p| / (TRUST n^2), at least 1 / MOST_TRUST; pivot / |p|^2 > ratio and growth^2 < 4 / ratio; SAFER times stricter where a
// pass has to end.
constexpr float TRUST = 1.f / 8, MOST_TRUST = 1e5f, SAFER = 64.f;
constexpr float TINY_SQUARE = 1e-30f;
constexpr float ZERO_PIVOT = 1e-37f;  // stands for the pivot of a zero column, so that its square root has an inverse
constexpr float LEAST_NORM = 4.5e-19f;  // above its square root
constexpr int DOWN_LIMIT = 22;  // what is left of a column is scaled up by at most 2^22; its M then fits fp16 or is refused
// Rounding v to fp16 leaves an error of about 2e-4 |p| per column (root mean square of fp16's relative rounding), spread
// over the m rows left: 1-norm sqrt(m) 2e-4 |p|. Where that could reach TWO_TERM_AT of the 20 allowed, V takes two terms.
constexpr float V_ROUNDING = 2e-4f;
constexpr float TWO_TERM_AT = 5.5f;

struct Window {            // scratch of one window's recurrence
  float out[IB][PAD];      // [row][4 + column]: R on and above the diagonal, v below
  float g[IB][PAD];        // upper triangle of G, and what is left of it
  float diagonal[IB];      // of G at the start
  float pivot[IB];         // of the Cholesky factorization
  float r_abs[IB][PAD];    // [column][4 + row]: Cholesky factor of G
  float top[IB][PAD];      // [row][column]: top of P, and what is left of it
  float w[IB][PAD];        // [column][4 + row]: U = diag(1/inverse) + w, P = V U
  float m[IB][PAD];        // [reflector][column]: M transposed, V = P M
  float inverse[IB];       // 1 / (alpha - beta), 0 where tau = 0
};
struct Triangle {          // scratch of larft
  float n[IB][PAD];        // V'V, strictly upper used
  float n21[3][IB][PAD];   // V_1'V_0 of either warpgroup's rows; what V's low terms add if they are not always there
  float t22t[IB][PAD];     // transposed T of the second window
  float x[IB][PAD];        // T11 V_0'V_1
};
struct Scratch {
  union { Window win; Triangle tri; };
  float4 partial[WARPS][8][32];
};
struct Exchange {
  float4 partial[2][4][GROUPS][32];  // W of both warpgroups
  uint4 operand[2][4][4][32];        // W', hi and lo, by columns, 16 reflectors each
};
struct __align__(128) Shared {
  uint32_t v[2][TILES][GROUPS][32];  // two stages of V; [0] is where a panel's V is formed, [1] also holds Scratch
  union {
    uint32_t p[TILES][2][4][32];     // a window of P, fp16 hi and lo (see p_tile); column col of a group at col ^ (group & 1)
    Exchange exchange;
    uint32_t half[ROWS / 2 * NB];      // half of the next panel
  };
  uint32_t t[2][2][T_TILES][32];     // T, hi and lo: 4 x 4 tiles of its first 32 columns, then 8 x 4 of the others; [column][row]
  float t11t[IB][PAD];               // transposed T of the first window
  float tau[NB];
  float unscale[NB];                 // undoes the column scaling
  float down[NB];                    // scales what is left of a column to a norm in [1, 2), as far as fp16 can
  float back[NB];                    // undoes both
  float sum[2][NB];                  // column sums of both warpgroups
  float beta[IB];
  int trip;                          // the recurrence cannot be trusted for the whole window
  int good;                          // its columns before the first one in doubt
  int two_terms;                     // V of this panel takes two terms
  uint32_t largest_sum;              // bits of the largest column sum so far: ||A||_1 at the end
  uint32_t largest_column;           // bits of a bound on the largest column norm of this panel
  unsigned long long full[5];  // mbarriers of the stages; of the chunks, and of the first window's low terms
  unsigned long long panel[2];       // and of the next panel's halves
  float ratio[IB];                   // FP32_CLASS: the smallest pivot to trust
};
static_assert(sizeof(Scratch) <= sizeof(uint32_t) * TILES * GROUPS * 32, "scratch fits a stage");

// The batch in equal shares: matrix i < cuts is done in two parts, panels 0 .. at[i] - 1 by one CTA, the rest by another. The first parts
// are the first CTAs of the grid, the second parts the last ones.
constexpr int MAX_CUTS = 512;
struct Plan { int cuts; unsigned char at[MAX_CUTS]; };
constexpr unsigned long long PART_DONE = 1ull << 63;  // in what a first part leaves: flags of low blocks, largest_sum
struct Lane { int tid, warp, lane, wg, ws, g, q; };
struct Job {
  const float* a; float* h; float* tau; uint32_t* v; uint32_t* v_lo; uint32_t* t; int n; int panels; int k; uint32_t flags;
  const CUtensorMap* map; int row; int from, to;
};
typedef float Panel[OWN][4];

// P: 8 groups a tile, high terms and then low ones.
// FP32_CLASS: P and V's low terms lie by chunks of 16 tiles, 16 KB, the 8 x 8 tiles of a group one after the other: of P high and low
// terms of 4 groups, of V the low terms of 8, in v[1] and in the workspace. V's low terms of a window are formed over P's, and yet all
// 64 reflectors are the N of one product.
constexpr int CHUNKS = TILES / 16, CHUNK = 16384;
constexpr int P_GROUP = 2048, P_LOW = 4 * P_GROUP;  // bytes
DEVICE int p_offset(int tile) { return (tile >> 4) * CHUNK + (tile & 15) * 128; }
// Where a tile of V's low term is in its workspace.
DEVICE uint32_t* low_at(const Job& job, int tile, int group) {
  return job.v_lo + (size_t)job.k * TILES * GROUPS * 32 + ((p_offset(tile) + group * P_GROUP) / 4);
}
DEVICE uint32_t* p_tile(Shared& s, int term, int tile, int group) {
  return &s.p[0][0][0][0] + (p_offset(tile) + term * P_LOW + group * P_GROUP) / 4;
}
DEVICE uint32_t* t_tile(Shared& s, int stage, int term, int k, int r) { return s.t[stage][term][(r >> 2) * 16 + 4 * k + (r & 3)]; }
DEVICE Scratch& scratch(Shared& s) { return *reinterpret_cast<Scratch*>(&s.v[1][0][0][0]); }

// ---------------------------------------------------------------- load and scale

// Until scale_panel c[i][2e], c[i][2e + 1] are row 2q + e, columns 2g, 2g + 1: neighbours in memory.
// Other n than 512: straight from global memory.
DEVICE void load_panel(Panel& c, const Job& job, int k, const Lane& me) {
  const int col = k * NB + me.ws * 16 + 2 * me.g;
  UNROLL for (int i = 0; i < OWN; i++) {
    UNROLL for (int e = 0; e < 2; e++) {
      const int row = (2 * i + me.wg) * TILE + 2 * me.q + e;
      const bool in = row < job.n;
      c[i][2 * e] = in && col < job.n ? load_once(job.a + (size_t)row * job.n + col) : 0.f;
      c[i][2 * e + 1] = in && col + 1 < job.n ? load_once(job.a + (size_t)row * job.n + col + 1) : 0.f;
    }
  }
}
// n = 512: half of the rows at a time through shared memory by tensor copies. Ordinary loads would fill the queue that shared
// memory's loads and stores go through as well. Boxes of BOX rows and IB columns, units of 16 bytes swizzled by the row.
DEVICE uint32_t* half_at(Shared& s, int half) { return half == 0 ? s.half : &s.v[0][0][0][0]; }
DEVICE void fetch_boxes(Shared& s, const Job& job, int k, int half, int from, int end) {  // one thread
  ROLL for (int i = from; i < end; i++) {
    tensor_load(half_at(s, half) + i * (BOX * IB), job.map, k * NB + (i & 1) * IB, job.row + (2 * half + (i >> 1)) * BOX, &s.panel[half]);
  }
}
DEVICE void fetch_half(Shared& s, const Job& job, int k, int half) {
  barrier_expect(&s.panel[half], ROWS * NB * 2);
  fetch_boxes(s, job, k, half, 0, 4);
}
template <int HALF>
DEVICE void read_half(Panel& c, const uint32_t* from, const Lane& me) {
  const int unit = 4 * (me.ws & 1) + (me.g >> 1);
  UNROLL for (int e = 0; e < 2; e++) {
    const int row = 2 * me.q + e;
    const uint32_t* at = from + (me.ws >> 1) * (BOX * IB) + (TILE * me.wg + row) * IB + (unit ^ row) * 4 + 2 * (me.g & 1);
    UNROLL for (int i = 0; i < OWN / 2; i++) {
      const float2 x = *(const float2*)(at + (i >> 3) * (2 * BOX * IB) + (i & 7) * (2 * TILE * IB));
      c[OWN / 2 * HALF + i][2 * e] = x.x;
      c[OWN / 2 * HALF + i][2 * e + 1] = x.y;
    }
  }
}

// The next panel from memory to L2 while this one is worked on.
template <bool EXACT>
DEVICE void prefetch_panel(const Job& job, int k, const Lane& me) {
  if (EXACT) {
    if (me.tid == MOVER) {
      ROLL for (int i = 0; i < 8; i++) tensor_prefetch(job.map, k * NB + (i & 1) * IB, job.row + (i >> 1) * BOX);
    }
  } else {
    ROLL for (int i = me.tid; i < 2 * job.n; i += THREADS) {
      const int col = k * NB + 32 * (i & 1);
      if (col < job.n) prefetch_l2(job.a + (size_t)(i >> 1) * job.n + col);
    }
  }
}

DEVICE void scale_panel(Panel& c, Shared& s, const Lane& me) {
  float sum[2];
  {
    float part[2][4];
    UNROLL for (int z = 0; z < 4; z++) part[0][z] = part[1][z] = 0.f;
    UNROLL for (int i = 0; i < OWN; i++) {
      UNROLL for (int b = 0; b < 2; b++) {
        part[b][2 * (i & 1)] += fabsf(c[i][b]);
        part[b][2 * (i & 1) + 1] += fabsf(c[i][2 + b]);
      }
    }
    UNROLL for (int b = 0; b < 2; b++) {
      sum[b] = (part[b][0] + part[b][1]) + (part[b][2] + part[b][3]);
      sum[b] += shfl_xor(sum[b], 1);
      sum[b] += shfl_xor(sum[b], 2);
      if (me.q == 0) s.sum[me.wg][me.ws * 16 + 2 * me.g + b] = sum[b];
    }
  }
  named_join(1 + me.ws, 64);
  float scale[2], square[2][2] = {{0.f, 0.f}, {0.f, 0.f}};
  int e[2];
  UNROLL for (int b = 0; b < 2; b++) {
    const int col = me.ws * 16 + 2 * me.g + b;
    const float whole = sum[b] + s.sum[1 - me.wg][col];
    e[b] = SCALE_LOG2 + 127 - (int)(__float_as_uint(whole) >> 23);
    e[b] = e[b] > 126 ? 126 : e[b] < -126 ? -126 : e[b];
    scale[b] = power_of_two(e[b]);
    if (me.wg == 0 && me.q == 0) {
      s.unscale[col] = power_of_two(-e[b]);
      atomicMax(&s.largest_sum, __float_as_uint(whole));
    }
  }
  UNROLL for (int i = 0; i < OWN; i++) {
    const float x = c[i][1];
    c[i][0] *= scale[0];
    c[i][1] = c[i][2] * scale[0];
    c[i][2] = x * scale[1];
    c[i][3] *= scale[1];
    UNROLL for (int b = 0; b < 2; b++) {
      square[b][0] = fmaf(c[i][2 * b], c[i][2 * b], square[b][0]);
      square[b][1] = fmaf(c[i][2 * b + 1], c[i][2 * b + 1], square[b][1]);
    }
  }
  UNROLL for (int b = 0; b < 2; b++) {
    float x = square[b][0] + square[b][1];
    x += shfl_xor(x, 1);
    x += shfl_xor(x, 2);
    // of half of the rows: twice the larger half is a bound, and near the truth where it matters
    if (me.q == 0 && x != 0.f) {
      atomicMax(&s.largest_column, __float_as_uint(2.f * x * reciprocal_sqrt(2.f * x) * power_of_two(-e[b])));
    }
  }
}

// ---------------------------------------------------------------- larfb: apply an earlier block

// FP32_CLASS: blocks in place, high terms in v[0], low ones in v[1]; by chunks of 16 tiles, from the last, with which T comes (into its
// two stages in turn), to the first. What a chunk has of rows above its block is anything.
DEVICE void fetch_chunk(Shared& s, const Job& job, int j, int chunk) {  // one thread
  const size_t at = (size_t)(j * CHUNKS + chunk) * (CHUNK / 4);
  barrier_expect(&s.full[chunk], 2 * CHUNK + (chunk == CHUNKS - 1 ? T_WORDS * 4 : 0));
  bulk_load(&s.v[0][16 * chunk][0][0], job.v + at, CHUNK, &s.full[chunk]);
  bulk_load(&s.v[1][16 * chunk][0][0], job.v_lo + at, CHUNK, &s.full[chunk]);
  if (chunk == CHUNKS - 1) bulk_load(&s.t[j & 1][0][0][0], job.t + (size_t)j * T_WORDS, T_WORDS * 4, &s.full[chunk]);
}
// A chunk of this block is not needed any more (by this warp): the next block's into its place.
DEVICE void release_chunk(Shared& s, const Job& job, int next, int chunk, const Lane& me) {
  if (next < 0 || chunk < next >> 1) return;
  if (me.warp == WARPS - 1) {
    named_join(6 + chunk, THREADS);
    if (me.tid == MOVER) {
      if (chunk == CHUNKS - 1) {  // the first one
        if (next == 1) bulk_store_read();           // T's stage is free
        if (next + 1 == job.k) bulk_store_wait();  // block k - 1 is in memory
      }
      fetch_chunk(s, job, next, chunk);
    }
  } else {
    named_arrive(6 + chunk, THREADS);
  }
}

// W'^T = W^T T: the accumulators w are the A operand of it, T the other one. A warpgroup makes 32 reflectors of it, which take the
// first 32 rows of T or all 64.
template <bool TWO>
DEVICE void apply_t(float (&d)[4][4], const uint32_t (&hi)[4][4], const uint32_t (&lo)[4][4], Shared& s, int t_stage, const Lane& me) {
#if WARPGROUP_MMA
  constexpr int LOW = T_TILES * 128 / 16;
  const uint32_t t = tile_descriptor(shared_address(t_tile(s, t_stage, 0, 0, 4 * me.wg)), 512);
  const auto add = [&](int from) {
    wgmma_fence();
    UNROLL for (int st = from; st < from + 2; st++) {
      wgmma_32<0, 128>(d[0], d[1], d[2], d[3], hi[st], t + 64 * st + LOW);
      if (TWO) wgmma_32<0, 128>(d[0], d[1], d[2], d[3], lo[st], t + 64 * st);
      wgmma_32<0, 128>(d[0], d[1], d[2], d[3], hi[st], t + 64 * st);
    }
    wgmma_commit();
    wgmma_wait();
  };
  if (me.wg == 1) add(2);
  add(0);
#else
  UNROLL for (int st = 0; st < 4; st++) {
    if (st < 2 || me.wg == 1) {
      UNROLL for (int r = 0; r < 4; r++) {
        uint32_t t[2][2];
        UNROLL for (int z = 0; z < 4; z++) t[z >> 1][z & 1] = t_tile(s, t_stage, z >> 1, 2 * st + (z & 1), 4 * me.wg + r)[me.lane];
        mma(d[r], hi[st], t[1][0], t[1][1]);
        if (TWO) mma(d[r], lo[st], t[0][0], t[0][1]);
        mma(d[r], hi[st], t[0][0], t[0][1]);
      }
    }
  }
#endif
}

struct Part { int window, from, to; };
// Of this lane's W only that: rare.
NOINLINE void select_part(float4 (*w)[32], Part part, Lane me) {
  ROLL for (int i = 0; i < 4 * GROUPS; i++) {
    const int reflector = 8 * (i >> 2) + 2 * me.q + (i & 1);
    if (reflector < part.from || reflector >= part.to || me.ws >> 1 != part.window) (&w[i >> 2][me.lane].x)[i & 3] = 0.f;
  }
}

// FP32_CLASS: where V's low terms are: 8 reflectors 2 KB apart, and `inside` the panel where form_reflectors left those of one
// window. W of the other 32 reflectors is then anything and is not used, and their W' is zero beside low terms of this window.
struct LowTerms {
  uint32_t tiles; bool inside; int window;
  DEVICE uint32_t other() const { return inside ? 0u : 4 * P_GROUP; }  // from the first 32 reflectors to the others
  DEVICE uint32_t lane(const Lane& me) const { return tiles + (me.lane >> 3) * P_GROUP + (me.lane & 7) * 16; }  // for ldmatrix
};
#if WARPGROUP_MMA
DEVICE void multiply_two_terms(float (&w)[GROUPS][4], Panel& c, Shared& s, LowTerms low, int quad0, uint32_t phase, const Lane& me) {
  const uint32_t v_hi = tile_descriptor(shared_address(&s.v[0][me.wg][0][0]), 2048);
  const uint32_t v_lo = tile_descriptor(low.tiles - low.window * 4 * P_GROUP, 256);
  if (!low.inside) barrier_wait(&s.full[CHUNKS - 1], phase >> (CHUNKS - 1) & 1);
  UNROLL for (int quad = OWN / 4 - 1; quad >= 0; quad--) {
    if (quad >= quad0) {
      if (!low.inside && quad % 2 == 1 && quad < OWN / 4 - 1) barrier_wait(&s.full[quad / 2], phase >> (quad / 2) & 1);
      uint32_t hi[2][4], lo[2][4];
      UNROLL for (int z = 0; z < 8; z++) {
        float(&x)[4] = c[4 * quad + (z >> 1)];
        split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z >> 2][z & 3], lo[z >> 2][z & 3]);
      }
      wgmma_fence();
      UNROLL for (int u = 0; u < 2; u++) {
        const uint32_t x = v_hi + (8 * quad + 4 * u) * 64, y = v_lo + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;
        wgmma_64<0, P_GROUP>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], y);
        wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], lo[u], x);
        wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], x);
      }
      wgmma_commit();
      wgmma_wait();
    }
  }
}
// w_hi[0], [1]: this warp's half of W', the other half comes through shared
// memory. `next`: the block whose chunks take the place of those that are done with; -1: none.
DEVICE void subtract_two_terms(Panel& c, Shared& s, const Job& job, uint32_t (&w_hi)[4][4], uint32_t (&w_lo)[4][4],
                               const uint4 (*operand)[4][4][32], LowTerms low, int quad0, int next, const Lane& me) {
  uint32_t v_hi[4], v_lo[4];
  UNROLL for (int i = 0; i < 4; i++) {
    const int st = 2 * (me.wg ^ (i >> 1)) + (i & 1);
    v_hi[i] = tile_descriptor(shared_address(&s.v[0][me.wg][2 * st][0]), 128);
    v_lo[i] = tile_descriptor(low.tiles + (st & 1) * 2 * P_GROUP + (st < 2 ? 0 : low.other()), P_GROUP);
    if (i >= 2) {
      const uint4 x = operand[0][me.ws][st][me.lane], y = operand[1][me.ws][st][me.lane];
      w_hi[i][0] = x.x; w_hi[i][1] = x.y; w_hi[i][2] = x.z; w_hi[i][3] = x.w;
      w_lo[i][0] = y.x; w_lo[i][1] = y.y; w_lo[i][2] = y.z; w_lo[i][3] = y.w;
    }
  }
  UNROLL for (int quad = OWN / 4 - 1; quad >= 0; quad--) {
    if (quad >= quad0) {
      const int i = 4 * quad;
      wgmma_fence();
      UNROLL for (int st = 0; st < 4; st++) {
        wgmma_32<1, 256>(c[i], c[i + 1], c[i + 2], c[i + 3], w_hi[st], v_lo[st] + quad / 2 * 1024 + quad % 2 * 64);
      }
      UNROLL for (int z = 0; z < 8; z++) {
        const int st = z & 3;
        wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], z < 4 ? w_lo[st] : w_hi[st], v_hi[st] + 8 * quad * 64);
      }
      wgmma_commit();
      wgmma_wait();
    }
    if (quad % 2 == 0) release_chunk(s, job, next, quad / 2, me);
  }
}
#endif

// C = (I - V T' V') C. Each warp has 16 columns and half of the rows; the two that share columns meet at a barrier of
// their own. `terms` 2: V's low term is in the other stage. `full` false: only the first 32 reflectors count (the others
// are zero in V, undefined in T). `part`: only these reflectors, and only the columns of one window.
DEVICE void apply_block(Panel& c, Shared& s, const Job& job, bool inside, int next, int stage, int t_stage, int block, int terms,
                        bool two_c, bool two_w, bool full, Part part, uint32_t phase, const Lane& me) {
  const int quad0 = (int)uniform((uint32_t)block);  // first group of four own tiles that is live
  const LowTerms low = {shared_address(inside ? p_tile(s, 1, me.wg, 0) : &s.v[1][0][0][me.wg * 32]), inside, part.window == 1};
  Exchange& x_change = inside ? *reinterpret_cast<Exchange*>(&scratch(s)) : s.exchange;
  float w[GROUPS][4];
  UNROLL for (int r = 0; r < GROUPS; r++) w[r][0] = w[r][1] = w[r][2] = w[r][3] = 0.f;
  // W^T = C^T V: c is the A operand as it stands
#if WARPGROUP_MMA
  multiply_two_terms(w, c, s, low, quad0, phase, me);
#endif
  if (!WARPGROUP_MMA) {
    ROLL for (int i = inside ? CHUNKS : quad0 >> 1; i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
  }
  // Passes: C's high term with V's high one, C's low one with it, C's high one with V's low one.
  ROLL for (int pass = FUSED ? 3 : 0; pass < (terms == 2 ? 3 : two_c ? 2 : 1); pass += pass == 0 && !two_c ? 2 : 1) {
    const uint32_t tiles = shared_address(&s.v[stage ^ (pass >> 1)][me.wg][0][0]);
#if WARPGROUP_MMA
    const uint32_t v_tiles = tile_descriptor(tiles, 2048);
    // No overlap within a warpgroup: while one rounds C, the other one multiplies.
    UNROLL for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        uint32_t a[2][4];
        UNROLL for (int z = 0; z < 8; z++) {
          float(&x)[4] = c[4 * quad + (z >> 1)];
          a[z >> 2][z & 3] = pack(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
        }
        if (pass == 1) {
          UNROLL for (int z = 0; z < 8; z++) {
            float(&x)[4] = c[4 * quad + (z >> 1)];
            const float2 f = unpack_half2(a[z >> 2][z & 3]);
            a[z >> 2][z & 3] = pack(x[(z & 1) * 2] - f.x, x[(z & 1) * 2 + 1] - f.y);
          }
        }
        wgmma_fence();
        UNROLL for (int u = 0; u < 2; u++) {
          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
#else
    UNROLL for (int st = 0; st < OWN / 2; st++) {
      if (st / 2 >= quad0) {
        uint32_t hi[4], lo[4];
        UNROLL for (int z = 0; z < 4; z++) {
          float(&x)[4] = c[2 * st + (z >> 1)];
          split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z], lo[z]);
        }
        UNROLL for (int half = 0; half < 2; half++) {
          uint32_t b0[4], b1[4];
          if (pass == 2) {
            if (inside && half != low.window) continue;
            const uint32_t at = low.lane(me) + half * low.other() + p_offset(4 * st);
            load_matrix(b0, at);
            load_matrix(b1, at + 256);
          } else {
            load_matrix(b0, tiles + (4 * st) * 1024 + half * 512 + me.lane * 16);
            load_matrix(b1, tiles + (4 * st + 2) * 1024 + half * 512 + me.lane * 16);
          }
          UNROLL for (int r = 0; r < 4; r++) {
            if (pass == 1) {
              mma(w[4 * half + r], lo, b0[r], b1[r]);
            } else {
              mma(w[4 * half + r], hi, b0[r], b1[r]);
            }
          }
        }
      }
    }
#endif
  }
  // The two halves of W meet. Where one term is enough for W' it is for W too, beside T in two.
  float d[4][4];
  UNROLL for (int i = 0; i < 16; i++) (&d[0][0])[i] = 0.f;
  uint32_t hi[GROUPS / 2][4], lo[GROUPS / 2][4];
  if (two_w) {
    UNROLL for (int r = 0; r < GROUPS; r++) {
      x_change.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    if (RARE(part.window >= 0)) {
      select_part(x_change.partial[me.wg][me.ws], part, me);
      UNROLL for (int r = 0; r < GROUPS; r++) *(float4*)&w[r][0] = x_change.partial[me.wg][me.ws][r][me.lane];
    }
    named_join(1 + me.ws, 64);
    UNROLL for (int r = 0; r < GROUPS; r++) {
      if (r < 4 || me.wg == 1) {  // the others enter W' of warpgroup 1 only
        float4 x = x_change.partial[1 - me.wg][me.ws][r][me.lane];
        w[r][0] += x.x; w[r][1] += x.y; w[r][2] += x.z; w[r][3] += x.w;
      }
    }
    UNROLL for (int st = 0; st < GROUPS / 2; st++) {
      UNROLL for (int z = 0; z < 4; z++) {
        const float(&x)[4] = w[2 * st + (z >> 1)];
        split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[st][z], lo[st][z]);
      }
    }
    apply_t<true>(d, hi, lo, s, t_stage, me);
  } else {
    uint4(*mine)[32] = reinterpret_cast<uint4(*)[32]>(x_change.partial[me.wg][me.ws]);
    uint4(*other)[32] = reinterpret_cast<uint4(*)[32]>(x_change.partial[1 - me.wg][me.ws]);
    UNROLL for (int st = 0; st < GROUPS / 2; st++) {
      UNROLL for (int z = 0; z < 4; z++) {
        const float(&x)[4] = w[2 * st + (z >> 1)];
        hi[st][z] = pack(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
      }
      if (st < 2 || me.wg == 0) mine[st][me.lane] = {hi[st][0], hi[st][1], hi[st][2], hi[st][3]};
    }
    named_join(1 + me.ws, 64);
    UNROLL for (int st = 0; st < GROUPS / 2; st++) {
      if (st < 2 || me.wg == 1) {
        const uint4 x = other[st][me.lane];
        hi[st][0] = plus_half2(hi[st][0], x.x);
        hi[st][1] = plus_half2(hi[st][1], x.y);
        hi[st][2] = plus_half2(hi[st][2], x.z);
        hi[st][3] = plus_half2(hi[st][3], x.w);
      }
    }
    apply_t<false>(d, hi, hi, s, t_stage, me);
  }
  UNROLL for (int pair = 0; pair < 2; pair++) {
    const bool on = full || me.wg == 0;
    UNROLL for (int z = 0; z < 4; z++) {
      const int u = 2 * pair + (z >> 1), e = 2 * (z & 1);
      d[u][e] = on ? -d[u][e] : 0.f;
      d[u][e + 1] = on ? -d[u][e + 1] : 0.f;
      hi[pair][z] = pack(d[u][e], d[u][e + 1]);
    }
    const int st = 2 * me.wg + pair;
    x_change.operand[0][me.ws][st][me.lane] = {hi[pair][0], hi[pair][1], hi[pair][2], hi[pair][3]};
    if (two_w) {
      UNROLL for (int z = 0; z < 4; z++) {
        const float2 f = unpack_half2(hi[pair][z]);
        lo[pair][z] = pack(d[2 * pair + (z >> 1)][2 * (z & 1)] - f.x, d[2 * pair + (z >> 1)][2 * (z & 1) + 1] - f.y);
      }
      x_change.operand[1][me.ws][st][me.lane] = {lo[pair][0], lo[pair][1], lo[pair][2], lo[pair][3]};
    }
  }
  named_join(1 + me.ws, 64);
  // C^T -= W'^T V^T
#if WARPGROUP_MMA
  subtract_two_terms(c, s, job, hi, lo, x_change.operand, low, quad0, next, me);
#endif
  // low and high term of W' for each term of V
  ROLL for (int pass = FUSED ? 4 : two_w ? 0 : 1; pass < 2 * terms; pass += two_w && !(pass == 1) ? 1 : 2) {
    const int term = 1 - (pass & 1);
    const uint32_t tiles = shared_address(&s.v[stage ^ (pass >> 1)][me.wg][0][0]);
    uint32_t wh[GROUPS / 2][4];
    UNROLL for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = x_change.operand[term][me.ws][st][me.lane];
      wh[st][0] = x.x; wh[st][1] = x.y; wh[st][2] = x.z; wh[st][3] = x.w;
    }
#if WARPGROUP_MMA
    const uint32_t v_rows = tile_descriptor(tiles, 128);
    UNROLL for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        const int i = 4 * quad;
        wgmma_fence();
        UNROLL for (int st = 0; st < 2; st++) {
          wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], v_rows + 8 * quad * 64 + st * 16);
        }
        wgmma_32_if<1, 2048>(full, c[i], c[i + 1], c[i + 2], c[i + 3], wh[2], wh[3], v_rows + 8 * quad * 64 + 32, v_rows + 8 * quad * 64 + 48);
        wgmma_commit();
        wgmma_wait();
      }
    }
#else
    // four tiles at a time so that independent products hide the latency of mma
    UNROLL for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        UNROLL for (int half = 0; half < 2; half++) {
          uint32_t b[4][4];
          UNROLL for (int u = 0; u < 4; u++) {
            const uint32_t at = tiles + (8 * quad + 2 * u) * 1024 + half * 512 + me.lane * 16;
            load_matrix_transposed(b[u], pass == 3 ? low.lane(me) + half * low.other() + p_offset(8 * quad + 2 * u) : at);
          }
          UNROLL for (int z = 0; z < 2; z++) {
            UNROLL for (int u = 0; u < 4; u++) mma(c[4 * quad + u], wh[2 * half + z], b[u][2 * z], b[u][2 * z + 1]);
          }
        }
      }
    }
#endif
  }
#if !WARPGROUP_MMA
  ROLL for (int i = CHUNKS - 1; i >= 0; i--) release_chunk(s, job, next, i, me);
#endif
}

// ---------------------------------------------------------------- geqr2: one window of 32 columns

template <bool EXACT>
DEVICE void store_pair(const Job& job, int row, int col, float x, float y) {  // columns col, col + 1
  if (EXACT) {
    store_once2(job.h + (size_t)row * ROWS + col, make_float2(x, y));
  } else if (row < job.n) {
    if (col < job.n) job.h[(size_t)row * job.n + col] = x;
    if (col + 1 < job.n) job.h[(size_t)row * job.n + col + 1] = y;
  }
}

// The rows of R that the earlier blocks finished; inside the panel the 32 of the first window.
template <bool EXACT>
DEVICE void store_r(Panel& c, Shared& s, const Job& job, int from, int to, bool inside, const Lane& me) {
  const int col = me.ws * 16 + 2 * me.g;
  const float u0 = s.unscale[col], u1 = s.unscale[col + 1];
  float* out = job.h + (me.wg * TILE + 2 * me.q) * ROWS + job.k * NB + col;
  UNROLL for (int quad = 0; quad < OWN / 4; quad++) {
    if (quad >= from && quad < to) {
      UNROLL for (int i = 4 * quad; i < 4 * quad + 4; i++) {
        if (i < 4 * quad + 2 || !inside) {
          const float2 x = make_float2(c[i][0] * u0, c[i][2] * u1), y = make_float2(c[i][1] * u0, c[i][3] * u1);
          if (EXACT) {  // one pointer and constants
            store_once2(out + 2 * i * TILE * ROWS, x);
            store_once2(out + (2 * i * TILE + 1) * ROWS, y);
          } else {
            const int row = (2 * i + me.wg) * TILE + 2 * me.q;
            store_pair<false>(job, row, job.k * NB + col, x.x, x.y);
            store_pair<false>(job, row + 1, job.k * NB + col, y.x, y.y);
          }
        }
      }
    }
  }
}

// The first `done` rows and columns of a window are finished: they are zero in what is left of it. Rare, so out of the way.
NOINLINE void clear_done(Shared& s, int first, int done, Lane me) {
  ROLL for (int i = me.tid; i < (TILES - first) * 128; i += THREADS) {
    const int tile = first + (i >> 7), group = i >> 5 & 3, word = i & 31;
    const int col = 8 * group + (word >> 2 ^ (group & 1)), row = 8 * (i >> 7) + 2 * (word & 3);
    const uint32_t keep = col < done || row + 1 < done ? 0u : row < done ? 0xffff0000u : ~0u;
    p_tile(s, 0, tile, group)[word] &= keep;
    p_tile(s, 1, tile, group)[word] &= keep;
  }
  fence_async();
  __syncthreads();
}

// P to shared memory as fp16 hi and lo tiles.
DEVICE void stage_window(Panel& c, Shared& s, int first, const Lane& me) {
  // this lane's row of the four matrices hi(2g), hi(2g + 1), lo(2g), lo(2g + 1): a column of P
  const int r = me.lane & 7, b = me.lane >> 3 & 1;
  const int group = 2 * (me.ws & 1) + (r >> 2);
  const uint32_t at = shared_address(p_tile(s, me.lane >> 4, me.wg, group) + (((2 * r + b) & 7) ^ (group & 1)) * 4);
  // Four tiles a branch, so that they overlap; the rows above the window, in the first of them, nobody reads.
  UNROLL for (int quad = 0; quad < OWN / 4; quad++) {
    if (8 * quad + 4 >= first) {
      uint32_t z[4][4];
      UNROLL for (int u = 0; u < 4; u++) {
        const float(&x)[4] = c[4 * quad + u];
        split(x[0], x[1], z[u][0], z[u][2]);
        split(x[2], x[3], z[u][1], z[u][3]);
      }
      UNROLL for (int u = 0; u < 4; u++) store_matrix(at + p_offset(8 * quad + 2 * u), z[u]);
    }
  }
}

DEVICE float4 sum_partials(const float4 (*partial)[8][32], int product, int lane) {
  float4 sum = partial[0][product][lane];
  UNROLL for (int w = 1; w < WARPS; w++) {
    float4 x = partial[w][product][lane];
    sum.x += x.x; sum.y += x.y; sum.z += x.z; sum.w += x.w;
  }
  return sum;
}

// Partial sums of P'P or V_h'V_h: six pieces of 16 x 8, those that hold the upper triangle.
struct Products { float own[6][4]; };
DEVICE void clear_products(Products& x) {
  UNROLL for (int i = 0; i < 6; i++) x.own[i][0] = x.own[i][1] = x.own[i][2] = x.own[i][3] = 0.f;
}
DEVICE void store_products(float4 (*to)[32], const Products& x, int lane) {
  UNROLL for (int i = 0; i < 6; i++) to[i][lane] = make_float4(x.own[i][0], x.own[i][1], x.own[i][2], x.own[i][3]);
}

struct Norm { float square, scale; };  // of a lane's column

// G = P'P = H'H + X + X' with X = L'H for P = H + L in fp16, its columns scaled by powers of two to a norm in [1, 2), and the top
// 32 x 32 of P as well. Rows are split over the warpgroups; warps 0 and 1 of either have H'H, 2 and 3 X, as fragments with the columns
// where they are in P's tiles.
DEVICE Norm gram(Shared& s, int first, const Lane& me) {
  Scratch& sc = scratch(s);
  float2 top[2];
  UNROLL for (int i = 0; i < 2; i++) {
    const int tile = me.warp & 3, group = 2 * (me.warp >> 2) + i;
    const int word = (me.g ^ (group & 1)) * 4 + me.q;
    const float2 hi = unpack_half2(p_tile(s, 0, first + tile, group)[word]), lo = unpack_half2(p_tile(s, 1, first + tile, group)[word]);
    top[i] = make_float2(hi.x + lo.x, hi.y + lo.y);
  }
  float x[4][4];
  UNROLL for (int i = 0; i < 16; i++) (&x[0][0])[i] = 0.f;
  const uint32_t p = tile_descriptor(shared_address(p_tile(s, 0, 0, 0)), p_offset(1));
  multiply_tiles<P_GROUP, P_GROUP>(x, p, p, first + 2 * me.wg);
  float4(*partial)[4][32] = reinterpret_cast<float4(*)[4][32]>(sc.partial);
  float(*transposed)[IB][PAD] = reinterpret_cast<float(*)[IB][PAD]>(sc.partial[WARPS / 2]);  // X of either warpgroup
  const int half = me.ws & 1, lower = 8 + (me.g ^ 1);  // the second row of a fragment
  UNROLL for (int i = 0; i < 4; i++) {
    partial[me.warp][i][me.lane] = make_float4(x[i][0], x[i][1], x[i][2], x[i][3]);
    if (me.ws >= 2) {
      UNROLL for (int e = 0; e < 4; e++) transposed[me.wg][8 * i + 2 * me.q + (e & 1 ^ i & 1)][16 * half + (e < 2 ? me.g : lower)] = x[i][e];
    }
  }
  __syncthreads();
  // lane = column
  const int at = (me.lane & 7) ^ (me.lane >> 3 & 1);  // in its group
  const float* own_partial = &partial[me.lane >> 4][me.lane >> 3][4 * at + (at >> 1)].x + 2 * (me.lane >> 3 & 1) + (at & 1);
  constexpr int WARP = 4 * 32 * 4;
  Norm norm;
  norm.square = own_partial[0] + own_partial[4 * WARP] + 2.f * (own_partial[2 * WARP] + own_partial[6 * WARP]);
  const int e = (127 - (int)(__float_as_uint(norm.square) >> 23)) >> 1;
  const float own = norm.square < TINY_SQUARE ? 0.f : power_of_two(e > DOWN_LIMIT ? DOWN_LIMIT : e);
  norm.scale = own;
  UNROLL for (int i = 0; i < 2; i++) {
    const int row = 8 * (me.warp & 3) + 2 * me.q, col = 8 * (2 * (me.warp >> 2) + i) + me.g;
    const float scale = shfl(own, col);
    sc.win.top[row][col] = top[i].x * scale;
    sc.win.top[row + 1][col] = top[i].y * scale;
  }
  if (me.warp < 6) {
    const int h = me.warp >> 2, i = me.warp < 4 ? me.warp : me.warp - 2;
    const int row = 16 * h + me.g, below = 16 * h + lower, col = 8 * i + 2 * me.q;
    float y[4];
    UNROLL for (int z = 0; z < 2; z++) {
      const float2 t = *(const float2*)&transposed[0][z ? below : row][col], u = *(const float2*)&transposed[1][z ? below : row][col];
      y[2 * z] = t.x + u.x;
      y[2 * z + 1] = t.y + u.y;
    }
    UNROLL for (int w = 6; w >= 0; w -= 2) {
      const float4 part = partial[h + w][i][me.lane];
      const bool odd = i & 1;
      y[0] += odd ? part.y : part.x;
      y[1] += odd ? part.x : part.y;
      y[2] += odd ? part.w : part.z;
      y[3] += odd ? part.z : part.w;
    }
    const float left = shfl(own, col), right = shfl(own, col + 1), upper = shfl(own, row), under = shfl(own, below);
    // a zero column's pivot
    const float g[4] = {y[0] * left * upper, y[1] * right * upper, y[2] * left * under, y[3] * right * under};
    const float pivot[4] = {row == col ? ZERO_PIVOT : g[0], row == col + 1 ? ZERO_PIVOT : g[1],
                            below == col ? ZERO_PIVOT : g[2], below == col + 1 ? ZERO_PIVOT : g[3]};
    *(float2*)&sc.win.g[row][col] = make_float2(fmaxf(g[0], pivot[0]), fmaxf(g[1], pivot[1]));
    *(float2*)&sc.win.g[below][col] = make_float2(fmaxf(g[2], pivot[2]), fmaxf(g[3], pivot[3]));
  } else if (me.warp == 6) {
    // what fp16 cannot scale (beyond 2^15) is scaled in M
    UNROLL for (int i = 0; i < IB; i += 4) *(float4*)&sc.win.m[me.lane][i] = make_float4(0.f, 0.f, 0.f, 0.f);
    sc.win.m[me.lane][me.lane] = own > 32768.f ? own * (1.f / 32768.f) : 1.f;
    sc.win.diagonal[me.lane] = norm.square * own * own;
  } else {  // the block before the first
    const float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
    *(float4*)&sc.win.r_abs[me.lane][0] = zero;
    *(float4*)&sc.win.w[me.lane][0] = zero;
    *(float4*)&sc.win.out[me.lane][0] = zero;
  }
  __syncthreads();
  return norm;
}

// By one warp beside the recurrence: how V's columns are scaled, and whether V takes two terms.
DEVICE void window_norms(Shared& s, const Job& job, int h, int first, bool first_pass, const Norm& norm, const Lane& me) {
  const float own = norm.scale, unscale = s.unscale[h * IB + me.lane];
  s.down[h * IB + me.lane] = own < 32768.f ? own : 32768.f;
  s.back[h * IB + me.lane] = own == 0.f ? 0.f : unscale * __uint_as_float(0x7f000000u - __float_as_uint(own));  // unscale / own
  s.ratio[me.lane] = fmaxf(own == 0.f ? 0.f : reciprocal(TRUST * (float)job.n * (float)job.n * own), 1.f / MOST_TRUST);
  const float largest_norm = largest(own == 0.f ? 0.f : norm.square * reciprocal_sqrt(norm.square) * unscale);
  const float rows = (float)(job.n - first * TILE);
  const float error = rows > 0.f ? rows * reciprocal_sqrt(rows) * V_ROUNDING * largest_norm : 0.f;
  const bool two = error > TWO_TERM_AT * 1.1920929e-7f * (float)job.n * __uint_as_float(s.largest_sum);
  if (me.lane == 0) {
    s.two_terms = FP32_CLASS || (first_pass ? two : two || s.two_terms);
    s.good = IB;
    s.trip = 0;
  }
}

DEVICE float minus_dot(float x, float4 a, float4 b) {
  return fmaf(-a.w, b.w, fmaf(-a.z, b.z, fmaf(-a.y, b.y, fmaf(-a.x, b.x, x))));
}

// From G and the top 32 x 32 of P: R, the top of V, and M with V = P M, four columns at a time, by three eliminations:
//   Cholesky  G = R'R without signs; row i of it is |row i of R|
//   LU        of the top of P: with beta = sign |R_ii| (no cancellation in alpha - beta) and v_i = 1, row i loses
//             w = (row i) - (row i of R), the rows below lose v w
//   inverse   P = V U with U = diag(alpha - beta) + w, so V = P M with M = U^-1
// Three warps have roles. Warp 0 does Cholesky (lane = column), one block ahead of the others: warp 1 the four rows of R and w (lane =
// column), warp 2 four columns of V (lane = row) and four rows of M' (lane = row), which go by the same formula and need
// different lanes. Each takes the rank-4 update of its last block into what it reads, and does the 4 x 4 on the diagonal by every
// lane for itself. Meanwhile the other warps do that update for what comes later, so that there is one barrier a block. A rolled
// loop for each role: straight-line code costs over 4 cycles an instruction, and so do tests. r_abs, w and out begin with four
// columns of zeros: the block before the first.
DEVICE void recurrence_cholesky(Window& win, bool square, int lane) {
  float4 own = make_float4(0.f, 0.f, 0.f, 0.f);  // the lane's part of the block before
  ROLL for (int o = 0; o < IB; o += 4) {
    float4 before[4];
    float g[4][4], x[4], root[4], out[4];
    UNROLL for (int i = 0; i < 4; i++) {
      *(float4*)&g[i][0] = *(const float4*)&win.g[o + i][o];
      before[i] = *(const float4*)&win.r_abs[o + i][o];
    }
    UNROLL for (int i = 0; i < 4; i++) x[i] = win.g[o + i][lane];
    UNROLL for (int i = 0; i < 4; i++) {
      UNROLL for (int j = i; j < 4; j++) g[i][j] = minus_dot(g[i][j], before[i], before[j]);
    }
    UNROLL for (int i = 0; i < 4; i++) x[i] = minus_dot(x[i], before[i], own);
    UNROLL for (int i = 0; i < 4; i++) {
      root[i] = reciprocal_sqrt(g[i][i]);
      UNROLL for (int j = i + 1; j < 4; j++) g[i][j] *= root[i];
      UNROLL for (int k = i + 1; k < 4; k++) {
        UNROLL for (int j = k; j < 4; j++) g[k][j] = fmaf(-g[i][k], g[i][j], g[k][j]);
      }
      out[i] = x[i] * root[i];
      UNROLL for (int k = i + 1; k < 4; k++) x[k] = fmaf(-g[i][k], out[i], x[k]);
    }
    own = make_float4(out[0], out[1], out[2], square && o == IB - 4 ? 0.f : out[3]);
    *(float4*)&win.r_abs[lane][4 + o] = own;
    if (lane == 0) *(float4*)&win.pivot[o] = make_float4(g[0][0], g[1][1], g[2][2], g[3][3]);
    __syncthreads();
  }
}

struct Four { float a[4][4], inverse[4]; uint32_t minus[4]; bool live[4]; };
// LU of the 4 x 4 on the diagonal, r[j][i] = |R_ij| being known: a[i][j] becomes w right of the diagonal, v left of it.
DEVICE void eliminate(Four& f, int i, const float (&r)[4][4]) {
  float(&a)[4][4] = f.a;
  f.live[i] = r[i][i] > LEAST_NORM;  // otherwise inverse is zero
  f.minus[i] = __float_as_uint(a[i][i]) & 0x80000000u;  // the sign of alpha: beta has the other one
  f.inverse[i] = reciprocal(a[i][i] + __uint_as_float(__float_as_uint(f.live[i] ? r[i][i] : INFINITY) | f.minus[i]));
  UNROLL for (int j = i + 1; j < 4; j++) a[i][j] += __uint_as_float(__float_as_uint(r[j][i]) ^ f.minus[i]);
  UNROLL for (int k = i + 1; k < 4; k++) {
    a[k][i] *= f.inverse[i];
    UNROLL for (int j = i + 1; j < 4; j++) a[k][j] = fmaf(-a[k][i], a[i][j], a[k][j]);
  }
}

DEVICE void recurrence_rows(Window& win, int lane) {
  float4 own = make_float4(0.f, 0.f, 0.f, 0.f);  // the lane's part of w of the block before
  ROLL for (int o = 0; o < IB; o += 4) {
    __syncthreads();
    float4 v[4];  // of the block before
    float r[4][4], mine[4], x[4], w[4];
    Four f;
    UNROLL for (int i = 0; i < 4; i++) {
      v[i] = *(const float4*)&win.out[o + i][o];
      x[i] = win.top[o + i][lane];
    }
    UNROLL for (int i = 0; i < 4; i++) *(float4*)&r[i][0] = *(const float4*)&win.r_abs[o + i][4 + o];
    *(float4*)&mine[0] = *(const float4*)&win.r_abs[lane][4 + o];
    UNROLL for (int i = 0; i < 4; i++) {
      x[i] = minus_dot(x[i], v[i], own);
      UNROLL for (int j = 0; j < 4; j++) f.a[i][j] = shfl(x[i], o + j);
    }
    UNROLL for (int i = 0; i < 4; i++) {
      eliminate(f, i, r);
      const float beta = f.live[i] ? -__uint_as_float(__float_as_uint(mine[i]) ^ f.minus[i]) : x[i];
      w[i] = x[i] - beta;
      if (lane >= o + i) win.out[o + i][4 + lane] = beta;
      UNROLL for (int k = i + 1; k < 4; k++) x[k] = fmaf(-f.a[k][i], w[i], x[k]);
    }
    own = make_float4(w[0], w[1], w[2], w[3]);
    *(float4*)&win.w[lane][4 + o] = own;
    if (lane == 0) *(float4*)&win.inverse[o] = *(float4*)&f.inverse[0];
  }
}

// Lanes from o + 4 on: rows of V; those before: rows of M', columns of M.
DEVICE bool too_large(const Shared& s, int j, float sum) { return !(sum * sum * s.ratio[j] < 4.f); }  // of M

DEVICE void recurrence_columns(Shared& s, Window& win, int lane) {
  float4 own = make_float4(0.f, 0.f, 0.f, 0.f);  // the lane's part of the block before
  ROLL for (int o = 0; o < IB; o += 4) {
    __syncthreads();
    float4 v[4], w[4];  // of the block before
    float r[4][4], x[4], out[4];
    Four f;
    UNROLL for (int i = 0; i < 4; i++) {
      *(float4*)&f.a[i][0] = *(const float4*)&win.top[o + i][o];
      v[i] = *(const float4*)&win.out[o + i][o];
      w[i] = *(const float4*)&win.w[o + i][o];
    }
    UNROLL for (int i = 0; i < 4; i++) *(float4*)&r[i][0] = *(const float4*)&win.r_abs[o + i][4 + o];
    if (lane >= o + 4) {
      *(float4*)&x[0] = *(const float4*)&win.top[lane][o];
    } else {
      UNROLL for (int i = 0; i < 4; i++) x[i] = win.m[o + i][lane];
    }
    if (lane >> 2 == o >> 2) own = make_float4(0.f, 0.f, 0.f, 0.f);  // has been V's
    UNROLL for (int i = 0; i < 4; i++) {
      UNROLL for (int j = 0; j < 4; j++) f.a[i][j] = minus_dot(f.a[i][j], v[i], w[j]);
    }
    UNROLL for (int i = 0; i < 4; i++) x[i] = minus_dot(x[i], w[i], own);
    UNROLL for (int i = 0; i < 4; i++) {
      eliminate(f, i, r);
      out[i] = x[i] * f.inverse[i];
      UNROLL for (int k = i + 1; k < 4; k++) x[k] = fmaf(-f.a[i][k], out[i], x[k]);
    }
    own = make_float4(out[0], out[1], out[2], out[3]);
    if (lane >= o + 4) {
      *(float4*)&win.out[lane][4 + o] = own;
    } else {
      UNROLL for (int i = 0; i < 4; i++) win.m[o + i][lane] = out[i];
    }
    if (o == IB - 4) {  // their absolute sums, in units of 1/256; the other rows have a warp that is idle at the end
      UNROLL for (int i = 0; i < 4; i++) {
        if (too_large(s, o + i, (float)sum_lanes((uint32_t)fminf(256.f * fabsf(out[i]), 1e8f)) * (1.f / 256))) s.trip = 1;
      }
    }
    if (lane == 0) {
      win.out[o + 1][4 + o] = f.a[1][0];
      *(float2*)&win.out[o + 2][4 + o] = make_float2(f.a[2][0], f.a[2][1]);
      *(float2*)&win.out[o + 3][4 + o] = make_float2(f.a[3][0], f.a[3][1]);
      win.out[o + 3][6 + o] = f.a[3][2];
    }
  }
}

// Rows shared out to the warps, lane = column (of M': row). In step t warp 0 is at block t, the other roles at block
// t - 1: block t - 1 is taken out of G from block t + 1 on, block t - 2 out of the others from block t on. What is left of the top
// of P and what there is of M' share a row's lanes.
DEVICE void recurrence_rest(Window& win, int warp, int lane) {
  ROLL for (int t = 1; t < IB / 4; t++) {
    __syncthreads();
    const int at = 4 * t - 4;
    const bool right = lane >= 4 * t;
    const float4 r4 = *(const float4*)&win.r_abs[lane][4 + at];
    float4 own = make_float4(0.f, 0.f, 0.f, 0.f);
    if (right) {
      own = *(const float4*)&win.w[lane][at];
    } else if (t > 1) {
      own = make_float4(win.m[at - 4][lane], win.m[at - 3][lane], win.m[at - 2][lane], win.m[at - 1][lane]);
    }
    float(*target)[PAD] = right ? win.top : win.m;
    const float(*factor)[PAD] = right ? win.out : win.w;
    ROLL for (int row = 4 * t + warp; row < IB; row += 3 * REST) {  // three rows at a time
      float4 f[3][2];
      float x[3][2];
      UNROLL for (int i = 0; i < 3; i++) {
        const int at_row = row + REST * i;
        if (at_row < IB) {
          f[i][0] = *(const float4*)&factor[at_row][at];
          f[i][1] = *(const float4*)&win.r_abs[at_row][4 + at];
          x[i][0] = target[at_row][lane];
          x[i][1] = win.g[at_row][lane];
        }
      }
      UNROLL for (int i = 0; i < 3; i++) {
        x[i][0] = minus_dot(x[i][0], f[i][0], own);
        x[i][1] = minus_dot(x[i][1], f[i][1], r4);
      }
      UNROLL for (int i = 0; i < 3; i++) {
        const int at_row = row + REST * i;
        if (at_row < IB) {
          target[at_row][lane] = x[i][0];
          if (at_row >= 4 * t + 4) win.g[at_row][lane] = x[i][1];
        }
      }
    }
  }
  __syncthreads();
}

// Nothing to do in the first step but Cholesky's: the last warp decides on terms and scales, the others clear the second half of V,
// which is zero while the first is applied to the second window, and stays so in the first 32 rows.
DEVICE void recurrence(Shared& s, const Job& job, int h, int first, int done, const Norm& norm, const Lane& me) {
  Window& win = scratch(s).win;
  const int lane = me.lane;
  if (me.warp == WARPS - 1) {
    window_norms(s, job, h, first, h == 0 && done == 0, norm, me);
  } else if (me.warp > 0 && h == 0) {
    ROLL for (int tile = first + me.warp - 1; tile < TILES; tile += WARPS - 2) *reinterpret_cast<uint4*>(&s.v[0][tile][4][lane * 4]) = {0u, 0u, 0u, 0u};
  } else if (me.warp > 0 && me.warp <= 4) {
    reinterpret_cast<uint4*>(p_tile(s, 1, first - me.warp, lane >> 3))[lane & 7] = {0u, 0u, 0u, 0u};  // nor do low terms have these rows
  }
  if (me.warp == 1) recurrence_rows(win, lane);
  else if (me.warp == 2) recurrence_columns(s, win, lane);
  else if (me.warp > 2) {
    recurrence_rest(win, me.warp - 3, lane);
    if (me.warp == WARPS - 1) {  // lane = row of M'
      float sum = 0.f;
      UNROLL for (int i = 0; i < IB - 4; i += 4) {
        const float4 x = *(const float4*)&win.m[lane][i];
        sum += (fabsf(x.x) + fabsf(x.y)) + (fabsf(x.z) + fabsf(x.w));
      }
      if (lane < IB - 4 && too_large(s, lane, sum)) s.trip = 1;
    }
  }
  else {
    // The matrix ends with this window: its last column has no row below the diagonal, so nothing is reflected (tau = 0, as in LAPACK),
    // and its pivot does not matter. In one matrix of twenty it is small enough to be refused.
    const bool square = first * TILE + IB == job.n;
    recurrence_cholesky(win, square, lane);
    const float whole = win.diagonal[lane];
    const uint32_t zeros = ballot(whole == 0.f);
    const bool bad = whole != 0.f && !(square && lane == IB - 1) && !(win.pivot[lane] > (s.ratio[lane]) * whole);
    const bool gap = (zeros & (~zeros + 1u)) + zeros != 0u;  // zero columns before others
    if ((ballot(bad) != 0u || gap) && lane == 0) s.trip = 1;
  }
}

// Where pivots or M are too extreme to trust: how many of the window's columns may be trusted, more than `done`. The pass ends
// before the first column where rounding in G may have been magnified at all.
NOINLINE int safe_columns(Shared& s, int done, Lane me) {
  Window& win = scratch(s).win;
  UNROLL for (int i = 0; i < IB / WARPS; i++) {
    const int j = IB / WARPS * me.warp + i;
    float x = fabsf(win.m[j][me.lane]);
    UNROLL for (int d = 16; d > 0; d >>= 1) x += shfl_xor(x, d);
    if (me.lane == 0 && !(x * x * s.ratio[j] * SAFER < 4.f)) atomicMin(&s.good, j);
  }
  if (me.warp == WARPS - 1) {
    const float whole = win.diagonal[me.lane];
    const float ratio = SAFER * s.ratio[me.lane];
    const uint32_t unsafe = ballot(whole != 0.f && !(win.pivot[me.lane] > ratio * whole));
    // A zero column keeps its row of R, which G does not know: the columns after it are for the next pass.
    const uint32_t zeros = ballot(whole == 0.f && me.lane >= done);
    const bool gap = (zeros & (~zeros + 1u)) + zeros != 0u;
    if (me.lane == 0) {
      if (unsafe != 0u) atomicMin(&s.good, lowest_bit(unsafe));
      if (gap) atomicMin(&s.good, lowest_bit(zeros) + 1);
    }
  }
  __syncthreads();
  return s.good > done ? s.good : done + 1;
}

// V'V. Operand i of a tile: lane's word is reflector 16 (i / 2) + 2 g + i % 2, rows 2q, 2q + 1, which is how V = P M leaves the
// tensor cores.
DEVICE void add_own(Products& x, const uint32_t (&a)[4], const uint32_t (&b)[4]) {
  UNROLL for (int i = 0; i < 4; i++) mma_fp16_k8(x.own[i], a[0], a[1], b[i]);
  UNROLL for (int i = 2; i < 4; i++) mma_fp16_k8(x.own[i + 2], a[2], a[3], b[i]);
}
DEVICE int low_row(int lane) {  // operand_row among low terms, in bytes
  const int row = 16 * (lane >> 4) + 2 * (lane & 7) + (lane >> 3 & 1);
  return (row >> 3) * P_GROUP + (row & 7) * 16;
}
// What the low term adds: v low' + low v', both in one product of K = 16.
DEVICE void add_low(Products& x, const uint32_t (&v)[4], const uint32_t (&low)[4]) {
  const uint32_t a0[4] = {v[0], v[1], low[0], low[1]}, a1[4] = {v[2], v[3], low[2], low[3]};
  UNROLL for (int i = 0; i < 4; i++) mma(x.own[i], a0, low[i], v[i]);
  UNROLL for (int i = 2; i < 4; i++) mma(x.own[i + 2], a1, low[i], v[i]);
}
DEVICE int operand_row(int lane) { return 16 * (lane >> 4) + 2 * (lane & 7) + (lane >> 3 & 1); }  // for ldmatrix, stmatrix

// V = P M on tensor cores, rounded to fp16 (hi, or hi + lo): to its stage and to H. The top 32 rows come from the
// recurrence. WHOLE: all columns, and the products of the reflectors on the way. Otherwise columns done .. good - 1 of the window;
// those after them are zero in V for now.
template <bool EXACT, bool WHOLE>
DEVICE void form_reflectors(Shared& s, const Job& job, int h, int first, int done, int good, bool low_before,
                            const Lane& me) {
  Window& win = scratch(s).win;
  Products sums;
  constexpr int HALF[3] = {1, 0, 1};
  constexpr int DEPTH[3] = {0, 0, 1};
  uint32_t m_hi[3][4], m_lo[3][4];
  UNROLL for (int f = 0; f < 3; f++) {
    UNROLL for (int z = 0; z < 4; z++) {
      const float2 x = *(const float2*)&win.m[HALF[f] * 16 + 2 * me.g + (z & 1)][DEPTH[f] * 16 + 2 * me.q + 8 * (z >> 1)];
      split(x.x, x.y, m_hi[f][z], m_lo[f][z]);
    }
  }
  const int l = me.lane & 7, cg = me.lane >> 3;
  const int own = first + me.warp;
  const uint32_t at = shared_address(p_tile(s, 0, 0, cg)) + (l ^ (cg & 1)) * 16;
  uint32_t offset = p_offset(own), to = shared_address(&s.v[0][own][0][0]) + h * 512 + operand_row(me.lane) * 16;
  float* to_h = job.h + (own * TILE + 2 * me.q) * ROWS + job.k * NB + h * IB + 2 * me.g;
  const uint32_t low_to = shared_address(p_tile(s, 1, 0, 0)) + low_row(me.lane);
  const bool two = s.two_terms;
  // This lane's reflectors: 16 (i / 2) + 2 g + i % 2, neighbours in a row of H
  uint32_t down[4];
  UNROLL for (int i = 0; i < 4; i++) down[i] = pack(s.down[h * IB + 8 * i + 2 * me.q], s.down[h * IB + 8 * i + 2 * me.q + 1]);
  if (WHOLE) clear_products(sums);
  ROLL for (int tile = own; tile < TILES; tile += WARPS) {
    const int row = (tile - first) * TILE + 2 * me.q;
    keep(offset);
    const bool top = tile < first + 4;
    float x[4], y[4];  // rows row, row + 1
    float2 r[4];       // and what stands there in R, scaled back
    if (top) {         // R on and above the diagonal, v below
      UNROLL for (int i = 0; i < 4; i++) {
        const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
        const float unit = win.inverse[j] == 0.f ? 0.f : 1.f, back = s.back[h * IB + j];
        const float x_top = win.out[row][4 + j], y_top = win.out[row + 1][4 + j];
        x[i] = row > j ? x_top * unit : row == j ? unit : 0.f;
        y[i] = row + 1 > j ? y_top * unit : row + 1 == j ? unit : 0.f;
        r[i] = make_float2(x_top * back, y_top * back);
      }
    } else {
      uint32_t hi[4], lo[4];
      load_matrix_transposed(hi, at + offset);
      load_matrix_transposed(lo, at + offset + P_LOW);
      UNROLL for (int i = 0; i < 4; i++) {
        hi[i] = times_half2(hi[i], down[i]);
        lo[i] = times_half2(lo[i], down[i]);
      }
      float d[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, rest[3][4];
      UNROLL for (int f = 0; f < 3; f++) {
        rest[f][0] = rest[f][1] = rest[f][2] = rest[f][3] = 0.f;
        mma(rest[f], m_lo[f], hi[2 * DEPTH[f]], hi[2 * DEPTH[f] + 1]);
      }
      UNROLL for (int f = 0; f < 3; f++) mma(d[HALF[f]], m_hi[f], hi[2 * DEPTH[f]], hi[2 * DEPTH[f] + 1]);
      UNROLL for (int f = 0; f < 3; f++) mma(rest[f], m_hi[f], lo[2 * DEPTH[f]], lo[2 * DEPTH[f] + 1]);
      UNROLL for (int i = 0; i < 4; i++) {
        const int e = 2 * (i & 1);
        x[i] = i < 2 ? d[0][e] + rest[1][e] : d[1][e] + (rest[0][e] + rest[2][e]);
        y[i] = i < 2 ? d[0][e + 1] + rest[1][e + 1] : d[1][e + 1] + (rest[0][e + 1] + rest[2][e + 1]);
      }
    }
    uint32_t word[4];
    float2 out[4];
    UNROLL for (int i = 0; i < 4; i++) {
      const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
      if (!WHOLE && j >= good) x[i] = y[i] = 0.f;
      word[i] = pack(x[i], y[i]);
      out[i] = unpack_half2(word[i]);
      if (!WHOLE && j >= done) s.v[0][tile][4 * h + (j >> 3)][(j & 7) * 4 + me.q] = word[i];
    }
    if (WHOLE) {
      keep(to);
      store_matrix(to, word);
      add_own(sums, word, word);
    }
    if (WHOLE) {  // to where P's low term was: only this warp has read this tile
      uint32_t low[4];
      UNROLL for (int i = 0; i < 4; i++) {
        low[i] = pack(x[i] - out[i].x, y[i] - out[i].y);
        const float2 f = unpack_half2(low[i]);
        out[i].x += f.x;
        out[i].y += f.y;
      }
      __syncwarp();
      store_matrix(low_to + offset, low);
      add_low(sums, word, low);
    } else if (two) {
      UNROLL for (int i = 0; i < 4; i++) {
        const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
        const uint32_t low = pack(x[i] - out[i].x, y[i] - out[i].y);
        uint32_t* at_low = low_at(job, tile, 4 * h + (j >> 3)) + (j & 7) * 4 + me.q;
        if (WHOLE || j >= done) {
          *at_low = low;
        } else if (!low_before) {
          *at_low = 0u;
        }
        const float2 f = unpack_half2(low);
        out[i].x += f.x;
        out[i].y += f.y;
      }
    }
    if (top) {
      UNROLL for (int i = 0; i < 4; i++) {
        const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
        if (row <= j) out[i].x = r[i].x;
        if (row + 1 <= j) out[i].y = r[i].y;
      }
    }
    UNROLL for (int i = 0; i < 4; i += 2) {
      const int col = job.k * NB + h * IB + 8 * i + 2 * me.g;
      if (WHOLE && EXACT) {
        if (i == 0) keep(to_h);
        store_once2(to_h + 8 * i, make_float2(out[i].x, out[i + 1].x));
        store_once2(to_h + 8 * i + ROWS, make_float2(out[i].y, out[i + 1].y));
      } else if (WHOLE) {
        store_pair<EXACT>(job, first * TILE + row, col, out[i].x, out[i + 1].x);
        store_pair<EXACT>(job, first * TILE + row + 1, col, out[i].y, out[i + 1].y);
      } else {
        UNROLL for (int z = 0; z < 4; z++) {  // rows done .. good - 1 of R, and V
          const int at_row = row + (z >> 1), j = 8 * i + 2 * me.g + (z & 1);
          const bool mine = at_row <= j ? at_row >= done && at_row < good : j >= done && j < good;
          if (mine && first * TILE + at_row < job.n && col + (z & 1) < job.n) {
            job.h[(size_t)(first * TILE + at_row) * job.n + col + (z & 1)] = z >> 1 ? out[i + (z & 1)].y : out[i + (z & 1)].x;
          }
        }
      }
    }
    offset += (tile & 8) ? CHUNK - WARPS * 128 : p_offset(WARPS);
    to += WARPS * 1024;
    to_h += WARPS * TILE * ROWS;
  }
  if (WHOLE) {
    store_products(scratch(s).partial[me.warp], sums, me.lane);
  }
}

// A pass that makes only some of the columns: rare, so out of the way.
template <bool EXACT>
NOINLINE void form_some_reflectors(Shared& s, Job job, int h, int first, int done, int good, bool low_before,
                                   Lane me) {
  form_reflectors<EXACT, false>(s, job, h, first, done, good, low_before, me);
}

// FP32_CLASS: after such a pass, all of the window's low terms so far to where one pass leaves them.
NOINLINE void take_low_back(Shared& s, Job job, int h, int first, Lane me) {
  ROLL for (int i = me.warp; i < (TILES - first) * 4; i += WARPS) {
    const int tile = first + (i >> 2), group = i & 3;
    p_tile(s, 1, tile, group)[me.lane] = load_word(low_at(job, tile, 4 * h + group) + me.lane);
  }
}

// ---------------------------------------------------------------- larft

DEVICE void prefetch_block(Shared& s, const Job& job, int j) {  // one thread
  ROLL for (int i = CHUNKS - 1; i >= 0; i--) fetch_chunk(s, job, j, i);
  return;
  const int stage = j & 1;
  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes + T_WORDS * 4);
  bulk_load(&s.v[stage][8 * j][0][0], job.v + (size_t)(j * TILES + 8 * j) * GROUPS * 32, bytes, &s.full[stage]);
  bulk_load(&s.t[stage][0][0][0], job.t + (size_t)j * T_WORDS, T_WORDS * 4, &s.full[stage]);
}

// Those sums from V as it is stored, its low term too: where a window took several passes or two terms. Rare.
NOINLINE void products_again(Shared& s, Job job, int h, int first, Lane me) {
  const uint32_t at = shared_address(&s.v[0][0][0][0]) + h * 512 + operand_row(me.lane) * 16;
  Products x;
  clear_products(x);
  ROLL for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
    uint32_t v[4], low[4];
    load_matrix(v, at + tile * 1024);
    add_own(x, v, v);
    load_matrix(low, shared_address(p_tile(s, 1, tile, 0)) + low_row(me.lane));
    add_low(x, v, low);
  }
  store_products(scratch(s).partial[me.warp], x, me.lane);
}

// V_1'V_0 over the rows of this warpgroup (every second pair of tiles); rows 32 .. 63 of the product are of no use.
// FP32_CLASS: V_0's low terms are in p[0], V_1's in p[1].
DEVICE void cross_products(Shared& s, int first, float (*out)[IB][PAD], const Lane& me) {
  float x[4][4];
  UNROLL for (int i = 0; i < 16; i++) (&x[0][0])[i] = 0.f;
  const int tile = first + 2 * me.wg;
  const uint32_t v0 = tile_descriptor(shared_address(&s.v[0][0][0][0]), 1024), v1 = tile_descriptor(shared_address(&s.v[0][0][4][0]), 1024);
  multiply_tiles<128, P_GROUP>(x, v1, tile_descriptor(shared_address(p_tile(s, 0, 0, 0)), 128), tile);
  multiply_tiles<P_GROUP, 128>(x, tile_descriptor(shared_address(p_tile(s, 1, 0, 0)), 128), v0, tile);
  multiply_tiles<128, 128>(x, v1, v0, tile);
  if (me.ws < 2) {
    UNROLL for (int i = 0; i < 4; i++) {
      *(float2*)&out[me.wg][16 * me.ws + me.g][8 * i + 2 * me.q] = make_float2(x[i][0], x[i][1]);
      *(float2*)&out[me.wg][16 * me.ws + me.g + 8][8 * i + 2 * me.q] = make_float2(x[i][2], x[i][3]);
    }
  }
}

// Small products in two fp16 terms (22 bits): d += A B without low times low.
struct Terms { uint32_t hi[4], lo[4]; };
DEVICE void mma_two_terms(float (&d)[4], const Terms& a, uint32_t hi0, uint32_t hi1, uint32_t lo0, uint32_t lo1) {
  mma(d, a.lo, hi0, hi1);
  mma(d, a.hi, lo0, lo1);
  mma(d, a.hi, hi0, hi1);
}

// T of one window, transposed, by one warp: 8 x 8 blocks by substitution (a quarter warp each, lane = row), joined by
// T12 = -T1 N12 T2: to 16 x 16 by two lanes a row, then on the tensor cores.
DEVICE void invert_window(Triangle& tri, const float* tau, float (*tt)[PAD], const Lane& me) {
  const int o = me.lane & 24, r = me.lane & 7;
  float x[8], t[8];
  *(float4*)&t[0] = *(const float4*)&tau[o];
  *(float4*)&t[4] = *(const float4*)&tau[o + 4];
  UNROLL for (int i = 0; i < 8; i++) x[i] = i == r ? 1.f : 0.f;
  UNROLL for (int st = 0; st < 8; st++) {
    float row[8];
    UNROLL for (int u = (st + 1) & ~3; u < 8; u += 4) *(float4*)&row[u] = *(const float4*)&tri.n[o + st][o + u];
    x[st] *= t[st];
    tt[o + st][me.lane] = x[st];
    if (me.lane & 8) tt[o - 8 + st][me.lane] = 0.f;
    UNROLL for (int u = st + 1; u < 8; u++) x[u] = fmaf(-row[u], x[st], x[u]);
  }
  const int p = me.lane & 16, own = me.lane >> 1 & 4, other = own ^ 4;  // this lane's columns of T12, and its partner's
  float y[4] = {0.f, 0.f, 0.f, 0.f};
  UNROLL for (int m = 0; m < 8; m++) {
    const float u = shfl(x[m], me.lane & 23);
    const float4 z = *(const float4*)&tri.n[p + m][p + 8 + own];
    y[0] = fmaf(u, z.x, y[0]); y[1] = fmaf(u, z.y, y[1]); y[2] = fmaf(u, z.z, y[2]); y[3] = fmaf(u, z.w, y[3]);
  }
  float y2[4];
  UNROLL for (int i = 0; i < 4; i++) y2[i] = shfl_xor(y[i], 8);
  __syncwarp();
  float4 z[4], z2[4];
  UNROLL for (int i = 0; i < 4; i++) {
    z[i] = *(const float4*)&tt[p + 8 + own + i][p + 8 + own];
    z2[i] = *(const float4*)&tt[p + 8 + own + i][p + 8 + other];
  }
  const float4 left = make_float4(y[0], y[1], y[2], y[3]), right = make_float4(y2[0], y2[1], y2[2], y2[3]);
  UNROLL for (int i = 0; i < 4; i++) tt[p + 8 + own + i][p + r] = minus_dot(minus_dot(0.f, z[i], left), z2[i], right);
  __syncwarp();
  Terms a;
  float d[2][4], e[2][4];
  UNROLL for (int i = 0; i < 4; i++) {
    const int row = me.g + 8 * (i & 1), m = 2 * me.q + 8 * (i >> 1);
    split(tt[m][row], tt[m + 1][row], a.hi[i], a.lo[i]);
    d[0][i] = d[1][i] = e[0][i] = e[1][i] = 0.f;
  }
  UNROLL for (int i = 0; i < 2; i++) {
    const float(*n)[PAD] = &tri.n[2 * me.q];
    const int col = 16 + 8 * i + me.g;
    uint32_t hi[2], lo[2];
    split(n[0][col], n[1][col], hi[0], lo[0]);
    split(n[8][col], n[9][col], hi[1], lo[1]);
    mma_two_terms(d[i], a, hi[0], hi[1], lo[0], lo[1]);
  }
  UNROLL for (int i = 0; i < 4; i++) split(d[i >> 1][2 * (i & 1)], d[i >> 1][2 * (i & 1) + 1], a.hi[i], a.lo[i]);
  UNROLL for (int i = 0; i < 2; i++) {
    const float* t2 = &tt[16 + 8 * i + me.g][16 + 2 * me.q];
    uint32_t hi[2], lo[2];
    split(t2[0], t2[1], hi[0], lo[0]);
    split(t2[8], t2[9], hi[1], lo[1]);
    mma_two_terms(e[i], a, hi[0], hi[1], lo[0], lo[1]);
  }
  UNROLL for (int i = 0; i < 2; i++) {
    UNROLL for (int z = 0; z < 4; z++) tt[16 + 8 * i + 2 * me.q + (z & 1)][me.g + 8 * (z >> 1)] = -e[i][z];
  }
}

// What is left of a product of two 32 x 32 by four warps: part 0 .. 3 has rows 16 (part % 2) .. + 15, columns 16 (part / 2) .. + 15.
// d = A B as [tile of 8 columns]; a(row, k) two neighbours in k, b(k, column) too.
template <class A, class B>
DEVICE void product_part(float (&d)[2][4], int part, A a, B b, const Lane& me) {
  UNROLL for (int i = 0; i < 8; i++) (&d[0][0])[i] = 0.f;
  UNROLL for (int k = 0; k < IB; k += 16) {
    Terms x;
    UNROLL for (int i = 0; i < 4; i++) {
      const float2 y = a(16 * (part & 1) + me.g + 8 * (i & 1), k + 2 * me.q + 8 * (i >> 1));
      split(y.x, y.y, x.hi[i], x.lo[i]);
    }
    UNROLL for (int i = 0; i < 2; i++) {
      uint32_t hi[2], lo[2];
      UNROLL for (int z = 0; z < 2; z++) {
        const float2 y = b(k + 2 * me.q + 8 * z, 16 * (part >> 1) + 8 * i + me.g);
        split(y.x, y.y, hi[z], lo[z]);
      }
      mma_two_terms(d[i], x, hi[0], hi[1], lo[0], lo[1]);
    }
  }
}

// T of one window from V'V: tau = 2/v'v, T = (diag(1/tau) + strictly upper V'V)^-1, and for the second window of a panel
// X = T11 V_0'V_1. `ready`: form_reflectors has left its sums.
template <bool EXACT>
DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool fetch, uint32_t phase,
                     const Lane& me) {
  Scratch& sc = scratch(s);
  if (RARE(!ready)) {
    products_again(s, job, h, first, me);
    __syncthreads();
  }
  const bool cross = h == 1 && need_t;
  if (me.warp < 6) {
    const int i = me.warp < 4 ? me.warp : me.warp - 2;
    const int row = 16 * (me.warp >> 2) + 2 * me.g, col = 16 * (i >> 1) + 4 * me.q + (i & 1);
    const float4 y = sum_partials(sc.partial, me.warp, me.lane);
    sc.tri.n[row][col] = y.x;
    sc.tri.n[row][col + 2] = y.y;
    sc.tri.n[row + 1][col] = y.z;
    sc.tri.n[row + 1][col + 2] = y.w;
  } else if (me.warp == 6) {  // lane = reflector
    const int l = me.lane & 15, piece = (l & 1) + (me.lane >> 4) * 4;
    const float* own = &sc.partial[0][piece][4 * (l >> 1) + (l >> 2)].x + 2 * (l & 1) + (l >> 1 & 1);
    float square = own[0];
    UNROLL for (int w = 1; w < WARPS; w++) square += own[w * (8 * 32 * 4)];
    const float tau = square > 0.f ? two_over(square) : 0.f;
    const int at = job.k * NB + h * IB + me.lane;
    s.tau[h * IB + me.lane] = tau;
    if (at < job.n) job.tau[at] = tau;
  }
  if (cross) {
    barrier_wait(&s.full[CHUNKS], phase >> CHUNKS & 1);
    cross_products(s, first, sc.tri.n21, me);
    fence_async();
  }
  __syncthreads();
  // Apart from the roles of the warps: with a loop of one thread in their chain ptxas takes the whole kernel for divergent (1,000
  // instructions more).
  if (EXACT && cross && fetch && me.tid == MOVER) {  // V's place is free once it has been read, P's one as well
    bulk_store_read();
    fetch_boxes(s, job, job.k + 1, 0, job.k >> 1, 4);
    fetch_half(s, job, job.k + 1, 1);
  }
  if (!need_t) return;
  float(*tt)[PAD] = h == 0 ? s.t11t : sc.tri.t22t;
  if (me.warp == 0) {
    invert_window(sc.tri, s.tau + h * IB, tt, me);
  } else if (me.warp == 1) {  // below the diagonal
    UNROLL for (int i = 0; i < 8; i++) tt[2 * i + (me.lane >> 4)][16 + (me.lane & 15)] = 0.f;
  } else if (cross && me.warp < 6) {
    float d[2][4];
    const int part = me.warp - 2;
    product_part(d, part, [&](int j, int m) {
      float2 x = *(const float2*)&sc.tri.n21[0][j][m], y = *(const float2*)&sc.tri.n21[1][j][m];
      return make_float2(x.x + y.x, x.y + y.y);
    }, [&](int m, int a) { return make_float2(s.t11t[m][a], s.t11t[m + 1][a]); }, me);
    UNROLL for (int i = 0; i < 2; i++) {
      UNROLL for (int z = 0; z < 4; z++) sc.tri.x[16 * (part >> 1) + 8 * i + 2 * me.q + (z & 1)][16 * (part & 1) + me.g + 8 * (z >> 1)] = d[i][z];
    }
  }
}

// T in tiles: k, r are rows 8 k .. + 7, columns 8 r .. + 7 of it; the 32 rows of zeros do not exist.
DEVICE void store_t_tile(Shared& s, int k, int r, float x, float y, const Lane& me) {
  uint32_t hi, lo;
  split(x, y, hi, lo);
  t_tile(s, 1, 0, k, r)[me.lane] = hi;
  t_tile(s, 1, 1, k, r)[me.lane] = lo;
}
// Those of a window's own T, and with the second window those of T12 = -X T22, transposed as they come from the tensor cores.
DEVICE void store_t(Shared& s, int h, const Lane& me) {
  const Triangle& tri = scratch(s).tri;
  if (h == 1 && me.warp < 4) {
    float d[2][4];
    product_part(d, me.warp, [&](int c, int j) { return *(const float2*)&tri.t22t[c][j]; },
                 [&](int j, int a) { return *(const float2*)&tri.x[a][j]; }, me);
    UNROLL for (int i = 0; i < 4; i++) {
      store_t_tile(s, (me.warp & 2) + (i & 1), 4 + 2 * (me.warp & 1) + (i >> 1), -d[i & 1][i & 2], -d[i & 1][(i & 2) + 1], me);
    }
  } else {
    ROLL for (int i = h == 0 ? me.warp : me.warp - 4; i < 16; i += h == 0 ? WARPS : 4) {
      const float* t = &(h == 0 ? s.t11t : tri.t22t)[8 * (i & 3) + me.g][8 * (i >> 2) + 2 * me.q];
      store_t_tile(s, 4 * h + (i >> 2), 4 * h + (i & 3), t[0], t[1], me);
    }
  }
}

// ---------------------------------------------------------------- geqrf

// Zero until a first part has left its words there: where the last block's V would be, which nobody needs.
DEVICE unsigned long long* state(const Job& job) {
  return reinterpret_cast<unsigned long long*>(job.v + (size_t)(job.panels - 1) * TILES * GROUPS * 32);
}
// The end of a first part: its blocks are in memory. One thread.
NOINLINE void hand_on(Job job, uint32_t low_blocks, uint32_t largest_sum) {
  bulk_store_wait();
  fence_async_global();
  store_state(state(job), PART_DONE | (unsigned long long)low_blocks << 32 | largest_sum);
}
// A panel of zeros: if all columns from here on are zero, so are their R, V and tau, exactly, and the matrix is done.
template <bool EXACT>
NOINLINE bool zero_tail(Shared& s, Job job, uint32_t low_blocks, Lane me) {
  uint32_t x = 0u;
  for (int col = (job.k + 1) * NB + me.lane; col < job.n; col += 32) {
#pragma unroll 16
    for (int row = me.warp; row < job.n; row += WARPS) x |= __float_as_uint(load_once(job.a + (size_t)row * job.n + col)) << 1;
  }
  if (__syncthreads_or(x != 0u)) return false;
  if (me.tid == MOVER) {
    bulk_store_wait();  // no copy may outlive the block
    if (job.to < job.panels) hand_on(job, low_blocks, s.largest_sum);
  }
  ROLL for (int row = me.warp; row < job.n; row += WARPS) {
    for (int col = job.k * NB + 2 * me.lane; col < job.n; col += 64) store_pair<EXACT>(job, row, col, 0.f, 0.f);
  }
  for (int col = job.k * NB + me.tid; col < job.n; col += THREADS) job.tau[col] = 0.f;
  return true;
}

// The start of a second part. One thread.
NOINLINE void take_over(Shared& s, Job job) {
  unsigned long long x;
  while (!((x = load_state(state(job))) & PART_DONE)) short_sleep();
  fence_async_global();
  s.largest_sum = (uint32_t)x;
  s.good = (int)(x >> 32 & 0xff);
}

// Windows one after the other: step 2k + h is window h of panel k. One loop body, so that every stage's code exists once:
// the instruction cache, not the arithmetic, was the limit when it did not.
template <bool EXACT>
DEVICE void factor_matrix(Shared& s, Job& job, const Lane& me) {
  Panel c;
  uint32_t phase = 0, low_blocks = 0;
  const int begin = 2 * job.from;
  int step = begin - 1;      // only loads
  int done = 0, before = 0;  // finished columns of the window, and how many there were one pass earlier
  if (me.tid == MOVER) {
    for (auto& full : s.full) barrier_init_for_copies(&full);
    barrier_init_for_copies(&s.panel[0]);
    barrier_init_for_copies(&s.panel[1]);
    s.largest_sum = 0u;
    s.largest_column = 0u;
  }
  ROLL while (true) {
    const int k = step >> 1, h = step & 1;
    const int first = 8 * k + 4 * h;  // tile of the window's first row
    const bool last = k + 1 == job.panels, more = k + 1 < job.to, again = done > 0;
    const bool inside = h == 1 || again;  // the block to apply is this panel's own
    job.k = k;
    if (step >= begin) {
      ROLL for (int j = inside ? k : 0; j < k + inside; j++) {
        const int stage = inside || FP32_CLASS ? 0 : j & 1;
        const int terms = 2;
        if (!inside) {
          // the other stage is free: only its filler has to wait for the others
          if (j == 0) {
            __syncthreads();
            if (RARE(uniform(s.largest_column) == 0u)) {  // a panel of zeros
              for (int i = 0; i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
              if (zero_tail<EXACT>(s, job, low_blocks, me)) return;
            }
          }
        }
        const float order = (float)job.n, error = V_ROUNDING * __uint_as_float(s.largest_column);
        const float allowed = TWO_TERM_AT * 1.1920929e-7f * order * reciprocal_sqrt(order) * __uint_as_float(s.largest_sum);
        // Where W and W' are rounded to one term beside C, all together must stay below the bound.
        const bool two_c = FP32_CLASS || again || error > allowed, two_w = FP32_CLASS || again || 2.f * error > allowed;
        const Part part = {again ? h : -1, h * IB + before, h * IB + done};
        const int next = !inside && j + 1 < k ? j + 1 : -1;
        apply_block(c, s, job, inside, next, stage, inside ? 1 : j & 1, j, terms, two_c, two_w, again ? h == 1 : h == 0, part, phase, me);
        if (!inside) phase ^= 15u << (j >> 1) & 15u;
      }
      if (h == 1 && me.tid == MOVER) bulk_store_read();  // the first window's low terms, where P's go
      __syncthreads();
      if (me.ws >> 1 == h) {
        stage_window(c, s, first, me);
      }
      // Beside it the warps of the other window store R, which stays in their registers until here.
      if (!again && (h == 1 || me.ws >= 2)) {
        const bool inside = me.ws >> 1 == h;  // of this panel's own first window
        store_r<EXACT>(c, s, job, inside ? k : 0, inside ? k + 1 : k, inside, me);
      }
    }
    bool end = false, whole = true;
    int good = IB;
    if (step < begin) {
      __syncthreads();
      if (me.tid == MOVER) {
        if (EXACT) {
          fetch_half(s, job, k + 1, 0);
          fetch_half(s, job, k + 1, 1);
        }
        if (begin > 0) take_over(s, job);
      }
    } else {
    fence_async();
    __syncthreads();
    const bool low_before = low_blocks >> k & 1;
    if (!inside && more) prefetch_panel<EXACT>(job, k + 1, me);  // no block is on its way now
    if (RARE(again)) clear_done(s, first, done, me);
    const Norm norm = gram(s, first, me);
    recurrence(s, job, h, first, done, norm, me);
    __syncthreads();
    bool ready = FP32_CLASS || !s.two_terms;
    if (!again && !s.trip) {
      form_reflectors<EXACT, true>(s, job, h, first, 0, IB, low_before, me);
    } else {
      ready = false;
      good = safe_columns(s, done, me);
      form_some_reflectors<EXACT>(s, job, h, first, done, good, FP32_CLASS || low_before, me);
      __syncthreads();
      take_low_back(s, job, h, first, me);
    }
    whole = good == IB;
    fence_async();
    __syncthreads();
    if (me.tid == MOVER && !(h == 1 && whole && last)) {
      if (h == 1) {  // the first window's low terms to where P was
        bulk_store_wait();
        barrier_expect(&s.full[CHUNKS], (CHUNKS - (k >> 1)) * P_LOW);
        ROLL for (int i = k >> 1; i < CHUNKS; i++) bulk_load(p_tile(s, 0, 16 * i, 0), low_at(job, 16 * i, 0), P_LOW, &s.full[CHUNKS]);
      }
      if (whole) {
        ROLL for (int i = k >> 1; i < CHUNKS; i++) bulk_store_part(low_at(job, 16 * i, 4 * h), p_tile(s, 1, 16 * i, 0), P_LOW);
        bulk_store_commit();
      }
    }
    if (EXACT && h == 0 && whole && more && me.tid == MOVER) {  // of the next panel what P leaves room for
      barrier_expect(&s.panel[0], ROWS * NB * 2);
      fetch_boxes(s, job, k + 1, 0, 0, k >> 1);
    }
    if (h == 1 && whole && !last && me.tid == MOVER) {
      s.largest_column = 0u;
      bulk_store_part(job.v + (size_t)(k * TILES + 8 * k) * GROUPS * 32, &s.v[0][8 * k][0][0], (TILES - 8 * k) * 1024);
      bulk_store_commit();
    }
    end = h == 1 && whole && last;
    window_t<EXACT>(ready, s, job, h, first, !end, whole && more, phase, me);
    if (h == 1 && !end) phase ^= 1u << CHUNKS;
    }
    if (end) break;
    const bool next = h == 1 && whole && more;  // the next panel comes now; so it does in the first step
    if (next && EXACT) {
      barrier_wait(&s.panel[0], (k + 1 - job.from) & 1);
      read_half<0>(c, half_at(s, 0), me);
    }
    __syncthreads();
    if (next && !EXACT) load_panel(c, job, k + 1, me);
    if (step >= begin) {
    store_t(s, h, me);
    fence_async();
    __syncthreads();
    if (h == 1 && whole && me.tid == MOVER) {
      bulk_store_part(job.t + (size_t)k * T_WORDS, &s.t[1][0][0][0], T_WORDS * 4);
      bulk_store_commit();
    }
    }
    if (h == 1 && whole && !more) break;
    if (next) {
      if (EXACT) {
        barrier_wait(&s.panel[1], (k + 1 - job.from) & 1);
        read_half<1>(c, half_at(s, 1), me);
        fence_async();
        __syncthreads();
      }
      if (step < begin && k >= 0) low_blocks = uniform((uint32_t)s.good);
      if (k >= 0 && me.tid == MOVER) {
        if (k == 0) bulk_store_wait();  // block 0 is in memory
        prefetch_block(s, job, 0);
      }
      scale_panel(c, s, me);
    }
    before = whole ? 0 : done;
    done = whole ? 0 : good;
    step += whole;
  }
  if (me.tid == MOVER && job.to < job.panels) hand_on(job, low_blocks, s.largest_sum);
}

template <bool EXACT>
__global__ void __launch_bounds__(THREADS, 1)
    geqrf_kernel(const float* a, float* h, float* tau, uint32_t* v, uint32_t* v_lo, uint32_t* t, int n, int panels,
                 const __grid_constant__ CUtensorMap map, const __grid_constant__ Plan plan) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  // Where shared memory starts, as a constant: taken from its symbol it is computed anew everywhere, a special register each time.
  if (shared_address(shared_bytes) != SHARED_START) __trap();
  Shared& s = *reinterpret_cast<Shared*>(__cvta_shared_to_generic(SHARED_START));
  if (EXACT) {
    n = ROWS;
    panels = ROWS / NB;
  }
  Lane me;
  me.tid = threadIdx.x;
  me.lane = me.tid & 31;
  me.warp = (int)uniform((uint32_t)me.tid >> 5);  // so that the compiler knows it to be uniform
  me.wg = me.warp >> 2;
  me.ws = me.warp & 3;
  me.g = me.lane >> 2;
  me.q = me.lane & 3;
  const bool second = blockIdx.x >= gridDim.x - plan.cuts;
  const size_t matrix = second ? blockIdx.x - (gridDim.x - plan.cuts) : blockIdx.x;
  Job job;
  const int at = (int)uniform((int)matrix < plan.cuts ? plan.at[matrix] : panels);  // so that the compiler knows it to be uniform
  job.from = second ? at : 0;
  job.to = second ? panels : at;
  job.a = a + matrix * n * n;
  job.h = h + matrix * n * n;
  job.tau = tau + matrix * n;
  job.v = v + matrix * panels * (TILES * GROUPS * 32);
  job.v_lo = v_lo + matrix * panels * (TILES * GROUPS * 32);
  job.t = t + matrix * panels * T_WORDS;
  job.n = n;
  job.panels = panels;
  job.map = &map;
  job.row = (int)matrix * n;
  factor_matrix<EXACT>(s, job, me);
}

// The batch as one tall matrix of which a copy takes BOX rows of IB columns, swizzled. False where the driver cannot.
static bool panel_map(CUtensorMap& map, const void* a, int n, int batch) {
  const auto encode = tensor_map_encoder();
  if (!encode || reinterpret_cast<uintptr_t>(a) % 16) return false;
  const cuuint64_t sizes[2] = {(cuuint64_t)n, (cuuint64_t)batch * n}, strides[1] = {4 * (cuuint64_t)n};
  const cuuint32_t box[2] = {IB, BOX}, steps[2] = {1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<void*>(a), sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// How a batch is cut on `sms` SMs, from its size alone. With rest = batch % sms the last of several rounds would leave sms - rest SMs idle:
// `rest` matrices are cut, sms - rest of them at each of several heights; those with the shortest first part leave the longest second one,
// for the SMs that are free first. Three matrices more for two SMs are cut one or two panels before their end: short pieces fill what
// matrices of different cost leave open.
static Plan make_plan(int batch, int panels) {
  static const int sms = [] {
    int device = 0, count = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return count;
  }();
  Plan plan{};
  const int rest = sms > 0 ? batch % sms : 0;
  if (rest == 0 || batch < sms || panels < 4) return plan;
  const int idle = sms - rest, heights = (rest + idle - 1) / idle, more = batch / sms > 1 ? 3 * sms / 2 : 0;
  for (int i = 0; i < rest + more && i < MAX_CUTS; i++) {
    const int at = i >= rest ? panels - 1 - (i - rest < more / 2) : (2 * panels * (1 + i / idle) + heights + 1) / (2 * (heights + 1));
    plan.at[i] = (unsigned char)(at < 1 ? 1 : at > panels - 1 ? panels - 1 : at);
    plan.cuts = i + 1;
  }
  return plan;
}

// Launches on the default queue; returns a CUDA error code. v, v_lo: batch * panels * 65536 bytes; t: batch * panels * 12288.
static int launch(const void* a, void* h, void* tau, void* v, void* v_lo, void* t, int batch, int n) {
  CUtensorMap map{};
  auto kernel = n == ROWS && panel_map(map, a, n, batch) ? geqrf_kernel<true> : geqrf_kernel<false>;
  cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(Shared));
  if (e != cudaSuccess) return (int)e;
  const int panels = (n + NB - 1) / NB;
  const Plan plan = make_plan(batch, panels);
  if (plan.cuts > 0) {  // the words that the parts hand on
    const size_t pitch = (size_t)panels * (TILES * GROUPS * 32 * 4);
    e = cudaMemset2DAsync((char*)v + pitch - TILES * GROUPS * 32 * 4, pitch, 0, 8, plan.cuts);
    if (e != cudaSuccess) return (int)e;
  }
  kernel<<<batch + plan.cuts, THREADS, sizeof(Shared)>>>((const float*)a, (float*)h, (float*)tau, (uint32_t*)v, (uint32_t*)v_lo,
                                             (uint32_t*)t, n, panels, map, plan);
  return (int)cudaGetLastError();
}

}  // namespace n512

int n512_launch(const void* a, void* h, void* tau, void* v, void* v_lo, void* t, int batch, int n) {
  return n512::launch(a, h, tau, v, v_lo, t, batch, n);
}
"""

N512_BINDING = r"""
#include <torch/extension.h>

int n512_launch(const void* a, void* h, void* tau, void* v, void* v_lo, void* t, int batch, int n);

// a: (batch, n, n) float32, contiguous. Returns H, tau. Workspace: V in fp16 (half of A's bytes), its
// low term (as much; written only where a panel asks for it, or in the FP32 class), T.
std::tuple<torch::Tensor, torch::Tensor> geqrf_n512(torch::Tensor a) {
  const int64_t batch = a.size(0), n = a.size(1), blocks = batch * ((n + 63) / 64);
  auto h = torch::empty({batch, n, n}, a.options());
  auto tau = torch::empty({batch, n}, a.options());
  auto work = torch::empty({blocks * (2 * 65536 + 12288)}, a.options().dtype(torch::kUInt8));
  char* w = static_cast<char*>(work.data_ptr());
  const int error = n512_launch(a.data_ptr(), h.data_ptr(), tau.data_ptr(), w, w + blocks * 65536, w + blocks * 131072,
                                (int)batch, (int)n);
  TORCH_CHECK(error == 0, "n512 launch: CUDA error ", error);
  return {h, tau};
}
"""

# ---------------------------------------------------------------- n1024: v122

N1024_CUDA = PRELUDE + r"""
// CONTENTS
//   geqrf: geqrf_kernel (its parts say: load, earlier blocks, the panel); run launches
//   geqr2: guard_and_top, warp_cholesky, warp_top, warp_m (the recurrence); Gram matrix and V = P M in geqrf_kernel
//   larft: form_t_32 (T of 32 columns); product_tile (T = [T1, -T1 S12 T2; 0, T2])
//   larfb: apply_block: multiply_two_terms (W = V'C), W' = T'W; subtract_two_terms
//
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

namespace qr1024 {
using namespace qr;

// ------------------------------------------------------------------ instructions

// 1 / x where r > 0, else 0; r may be known earlier than x
DEVICE float reciprocal_if_positive(float r, float x) {
  float y;
  asm("{\n.reg .pred p;\nsetp.gt.f32 p,%2,0f00000000;\nmov.f32 %0,0f00000000;\n@p rcp.approx.ftz.f32 %0,%1;\n}" : "=&f"(y) : "f"(x), "f"(r));
  return y;
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

DEVICE void load_floats(uint32_t at, float& a, float& b, float& c, float& d) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "r"(at) : "memory");
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
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
template <bool K_MAJOR, int SIZE>
DEVICE void wgmma(float (&d)[SIZE], const uint32_t (&a)[4], uint64_t b) {
  const uint32_t lead = (uint32_t)(b >> 16 & 0x3fff) << 4, stride = (uint32_t)(b >> 32 & 0x3fff) << 4;
  const int lane = threadIdx.x & 31;  // 8 lanes address one core: (k 0, n t), (k 1, n t), (k 0, n t+1), (k 1, n t+1)
  const uint32_t at = ((uint32_t)(b & 0x3fff) << 4) + (lane >> 3 & 1) * lead + (lane >> 4) * stride + (lane & 7) * 16;
  UNROLL for (int t = 0; t < SIZE / 4; t += 2) {
    uint32_t r[4];
    if (K_MAJOR)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at + t * stride) : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                   : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at + t * stride) : "memory");
    UNROLL for (int u = 0; u < 2; u++)
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

DEVICE void copy_word(uint32_t to, const float* from, bool on) {  // 0 where not `on`
  asm volatile("cp.async.ca.shared.global [%0],[%1],4,%2;" ::"r"(to), "l"(from), "r"(on ? 4 : 0) : "memory");
}
DEVICE void copies_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// in two steps, where many threads announce their own bytes: expect_more by each, then one arrival
DEVICE void barrier_expect_more(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0],%1;" ::"r"(bar), "r"(bytes) : "memory");
}
// 32 columns from `column` on of the rows that panel_map arranges, from 16-row piece `piece` on
DEVICE void panel_copy(uint32_t to, const CUtensorMap& map, int column, int piece, uint32_t bar) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3,%3,%3,%4}],[%5];" ::"r"(to),
               "l"(&map), "r"(column), "r"(0), "r"(piece), "r"(bar) : "memory");
}
DEVICE void panel_prefetch(const CUtensorMap& map, int column, int piece) {
  asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0,{%1,%2,%2,%2,%3}];" ::"l"(&map), "r"(column), "r"(0), "r"(piece) : "memory");
}

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

template <class K>
DEVICE int chunk_row(int chunk, int tile, int unit) {  // + 4 q + e: the row of a thread's element
  return ((2 * chunk + (tile >> 1)) * K::UNITS + unit) * 16 + (tile & 1) * 2;
}
// ------------------------------------------------------------------ applying an earlier block

// The same with both terms: V's high terms lie in stage 0, its low terms in stage 1; `arrived` waits for two chunks
template <class K, class F>
DEVICE void multiply_two_terms(float (&w)[32], Acc<K>& acc, uint32_t at16, int first, F arrived) {
  UNROLL for (int c = 0; c < K::CHUNKS; c++) {
    if (c % 2 == 0) arrived(c / 2);
    if (c + 1 == K::CHUNKS || c >= first) {
      UNROLL for (int h = 0; h < 2; h++) {
        uint32_t a[4], low[4];  // one after the other in the same registers: eight would spill
        auto entry = [&](int z) { return &acc[c][h * 8 + (z >> 1) * 4 + (z & 1) * 2]; };
        const uint32_t at = c * CHUNK_BYTES + h * 2 * TILE_BYTES;
        UNROLL for (int z = 0; z < 4; z++) split(entry(z)[0], entry(z)[1], a[z], low[z]);
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

// The same with both terms; `spent`: these two chunks of V have been used
template <class K, class F>
DEVICE void subtract_two_terms(Acc<K>& acc, uint32_t wop, uint32_t at16, int first, int group, F spent) {
  uint32_t hi[4][4], lo[4][4];
  UNROLL for (int k = 0; k < 4; k++) {
    load_matrices(wop + (k ^ group) * 512, hi[k]);
    load_matrices(wop + (k ^ group) * 512 + K::O_WLOW - K::O_WOP, lo[k]);
  }
  auto b = [&](int c, int k) { return descriptor(at16, c * CHUNK_BYTES + k * 256, 128, TILE_BYTES); };
  UNROLL for (int c = 0; c < K::CHUNKS; c += 2) {
    auto product = [&](auto&... chunks) {
      const int at = sizeof...(chunks) == 2 || c + 1 == K::CHUNKS ? c : c + 1;
      wgmma_fence();
      UNROLL for (int k = 0; k < 4; k++) {
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
  const uint32_t parity = uniform(turn_of(blocks, j) & 1);  // one vector register less than `turn`
  auto turn = [&]() { return (int)parity; };
  auto v_at = [&](int stage) { return uniform(operand_address(base + stage * K::STAGE + me.group * K::SLAB)); };
  uint32_t at16;
  int first;
  {
    const int t = turn();
    at16 = v_at(0);
    first = uniform(first_chunk<K>(j));
  }
  uint32_t t_hi[4][4], t_lo[4][4];  // -T' of this warp's 16 reflectors
  {
    float w[32];
    UNROLL for (int i = 0; i < 32; i++) w[i] = 0.f;
    multiply_two_terms<K>(w, acc, at16, first, [&](int half) {
      wait_for<K>(opaque(shared_address(sm)), FULL_BARS + 2 * (thread_index() >> 7) + half, turn() & 1);
    });
    locate();
    me = lane_of(thread_index() | (__float_as_int(w[0]) & p.zero));  // addresses not before the product is there: they would be spilled
    // sum over the CTA's warpgroups, a share of the reflectors in each of the G warps that hold the same columns; the
    // sums go to the columns' owner, or are at home
    const int owner = me.cg / K::OWNED, column = me.cg % K::OWNED;
    float4 sum[2] = {make_float4(w[0], w[1], w[2], w[3]), make_float4(w[4], w[5], w[6], w[7])};  // the own share comes first
    UNROLL for (int i = 1; i < K::G; i++) {
      float4* to = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_W) + (i - 1) * 2 * K::THREADS + (me.thread ^ i * 128);  // warpgroup ^ i
      to[0] = make_float4(w[8 * i], w[8 * i + 1], w[8 * i + 2], w[8 * i + 3]);
      to[K::THREADS] = make_float4(w[8 * i + 4], w[8 * i + 5], w[8 * i + 6], w[8 * i + 7]);
    }
    named_join(1 + me.cg, 32 * K::G);
    if (j == 0 && copies_t<K>(me, rank)) bulk_store_read();  // T has left the place of W and W': now peers may go on
    const float4* partial = reinterpret_cast<const float4*>(sm + K::O_INBOX + K::IN_W) + me.thread;
    UNROLL for (int i = 0; i < 2; i++) {
      UNROLL for (int u = 0; u < K::G - 1; u++) add4(sum[i], partial[(2 * u + i) * K::THREADS]);
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
      UNROLL for (int kk = 0; kk < 4; kk++) {  // T' is lower triangular
        UNROLL for (int z = 0; z < 4; z++) t_hi[kk][z] = t_lo[kk][z] = 0u;
        load_if(kk <= mt, t_at + kk * 1024, t_hi[kk]);
        load_if(kk <= mt, t_at + kk * 1024 + 512, t_lo[kk]);
      }
    }
    if (owner == (int)rank) {
      wait_for<K>(base, INBOX_BAR, turn() & 1);
      const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + (column * (K::C - 1) * 8 + me.group * 2) * 32 + me.lane;
      uint32_t x[2][4];
      UNROLL for (int i = 0; i < 2; i++) {
        UNROLL for (int r = 0; r < K::C - 1; r++) add4(sum[i], in[r * 256 + i * 32]);
        split(sum[i].x, sum[i].y, x[i][0], x[i][1]);
        split(sum[i].z, sum[i].w, x[i][2], x[i][3]);
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
    UNROLL for (int kk = 0; kk < 4; kk++) {
      if (kk <= mt) {
        const uint4 x = w_at[kk * 32];
        mma(d_main, t_hi[kk], x.x, x.y);
        mma(d_rest, t_lo[kk], x.x, x.y);
        mma(d_also, t_hi[kk], x.z, x.w);
      }
    }
    UNROLL for (int z = 0; z < 4; z++) d_main[z] += d_rest[z] + d_also[z];
    const uint32_t at = base + K::O_WOP + ((rank * K::OWNED + (nt >> 1)) * 4 + mt) * 512 + ((nt & 1) + (me.lane >> 3 & 1) * 2) * 128 + (me.lane & 7) * 16;
    uint32_t from = at;
    uint32_t hi[2], lo[2];
    split(d_main[0], d_main[1], hi[0], lo[0]);
    split(d_main[2], d_main[3], hi[1], lo[1]);
    store_transposed(at, hi[0], hi[1]);
    store_transposed(at + K::O_WLOW - K::O_WOP, lo[0], lo[1]);
    if (me.lane >= 16) from = at + K::O_WLOW - K::O_WOP;  // the other half of the lanes sends these
    __syncwarp();
    {
      const float4 x = load_float4(from);
      UNROLL for (int r = 1; r < K::C; r++) {
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
  at16 = v_at(0);
  first = uniform(first_chunk<K>(opaque(j)));
  if (me.cg / K::OWNED != (int)rank) wait_for<K>(base, WOP_BAR, turn() & 1);  // else this CTA has made them
  const uint32_t wop = base + K::O_WOP + me.cg * 2048 + me.lane * 16;
  subtract_two_terms<K>(acc, wop, at16, first, me.group, [&](int half) {
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
  UNROLL for (int e = 0; e < 4; e++) {
    float t = fmaf(-x0.e[e], y[0], a[4 * q + e]);
    t = fmaf(-x1.e[e], y[1], t);
    t = fmaf(-x2.e[e], y[2], t);
    a[4 * q - 4 + e] = fmaf(-x3.e[e], y[3], t);
  }
}

// Stops where a pivot cancels.
DEVICE void warp_cholesky(const Scratch& z, int lane, int done, float cancelled) {
  float g[SUB];
  UNROLL for (int r = 0; r < SUB; r += 4) {
    const Quad x = load4(z.x + lane * LD_X + r), y = load4(z.m + lane * LD_X + r);
    UNROLL for (int e = 0; e < 4; e++) g[r + e] = x.e[e] + y.e[e];
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
    UNROLL for (int u = 0; u < 4; u++) rows[u * LD_SHIFT + lane] = r[u];
    __syncwarp();
    named_arrive(1 + i / 4);
    update_quad(g, 1, rows + i, r);
    save_diagonal(i + 4);
    const float first = __shfl_sync(ALL, g[0], i + 4);  // the first pivot sooner than through shared memory
    __syncwarp();
    const Quad d0 = load4(z.g_diagonal), d1 = load4(z.g_diagonal + 4), d2 = load4(z.g_diagonal + 8), d3 = load4(z.g_diagonal + 12), th = load4(z.threshold + i + 4);
    factor(i + 4, first, d0, d1, d2, d3, th);
    UNROLL for (int q = 2; q < L / 4; q++) update_quad(g, q, rows + i, r);
  };
  ROLL for (int i = 0; i < SUB / 2; i += 4) block(std::integral_constant<int, SUB>(), i);
  ROLL for (int i = SUB / 2; i < SUB; i += 4) block(std::integral_constant<int, SUB / 2>(), i);
  const unsigned nonzero = __ballot_sync(ALL, lane >= done && g0 > ZERO_PIVOT);
  if (stop == done) stop = nonzero ? done + 1 : SUB;  // a zero column goes alone with tau = 0; all zero: finished
  if (lane == 0) *z.stop = stop;
}

DEVICE void warp_top(const Scratch& z, int lane) {
  float a[SUB];
  UNROLL for (int r = 0; r < SUB / 4; r++) {
    const Quad x = load4(z.top + lane * LD_TOP + 4 * r);
    UNROLL for (int e = 0; e < 4; e++) a[4 * r + e] = x.e[e];
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
  UNROLL for (int u = 0; u < 4; u++) row_r[u] = z.r1[u * LD_SHIFT + lane];
  auto block = [&](auto LEN, int i) {
    constexpr int L = decltype(LEN)::value;
    float* columns = z.v + i * LD_SHIFT;  // the four columns from row i on, as they are: guard_and_top makes V of them
    if ((unsigned)(lane - i) < 4) {
      UNROLL for (int q = 0; q < L / 4; q++) *reinterpret_cast<float4*>(z.v + lane * LD_SHIFT + 4 * q) = make_float4(a[4 * q], a[4 * q + 1], a[4 * q + 2], a[4 * q + 3]);
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
    UNROLL for (int u = 0; u < 4; u++) {
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
    UNROLL for (int u = 0; u < 4; u++) row_r[u] = z.r1[(i + 4 + u) * LD_SHIFT + lane];
    UNROLL for (int e = 0; e < 4; e++) a[e] = fmaf(-x0.e[e], y[0], fmaf(-x1.e[e], y[1], fmaf(-x2.e[e], y[2], fmaf(-x3.e[e], y[3], a[4 + e]))));
    save_diagonal(i + 4);
    const float alpha = __shfl_sync(ALL, a[0], i + 4);  // the first pivot sooner than through shared memory
    __syncwarp();
    const Quad d0 = load4(z.a_diagonal), d1 = load4(z.a_diagonal + 4), d2 = load4(z.a_diagonal + 8), d3 = load4(z.a_diagonal + 12);
    factor(alpha, d0, d1, d2, d3, r0, r1, r2, r3);
    UNROLL for (int q = 2; q < L / 4; q++) update_quad(a, q, columns, y);
  };
  ROLL for (int i = 0; i < SUB / 2; i += 4) block(std::integral_constant<int, SUB>(), i);
  ROLL for (int i = SUB / 2; i < SUB; i += 4) block(std::integral_constant<int, SUB / 2>(), i);
}

// lane = panel column k, row i = reflector
DEVICE void warp_m(const Scratch& z, int lane) {
  float m[SUB + 1];
  float *w_row = z.w, *m_entry = z.m + lane;
  UNROLL for (int r = 0; r <= SUB; r++) m[r] = r == lane ? 1.f : 0.f;
  auto step = [&](auto LEN, int i, float inverse) {
    constexpr int L = decltype(LEN)::value;
    const float mi = m[0] * inverse;
    *m_entry = mi;
    UNROLL for (int q = 0; q < 4; q++) {
      const Quad x = load4(w_row + 4 * q);
      UNROLL for (int e = 0; e < 4; e++) m[4 * q + e] = fmaf(-x.e[e], mi, m[4 * q + e + 1]);
    }
    if (i < SUB / 2) {
      UNROLL for (int q = 4; q < L / 4; q++) {
        const Quad x = load4(w_row + 4 * q);
        UNROLL for (int e = 0; e < 4; e++) m[4 * q + e] = fmaf(-x.e[e], mi, m[4 * q + e + 1]);
      }
    }
    w_row += LD_SHIFT;
    m_entry += LD_M;
  };
  auto block = [&](auto LEN, int i) {
    if (i != 4) named_join(i == 0 ? 9 : 8 + i / 4);
    const Quad inverse = load4(z.inverse + i);
    UNROLL for (int u = 0; u < 4; u++) step(LEN, i, inverse.e[u]);
  };
  ROLL for (int i = 0; i < SUB; i += 4) block(std::integral_constant<int, SUB>(), i);
}

// 16 x 8 entries of sign A B, DEPTH terms each, on the tensor cores in two fp16 terms of both factors: a warp. All row
// strides LD_SHIFT.
template <int DEPTH>
DEVICE void product_tile(float* c, const float* a, const float* b, float sign, int lane) {
  const int g = lane >> 2, q = lane & 3;
  float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
  UNROLL for (int k = 0; k < DEPTH; k += 16) {
    uint32_t a_hi[4], a_lo[4], b_hi[2], b_lo[2];
    UNROLL for (int y = 0; y < 4; y++) {
      const float2 x = *reinterpret_cast<const float2*>(a + (g + (y & 1) * 8) * LD_SHIFT + k + (y >> 1) * 8 + 2 * q);
      split(x.x, x.y, a_hi[y], a_lo[y]);
    }
    UNROLL for (int y = 0; y < 2; y++) {
      const float* x = b + (k + 8 * y + 2 * q) * LD_SHIFT + g;
      split(x[0], x[LD_SHIFT], b_hi[y], b_lo[y]);
    }
    mma(d, a_hi, b_hi[0], b_hi[1]);
    mma(e, a_hi, b_lo[0], b_lo[1]);
    mma(e, a_lo, b_hi[0], b_hi[1]);
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
    UNROLL for (int r = 7; r >= 0; r--) {
      const Quad y[2] = {load4(from + r * LD_SHIFT), load4(from + r * LD_SHIFT + 4)};
      float sum = 0.f;
      UNROLL for (int m = 7; m > r; m--) sum = fmaf(y[m >> 2].e[m & 3], x[m], sum);
      x[r] = tau[8 * b + r] * ((r == c ? 1.f : 0.f) - sum);
      t[8 * b * (LD_SHIFT + 1) + r * LD_SHIFT + c] = x[r];
    }
  } else if (lane < 24) {  // zeros under them
    UNROLL for (int q = 0; q < 6; q++)
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
      UNROLL for (int m = 0; m < 8; m++) {
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
    UNROLL for (int e = 0; e < 4; e++) {
      const float m = fabsf(z.m[i * LD_M + k4 + e]);
      amplified = fmaf(m, square_root(2.f * fabsf(z.x[(k4 + e) * (LD_X + 1)])), amplified);
      biggest = fmaxf(biggest, m);
    }
    UNROLL for (int o = 1; o < 8; o <<= 1) {
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
    UNROLL for (int u = 0; u < 4; u++) {
      const int j = i + u;
      float below = __half2float(__float2half_rn(l[u]));
      below += __half2float(__float2half_rn(l[u] - below));
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

  ROLL for (int k = 0; k * PANEL < opaque(n); k++) {
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
        ROLL for (int pair = 0; pair < 2 * K::CHUNKS; pair++) {
          UNROLL for (int i = 0; i < 2 * K::G; i++) {
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
        UNROLL for (int pair = 0; pair < 2 * K::CHUNKS; pair++) {
          UNROLL for (int r = 0; r < 4; r++) {
            const int i = (pair & 1) * 8 + (r >> 1) * 4 + (r & 1);
            const unsigned char* from = (r & 1 ? odd : even) + pair * 2 * K::COPY + (r >> 1) * 1024;
            acc[pair >> 1][i] = *reinterpret_cast<const float*>(from);
            acc[pair >> 1][i + 2] = *reinterpret_cast<const float*>(from + K::COPY);
          }
        }
      }
      __syncthreads();
      UNROLL for (int half = 0; half < 2; half++) {
        float biggest = 0.f;
        UNROLL for (int c = 0; c < K::CHUNKS; c++) {
          UNROLL for (int i = 0; i < 16; i++)
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
        UNROLL for (int r = 0; r < K::C; r++) send(map_address(at, r), column_max[me.thread], map_address(barrier_at<K>(base_address, PANEL_BAR), r));
      }
      if (k > 0 && me.cg == copier<K>(rank)) {  // every lane has stored low terms
        bulk_store_wait();
        __syncwarp();
      }
      if (k > 0 && me.cg == copier<K>(rank) && me.lane == 0) {  // the stages have been read
        load_half_slab<K>(p, base_address, 0, me.group, 0);
        load_half_slab<K>(p, base_address, 0, me.group, 1);
      }
      if (k > 0) {
        if (me.warp < 8) product_32(y, pw, t2, 1.f, me.warp, me.lane);
        __syncthreads();
        if (me.warp < 8) product_32(t12, t1, y, -1.f, me.warp, me.lane);
        __syncthreads();
        ROLL for (int tile = me.warp; tile < 16; tile += 4 * K::G) {
          const int mt = tile >> 2, kk = tile & 3;
          if (kk <= mt) {
            const float* from = (kk >= 2 ? t2 : mt < 2 ? t1 : t12) + ((kk & 1) * 16 + 2 * me.q) * LD_SHIFT + (mt & 1) * 16 + me.g;
            uint4 hi, lo;
            split(-from[0], -from[LD_SHIFT], hi.x, lo.x);
            split(-from[8], -from[LD_SHIFT + 8], hi.y, lo.y);
            split(-from[8 * LD_SHIFT], -from[9 * LD_SHIFT], hi.z, lo.z);
            split(-from[8 * LD_SHIFT + 8], -from[9 * LD_SHIFT + 8], hi.w, lo.w);
            uint4* to = reinterpret_cast<uint4*>(sm + K::O_W + t_tile(mt, kk)) + me.lane;  // on its way to the workspace; W of block 0 waits for that
            to[0] = hi;
            to[32] = lo;
          }
        }
        fence_async();
      }
      wait_for<K>(base_address, PANEL_BAR, k & 1);
      const int* all_max = reinterpret_cast<const int*>(sm + K::O_TOP + 256);
      UNROLL for (int half = 0; half < 2; half++) {
        const int column = me.cg * 8 + me.g + SUB * half;
        int biggest = 0;
        UNROLL for (int r = 0; r < K::C; r++) biggest = max(biggest, all_max[r * PANEL + column]);
        int e = (biggest >> 23) - 127;
        e = biggest == 0 ? MAX_SCALE_LOG2 : max(e, -119);
        const float scale = power_of_two(MAX_SCALE_LOG2 - e);
        if (me.group == 0 && me.q == 0) unscale[column] = power_of_two(e - MAX_SCALE_LOG2);
        UNROLL for (int c = 0; c < K::CHUNKS; c++) {
          UNROLL for (int i = 0; i < 16; i++)
            if ((i >> 1 & 1) == half) acc[c][i] *= scale;
        }
      }
      __syncthreads();
      if (k > 0 && copies_t<K>(me, rank)) {
        bulk_store(t_block(p, block_index(), k - 1), base_address + K::O_W, T_BYTES);
        if (k == 1) bulk_store_wait();
        load_t<K>(p, base_address, 0);
      }
    }
    // ---- earlier blocks
    ROLL for (int j = 0; j < k; j++) {
      apply_block<K>(acc, p, sm, j, k);
    }
    cluster_arrive();  // W's low terms lie where peers send the top: not before they have been read
    __syncthreads();
    // ---- the panel
    ROLL for (int s = 0; s < 2; s++) {
      int done = 0;
      ROLL while (done < SUB) {
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
          if (K::CHUNKS == 3)  // the same address; each form is the one with which ptxas does not spill
            return p.h + (size_t)((uint32_t)block_index() / K::C) * (uint32_t)(n * p.ld) + (uint32_t)((first + local) * p.ld + row);
          else
            return p.h + ((size_t)(block_index() / K::C) * n + first + local) * p.ld + row;
        };
        // (1) Gram: H and L = P - H of the open rows and columns to shared memory as wgmma operands
        const uint32_t tiles_to = base_address + K::O_H + me.group * K::SLAB + (me.lane >> 3) * TILE_BYTES + me.cg * 256 + (me.lane & 7) * 16;
        UNROLL for (int c = 0; c < K::CHUNKS; c++) {
          if (c >= live) {
            uint32_t hi[4], lo[4];
            UNROLL for (int tile = 0; tile < 4; tile++) split(acc[c][tile * 4], acc[c][tile * 4 + 1], hi[tile], lo[tile]);
            if (c == live || done > 0) {  // finished rows lie in the first live chunk, finished columns come of a restart
              UNROLL for (int tile = 0; tile < 4; tile++) {
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
            UNROLL for (int r = 0; r < K::C; r++) send(map_address(to, r), x, map_address(barrier_at<K>(base_address, PANEL_BAR), r));
          }
        }
        {
          float x[16];
          wgmma_fence();
          UNROLL for (int i = 0; i < 16; i++) x[i] = 0.f;
          UNROLL for (int c = K::CHUNKS - 1; c >= 0; c--) {
            if (c == K::CHUNKS - 1 || c >= live) {
              UNROLL for (int u = 0; u < 2; u++)  // cores of H' and L' by turns: a thread has H'H and L'H of the same entries
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
            UNROLL for (int u = 1; u < K::G; u++) {
              UNROLL for (int i = 0; i < 2; i++) add4(x4[i], partial[u * 64 + i * 32]);
            }
            const uint32_t at = base_address + K::O_INBOX + (rank * 4 + me.cg) * 1024 + me.lane * 16;
            UNROLL for (int r = 0; r < K::C; r++) {
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
          UNROLL for (int c = 0; c < K::CHUNKS; c++) {
            if (c < live + 1) {
            UNROLL for (int tile = 0; tile < 4; tile += 2) {
              const int row = chunk_row<K>(c, tile, 0);
              const float *x = &acc[c][tile * 4], *y = x + 4;
              if (row0 + row < end) *reinterpret_cast<float4*>(h_to + row) = make_float4(x[0] * undo, x[1] * undo, y[0] * undo, y[1] * undo);
            }
            }
          }
        }
        if (me.warp < 3) {  // the panel's registers would be spilled in the recurrence: they wait in shared memory
          const uint32_t at = base_address + K::O_KEPT + me.warp * (K::CHUNKS * 2048) + me.lane * 16;
          UNROLL for (int c = 0; c < K::CHUNKS; c++) {
            UNROLL for (int t = 0; t < 4; t++) store_float4(at + (4 * c + t) * 512, acc[c][4 * t], acc[c][4 * t + 1], acc[c][4 * t + 2], acc[c][4 * t + 3]);
          }
        }
        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        if (me.thread < 256) {
          const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + me.thread;
          UNROLL for (int u = 0; u < K::C; u++) add4(sum, in[u * 256]);
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
          UNROLL for (int c = 0; c < K::CHUNKS; c++) {
            UNROLL for (int t = 0; t < 4; t++) load_floats(from + (4 * c + t) * 512, acc[c][4 * t], acc[c][4 * t + 1], acc[c][4 * t + 2], acc[c][4 * t + 3]);
          }
        } else if (me.warp >= 4 && s == 0 && done == 0 && top + PANEL < n) {  // the next panel's rows of this CTA into L2
          if (staged) {
            if (me.lane == 0) {
              ROLL for (int i = me.warp - 4; i < 4 * K::CHUNKS; i += 4 * K::G - 4)
                panel_prefetch(map, top + PANEL + SUB * (i & 1), (block_index() / K::C * (2 * K::CHUNKS) + (i >> 1)) * K::UNITS + rank * K::G);
            }
          } else
          ROLL for (int i = me.thread - 128; i < K::ROWS / K::C * 2; i += K::THREADS - 128) {
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
          UNROLL for (int c = K::CHUNKS - 2; c > -2; c -= 2) {
            if (c >= 0 && live <= c) product(c, acc[c < 0 ? 0 : c]);
            if (c == K::CHUNKS - 2 || live <= c + 1) product(c + 1, acc[c + 1]);
          }
          wgmma_commit();
          wgmma_wait();
        };
        // (3) V = P M, rounded to fp16
        const bool in = local >= done && local < stop;
        UNROLL for (int c = 0; c < K::CHUNKS; c++) {  // the columns of other passes stay
          UNROLL for (int tile = 0; tile < 4; tile++) {
            acc[c][tile * 4] = in ? 0.f : acc[c][tile * 4];
            acc[c][tile * 4 + 1] = in ? 0.f : acc[c][tile * 4 + 1];
          }
        }
        {
          uint32_t m_hi[2][4], m_lo[2][4];
          UNROLL for (int kk = 0; kk < 2; kk++) {
            UNROLL for (int y = 0; y < 4; y++) {
              float2 x = make_float2(0.f, 0.f);  // rows of the other sub-panel
              if (!(y & 1)) {
                x = *reinterpret_cast<float2*>(&z.m[local * LD_M + kk * 16 + 2 * me.q + 8 * (y >> 1)]);
                const float by = m_scale[local];
                x = in ? make_float2(x.x * by, x.y * by) : make_float2(0.f, 0.f);
              }
              split(x.x, x.y, m_hi[kk][y], m_lo[kk][y]);
            }
          }
          by_chunks([&](int c, auto& rows) {
            wgmma_fence();
            UNROLL for (int kk = 0; kk < 2; kk++) {
              const uint32_t at = c * CHUNK_BYTES + kk * 512;
              wgmma_rows(m_lo[kk], descriptor(h16, at, 256, TILE_BYTES), rows);
              wgmma_rows(m_hi[kk], descriptor(h16, at + (K::O_L - K::O_H), 256, TILE_BYTES), rows);
              wgmma_rows(m_hi[kk], descriptor(h16, at, 256, TILE_BYTES), rows);
            }
          });
        }
        __syncthreads();  // H and L are spent: V's low terms take their place
        {
          const float by = in ? __uint_as_float((254u << 23) - __float_as_uint(m_scale[local])) : 1.f;  // 1 / 2^e
          const int row0 = unit * 16 + 4 * me.q;
          const uint32_t v_to = base_address + me.group * K::SLAB + (me.lane >> 3) * TILE_BYTES + ((4 * s + me.cg) ^ 2 * me.group) * 128 + (me.lane & 7) * 16;
          const uint32_t low_to = base_address + K::O_LOW + me.group * (K::SLAB / 2) + (me.lane >> 3) * 512 + (me.cg ^ 2 * (me.group & 1)) * 128 + (me.lane & 7) * 16;
          const float* v_from = z.r1 + local * LD_TOP + row0 - first;
          UNROLL for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              uint32_t to_tiles[4], low_tiles[4];
              UNROLL for (int tile = 0; tile < 4; tile += 2) {
                const int row = chunk_row<K>(c, tile, 0);
                float *x = &acc[c][tile * 4], *y = x + 4;
                float4 v = make_float4(x[0] * by, x[1] * by, y[0] * by, y[1] * by);
                const bool in_top = in && (unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB;
                if (in_top) v = *reinterpret_cast<const float4*>(v_from + row);
                const __half2 v0 = __floats2half2_rn(v.x, v.y), v1 = __floats2half2_rn(v.z, v.w);
                float2 f0 = __half22float2(v0), f1 = __half22float2(v1);
                const __half2 l0 = __floats2half2_rn(v.x - f0.x, v.y - f0.y), l1 = __floats2half2_rn(v.z - f1.x, v.w - f1.y);
                const float2 g0 = __half22float2(l0), g1 = __half22float2(l1);
                f0 = make_float2(f0.x + g0.x, f0.y + g0.y);
                f1 = make_float2(f1.x + g1.x, f1.y + g1.y);
                low_tiles[tile] = local < stop ? bits(l0) : 0u;
                low_tiles[tile + 1] = local < stop ? bits(l1) : 0u;
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
              store_matrices(low_to + c * 2048, low_tiles);
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
        if (stop == SUB && me.cg == copier<K>(rank) && me.lane >= 4 * live && me.lane < 4 * K::CHUNKS)  // low terms, a tile a lane
          bulk_store(v_block<K>(p, block_index(), k) + K::STAGE + me.group * K::SLAB + me.lane * TILE_BYTES + (s ^ me.group >> 1) * 512, base_address + K::O_LOW + me.group * (K::SLAB / 2) + me.lane * 512, 512);
        cluster_arrive();  // the inbox and its scratch are free
        // (4) W^T = [V1, V2, C]^T V, V the reflectors of this sub-panel
        {
          const uint32_t low16 = uniform(operand_address(base_address + K::O_LOW + me.group * (K::SLAB / 2)));
          float w[16];
          UNROLL for (int i = 0; i < 16; i++) w[i] = 0.f;
          UNROLL for (int c = K::CHUNKS - 1; c >= 0; c--) {
            if (c == K::CHUNKS - 1 || c >= live) {
              UNROLL for (int u = 0; u < 2; u++) {
                uint32_t hi[4], lo[4];
                UNROLL for (int y = 0; y < 4; y++) split(acc[c][8 * u + 2 * y], acc[c][8 * u + 2 * y + 1], hi[(y & 1) + (y >> 1) * 2], lo[(y & 1) + (y >> 1) * 2]);
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
          float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.group * 512 + me.cg * 128 + me.lane;
          UNROLL for (int ct = 0; ct < 4; ct++) partial[(ct & 1) * 32 + ((ct & 2) ^ (me.group & 1) * 2) * 32] = make_float4(w[4 * ct], w[4 * ct + 1], w[4 * ct + 2], w[4 * ct + 3]);
        }
        if (me.cg == copier<K>(rank)) bulk_store_read();
        __syncthreads();
        if (last && staged && top + PANEL < n) {
          load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, top + PANEL, rank, me.thread);
          load_panel<K>(p, map, base_address, 3 * K::CHUNKS, 4 * K::CHUNKS, top + PANEL, rank, me.thread);
        }
        cluster_wait();
        if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::IN_PW);
        float4 own;
        {
          const float4* partial = reinterpret_cast<const float4*>(sm + K::O_PARTIAL) + me.thread;
          own = partial[0];
          UNROLL for (int u = 1; u < K::G; u++) add4(own, partial[u * 512]);
          UNROLL for (int r = 1; r < K::C; r++) {
            const uint32_t peer = (rank + r) % K::C, at = base_address + K::O_INBOX + ((rank < peer ? rank : rank - 1) * 512 + me.thread) * 16;
            send(map_address(at, peer), own, map_address(barrier_at<K>(base_address, PANEL_BAR), peer));
          }
        }
        // V and the top of R to H while W is on its way
        if (in && first + local < n) {
          const int row0 = unit * 16 + 4 * me.q;
          const float* h_from = z.top + local * LD_TOP + row0 - first;
          float* h_to = h_column();
          UNROLL for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              UNROLL for (int tile = 0; tile < 4; tile += 2) {
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
            ROLL for (int row = lim; row <= (lim | 3) && row < n; row++)
              p.h[((size_t)(block_index() / K::C) * n + first + local) * p.ld + row] = z.top[local * LD_TOP + row - first];
          }
        }
        wait_for<K>(base_address, PANEL_BAR, k & 1);
        {
          const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + me.thread;
          float4 x = make_float4(0.f, 0.f, 0.f, 0.f);
          UNROLL for (int r = 0; r < K::C; r++)  // in the same order in every CTA: they must agree to the last bit
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
          ROLL for (int tile = me.warp; tile < 16; tile += 4 * K::G) {  // W' = W T, a column of C a row
            const int columns = (tile >> 3) * SUB;
            if (columns + (tile >> 2 & 1) * 16 + 15 >= SUB * s + stop) product_32(pwp + columns * LD_SHIFT, pw + columns * LD_SHIFT, t_pass, 1.f, tile & 7, me.lane);
          }
          __syncthreads();
          uint32_t w_hi[2][4], w_lo[2][4];
          UNROLL for (int kk = 0; kk < 2; kk++) {
            UNROLL for (int y = 0; y < 4; y++) {
              const int column = (y & 1 ? SUB - SUB * s : SUB * s) + local;
              float2 x = *reinterpret_cast<float2*>(&pwp[column * LD_SHIFT + (kk ^ (me.group & 1)) * 16 + 2 * me.q + 8 * (y >> 1)]);
              const bool on = column >= SUB * s + stop;
              split(on ? -x.x : 0.f, on ? -x.y : 0.f, w_hi[kk][y], w_lo[kk][y]);
            }
          }
          const uint32_t low16 = uniform(operand_address(base_address + K::O_LOW + me.group * (K::SLAB / 2)));
          by_chunks([&](int c, auto& rows) {
            wgmma_fence();
            UNROLL for (int kk = 0; kk < 2; kk++) {
              const uint32_t at = c * CHUNK_BYTES + kk * 256;
              wgmma_rows(w_hi[kk], descriptor(low16, c * 2048 + kk * 256, 128, 512), rows);
              wgmma_rows(w_lo[kk], descriptor(v16, at, 128, TILE_BYTES), rows);
              wgmma_rows(w_hi[kk], descriptor(v16, at, 128, TILE_BYTES), rows);
            }
          });
          __syncthreads();
        }
        done = stop;
        if (!(s == 1 && done == SUB)) cluster_arrive();
      }
      if (s == 0) {  // the second sub-panel moves to the front
        UNROLL for (int c = 0; c < K::CHUNKS; c++) {
          UNROLL for (int i = 0; i < 16; i++) {
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
  const auto encode = tensor_map_encoder();
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

N1024_BINDING = r"""
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

# ---------------------------------------------------------------- large: v137

LARGE_CUDA = PRELUDE + r"""
// CONTENTS
//   geqrf: run launches geqr2 and larfb side by side; schedule makes the list of updates
//   geqr2: panel_step: gram64, solve_block (R, signs and T by blocks of 8), V; by_columns (where that cannot go)
//   larft: larft64 (T of 64 columns); coupling (V1'V0, joins two panels to 128)
//   larfb: warpgroup_strip (K = 64 or 128 reflectors to 64 columns)
//
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>
namespace large {
using namespace qr;
// 1: V, C and W' are rounded to FP16 in the updates. 2: they are the sum of two FP16 terms, and the guards are tighter.
constexpr int TERMS = 2;
constexpr bool TWO = TERMS == 2;
// ---------------------------------------------------------------- 1. small tools
DEVICE float2 sum2(uint32_t hi, uint32_t lo) {
  const float2 x = __half22float2(*(__half2 *)&hi), y = __half22float2(*(__half2 *)&lo);
  return make_float2(x.x + y.x, x.y + y.y);
}
DEVICE float two_terms(float x) { // x as its two FP16 terms hold it
  const float hi = __half2float(__float2half_rn(x));
  return hi + __half2float(__float2half_rn(x - hi));
}
DEVICE void cp4(uint32_t dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(dst), "l"(src) : "memory");
}
DEVICE void cp16(uint32_t dst, const void *src) {
  asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(dst), "l"(src) : "memory");
}
// the same, or 16 zero bytes
DEVICE void cp16z(uint32_t dst, const void *src, bool on) {
  asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(dst), "l"(src), "r"(on ? 16 : 0) : "memory");
}
DEVICE void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
// Power of two s with 8 <= s max|a_j| < 16 for a column whose largest entry has these bits: fp16 copies of a scaled column never overflow,
// and the scaling is exact. Zero columns and entries beyond 2^+-100 get the clamped factor.
DEVICE float column_scale(uint32_t maxbits) {
  int e = (int)(maxbits >> 23) - 127;
  e = e < -97 ? -97 : e > 100 ? 100 : e;
  return __uint_as_float((uint32_t)(127 + 3 - e) << 23);
}
DEVICE float column_unscale(uint32_t maxbits) {
  int e = (int)(maxbits >> 23) - 127;
  e = e < -97 ? -97 : e > 100 ? 100 : e;
  return __uint_as_float((uint32_t)(127 - 3 + e) << 23);
}
template <int NT> DEVICE void block_sync() {
  asm volatile("bar.sync 0,%0;" ::"n"(NT) : "memory");
} // the first NT threads of the CTA
// ---------------------------------------------------------------- 2. column maxima
// colmax[mat][j] = bits of max_i |a_ij| (exact, order does not matter) over `rows` rows of 128 columns, by 256 threads; the caller zeroes
// it
DEVICE void column_max(const float *a, uint32_t *colmax, int n, size_t mat, int block, int row, int rows,
                                           float4 (*s)[32]) {
  const int c = block * 128 + (threadIdx.x & 31) * 4, r1 = min(n, row + rows);
  const float *p = a + mat * n * n + c;
  float4 v = make_float4(0, 0, 0, 0);
#pragma unroll 8
  for (int r = row + (threadIdx.x >> 5); r < r1; r += 8) {
    float4 x = *(const float4 *)(p + (size_t)r * n);
    v.x = fmaxf(v.x, fabsf(x.x));
    v.y = fmaxf(v.y, fabsf(x.y));
    v.z = fmaxf(v.z, fabsf(x.z));
    v.w = fmaxf(v.w, fabsf(x.w));
  }
  block_sync<256>();
  s[threadIdx.x >> 5][threadIdx.x & 31] = v;
  block_sync<256>();
  if (threadIdx.x < 128) {
    const float *f = (const float *)s;
    float x = 0;
    UNROLL for (int i = 0; i < 8; i++) x = fmaxf(x, f[i * 128 + threadIdx.x]);
    atomicMax(colmax + mat * n + block * 128 + threadIdx.x, __float_as_uint(x));
  }
}
__global__ void __launch_bounds__(256) first_maxima(const float *a, uint32_t *colmax, int n, int rows) {
  __shared__ float4 s[8][32];
  column_max(a, colmax, n, blockIdx.z, blockIdx.x, blockIdx.y * rows, rows, s);
}
// ---------------------------------------------------------------- 3. sums over the C CTAs that share a matrix
// They are a cluster or half of one: st.async writes into a neighbour's shared memory and counts bytes on its mbarrier.
// (two matrices share a cluster of 16 where a matrix has 8 CTAs: see `panels`)
template <int C> DEVICE uint32_t map_address(uint32_t addr, uint32_t rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(r) : "r"(addr), "r"(C < 16 ? rank | (blockIdx.x & 8) : rank));
  return r;
}
DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
DEVICE void st_async2(uint32_t dst, float x, float y, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0],{%1,%2},[%3];" ::"r"(dst), "f"(x), "f"(y), "r"(bar)
               : "memory");
}
DEVICE void mbar_arrive_remote(uint32_t b) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%0];" ::"r"(b) : "memory");
}
DEVICE void mbar_wait_acquire(uint32_t b, uint32_t phase) {
  uint32_t ok;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}"
                 : "=r"(ok)
                 : "r"(b), "r"(phase)
                 : "memory");
  } while (!ok);
}
// the C CTAs of a matrix meet; what they have stored is seen by all. `bar`: counts C
template <int C> DEVICE void group_sync(uint32_t bar, int &phase) {
  if (C == 16) {
    cluster_sync();
    return;
  }
  block_sync<256>();
  if (threadIdx.x < C) mbar_arrive_remote(map_address<C>(bar, threadIdx.x));
  mbar_wait_acquire(bar, phase);
  phase ^= 1;
}
template <int L> using Len = std::integral_constant<int, L>;
constexpr int LDM = 68; // floats of a row of a 64 x 64 matrix
constexpr int LB = 12, BLOCK = 64 * LB;  // floats of a column of a block of 8 rows (ldmatrix and 16-byte accesses free of conflicts) and of a block
// ---------------------------------------------------------------- 4a. geqr2: panels of 64 columns by C CTAs, rows kept in registers
// One kernel makes panel after panel. Each first gets the 64 reflectors of the panel before it (everything older has been applied by the
// workers of section 5, as `applied` tells), then it is factored. Rows are spread over the CTAs: each holds RP rows x 64 columns of C^T as
// mma accumulators: acc[mt][nt][.] is columns mt*16 + g (+8), rows (nt*NW + w)*8 + 2q (+1) of the CTA's rows (g = lane/4, q = lane%4,
// w = warp). The same registers are the A operand of C^T V, both operands of the Gram and the accumulator of C^T -= W'^T V^T: no staging.
// The open block of 32 columns is always slot 0 (slots rotate). acc ends as H itself.
template <int NW, int NTL, int C> struct PanelShape {
  static constexpr int NT = 32 * NW, S = 2, NB = 64, RP = 8 * NW * NTL,
                       LD = RP + 8 /* halves a row of V^T or C^T: 16 bytes of padding keep ldmatrix free of conflicts */;
  static constexpr int TILE = 64 * LD * 2, LDW = 72 * 2;
  // for all panels: scales, barriers, inbox and sums of the exchange of 4b; the rest starts at BASE
  static constexpr int SC = 0, BARS = 1920, XIN = 2048, XTOP = XIN + 10240, XSUM = XTOP + 2048, BASE = (XSUM + 1280 + 127) / 128 * 128;
  // larfb: V^T, C^T in fp16, inbox of partial W, all of W', this CTA's columns of W and W'
  // C passes through shared memory on its way in ([row][column] fp32, LDC words a row), so that memory sees whole lines. The inbox lies
  // behind it.
  static constexpr int LDC = 68, V = BASE, FIRST = TILE > 28160 ? TILE : 28160, CIN = V + FIRST, C16 = CIN,
                       CSIZE = RP * LDC * 4 > 2 * TILE ? RP * LDC * 4 : 2 * TILE, IN = CIN + CSIZE, WALL = IN + 16384,
                       WOWN = WALL + TERMS * 64 * LDW, WOUT = WOWN + TERMS * 8 * LDW, END_N = WOUT + TERMS * 8 * LDW; // (two terms: low behind high)
  // factor: M in two fp16 terms where V was; the panel in two fp16 terms where C was; the matrices of 4b;
  // V^T of the panel, which stays until the next one has its own
  static constexpr int MH = V, ML = V + 9216, PH = CIN, PL = CIN + TILE, G = CIN + CSIZE, X = G + 17408, A = X + 17408,
                       THR = A + 32 * BLOCK, VSM = THR + 256, NEXT = VSM + TILE /* 64 rows of the CTA below */,
                       END_F = NEXT + TERMS * 64 * LDW;
  static constexpr int VLOW = V; // second term of V, where M was
  static constexpr int BYTES = ((END_N > END_F ? END_N : END_F) + 127) / 128 * 128;
  static_assert(RP * 4 + 2 * (C + 3) * 256 <= 17408 && BYTES <= 232448); // by_columns
};
// ts: T^T of each panel (64 x 64, [column][row]) as the sum of two fp16 matrices: rounded to one, T is the largest error of all (band
// matrices)
constexpr int TS = 8192, TLOW = 4096;
// done[mat]: panels made so far; applied[mat][panel]: larfb tasks done on its columns
struct PanelArgs {
  const float *a;
  float *h;
  float *tau;
  __half *vt;
  size_t low; // from V^T to its second term
  __half *ts;
  const uint32_t *colmax;
  int *done;
  const int *applied;
  int n, mat0, matrices;
};
DEVICE int load_acquire(const int *p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0,[%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEVICE void add_release(int *p, int v) {
  asm volatile("red.release.gpu.global.add.s32 [%0],%1;" ::"l"(p), "r"(v) : "memory");
}
// A wait of seconds means that the CTAs which it waits for are not running: an error is better than a hang.
DEVICE void poll(const int *p, int v) {
  const long long t = clock64();
  while (load_acquire(p) < v)
    if (clock64() - t > 4000000000LL) __trap();
}
NOINLINE void wait_for(const int *p, int v) { poll(p, v); }
// What the columns of panel c need: their maxima, in so many tasks (but for c < 2); pairs of panels; the last one or two panels one by one;
// panel c - 1 is left to geqr2.
constexpr int MAXIMA = 8;
__host__ __device__ constexpr int pairs(int c) { return c < 4 ? 0 : c / 2 - 1; }
__host__ __device__ constexpr int all_updates(int c) { return c < 2 ? 0 : MAXIMA + c - 1 - pairs(c); }

// sum of N float4, `step` floats apart, always in the same order; eight loads in flight
template <int N> DEVICE float4 sum_warps(const float *p, int step) {
  float4 s = make_float4(0, 0, 0, 0);
  UNROLL for (int u0 = 0; u0 < N; u0 += 8) {
    float4 x[8];
    UNROLL for (int u = 0; u < 8; u++) x[u] = load_float4(p + (u0 + u) * step);
    __syncwarp();
    UNROLL for (int u = 0; u < 8; u++) {
      s.x += x[u].x;
      s.y += x[u].y;
      s.z += x[u].z;
      s.w += x[u].w;
    }
  }
  return s;
}

// ---------------------------------------------------------------- 4b. 64 reflectors from one 64 x 64 Gram matrix, by blocks of 8
// G = P'P = R'R (upper half), A = the 64 pivot rows, A - R~ = L U with R~ = R with signs, X = U^-T, so that V = P X^T below the pivot rows.
// All three live in the accumulators of 8 warps, a column tile of 8 each, and are updated by mma in three tf32 products (22 bits). A step:
//   publish  the next 8 rows of G, A and X and the next 8 columns of A go to shared memory, [column][8], so that a lane reads its own
//            column by two loads and ldmatrix reads the solved ones as operands
//   solve    four warps, a lane a column, four pivots and then four more: every lane factors the 4 x 4 blocks on the diagonal itself (no
//            exchange in the chain of pivots) and applies each pivot to its own column of R~ and U (two warps) or to its row of L or column
//            of X (the others; L has what X has not yet). A warp alone takes two cycles an instruction or more: few of them are what counts
//   update   G -= R'R, A -= L U where columns are open, X -= U'X where they are done
// A cancelled pivot shows in |R| afterwards, as a small number or as NaN; then the panel goes by columns (4c).
constexpr float PIVOT_MIN64 = 1e-4f;   // of the column's own norm^2
constexpr float GROWTH_MAX = 60.f; // sum_k ||p_k|| |X_jk|: by how much V = P X^T magnifies rounding; a pivot alone does not bound it
constexpr float NORM_MIN64 = 1.f / 64; // norm^2 of a column whose largest entry was in [8,16): below it the second fp16 term loses bits
DEVICE int block_r(int b) { return (60 - 4 * b) * b * LB; } // from column 8 b on, which lies where block b - 1 ends
struct Block64 {
  float *r, *lx;              // solved, 8 blocks each: R~ (see block_r), with L below it in the 4 x 4 blocks on the diagonal; L right of X
  float *u, *gin, *ain, *xin; // one block each: U of this step; rows and columns as they come
};
DEVICE float entry_r(const float *m, int i, int j) { return m[block_r(i >> 3) + j * LB + (i & 7)]; }
DEVICE float entry(const float *m, int i, int j) { return m[(i >> 3) * BLOCK + j * LB + (i & 7)]; }
DEVICE void read4(float *x, const float *p) {
  const float4 v = *(const float4 *)p;
  x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}
DEVICE void write4(float *p, const float *x) { *(float4 *)p = make_float4(x[0], x[1], x[2], x[3]); }
// four pivots, on the diagonal ([column][row]) and on this lane's columns of R~ (y) and U (z), or its row of L or column of X (y)
template <bool X> DEVICE void solve_four(float (&g)[4][4], float (&a)[4][4], int me, float *y, float *z) {
  float rs = reciprocal_sqrt(g[0][0]);
  UNROLL for (int u = 0; u < 4; u++) {
    // R~_uu has the sign opposite to that of the eliminated pivot
    const float srs = __uint_as_float(__float_as_uint(rs) | (~__float_as_uint(a[u][u]) & 0x80000000u)), iv = reciprocal(fmaf(-srs, g[u][u], a[u][u]));
    UNROLL for (int v = u + 1; v < 4; v++) g[v][u] *= srs;
    if (u < 3) { // one column ahead of the elimination
      g[u + 1][u + 1] = fmaf(-g[u + 1][u], g[u + 1][u], g[u + 1][u + 1]);
      rs = reciprocal_sqrt(g[u + 1][u + 1]);
    }
    UNROLL for (int v = u + 1; v < 4; v++)
      UNROLL for (int c = v; c < 4; c++)
        if (c > u + 1) g[c][v] = fmaf(-g[v][u], g[c][u], g[c][v]);
    UNROLL for (int v = u + 1; v < 4; v++) {
      a[v][u] -= g[v][u];
      a[u][v] *= iv;
    }
    UNROLL for (int v = u + 1; v < 4; v++)
      UNROLL for (int c = u + 1; c < 4; c++) a[c][v] = fmaf(-a[u][v], a[c][u], a[c][v]);
    if (X) {
      y[u] *= iv;
      UNROLL for (int v = u + 1; v < 4; v++) y[v] = fmaf(-a[v][u], y[u], y[v]);
    } else {
      y[u] *= srs;
      z[u] -= y[u];
      UNROLL for (int v = u + 1; v < 4; v++) {
        y[v] = fmaf(-g[v][u], y[u], y[v]);
        z[v] = fmaf(-a[u][v], z[u], z[v]);
      }
    }
  }
  if (!X)
    UNROLL for (int u = 0; u < 3; u++)
      UNROLL for (int v = u + 1; v < 4; v++) y[v] = me == u ? a[u][v] : y[v]; // L on the diagonal, below R~
}
DEVICE void bar_solvers() { asm volatile("bar.sync 1,128;" ::: "memory"); }
template <bool X> DEVICE void solve_block(const Block64 &z, const int b, const int e) { // e: this lane's column
  const int i0 = 8 * b, me = e - i0;
  float *const gin = z.gin + i0 * LB, *const ain = z.ain + i0 * LB, *const r = z.r + block_r(b), *const lx = z.lx + b * BLOCK;
  float g[4][4], a[4][4], yc[8], zc[8]; // zc: unless X
  UNROLL for (int c = 0; c < 4; c++) {
    read4(g[c], gin + c * LB);
    read4(a[c], ain + c * LB);
  }
  UNROLL for (int i = 0; i < 8; i += 4) {
    read4(yc + i, (X ? z.xin : z.gin) + e * LB + i);
    if (!X) read4(zc + i, z.ain + e * LB + i);
  }
  auto write = [&](int i) {
    if (X) write4(lx + e * LB + i, yc + i);
    else {
      if (e >= i0) write4(r + e * LB + i, yc + i);
      write4(z.u + e * LB + i, zc + i);
    }
  };
  solve_four<X>(g, a, me, yc, zc);
  write(0);
  bar_solvers();
  const bool second = (me >> 2) == 1; // of the next four columns: so far L, from here on X
  if (X)
    UNROLL for (int u = 0; u < 4; u++) yc[u] = second ? 0.f : yc[u];
  UNROLL for (int v = 0; v < 4; v++) {
    float x[4], y[4];
    if (X) read4(x, z.u + (i0 + 4 + v) * LB);
    else {
      read4(x, r + (i0 + 4 + v) * LB);
      read4(y, lx + (i0 + 4 + v) * LB);
    }
    UNROLL for (int u = 0; u < 4; u++) {
      yc[4 + v] = fmaf(-x[u], yc[u], yc[4 + v]);
      if (!X) zc[4 + v] = fmaf(-y[u], zc[u], zc[4 + v]);
    }
  }
  if (!X && second) { // what is left of their diagonal
    write4(z.gin + e * LB + 4, yc + 4);
    write4(z.ain + e * LB + 4, zc + 4);
  }
  bar_solvers();
  UNROLL for (int c = 0; c < 4; c++) {
    read4(g[c], gin + (4 + c) * LB + 4);
    read4(a[c], ain + (4 + c) * LB + 4);
  }
  solve_four<X>(g, a, me - 4, yc + 4, zc + 4);
  write(4);
}
// D (16x8) += A (16x8, tf32, rows) B (8x8, tf32, columns)
DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// x = high + low, 11 bits each
DEVICE void split_tf32(uint32_t x, uint32_t &high, uint32_t &low) {
  high = x & 0xffffe000u;
  low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high));
}
// warp w: columns 8 w..; g: tiles of G, a: tiles of A while w is to come, then of X; 16 rows each, the first one that of block b
DEVICE void publish_block(const Block64 &z, const int b, const int w, const int lane, const float (&g)[4][4],
                                              float (&a)[4][4]) {
  const int gr = lane >> 2, q = lane & 3, at = (8 * w + 2 * q) * LB + gr;
  const bool odd = b & 1;
  float *in = (w < b ? z.xin : z.ain) + at;
  in[0] = odd ? a[0][2] : a[0][0];
  in[LB] = odd ? a[0][3] : a[0][1];
  if (w >= b) {
    z.gin[at] = odd ? g[0][2] : g[0][0];
    z.gin[at + LB] = odd ? g[0][3] : g[0][1];
  }
  if (w == b)
    UNROLL for (int i = 0; i < 4; i++)
      UNROLL for (int h = 0; h < 2; h++) {
        float2 x = make_float2(a[i][2 * h], a[i][2 * h + 1]);
        if (i == 0 && h == odd && (gr < 4 || q > 1)) x = make_float2(gr == 2 * q, gr == 2 * q + 1); // (the rest is L)
        if (2 * i + h >= odd && (b >> 1) + i < 4) *(float2 *)(z.xin + (16 * ((b >> 1) + i) + 8 * h + gr) * LB + 2 * q) = x;
        a[i][2 * h] = a[i][2 * h + 1] = 0.f;
      }
}
DEVICE void update_block(const Block64 &z, const int b, const int w, const int lane, float (&g)[4][4],
                                             float (&a)[4][4]) {
  const bool done = w <= b;
  const int first = (b + 1) >> 1; // row tile of the next block: the first one from here on
  if (b & 1)
    UNROLL for (int i = 0; i < 3; i++)
      UNROLL for (int e = 0; e < 4; e++) {
        a[i][e] = a[i + 1][e];
        g[i][e] = g[i + 1][e];
      }
  const uint32_t lx = shared_address(z.lx + b * BLOCK), r = shared_address(z.r + block_r(b)), u = shared_address(z.u);
  const uint32_t at = ((first * 16 + (lane & 15)) * LB + (lane >> 4) * 4) * 4, la = (done ? u : lx) + at, lg = r + at;
  uint32_t bh[4], bl[4], right[4]; // columns 8 w..: of U or X, of R
  load_matrix(right, ((lane & 16) ? r : done ? lx : u) + ((8 * w + (lane & 7)) * LB + (lane & 8) / 2) * 4);
  if (w == b && lane >= 16) right[0] = 0u; // L, not X
  UNROLL for (int i = 0; i < 4; i++) split_tf32(right[i] ^ 0x80000000u, bh[i], bl[i]);
  // row tiles t, t + 1 of one matrix
  auto rank8 = [&](float (&d)[4][4], const int t, uint32_t from, const int s) {
    uint32_t x[2][4], h[2][4], l[2][4];
    UNROLL for (int i = 0; i < 2; i++) load_matrix(x[i], from + (t + i) * 16 * LB * 4);
    UNROLL for (int i = 0; i < 2; i++)
      UNROLL for (int v = 0; v < 4; v++) split_tf32(x[i][v], h[i][v], l[i][v]);
    UNROLL for (int i = 0; i < 2; i++) mma_tf32(d[t + i], l[i], bh[s], bh[s + 1]);
    UNROLL for (int i = 0; i < 2; i++) mma_tf32(d[t + i], h[i], bl[s], bl[s + 1]);
    UNROLL for (int i = 0; i < 2; i++) mma_tf32(d[t + i], h[i], bh[s], bh[s + 1]);
  };
  rank8(a, 0, la, 0);
  if (!done) rank8(g, 0, lg, 2);
  if (first < 2) {
    rank8(a, 2, la, 0);
    if (!done && first + 2 <= w >> 1) rank8(g, 2, lg, 2);
  }
}
// L of A - R~ = L U below the diagonal
DEVICE float lower(const Block64 &z, int i, int j) {
  return *((i >> 2) == (j >> 2) ? z.r + block_r(j >> 3) + j * LB + (i & 7) : z.lx + (j >> 3) * BLOCK + i * LB + (j & 7));
}
// Upper 16 x 16 blocks (i, j) of a 64 x 64 product, numbered so that the two blocks of warps 0, 1, 2 share their rows.
DEVICE int unit_row(int u) { return u < 7 ? u >> 1 : u == 8; }
DEVICE int unit_col(int u) { return u < 7 ? (u + 1) >> 1 : u == 7 ? 2 : 3; }
// d[x][nt] = block x of this warp, of H'H (or (H + L)'(H + L) without L'L) over `rows` rows; H, L: [column][row], ld halves a row
template <bool LOW, bool DIAGONAL, bool OTHER>
DEVICE void gram_units(uint32_t high, uint32_t low, int ld, int steps, int i, int j, int lane, float (&d)[2][2][4]) {
  float x[2][2][4]; // the cross terms apart: shorter chains
  UNROLL for (int u = 0; u < 2; u++)
    UNROLL for (int nt = 0; nt < 2; nt++)
      UNROLL for (int e = 0; e < 4; e++) d[u][nt][e] = x[u][nt][e] = 0.f;
  const uint32_t at = ((lane & 15) * ld + (lane >> 4) * 8) * 2, ra = i * 16 * ld * 2 + at, rb = j * 16 * ld * 2 + at;
#pragma unroll 2
  for (int ks = 0; ks < steps; ks++) {
    uint32_t ah[4], al[4], bh[4], bl[4];
    load_matrix(ah, high + ra + ks * 32);
    if (LOW) load_matrix(al, low + ra + ks * 32);
    if (OTHER) {
      load_matrix(bh, high + rb + ks * 32);
      if (LOW) load_matrix(bl, low + rb + ks * 32);
    }
    if (DIAGONAL)
      UNROLL for (int nt = 0; nt < 2; nt++) {
        mma(d[0][nt], ah, ah[nt], ah[nt + 2]);
        if (LOW) {
          mma(x[0][nt], ah, al[nt], al[nt + 2]);
          mma(x[0][nt], al, ah[nt], ah[nt + 2]);
        }
      }
    if (OTHER)
      UNROLL for (int nt = 0; nt < 2; nt++) {
        mma(d[DIAGONAL][nt], ah, bh[nt], bh[nt + 2]);
        if (LOW) {
          mma(x[DIAGONAL][nt], ah, bl[nt], bl[nt + 2]);
          mma(x[DIAGONAL][nt], al, bh[nt], bh[nt + 2]);
        }
      }
  }
  if (LOW)
    UNROLL for (int u = 0; u < 2; u++)
      UNROLL for (int nt = 0; nt < 2; nt++)
        UNROLL for (int e = 0; e < 4; e++) d[u][nt][e] += x[u][nt][e];
}
template <bool LOW>
DEVICE void gram64(uint32_t high, uint32_t low, int ld, int steps, int w, int lane, float (&d)[2][2][4]) {
  // units of warp w: 2w, 2w + 1 | 6 | 7 | 8 | - | 9
  if (w < 3) gram_units<LOW, true, true>(high, low, ld, steps, w, w + 1, lane, d);
  else if (w == 3) gram_units<LOW, true, false>(high, low, ld, steps, 3, 3, lane, d);
  else if (w != 6) {
    const int u = w == 7 ? 9 : w + 3;
    gram_units<LOW, false, true>(high, low, ld, steps, unit_row(u), unit_col(u), lane, d);
  }
}
// T (64 x 64, upper) = inverse of the upper triangular n, by 256 threads: the 8 x 8 blocks on the diagonal by substitution, then
// T01 = -T00 N01 T11 doubles the blocks. inv: 1 / n_ii
DEVICE void larft64(const float *n, const float *inv, float *t, float *y, int tid) {
  if (tid < 64) {
    const int b = tid & ~7, j = tid & 7;
    float o[8];
    UNROLL for (int i = 7; i >= 0; i--) {
      const float4 p = *(const float4 *)&n[(b + i) * LDM + b], q = *(const float4 *)&n[(b + i) * LDM + b + 4];
      const float s[8] = {p.x, p.y, p.z, p.w, q.x, q.y, q.z, q.w};
      float d = 0.f;
      UNROLL for (int k = 7; k > i; k--) d = fmaf(s[k], o[k], d);
      o[i] = inv[b + i] * (i == j ? 1.f : -d);
      t[(b + i) * LDM + b + j] = o[i];
    }
  }
  block_sync<256>();
  {
    const int p = tid >> 6, r = tid >> 3 & 7, c = tid & 7, b0 = 16 * p, b1 = b0 + 8;
    float s = 0.f;
    UNROLL for (int k = 0; k < 8; k++) s = fmaf(n[(b0 + r) * LDM + b1 + k], t[(b1 + k) * LDM + b1 + c], s);
    y[(b0 + r) * LDM + c] = s;
    block_sync<256>();
    s = 0.f;
    UNROLL for (int k = 0; k < 8; k++) s = fmaf(-t[(b0 + r) * LDM + b0 + k], y[(b0 + k) * LDM + c], s);
    t[(b0 + r) * LDM + b1 + c] = s;
    t[(b1 + r) * LDM + b0 + c] = 0.f;
  }
  block_sync<256>();
  // the blocks of 16 and 32 on tensor cores, two fp16 terms of either operand, a tile of 16 x 8 a warp
  const int lane = tid & 31, w = tid >> 5, g = lane >> 2, q = lane & 3;
  auto product = [&](auto steps, const float *left, const float *right, float (&d)[4]) {
    UNROLL for (int e = 0; e < 4; e++) d[e] = 0.f;
    UNROLL for (int ks = 0; ks < decltype(steps)::value; ks++) {
      uint32_t ah[4], al[4], bh[2], bl[2];
      UNROLL for (int v = 0; v < 4; v++) {
        const float2 x = *(const float2 *)&left[(g + 8 * (v & 1)) * LDM + ks * 16 + 2 * q + 8 * (v >> 1)];
        split(x.x, x.y, ah[v], al[v]);
      }
      UNROLL for (int v = 0; v < 2; v++) {
        const float *b = right + (ks * 16 + 2 * q + 8 * v) * LDM + g;
        split(b[0], b[LDM], bh[v], bl[v]);
      }
      mma(d, al, bh[0], bh[1]);
      mma(d, ah, bl[0], bl[1]);
      mma(d, ah, bh[0], bh[1]);
    }
  };
  auto put = [&](float *to, float sign, const float (&d)[4]) {
    *(float2 *)&to[g * LDM + 2 * q] = make_float2(sign * d[0], sign * d[1]);
    *(float2 *)&to[(g + 8) * LDM + 2 * q] = make_float2(sign * d[2], sign * d[3]);
  };
  float d[4], zero[4] = {0, 0, 0, 0};
  {
    const int b0 = 32 * (w >> 1 & 1), b1 = b0 + 16, c = (w & 1) * 8;
    if (w < 4) {
      product(Len<1>(), n + b0 * LDM + b1, t + b1 * LDM + b1 + c, d);
      put(y + b0 * LDM + c, 1.f, d);
    }
    block_sync<256>();
    if (w < 4) {
      product(Len<1>(), t + b0 * LDM + b0, y + b0 * LDM + c, d);
      put(t + b0 * LDM + b1 + c, -1.f, d);
      put(t + b1 * LDM + b0 + c, 1.f, zero);
    }
    block_sync<256>();
  }
  {
    const int r = (w >> 2) * 16, c = (w & 3) * 8;
    product(Len<2>(), n + r * LDM + 32, t + 32 * LDM + 32 + c, d);
    put(y + r * LDM + c, 1.f, d);
    block_sync<256>();
    product(Len<2>(), t + r * LDM, y + c, d);
    put(t + r * LDM + 32 + c, -1.f, d);
    put(t + (32 + r) * LDM + c, 1.f, zero);
    block_sync<256>();
  }
}
// ---------------------------------------------------------------- 4c. geqr2 column by column, in FP32: right for every panel
// LAPACK's own: x below the pivot alpha, beta = -sign(alpha) |(alpha, x)|, v = (1, x / (alpha - beta)), tau = (beta - alpha) / beta, and
// w_c = v'C, C -= tau v w' on the columns behind. One meeting of the CTAs a column: they send each other x'C and the pivot row. From P in
// two terms; leaves V^T as the common way does, a zero row where x = 0 (tau = 0), and writes the pivot rows of H, whose first is `out`.
template <int NW, int NTL, int C>
NOINLINE void by_columns(const uint32_t rank, const int row0, const int m, const uint32_t bars, float *out, const int n) {
  using P = PanelShape<NW, NTL, C>;
  constexpr int LD = P::LD, I = P::RP / 32, L = 64 / NW;
  constexpr float NOTHING = 1e-36f; // |x|^2, where the column's largest entry was 8 or more: zero
  extern __shared__ __align__(128) char sm[];
  const int tid = threadIdx.x, lane = tid & 31, w = tid >> 5;
  const bool alone = m <= P::RP; // are all rows CTA 0's?
  const int ctas = alone ? 1 : C;
  const int pivot0 = row0 - (int)rank * P::RP; // the first pivot row in this CTA's rows; all of them are CTA 0's
  float *column = (float *)(sm + P::X), *inbox = column + P::RP, *taken = (float *)(sm + P::THR);
  const float *unscale = (const float *)(sm + P::SC) + 64;
  float p[L][I]; // column w + NW l, row lane + 32 i
  UNROLL for (int l = 0; l < L; l++)
    UNROLL for (int i = 0; i < I; i++) {
      const int at = (w + NW * l) * LD + lane + 32 * i;
      p[l][i] = __half2float(((const __half *)(sm + P::PH))[at]) + __half2float(((const __half *)(sm + P::PL))[at]);
    }
  if ((int)rank < ctas)
    ROLL for (int j = 0; j < 64; j++) {
      const int pivot = pivot0 + j;
      float *in = inbox + (j & 1) * (C + 1) * 64, *ours = alone ? in : inbox + (2 * (C + 1) + 2 * (j & 1)) * 64, x[I];
      UNROLL for (int l = 0; l < L; l++)
        if (w + NW * l == j) // (an ordinary store would make p an array in memory)
          UNROLL for (int i = 0; i < I; i++) asm volatile("st.shared.f32 [%0],%1;" ::"r"(shared_address(column + lane + 32 * i)), "f"(p[l][i]) : "memory");
      block_sync<P::NT>();
      UNROLL for (int i = 0; i < I; i++) x[i] = lane + 32 * i > pivot ? column[lane + 32 * i] : 0.f;
      float d[L], top[L]; // x'C, the pivot row
      UNROLL for (int l = 0; l < L; l++) {
        d[l] = top[l] = 0.f;
        UNROLL for (int i = 0; i < I; i++) {
          d[l] = fmaf(x[i], p[l][i], d[l]);
          if (lane + 32 * i == pivot) top[l] = p[l][i];
        }
      }
      UNROLL for (int s = 16; s; s /= 2)
        UNROLL for (int l = 0; l < L; l++) d[l] += __shfl_xor_sync(~0u, d[l], s);
      if (lane == 0)
        UNROLL for (int l = 0; l < L; l++) ours[w + NW * l] = d[l];
      if (rank == 0 && lane == (pivot & 31))
        UNROLL for (int l = 0; l < L; l++) (alone ? in + C * 64 : ours + 64)[w + NW * l] = top[l];
      block_sync<P::NT>();
      if (!alone) { // (a meeting costs its messages: 16 bytes each)
        const uint32_t bar = bars + 8 * (j & 1);
        if (tid == 0) barrier_expect(bar, (C + 1) * 256);
        ROLL for (int f = tid; f < 16 * C * (rank ? 1 : 2); f += P::NT) {
          const int to = f % C, q = f / C; // number of 16 sums, 16 of the pivot row
          send(map_address<C>(shared_address(q < 16 ? in + rank * 64 + 4 * q : in + C * 64 + 4 * q - 64), to), *(const float4 *)(ours + 4 * q), map_address<C>(bar, to));
        }
        barrier_wait(bar, j >> 1 & 1);
      }
      auto sum = [&](int c) {
        float s = 0.f;
        UNROLL for (int u = 0; u < C; u++) s += u < ctas ? in[u * 64 + c] : 0.f;
        return s;
      };
      const float alpha = in[C * 64 + j], square = sum(j);
      const bool take = square > NOTHING;
      const float norm2 = fmaf(alpha, alpha, square), inv = reciprocal_sqrt(norm2), beta = -copysignf(norm2 * inv, alpha),
                  scale = take ? reciprocal(alpha - beta) : 0.f;
      const int mine = w + NW * (lane % L); // of column w + NW l in lane l: tau w
      const float tw = take && mine > j ? fmaf(fabsf(alpha), inv, 1.f) * fmaf(scale, sum(mine), in[C * 64 + mine]) : 0.f;
      UNROLL for (int i = 0; i < I; i++) x[i] *= scale;
      UNROLL for (int l = 0; l < L; l++) {
        const float t = __shfl_sync(~0u, tw, l);
        UNROLL for (int i = 0; i < I; i++) {
          p[l][i] = fmaf(-t, x[i], p[l][i]);
          if (lane + 32 * i == pivot) p[l][i] -= t;
        }
        UNROLL for (int i = 0; i < I; i++) { // the column itself
          const float y = lane + 32 * i > pivot ? x[i] : lane + 32 * i == pivot && take ? beta : p[l][i];
          p[l][i] = w + NW * l == j ? y : p[l][i];
        }
      }
      if (tid == 0) taken[j] = take; // v's pivot
    }
  block_sync<P::NT>();
  UNROLL for (int l = 0; l < L; l++)
    UNROLL for (int i = 0; i < I; i++) { // V^T: unit diagonal, zeros above; and the pivot rows of H
      const int c = w + NW * l, r = lane + 32 * i, row = r - pivot0;
      const float x = p[l][i], v = row > c ? x : row == c && rank == 0 ? taken[c] : 0.f, high = __half2float(__float2half_rn(v));
      ((__half *)(sm + P::VSM))[c * LD + r] = __float2half_rn(v);
      ((__half *)(sm + P::VLOW))[c * LD + r] = __float2half_rn(v - high);
      if (rank == 0 && row >= 0 && row < 64) out[(size_t)row * n + c] = row <= c ? x * unscale[c] : two_terms(x);
    }
}
template <int NW, int NTL, int C>
DEVICE void panel_step(const PanelArgs &p, const int k, const uint32_t rank, const size_t slot, int &phase, int &xphase,
                                           int &nphase, int &gphase, bool &loaded, bool &waiting, bool &here, bool &owed) {
  using P = PanelShape<NW, NTL, C>;
  constexpr int NT = P::NT, S = 2, RP = P::RP, LD = P::LD;
  extern __shared__ __align__(128) char sm[];
  float *sScale = (float *)(sm + P::SC);
  float *sUnscale = sScale + 64;
  const int tid = threadIdx.x, lane = tid & 31, w = __shfl_sync(~0u, tid >> 5, 0), g = lane >> 2, q = lane & 3;
  const size_t mat = p.mat0 + slot;
  const int n = p.n, c0 = 64 * k, row0 = k ? 64 : 0, rb = c0 - row0,
            m = n - rb; // rows rb.. of the matrix; the first pivot row is row0 below; rows above it become R in the larfb
  const float *src = (k > 1 ? p.h : p.a) + mat * n * n + (size_t)rb * n + c0;
  __half *ts = p.ts + (mat * (n / 64) + k) * TS;
  const uint32_t bar_in = shared_address(sScale + 480), bar_out = bar_in + 8, bar_next = bar_in + 32, bar_group = bar_in + 40;
  // V and T of the panel before: in shared memory (`here`; the rows have moved up by 64), or in memory. This cluster's own work: no need to
  // wait
  if (row0 && !here) {
    const __half *vprev = p.vt + (mat * n + rb) * (size_t)n + rb + rank * RP;
    ROLL for (int f = tid; f < 64 * (RP / 8); f += NT) {
      int r = f / (RP / 8), u = f % (RP / 8);
      cp16z(shared_address(sm + P::VSM) + (r * LD + u * 8) * 2, vprev + (size_t)r * n + u * 8, (int)rank * RP + u * 8 < m);
      cp16z(shared_address(sm + P::VLOW) + (r * LD + u * 8) * 2, vprev + p.low + (size_t)r * n + u * 8, (int)rank * RP + u * 8 < m);
    }
  }
  auto report = [&] { // the panel before is in memory for the workers; every CTA reports
    if (owed && tid == 224) add_release(p.done + mat, 1);
    owed = false;
  };
  if (!loaded) report();
  if (k > 1 && !loaded) {
    if (tid == 0) wait_for(p.applied + mat * (n / 64) + k, all_updates(k));
    block_sync<NT>();
  }
  auto row_of = [&](int nt, int e) { return (int)rank * RP + (nt * NW + w) * 8 + 2 * q + e; }; // row below rb
  float acc[2 * S][NTL][4];
  const uint32_t *maxima = (uint32_t *)sScale;
  auto load_c = [&](const float *from, int rows, int column) { // RP rows of 64 columns, zeros from `rows` on; their maxima
    if (tid < 64) cp4(shared_address(maxima + tid), p.colmax + mat * n + column + tid);
    ROLL for (int f = tid; f < RP * 16; f += NT) {
      const int r = f >> 4, u = f & 15, row = (int)rank * RP + r;
      cp16z(shared_address(sm + P::CIN) + (r * P::LDC + u * 4) * 4, from + (size_t)row * n + u * 4, row < rows);
    }
  };
  if (!loaded) load_c(src, m, c0);
  cp_commit();
  cp_wait<0>();
  block_sync<NT>();
  UNROLL for (int mt = 0; mt < 4; mt++)
    UNROLL for (int h2 = 0; h2 < 2; h2++) {
      const int col = mt * 16 + g + 8 * h2;
      const float sc = column_scale(maxima[col]);
      UNROLL for (int nt = 0; nt < NTL; nt++)
        UNROLL for (int e = 0; e < 2; e++)
          acc[mt][nt][2 * h2 + e] = ((float *)(sm + P::CIN))[((nt * NW + w) * 8 + 2 * q + e) * P::LDC + col] * sc;
    }
  if (tid < 64) sUnscale[tid] = column_unscale(maxima[tid]);
  report(); // (the stores that it waits for have had time)
  block_sync<NT>();

  // ---- larfb: C -= V T' V'C with the 64 reflectors of the previous panel
  if (row0) {
    const uint32_t aC = shared_address(sm + P::C16), aIn = shared_address(sm + P::IN), aWall = shared_address(sm + P::WALL);
    __half *hC = (__half *)(sm + P::C16);
    __half *wown = (__half *)(sm + P::WOWN);
    __half *wout = (__half *)(sm + P::WOUT);
    uint32_t tf[2][8];
    if (w < 8)
      UNROLL for (int low = 0; low < 2; low++)
        UNROLL for (int ks = 0; ks < 4; ks++)
          UNROLL for (int e = 0; e < 2; e++)
            if (!here)
              tf[low][2 * ks + e] = __ldcg((const unsigned int *)(ts - TS + low * TLOW + (8 * w + g) * 64 + ks * 16 + 2 * q +
                                                                  8 * e)); // B fragments of T: columns 8w..
    if (here)
      UNROLL for (int ks = 0; ks < 4; ks++)
        UNROLL for (int e = 0; e < 2; e++) {
          const float *t = (const float *)(sm + P::A) + (ks * 16 + 2 * q + 8 * e) * LDM + 8 * w + g;
          split(t[0], t[LDM], tf[0][2 * ks + e], tf[1][2 * ks + e]);
        }
    const int shift = here && k > 1 ? 64 : 0;
    const uint32_t aSrc = shared_address(sm + P::VSM) + shift * 2, aNext = shared_address(sm + P::NEXT), // and from these to their second terms:
        dV = (uint32_t)(P::VLOW - P::VSM), dNext = 64 * P::LDW, dWall = 64 * P::LDW;
    UNROLL for (int mt = 0; mt < 4; mt++)
      UNROLL for (int nt = 0; nt < NTL; nt++)
        UNROLL for (int e = 0; e < 2; e++)
        {
          uint32_t high, low;
          split(acc[mt][nt][2 * e], acc[mt][nt][2 * e + 1], high, low);
          __half *to = hC + (mt * 16 + g + 8 * e) * LD + (nt * NW + w) * 8 + 2 * q;
          *(uint32_t *)to = high;
          *(uint32_t *)(to + P::TILE / 2) = low;
        }
    if (tid == 0) {
      barrier_expect(bar_in, 16384);
      barrier_expect(bar_out, TERMS * 8192);
    }
    block_sync<NT>();
    // partial W over this CTA's rows: warp = 16 reflectors x 8 PN columns; owner r of the exchange gets CW = 64/C columns,
    // a lane's float4 is (reflector, 2 columns), (reflector + 8, same columns)
    constexpr int CW = 64 / C, QN = 32 / C, F = 1024 / C;
    constexpr int PN = 32 / NW;
    const int rt = w & 3, n0 = (w >> 2) * PN; // tiles of 8 columns a warp
    {
      float pa[PN][4];
      UNROLL for (int i = 0; i < PN; i++)
        UNROLL for (int e = 0; e < 4; e++) pa[i][e] = 0.f;
#pragma unroll 4
      for (int ks = 0; ks < RP / 16; ks++) {
        uint32_t a[4], al[4];
        const bool mine = ks * 16 + shift < RP;
        const uint32_t at = mine ? aSrc + ((rt * 16 + (lane & 15)) * LD + ks * 16 + (lane >> 4) * 8) * 2
                                 : aNext + ((rt * 16 + (lane & 15)) * 72 + ks * 16 + shift - RP + (lane >> 4) * 8) * 2;
        load_matrix(a, at);
        load_matrix(al, at + (mine ? dV : dNext));
        UNROLL for (int nt = 0; nt < PN; nt += 2) {
          uint32_t b[4], bl[4];
          const uint32_t bt = aC + (((n0 + nt) * 8 + (lane & 7) + ((lane >> 4) << 3)) * LD + ks * 16 + ((lane >> 3) & 1) * 8) * 2;
          load_matrix(b, bt);
          load_matrix(bl, bt + P::TILE);
          mma(pa[nt], al, b[0], b[1]);
          mma(pa[nt + 1], al, b[2], b[3]);
          mma(pa[nt], a, bl[0], bl[1]);
          mma(pa[nt + 1], a, bl[2], bl[3]);
          mma(pa[nt], a, b[0], b[1]);
          mma(pa[nt + 1], a, b[2], b[3]);
        }
      }
      UNROLL for (int nt = 0; nt < PN; nt++) {
        const int own = (n0 + nt) * (4 / QN) + q / QN, at = rt * 8 * QN + g * QN + q % QN;
        float4 v = make_float4(pa[nt][0], pa[nt][1], pa[nt][2], pa[nt][3]);
        send(map_address<C>(aIn + (rank * F + at) * 16, own), v, map_address<C>(bar_in, own));
      }
    }
    // sums of this CTA's columns, W' = T'W for them (stored negated), to everybody
    barrier_wait(bar_in, phase);
    if (int e = tid; e < F) {
      const int k = e / (8 * QN) * 16 + e / QN % 8, c = e % QN * 2;
      const float4 s = sum_warps<C>((const float *)(sm + P::IN) + e * 4, F * 4);
      const float x[4] = {s.x, s.y, s.z, s.w};
      UNROLL for (int i = 0; i < 4; i++) {
        __half *to = wown + (c + (i & 1)) * 72 + k + 8 * (i >> 1);
        to[0] = __float2half_rn(x[i]);
        to[8 * 72] = __float2half_rn(x[i] - __half2float(to[0]));
      }
    }
    block_sync<NT>();
    if (w < 8) {
      float d[4] = {0, 0, 0, 0};
      UNROLL for (int low = 1; low >= 0; low--)
        UNROLL for (int ks = 0; ks < 4; ks++) { // 8 rows are enough, as CW <= 8; the other 8: second term of W
          const __half *x = wown + g * 72 + ks * 16 + 2 * q;
          mma(d, *(uint32_t *)x, *(uint32_t *)(x + 8 * 72), *(uint32_t *)(x + 8), *(uint32_t *)(x + 8 * 72 + 8),
              tf[low][2 * ks], tf[low][2 * ks + 1]);
        }
      uint32_t high, lower;
      split(-(d[0] + d[2]), -(d[1] + d[3]), high, lower);
      *(uint32_t *)&wout[g * 72 + 8 * w + 2 * q] = high;
      *(uint32_t *)&wout[(8 + g) * 72 + 8 * w + 2 * q] = lower;
    }
    block_sync<NT>();
    ROLL for (int i = tid; i < TERMS * CW * 8 * C; i += NT) {
      const int to = i / (CW * 8) % C, low = i / (CW * 8 * C), c = i % (CW * 8) / 8, u = i % 8;
      send(map_address<C>(aWall + low * dWall + (rank * CW + c) * P::LDW + u * 16, to),
               *(float4 *)((char *)wout + (low * 8 + c) * P::LDW + u * 16), map_address<C>(bar_out, to));
    }
    barrier_wait(bar_out, phase);
    phase ^= 1;
    UNROLL for (int ks = 0; ks < 4; ks++) { // C^T += (-W')^T V^T
      uint32_t b[NTL / 2][4], bl[NTL / 2][4];
      UNROLL for (int np = 0; np < NTL / 2; np++) {
        const bool mine = (2 * np + (lane >> 4)) * 64 + shift < RP;
        const uint32_t at = mine ? aSrc + ((ks * 16 + (lane & 15)) * LD + ((2 * np + (lane >> 4)) * NW + w) * 8) * 2
                                 : aNext + ((ks * 16 + (lane & 15)) * 72 + w * 8) * 2;
        load_matrix_transposed(b[np], at);
        load_matrix_transposed(bl[np], at + (mine ? dV : dNext));
      }
      UNROLL for (int mt = 0; mt < 4; mt++) {
        uint32_t a[4], al[4];
        const uint32_t at = aWall + (mt * 16 + (lane & 15)) * P::LDW + ks * 32 + (lane >> 4) * 16;
        load_matrix(a, at);
        {
          load_matrix(al, at + dWall);
          UNROLL for (int np = 0; np < NTL / 2; np++)
            UNROLL for (int h = 0; h < 2; h++) {
              mma(acc[mt][2 * np + h], al, b[np][2 * h], b[np][2 * h + 1]);
              mma(acc[mt][2 * np + h], a, bl[np][2 * h], bl[np][2 * h + 1]);
            }
        }
        UNROLL for (int np = 0; np < NTL / 2; np++) {
          mma(acc[mt][2 * np], a, b[np][0], b[np][1]);
          mma(acc[mt][2 * np + 1], a, b[np][2], b[np][3]);
        }
      }
    }
    block_sync<NT>();
  }

  // ---- rows above the pivot rows are final (R of the panel before); the panel in two fp16 terms
  const int above = rank == 0 ? row0 / 64 : 0; // tiles (of 64 rows) above the pivot rows
  const bool pivots_here = rank == 0;
  UNROLL for (int nt = 0; nt < NTL; nt++)
    UNROLL for (int mt = 0; mt < 4; mt++)
      UNROLL for (int h = 0; h < 2; h++) {
        const int col = mt * 16 + g + 8 * h, at = (nt * NW + w) * 8 + 2 * q;
        uint32_t high, low;
        split(acc[mt][nt][2 * h], acc[mt][nt][2 * h + 1], high, low);
        if (nt == 0 && above) {
          float *out = (float *)(sm + P::X) + at * LDM + col; // on their way out
          const float us = sUnscale[col];
          out[0] = acc[mt][0][2 * h] * us;
          out[LDM] = acc[mt][0][2 * h + 1] * us;
          high = low = 0u;
        }
        *(uint32_t *)(sm + P::PH + (col * LD + at) * 2) = high;
        *(uint32_t *)(sm + P::PL + (col * LD + at) * 2) = low;
      }
  const uint32_t aVsm = shared_address(sm + P::VSM), aVlow = shared_address(sm + P::VLOW);
  int *sFlag = (int *)(sScale + 448), *sReady = sFlag + 1;
  const bool same_shape = k + 1 < n / 64 && !(NTL == 4 && n - 64 * k <= 128 * C); // the next panel has this many rows a CTA
  // 8 rows (number i of this CTA) of H below the pivot rows of panel kk, from V^T
  auto write_rows = [&](int kk, int i) {
    const int cc = 64 * kk, row = (kk ? cc - 64 : 0) + (int)rank * RP + 8 * i;
    if (row < cc + 64 || row >= n) return;
    // a pair of 8 x 8 pieces gives a lane 4 neighbouring columns: columns 4q, 4q + 1 come with the first where q < 2, else with the second
    // (each piece has 8 different banks)
    float *out = p.h + (mat * n + row + g) * n + cc + 4 * q;
    const int from = (((lane >> 4) * 16 + (lane >> 1 & 3) * 4 + ((lane >> 3 & 1) ^ (lane >> 2 & 1)) * 2 + (lane & 1)) * LD + 8 * i) * 2;
    UNROLL for (int half = 0; half < 2; half++) {
      uint32_t v[4], vl[4] = {0u, 0u, 0u, 0u};
      load_matrix_transposed(v, aVsm + half * 64 * LD + from);
      load_matrix_transposed(vl, aVlow + half * 64 * LD + from);
      UNROLL for (int u = 0; u < 4; u += 2) {
        const float2 x = sum2(v[u], vl[u]), y = sum2(v[u + 1], vl[u + 1]);
        *(float4 *)(out + half * 32 + 8 * u) = q < 2 ? make_float4(x.x, x.y, y.x, y.y) : make_float4(y.x, y.y, x.x, x.y);
      }
    }
  };
  constexpr int F = 640 / C, FT = 1024 / C; // float4 of an owner: sums, pivot rows
  const uint32_t xbar_in = shared_address(sm + P::BARS + 16), xbar_out = xbar_in + 8, aXin = shared_address(sm + P::XIN),
                 aXtop = shared_address(sm + P::XTOP), aA = shared_address(sm + P::A);
  float4 *total = (float4 *)(sm + P::XSUM);
  float *sNorm = sScale + 128, *sTau = sScale + 256, *sMu = sScale + 384;
  float *sThr = (float *)(sm + P::THR), *sG = (float *)(sm + P::G), *sA = (float *)(sm + P::A), *sX = (float *)(sm + P::X);
  const Block64 z = {sG, sA, sX, sX + BLOCK, sX + 2 * BLOCK, sX + 3 * BLOCK};
  // Sums over the CTAs: every CTA sends each owner its part, owners send sums (and the pivot rows they were given) to all.
  // Number f of 640: four columns of a row of the blocks of gram64; a lane holds two of them.
  auto send_unit = [&](int u, const float (&d)[2][4]) {
    UNROLL for (int nt = 0; nt < 2; nt++)
      UNROLL for (int h = 0; h < 2; h++) {
        const int f = u * 64 + (g + 8 * h) * 4 + nt * 2 + (q >> 1), own = f / F;
        st_async2(map_address<C>(aXin + (rank * F + f % F) * 16 + (q & 1) * 8, own), d[nt][2 * h], d[nt][2 * h + 1], map_address<C>(xbar_in, own));
      }
  };
  auto send_units = [&](const float (&d)[2][2][4]) {
    if (w != 6) send_unit(w < 3 ? 2 * w : w == 7 ? 9 : w + 3, d[0]);
    if (w < 3) send_unit(2 * w + 1, d[1]);
  };
  auto sum_and_spread = [&](uint32_t to_matrix, auto tops) {
    constexpr int ALL = F + (decltype(tops)::value ? FT : 0);
    barrier_wait(xbar_in, xphase);
    if (tid < 2 * F) {
      const float2 *in = (const float2 *)(sm + P::XIN) + tid;
      float2 x[C], s = make_float2(0, 0);
      UNROLL for (int u = 0; u < C; u++) x[u] = in[u * 2 * F];
      UNROLL for (int u = 0; u < C; u++) {
        s.x += x[u].x;
        s.y += x[u].y;
      }
      ((float2 *)total)[tid] = s;
    }
    block_sync<NT>();
#pragma unroll 2
    for (int i = tid; i < ALL * C; i += NT) {
      const int to = i / ALL, s = i % ALL;
      const float4 v = s < F ? total[s] : ((const float4 *)(sm + P::XTOP))[s - F];
      const int f = (int)rank * F + s, u = f >> 6, ft = (int)rank * FT + s - F;
      const uint32_t at = s < F ? to_matrix + ((unit_row(u) * 16 + (f >> 2 & 15)) * LDM + unit_col(u) * 16 + (f & 3) * 4) * 4
                                : aA + ((ft >> 4) * LDM + (ft & 15) * 4) * 4;
      send(map_address<C>(at, to), v, map_address<C>(xbar_out, to));
    }
    barrier_wait(xbar_out, xphase);
    xphase ^= 1;
  };
  if (tid == 0) {
    barrier_expect(xbar_in, 10240 + FT * 16);
    barrier_expect(xbar_out, 10240 + 16384);
    *sFlag = 0;
  }
  if (pivots_here) // the pivot rows, where every CTA will have them
    UNROLL for (int mt = 0; mt < 4; mt++)
      UNROLL for (int e = 0; e < 4; e++)
        sA[(w * 8 + 2 * q + (e & 1)) * LDM + mt * 16 + g + 8 * (e >> 1)] = above ? acc[mt][1][e] : acc[mt][0][e];
  block_sync<NT>();
  // ---- (1) Gram
  if (pivots_here && w >= 3) // (warps 0, 1, 2 have most of the Gram)
    ROLL for (int f = tid - 96; f < 1024; f += NT - 96)
      send(map_address<C>(aXtop + f % FT * 16, f / FT), *(const float4 *)&sA[(f >> 4) * LDM + (f & 15) * 4], map_address<C>(xbar_in, f / FT));
  {
    float d[2][2][4];
    gram64<true>(shared_address(sm + P::PH), shared_address(sm + P::PL), LD, RP / 16, w, lane, d);
    send_units(d);
  }
  if (above && w >= 3) // the rows above leave, while the sums travel
    ROLL for (int i = tid - 96; i < 64 * 16; i += NT - 96) {
      const int r = i >> 4, c = (i & 15) * 4;
      *(float4 *)(p.h + (mat * n + rb + r) * n + c0 + c) = *(const float4 *)&sX[r * LDM + c];
    }
  sum_and_spread(shared_address(sm + P::G), std::true_type());
  if (tid < 64) {
    const float x = sG[tid * LDM + tid];
    sNorm[tid] = x * reciprocal_sqrt(x);
    sThr[tid] = PIVOT_MIN64 * x;
    if (!(x > NORM_MIN64)) *sFlag = 1;
  }
  // ---- (2) recurrence, repeated in every CTA from the same numbers; H of the panel before leaves beside it
  {
    float tg[4][4], ta[4][4];
    UNROLL for (int i = 0; i < 4; i++)
      UNROLL for (int h = 0; h < 2; h++) {
        const int at = (16 * i + 8 * h + g) * LDM + 8 * w + 2 * q;
        *(float2 *)&tg[i][2 * h] = *(const float2 *)&sG[at];
        *(float2 *)&ta[i][2 * h] = *(const float2 *)&sA[at];
      }
    publish_block(z, 0, w, lane, tg, ta);
    block_sync<NT>();
    ROLL for (int b = 0; b < 8; b++) {
      if (w < 2) solve_block<false>(z, b, tid);
      else if (w < 4) solve_block<true>(z, b, tid - 64);
      else {
        const int i = b * 4 + w - 4;
        if (waiting && i < RP / 8) write_rows(k - 1, i);
      }
      block_sync<NT>();
      if (b == 7) break;
      update_block(z, b, w, lane, tg, ta);
      publish_block(z, b + 1, w, lane, tg, ta);
      block_sync<NT>();
    }
  }
  waiting = false;
  auto ready = [&] { return k == 0 || load_acquire(p.applied + mat * (n / 64) + k + 1) >= all_updates(k + 1); };
  if (tid == 32) *sReady = same_shape && ready();
  { // rows of X in two fp16 terms, each by a power of two of its own; the growth of rounding
    const int j = tid >> 2, c = (tid & 3) * 2;
    float x[8][2], most = 0.f, grow = 0.f;
    UNROLL for (int i = 0; i < 8; i++)
      UNROLL for (int e = 0; e < 2; e++) {
        const int col = c + 8 * i + e;
        x[i][e] = col <= j ? fabsf(entry(z.lx, j, col)) : 0.f;
        grow = fmaf(x[i][e], sNorm[col], grow);
        most = fmaxf(most, x[i][e]);
        x[i][e] = col <= j ? entry(z.lx, j, col) : 0.f;
      }
    UNROLL for (int s = 1; s < 4; s *= 2) {
      most = fmaxf(most, __shfl_xor_sync(~0u, most, s));
      grow += __shfl_xor_sync(~0u, grow, s);
    }
    const float pivot = entry_r(z.r, j, j);
    if (!(grow <= GROWTH_MAX) || !(pivot * pivot > sThr[j])) *sFlag = 1;
    const float sc = column_scale(__float_as_uint(most));
    if ((tid & 3) == 0) sMu[j] = column_unscale(__float_as_uint(most));
    UNROLL for (int i = 0; i < 8; i++) {
      const int at = (j * 72 + c + 8 * i) * 2;
      split(x[i][0] * sc, x[i][1] * sc, *(uint32_t *)(sm + P::MH + at), *(uint32_t *)(sm + P::ML + at));
    }
  }
  block_sync<NT>();
  const bool failed = *sFlag; // the same in every CTA
  loaded = *sReady;
  if (tid == 0) {
    barrier_expect(xbar_in, 10240);
    barrier_expect(xbar_out, 10240);
  }
  if (failed) {
    if (m > RP) group_sync<C>(bar_group, gphase); // its inbox lies where other things were
    by_columns<NW, NTL, C>(rank, row0, m, bar_next + 16, p.h + (mat * n + c0) * (size_t)n + c0, n);
  } else {
    // ---- (3) V = P M, rounded to fp16: the reflectors are exact in fp16 from here on, tau = 2/v'v follows the rounded v
    {
      float d[4][NTL][4];
      UNROLL for (int jt = 0; jt < 4; jt++)
        UNROLL for (int nt = 0; nt < NTL; nt++)
          UNROLL for (int e = 0; e < 4; e++) d[jt][nt][e] = 0.f;
      const uint32_t aP = shared_address(sm + P::PH), aM = shared_address(sm + P::MH);
      ROLL for (int kt = 0; kt < 4; kt++) {
        uint32_t bh[NTL / 2][4], bl[NTL / 2][4];
        UNROLL for (int np = 0; np < NTL / 2; np++) {
          const uint32_t at = ((kt * 16 + (lane & 15)) * LD + ((2 * np + (lane >> 4)) * NW + w) * 8) * 2;
          load_matrix_transposed(bh[np], aP + at);
          load_matrix_transposed(bl[np], aP + (P::PL - P::PH) + at);
        }
        UNROLL for (int jt = 0; jt < 4; jt++) {
          if (jt < kt) continue; // M is triangular
          uint32_t mh[4], ml[4];
          const uint32_t at = ((jt * 16 + (lane & 15)) * 72 + kt * 16 + (lane >> 4) * 8) * 2;
          load_matrix(mh, aM + at);
          load_matrix(ml, aM + (P::ML - P::MH) + at);
          UNROLL for (int np = 0; np < NTL / 2; np++)
            UNROLL for (int h = 0; h < 2; h++) mma(d[jt][2 * np + h], ml, bh[np][2 * h], bh[np][2 * h + 1]);
          UNROLL for (int np = 0; np < NTL / 2; np++)
            UNROLL for (int h = 0; h < 2; h++) mma(d[jt][2 * np + h], mh, bl[np][2 * h], bl[np][2 * h + 1]);
          UNROLL for (int np = 0; np < NTL / 2; np++)
            UNROLL for (int h = 0; h < 2; h++) mma(d[jt][2 * np + h], mh, bh[np][2 * h], bh[np][2 * h + 1]);
        }
      }
      block_sync<NT>(); // everybody has read M
      UNROLL for (int jt = 0; jt < 4; jt++)
        UNROLL for (int h = 0; h < 2; h++) {
          const int j = jt * 16 + g + 8 * h;
          const float mu = sMu[j];
          UNROLL for (int nt = 0; nt < NTL; nt++) {
            if (pivots_here && nt == above) continue;
            const int at = (j * LD + (nt * NW + w) * 8 + 2 * q) * 2;
            uint32_t high, low;
            split(d[jt][nt][2 * h] * mu, d[jt][nt][2 * h + 1] * mu, high, low);
            *(uint32_t *)(sm + P::VSM + at) = high;
            *(uint32_t *)(sm + P::VLOW + at) = low;
          }
        }
    }
    if (pivots_here) // the pivot rows: unit lower triangular, from the recurrence
      UNROLL for (int t = 0; t < 64 / NW; t++) {
        const int f = t * NW + w, j = (f & 15) * 4 + (lane >> 3), i = (f >> 4) * 16 + (lane & 7) * 2;
        const float x = lower(z, i, j), y = lower(z, i + 1, j);
        const int at = (j * LD + above * 64 + i) * 2;
        uint32_t high, low;
        split(i > j ? x : i == j ? 1.f : 0.f, i + 1 > j ? y : i + 1 == j ? 1.f : 0.f, high, low);
        *(uint32_t *)(sm + P::VSM + at) = high;
        *(uint32_t *)(sm + P::VLOW + at) = low;
      }
  }
  fence_async(); // V, for the copies
  block_sync<NT>();
  auto load_next = [&] { // the updates of the next panel are ready: its columns come in while this one leaves
    load_c((k ? p.h : p.a) + mat * n * n + (size_t)c0 * n + c0 + 64, n - c0, c0 + 64);
    cp_commit();
  };
  if (loaded) load_next();
  if (lane < 8) { // V^T with the rows above the panel: a pair of panels is applied as one block of 128
    const int r = w * 8 + lane, rows = min(RP, m - (int)rank * RP);
    __half *out = p.vt + (mat * n + c0 + r) * (size_t)n + rb + rank * RP;
    if (rows > 0) bulk_store_part(out, aVsm + r * LD * 2, rows * 2);
    if (rows > 0) bulk_store_part(out + p.low, aVlow + r * LD * 2, rows * 2);
    bulk_store_commit();
  }
  // the CTA above needs 64 rows of V for the next panel
  if (tid == 0 && rank < C - 1) barrier_expect(bar_next, TERMS * 8192);
  ROLL for (int f = tid; f < TERMS * 512; f += NT) {
    const int r = f >> 3 & 63, u = f & 7, to = P::NEXT + (f >> 9) * 64 * P::LDW + (r * 72 + u * 8) * 2;
    if (rank)
      send(map_address<C>(shared_address(sm + to), rank - 1), *(const float4 *)(sm + (f >> 9 ? P::VLOW : P::VSM) + (r * LD + u * 8) * 2),
               map_address<C>(bar_next, rank - 1));
    if (rank == C - 1) *(float4 *)(sm + to) = make_float4(0, 0, 0, 0);
  }
  // ---- (4) V'V, T
  if (tid == 192 && !loaded && same_shape) *sReady = ready(); // asked once more (by the warp that has no part of V'V)
  {
    float d[2][2][4];
    gram64<TWO>(aVsm, aVlow, LD, RP / 16, w, lane, d);
    send_units(d);
  }
  if (!failed && 7 - w < 32 / C) { // this CTA's share of the pivot rows of H
      const int f = rank * (32 / C) + 7 - w, i4 = f >> 1, half = f & 1; // rows 4 i4..
      float *out = p.h + (mat * n + c0) * (size_t)n + c0;
      if (int j = half * 32 + lane; i4 <= j >> 2) { // R, and L in the 4 x 4 blocks on the diagonal: by columns
        float x[4];
        read4(x, z.r + block_r(i4 >> 1) + j * LB + (i4 & 1) * 4);
        UNROLL for (int e = 0; e < 4; e++) out[(size_t)(4 * i4 + e) * n + j] = 4 * i4 + e > j ? two_terms(x[e]) : x[e] * sUnscale[j];
      }
      if (int i = 4 * i4 + (lane >> 3), j4 = half * 8 + (lane & 7); j4 < i4) { // L: by rows
        float x[4];
        read4(x, z.lx + (j4 >> 1) * BLOCK + i * LB + (j4 & 1) * 4);
        UNROLL for (int e = 0; e < 4; e++) x[e] = two_terms(x[e]);
        write4(out + (size_t)i * n + 4 * j4, x);
      }
    }
  sum_and_spread(shared_address(sm + P::X), std::false_type());
  if (!loaded && *sReady) {
    loaded = true;
    load_next();
  }
  if (tid < 64) sTau[tid] = sX[tid * (LDM + 1)] > 0.5f ? 2.f * reciprocal(sX[tid * (LDM + 1)]) : 0.f; // v'v >= 1, or 0: no part
  block_sync<NT>();
  larft64(sX, sTau, sA, sG, tid);
  if (rank == 0 && tid < 64) p.tau[mat * n + c0 + tid] = sTau[tid];
  ROLL for (int e = tid; e < 2048 / C; e += NT) { // this CTA's columns of T
    const int j = (int)rank * (64 / C) + (e >> 5), i = (e & 31) * 2;
    uint32_t high, low;
    split(sA[i * LDM + j], sA[(i + 1) * LDM + j], high, low);
    *(uint32_t *)(ts + j * 64 + i) = high;
    *(uint32_t *)(ts + TLOW + j * 64 + i) = low;
  }
  if (rank < C - 1) barrier_wait(bar_next, nphase);
  nphase ^= 1;
  here = same_shape;
  waiting = same_shape; // nobody but the caller reads H: it leaves during the next panel's recurrence
  if (!waiting)
    ROLL for (int i = w; i < RP / 8; i += NW) write_rows(k, i);
}
// All panels of one matrix a cluster, beside the workers of section 5. 8 warps x 32 rows a CTA while the matrix is taller than 128 C rows,
// then 8 x 16.
template <int C> __global__ void __launch_bounds__(256, 1) geqr2(const __grid_constant__ PanelArgs p) {
  grid_wait();
  grid_release_next(); // everything before has ended; the workers may start beside this kernel
  using P = PanelShape<8, 4, C>;
  extern __shared__ __align__(128) char sm[];
  const uint32_t rank = blockIdx.x % C;
  const size_t slot = blockIdx.x / C;
  if (threadIdx.x == 0) { // barriers: larfb in, out; sums of 4b in, out; rows of V from below; all meet; 4c in, in
    for (int i = 0; i < 8; i++) barrier_init(shared_address(sm + P::BARS) + 8 * i, i == 5 ? C : 1);
    barrier_init_fence();
  }
  cluster_sync();
  if (slot >= p.matrices) return; // an odd number of matrices
  const uint32_t bar_group = shared_address(sm + P::BARS + 40);
  int phase = 0, xphase = 0, nphase = 0, gphase = 0;
  bool loaded = false;       // are the columns of the next panel in shared memory (or on their way)?
  bool here = false;         // are V and T of the panel before in shared memory?
  bool waiting = false;      // is H of the panel before still in shared memory (as V^T)?
  bool owed = false;         // has the panel before not been reported yet?
  auto finish = [&] {        // the panel is in memory for its cluster and for the workers
    // a later panel of this cluster reads V and T from memory: all stores count
    if (!here) __threadfence();
    if ((threadIdx.x & 31) < 8) bulk_store_wait(); // V^T
    block_sync<256>(); // (the fence of one thread covers what the others had stored before this barrier)
    owed = true;
    // Where V and T stay here and the inbox of the next W lies apart (one term), a CTA may run ahead into the next panel: its first sends go to that
    // inbox, which nobody has read since the sum of V'V; all others come after sums that need every CTA.
    group_sync<C>(bar_group, gphase);
  };
  int k = 0;
  ROLL for (; k < p.n / 64 && p.n - 64 * (k - (k > 0)) > 128 * C; k++) {
    panel_step<8, 4, C>(p, k, rank, slot, phase, xphase, nphase, gphase, loaded, waiting, here, owed);
    finish();
  }
  ROLL for (; k < p.n / 64; k++) {
    panel_step<8, 2, C>(p, k, rank, slot, phase, xphase, nphase, gphase, loaded, waiting, here, owed);
    finish();
  }
  group_sync<C>(bar_group, gphase); // nobody ends while others may still write to it
}
// ---------------------------------------------------------------- 5. larfb: C <- (I - V T' V') C on a strip of 64 columns
// A worker (one CTA on an SM) owns 64 columns of one matrix, or some of their rows, and applies K = 64 or 128 reflectors (one panel or two):
// W = V'C, W' = T'W, C -= V W'. S = V0'V1, which couples the two panels of a pair, comes from a task of its own (`coupling`). Pass 1 goes
// down the rows, pass 2 back up again (the last rows read are still in L2). C stays fp32 in memory, unscaled; it enters the products as
// fp16 terms of the column times its power of two. Columns that are due soon are split by rows between workers, which add up their W.
struct LarfbArgs {
  const float *a;
  float *h;
  const __half *vt;
  size_t low; // from V^T to its second term
  __half *ts; // and, behind the n/64 a matrix, S^T of each pair (64 x 64), both as two fp16 terms
  uint32_t *colmax;
  const int4 *tasks;
  int *counter; // next task
  int *done, *applied, *coupled, *joined;
  float4 *partial; // W of the parts of split strips
  int n, batch, mat0, task_end, ctas; // CTAs of a cluster: each reports a panel
};
DEVICE __half *pair_s(const LarfbArgs &p, size_t mat, int pair) {
  return p.ts + ((size_t)p.batch * (p.n / 64) + mat * (p.n / 128) + pair) * TS;
}
constexpr int MOST_PARTS = 8;
// number of a strip that may be split: its matrix and columns, and which reflectors it applies (even first panel: a pair, or alone)
DEVICE int gang_of(const LarfbArgs &p, size_t mat, int r0, int cbase, bool single) {
  return ((int)mat * (p.n / 64) + cbase / 64) * (p.n / 64) + r0 / 64 + single;
}
// S^T = V1'V0 of the pair of panels from column r0 on, for all the strips that apply the pair
DEVICE void coupling(const LarfbArgs &p, const size_t mat, int r0) {
  extern __shared__ __align__(128) char sm[];
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, g = lane >> 2, q = lane & 3, wm = warp & 3, wn = warp >> 2;
  const int n = p.n, chunks = (n - r0) / 64;
  const __half *vt = p.vt + (mat * n + r0) * (size_t)n + r0;
  const uint32_t sV = shared_address(sm);
  auto load_v = [&](int t) {
    if (t < chunks)
      UNROLL for (int i = 0; i < 4; i++) {
        int f = tid + 256 * i, r = f >> 3, u = f & 7;
        cp16(sV + t % 4 * 16384 + r * 128 + ((u ^ (r & 7)) << 4), vt + (size_t)r * n + t * 64 + u * 8);
        cp16(sV + 65536 + t % 4 * 16384 + r * 128 + ((u ^ (r & 7)) << 4), vt + p.low + (size_t)r * n + t * 64 + u * 8);
      }
    cp_commit();
  };
  float st[4][4]; // warp = 16 x 32 of S^T
  UNROLL for (int i = 0; i < 4; i++)
    UNROLL for (int e = 0; e < 4; e++) st[i][e] = 0.f;
  UNROLL for (int t = 0; t < 3; t++) load_v(t);
  ROLL for (int t = 0; t < chunks; t++) {
    cp_wait<2>();
    block_sync<256>();
    load_v(t + 3);
    const uint32_t v = sV + t % 4 * 16384;
    UNROLL for (int ks = 0; ks < 4; ks++) {
      uint32_t a[4], al[4];
      {
        int r = 64 + wm * 16 + (lane & 15), u = ks * 2 + (lane >> 4);
        load_matrix(a, v + r * 128 + ((u ^ (r & 7)) << 4));
        load_matrix(al, v + 65536 + r * 128 + ((u ^ (r & 7)) << 4));
      }
      UNROLL for (int nt = 0; nt < 4; nt += 2) {
        uint32_t b[4], bl[4];
        int r = wn * 32 + nt * 8 + (lane & 7) + ((lane >> 4) << 3), u = ks * 2 + ((lane >> 3) & 1);
        load_matrix(b, v + r * 128 + ((u ^ (r & 7)) << 4));
        load_matrix(bl, v + 65536 + r * 128 + ((u ^ (r & 7)) << 4));
        mma(st[nt], al, b[0], b[1]);
        mma(st[nt + 1], al, b[2], b[3]);
        mma(st[nt], a, bl[0], bl[1]);
        mma(st[nt + 1], a, bl[2], bl[3]);
        mma(st[nt], a, b[0], b[1]);
        mma(st[nt + 1], a, b[2], b[3]);
      }
    }
  }
  cp_wait<0>();
  UNROLL for (int nt = 0; nt < 4; nt++)
    UNROLL for (int h = 0; h < 2; h++) {
      __half *to = pair_s(p, mat, r0 / 128) + (wm * 16 + g + 8 * h) * 64 + wn * 32 + nt * 8 + 2 * q;
      split(st[nt][2 * h], st[nt][2 * h + 1], *(uint32_t *)to, *(uint32_t *)(to + TLOW));
    }
}
// The products are Hopper's warpgroup products, in one term or two:
// W^T = C^T V, W'^T = W^T T, C^T -= W'^T V^T: the left operands come from registers (C is split into two terms on its way from shared
// memory, W' stays there all pass long), the right ones, V^T and T^T, from shared memory as they were copied: rows of 64 numbers, 128
// bytes, whose 16-byte units are permuted by the row mod 8. A warpgroup takes every other chunk of 64 rows, all 64 columns: its warps hold
// 16 of them, number 2g and 2g + 1 of these as rows g and g + 8 of a product.
// All copies are the tensor copy engine's (cp.async, LDS and STS wait for each other in one queue). A ninth warp (`feed`) takes the tasks from
// the list and asks for what comes in: a stage is filled again as soon as its warpgroup is done with it, so the next task's chunks come in
// while this one's last are worked on. In pass 2 the new C takes the place of the old one, and a tenth warp (`drain`) sends it out from there.
// Whoever has read or written a stage by ordinary instructions says fence.proxy.async before it gives the stage to the copy engine; without
// that, and with values of C used only after the stage had gone back, one call in six was wrong.
struct StripSmem {
  static constexpr int C = TERMS * 16384, STAGE = C + 16384; // V^T in blocks of 64 x 64, its second term, C as two blocks of 32 columns
  static constexpr int DEPTH = 2, STAGES = 2 * DEPTH; // of a warpgroup; of both
  static constexpr int S = 0, SUMS = 16384;                  // between the passes: S^T in two terms, sums
  // T0^T, T1^T in two terms; barriers: a stage is full, is free, holds the new C; T, S have come; a task is there, has been seen by `drain`;
  // all stages are free for sums; W' is in registers; a task without copies has been done
  static constexpr int T = STAGES * STAGE, BARS = T + 32768, FREE = BARS + 8 * STAGES, OUT = FREE + 8 * STAGES, BAR_T = OUT + 8 * STAGES,
                       BAR_S = BAR_T + 8, NEXT = BAR_S + 8, TAKEN = NEXT + 8, CLEAR = TAKEN + 8, READY = CLEAR + 8, DONE = READY + 8,
                       BYTES = DONE + 8 + 1024;
  static DEVICE int stage(int v) { return (v & 1) * DEPTH + (v >> 1) % DEPTH; } // of a pass's chunk number v
};
// all with rows of 128 bytes, swizzled: a and h as blocks of 32 columns, two blocks of 64 rows in a box; V^T (and behind it the second terms) of
// one panel and of two, T^T and S^T with their second terms. A copy costs the thread that asks for it 100 cycles, so there are as few as can be
struct StripMaps {
  CUtensorMap a, h, v, vv, t;
};
DEVICE char *strip_base(char *sm) { return sm + (-shared_address(sm) & 1023); }
DEVICE void tensor_load_blocks(uint32_t to, const CUtensorMap *map, int x, int y, int z, uint32_t bar) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3,%4}],[%5];" ::"r"(to), "l"(map),
               "r"(x), "r"(y), "r"(z), "r"(bar)
               : "memory");
}
DEVICE void tensor_store(const CUtensorMap *map, int x, int y, int z, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0,{%1,%2,%3}],[%4];" ::"l"(map), "r"(x), "r"(y), "r"(z), "r"(from) : "memory");
}
DEVICE void mbar_arrive(uint32_t b, uint32_t times = 1) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0],%1;" ::"r"(b), "r"(times) : "memory");
}
// what a task is; see larfb
struct Task {
  int panel, top, column, part, parts;
  bool maxima, coupling, single; // of 128 columns, so many rows; S of a pair; one panel, not a pair
  size_t mat;
  DEVICE Task(const int4 &k, int mat0) :
      panel(k.y & 0xffff), top(64 * (k.y >> 16)), column(64 * panel), part(k.x >> 18 & 7), parts((k.x >> 21 & 7) + 1),
      maxima(k.x >> 17 & 1), coupling(k.x >> 16 & 1), single(k.x >> 24 & 1), mat(mat0 + (k.x & 0xffff)) {}
};
DEVICE void feed(const LarfbArgs &p, const StripMaps &maps, int4 *next) {
  extern __shared__ __align__(128) char sm_raw[];
  using L = StripSmem;
  const uint32_t s = shared_address(strip_base(sm_raw));
  const int n = p.n;
  uint32_t used = 0, ready = 0, done = 0; // phases of the barriers
  bool working = false;                   // on a task without copies
  auto wait_free = [&] {
    ROLL for (int d = 0; d < L::STAGES; d++) barrier_wait(s + L::FREE + 8 * d, ~(used >> d) & 1);
  };
  ROLL for (int i = 0;; i ^= 1) {
    int4 k = make_int4(-1, 0, 0, 0);
    if (const int t = atomicAdd(p.counter, 1); t < p.task_end) {
      k = __ldg(p.tasks + t);
      const size_t mat = p.mat0 + (k.x & 0xffff);
      poll(p.done + mat, k.z * p.ctas);
      poll(p.applied + mat * (n / 64) + (k.y & 0xffff), k.w);
    }
    const Task task(k, p.mat0);
    if (working) {
      barrier_wait(s + L::DONE, done);
      done ^= 1;
    }
    working = task.coupling || task.maxima;
    if (working) wait_free();
    barrier_wait(s + L::TAKEN, i ^ 1); // (the task before, so that nobody is two phases behind; nothing before the first one)
    next[i] = k;
    mbar_arrive(s + L::NEXT);
    if (k.x < 0) break;
    if (working) continue;
    fence_async_global(); // what others stored to V^T, T^T and H, for the copies
    const int r0 = task.top, blocks = task.single ? 1 : 2, y = (int)task.mat * n + r0;
    const int all = (n - r0) / 64, first = all * task.part / task.parts, chunks = all * (task.part + 1) / task.parts - first;
    auto load_t = [&](uint32_t to, const __half *from, int count, uint32_t bar) { // T^T or S^T in two terms
      barrier_expect(bar, count * 16384);
      ROLL for (int u = 0; u < count; u++) tensor_load(to + u * 16384, &maps.t, 0, (int)((from - p.ts) / 64) + 128 * u, bar);
    };
    load_t(s + L::T, p.ts + (task.mat * (n / 64) + r0 / 64) * TS, blocks, s + L::BAR_T);
    ROLL for (int pass = 0; pass < 2; pass++) {
      ROLL for (int v = 0; v < chunks; v++) {
        const int stage = L::stage(v), row = r0 + 64 * (first + (pass ? chunks - 1 - v : v));
        const uint32_t to = s + stage * L::STAGE, bar = s + L::BARS + 8 * stage;
        barrier_wait(s + L::FREE + 8 * stage, ~(used >> stage) & 1);
        used ^= 1u << stage;
        barrier_expect(bar, TERMS * blocks * 8192 + 16384);
        tensor_load_blocks(to + L::C, r0 ? &maps.h : &maps.a, 0, (int)task.mat * n + row, task.column / 32, bar);
        UNROLL for (int low = 0; low < TERMS; low++) tensor_load(to + low * 16384, task.single ? &maps.v : &maps.vv, row, low * p.batch * n + y, bar);
      }
      if (pass) break;
      wait_free();
      mbar_arrive(s + L::CLEAR);
      if (blocks == 2) {
        poll(p.coupled + task.mat * (n / 128) + r0 / 128, 1);
        fence_async_global();
        load_t(s + L::S, pair_s(p, task.mat, r0 / 128), 1, s + L::BAR_S); // where the first stage is
      }
      barrier_wait(s + L::READY, ready);
      ready ^= 1;
    }
  }
}
// one thread sends the new C out, from where the old one came in, and reports what is done
DEVICE void drain(const LarfbArgs &p, const StripMaps &maps, const int4 *next) {
  extern __shared__ __align__(128) char sm_raw[];
  using L = StripSmem;
  const uint32_t s = shared_address(strip_base(sm_raw));
  const int n = p.n;
  uint32_t out = 0; // phases
  ROLL for (int i = 0;; i ^= 1) {
    barrier_wait(s + L::NEXT, i);
    const int4 k = next[i];
    mbar_arrive(s + L::TAKEN);
    if (k.x < 0) break;
    const Task task(k, p.mat0);
    if (task.coupling || task.maxima) continue;
    const int all = (n - task.top) / 64, first = all * task.part / task.parts, chunks = all * (task.part + 1) / task.parts - first;
    ROLL for (int v = 0; v < chunks; v++) { // the last rows first
      const int stage = L::stage(v), row = (int)task.mat * n + task.top + 64 * (first + chunks - 1 - v);
      barrier_wait(s + L::OUT + 8 * stage, out >> stage & 1);
      out ^= 1u << stage;
      tensor_store(&maps.h, 0, row, task.column / 32, s + stage * L::STAGE + L::C);
      bulk_store_commit();
      bulk_store_read();
      mbar_arrive(s + L::FREE + 8 * stage, 4);
    }
    bulk_store_wait(); // written
    if (task.parts > 1) __threadfence(); // the last part reports for all
    if (task.parts == 1 || atomicAdd(p.joined + gang_of(p, task.mat, task.top, task.column, task.single), 1) == 2 * task.parts - 1)
      add_release(p.applied + task.mat * (n / 64) + task.panel, 1);
  }
}
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// d (64 x 64) += A (64 x 16, a warp 16 rows) B (16 x 64); B at `at`: rows of 128 bytes along its columns, if ALONG_K, or along its rows
template <bool ALONG_K> DEVICE void wgmma(float (&d)[32], const uint32_t (&a)[4], uint32_t at) {
  const uint64_t b = (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
  qr::wgmma<ALONG_K>(d, a, b);
}
#else // the same tile by tile
template <bool ALONG_K> DEVICE void wgmma(float (&d)[32], const uint32_t (&a)[4], uint32_t at) {
  const int lane = threadIdx.x & 31;
  UNROLL for (int nt = 0; nt < 8; nt += 2) {
    uint32_t b[4], x = at + (ALONG_K ? (nt * 8 + (lane & 7) + (lane >> 4) * 8) * 128 + (lane >> 3 & 1) * 16 : (lane & 15) * 128 + (nt + (lane >> 4)) * 16);
    x ^= x >> 3 & 112;
    if (ALONG_K) load_matrix(b, x);
    else load_matrix_transposed(b, x);
    mma(*(float(*)[4]) & d[4 * nt], a, b[0], b[1]);
    mma(*(float(*)[4]) & d[4 * nt + 4], a, b[2], b[3]);
  }
}
#endif
// d += A B, 64 deep; two terms of A, of B
template <bool ALONG_K, bool TWO_A, bool TWO_B> DEVICE void multiply(float (&d)[32], const uint32_t (&high)[4][4], const uint32_t (&low)[4][4], uint32_t b, uint32_t b_low) {
  UNROLL for (int ks = 0; ks < 4; ks++) {
    const uint32_t at = ks * (ALONG_K ? 32 : 2048);
    wgmma<ALONG_K>(d, high[ks], b + at);
    if (TWO_A) wgmma<ALONG_K>(d, low[ks], b + at);
    if (TWO_B) wgmma<ALONG_K>(d, high[ks], b_low + at);
  }
}
// a product as the left operand of the next
DEVICE void as_operand(const float (&d)[32], float sign, uint32_t (&high)[4][4], uint32_t (&low)[4][4]) {
  UNROLL for (int ks = 0; ks < 4; ks++)
    UNROLL for (int i = 0; i < 4; i++) split(sign * d[8 * ks + 2 * i], sign * d[8 * ks + 2 * i + 1], high[ks][i], low[ks][i]);
}
// K reflectors to 64 columns, rows `part` of `parts`. phase: of the barriers of this warpgroup's stages, a bit each
template <int K>
DEVICE void warpgroup_strip(const LarfbArgs &p, const size_t mat, int r0, int cbase, int part, int parts, uint32_t &phase) {
  extern __shared__ __align__(128) char sm_raw[];
  using L = StripSmem;
  char *sm = strip_base(sm_raw);
  constexpr int KB = K / 64;
  const int tid = threadIdx.x, lane = tid & 31, g = lane >> 2, q = lane & 3, wm = tid >> 5 & 3, wg = tid >> 7, t128 = tid & 127;
  const int n = p.n, all = (n - r0) / 64, first = all * part / parts, chunks = all * (part + 1) / parts - first;
  const uint32_t *cmax = p.colmax + mat * n + cbase;
  const uint32_t s = shared_address(sm);
  const int column = wm * 16 + 2 * g; // and the next
  const float sc0 = column_scale(__ldcg(cmax + column)), sc1 = column_scale(__ldcg(cmax + column + 1));
  // this thread's two columns of C in a stage, rows 2q and 2q + 1
  const int unit = ((wm & 1) * 4 + (g >> 1)) ^ (2 * q), even = L::C + (wm >> 1) * 8192 + 2 * q * 128 + unit * 16 + (g & 1) * 8,
            odd = L::C + (wm >> 1) * 8192 + (2 * q + 1) * 128 + (unit ^ 1) * 16 + (g & 1) * 8;
  // chunks wg, wg + 2, .. of a pass (pass 2: the last rows first): f(stage, its number)
  auto pass = [&](auto &&f) {
    int d = 0;
    ROLL for (int v = wg; v < chunks; v += 2) {
      barrier_wait(s + L::BARS + 8 * (wg * L::DEPTH + d), phase >> d & 1);
      phase ^= 1u << d;
      f(s + (wg * L::DEPTH + d) * L::STAGE, wg * L::DEPTH + d);
      d = d + 1 == L::DEPTH ? 0 : d + 1;
    }
  };

  // ---- pass 1: W^T = C^T V
  float w[KB][32];
  UNROLL for (int b = 0; b < KB; b++)
    UNROLL for (int e = 0; e < 32; e++) w[b][e] = 0.f;
  pass([&](uint32_t stage, int number) {
    const char *c = sm + (stage - s);
    uint32_t high[4][4], low[4][4];
    UNROLL for (int ks = 0; ks < 4; ks++)
      UNROLL for (int h = 0; h < 2; h++) {
        const float2 x = *(const float2 *)(c + even + (ks * 16 + 8 * h) * 128), y = *(const float2 *)(c + odd + (ks * 16 + 8 * h) * 128);
        split(x.x * sc0, y.x * sc0, high[ks][2 * h], low[ks][2 * h]);
        split(x.y * sc1, y.y * sc1, high[ks][2 * h + 1], low[ks][2 * h + 1]);
      }
    wgmma_fence();
    UNROLL for (int b = 0; b < KB; b++) multiply<true, TWO, TWO>(w[b], high, low, stage + b * 8192, stage + b * 8192 + 16384);
    wgmma_commit();
    wgmma_wait();
    fence_async(); // C has been read
    __syncwarp();
    if (lane == 0) mbar_arrive(s + L::FREE + 8 * number);
  });
  block_sync<256>();
  { // each warpgroup adds up half of W: first the other's part, then those of the other CTAs
    constexpr int H = KB * 4;
    float4 *buf = (float4 *)(sm + L::SUMS), half[H];
    auto piece = [&](int i) {
      const float *x = &w[i >> 3][(i & 7) * 4];
      return make_float4(x[0], x[1], x[2], x[3]);
    };
    barrier_wait(s + L::CLEAR, phase >> 5 & 1);
    phase ^= 32;
    UNROLL for (int i = 0; i < 2 * H; i++)
      if (i / H != wg) buf[i * 128 + t128] = piece(i);
    block_sync<256>();
    UNROLL for (int i = 0; i < H; i++) {
      const float4 x = wg ? piece(H + i) : piece(i), y = buf[(wg * H + i) * 128 + t128];
      half[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
    if (parts > 1) {
      const int gang = ((int)mat - p.mat0) * (n / 64) + cbase / 64; // what updates these columns next waits until this has ended
      float4 *to = p.partial + (size_t)gang * (MOST_PARTS * 2048) + wg * H * 128 + t128;
      UNROLL for (int i = 0; i < H; i++) to[part * 2048 + i * 128] = half[i];
      __threadfence();
      block_sync<256>();
      if (tid == 0) {
        add_release(p.joined + gang_of(p, mat, r0, cbase, K == 64), 1);
        poll(p.joined + gang_of(p, mat, r0, cbase, K == 64), parts);
      }
      block_sync<256>();
      UNROLL for (int i = 0; i < H; i++) half[i] = make_float4(0, 0, 0, 0);
#pragma unroll 2
      for (int u = 0; u < parts; u++) // in the same order in each of them
        UNROLL for (int i = 0; i < H; i++) {
          const float4 x = __ldcg(to + u * 2048 + i * 128);
          half[i].x += x.x;
          half[i].y += x.y;
          half[i].z += x.z;
          half[i].w += x.w;
        }
    }
    UNROLL for (int i = 0; i < H; i++) buf[(2 * H + wg * H + i) * 128 + t128] = half[i];
    block_sync<256>();
    UNROLL for (int i = 0; i < 2 * H; i++) {
      const float4 x = buf[(2 * H + i) * 128 + t128];
      float *to = &w[i >> 3][(i & 7) * 4];
      to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
    }
  }
  // ---- -W'^T by blocks of 64: W0' = T0'W0, W1' = T1'(W1 - S'W0')
  uint32_t high[KB][4][4], low[KB][4][4];
  auto times_t = [&](int b) {
    float d[32];
    UNROLL for (int e = 0; e < 32; e++) d[e] = 0.f;
    as_operand(w[b], 1.f, high[b], low[b]);
    wgmma_fence();
    multiply<true, TWO, true>(d, high[b], low[b], s + L::T + b * 16384, s + L::T + b * 16384 + 8192);
    wgmma_commit();
    wgmma_wait();
    as_operand(d, -1.f, high[b], low[b]);
  };
  barrier_wait(s + L::BAR_T, phase >> 7 & 1);
  phase ^= 128;
  times_t(0);
  if constexpr (K == 128) {
    barrier_wait(s + L::BAR_S, phase >> 6 & 1);
    phase ^= 64;
    wgmma_fence();
    multiply<true, TWO, true>(w[1], high[0], low[0], s + L::S, s + L::S + 8192);
    wgmma_commit();
    wgmma_wait();
    times_t(1);
  }
  fence_async();
  block_sync<256>();
  if (tid == 0) mbar_arrive(s + L::READY);

  // ---- pass 2: C^T += (-W'^T) V^T, from the last rows up
  const float us0 = column_unscale(__ldcg(cmax + column)), us1 = column_unscale(__ldcg(cmax + column + 1));
  pass([&](uint32_t stage, int number) {
    float d[32];
    UNROLL for (int e = 0; e < 32; e++) d[e] = 0.f;
    wgmma_fence();
    UNROLL for (int b = 0; b < KB; b++) multiply<false, TWO, TWO>(d, high[b], low[b], stage + b * 8192, stage + b * 8192 + 16384);
    wgmma_commit();
    char *c = sm + (stage - s);
    float2 x[8][2];
    UNROLL for (int nt = 0; nt < 8; nt++) {
      x[nt][0] = *(const float2 *)(c + even + nt * 1024);
      x[nt][1] = *(const float2 *)(c + odd + nt * 1024);
    }
    wgmma_wait();
    UNROLL for (int nt = 0; nt < 8; nt++)
      UNROLL for (int e = 0; e < 2; e++)
        *(float2 *)(c + (e ? odd : even) + nt * 1024) =
            make_float2(fmaf(us0, d[4 * nt + e], x[nt][e].x), fmaf(us1, d[4 * nt + 2 + e], x[nt][e].y));
    fence_async(); // for the copy engine
    __syncwarp();
    if (lane == 0) mbar_arrive(s + L::OUT + 8 * number);
  });
}
// A task: x = matrix | (S of a pair) << 16 | (maxima) << 17 | part << 18 | (parts - 1) << 21 | (one panel, not a pair) << 24; y = panel whose columns it
// updates | first panel applied << 16; z = panels that must be made before; w = updates that must have been applied to these columns
// before. Workers take the tasks in the order of the list (section 6), the next one when the last copies of the one before have been asked
// for. Everything that a task waits for stands before it in the list or is a panel that waits for nothing behind it, and nobody takes a
// task while the one before may still wait for its other parts: any number of workers (no fewer than parts) makes progress.
constexpr int LARFB_THREADS = 320;
__global__ void __launch_bounds__(LARFB_THREADS, 1) larfb(const __grid_constant__ LarfbArgs p, const __grid_constant__ StripMaps maps) {
  grid_release_next();
  extern __shared__ __align__(128) char sm[];
  __shared__ int4 next[2];
  const int tid = threadIdx.x;
  const uint32_t s = shared_address(strip_base(sm));
  if (tid == 0) {
    for (int i = 0; i < StripSmem::STAGES; i++) {
      barrier_init(s + StripSmem::BARS + 8 * i);
      barrier_init(s + StripSmem::FREE + 8 * i, 4); // the warps of a warpgroup
      barrier_init(s + StripSmem::OUT + 8 * i, 4);
    }
    for (int i = 0; i < 7; i++) barrier_init(s + StripSmem::BAR_T + 8 * i);
  }
  fence_async();
  asm volatile("bar.sync 1,%0;" ::"n"(LARFB_THREADS) : "memory"); // (not barrier 0: the ninth warp is early)
  uint32_t phase = 0;
  if (tid >= 256) { // (griddepcontrol.wait below would stop the whole warp)
    if (tid == 256) feed(p, maps, next);
    if (tid == 288) drain(p, maps, next);
    __syncwarp();
  } else
    ROLL for (int i = 0;; i ^= 1) {
      barrier_wait(s + StripSmem::NEXT, i);
      const int4 k = next[i];
      if (k.x < 0) break;
      const Task task(k, p.mat0);
      const bool no_copies = task.coupling || task.maxima;
      if (task.maxima) column_max(p.a, p.colmax, p.n, task.mat, task.panel / 2, task.part * (p.n / MAXIMA), p.n / MAXIMA, (float4(*)[32])sm);
      else if (task.coupling) coupling(p, task.mat, task.top);
      else if (task.single) warpgroup_strip<64>(p, task.mat, task.top, task.column, task.part, task.parts, phase);
      else warpgroup_strip<128>(p, task.mat, task.top, task.column, task.part, task.parts, phase);
      if (!no_copies) continue; // `drain` reports
      fence_async();
      fence_async_global(); // S^T, for the copies of others
      block_sync<256>();
      if (tid == 0) {
        mbar_arrive(s + StripSmem::DONE);
        int *made = task.coupling ? p.coupled + task.mat * (p.n / 128) + task.top / 128 : p.applied + task.mat * (p.n / 64) + task.panel;
        add_release(made, 1);
        if (task.maxima) add_release(made + 1, 1); // 128 columns
      }
    }
  grid_wait(); // end no earlier than the panels beside this kernel: the next launch waits for this one only
}
// ---------------------------------------------------------------- 6. order of work and launches, all on the default queue
// Panels of 64 columns, numbered k; panels 2i and 2i+1 are pair i. Before geqr2 makes panel c, its columns must have got
//   far   the pairs 0 .. c/2 - 2 (128 reflectors each)
//   near  the panels from there to c-2                   (one by one: no need to wait for S; panel c-1 is applied by geqr2 itself)
// and before all that their maxima, which give the powers of two.
// Two kernels run side by side for the whole factorization: geqr2 (one cluster a matrix) makes the panels, larfb's workers fill the other
// SMs, one on each, and take tasks from a list. They tell each other by counters in memory what is done, so an update may take
// longer than the panel beside it, and no launch lies between panels. The order of the list comes from a simulation of the whole run, a
// function of n, batch and the number of SMs only: least slack first. The second launch is a programmatic dependent one: it starts
// when geqr2 is in place. Where kernels do not run side by side (a profiler, a debugger), torch.geqrf serves.
static int sm_count() {
  static int k = 0;
  if (!k) {
    int d;
    cudaGetDevice(&d);
    cudaDeviceGetAttribute(&k, cudaDevAttrMultiProcessorCount, d);
  }
  return k;
}
// The model, as measured to give the best order (any values give a right one): us of a panel (256 or 128 rows a CTA), bytes a us of a worker;
// columns due within so many panels are split by rows, into parts of about so many, to be done sooner; us a row of a strip, for the slack
struct Model {
  float tall, brief, rate;
  int urgent, part_rows;
  float strip;
};
static Model model(int n) { return n > 2048 ? Model{26, 22, 44e3f, 2, 700, 0.01f} : Model{26, 22, 100e3f, 1, 1024, 0.016f}; }
constexpr float TASK_FIXED = 2.5f, MAXIMA_RATE = 28e3f; // us of a task; bytes a us of the column maxima
static std::vector<int4> schedule(int n, int batch, int workers, int tall_rows) {
  const int panels = n / 64;
  const Model m = model(n);
  struct Matrix {
    int made = 0, coupled = 0, scanned = 0; // panels, S of pairs, tasks of column maxima
    float end = -1;
    std::vector<int> claimed, applied; // tasks taken; tasks done
  };
  std::vector<Matrix> ms(batch);
  for (auto &x : ms) {
    x.claimed.assign(panels, 0);
    x.applied.assign(panels, 0);
    for (int c = 2; c < panels; c++) x.claimed[c] = MAXIMA;
  }
  struct Running {
    int mat, c, updates;
    float end;
  };
  std::vector<Running> running;
  std::vector<int4> list;
  float now = 0;
  auto place = [&](int mat, int c, int updates, float bytes) { running.push_back({mat, c, updates, now + bytes / m.rate + TASK_FIXED}); };
  for (int left = batch; left;) {
    for (auto &x : ms)
      if (x.end < 0 && x.made < panels && x.applied[x.made] >= all_updates(x.made))
        x.end = now + (n - 64 * std::max(0, x.made - 1) > tall_rows ? m.tall : m.brief);
    // us until panel i can begin, less what the tasks that its columns still need will take: they come one after the other
    auto slack = [&](const Matrix &x, int i) {
      const int far = pairs(i), q = x.claimed[i] - MAXIMA;
      float need = 0;
      for (int u = q; u < far; u++) need += m.strip * (n - 128 * u) + TASK_FIXED;
      need += (all_updates(i) - MAXIMA - std::max(q, far)) * (m.strip / 2 * (n - 128 * far) + TASK_FIXED);
      return (i - x.made) * (n - 64 * x.made > tall_rows ? m.tall : m.brief) - need;
    };
    constexpr float FIRST = -1e30f, NONE = 1e30f;
    while ((int)running.size() < workers) { // the task with the least slack that is ready
      float least = NONE;
      int mat = 0, c = 0;
      bool near = false;
      for (int b = 0; b < batch; b++) {
        const Matrix &x = ms[b];
        const int next = 2 + x.scanned / MAXIMA * 2; // columns whose maxima come next
        if (next < panels)
          if (const float k = slack(x, next) - n * 64 / MAXIMA_RATE; k < least) least = k, mat = b, c = -1;
        if (least > FIRST && x.coupled < x.made / 2 && 2 * x.coupled + 3 < panels) least = FIRST, mat = b;
        for (int i = std::max(2, x.made); i < panels && least > FIRST; i++) {
          const int q = x.claimed[i];
          if (x.applied[i] < q || q == all_updates(i)) continue;
          const int far = pairs(i), u = q - MAXIMA; // pairs 0..far - 1, then panels far + u
          if (u < far ? x.made < 2 * u + 2 : x.made <= far + u) continue;
          if (const float k = slack(x, i); k < least) least = k, mat = b, c = i, near = u >= far;
        }
      }
      if (least == NONE) break;
      Matrix &x = ms[mat];
      if (least == FIRST) { // S of a pair, before every task that applies the pair
        const int top = 2 * x.coupled++;
        list.push_back(make_int4(mat | 1 << 16, top << 16, top + 2, 0));
        place(mat, 0, 0, (n - 64.f * top) * 256);
        continue;
      }
      if (c < 0) {
        const int part = x.scanned % MAXIMA, panel = 2 + x.scanned++ / MAXIMA * 2;
        list.push_back(make_int4(mat | 1 << 17 | part << 18, panel, 0, 0));
        running.push_back({mat, panel, -1, now + n * 64 / MAXIMA_RATE});
        continue;
      }
      const int before = x.claimed[c]++, u = before - MAXIMA, top = near ? pairs(c) + u : 2 * u, made = top + (near ? 1 : 2);
      const int parts = near || c - x.made <= m.urgent ? std::min(MOST_PARTS, std::max(1, (n - 64 * top + m.part_rows / 2) / m.part_rows)) : 1;
      for (int part = 0; part < parts; part++) {
        list.push_back(make_int4(mat | part << 18 | (parts - 1) << 21 | near << 24, c | top << 16, made, before));
        place(mat, c, part == parts - 1, (n - 64.f * top) * (TERMS * (near ? 256 : 512) + 768) / parts);
      }
    }
    now = 1e30f;
    for (auto &x : ms)
      if (x.end >= 0) now = std::min(now, x.end);
    for (auto &r : running) now = std::min(now, r.end);
    for (auto &x : ms)
      if (x.end >= 0 && x.end <= now) {
        x.end = -1;
        if (++x.made == panels) left--;
      }
    for (size_t i = 0; i < running.size();)
      if (running[i].end <= now + 1e-3f) {
        std::vector<int> &applied = ms[running[i].mat].applied;
        if (running[i].updates < 0) { // maxima of two panels' columns
          applied[running[i].c]++;
          applied[running[i].c + 1]++;
        } else applied[running[i].c] += running[i].updates;
        running.erase(running.begin() + i);
      } else i++;
  }
  return list;
}
__global__ void probe_wait(int *flag) { // does the next launch start while this kernel runs?
  grid_release_next();
  const long long t = clock64();
  while (load_acquire(flag) < 1 && clock64() - t < 40000000) {}
  flag[1] = load_acquire(flag);
}
__global__ void probe_set(int *flag) {
  add_release(flag, 1);
  grid_wait();
}
static void programmatic(cudaLaunchAttribute &a) {
  a.id = (cudaLaunchAttributeID)6;
  *(int *)&a.val = 1;
} // programmatic serialization by number: its name holds letters that the server refuses
bool side_by_side() { // asked once of the machine; no input plays a part
  static int known = -1;
  if (known < 0) {
    cudaFuncSetAttribute(larfb, cudaFuncAttributeMaxDynamicSharedMemorySize, StripSmem::BYTES);
    int *flag, seen[2] = {};
    cudaMalloc(&flag, 256);
    cudaMemset(flag, 0, 256);
    // Kernels are loaded when first launched, and loading waits for what runs: so each runs once alone before it is to run beside another.
    probe_set<<<1, 1>>>(flag + 32);
    LarfbArgs none = {};
    none.counter = flag + 32;
    larfb<<<1, LARFB_THREADS, StripSmem::BYTES>>>(none, StripMaps{});
    cudaDeviceSynchronize();
    probe_wait<<<1, 1>>>(flag);
    cudaLaunchConfig_t cfg = {};
    cfg.gridDim = cfg.blockDim = dim3(1);
    cudaLaunchAttribute at[1];
    cfg.attrs = at;
    programmatic(at[cfg.numAttrs++]);
    cudaLaunchKernelEx(&cfg, probe_set, flag);
    cudaMemcpy(seen, flag, 8, cudaMemcpyDeviceToHost);
    cudaFree(flag);
    known = seen[1] >= 1;
  }
  return known;
}
static int cluster_ctas(int n) { return n > 2048 ? 16 : 8; }                           // 256 rows a CTA
static int group_size(int n) { return std::max(1, sm_count() / 2 / cluster_ctas(n)); } // half of the SMs at most; the rest are for larfb
struct List { // in device memory
  int4 *tasks;
  int count;
};
static const List &task_list(int n, int batch, int workers) {
  static std::map<std::tuple<int, int, int>, List> kept;
  int device = 0;
  cudaGetDevice(&device);
  const auto key = std::make_tuple(device, n, batch);
  auto it = kept.find(key);
  if (it == kept.end()) {
    const std::vector<int4> l = schedule(n, batch, workers, 128 * cluster_ctas(n));
    List x{nullptr, (int)l.size()};
    cudaMalloc(&x.tasks, std::max<size_t>(1, l.size()) * sizeof(int4));
    cudaMemcpy(x.tasks, l.data(), l.size() * sizeof(int4), cudaMemcpyHostToDevice);
    it = kept.emplace(key, x).first;
  }
  return it->second;
}
template <int C> static void panels(const PanelArgs &a, int matrices) {
  constexpr int BYTES = PanelShape<8, 4, C>::BYTES;
  auto k = geqr2<C>;
  static bool ready = false;
  if (!ready) {
    cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
    cudaFuncSetAttribute(k, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    ready = true;
  }
  cudaLaunchConfig_t cfg = {};
  // A cluster of 16 fills most of a GPC. The SMs of a GPC fetch instructions through one cache, and a panel waits for instructions more than for
  // anything else: beside other panels it takes 47 000 cycles (of 256 rows a CTA), beside workers 56 000.
  cfg.gridDim = dim3((matrices * C + 15) / 16 * 16);
  cfg.blockDim = dim3(256);
  cfg.dynamicSmemBytes = BYTES;
  cudaLaunchAttribute at[1];
  cfg.attrs = at;
  cfg.numAttrs = 1;
  at[0].id = cudaLaunchAttributeClusterDimension;
  at[0].val.clusterDim.x = 16;
  at[0].val.clusterDim.y = 1;
  at[0].val.clusterDim.z = 1;
  cudaLaunchKernelEx(&cfg, k, a);
}
static void workers(const LarfbArgs &a, const StripMaps &maps, int places) {
  cudaLaunchConfig_t cfg = {};
  cfg.gridDim = dim3(places);
  cfg.blockDim = dim3(LARFB_THREADS);
  cfg.dynamicSmemBytes = StripSmem::BYTES;
  cudaLaunchAttribute at[1];
  cfg.attrs = at;
  programmatic(at[cfg.numAttrs++]);
  cudaLaunchKernelEx(&cfg, larfb, a, maps);
}
static long counters(int n, int batch) {
  return (long)batch * (6 * (n / 64) + 8 + n / 64 * (n / 64));
} // made, applied, coupled, joined, four a launch
static long partials(int n, int batch) { return (long)std::min(batch, group_size(n)) * (n / 64) * MOST_PARTS * 8192; } // floats
struct Sizes {
  long tt, counters, partials, terms;
};
Sizes sizes(int n, int batch) {
  return {(long)batch * (n / 64 + n / 128) * TS, counters(n, batch), partials(n, batch), TERMS};
}
// rows x columns as boxes of so many rows, 128 bytes each; or of so many blocks of 128 bytes of 64 rows; false where the driver cannot
static bool tensor_map(CUtensorMap &map, const void *at, CUtensorMapDataType type, int bytes, size_t rows, int columns, int box_rows, int blocks = 0) {
  const auto encode = tensor_map_encoder();
  const cuuint32_t wide = 128u / bytes;
  const cuuint64_t sizes[3] = {blocks ? wide : (cuuint64_t)columns, (cuuint64_t)rows, (cuuint64_t)columns / wide}, strides[2] = {(cuuint64_t)bytes * columns, 128};
  const cuuint32_t box[3] = {wide, (cuuint32_t)box_rows, (cuuint32_t)blocks}, steps[3] = {1, 1, 1};
  return encode && encode(&map, type, blocks ? 3 : 2, const_cast<void *>(at), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                          CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
static bool strip_maps(StripMaps &maps, const float *a, float *h, __half *vt, __half *ts, int n, int batch) {
  const size_t rows = (size_t)batch * n;
  const auto single = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, half = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  return tensor_map(maps.a, a, single, 4, rows, n, 64, 2) && tensor_map(maps.h, h, single, 4, rows, n, 64, 2) &&
         tensor_map(maps.v, vt, half, 2, TERMS * rows, n, 64) && tensor_map(maps.vv, vt, half, 2, TERMS * rows, n, 128) &&
         tensor_map(maps.t, ts, half, 2, sizes(n, batch).tt / 64, 64, 128);
}
// colmax: column maxima and, behind them, the counters of `sizes`
const char *run(const float *a, float *h, float *tau, void *vt_, void *ts_, void *colmax_, void *partial, int n, int batch) {
  __half *vt = (__half *)vt_, *ts = (__half *)ts_;
  uint32_t *colmax = (uint32_t *)colmax_;
  const int count = n / 64, C = cluster_ctas(n), group = group_size(n);
  StripMaps maps;
  if (!strip_maps(maps, a, h, vt, ts, n, batch)) return "the driver makes no tensor maps";
  cudaMemsetAsync(colmax, 0, ((size_t)batch * n + counters(n, batch)) * 4);
  first_maxima<<<dim3(1, 64, batch), 256>>>(a, colmax, n, (n + 63) / 64);
  int *made = (int *)colmax + (size_t)batch * n, *applied = made + batch, *coupled = applied + batch * count,
      *joined = coupled + batch * count / 2, *next = joined + batch * count * count;
  for (int mat0 = 0; mat0 < batch; mat0 += group, next += 4) {
    const int matrices = std::min(group, batch - mat0), sms = std::max(8, sm_count() - matrices * C);
    const List &list = task_list(n, matrices, sms);
    const size_t low = (size_t)batch * n * n;
    const PanelArgs p{a, h, tau, vt, low, ts, colmax, made, applied, n, mat0, matrices};
    if (C == 8) panels<8>(p, matrices);
    else panels<16>(p, matrices);
    workers({a, h, vt, low, ts, colmax, list.tasks, next, made, applied, coupled, joined, (float4 *)partial, n, batch, mat0, list.count, C},
            maps, sms);
  }
  const cudaError_t e = cudaGetLastError();
  return e ? cudaGetErrorString(e) : nullptr;
}
} // namespace large
"""

LARGE_BINDING = r"""
#include <torch/extension.h>
namespace large { struct Sizes { long tt, counters, partials, terms; }; bool side_by_side(); Sizes sizes(int n, int batch); const char* run(const float*, float*, float*, void*, void*, void*, void*, int, int); }
// H and tau of every matrix of the batch. n is padded to a multiple of 128 with zero rows and columns, which changes nothing in the rest.
static std::tuple<at::Tensor, at::Tensor> factor(at::Tensor a) {
  const int64_t b = a.size(0), n = a.size(2), np = (n + 127) / 128 * 128; auto o = a.options();
  at::Tensor in = a.contiguous(); if ((uintptr_t)in.data_ptr() & 15) in = in.clone(); // 16-byte accesses
  if (np != n) { at::Tensor big = at::zeros({b, np, np}, o); big.narrow(1, 0, n).narrow(2, 0, n).copy_(in); in = big; }
  at::Tensor h = at::empty({b, np, np}, o), tau = at::empty({b, np}, o);
  auto s = large::sizes((int)np, (int)b);
  at::Tensor vt = at::empty({s.terms * b, np, np}, o.dtype(at::kHalf)), tt = at::empty({s.tt}, o.dtype(at::kHalf)), cmax = at::empty({b * np + s.counters}, o.dtype(at::kInt)), partial = at::empty({s.partials}, o);
  const char* problem = large::run(in.data_ptr<float>(), h.data_ptr<float>(), tau.data_ptr<float>(), vt.data_ptr(), tt.data_ptr(), cmax.data_ptr(), partial.data_ptr(), (int)np, (int)b);
  TORCH_CHECK(!problem, "geqrf_large: a launch failed: ", problem);
  if (np != n) { h = h.narrow(1, 0, n).narrow(2, 0, n).contiguous(); tau = tau.narrow(1, 0, n).contiguous(); }
  return {h, tau};
}
std::optional<std::tuple<at::Tensor, at::Tensor>> geqrf_large(at::Tensor a) {
  if (large::side_by_side()) return factor(a);
  TORCH_WARN_ONCE("large: two kernels do not run side by side here (some profilers see to that): torch.geqrf serves its shapes");
  return {};
}
"""

# ---------------------------------------------------------------- host

# family: (CUDA source, binding, flags for nvcc). Each binding defines geqrf_<family>(a) -> (H, tau); small's also makes its
# module: for n = 32 the host is the clock.
SOURCES = {
    "small": (SMALL_CUDA, SMALL_BINDING, ()),
    "n512": (N512_CUDA, N512_BINDING, ()),
    "n1024": (N1024_CUDA, N1024_BINDING, ("-DFP16_TERMS=2",)),
    "large": (LARGE_CUDA, LARGE_BINDING, ()),
}
# The file that each family comes from: ./kit tune times those and writes the table below from what it found.
BACKENDS = {"v114_small_window_by_bytes": "small", "v117_n512_warpgroup_products": "n512",
            "v122_n1024_gram_from_shared": "n1024", "v137_large_by_columns": "large", "geqrf": ""}
# What a family can take, n from and to.
LIMITS = {"small": (1, 384), "n512": (385, 512), "n1024": (513, 1536), "large": (1537, 4096)}
# (n at most, batch at most, n a multiple of, backend): the first row that fits and whose family can take n serves; None is
# no limit. Where no row is left, any family that can; else torch.geqrf.
# BEGIN GENERATED
ROUTES = (
    (384, None, 1, "v114_small_window_by_bytes"),
    (512, None, 1, "v117_n512_warpgroup_products"),
    (1536, None, 1, "v122_n1024_gram_from_shared"),
    (None, None, 1, "v137_large_by_columns"),
)
# END GENERATED


def build(family: str) -> Callable[[torch.Tensor], output_t] | None:
    """geqrf_<family>; None, with a warning, where it cannot be built."""
    major, minor = torch.cuda.get_device_capability()
    cuda, binding, flags = SOURCES[family]
    name = f"geqrf_{family}"
    # the CUDA sources need no torch header: a third of the compile time
    extra = {"no_implicit_headers": True} if "no_implicit_headers" in inspect.signature(load_inline).parameters else {}
    try:
        module = load_inline(f"qrkit_{family}_v151", cpp_sources=binding, cuda_sources=cuda,
                             functions=None if "PYBIND11_MODULE" in binding else [name],
                             extra_cflags=["-O2"], extra_cuda_cflags=[
                                 "-O3", "-std=c++17", f"-gencode=arch=compute_{major}{minor}a,code=sm_{major}{minor}a",
                                 *flags],
                             **extra)
    except Exception as error:  # a build that fails must not fail the answers
        warnings.warn(f"{family}: not built, torch.geqrf serves its shapes: {error}", stacklevel=2)
        return None
    return getattr(module, name)


@functools.cache
def extensions() -> dict[str, Callable[[torch.Tensor], output_t] | None]:
    """Every family, compiled side by side (as long as the slowest takes, half a minute); none, with one warning, where
    they cannot run."""
    if not torch.cuda.is_available():
        warnings.warn("no CUDA device: torch.geqrf serves every shape", stacklevel=2)
        return {}
    major, minor = torch.cuda.get_device_capability()
    if major < 9:
        warnings.warn(f"compute capability {major}.{minor}: torch.geqrf serves every shape", stacklevel=2)
        return {}
    with ThreadPoolExecutor(len(SOURCES)) as pool:
        return dict(zip(SOURCES, pool.map(build, SOURCES), strict=True))


def route(batch: int, n: int) -> str:
    """The family that serves a shape; "" is torch.geqrf."""
    able = [family for family, (least, most) in LIMITS.items() if least <= n <= most] if batch else []
    rows = (BACKENDS[name] for n_max, batch_max, multiple, name in ROUTES if (n_max is None or n <= n_max)
            and (batch_max is None or batch <= batch_max) and n % multiple == 0)
    return next((family for family in (*rows, *able) if family in able or not family), "")


@functools.cache
def serving(shape: torch.Size, cuda: bool) -> Callable[[torch.Tensor], output_t] | None:
    """The function for a shape, None for torch.geqrf; looked up once a shape, since for n = 32 the host is the clock."""
    family = route(shape[0], shape[-1]) if cuda else ""
    return extensions().get(family) if family else None


def custom_kernel(data: input_t) -> output_t:
    out = first(data)
    if out is not None:
        return out
    function = serving(data.shape, data.is_cuda)
    out = function(data.contiguous()) if function else None
    if out is None:
        h, tau = torch.geqrf(data)
        return h, tau
    return out


def nothing(data: input_t) -> None:
    return None


first: Callable[[input_t], output_t | None] = nothing
if torch.cuda.is_available():
    # On import, not in the first call. small is asked before the table where the table gives it all that it takes, and says
    # None to everything else: at n = 32 the host is the clock, and its 0.6 us in Python are an eighth of a call.
    kernel = extensions().get("small")
    if kernel and all(route(batch, n) == "small" for batch in (1, 10**6) for n in range(1, LIMITS["small"][1] + 1)):
        first = kernel
