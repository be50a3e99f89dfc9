#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v114 small window by bytes: the window of blocks in shared memory is cut by their sizes.

Algorithm  n <= 32: geqr2, one warp a matrix, lane = column. Else left-looking in groups of 16 columns: load, larfb of all earlier blocks (mma) as
           I - E K E', geqr2 (Gram of 16 columns by mma, scalar recurrence for R, K and inv(U), V = E inv(U) by mma; column by column where a
           certificate fails, and then E = V, K = T'; the last 16 x 16 by one warp)
Precision  FP32; in the products every operand is two FP16 terms (22 bits), FP32 accumulation; tau = 2/v'v of the V that is returned, so
           orthogonality does not depend on the products
Shapes     1 <= n <= 384, any batch: this path; else torch.geqrf
Parent     v113_small_lag, with what v132_small_load_at_once brought for n <= 224
Result     see records/
Bound by   the chain of a panel: K arrives, update with Gram, recurrence (half of it), K; n > 224: the teams and the helper, who are late for a third of
           the panels; at n = 32 the chain of a column (exchange, two reciprocals), on a slow host the host

How to read it. Let P be a panel (16 columns, all earlier blocks applied) and H'P = (R~; 0), R~ with the reflectors' signs. Then E = P - (R~; 0) spans
what V spans: E = V U, and H' = I - V T' V' = I - E K E' with K = inv(E'P) = -inv(B) inv(R~)', B = E's top 16 rows = V1 U. So the rest of the matrix can be
updated from the panel itself: all of E but 16 rows is known before the recurrence begins. The team of the next group forms E'C meanwhile; when K comes
(32 x 16 numbers a block), 16 x 16 products and the update are left. V, tau and T (not needed at all, but in the fallback) are off the chain.
The recurrence makes K without a separate inverse: Cholesky of G = P'P carries along the identity, [G | I] -> [R | inv(R)'], and Gauss-Jordan on
[top rows of P - R~ | -inv(R~)'] -> [I | K], whose rows also are V1 U = B. A warp each, a column a lane; rows are handed from one to the
other as words that are EMPTY before, without fences, four a step: every lane factors the 4 x 4 block on the diagonal itself, two pivots
at a time (their reciprocals side by side), so the pivots of a step need no exchange.
All teams of a CTA get K at the same time, and only the next group's update is urgent: V of a panel is formed when the next panel is there (n <= 224).
Rows come in steps of 16; step s belongs to warp s % 4 of every team, so the work of a team shrinks evenly as rows finish.
C, the group of 16 columns that a team works on, lies in shared memory as mma accumulators of the transpose: with g = lane / 4, q = lane % 4, a lane
holds c[tile][2 half + e] = column g + 8 half, row 8 tile + 2 q + e of a step. Packed to FP16 the same numbers are the A operand of W' = C'E, A and B of
C'C, and the accumulator of C' -= W'E'. So no product needs a transpose of C; only the 16 x 16 sums over a team's four warps are exchanged.
Warp numbers come from a shuffle, so that the compiler knows them to be the same in all lanes (no code for diverged warps: 14 % fewer instructions).
Barriers are set up by a warp each: their instructions run one lane after the other.
Team t takes groups t, t + teams, ... (with several CTAs a matrix: the teams of all, E and K pushed to the other CTAs' shared memory as well). Blocks are
handed over by mbarriers: the panel is there (four warps), K is there (two warps: K and E's top rows; to the other CTA st.async, whose bytes its mbarrier
counts: a release at cluster scope would be a fence of the whole GPU), all of E is in global memory. E of a block is stored as 8 x 8 tiles that
ldmatrix reads straight (phase 1) or transposed (phase 2).
Where E outgrows shared memory (n > 224), blocks take the places of older ones, one behind the other in a ring of bytes (later blocks are shorter, so more of
them are there: 4 at the beginning, all from the tenth on at n = 352), and a group to which an older block has lost its place reads it from global memory. That is safe
without counters: panel b is published after K of block b - 1 was, hence after every group below b has finished with all earlier blocks.
Above that size the teams, each with blocks of all earlier groups to apply, and not the chain, would be the clock. So where three processors a matrix are
there, a third CTA helps (it needs no cluster): it reads finished blocks from global memory, applies all but about the last half of them to a group of the end, and leaves
the group in global memory for the team whose turn it is. Results are the same bit for bit. The two tell each other by flags in global memory
that are zero between launches.
A Gram matrix squares the condition of its 16 columns. The certificate (pivots against their columns, size of K, both exact and per panel) sends a
panel that has lost too much to the column-by-column loop, which is right for any input; its V then replaces P in the slot, a word in its record says
so, and teams that had begun with P begin again.
Programmatic dependent launch: a grid is set up while the one before it still runs and waits (griddepcontrol.wait) until that one is complete before it
touches global memory, so results never depend on it. It helps back-to-back calls, as in the benchmark; a single synchronised call gains nothing.
"""
from __future__ import annotations

import inspect
import os
import warnings

import torch
from torch.utils.cpp_extension import load_inline

from task import input_t, output_t

SMALL_CUDA = r"""
#include <cuda.h>
#include <cuda_fp16.h>
#include <cstdint>
#include <type_traits>
namespace qr_small {
#define DEVICE __device__ __forceinline__
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
DEVICE float rcp(float x) { float y; asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float rsq(float x) { float y; asm("rsqrt.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x)); return y; }
DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void load_matrix(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
}
DEVICE void load_matrix_transposed(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
}
DEVICE void store_matrix(uint32_t a, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(a), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}
DEVICE uint32_t transpose_8x8(uint32_t x) { uint32_t y; asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(y) : "r"(x)); return y; }
DEVICE uint32_t bits(__half2 h) { return *reinterpret_cast<uint32_t*>(&h); }
DEVICE __half2 halves(uint32_t u) { return *reinterpret_cast<__half2*>(&u); }
DEVICE void split(float x0, float x1, uint32_t& hi, uint32_t& lo) {
  __half2 h = __floats2half2_rn(x0, x1);
  float2 f = __half22float2(h);
  hi = bits(h);
  lo = bits(__floats2half2_rn(x0 - f.x, x1 - f.y));
}
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
DEVICE void barrier_init(uint64_t* b, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0],%1;" ::"r"(shared_address(b)), "r"(count) : "memory"); }
DEVICE void barrier_arrive(uint64_t* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0];" ::"r"(shared_address(b)) : "memory"); }
// the same place in the other CTA of a cluster of two
DEVICE uint32_t remote(const void* p, uint32_t rank) { uint32_t r; asm("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(r) : "r"(shared_address(p)), "r"(rank)); return r; }
DEVICE void remote_store(uint32_t at, uint32_t x) { asm volatile("st.shared::cluster.u32 [%0],%1;" ::"r"(at), "r"(x) : "memory"); }
DEVICE void remote_store(uint32_t at, uint4 x) { asm volatile("st.shared::cluster.v4.u32 [%0],{%1,%2,%3,%4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory"); }
// Release at cluster scope costs a fence of the whole GPU (MEMBAR.ALL.GPU, a thousand cycles and more): only where it is off the chain.
// Stores that the other CTA's mbarrier counts by their bytes: no fence.
DEVICE void store_async(uint32_t at, uint32_t x, uint32_t b) { asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0],%1,[%2];" ::"r"(at), "r"(x), "r"(b) : "memory"); }
DEVICE void store_async(uint32_t at, uint4 x, uint32_t b) { asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0],{%1,%2,%3,%4},[%5];" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(b) : "memory"); }
DEVICE void expect_bytes(uint64_t* b, int bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _,[%0],%1;" ::"r"(shared_address(b)), "r"(bytes) : "memory"); }
DEVICE void cluster_fence() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }
DEVICE void remote_arrive(uint32_t b) { asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%0];" ::"r"(b) : "memory"); }
// Relaxed: nothing but barriers is handed over, which fence.mbarrier_init orders. A release would be a fence of the whole GPU.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEVICE void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
DEVICE void flag_set(uint32_t* at, uint32_t x) { asm volatile("st.release.gpu.global.u32 [%0],%1;" ::"l"(at), "r"(x) : "memory"); }
DEVICE uint32_t flag_get(const uint32_t* at) { uint32_t x; asm volatile("ld.acquire.gpu.global.u32 %0,[%1];" : "=r"(x) : "l"(at) : "memory"); return x; }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// Acquire at CTA scope for the peer's data as well: an acquire of the cluster only adds CCTL.IVALL (it empties L1). What waits guard is read from shared
// memory, where the peer's stores are when its arrival or its bytes are counted, or from L2 by ld.cg.
DEVICE bool barrier_passed(uint64_t* b) {
  uint32_t ok;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],0; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(shared_address(b)) : "memory");
  return ok;
}
DEVICE void barrier_wait(uint64_t* b) { while (!barrier_passed(b)) {} }

// Programmatic dependent launch: a grid may be set up while the one before it runs, but touches global memory only
// when that one is complete. Without the launch attribute both instructions do nothing.
DEVICE void after_earlier_grids() { asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory"); }
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
  template <int ROWS> DEVICE void send(int k, float (&v)[33]) {  // column k to v in all lanes; the other lanes write to one place behind: no branch
    const uint32_t b = id == k ? at : at + 128;
#pragma unroll
    for (int q = 0; q < ROWS / 4; q++) store4(b + q * 16, c[q * 4], c[q * 4 + 1], c[q * 4 + 2], c[q * 4 + 3]);
    __syncwarp();
#pragma unroll
    for (int q = 0; q < ROWS / 4; q++) { const float4 t = load4(at + q * 16); v[q * 4] = t.x; v[q * 4 + 1] = t.y; v[q * 4 + 2] = t.z; v[q * 4 + 3] = t.w; }
  }
  template <int ROWS> DEVICE void dot() {  // x'c; in lane k that is x'x, in lane k + 1 x'y
    float d[4] = {0, 0, 0, 0};
#pragma unroll
    for (int r = 0; r < ROWS; r++) d[r & 3] = fmaf(x[r], c[r], d[r & 3]);
    s = (d[0] + d[1]) + (d[2] + d[3]);
  }
  template <int ROWS> DEVICE void start() { tau = 0.f; send<ROWS>(0, x); dot<ROWS>(); }
  // emit(r): this lane's entry of row k is final, R from the diagonal on, the reflector (not scaled) before it
  template <int ROWS, class Emit> DEVICE void steps(int from, int to, Emit emit) {
    c[ROWS] = x[ROWS] = y[ROWS] = 0.f;
#pragma unroll 1
    for (int k = from; k < to; k++) {
      const float t0 = __shfl_sync(ALL, s, k + 1), g = __shfl_sync(ALL, s, k);
      send<ROWS>(k + 1, y);
      const bool zero = !(g > 1e-30f);  // such a column has no reflector: 1 / d = 0
      const uint32_t sign = __float_as_uint(x[0]) & 0x80000000u;
      const float rs = rsq(g), sg = zero ? __uint_as_float(0x7f800000u) : copysignf(g, x[0]);
      const float d = fmaf(sg, rs, x[0]), inv = rcp(d);  // v = x / d below the diagonal, R's entry is x[0] - d
      const float sx = __uint_as_float(__float_as_uint(s) ^ sign), t = __uint_as_float(__float_as_uint(t0) ^ sign);
      emit(k, id >= k && !zero ? -(sx * rs) : c[0]);
      if (id == k) factor = inv;
      if (id == k && !zero) tau = fabsf(d) * rs;
      const float wc = id > k && !zero ? -fmaf(sx, rs, c[0]) * inv : 0.f;
      // the same with the choice before or after the product: which of them the registers like differs
      const float wy = ROWS == 32 ? -(zero ? 0.f : fmaf(t, rs, y[0])) * inv : zero ? 0.f : -fmaf(t, rs, y[0]) * inv;
#pragma unroll
      for (int r = 0; r < ROWS; r++) c[r] = fmaf(wc, x[r + 1], c[r + 1]);
#pragma unroll
      for (int r = 0; r < ROWS; r++) x[r] = fmaf(wy, x[r + 1], y[r + 1]);
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
#pragma unroll
    for (int i = 0; i < CTAS - 1; i++) remote_arrive(remote(fbar + k, peer(i)));
  }
  DEVICE void team_sync() { asm volatile("bar.sync %0,128;" ::"r"(team + 1) : "memory"); }
  DEVICE void made_sync() { asm volatile("bar.sync %0,64;" ::"r"(team + 9) : "memory"); }
  DEVICE void made_arrive() { asm volatile("bar.arrive %0,64;" ::"r"(team + 9) : "memory"); }
  DEVICE float* buffer() { float* b = exchange + parity * (BUFFER_BYTES / 4); parity ^= 1; return b; }
  DEVICE static void clear(float (&w)[2][4]) {
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) w[t][r] = 0.f;
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
#pragma unroll
    for (int z = 0; z < 4; z++) split(c[z >> 1][(z & 1) * 2], c[z >> 1][(z & 1) * 2 + 1], hi[z], lo[z]);
  }

  // ---- sum of a 16 x 16 product over the team's warps, in the same order in every warp
  DEVICE void post(const float (&w)[2][4], float4* b) {
    b[part * 64 + lane] = make_float4(w[0][0], w[0][1], w[0][2], w[0][3]);
    b[part * 64 + 32 + lane] = make_float4(w[1][0], w[1][1], w[1][2], w[1][3]);
  }
  DEVICE void collect(float (&w)[2][4], const float4* b) {
#pragma unroll
    for (int t = 0; t < 2; t++) {
      const float4 x = b[t * 32 + lane], y = b[64 + t * 32 + lane], z = b[128 + t * 32 + lane], u = b[192 + t * 32 + lane];
      w[t][0] = (x.x + y.x) + (z.x + u.x); w[t][1] = (x.y + y.y) + (z.y + u.y);
      w[t][2] = (x.z + y.z) + (z.z + u.z); w[t][3] = (x.w + y.w) + (z.w + u.w);
    }
  }

  // ---- a group of 16 columns from global memory, each scaled by a power of two so that its largest entry is 16 .. 32
  DEVICE void read(int k, float (&c)[OWN][2][4]) {  // all steps of this warp at once: one after the other they cost the latency of L2 each
    const int col = k * GROUP + g;
    const float* x = a + (size_t)(part * 16 + 2 * q) * p.n + col;
#pragma unroll
    for (int i = 0; i < OWN; i++)
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
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
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const bool in = s * 16 + t * 8 + 2 * q + e < p.n;
          const float* y = x + (t * 8 + e) * p.n;
          c[t][e] = in && in0 ? __ldg(y) : 0.f;
          c[t][2 + e] = in && in1 ? __ldg(y + 8) : 0.f;
        }
      put(s, c);
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 2; e++) { m0 = fmaxf(m0, fabsf(c[t][e])); m1 = fmaxf(m1, fabsf(c[t][2 + e])); }
    }
    } else {
      read(k, held);
#pragma unroll
      for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int e = 0; e < 2; e++) { m0 = fmaxf(m0, fabsf(held[i][t][e])); m1 = fmaxf(m1, fabsf(held[i][t][2 + e])); }
    }
    m0 = fmaxf(m0, __shfl_xor_sync(ALL, m0, 1)); m0 = fmaxf(m0, __shfl_xor_sync(ALL, m0, 2));
    m1 = fmaxf(m1, __shfl_xor_sync(ALL, m1, 1)); m1 = fmaxf(m1, __shfl_xor_sync(ALL, m1, 2));
    float* b = buffer();
    if (q == 0) { b[g * 4 + part] = m0; b[(8 + g) * 4 + part] = m1; }
    team_sync();
    float scale[2];
#pragma unroll
    for (int hf = 0; hf < 2; hf++) {
      const float4 x = *reinterpret_cast<float4*>(b + (8 * hf + g) * 4);
      const float m = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
      const int e = max((int)(__float_as_uint(m) >> 23) - 127, -118);
      scale[hf] = __uint_as_float((uint32_t)(127 + 4 - e) << 23);
      unscale[hf] = __uint_as_float((uint32_t)(127 - 4 + e) << 23);
    }
    if constexpr (RING) {
#pragma unroll 1
    for (int s = part; s < p.steps; s += 4) {
      float c[2][4];
      get(s, c);
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int r = 0; r < 4; r++) c[t][r] *= scale[r >> 1];
      put(s, c);
    }
    } else {
#pragma unroll
      for (int i = 0; i < OWN; i++) {
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int r = 0; r < 4; r++) held[i][t][r] *= scale[r >> 1];
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
#pragma unroll
    for (int z = 0; z < 4; z++) { h[z] = on ? h[z] : 0u; l[z] = on ? l[z] : 0u; }
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
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) w[t][r] = gw[t][r] + (gx[t][r] + gy[t][r]);
  }
  // E'C of the steps of this warp below the top step of block j. Two steps at a time for latency; the second may be zeros.
  template <bool FAR, int AHEAD> DEVICE void project(const Source& v, int j, float (&w)[2][4], uint32_t (&bh)[2 * AHEAD][4], uint32_t (&bl)[2 * AHEAD][4]) {
    const int s0 = first_step(j + 1);
    clear(gw); clear(gx); clear(gy);
#pragma unroll
    for (int i = 0; i < 2 * AHEAD; i++) fetch<false, FAR>(v, s0 + 4 * i, bh[i], bl[i]);
#pragma unroll 1
    for (int s = s0; s < p.steps; s += 8 * AHEAD) {
#pragma unroll
      for (int i = 0; i < AHEAD; i++) {
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
    if (FAR && helper) wait_flag(flags->block + j); else barrier_wait((FAR ? fbar : pbar) + j);
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
    if (!(FAR && helper)) barrier_wait(kbar + j);
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
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) w[t][r] = (w[t][r] + (x[t][r] + y[t][r])) * sc4[2 * t + (r & 1)];
    operand(w, wh, wl);
    clear(w); clear(x); clear(y);
    mma(w[0], wh, th[0], th[1]); mma(w[1], wh, th[2], th[3]);
    mma(x[0], wl, th[0], th[1]); mma(x[1], wl, th[2], th[3]);
    mma(y[0], wh, tl[0], tl[1]); mma(y[1], wh, tl[2], tl[3]);
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) w[t][r] = -(w[t][r] + (x[t][r] + y[t][r])) * sc4[2 * t + (r & 1)];
    operand(w, wh, wl);
    clear(gw); clear(gx); clear(gy);
    if (FAR && owner) {
      float c[2][4];
      get(j, c);
      turn(eh); turn(el);
#pragma unroll
      for (int t = 0; t < 2; t++) { mma(c[t], wl, eh[2 * t], eh[2 * t + 1]); mma(c[t], wh, el[2 * t], el[2 * t + 1]); mma(c[t], wh, eh[2 * t], eh[2 * t + 1]); }
      put(j, c);
    }
#pragma unroll 1
    for (int u = from; u < p.steps; u += 8 * AHEAD) {
#pragma unroll
      for (int i = 0; i < AHEAD; i++) {
        const int s = u + 8 * i;
        if (i > 0 && s >= p.steps) break;
        const bool on = s + 4 < p.steps;
        const int s1 = on ? s + 4 : s;
        uint32_t (&h0)[4] = bh[2 * i], (&l0)[4] = bl[2 * i], (&h1)[4] = bh[2 * i + 1], (&l1)[4] = bl[2 * i + 1];
        if (FAR) { turn(h0); turn(l0); turn(h1); turn(l1); }
        float c0[2][4], c1[2][4];
        get(s, c0);
        get(s1, c1);
#pragma unroll
        for (int t = 0; t < 2; t++) { mma(c0[t], wl, h0[2 * t], h0[2 * t + 1]); mma(c1[t], wl, h1[2 * t], h1[2 * t + 1]); }
#pragma unroll
        for (int t = 0; t < 2; t++) { mma(c0[t], wh, l0[2 * t], l0[2 * t + 1]); mma(c1[t], wh, l1[2 * t], l1[2 * t + 1]); }
#pragma unroll
        for (int t = 0; t < 2; t++) { mma(c0[t], wh, h0[2 * t], h0[2 * t + 1]); mma(c1[t], wh, h1[2 * t], h1[2 * t + 1]); }
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
#pragma unroll 1
    for (int col = 0; col < 16; col++) {
      const int hc = col >> 3, cc = col & 7, r0 = 2 * q;
      auto pivot = [&](int s, float (&x)[2][2]) {
#pragma unroll
        for (int t = 0; t < 2; t++) {
          const float2 v = *reinterpret_cast<const float2*>(sc + s * STEP_BYTES + t * 512 + (cc * 4 + q) * 16 + hc * 8);
          const bool all = s > k;
          x[t][0] = all || 8 * t + r0 >= col ? v.x : 0.f;
          x[t][1] = all || 8 * t + r0 + 1 >= col ? v.y : 0.f;
        }
      };
      float d0[2] = {0, 0}, d1[2] = {0, 0};
#pragma unroll 1
      for (int s = first_step(k); s < p.steps; s += 4) {
        float c[2][4], x[2][2];
        get(s, c);
        pivot(s, x);
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int e = 0; e < 2; e++) { d0[e] = fmaf(x[t][e], c[t][e], d0[e]); d1[e] = fmaf(x[t][e], c[t][2 + e], d1[e]); }
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
      const float rs = rsq(gk), ib = zero ? 0.f : (alpha >= 0.f ? -rs : rs);
      const float bt = zero ? alpha : gk * ib, d = alpha - bt, iv = zero ? 0.f : rcp(d);
      float w0 = g > col ? a0 - ((sa.x + sa.y) + (sa.z + sa.w)) * ib : 0.f;
      float w1 = 8 + g > col ? a1 - ((sb.x + sb.y) + (sb.z + sb.w)) * ib : 0.f;
      w0 *= -iv; w1 *= -iv;
      if (g == cc) { if (hc) { inv[1] = iv; beta[1] = bt; } else { inv[0] = iv; beta[0] = bt; } }
#pragma unroll 1
      for (int s = first_step(k); s < p.steps; s += 4) {
        float c[2][4], x[2][2];
        get(s, c);
        pivot(s, x);
        __syncwarp();
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int e = 0; e < 2; e++) {
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
#pragma unroll
      for (int r = 0; r < 16; r += 2) {
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
#pragma unroll 1
      for (int s = part == 3 ? 2 : part; s < k; s += 3) {
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
#pragma unroll
    for (int r = 0; r < 8; r++) x[r] = r == l ? 1.f : 0.f;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const float4 u0 = row[i * 5], u1 = row[i * 5 + 1];
      const float u[8] = {u0.x, u0.y, u0.z, u0.w, u1.x, u1.y, u1.z, u1.w};
      x[i] *= dd[i];
#pragma unroll
      for (int r = i + 1; r < 8; r++) x[r] = fmaf(-u[r], x[i], x[r]);
    }
    float4* o = reinterpret_cast<float4*>(out + (base + l) * 20 + base);
    o[0] = make_float4(x[0], x[1], x[2], x[3]); o[1] = make_float4(x[4], x[5], x[6], x[7]);  // lanes 16.. repeat 0..15
    __syncwarp();
    const int r = g, c2 = 2 * q;  // this lane's two entries of an 8 x 8 product
    float s0 = 0.f, s1 = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      const float u = rows[r * 20 + 8 + k];
      const float2 z = *reinterpret_cast<const float2*>(out + (8 + k) * 20 + 8 + c2);
      s0 = fmaf(u, z.x, s0); s1 = fmaf(u, z.y, s1);
    }
    *reinterpret_cast<float2*>(y + r * 8 + c2) = make_float2(s0, s1);
    __syncwarp();
    s0 = s1 = 0.f;
#pragma unroll
    for (int k = 0; k < 8; k++) {
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
#pragma unroll
    for (int z = 0; z < 4; z++) {  // z = column tile * 2 + half of k
      const float* e = x + (8 * (z & 1) + 2 * q) * 20 + 8 * (z >> 1) + g;
      split(e[0] * scale, e[20] * scale, hi[z], lo[z]);
    }
  }
  DEVICE void rows_to(float* m, const float (&w)[2][4]) {  // a 16 x 16 accumulator by rows, stride 20
#pragma unroll
    for (int t = 0; t < 2; t++) {
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
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const float4 v = *reinterpret_cast<const float4*>(b + AT_R + j * 20 + 4 * r);
      a[4 * r] = v.x; a[4 * r + 1] = v.y; a[4 * r + 2] = v.z; a[4 * r + 3] = v.w;
    }
    const float g0 = b[AT_R + j * 21], norm = __uint_as_float((uint32_t)(127 + (((int)(__float_as_uint(g0) >> 23) - 127) >> 1)) << 23);
    if (low) b[AT_NORM + j] = norm;
#pragma unroll
    for (int r = 0; r < 16; r++) a[r] = low ? a[r] : (r == j ? norm : 0.f);  // so that K comes with its columns scaled
    const uint32_t rows = shared_address(exchange + 2 * BUFFER_BYTES / 4), b0 = shared_address(b);
    uint32_t out = rows + lane * 16, next = b0 + 4 * AT_D, from = rows + 64;
    float d[4][4];               // the block on the diagonal, in every lane: d[q][p], p <= q
#pragma unroll
    for (int q = 0; q < 4; q++) { const float4 x = load4(b0 + 4 * (AT_R + 20 * q)); d[q][0] = x.x; d[q][1] = x.y; d[q][2] = x.z; d[q][3] = x.w; }
#pragma unroll 1
    for (int i = 0;; i++) {
      // the next block on the diagonal, before this step: every lane brings it up to date itself
      store_if((lane >> 2) == i + 1, next + (lane & 3) * 16, a[4], a[5], a[6], a[7]);
      __syncwarp();
      float4 n[4];
#pragma unroll
      for (int q = 0; q < 4; q++) n[q] = load4(next + 16 * q);
      // Cholesky of 4 x 4 in every lane, two pivots at a time: 1 / r11 = r00 / sqrt(det)
      const float rs0 = rsq(d[0][0]), rs1 = d[0][0] * rs0 * rsq(fmaf(d[0][0], d[1][1], -(d[1][0] * d[1][0])));
      const float l10 = d[1][0] * rs0, l20 = d[2][0] * rs0, l30 = d[3][0] * rs0;
      const float l21 = fmaf(-l10, l20, d[2][1]) * rs1, l31 = fmaf(-l10, l30, d[3][1]) * rs1;
      const float d22 = fmaf(-l21, l21, fmaf(-l20, l20, d[2][2])), d32 = fmaf(-l21, l31, fmaf(-l20, l30, d[3][2])), d33 = fmaf(-l31, l31, fmaf(-l30, l30, d[3][3]));
      const float rs2 = rsq(d22), rs3 = d22 * rs2 * rsq(fmaf(d22, d33, -(d32 * d32))), l32 = d32 * rs2;
      float x[4];
      x[0] = a[0] * rs0;
      x[1] = fmaf(-l10, x[0], a[1]) * rs1;
      x[2] = fmaf(-l21, x[1], fmaf(-l20, x[0], a[2])) * rs2;
      x[3] = fmaf(-l32, x[2], fmaf(-l31, x[1], fmaf(-l30, x[0], a[3]))) * rs3;
      store4(out, x[0], x[1], x[2], x[3]);        // rows 4 i .. of [R | inv(R)'], this lane's column
      __syncwarp();
      if (i == 3) break;
      float4 y[4];
#pragma unroll
      for (int q = 0; q < 4; q++) y[q] = load4(from + 16 * q);
#pragma unroll
      for (int q = 0; q < 4; q++) {
        const float nq[4] = {n[q].x, n[q].y, n[q].z, n[q].w};
#pragma unroll
        for (int p = 0; p <= q; p++) d[q][p] = fmaf(-y[q].w, y[p].w, fmaf(-y[q].z, y[p].z, fmaf(-y[q].y, y[p].y, fmaf(-y[q].x, y[p].x, nq[p]))));
      }
#pragma unroll
      for (int z = 0; z < 12; z++) {
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
#pragma unroll
    for (int r = 0; r < 4; r++) {
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
#pragma unroll
    for (int l = 15; l >= 8; l--) e[l] = e[l - 4];  // rows 4 .. 11 of the rest are moved up below
    auto take_block = [&]() {
#pragma unroll
      for (int q = 0; q < 4; q++) { const float4 x = load4(from + 80 * q); d[0][q] = x.x; d[1][q] = x.y; d[2][q] = x.z; d[3][q] = x.w; }
    };
    auto take_rows = [&]() {
      p = load4(in);
#pragma unroll
      for (int q = 0; q < 4; q++) { const float4 x = load4(in_block + 16 * q); r[q][0] = x.x; r[q][1] = x.y; r[q][2] = x.z; r[q][3] = x.w; }
    };
    auto eliminate = [&](int part4, const float4 (&x)[4]) {   // four rows more, four up
      e[4 * part4 + 0] = fmaf(-x[3].x, z[3], fmaf(-x[2].x, z[2], fmaf(-x[1].x, z[1], fmaf(-x[0].x, z[0], e[4 * part4 + 4]))));
      e[4 * part4 + 1] = fmaf(-x[3].y, z[3], fmaf(-x[2].y, z[2], fmaf(-x[1].y, z[1], fmaf(-x[0].y, z[0], e[4 * part4 + 5]))));
      e[4 * part4 + 2] = fmaf(-x[3].z, z[3], fmaf(-x[2].z, z[2], fmaf(-x[1].z, z[1], fmaf(-x[0].z, z[0], e[4 * part4 + 6]))));
      e[4 * part4 + 3] = fmaf(-x[3].w, z[3], fmaf(-x[2].w, z[2], fmaf(-x[1].w, z[1], fmaf(-x[0].w, z[0], e[4 * part4 + 7]))));
    };
    auto rest_of_step = [&]() {    // what no chain waits for: the rows below the next block, and the results
      float4 x[4], y[4];
#pragma unroll
      for (int q = 0; q < 4; q++) x[q] = load4(from_before + 80 * q + 32);
#pragma unroll
      for (int q = 0; q < 4; q++) y[q] = load4(from_before + 80 * q + 48);
#pragma unroll
      for (int l = 0; l < 4; l++) store1(uo + 80 * l, t[l]);
      store4(so, rt[0], rt[1], rt[2], rt[3]);
      store4(io, iv[0], iv[1], iv[2], iv[3]);
      eliminate(1, x); eliminate(2, y);
      e[12] = done[0]; e[13] = done[1]; e[14] = done[2]; e[15] = done[3];
    };
    take_block(); take_rows();
#pragma unroll 1
    for (int i = 0;; i++) {
      while (__any_sync(ALL, holds_empty(p))) take_rows();  // its rows of R are not there yet
      rest_of_step();
      const bool mine_now = (lane >> 2) == i, mine_next = (lane >> 2) == i + 1;
#pragma unroll
      for (int part4 = 1; part4 < 4; part4++) store_if(mine_now, vo + 16 * part4, e[4 * part4], e[4 * part4 + 1], e[4 * part4 + 2], e[4 * part4 + 3]);
      __syncwarp();
      float4 c[4];
#pragma unroll
      for (int q = 0; q < 4; q++) c[q] = load4(from + 80 * q + 16);
      const float own[4] = {p.x, p.y, p.z, p.w};
#pragma unroll
      for (int l = 0; l < 4; l++) t[l] = e[l];
// LU of 4 x 4 in every lane, two pivots at a time: with p the first one and a = p d11 - d10 d01, the second is a / p. The sign of a row of
      // R~ is opposite to the pivot before it.
#pragma unroll
      for (int l = 0; l < 4; l += 2) {
        const int m1 = l + 1;
        const float sign = copysignf(1.f, d[l][l]), p0 = fmaf(sign, r[l][l], d[l][l]);
        iv[l] = rcp(p0);
        t[l] = fmaf(sign, own[l], t[l]);
        rt[l] = sign * own[l];
#pragma unroll
        for (int q = l + 1; q < 4; q++) d[l][q] = fmaf(sign, r[q][l], d[l][q]);
        const float a = fmaf(d[m1][m1], p0, -(d[m1][l] * d[l][m1])), sign1 = copysignf(sign, __uint_as_float(__float_as_uint(a) ^ __float_as_uint(p0)));
        iv[m1] = p0 * rcp(a + copysignf(r[m1][m1] * p0, a));
#pragma unroll
        for (int s = l + 1; s < 4; s++) {
          const float f = d[s][l] * iv[l];
#pragma unroll
          for (int q = l + 1; q < 4; q++) if (s != m1 || q != m1) d[s][q] = fmaf(-f, d[l][q], d[s][q]);
          t[s] = fmaf(-f, t[l], t[s]);
        }
        t[m1] = fmaf(sign1, own[m1], t[m1]);
        rt[m1] = sign1 * own[m1];
#pragma unroll
        for (int q = m1 + 1; q < 4; q++) d[m1][q] = fmaf(sign1, r[q][m1], d[m1][q]);
#pragma unroll
        for (int s = m1 + 1; s < 4; s++) {
          const float f = d[s][m1] * iv[m1];
#pragma unroll
          for (int q = m1 + 1; q < 4; q++) d[s][q] = fmaf(-f, d[m1][q], d[s][q]);
          t[s] = fmaf(-f, t[m1], t[s]);
        }
      }
      in += 512; in_block += 576;
      if (i < 3) take_rows();        // the next ones, if they are there
#pragma unroll
      for (int l = 3; l >= 0; l--) {
        float s = t[l];
#pragma unroll
        for (int q = 3; q > l; q--) s = fmaf(-d[l][q], z[q], s);
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
#pragma unroll
    for (int z = 0; z < 4; z++) {
      const float4 y = *reinterpret_cast<const float4*>(b + AT_NORM + 4 * z);
      e[4 * z] *= y.x; e[4 * z + 1] *= y.y; e[4 * z + 2] *= y.z; e[4 * z + 3] *= y.w;
    }
#pragma unroll
    for (int z = 0; z < 16; z++) big[z & 1] = fmaf(e[z], e[z], big[z & 1]);
    while (*verdict() == EMPTY) {}
    const bool fine = lane < 16 ? *verdict() != 0 : big[0] + big[1] <= MAX_GROWTH * MAX_GROWTH;
    const bool all = __all_sync(ALL, fine);
    if (lane == 0) *fine_flag() = all;
    if (!all) return false;
    publish_record(k, e, rcp(norm), 0);
    return true;
  }
  // Lane 16 + j holds row j of the transpose of K (T for a block of reflectors): tiles [8 columns][8 rows], so that ldmatrix with
  // transposition gives the B operand. scale: of reflector lane & 15.
  DEVICE void publish_record(int k, const float (&e)[16], float scale, int kind) {
    uint32_t hi[8], lo[8];
#pragma unroll
    for (int z = 0; z < 8; z++) split(e[2 * z], e[2 * z + 1], hi[z], lo[z]);
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
#pragma unroll
    for (int i = 0; i < CTAS - 1; i++) {
      const uint32_t o = remote(d, peer(i)), to = remote(kbar + k, peer(i));
      if (lane >= 16) { store_async(o, x0, to); store_async(o + 256, x1, to); store_async(o + 512, z0, to); store_async(o + 768, z1, to); }
      store_async(remote(s, peer(i)), word, to);
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
#pragma unroll
      for (int i = 0; i < CTAS - 1; i++) { const uint32_t o = remote(d, peer(i)); remote_store(o, x); remote_store(o + 512, y); }
      if (out) store_far(k, s, shared_address(slot(s)));
    }
    __syncwarp();
    if (lane == 0) {
#pragma unroll
      for (int i = 0; i < CTAS - 1; i++) remote_arrive(remote(pbar + k, peer(i)));
      arrive_far(k);
    }
  }
  // a step of E from its slot to the other CTAs and global memory
  DEVICE void send(int k, int s) {
    const uint4* d = reinterpret_cast<const uint4*>(slot(s)) + lane;
    if (CTAS > 1) {
      __syncwarp();
      const uint4 x = d[0], y = d[32];
#pragma unroll
      for (int i = 0; i < CTAS - 1; i++) {
        const uint32_t o = remote(d, peer(i)), to = remote(kbar + k, peer(i));
        if (s == k) { store_async(o, x, to); store_async(o + 512, y, to); } else { remote_store(o, x); remote_store(o + 512, y); }
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
#pragma unroll 1
      for (int s = part; s < p.steps; s += 4) {
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
#pragma unroll
      for (int z = 0; z < 4; z++) {
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
        send(k, k);
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
    const float vv = m[(lane & 15) * 21], tj = vv > 0.f ? 2.f * rcp(vv) : 0.f;
    m[640 + (lane & 15)] = tj;
    if (lane < 16 && k * GROUP + lane < p.n) tau[k * GROUP + lane] = tj;
    __syncwarp();
    invert_upper(m, m + 640, m + 320, m + 656);
    float e[16];
#pragma unroll
    for (int z = 0; z < 4; z++) {
      const float4 y = *reinterpret_cast<const float4*>(m + 320 + (lane & 15) * 20 + 4 * z);
      e[4 * z] = y.x; e[4 * z + 1] = y.y; e[4 * z + 2] = y.z; e[4 * z + 3] = y.w;
    }
#pragma unroll
    for (int z = 0; z < 16; z++) e[z] = fminf(fmaxf(e[z], -6e4f), 6e4f);  // only for a T that no fp16 holds: keeps infinities out
    if (lane == 0) { barrier_arrive(kbar + k); arrive_far(k); }  // for the top rows
    publish_record(k, e, 1.f, 1);
  }

  // ---- one step of a column of H; rows above the panel are R of scaled columns
  DEVICE void store_step(int k, int s, const float (&c)[2][4], float f0, float f1) {
    const int col = k * GROUP + g;
    const bool even = (p.n & 1) == 0;
#pragma unroll
    for (int hf = 0; hf < 2; hf++) {
      const float f = hf ? f1 : f0;
      if (col + 8 * hf >= p.n) continue;
      float* o = h + (size_t)(col + 8 * hf) * p.n + s * 16 + 2 * q;
#pragma unroll
      for (int t = 0; t < 2; t++) {
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
#pragma unroll
      for (int z = 0; z < 4; z++) { h[z] = transpose_8x8(h[z]); l[z] = transpose_8x8(l[z]); }
#pragma unroll
      for (int t = 0; t < 2; t++) {
        float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0}, f[4] = {0, 0, 0, 0};
        mma(d, mh, h[2 * t], h[2 * t + 1]); mma(e, ml, h[2 * t], h[2 * t + 1]); mma(f, mh, l[2 * t], l[2 * t + 1]);
#pragma unroll
        for (int r = 0; r < 4; r++) v[t][r] = (d[r] + (e[r] + f[r])) * (1.f / M_SCALE);
      }
    } else {
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int r = 0; r < 4; r++) v[t][r] = c[t][r] * inv[r >> 1];
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
    else if (!RING && k + 2 < p.steps && (k + 1) / TEAMS % CTAS == rank) barrier_wait(pbar + k + 1);  // first the team of the next group, V is urgent for nobody
    float sums[2] = {0, 0};
    clear(gw); clear(gx); clear(gy);
#pragma unroll 1
    for (int s = first_step(k); s < p.steps; s += 4) {
      float v[2][4], top[2][4];
      if (gram || s != k) form(s, gram, mh, ml, inv, v);
      if (s == k) {
        if (gram) {
          const float4* made = reinterpret_cast<const float4*>(exchange + 2 * BUFFER_BYTES / 4 + 256) + lane;
          const float4 t0 = made[0], t1 = made[32];
          top[0][0] = t0.x; top[0][1] = t0.y; top[0][2] = t0.z; top[0][3] = t0.w; top[1][0] = t1.x; top[1][1] = t1.y; top[1][2] = t1.z; top[1][3] = t1.w;
        } else get(k, top);
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const int row = 8 * t + 2 * q + (r & 1), cl = g + 8 * (r >> 1);
            const float below = gram ? v[t][r] : top[t][r] * inv[r >> 1];
            v[t][r] = row > cl ? below : (row == cl && (gram || inv[r >> 1] != 0.f) ? 1.f : 0.f);
            if (row == cl && !gram) top[t][r] = beta[r >> 1];
          }
      }
      if (columns) {
        uint32_t hi[4], lo[4];
        operand(v, hi, lo);
#pragma unroll
        for (int z = 0; z < 4; z++) {
          const float2 fh = __half22float2(halves(hi[z])), fl = __half22float2(halves(lo[z]));
          v[z >> 1][(z & 1) * 2] = fh.x + fl.x; v[z >> 1][(z & 1) * 2 + 1] = fh.y + fl.y;
        }
        to_slot(s, hi, lo);
        send(k, s);
        mma(gw[0], hi, hi[0], hi[2]); mma(gw[1], hi, hi[1], hi[3]);
        mma(gx[0], lo, hi[0], hi[2]); mma(gx[1], lo, hi[1], hi[3]);
        mma(gy[0], hi, lo[0], lo[2]); mma(gy[1], hi, lo[1], lo[3]);
      } else {
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int r = 0; r < 4; r++) sums[r >> 1] = fmaf(v[t][r], v[t][r], sums[r >> 1]);
      }
      if (s == k) {
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int r = 0; r < 4; r++) {
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
#pragma unroll
      for (int hf = 0; hf < 2; hf++) {
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
        tau[k * GROUP + lane] = vv > 0.f ? 2.f * rcp(vv) : 0.f;
      }
    }
    if (part == LARFT) export_block(k);
#pragma unroll 1
    for (int s = part; s < k; s += 4) {
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
      if (!own) expect_bytes(me.kbar + i, K_BYTES);
    }
  }
  if (threadIdx.x < 2 * MAX_STEPS) places[threadIdx.x] = threadIdx.x < MAX_STEPS ? p.place[threadIdx.x] : p.until[threadIdx.x - MAX_STEPS];
  for (int i = threadIdx.x; i < STEP_BYTES / 4; i += TEAMS * 128) reinterpret_cast<uint32_t*>(me.sz)[i] = 0u;
  __syncthreads();
  if (CTAS > 1) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); cluster_arrive(); }
  // A hint only, so it may run while the grid before this one still does: the matrices of the clusters that start late as well
  if (!helper && mat < p.early) for (int b = mat; b < p.batch; b += p.early)
    for (int i = rank * TEAMS * 128 + threadIdx.x; i < p.n * p.n / 32; i += CTAS * TEAMS * 128) prefetch(p.a + (size_t)b * p.n * p.n + (size_t)i * 32);
  after_earlier_grids();
  bool first = CTAS > 1;  // the others may still be setting up their barriers while the first group is loaded
  const int stride = helper ? TEAMS : CTAS * TEAMS;
#pragma unroll 1
  for (int k = helper ? p.helped + me.team : rank * TEAMS + me.team; k < p.steps; k += stride) {
    me.mine = me.place[k] - k;
    const bool taken = RING && CTAS > 1 && !helper && k >= p.helped;
    if (taken) me.take(k); else me.load(k);
    if (first) { cluster_wait(); first = false; }
    const int end = helper ? me.lead(k) : k;
#pragma unroll 1
    for (int j = taken ? me.lead(k) : 0; j < end; j++) if (RING && (helper || k >= me.until[j])) me.template apply<true>(j, k); else me.template apply<false>(j, k);
    if (RING && helper) me.deliver(k); else me.factor(k);
  }
  if (first) cluster_wait();
  if (RING && helper) {  // all teams have seen all blocks
    __syncthreads();
    if (threadIdx.x < MAX_STEPS) me.flags->block[threadIdx.x] = 0;
  }
  if (CTAS > 1 && !helper)  // what the peers send must have come before this memory is given back
    for (int j = threadIdx.x; j < p.steps - 1; j += TEAMS * 128) if (j / TEAMS % CTAS != rank) {
      barrier_wait(me.pbar + j); barrier_wait(me.kbar + j);
      if (me.far(j)) barrier_wait(me.fbar + j);
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
  if (lane * 32 < n * n) prefetch(ip + lane * 32);
  after_earlier_grids();
  Columns me;
  me.id = lane; me.at = shared_address(buf);
  float m[4] = {0, 0, 0, 0};
#pragma unroll
  for (int r = 0; r < 32; r++) me.c[r] = (FULL || (r < n && lane < n)) ? __ldg(ip + r * n + lane) : 0.f;
#pragma unroll
  for (int r = 0; r < 32; r++) m[r & 3] = fmaxf(m[r & 3], fabsf(me.c[r]));
  // a power of two brings the largest entry of each column near 1: no square overflows; R is scaled back
  const int e = max((int)(__float_as_uint(fmaxf(fmaxf(m[0], m[1]), fmaxf(m[2], m[3]))) >> 23) - 127, -118);
  const float scale = __uint_as_float((uint32_t)(127 - e) << 23);
  me.factor = __uint_as_float((uint32_t)(127 + e) << 23);
#pragma unroll
  for (int r = 0; r < 32; r++) me.c[r] *= scale;
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


def _build():
    """The extension's function; one that serves nothing where it cannot be built or there is no GPU (torch.geqrf then serves every shape)."""
    if not torch.cuda.is_available():
        warnings.warn("no CUDA device: torch.geqrf serves every shape")
        return lambda a: None
    try:
        major, minor = torch.cuda.get_device_capability()
        os.environ.setdefault("TORCH_CUDA_ARCH_LIST", f"{major}.{minor}" + ("a" if major >= 9 else ""))
        extra = {"no_implicit_headers": True} if "no_implicit_headers" in inspect.signature(load_inline).parameters else {}
        return load_inline("qrkit_small_v114", cpp_sources=SMALL_BINDING, cuda_sources=SMALL_CUDA, extra_cflags=["-O2"],
                           extra_cuda_cflags=["-O3"], verbose=False, **extra).geqrf_small
    except Exception as error:  # a build that fails must not fail the answers
        warnings.warn(f"extension not built, torch.geqrf serves every shape: {error}")
        return lambda a: None


# (H, tau) of a contiguous float32 CUDA tensor (batch, n, n), 1 <= n <= 384 and batch >= 1; None for anything else. One C function without a frame of
# Python around it: at n = 32 a call of the host takes as long as the kernel.
geqrf_small = _build()


def custom_kernel(data: input_t) -> output_t:
    out = geqrf_small(data)
    return out if out is not None else tuple(torch.geqrf(data))
