#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v45 large: v44 with two CTAs an SM in larfb.

Algorithm  column_max -> for each 64 columns: geqr2 (reflectors of the previous panel, then two blocks of 32: Gram, recurrence, V = P M)
           beside larfb (older reflectors, by pairs of panels, on the columns further right)
Precision  FP32 storage; reflectors exact in FP16, tau = 2/v'v from the rounded v; panel products in two FP16 terms; larfb in one, FP32 accumulation
Shapes     1537 <= n <= 8192, any batch: this path; else torch.geqrf
Parent     v44_large_panel64
Result     see records/
Bound by   the panel chain: two exchanges between CTAs and one scalar recurrence for every 32 columns

How to read it. Columns are scaled by powers of two (exact) when they enter a product and unscaled when they leave it, so FP16 copies never
overflow. geqr2 spreads the rows of a panel over C CTAs of a cluster that sum small matrices through distributed shared memory (words in L2 where
a matrix needs more than 16 CTAs). A Gram matrix squares the condition of its 32 columns, so each pass checks its pivots and a bound on the growth of
rounding (both exact, the same in every CTA), ends before the first column that fails, and starts again behind it with a fresh Gram: right for any
input, at worst one pass a column. S = V0'V1 of a pair is formed by whoever applies it.
"""

from __future__ import annotations

import warnings

import torch
from torch.utils.cpp_extension import load_inline

from task import input_t, output_t

LARGE_CUDA = r"""
#include <cstdint>
#include <cstdio>
#include <type_traits>
#include <algorithm>
#include <cuda_fp16.h>
namespace large {
// ---------------------------------------------------------------- 1. small tools
#define UNROLL _Pragma("unroll")
__device__ __forceinline__ float fast_rcp(float x) { float r; asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float fast_rsqrt(float x) { float r; asm("rsqrt.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ uint32_t smem_addr(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ uint32_t bits(__half2 h) { return *reinterpret_cast<uint32_t*>(&h); }
__device__ __forceinline__ uint32_t pack(float x, float y) { return bits(__floats2half2_rn(x, y)); }
// x = hi + lo to about 22 bits, two numbers at a time
__device__ __forceinline__ void split(float x, float y, uint32_t& hi, uint32_t& lo) {
  __half2 h = __floats2half2_rn(x, y); float2 f = __half22float2(h);
  hi = bits(h); lo = pack(x - f.x, y - f.y); }
// D (16x8, fp32) += A (16x16, fp16, rows) B (16x8, fp16, columns)
__device__ __forceinline__ void mma(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); }
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) { mma(d, a[0], a[1], a[2], a[3], b0, b1); }
__device__ __forceinline__ uint32_t transpose8(uint32_t x) { uint32_t y; asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(y) : "r"(x)); return y; }
__device__ __forceinline__ void ldsm4(uint32_t (&r)[4], uint32_t addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory"); }
__device__ __forceinline__ void ldsm4t(uint32_t (&r)[4], uint32_t addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory"); }
__device__ __forceinline__ void cp16(uint32_t dst, const void* src) { asm volatile("cp.async.cg.shared.global [%0],[%1],16;" :: "r"(dst), "l"(src) : "memory"); }
// the same, or 16 zero bytes
__device__ __forceinline__ void cp16z(uint32_t dst, const void* src, bool on) { asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" :: "r"(dst), "l"(src), "r"(on ? 16 : 0) : "memory"); }
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
// Power of two s with 8 <= s max|a_j| < 16 for a column whose largest entry has these bits: fp16 copies of a scaled column never overflow,
// and the scaling is exact. Zero columns and entries beyond 2^+-100 get the clamped factor.
__device__ __forceinline__ float column_scale(uint32_t maxbits) {
  int e = (int)(maxbits >> 23) - 127; e = e < -97 ? -97 : e > 100 ? 100 : e;
  return __uint_as_float((uint32_t)(127 + 3 - e) << 23); }
__device__ __forceinline__ float column_unscale(uint32_t maxbits) {
  int e = (int)(maxbits >> 23) - 127; e = e < -97 ? -97 : e > 100 ? 100 : e;
  return __uint_as_float((uint32_t)(127 - 3 + e) << 23); }
// ---------------------------------------------------------------- 2. column maxima
// colmax[mat][j] = bits of max_i |a_ij| (exact, order does not matter); the caller zeroes it. reads n^2 fp32 a matrix.
__global__ void __launch_bounds__(256) column_max(const float* a, uint32_t* colmax, int n, int rows) {
  const int c = blockIdx.x * 128 + (threadIdx.x & 31) * 4; const size_t mat = blockIdx.z; const int r0 = blockIdx.y * rows + (threadIdx.x >> 5);
  const float* p = a + mat * n * n + c; float4 v = make_float4(0, 0, 0, 0); const int r1 = min(n, (int)(blockIdx.y + 1) * rows);
  #pragma unroll 8
  for (int r = r0; r < r1; r += 8) { float4 x = *(const float4*)(p + (size_t)r * n); v.x = fmaxf(v.x, fabsf(x.x)); v.y = fmaxf(v.y, fabsf(x.y)); v.z = fmaxf(v.z, fabsf(x.z)); v.w = fmaxf(v.w, fabsf(x.w)); }
  __shared__ float4 s[8][32]; s[threadIdx.x >> 5][threadIdx.x & 31] = v; __syncthreads();
  if (threadIdx.x < 128) { const float* f = (const float*)s; float x = 0; UNROLL for (int i = 0; i < 8; i++) x = fmaxf(x, f[i * 128 + threadIdx.x]); atomicMax(colmax + mat * n + blockIdx.x * 128 + threadIdx.x, __float_as_uint(x)); }
}
// ---------------------------------------------------------------- 3. sums over the C CTAs that share a matrix
// Two transports. DSMEM: the CTAs are one cluster, st.async writes into a neighbour's shared memory and counts bytes on its mbarrier.
// Words (clusters hold at most 16 CTAs): every 8-byte word in L2 carries (value, tag); a reader polls the word itself, so there is no flag and
// no fence. Tags count up for ever (their base lives in device memory and each call moves it on), so words of earlier calls never match.
#ifdef SPIN_GUARD
#define SPIN_CHECK(k) { long long c = clock64(); if (!k) k = c; else if (c - k > 1000000000LL) { printf("spin: block %d thread %d line %d\n", blockIdx.x, threadIdx.x, __LINE__); __trap(); } }
#else
#define SPIN_CHECK(k)
#endif
__device__ __forceinline__ uint32_t map_rank(uint32_t addr, uint32_t rank) { uint32_t r; asm volatile("mapa.shared::cluster.u32 %0,%1,%2;" : "=r"(r) : "r"(addr), "r"(rank)); return r; }
__device__ __forceinline__ void cluster_sync() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ void mbar_init(uint32_t b) { asm volatile("mbarrier.init.shared.b64 [%0],1;" :: "r"(b) : "memory"); }
__device__ __forceinline__ void mbar_expect(uint32_t b, uint32_t bytes) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;" :: "r"(b), "r"(bytes) : "memory"); }
__device__ __forceinline__ void mbar_wait(uint32_t b, uint32_t phase) {
  uint32_t ok; long long spins = 0; (void)spins;
  do { asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}" : "=r"(ok) : "r"(b), "r"(phase) : "memory"); SPIN_CHECK(spins) } while (!ok); }
__device__ __forceinline__ void st_async(uint32_t dst, float4 v, uint32_t bar) { asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0],{%1,%2,%3,%4},[%5];" :: "r"(dst), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(bar) : "memory"); }
__device__ __forceinline__ void put2(void* p, float x, float y, uint32_t tag) {
  uint64_t a = ((uint64_t)tag << 32) | __float_as_uint(x), b = ((uint64_t)tag << 32) | __float_as_uint(y);
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0],{%1,%2};" :: "l"(p), "l"(a), "l"(b) : "memory"); }
__device__ __forceinline__ void put1(void* p, float x, uint32_t tag) {
  uint64_t a = ((uint64_t)tag << 32) | __float_as_uint(x); asm volatile("st.relaxed.gpu.global.b64 [%0],%1;" :: "l"(p), "l"(a) : "memory"); }
template <int K> __device__ __forceinline__ void get(const char* p, size_t step, uint32_t tag, float4 (&v)[K]) { // K x 4 words, all in flight together
  bool ok; uint64_t a[K][4]; long long spins = 0; (void)spins;
  do { ok = true;
    UNROLL for (int i = 0; i < K; i++) {
      asm volatile("ld.relaxed.gpu.global.v2.b64 {%0,%1},[%2];" : "=l"(a[i][0]), "=l"(a[i][1]) : "l"(p + i * step) : "memory");
      asm volatile("ld.relaxed.gpu.global.v2.b64 {%0,%1},[%2];" : "=l"(a[i][2]), "=l"(a[i][3]) : "l"(p + i * step + 16) : "memory"); }
    UNROLL for (int i = 0; i < K; i++) UNROLL for (int z = 0; z < 4; z++) ok = ok && ((uint32_t)(a[i][z] >> 32) == tag);
    SPIN_CHECK(spins)
  } while (!ok);
  UNROLL for (int i = 0; i < K; i++) v[i] = make_float4(__uint_as_float((uint32_t)a[i][0]), __uint_as_float((uint32_t)a[i][1]), __uint_as_float((uint32_t)a[i][2]), __uint_as_float((uint32_t)a[i][3])); }
// All-reduce of 2048 floats (K = 2 float4 a thread) by 256 threads: reduce-scatter to owners, sums in a fixed order (deterministic), all-gather.
template <int C, bool DSMEM> struct AllReduce {
  static constexpr int K = 2, IN = 4096 * K * (DSMEM ? 2 : 1), OUT = DSMEM ? 4096 * K * 2 : 0, SUM = DSMEM ? 4096 * K / C : 0, BYTES = IN + OUT + SUM + 64;
  static constexpr size_t WORDS = DSMEM ? 0 : (size_t)2 * (1024 * K * C + 1024 * K); // 8-byte words a matrix, double-buffered
  char *in, *out; float* total; uint32_t bar; char* words; uint32_t tag, rank; int parity, phase;
  __device__ void init(char* sm, char* words_, uint32_t tag_, uint32_t rank_) {
    in = sm; out = sm + IN; total = (float*)(sm + IN + OUT); bar = smem_addr(sm + IN + OUT + SUM); words = words_; tag = tag_; rank = rank_; parity = 0; phase = 0;
    if (DSMEM && threadIdx.x == 0) for (int i = 0; i < 4; i++) mbar_init(bar + 8 * i); }
  __device__ void sum(float4 (&v)[K]) {
    constexpr int F = 256 * K / C; const int tid = threadIdx.x; tag++;
    if constexpr (DSMEM) {
      const uint32_t ib = bar + 8 * parity, ob = bar + 16 + 8 * parity, inb = smem_addr(in) + parity * 4096 * K, outb = smem_addr(out) + parity * 4096 * K;
      if (tid == 0) { mbar_expect(ib, 4096 * K); mbar_expect(ob, 4096 * K); }
      UNROLL for (int i = 0; i < K; i++) { int f = i * 256 + tid, own = f / F, slot = f % F; st_async(map_rank(inb + (rank * F + slot) * 16, own), v[i], map_rank(ib, own)); }
      mbar_wait(ib, phase);
      const float* ip = (const float*)(in + parity * 4096 * K);
      for (int e = tid; e < 4 * F; e += 256) { float s = 0; UNROLL for (int u = 0; u < C; u++) s += ip[u * 4 * F + e]; total[e] = s; }
      __syncthreads();
      UNROLL for (int i = 0; i < K; i++) { int f = i * 256 + tid, dst = f / F, slot = f % F; st_async(map_rank(outb + (rank * F + slot) * 16, dst), ((float4*)total)[slot], map_rank(ob, dst)); }
      mbar_wait(ob, phase);
      UNROLL for (int i = 0; i < K; i++) v[i] = *(float4*)(out + parity * 4096 * K + (i * 256 + tid) * 16);
    } else {
      char* gin = words + (size_t)parity * (1024 * K * C + 1024 * K) * 8; char* gout = gin + (size_t)1024 * K * C * 8;
      UNROLL for (int i = 0; i < K; i++) { int f = i * 256 + tid, own = f / F, slot = f % F; char* d = gin + ((size_t)own * 1024 * K + (rank * F + slot) * 4) * 8; put2(d, v[i].x, v[i].y, tag); put2(d + 16, v[i].z, v[i].w, tag); }
      float4 r[K]; get<K>(gin + (size_t)rank * 1024 * K * 8 + tid * 32, 8192, tag, r);
      UNROLL for (int i = 0; i < K; i++) *(float4*)(in + (i * 256 + tid) * 16) = r[i];
      __syncthreads();
      const float* ip = (const float*)in;
      for (int e = tid; e < 4 * F; e += 256) { float s = 0; UNROLL for (int u = 0; u < C; u++) s += ip[u * 4 * F + e]; put1(gout + ((size_t)rank * 4 * F + e) * 8, s, tag); }
      get<K>(gout + tid * 32, 8192, tag, v);
      __syncthreads();
    }
    parity ^= 1; if (parity == 0) phase ^= 1; }
};
// ---------------------------------------------------------------- 4a. 32 reflectors from a 32x32 Gram matrix
// Three warps in a pipeline; named barriers hand over 4 rows at a time:
//   cholesky_warp    G = R'R without signs; lane j holds column j of what is left of G
//   pivot_rows_warp  eliminates the 32 pivot rows (lane = column): signs, 1/(alpha - beta), multipliers, rows w of the eliminated block
//   inverse_warp     M with V = P M (lane = panel column, rows of M = reflectors)
// Each works on 4 rows at a time: a short chain of shuffles inside the 4x4 pivot block, then one rank-4 update of the rows behind from shared memory. The registers
// shift by 4 rows, so the loops stay rolled (straight-line code for 32 columns would be bound by instruction fetch). Rows past 31 hold garbage that nothing reads.
constexpr float PIVOT_MIN = 1e-5f;  // pivot / column norm^2 below which the Gram has cancelled too far
constexpr float GROWTH_MAX = 300.f; // sum_k ||p_k|| |M_kj|: by how much V = P M magnifies rounding; a pivot alone does not bound it (triangular panels)
constexpr float TINY = 1e-20f;      // squared norm (columns start with a largest entry in [8,16)) that counts as zero
// r4: |R|, 4 rows of one column as a float4; r: R with signs; left: columns of the eliminated pivot block; wrow: its rows; m: M; inv: 1/(alpha - beta)
struct Recurrence { float *gram, *top, *r4, *left, *wrow, *r, *m, *inv; int* stop; static constexpr int FLOATS = 1024 + 1216 + 1216 + 1024 + 1280 + 32;
  __device__ void place(float* at) { r4 = at; left = r4 + 1024; wrow = left + 1216; r = wrow + 1216; m = r + 1024; inv = m + 1280; } };
__device__ __forceinline__ void bar_arrive(int id) { asm volatile("bar.arrive %0,64;" :: "r"(id) : "memory"); }
__device__ __forceinline__ void bar_join(int id) { asm volatile("bar.sync %0,64;" :: "r"(id) : "memory"); }
template <int L> using Len = std::integral_constant<int, L>;
template <int L> __device__ __forceinline__ void shift4(float (&a)[32]) { UNROLL for (int r = 0; r + 4 < L; r++) a[r] = a[r + 4]; }
// barriers 1..8: |R| rows 4c..4c+3 are in r4
__device__ __forceinline__ void cholesky_warp(const Recurrence& z, int lane, int done) {
  float G[32]; UNROLL for (int r = 0; r < 32; r++) G[r] = z.gram[r * 33 + lane] + z.gram[lane * 33 + r];
  const float g0 = 2.f * z.gram[lane * 34], thr = fmaxf(PIVOT_MIN * g0, TINY); int stop = 32; bool bad = false;
  auto pivot = [&](float gd) { return lane < done ? 0.f : (gd > thr ? fast_rsqrt(gd) : -1.f); }; // 1/|R_ii|, 0 before this pass's columns, -1 where the pivot cancelled
  float rs = __shfl_sync(~0u, pivot(G[0]), 0);
  auto chunk = [&](auto len, int i) { constexpr int L = decltype(len)::value; float R[4];
    UNROLL for (int u = 0; u < 4; u++) {
      if (rs < 0.f && !bad) { bad = true; stop = i + u; }
      R[u] = bad ? 0.f : G[u] * rs;
      if (u < 3) { float d = pivot(fmaf(-R[u], R[u], G[u + 1])); // right in lane i+u+1, where G[u+1] holds the diagonal: no round trip
        UNROLL for (int v = u + 1; v < 4; v++) { float x = __shfl_sync(~0u, R[u], (i + v) & 31); G[v] = fmaf(-x, R[u], G[v]); }
        rs = __shfl_sync(~0u, d, (i + u + 1) & 31); } }
    float d4 = G[4]; UNROLL for (int u = 0; u < 4; u++) d4 = fmaf(-R[u], R[u], d4);
    *(float4*)(z.r4 + (i >> 2) * 128 + lane * 4) = make_float4(R[0], R[1], R[2], R[3]); __syncwarp();
    rs = __shfl_sync(~0u, pivot(d4), (i + 4) & 31);
    bar_arrive(1 + (i >> 2));
    const float* b = z.r4 + (i >> 2) * 128 + (i + 4) * 4;
    UNROLL for (int r = 4; r < L; r++) { float4 x = *(const float4*)(b + (r - 4) * 4); G[r] = fmaf(-x.w, R[3], fmaf(-x.z, R[2], fmaf(-x.y, R[1], fmaf(-x.x, R[0], G[r])))); }
    shift4<L>(G); };
  #pragma unroll 1
  for (int i = 0; i < 16; i += 4) chunk(Len<32>(), i);
  #pragma unroll 1
  for (int i = 16; i < 32; i += 4) chunk(Len<16>(), i);
  unsigned nz = __ballot_sync(~0u, lane >= done && g0 > TINY);
  if (stop == done) stop = nz ? done + 1 : 32; // a zero column makes progress alone, with tau = 0; all zero: done
  if (lane == 0) *z.stop = stop;
}
// barriers 9..15: rows 4c..4c+3 of wrow and inv are ready, c = 1..7
__device__ __forceinline__ void pivot_rows_warp(const Recurrence& z, int lane) {
  float A[32]; UNROLL for (int r = 0; r < 32; r++) A[r] = z.top[r * 32 + lane];
  auto chunk = [&](auto len, int i) { constexpr int L = decltype(len)::value; const int me = lane - i; // 0..3: this lane's column is a pivot of the chunk
    float* col = z.left + lane * 36 + i;
    if (me >= 0 && me < 4) { UNROLL for (int r = 4; r < L; r += 4) if (i + r < 32) *(float4*)(col + r) = make_float4(A[r], A[r + 1], A[r + 2], A[r + 3]); } // as they are: the rank-4 update below works on the raw columns
    bar_join(1 + (i >> 2)); // (also orders the stores above within the warp)
    const float4 R4 = *(const float4*)(z.r4 + (i >> 2) * 128 + lane * 4); const float R[4] = {R4.x, R4.y, R4.z, R4.w};
    float c[4], cb[4][4]; // c[u]: this column's coefficient for pivot column u; cb[u][v]: that of the chunk's column v
    UNROLL for (int u = 0; u < 4; u++) {
      float x[4]; UNROLL for (int v = u + 1; v < 4; v++) x[v] = __shfl_sync(~0u, A[v], i + u);
      const float ad = A[u], sg = ad >= 0.f ? -1.f : 1.f, iv = R[u] > 0.f ? fast_rcp(fmaf(-sg, R[u], ad)) : 0.f; // valid in lane i+u
      const float ivi = __shfl_sync(~0u, iv, i + u), sgi = __shfl_sync(~0u, sg, i + u);
      const float Rs = ivi == 0.f ? A[u] : sgi * R[u], wv = A[u] - Rs;
      if (me >= u) z.r[(i + u) * 32 + lane] = Rs;
      z.wrow[(i + u) * 36 + lane] = wv;
      if (me == u) z.inv[lane] = iv;
      c[u] = me > u ? -ivi * wv : 0.f;
      UNROLL for (int v = u + 1; v < 4; v++) { A[v] = fmaf(x[v], c[u], A[v]); cb[u][v] = __shfl_sync(~0u, c[u], i + v); } }
    __syncwarp(); if (i) bar_arrive(8 + (i >> 2));
    c[2] = fmaf(cb[2][3], c[3], c[2]);                                            // the same update in terms of the raw columns
    c[1] = fmaf(cb[1][2], c[2], fmaf(cb[1][3], c[3], c[1]));
    c[0] = fmaf(cb[0][1], c[1], fmaf(cb[0][2], c[2], fmaf(cb[0][3], c[3], c[0])));
    const float* b = z.left + i * 37; // column i+u, row i+r: (i+u)*36 + i + r
    UNROLL for (int r = 4; r < L; r += 4) UNROLL for (int u = 0; u < 4; u++) { float4 x = *(const float4*)(b + u * 36 + r); A[r] = fmaf(x.x, c[u], A[r]); A[r + 1] = fmaf(x.y, c[u], A[r + 1]); A[r + 2] = fmaf(x.z, c[u], A[r + 2]); A[r + 3] = fmaf(x.w, c[u], A[r + 3]); }
    __syncwarp();
    if (me >= 0 && me < 4) { UNROLL for (int r = 0; r < L; r += 4) if (i + r < 32) *(float4*)(col + r) = make_float4(A[r], A[r + 1], A[r + 2], A[r + 3]); }
    shift4<L>(A); };
  #pragma unroll 1
  for (int i = 0; i < 16; i += 4) chunk(Len<32>(), i);
  #pragma unroll 1
  for (int i = 16; i < 32; i += 4) chunk(Len<16>(), i);
}
// 2^e with 2^e <= ||p_k|| < 2^(e+1): panel columns enter V = P M as 64 p_k 2^-e, rows of M as 8 * 2^e M, so that fp16 pairs stay in range (|M| is bounded by GROWTH_MAX)
__device__ __forceinline__ float pow2norm(float g0) { return g0 <= TINY ? 1.f : __uint_as_float((uint32_t)(127 + ((((int)(__float_as_uint(g0) >> 23) - 127)) >> 1)) << 23); }
__device__ __forceinline__ void inverse_warp(const Recurrence& z, int lane) {
  float M[32]; const float sc = 8.f * pow2norm(2.f * z.gram[lane * 34]); UNROLL for (int r = 0; r < 32; r++) M[r] = (r == lane) ? sc : 0.f;
  auto chunk = [&](auto len, int i) { constexpr int L = decltype(len)::value; float mi[4];
    if (i == 0) bar_join(9); else if (i > 4) bar_join(8 + (i >> 2)); // there are 15 barriers: the first two chunks share one
    const float4 iv4 = *(const float4*)(z.inv + i); const float iv[4] = {iv4.x, iv4.y, iv4.z, iv4.w};
    const float* b = z.wrow + i * 37; // row i+u, column i+r
    UNROLL for (int u = 0; u < 4; u++) { mi[u] = M[u] * iv[u]; z.m[(i + u) * 40 + lane] = mi[u]; float4 x = *(const float4*)(b + u * 36); const float w[4] = {x.x, x.y, x.z, x.w}; UNROLL for (int v = u + 1; v < 4; v++) M[v] = fmaf(-w[v], mi[u], M[v]); }
    UNROLL for (int r = 4; r < L; r += 4) UNROLL for (int u = 0; u < 4; u++) { float4 x = *(const float4*)(b + u * 36 + r); M[r] = fmaf(-x.x, mi[u], M[r]); M[r + 1] = fmaf(-x.y, mi[u], M[r + 1]); M[r + 2] = fmaf(-x.z, mi[u], M[r + 2]); M[r + 3] = fmaf(-x.w, mi[u], M[r + 3]); }
    shift4<L>(M); };
  #pragma unroll 1
  for (int i = 0; i < 16; i += 4) chunk(Len<32>(), i);
  #pragma unroll 1
  for (int i = 16; i < 32; i += 4) chunk(Len<16>(), i);
}
// w <- T'w for one column w of W = V'C, without T: T^-1 = diag(1/tau) + striu(V'V). ss[i*36 + j], j > i, holds V'V. Two threads a column: thread h of a pair
// holds the groups of 4 rows with parity h; the group that is due is solved by its owner and sent to the other.
__device__ __forceinline__ void solve_t(const float* wrow, float* out, const float* ss, const float* tau, int lane) {
  const int h = lane & 1; float w[4][4];
  UNROLL for (int k = 0; k < 4; k++) { float4 x = *(const float4*)(wrow + (2 * k + h) * 4); w[k][0] = x.x; w[k][1] = x.y; w[k][2] = x.z; w[k][3] = x.w; }
  UNROLL for (int c = 0; c < 8; c++) {
    float o[4]; const float* sp = ss + 4 * c * 36; const float4 t = *(const float4*)(tau + 4 * c), s0 = *(const float4*)(sp + 4 * c), s1 = *(const float4*)(sp + 36 + 4 * c); const float s23 = sp[72 + 4 * c + 3]; const float* x4 = w[c >> 1];
    o[0] = t.x * x4[0]; o[1] = t.y * fmaf(-s0.y, o[0], x4[1]); o[2] = t.z * fmaf(-s1.z, o[1], fmaf(-s0.z, o[0], x4[2])); o[3] = t.w * fmaf(-s23, o[2], fmaf(-s1.w, o[1], fmaf(-s0.w, o[0], x4[3])));
    UNROLL for (int u = 0; u < 4; u++) o[u] = __shfl_sync(~0u, o[u], (lane & ~1) | (c & 1));
    if (h == (c & 1)) *(float4*)(out + 4 * c) = make_float4(o[0], o[1], o[2], o[3]);
    UNROLL for (int k = (c + 1) >> 1; k < 4; k++) UNROLL for (int u = 0; u < 4; u++) { // after an even group its owner also works on that group, which is finished: harmless
      float4 x = *(const float4*)(sp + u * 36 + (2 * k + h) * 4); w[k][0] = fmaf(-x.x, o[u], w[k][0]); w[k][1] = fmaf(-x.y, o[u], w[k][1]); w[k][2] = fmaf(-x.z, o[u], w[k][2]); w[k][3] = fmaf(-x.w, o[u], w[k][3]); } }
}
// ---------------------------------------------------------------- 4b. geqr2: a panel of 64 columns by C CTAs, rows kept in registers
// First the panel gets the 64 reflectors of the previous one (larfb; everything older has been applied by the far updates), then it is factored.
// Rows are spread over the CTAs: each holds RP rows x 64 columns of C^T as mma accumulators: acc[mt][nt][.] is columns mt*16 + g (+8), rows
// (nt*8 + w)*8 + 2q (+1) of the CTA's rows (g = lane/4, q = lane%4, w = warp). The same registers are the A operand of C^T V, both operands of the Gram
// and the accumulator of C^T -= W'^T V^T: no staging. The open block of 32 columns is always slot 0 (slots rotate). acc ends as H itself.
template <int NTL, int C, bool DSMEM> struct PanelShape {
  static constexpr int S = 2, NB = 64, RP = 64 * NTL, LD = RP + 8 /* halves a row of V^T or C^T: 16 bytes of padding keep ldmatrix free of conflicts */, TR = NB / C;
  using Reduce = AllReduce<C, DSMEM>;
  static constexpr int TILE = 64 * LD * 2, LDW = 72 * 2;
  // larfb: V^T, C^T in fp16, inbox of partial W, all of W', this CTA's columns of W and W'
  static constexpr int V = 0, C16 = TILE, IN = C16 + TILE, WALL = IN + 16384, WOWN = WALL + 64 * LDW, WOUT = WOWN + 8 * LDW, END_N = WOUT + 8 * LDW;
  // factor: red = partial sums of the 8 warps; rec = the recurrence; W, W' = columns of both slots and 32 identity rows
  static constexpr int RED = 0, REC = RED + 65536, W = REC + 23296, WP = W + 96 * 144, TOP = WP + 96 * 144, GRAM = TOP + 4096, SS = GRAM + 4352, T = SS + 32 * 144 + 64, END_F = T + TR * NB * 4;
  static constexpr int SC = ((END_N > END_F ? END_N : END_F) + 127) / 128 * 128, X = SC + 2048, BYTES = X + Reduce::BYTES;
  // larfb partials and results as words (only without DSMEM)
  static constexpr size_t NEAR_WORDS = DSMEM ? 0 : (size_t)4096 * C + 2048, WORDS = Reduce::WORDS + NEAR_WORDS; };
// ts: T^T of each panel (64 x 64, fp16, [column][row])
constexpr int TS = 4096;
struct PanelArgs { const float* src; float* h; float* tau; __half* vt; __half* ts; const uint32_t* colmax; const uint32_t* epoch; char* words; int* passes; size_t words_stride; uint32_t tag; int n, r0, mat0; };

template <int NTL, int C, bool DSMEM> __global__ void __launch_bounds__(256, 1) geqr2(PanelArgs p) {
  using P = PanelShape<NTL, C, DSMEM>; constexpr int S = 2, NB = P::NB, RP = P::RP, LD = P::LD; extern __shared__ __align__(128) char sm[];
  asm volatile("griddepcontrol.wait;" ::: "memory"); asm volatile("griddepcontrol.launch_dependents;"); // everything before has ended; the far update may start beside this kernel
  float* red = (float*)(sm + P::RED); float* sW = (float*)(sm + P::W); float* sWp = (float*)(sm + P::WP); float* sTop = (float*)(sm + P::TOP); float* sGram = (float*)(sm + P::GRAM);
  float* sSs = (float*)(sm + P::SS); float* sT = (float*)(sm + P::T); float* sScale = (float*)(sm + P::SC); float* sUnscale = sScale + 64; float* sTau = sScale + 256; int* sStop = (int*)(sTau + 32); float* sNorm = sTau + 36; float* sPs = sTau + 68;
  Recurrence z; z.gram = sGram; z.top = sTop; z.stop = sStop; z.place((float*)(sm + P::REC));
  const int tid = threadIdx.x, lane = tid & 31, w = tid >> 5, g = lane >> 2, q = lane & 3;
  const uint32_t rank = blockIdx.x % C; const size_t slot = blockIdx.x / C, mat = p.mat0 + slot;
  const int n = p.n, c0 = p.r0, row0 = p.r0 ? 64 : 0, rb = p.r0 - row0, m = n - rb; // rows rb.. of the matrix; the first pivot row is row0 below; rows above it become R in the larfb
  const float* src = p.src + mat * n * n + (size_t)rb * n + c0; float* h = p.h + mat * n * n + (size_t)rb * n + c0; __half* ts = p.ts + (mat * (n / 64) + p.r0 / 64) * TS;
  typename P::Reduce reduce; char* words = p.words + slot * p.words_stride; reduce.init(sm + P::X, words, *p.epoch + p.tag, rank);
  const uint32_t bar_in = smem_addr(sScale + 480), bar_out = bar_in + 8;
  if (DSMEM && tid == 0) { mbar_init(bar_in); mbar_init(bar_out); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
  if (tid < 64) { uint32_t b = p.colmax[mat * n + c0 + tid]; sScale[tid] = column_scale(b); sUnscale[tid] = column_unscale(b); }
  auto row_of = [&](int nt, int e) { return (int)rank * RP + (nt * 8 + w) * 8 + 2 * q + e; }; // row below rb
  float acc[2 * S][NTL][4];
  if (row0) { const __half* vprev = p.vt + (mat * n + rb) * (size_t)n + rb + rank * RP; const uint32_t aV = smem_addr(sm + P::V);
    for (int f = tid; f < 64 * (RP / 8); f += 256) { int r = f / (RP / 8), u = f % (RP / 8); cp16z(aV + (r * LD + u * 8) * 2, vprev + (size_t)r * n + u * 8, (int)rank * RP + u * 8 < m); } cp_commit(); }
  __syncthreads(); // scales
  UNROLL for (int mt = 0; mt < 4; mt++) UNROLL for (int nt = 0; nt < NTL; nt++) UNROLL for (int r = 0; r < 4; r++) {
    int col = mt * 16 + g + 8 * (r >> 1), row = row_of(nt, r & 1); acc[mt][nt][r] = row < m ? src[(size_t)row * n + col] * sScale[col] : 0.f; }

  // ---- larfb: C -= V T' V'C with the 64 reflectors of the previous panel
  if (row0) {
    const uint32_t aV = smem_addr(sm + P::V), aC = smem_addr(sm + P::C16), aIn = smem_addr(sm + P::IN), aWall = smem_addr(sm + P::WALL); __half* hC = (__half*)(sm + P::C16); __half* wown = (__half*)(sm + P::WOWN); __half* wout = (__half*)(sm + P::WOUT);
    const uint32_t near_tag = *p.epoch + p.tag + 512; char* near_words = words + P::Reduce::WORDS * 8;
    uint32_t tf[8]; UNROLL for (int ks = 0; ks < 4; ks++) UNROLL for (int e = 0; e < 2; e++) tf[2 * ks + e] = __ldcg((const unsigned int*)(ts - TS + (8 * w + g) * 64 + ks * 16 + 2 * q + 8 * e)); // B fragments of T: columns 8w..
    UNROLL for (int mt = 0; mt < 4; mt++) UNROLL for (int nt = 0; nt < NTL; nt++) UNROLL for (int e = 0; e < 2; e++)
      *(uint32_t*)&hC[(mt * 16 + g + 8 * e) * LD + (nt * 8 + w) * 8 + 2 * q] = pack(acc[mt][nt][2 * e], acc[mt][nt][2 * e + 1]);
    cp_wait<0>(); if (DSMEM) { if (tid == 0) { mbar_expect(bar_in, 16384); mbar_expect(bar_out, 8192); } cluster_sync(); } else __syncthreads(); // all barriers are initialised before the first message
    // partial W over this CTA's rows: warp = 16 reflectors x 32 columns; owner r of the exchange gets CW = 64/C columns,
    // a lane's float4 is (reflector, 2 columns), (reflector + 8, same columns)
    constexpr int CW = 64 / C, QN = 32 / C, F = 1024 / C; const int rt = w & 3, n0 = (w >> 2) * 4;
    { float pa[4][4]; UNROLL for (int i = 0; i < 4; i++) UNROLL for (int e = 0; e < 4; e++) pa[i][e] = 0.f;
      #pragma unroll 4
      for (int ks = 0; ks < RP / 16; ks++) {
        uint32_t a[4]; ldsm4(a, aV + ((rt * 16 + (lane & 15)) * LD + ks * 16 + (lane >> 4) * 8) * 2);
        UNROLL for (int nt = 0; nt < 4; nt += 2) { uint32_t b[4]; ldsm4(b, aC + (((n0 + nt) * 8 + (lane & 7) + ((lane >> 4) << 3)) * LD + ks * 16 + ((lane >> 3) & 1) * 8) * 2);
          mma(pa[nt], a, b[0], b[1]); mma(pa[nt + 1], a, b[2], b[3]); } }
      UNROLL for (int nt = 0; nt < 4; nt++) { const int own = (n0 + nt) * (4 / QN) + q / QN, at = rt * 8 * QN + g * QN + q % QN; float4 v = make_float4(pa[nt][0], pa[nt][1], pa[nt][2], pa[nt][3]);
        if constexpr (DSMEM) st_async(map_rank(aIn + (rank * F + at) * 16, own), v, map_rank(bar_in, own));
        else { char* d = near_words + (size_t)((own * C + rank) * F + at) * 32; put2(d, v.x, v.y, near_tag); put2(d + 16, v.z, v.w, near_tag); } } }
    // sums of this CTA's columns, W' = T'W for them (stored negated), to everybody
    if constexpr (DSMEM) mbar_wait(bar_in, 0);
    for (int e = tid; e < F; e += 256) { const int k = e / (8 * QN) * 16 + e / QN % 8, c = e % QN * 2; float4 s = make_float4(0, 0, 0, 0);
      if constexpr (DSMEM) { UNROLL for (int u = 0; u < C; u++) { float4 x = *(float4*)(sm + P::IN + (u * F + e) * 16); s.x += x.x; s.y += x.y; s.z += x.z; s.w += x.w; } }
      else { for (int u = 0; u < C; u += 4) { float4 x[4]; get<4>(near_words + (size_t)((rank * C + u) * F + e) * 32, (size_t)F * 32, near_tag, x); UNROLL for (int i = 0; i < 4; i++) { s.x += x[i].x; s.y += x[i].y; s.z += x[i].z; s.w += x[i].w; } } }
      wown[c * 72 + k] = __float2half_rn(s.x); wown[(c + 1) * 72 + k] = __float2half_rn(s.y); wown[c * 72 + k + 8] = __float2half_rn(s.z); wown[(c + 1) * 72 + k + 8] = __float2half_rn(s.w); }
    __syncthreads();
    { float d[4] = {0, 0, 0, 0}; UNROLL for (int ks = 0; ks < 4; ks++) mma(d, *(uint32_t*)&wown[g * 72 + ks * 16 + 2 * q], 0u, *(uint32_t*)&wown[g * 72 + ks * 16 + 2 * q + 8], 0u, tf[2 * ks], tf[2 * ks + 1]); // 8 rows are enough: CW <= 8
      *(uint32_t*)&wout[g * 72 + 8 * w + 2 * q] = pack(-d[0], -d[1]); }
    __syncthreads();
    if constexpr (DSMEM) { for (int i = tid; i < CW * 8 * C; i += 256) { int to = i / (CW * 8), c = i % (CW * 8) / 8, u = i % 8; st_async(map_rank(aWall + (rank * CW + c) * P::LDW + u * 16, to), *(float4*)((char*)wout + c * P::LDW + u * 16), map_rank(bar_out, to)); } mbar_wait(bar_out, 0); }
    else { char* out = near_words + (size_t)4096 * C * 8;
      for (int i = tid; i < CW * 8; i += 256) { int c = i / 8, u = i % 8; float4 x = *(float4*)((char*)wout + c * P::LDW + u * 16); char* d = out + (size_t)((rank * CW + c) * 8 + u) * 32; put2(d, x.x, x.y, near_tag); put2(d + 16, x.z, x.w, near_tag); }
      float4 x[2]; get<2>(out + tid * 32, 8192, near_tag, x); UNROLL for (int i = 0; i < 2; i++) { int f = tid + 256 * i; *(float4*)(sm + P::WALL + f / 8 * P::LDW + f % 8 * 16) = x[i]; } __syncthreads(); }
    UNROLL for (int ks = 0; ks < 4; ks++) { // C^T += (-W')^T V^T
      uint32_t b[NTL / 2][4]; UNROLL for (int np = 0; np < NTL / 2; np++) ldsm4t(b[np], aV + ((ks * 16 + (lane & 15)) * LD + ((2 * np + (lane >> 4)) * 8 + w) * 8) * 2);
      UNROLL for (int mt = 0; mt < 4; mt++) { uint32_t a[4]; ldsm4(a, aWall + (mt * 16 + (lane & 15)) * P::LDW + ks * 32 + (lane >> 4) * 16);
        UNROLL for (int np = 0; np < NTL / 2; np++) { mma(acc[mt][2 * np], a, b[np][0], b[np][1]); mma(acc[mt][2 * np + 1], a, b[np][2], b[np][3]); } } }
    __syncthreads();
  } else if (DSMEM) cluster_sync();

  // ---- factor
  int passes = 0; const int tile0 = (int)rank * (RP / 8) + w - row0 / 8; const bool pivots_here = (int)rank == row0 / RP; // tile of 8 rows of this warp relative to the first pivot row
  for (int i = tid; i < P::TR * NB; i += 256) sT[i] = 0.f;
  for (int i = tid; i < 32 * 36; i += 256) sW[NB * 36 + i] = (i / 36 == i % 36) ? 1.f : 0.f;
  __syncthreads();
  #pragma unroll 1
  for (int s = 0; s < S; s++) {
    int done = 0; // columns of this block of 32 that are finished
    #pragma unroll 1
    while (done < 32) {
      passes++; const int lim = 32 * s + done; // rows above row0 + lim are final
      // -- (1) Gram of the open columns and rows: sGram = HH/2 + HL, so that G = X + X'; pivot rows ride along in the same sum
      UNROLL for (int mt = 0; mt < 2; mt++) {
        float ga[4][4]; UNROLL for (int ct = 0; ct < 4; ct++) UNROLL for (int r = 0; r < 4; r++) ga[ct][r] = 0;
        UNROLL for (int ks = 0; ks < NTL / 2; ks++) {
          uint32_t hi[2][4], lo[2][4];
          UNROLL for (int m2 = 0; m2 < 2; m2++) UNROLL for (int y = 0; y < 4; y++) { int nt = 2 * ks + (y >> 1); bool on = m2 * 16 + g + 8 * (y & 1) >= done;
            split(on && row_of(nt, 0) >= row0 + lim ? acc[m2][nt][(y & 1) * 2] : 0.f, on && row_of(nt, 1) >= row0 + lim ? acc[m2][nt][(y & 1) * 2 + 1] : 0.f, hi[m2][y], lo[m2][y]); }
          UNROLL for (int ct = 0; ct < 4; ct++) { int m2 = ct >> 1, hh = ct & 1; __half2 hf = __float2half2_rn(0.5f); uint32_t q0 = bits(__hmul2(*(__half2*)&hi[m2][hh], hf)), q1 = bits(__hmul2(*(__half2*)&hi[m2][2 + hh], hf));
            mma(ga[ct], hi[mt], q0, q1); mma(ga[ct], hi[mt], lo[m2][hh], lo[m2][2 + hh]); } }
        UNROLL for (int ct = 0; ct < 4; ct++) *(float4*)&red[(((w * 2 + mt) * 4 + ct) * 32 + lane) * 4] = make_float4(ga[ct][0], ga[ct][1], ga[ct][2], ga[ct][3]); }
      if (pivots_here) UNROLL for (int nt = 0; nt < NTL; nt++) { int t = tile0 + nt * 8 - 4 * s; if (t >= 0 && t < 4) UNROLL for (int mt = 0; mt < 2; mt++) UNROLL for (int r = 0; r < 4; r++) {
        int col = mt * 16 + g + 8 * (r >> 1), row = t * 8 + 2 * q + (r & 1); sTop[row * 32 + col] = (col >= done && row >= done) ? acc[mt][nt][r] : 0.f; } }
      __syncthreads();
      float4 v[2]; v[0] = v[1] = make_float4(0, 0, 0, 0);
      UNROLL for (int u = 0; u < 8; u++) { float4 x = *(float4*)&red[((u * 8 + w) * 32 + lane) * 4]; v[0].x += x.x; v[0].y += x.y; v[0].z += x.z; v[0].w += x.w; }
      if (pivots_here) v[1] = ((float4*)sTop)[tid];
      reduce.sum(v);
      { float* d = &sGram[((w >> 2) * 16 + g) * 33 + (w & 3) * 8 + 2 * q]; d[0] = v[0].x; d[1] = v[0].y; d[8 * 33] = v[0].z; d[8 * 33 + 1] = v[0].w; } ((float4*)sTop)[tid] = v[1];
      __syncthreads();

      // -- (2) recurrence, repeated in every CTA from the same numbers, then the growth test: the pass ends before the first column that fails
      if (w == 0) cholesky_warp(z, lane, done); else if (w == 1) pivot_rows_warp(z, lane); else if (w == 2) inverse_warp(z, lane);
      else if (w == 3) { float g0 = 2.f * sGram[lane * 34], e = pow2norm(g0); sNorm[lane] = sqrtf(g0) / (8.f * e); sPs[lane] = 64.f / e; }
      __syncthreads();
      { const int i = tid >> 3, k4 = (tid & 7) * 4; float4 mm = *(float4*)&z.m[i * 40 + k4], nn = *(float4*)&sNorm[k4]; float a = fabsf(mm.x) * nn.x + fabsf(mm.y) * nn.y + fabsf(mm.z) * nn.z + fabsf(mm.w) * nn.w;
        a += __shfl_xor_sync(~0u, a, 1); a += __shfl_xor_sync(~0u, a, 2); a += __shfl_xor_sync(~0u, a, 4);
        if ((tid & 7) == 0 && a > GROWTH_MAX) atomicMin(sStop, i > done ? i : done + 1); }

      // -- (3) V = P M, rounded to fp16: the reflectors are exact in fp16 from here on, tau = 2/v'v follows the rounded v.
      // The pivot block comes from the recurrence: sVtop (unit lower V), sHtop (R above, V below).
      float* sVtop = sGram; float* sHtop = sTop;
      { const int i = tid >> 3, j4 = (tid & 7) * 4; float vt[4], ht[4];
        UNROLL for (int e = 0; e < 4; e++) { int j = j4 + e; float iv = z.inv[j]; float lv = __half2float(__float2half_rn(z.left[j * 36 + i] * iv)); vt[e] = i > j ? lv : (i == j && iv != 0.f ? 1.f : 0.f); ht[e] = i > j ? lv : z.r[i * 32 + j]; if (i < done) vt[e] = 0.f; }
        *(float4*)&sVtop[i * 32 + j4] = make_float4(vt[0], vt[1], vt[2], vt[3]); *(float4*)&sHtop[i * 32 + j4] = make_float4(ht[0], ht[1], ht[2], ht[3]); }
      __syncthreads();
      const int stop = *sStop; uint32_t vh[2][NTL][2]; bool in[4]; // vh: V of this pass, in[c]: does column c*8+g belong to it
      { uint32_t mh[3][4], ml[3][4]; // M is triangular: three of its four 16x16 tiles
        UNROLL for (int f = 0; f < 3; f++) { int mt = f ? 1 : 0, kk = f == 2 ? 1 : 0; UNROLL for (int y = 0; y < 4; y++) { float2 x = *(float2*)&z.m[(mt * 16 + g + 8 * (y & 1)) * 40 + kk * 16 + 2 * q + 8 * (y >> 1)]; if (mt * 16 + g + 8 * (y & 1) >= stop) x = make_float2(0.f, 0.f); split(x.x, x.y, mh[f][y], ml[f][y]); } }
        float ps[4]; UNROLL for (int c = 0; c < 4; c++) { in[c] = c * 8 + g >= done && c * 8 + g < stop; ps[c] = in[c] ? sPs[c * 8 + g] : 0.f; }
        UNROLL for (int nt = 0; nt < NTL; nt++) { const int tt = tile0 + nt * 8 - 4 * s; // warp-uniform: < 0 rows already final, 0..3 pivot rows
          if (tt < 0) { UNROLL for (int c = 0; c < 4; c++) vh[c >> 1][nt][c & 1] = 0u; }
          else if (tt < 4) { const int b0 = tt * 8 + 2 * q; UNROLL for (int c = 0; c < 4; c++) { const int cc = c * 8 + g; float x = in[c] ? sVtop[b0 * 32 + cc] : 0.f, y = in[c] ? sVtop[(b0 + 1) * 32 + cc] : 0.f; vh[c >> 1][nt][c & 1] = pack(x, y);
            float hx = sHtop[b0 * 32 + cc], hy = sHtop[(b0 + 1) * 32 + cc]; if (in[c] && b0 >= done) acc[c >> 1][nt][(c & 1) * 2] = hx; if (in[c] && b0 + 1 >= done) acc[c >> 1][nt][(c & 1) * 2 + 1] = hy; } }
          else { uint32_t bh[4], bl[4]; float d[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, d2[4] = {0, 0, 0, 0};
            UNROLL for (int ct = 0; ct < 4; ct++) { split(acc[ct >> 1][nt][(ct & 1) * 2] * ps[ct], acc[ct >> 1][nt][(ct & 1) * 2 + 1] * ps[ct], bh[ct], bl[ct]); bh[ct] = transpose8(bh[ct]); bl[ct] = transpose8(bl[ct]); }
            mma(d[0], ml[0], bh[0], bh[1]); mma(d[1], ml[1], bh[0], bh[1]); mma(d2, ml[2], bh[2], bh[3]);
            mma(d[0], mh[0], bl[0], bl[1]); mma(d[1], mh[1], bl[0], bl[1]); mma(d2, mh[2], bl[2], bl[3]);
            mma(d[0], mh[0], bh[0], bh[1]); mma(d[1], mh[1], bh[0], bh[1]); mma(d2, mh[2], bh[2], bh[3]);
            UNROLL for (int r = 0; r < 4; r++) d[1][r] += d2[r];
            UNROLL for (int c = 0; c < 4; c++) { __half2 v2 = __floats2half2_rn(in[c] ? d[c >> 1][(c & 1) * 2] * 0.001953125f : 0.f, in[c] ? d[c >> 1][(c & 1) * 2 + 1] * 0.001953125f : 0.f); vh[c >> 1][nt][c & 1] = bits(v2); // 2^-9 undoes 64 and 8
              float2 f = __half22float2(v2); acc[c >> 1][nt][(c & 1) * 2] = in[c] ? f.x : acc[c >> 1][nt][(c & 1) * 2]; acc[c >> 1][nt][(c & 1) * 2 + 1] = in[c] ? f.y : acc[c >> 1][nt][(c & 1) * 2 + 1]; } } } }

      // -- (4) W^T = slots^T V, summed over warps and CTAs. Slots hold earlier V (for T), this V (for V'V) and open C.
      UNROLL for (int mt = 0; mt < 2 * S; mt++) {
        float wa[4][4]; UNROLL for (int ct = 0; ct < 4; ct++) UNROLL for (int r = 0; r < 4; r++) wa[ct][r] = 0;
        UNROLL for (int ks = 0; ks < NTL / 2; ks++) {
          uint32_t ah[4], al[4]; UNROLL for (int y = 0; y < 4; y++) { split(acc[mt][2 * ks + (y >> 1)][(y & 1) * 2], acc[mt][2 * ks + (y >> 1)][(y & 1) * 2 + 1], ah[y], al[y]);
            if (mt < 2) { ah[y] = in[(mt & 1) * 2 + (y & 1)] ? vh[mt & 1][2 * ks + (y >> 1)][y & 1] : ah[y]; al[y] = in[(mt & 1) * 2 + (y & 1)] ? 0u : al[y]; } } // own columns: V with its unit diagonal, acc has R there
          UNROLL for (int ct = 0; ct < 4; ct++) { mma(wa[ct], ah, vh[ct >> 1][2 * ks][ct & 1], vh[ct >> 1][2 * ks + 1][ct & 1]); mma(wa[ct], al, vh[ct >> 1][2 * ks][ct & 1], vh[ct >> 1][2 * ks + 1][ct & 1]); } }
        UNROLL for (int ct = 0; ct < 4; ct++) *(float4*)&red[(((w * 2 * S + mt) * 4 + ct) * 32 + lane) * 4] = make_float4(wa[ct][0], wa[ct][1], wa[ct][2], wa[ct][3]); }
      __syncthreads();
      float4 wv[S]; UNROLL for (int i = 0; i < S; i++) { wv[i] = make_float4(0, 0, 0, 0); UNROLL for (int u = 0; u < 8; u++) { float4 x = *(float4*)&red[((u * 8 * S + i * 8 + w) * 32 + lane) * 4]; wv[i].x += x.x; wv[i].y += x.y; wv[i].z += x.z; wv[i].w += x.w; } }
      reduce.sum(wv);
      UNROLL for (int i = 0; i < S; i++) { int tile = i * 8 + w, mt = tile >> 2, ct = tile & 3, col = mt * 16 + g, rf = ct * 8 + 2 * q;
        *(float2*)&sW[col * 36 + rf] = make_float2(wv[i].x, wv[i].y); *(float2*)&sW[(col + 8) * 36 + rf] = make_float2(wv[i].z, wv[i].w);
        if (i == 0) { float t4[4] = {wv[i].x, wv[i].y, wv[i].z, wv[i].w}; UNROLL for (int e = 0; e < 4; e++) { int r = col + 8 * (e >> 1), j = rf + (e & 1);
          if (j > r) sSs[r * 36 + j] = t4[e]; if (j == r) sTau[r] = t4[e] > 0.5f ? 2.f / t4[e] : 0.f; } } } // diagonal: v'v >= 1, or 0 where the column took no part
      __syncthreads();

      // -- (5) W' = T'W by substitution, two threads a column (identity rows give this pass's T), then C -= V W'
      if (tid < 2 * (NB + 32)) solve_t(sW + (tid >> 1) * 36, sWp + (tid >> 1) * 36, sSs, sTau, lane);
      if (rank == 0 && w == 7 && lane >= done && lane < stop) p.tau[mat * n + c0 + 32 * s + lane] = sTau[lane];
      __syncthreads();
      UNROLL for (int kk = 0; kk < 2; kk++) {
        uint32_t bt[NTL][2]; UNROLL for (int nt = 0; nt < NTL; nt++) { bt[nt][0] = transpose8(vh[kk][nt][0]); bt[nt][1] = transpose8(vh[kk][nt][1]); }
        UNROLL for (int mt = 0; mt < 2 * S; mt++) if (mt < 2 * (S - s)) {
          uint32_t ah[4], al[4]; UNROLL for (int y = 0; y < 4; y++) { int cl = mt * 16 + g + 8 * (y & 1); float2 x = *(float2*)&sWp[cl * 36 + kk * 16 + 2 * q + 8 * (y >> 1)]; if (mt < 2 && cl < stop) x = make_float2(0.f, 0.f); split(-x.x, -x.y, ah[y], al[y]); }
          UNROLL for (int nt = 0; nt < NTL; nt++) { mma(acc[mt][nt], al, bt[nt][0], bt[nt][1]); mma(acc[mt][nt], ah, bt[nt][0], bt[nt][1]); } } }
      // -- T, rows spread over the CTAs: T[i][j] = -sum_k T[i][k] W'[k][j] over the earlier reflectors k
      for (int e = tid; e < P::TR * 32; e += 256) { const int il = e >> 5, j = e & 31, i = rank * P::TR + il;
        if (j >= done && j < stop) { float t = 0.f;
          if (i < lim) { float t4[4] = {0, 0, 0, 0}; // W'[k][j] of an earlier block lies in slot k/32 - s + 2, of this block in slot 0
          for (int k = i & ~3; k < lim; k += 4) { const float* wp = sWp + ((k < 32 * s ? 32 * (S - s) : -32 * s) + k) * 36 + j; UNROLL for (int y = 0; y < 4; y++) if (k + y < lim) t4[y] = fmaf(-sT[il * NB + k + y], wp[y * 36], t4[y]); } t = (t4[0] + t4[1]) + (t4[2] + t4[3]); }
        else if (i < 32 * s + stop) t = sWp[(NB + i - 32 * s) * 36 + j];
          sT[il * NB + 32 * s + j] = t; } }
      done = stop;
      __syncthreads();
    }
    UNROLL for (int nt = 0; nt < NTL; nt++) UNROLL for (int r = 0; r < 4; r++) UNROLL for (int hf = 0; hf < 2; hf++) { float t = acc[hf][nt][r]; UNROLL for (int mt = 0; mt + 2 < 2 * S; mt += 2) acc[mt + hf][nt][r] = acc[mt + 2 + hf][nt][r]; acc[2 * S - 2 + hf][nt][r] = t; }
  }
  // ---- H (R unscaled, V below), T^T, V^T in fp16 (unit diagonal, zeros above) by way of shared memory
  __half* hV = (__half*)(sm + P::V);
  UNROLL for (int nt = 0; nt < NTL; nt++) { const int row = row_of(nt, 0), r = row - row0;
    if (row < m) UNROLL for (int mt = 0; mt < 4; mt++) UNROLL for (int e = 0; e < 2; e++) { const int c = mt * 16 + g + 8 * e; const float us = sUnscale[c]; float x = acc[mt][nt][2 * e], y = acc[mt][nt][2 * e + 1];
      float* hp = h + (size_t)row * n + c; hp[0] = r <= c ? x * us : x; hp[n] = r + 1 <= c ? y * us : y;
      x = r > c ? x : (r == c ? 1.f : 0.f); y = r + 1 > c ? y : (r + 1 == c ? 1.f : 0.f); *(uint32_t*)&hV[c * LD + (nt * 8 + w) * 8 + 2 * q] = pack(x, y); } }
  for (int e = tid; e < P::TR * NB; e += 256) ts[(e % NB) * 64 + rank * P::TR + e / NB] = __float2half_rn(sT[e]);
  __syncthreads();
  __half* out = p.vt + (mat * n + c0) * (size_t)n + rb + rank * RP; // rows above the panel too: a pair of panels is applied as one block of 128
  for (int f = tid; f < 64 * (RP / 8); f += 256) { int r = f / (RP / 8), u = f % (RP / 8); if ((int)rank * RP + u * 8 < m) *(float4*)(out + (size_t)r * n + u * 8) = *(float4*)(sm + P::V + (r * LD + u * 8) * 2); }
  if (p.passes && rank == 0 && tid == 0) p.passes[mat * (n / 64) + p.r0 / 64] = passes;
  if (DSMEM) cluster_sync();
}
// ---------------------------------------------------------------- 5. larfb: C <- (I - V T' V') C on a strip of columns
// One CTA owns NS columns of one matrix and applies K = 64 or 128 reflectors (one panel or two), so W = V'C, W' = T'W and C -= V W' need no other CTA.
// Pass 1 goes down the rows (and forms S = V0'V1, which couples the two panels), pass 2 back up again (the last rows read are still in L2).
// Two CTAs share an SM (one computes while the other waits at its barrier). Three stages of 64 rows: two are on their way from memory while one is worked on. Each thread copies exactly the pieces of C that it will use itself.
// C stays fp32 in memory, unscaled; it enters the products as fp16 of the column times its power of two.
// reads 2 m NS fp32 of C + 2 m 128 fp16 of V (L2), writes m NS fp32.
// narrow: 64 columns from `near_c0` on, as two strips of 32 (near_k reflectors from near_r0 on); far: strips of NS columns from c0 on (128 reflectors from r0 on)
struct LarfbArgs { const float *near_src, *src; float* h; const __half* vt; const __half* ts; const uint32_t* colmax; int n, near_strips, near_k, near_r0, near_c0, r0, c0; };
template <int NS> struct LarfbSmem { static constexpr int V = 0, C32 = 3 * 16384, C = C32 + 3 * 64 * NS * 4, W = C32 /* between the passes */, BYTES = C + 2 * 64 * NS * 2; };
template <int NS> __device__ __forceinline__ int swz(int row) { return NS >= 64 ? row & 7 : (row >> 1) & 3; } // 16-byte units of a row are permuted so that 8 rows hit 8 bank groups
template <int NS, int K> __device__ __forceinline__ void strip(const LarfbArgs& p, const float* from, int r0, int cbase) {
  extern __shared__ __align__(128) char sm[];
  constexpr int ROWB = NS * 2, KB = K / 64;          // bytes of one row of C16, W and W'; blocks of 64 reflectors
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, g = lane >> 2, q = lane & 3;
  const size_t mat = blockIdx.y; const int n = p.n, m = n - r0, chunks = m / 64;
  const float* src = from + mat * n * n + (size_t)r0 * n + cbase;
  float* dst = p.h + mat * n * n + (size_t)r0 * n + cbase;
  const __half* vt = p.vt + (mat * n + r0) * (size_t)n + r0;
  const uint32_t* cmax = p.colmax + mat * n + cbase;
  const uint32_t sV = smem_addr(sm + LarfbSmem<NS>::V), sC = smem_addr(sm + LarfbSmem<NS>::C), sW = smem_addr(sm + LarfbSmem<NS>::W);

  // V^T chunk: K reflectors x 64 rows, 128 bytes a reflector
  auto load_v = [&](int t, int stage) {
    UNROLL for (int i = 0; i < 2 * KB; i++) { int f = tid + 256 * i, r = f >> 3, u = f & 7;
      cp16(sV + stage * 16384 + r * 128 + ((u ^ (r & 7)) << 4), vt + (size_t)r * n + t * 64 + u * 8); } };
  // C chunk: 64 rows x NS columns; a thread's pieces lie at [piece][thread], so it needs no barrier to read them
  constexpr int CF = NS / 16; const int c4 = tid % (NS / 4), crow = tid / (NS / 4); const uint32_t sC32 = smem_addr(sm + LarfbSmem<NS>::C32);
  float sc[4]; UNROLL for (int e = 0; e < 4; e++) sc[e] = column_scale(cmax[c4 * 4 + e]);
  auto load_c = [&](int t, int stage) { UNROLL for (int i = 0; i < CF; i++) cp16(sC32 + ((stage * CF + i) * 256 + tid) * 16, src + (size_t)(t * 64 + crow + i * (1024 / NS)) * n + c4 * 4); };
  auto round_c = [&](int stage, int buf) { UNROLL for (int i = 0; i < CF; i++) { int row = crow + i * (1024 / NS); const float4 c = *(const float4*)(sm + LarfbSmem<NS>::C32 + ((stage * CF + i) * 256 + tid) * 16);
    *(uint2*)(sm + LarfbSmem<NS>::C + buf * 64 * ROWB + row * ROWB + (((c4 >> 1) ^ swz<NS>(row)) << 4) + (c4 & 1) * 8) = make_uint2(pack(c.x * sc[0], c.y * sc[1]), pack(c.z * sc[2], c.w * sc[3])); } };

  // ---- pass 1: W = V'C; warps 4 x 2: reflectors wm*16.. of both halves of 64, NS/2 columns
  constexpr int NT = NS / 16; const int wm = warp & 3, wn = warp >> 2;
  float acc[2][NT][4]; UNROLL for (int a = 0; a < 2; a++) UNROLL for (int b = 0; b < NT; b++) UNROLL for (int e = 0; e < 4; e++) acc[a][b][e] = 0.f;
  auto product = [&](auto from, auto to, uint32_t a_base, uint32_t b_base) { constexpr int lo = decltype(from)::value, hi = decltype(to)::value; // acc[lo..hi] += A (rows of 64 numbers, swizzled) B (64 x NS)
    UNROLL for (int ks = 0; ks < 4; ks++) {
      uint32_t a[2][4]; UNROLL for (int mt = lo; mt <= hi; mt++) { int r = mt * 64 + wm * 16 + (lane & 15), u = ks * 2 + (lane >> 4); ldsm4(a[mt], a_base + r * 128 + ((u ^ (r & 7)) << 4)); }
      UNROLL for (int nt = 0; nt < NT; nt += 2) { uint32_t b[4]; int r = ks * 16 + (lane & 15), u = wn * (NS / 16) + nt + (lane >> 4); ldsm4t(b, b_base + r * ROWB + ((u ^ swz<NS>(r)) << 4));
        UNROLL for (int mt = lo; mt <= hi; mt++) { mma(acc[mt][nt], a[mt], b[0], b[1]); mma(acc[mt][nt + 1], a[mt], b[2], b[3]); } } } };
  constexpr std::integral_constant<int, 0> H0{}; constexpr std::integral_constant<int, 1> H1{}; constexpr std::integral_constant<int, KB - 1> HK{};
  float st[4][4]; UNROLL for (int i = 0; i < 4; i++) UNROLL for (int e = 0; e < 4; e++) st[i][e] = 0.f;
  load_v(0, 0); load_c(0, 0); cp_commit(); load_v(1, 1); load_c(1, 1); cp_commit();
  #pragma unroll 1
  for (int t = 0; t < chunks; t++) {
    cp_wait<1>(); round_c(t % 3, t & 1); __syncthreads();
    if (t + 2 < chunks) { load_v(t + 2, (t + 2) % 3); load_c(t + 2, (t + 2) % 3); } cp_commit();
    const uint32_t v = sV + (t % 3) * 16384; product(H0, HK, v, sC + (t & 1) * 64 * ROWB);
    if constexpr (K == 128) UNROLL for (int ks = 0; ks < 4; ks++) { // S^T = V1'V0: warp = 16 x 32 of it
      uint32_t a[4]; { int r = 64 + wm * 16 + (lane & 15), u = ks * 2 + (lane >> 4); ldsm4(a, v + r * 128 + ((u ^ (r & 7)) << 4)); }
      UNROLL for (int nt = 0; nt < 4; nt += 2) { uint32_t b[4]; int r = wn * 32 + nt * 8 + (lane & 7) + ((lane >> 4) << 3), u = ks * 2 + ((lane >> 3) & 1); ldsm4(b, v + r * 128 + ((u ^ (r & 7)) << 4)); mma(st[nt], a, b[0], b[1]); mma(st[nt + 1], a, b[2], b[3]); } }
  }
  cp_wait<0>(); __syncthreads();

  // ---- -W' = -T'W by blocks of 64: W0' = T0'W0, W1' = T1'(W1 - S'W0'); T0^T, T1^T, S^T (64 x 64, 128 bytes a row) go where V was
  UNROLL for (int i = 0; i < 2 * KB; i++) { int f = tid + 256 * i, r = f >> 3, u = f & 7; cp16(sV + r * 128 + ((u ^ (r & 7)) << 4), p.ts + (mat * (n / 64) + r0 / 64) * TS + r * 64 + u * 8); } cp_commit();
  if constexpr (K == 128) UNROLL for (int nt = 0; nt < 4; nt++) UNROLL for (int h = 0; h < 2; h++) { int r = wm * 16 + g + 8 * h, c = wn * 32 + nt * 8 + 2 * q; *(uint32_t*)(sm + LarfbSmem<NS>::V + 16384 + r * 128 + (((c >> 3) ^ (r & 7)) << 4) + (c & 7) * 2) = pack(st[nt][2 * h], st[nt][2 * h + 1]); }
  auto store_w = [&](int mt, float sign, bool paired) { // paired: columns 4a+2b+e of 16 go to 8b+2a+e, so that in pass 2 a thread's accumulators are 4 neighbouring columns
    UNROLL for (int nt = 0; nt < NT; nt++) UNROLL for (int h = 0; h < 2; h++) {
      int r = mt * 64 + wm * 16 + g + 8 * h, c = wn * (NS / 2) + nt * 8 + 2 * q; if (paired) c = (c & ~15) | ((c >> 1 & 1) << 3) | ((c >> 2 & 3) << 1);
      *(uint32_t*)(sm + LarfbSmem<NS>::W + r * ROWB + (((c >> 3) ^ swz<NS>(r)) << 4) + (c & 7) * 2) = pack(sign * acc[mt][nt][2 * h], sign * acc[mt][nt][2 * h + 1]); } };
  auto clear = [&](int mt) { UNROLL for (int nt = 0; nt < NT; nt++) UNROLL for (int e = 0; e < 4; e++) acc[mt][nt][e] = 0.f; };
  store_w(0, 1.f, false); clear(0); cp_wait<0>(); __syncthreads();
  product(H0, H0, sV, sW); __syncthreads();                    // W0'
  if constexpr (K == 128) {
  store_w(0, -1.f, false); __syncthreads();
  product(H1, H1, sV + 8192, sW);                              // W1 - S'W0': rows 64.. of the operand at sV + 8192 are S^T
  store_w(1, 1.f, false); clear(1); __syncthreads();
  product(H1, H1, sV, sW + 64 * ROWB); __syncthreads();        // W1': rows 64.. at sV are T1^T
  store_w(1, -1.f, true); }
  store_w(0, -1.f, true);
  __syncthreads();

  // ---- pass 2: C += V (-W'); warps WM2 (rows) x WN2 (columns), W' held in registers
  constexpr int WM2 = NS == 32 ? 4 : 2, MT2 = 4 / WM2, WN2 = 8 / WM2, NT2 = NS / 8 / WN2, NP = NT2 / 2; const int vm = warp % WM2, vn = warp / WM2;
  constexpr int KS = K / 16; uint32_t wb[KS][NP][4];
  UNROLL for (int ks = 0; ks < KS; ks++) UNROLL for (int np = 0; np < NP; np++) { int r = ks * 16 + (lane & 15), u = vn * NT2 + np * 2 + (lane >> 4); ldsm4t(wb[ks][np], sW + r * ROWB + ((u ^ swz<NS>(r)) << 4)); }
  float us[NP][4]; UNROLL for (int np = 0; np < NP; np++) UNROLL for (int e = 0; e < 4; e++) us[np][e] = column_unscale(cmax[vn * NT2 * 8 + np * 16 + 4 * q + e]);
  auto offset = [&](int t, int mt, int h, int np) { return (size_t)(t * 64 + vm * MT2 * 16 + mt * 16 + g + 8 * h) * n + vn * NT2 * 8 + np * 16 + 4 * q; };
  auto slot = [&](int t, int mt, int h, int np) { return (((t % 3) * CF + (mt * 2 + h) * NP + np) * 256 + tid) * 16; };
  auto load_own = [&](int t) { UNROLL for (int mt = 0; mt < MT2; mt++) UNROLL for (int h = 0; h < 2; h++) UNROLL for (int np = 0; np < NP; np++) cp16(sC32 + slot(t, mt, h, np), src + offset(t, mt, h, np)); };
  __syncthreads(); // W' is in registers everywhere: C32 is free again
  load_v(chunks - 1, (chunks - 1) % 3); load_own(chunks - 1); cp_commit(); load_v(chunks - 2, (chunks - 2) % 3); load_own(chunks - 2); cp_commit();
  #pragma unroll 1
  for (int t = chunks - 1; t >= 0; t--) {
    cp_wait<1>(); __syncthreads();
    if (t >= 2) { load_v(t - 2, (t - 2) % 3); load_own(t - 2); } cp_commit();
    float d[MT2][NT2][4]; UNROLL for (int a = 0; a < MT2; a++) UNROLL for (int b = 0; b < NT2; b++) UNROLL for (int e = 0; e < 4; e++) d[a][b][e] = 0.f;
    const uint32_t vb = sV + (t % 3) * 16384;
    UNROLL for (int ks = 0; ks < KS; ks++) {
      uint32_t a[MT2][4]; UNROLL for (int mt = 0; mt < MT2; mt++) { int r = ks * 16 + (lane & 7) + ((lane >> 4) << 3), u = vm * MT2 * 2 + mt * 2 + ((lane >> 3) & 1); ldsm4t(a[mt], vb + r * 128 + ((u ^ (r & 7)) << 4)); }
      UNROLL for (int mt = 0; mt < MT2; mt++) UNROLL for (int np = 0; np < NP; np++) { mma(d[mt][2 * np], a[mt], wb[ks][np][0], wb[ks][np][1]); mma(d[mt][2 * np + 1], a[mt], wb[ks][np][2], wb[ks][np][3]); } }
    UNROLL for (int mt = 0; mt < MT2; mt++) UNROLL for (int h = 0; h < 2; h++) UNROLL for (int np = 0; np < NP; np++) { float4 c = *(const float4*)(sm + LarfbSmem<NS>::C32 + slot(t, mt, h, np));
      c.x = fmaf(us[np][0], d[mt][2 * np][2 * h], c.x); c.y = fmaf(us[np][1], d[mt][2 * np][2 * h + 1], c.y); c.z = fmaf(us[np][2], d[mt][2 * np + 1][2 * h], c.z); c.w = fmaf(us[np][3], d[mt][2 * np + 1][2 * h + 1], c.w);
      *(float4*)(dst + offset(t, mt, h, np)) = c; }
  }
}
template <int NS> __global__ void __launch_bounds__(256, 2) larfb(LarfbArgs p) {
  asm volatile("griddepcontrol.launch_dependents;");
  const int x = blockIdx.x - p.near_strips;
  if (x >= 0) strip<NS, 128>(p, p.src, p.r0, p.c0 + x * NS);
  else if (p.near_k == 128) strip<32, 128>(p, p.near_src, p.near_r0, p.near_c0 + blockIdx.x * 32);
  else strip<32, 64>(p, p.near_src, p.near_r0, p.near_c0 + blockIdx.x * 32);
  asm volatile("griddepcontrol.wait;" ::: "memory"); // end no earlier than the panel that runs beside this kernel: the next launch waits for this one only
}
// ---------------------------------------------------------------- 6. launches, all on the default queue
// Panels of 64 columns, numbered k; panels 2i and 2i+1 are pair i. Beside geqr2(k), which applies panel k-1 to panel k and factors it, runs larfb(k):
//   k = 2i+1   panel 2i   -> columns of panel k+1 (narrow, K = 64);     pair i-1 -> the second part of its far columns
//   k = 2i+2   pair i     -> columns of panel k+1 (narrow, K = 128);    pair i   -> the first part of its far columns, from panel k+2 on
// So when geqr2(k+1) starts, its columns lack panel k only.
// Both are programmatic dependent launches. geqr2(j) waits (griddepcontrol.wait) until everything before it has ended and only then lets the next
// launch go, so larfb(j) starts beside geqr2(j) and after larfb(j-1); it touches nothing that geqr2(j) touches, and ends after it. larfb lets its
// successor go at once: geqr2(j+1) is then in place, waiting, when the last CTA ends.
static int sm_count() { static int k = 0; if (!k) { int d; cudaGetDevice(&d); cudaDeviceGetAttribute(&k, cudaDevAttrMultiProcessorCount, d); } return k; }
__global__ void advance(uint32_t* epoch, uint32_t by) { *epoch += by; }
static void programmatic(cudaLaunchAttribute& a) { a.id = (cudaLaunchAttributeID)6; *(int*)&a.val = 1; } // programmatic serialization by number: its name holds letters that the server refuses
struct Plan { const float* a; float* h; float* tau; __half* vt; __half* ts; uint32_t* colmax; uint32_t* epoch; char* words; int* passes; int n, batch; };
constexpr uint32_t TAGS = 600; // a panel of 64 columns takes at most 64 passes of 2 exchanges; its larfb uses tag 512
template <int NTL, int C, bool DSMEM> static uint32_t panel(const Plan& w, PanelArgs a) {
  using P = PanelShape<NTL, C, DSMEM>; auto k = geqr2<NTL, C, DSMEM>;
  static bool ready = false; if (!ready) { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, P::BYTES); if (C > 8 && DSMEM) cudaFuncSetAttribute(k, cudaFuncAttributeNonPortableClusterSizeAllowed, 1); ready = true; }
  // clusters are scheduled whole; CTAs that wait for each other through L2 must all be resident, so those matrices go in groups
  const int group = DSMEM ? w.batch : std::max(1, sm_count() / C); a.words_stride = P::WORDS * 8;
  for (a.mat0 = 0; a.mat0 < w.batch; a.mat0 += group) {
    cudaLaunchConfig_t cfg = {}; cfg.gridDim = dim3(std::min(group, w.batch - a.mat0) * C); cfg.blockDim = dim3(256); cfg.dynamicSmemBytes = P::BYTES;
    cudaLaunchAttribute at[2]; at[0].id = cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x = C; at[0].val.clusterDim.y = 1; at[0].val.clusterDim.z = 1;
    programmatic(at[1]); cfg.attrs = at; cfg.numAttrs = DSMEM ? (a.r0 ? 2 : 1) : 0; // the first panel follows column_max, which knows nothing of this
    cudaLaunchKernelEx(&cfg, k, a); a.tag += TAGS; }
  return a.tag; }
#ifndef BESIDE
#define BESIDE 1
#endif
template <int NS> static void update(const Plan& w, const LarfbArgs& a, int strips) {
  auto k = larfb<NS>; constexpr int bytes = std::max(LarfbSmem<NS>::BYTES, LarfbSmem<32>::BYTES); static bool ready = false; if (!ready) { cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes); ready = true; }
  cudaLaunchConfig_t cfg = {}; cfg.gridDim = dim3(a.near_strips + strips, w.batch); cfg.blockDim = dim3(256); cfg.dynamicSmemBytes = bytes;
  cudaLaunchAttribute at[1]; programmatic(at[0]); cfg.attrs = at; cfg.numAttrs = BESIDE;
  cudaLaunchKernelEx(&cfg, k, a); }
static void update(const Plan& w, const LarfbArgs& a, int ns, int columns) { if (ns == 64) update<64>(w, a, columns / 64); else update<32>(w, a, columns / 32); }
static int panel_ctas(int m) { return m > 4096 ? 32 : m > 2048 ? 16 : 8; }
static void factor(const Plan& w) {
  const int n = w.n, panels = n / 64; uint32_t tag = 0;
  cudaMemsetAsync(w.colmax, 0, (size_t)w.batch * n * 4);
  column_max<<<dim3(n / 128, 8, w.batch), 256>>>(w.a, w.colmax, n, (n + 7) / 8);
  int far_r0 = 0, far_next = n, far_ns = 64; // the pair at hand, the first of its far columns that has not been updated, and its strip width
  for (int k = 0; k < panels; k++) {
    const int r0 = 64 * k, m = r0 ? n - r0 + 64 : n; // rows of the panel, those of the previous one included
    PanelArgs a{k > 1 ? w.h : w.a, w.h, w.tau, w.vt, w.ts, w.colmax, w.epoch, w.words, w.passes, 0, tag, n, r0, 0};
    tag = m > 4096 ? panel<4, 32, false>(w, a) : m > 2048 ? panel<4, 16, true>(w, a) : m > 1024 ? panel<4, 8, true>(w, a) : panel<2, 8, true>(w, a);
    if (k == 0 || k + 1 == panels) continue;
    const int pair = (k - 1) / 2, near_r0 = (k & 1) ? r0 - 64 : 128 * pair; int columns;
    if (k & 1) columns = n - far_next;
    else { // strip width: fewest waves x time of a strip (V is read whatever the width) on the SMs that the panel leaves free; half of the waves now, half with the next panel
      far_r0 = near_r0; far_next = r0 + 128; const int far = n - far_next, slots = 2 * std::max(8, sm_count() - w.batch * (panel_ctas(m) + 1)) /* two CTAs an SM */; float best = 1e30f; columns = 0;
      for (int ns = 64; ns >= 32 && far; ns /= 2) { const int waves = (far / ns * w.batch + slots - 1) / slots; if (waves * (ns + 40.f) < best) { best = waves * (ns + 40.f); far_ns = ns; columns = waves <= 1 ? far : std::min(far, std::max(128, (waves + 1) / 2 * slots * ns / w.batch / 128 * 128)); } } }
    LarfbArgs u{k > 2 ? w.h : w.a, far_r0 ? w.h : w.a, w.h, w.vt, w.ts, w.colmax, n, 2, (k & 1) ? 64 : 128, near_r0, r0 + 64, far_r0, far_next};
    update(w, u, far_ns, columns); far_next += columns;
  }
  advance<<<1, 1>>>(w.epoch, tag);
}
struct Sizes { long words, tt; };
Sizes sizes(int n, int batch) { return {n > 4096 ? (long)(PanelShape<4, 32, false>::WORDS * std::min(batch, std::max(1, sm_count() / 32))) : 1L, (long)batch * (n / 64) * TS}; }
void run(const float* a, float* h, float* tau, void* vt, void* ts, void* colmax, void* epoch, void* words, int* passes, int n, int batch) {
  factor(Plan{a, h, tau, (__half*)vt, (__half*)ts, (uint32_t*)colmax, (uint32_t*)epoch, (char*)words, passes, n, batch}); }
}
"""

LARGE_BINDING = r"""
#include <torch/extension.h>
#include <map>
namespace large { struct Sizes { long words, tt; }; Sizes sizes(int n, int batch); void run(const float*, float*, float*, void*, void*, void*, void*, void*, int*, int, int); }
// H and tau of every matrix of the batch. n is padded to a multiple of 128 with zero rows and columns, which changes nothing in the rest.
std::vector<at::Tensor> geqrf_large(at::Tensor a, std::optional<at::Tensor> passes) {
  const int64_t b = a.size(0), n = a.size(2), np = (n + 127) / 128 * 128; auto o = a.options();
  at::Tensor in = a.contiguous(); if ((uintptr_t)in.data_ptr() & 15) in = in.clone(); // 16-byte accesses
  if (np != n) { at::Tensor big = at::zeros({b, np, np}, o); big.narrow(1, 0, n).narrow(2, 0, n).copy_(in); in = big; }
  at::Tensor h = at::empty({b, np, np}, o), tau = at::empty({b, np}, o);
  auto s = large::sizes((int)np, (int)b);
  at::Tensor vt = at::empty({b, np, np}, o.dtype(at::kHalf)), tt = at::empty({s.tt}, o.dtype(at::kHalf)), cmax = at::empty({b, np}, o.dtype(at::kInt));
  struct Kept { at::Tensor words, epoch; }; static std::map<int, Kept> kept; Kept& k = kept[a.get_device()]; // exchange words and their tag counter outlive a call
  if (!k.epoch.defined()) k.epoch = at::ones({1}, o.dtype(at::kInt));
  if (!k.words.defined() || k.words.numel() < s.words) k.words = at::zeros({s.words}, o.dtype(at::kLong));
  large::run(in.data_ptr<float>(), h.data_ptr<float>(), tau.data_ptr<float>(), vt.data_ptr(), tt.data_ptr(), cmax.data_ptr(), k.epoch.data_ptr(), k.words.data_ptr(), passes ? passes->data_ptr<int>() : nullptr, (int)np, (int)b);
  if (np != n) { h = h.narrow(1, 0, n).narrow(2, 0, n).contiguous(); tau = tau.narrow(1, 0, n).contiguous(); }
  return {h, tau};
}
"""


def _build():
    """The compiled extension, or None (with one warning) where there is no device or no compiler."""
    if not torch.cuda.is_available():
        warnings.warn("no CUDA device: torch.geqrf serves every shape")
        return None
    try:
        return load_inline("qrkit_large_v45", cpp_sources=LARGE_BINDING, cuda_sources=LARGE_CUDA, functions=["geqrf_large"],
                           extra_cuda_cflags=["-O3"], verbose=False)
    except Exception as error:  # a build that fails must not fail the answers
        warnings.warn(f"extension not built, torch.geqrf serves every shape: {error}")
        return None


_large = _build()


def geqrf_large(a: torch.Tensor) -> output_t:
    """(H, tau) of a (batch, n, n) float32 CUDA tensor, 1537 <= n <= 8192 (any n >= 1 gives right answers)."""
    h, tau = _large.geqrf_large(a, None)
    return h, tau


def custom_kernel(data: input_t) -> output_t:
    n = data.shape[-1]
    if _large is not None and 1537 <= n <= 8192 and data.shape[0] > 0 and data.is_cuda:
        return geqrf_large(data)
    return torch.geqrf(data)
