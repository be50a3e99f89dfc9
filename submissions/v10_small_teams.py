#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v10 small teams: one CTA a matrix, teams of four warps on groups of 16 columns, blocks applied by tensor cores.

Algorithm  n <= 32: geqr2, one warp a matrix, lane = column. Else left-looking: a group of 16 columns is loaded into registers, larfb of all
           earlier blocks (mma), geqr2 column by column (FP32), larft; V and T stay in shared memory
Precision  FP32; in the products every operand is two FP16 terms (22 bits), FP32 accumulation; reflectors are rounded to two terms and tau = 2/v'v
           comes from the rounded ones, so orthogonality does not depend on the products
Shapes     1 <= n <= 512, any batch: this path; else torch.geqrf
Parent     none (measured against the prototypes of spec/feasibility.md: registers with warp-owned columns, left_looking_v3)
Result     see records/
Bound by   the chain of a column in geqr2: a team barrier, shuffles, rsqrt and rcp

How to read it. Rows come in steps of 16; step s belongs to warp s % 4 of every team, so the work of a team shrinks evenly as rows finish.
A warp holds its rows of a group as accumulators of the transpose: with g = lane / 4, q = lane % 4, c[i][tile][2 * half + e] is column g + 8 half,
row 8 tile + 2 q + e of its i-th step. Packed to FP16 the same registers are the A operand of W' = C'V, A and B of V'V, and the accumulator of
C' -= W'V'. So a product needs no staging, only the 16 x 16 sums over a team's four warps go through shared memory (one named barrier).
Team t takes groups t, t + teams, ...: while one team factors group k, the others apply blocks to theirs. Blocks are handed over by two mbarriers:
V ready (four warps), T ready (one warp). V of a block is stored as 8 x 8 tiles that ldmatrix reads straight (phase 1) or transposed (phase 2).
For n > 320 V outgrows shared memory: slots are reused after `window` blocks and older blocks are read from global memory. That is safe without
counters: block b is published after group b - 1 was, hence after every group below b has finished with all earlier blocks.
"""
from __future__ import annotations

import inspect
import os
import warnings

import torch
from torch.utils.cpp_extension import load_inline

from task import input_t, output_t

SMALL_CUDA = r"""
#include <cuda_fp16.h>
#include <cstdint>
namespace qr_small {
#define DEVICE __device__ __forceinline__
constexpr int GROUP = 16;        // columns of a group = reflectors of a block = rows of a step
constexpr int PARTS = 4;         // warps of a team: step s of the rows belongs to warp s % 4
constexpr int STEP_BYTES = 1024; // V of one step: 16 rows x 16 reflectors, two fp16 terms
constexpr int BLOCK_T_BYTES = 1024;
constexpr int EXCHANGE_BYTES = 2 * PARTS * 2 * 32 * 16;  // two buffers a team
constexpr int MAX_SHARED = 232448;
constexpr unsigned ALL = 0xffffffffu;

// ---- instructions
DEVICE float rcp(float x) { float y; asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x)); return y; }
DEVICE float rsq(float x) { float y; asm("rsqrt.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x)); return y; }
DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE void load_matrix(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
}
DEVICE void load_matrix_transposed(uint32_t (&r)[4], uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
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
DEVICE void barrier_init(uint64_t* b, int count) { asm volatile("mbarrier.init.shared::cta.b64 [%0],%1;" ::"r"(shared_address(b)), "r"(count) : "memory"); }
DEVICE void barrier_arrive(uint64_t* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0];" ::"r"(shared_address(b)) : "memory"); }
DEVICE bool barrier_passed(uint64_t* b) {
  uint32_t ok;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],0; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(shared_address(b)) : "memory");
  return ok;
}
DEVICE void barrier_wait(uint64_t* b) { while (!barrier_passed(b)) {} }

struct Args { const float* a; float* h; float* tau; uint32_t* vglobal; int n, steps, window; };

// V of blocks in shared memory: slot j % window, sized for its first (largest) occupant; a block starts at its own top step.
DEVICE int triangle(int j, int steps) { return j * steps - j * (j - 1) / 2; }

template <int S, int TEAMS, bool RING>
struct Kernel {
  float c[S][2][4];   // [step][tile of 8 rows][2*(column + 8) + row]
  float* exchange;    // this team's two buffers
  int parity;
  int team, part, lane, g, q;
  unsigned char* sv;  // V
  unsigned char* st;  // T
  uint64_t* vbar; uint64_t* tbar;
  Args p;
  const float* a; float* h; float* tau; uint32_t* vg;
  float unscale[2];

  DEVICE void team_sync() { asm volatile("bar.sync %0,128;" ::"r"(team + 1) : "memory"); }
  DEVICE float* buffer() { float* b = exchange + parity * (EXCHANGE_BYTES / 8); parity ^= 1; return b; }
  DEVICE bool live(int i, int top) { int s = 4 * i + part; return s >= top && s < p.steps; }

  // ---- sum of a 16 x 16 product over the team's warps; every warp gets the sum, in the same order
  DEVICE void team_sum(float (&w)[2][4]) {
    float4* b = reinterpret_cast<float4*>(buffer());
    b[part * 64 + lane] = make_float4(w[0][0], w[0][1], w[0][2], w[0][3]);
    b[part * 64 + 32 + lane] = make_float4(w[1][0], w[1][1], w[1][2], w[1][3]);
    team_sync();
#pragma unroll
    for (int t = 0; t < 2; t++) {
      float4 x = b[t * 32 + lane], y = b[64 + t * 32 + lane], z = b[128 + t * 32 + lane], u = b[192 + t * 32 + lane];
      w[t][0] = (x.x + y.x) + (z.x + u.x); w[t][1] = (x.y + y.y) + (z.y + u.y);
      w[t][2] = (x.z + y.z) + (z.z + u.z); w[t][3] = (x.w + y.w) + (z.w + u.w);
    }
  }

  DEVICE void load(int k) {
    const int col = k * GROUP + g;
    float m0 = 0.f, m1 = 0.f;
#pragma unroll
    for (int i = 0; i < S; i++)
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          int row = (4 * i + part) * 16 + t * 8 + 2 * q + e;
          const float* x = a + (size_t)row * p.n + col;
          c[i][t][e] = (row < p.n && col < p.n) ? __ldg(x) : 0.f;
          c[i][t][2 + e] = (row < p.n && col + 8 < p.n) ? __ldg(x + 8) : 0.f;
        }
#pragma unroll
    for (int i = 0; i < S; i++)
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 2; e++) { m0 = fmaxf(m0, fabsf(c[i][t][e])); m1 = fmaxf(m1, fabsf(c[i][t][2 + e])); }
    m0 = fmaxf(m0, __shfl_xor_sync(ALL, m0, 1)); m0 = fmaxf(m0, __shfl_xor_sync(ALL, m0, 2));
    m1 = fmaxf(m1, __shfl_xor_sync(ALL, m1, 1)); m1 = fmaxf(m1, __shfl_xor_sync(ALL, m1, 2));
    float* b = buffer();
    if (q == 0) { b[g * 4 + part] = m0; b[(8 + g) * 4 + part] = m1; }
    team_sync();
    float scale[2];
#pragma unroll
    for (int hf = 0; hf < 2; hf++) {
      float4 x = *reinterpret_cast<float4*>(b + (8 * hf + g) * 4);
      float m = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
      int e = max((int)(__float_as_uint(m) >> 23) - 127, -118);
      scale[hf] = __uint_as_float((uint32_t)(127 + 4 - e) << 23);
      unscale[hf] = __uint_as_float((uint32_t)(127 - 4 + e) << 23);
    }
#pragma unroll
    for (int i = 0; i < S; i++)
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int r = 0; r < 4; r++) c[i][t][r] *= scale[r >> 1];
  }

  // ---- larfb: C -= V T' V' C for block j
  DEVICE void apply(int j, int k) {
    float w[2][4], x[2][4];
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) w[t][r] = x[t][r] = 0.f;
    barrier_wait(vbar + j);
    const bool far = RING && k >= j + p.window;
    const uint32_t* gv = RING ? vg + (size_t)triangle(j, p.steps) * (STEP_BYTES / 4) + lane : nullptr;
    const uint32_t v = shared_address(sv) + triangle(j % p.window, p.steps) * STEP_BYTES + lane * 16;
#pragma unroll
    for (int i = 0; i < S; i++)
      if (live(i, j)) {
        const int off = 4 * i + part - j;
        uint32_t ah[4], al[4], bh[4], bl[4];
        if (RING && far) {
#pragma unroll
          for (int m = 0; m < 4; m++) { bh[m] = gv[off * 256 + m * 32]; bl[m] = gv[off * 256 + 128 + m * 32]; }
        } else { load_matrix(bh, v + off * STEP_BYTES); load_matrix(bl, v + off * STEP_BYTES + 512); }
#pragma unroll
        for (int z = 0; z < 4; z++) split(c[i][z >> 1][(z & 1) * 2], c[i][z >> 1][(z & 1) * 2 + 1], ah[z], al[z]);
        mma(w[0], ah, bh[0], bh[1]); mma(w[1], ah, bh[2], bh[3]);
        mma(x[0], al, bh[0], bh[1]); mma(x[1], al, bh[2], bh[3]);
        mma(x[0], ah, bl[0], bl[1]); mma(x[1], ah, bl[2], bl[3]);
      }
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) w[t][r] += x[t][r];
    team_sum(w);
    barrier_wait(tbar + j);
    const uint4* tf = reinterpret_cast<const uint4*>(st + j * BLOCK_T_BYTES);
    const uint4 th = tf[lane], tl = tf[32 + lane];
    uint32_t wh[4], wl[4];
#pragma unroll
    for (int z = 0; z < 4; z++) split(w[z >> 1][(z & 1) * 2], w[z >> 1][(z & 1) * 2 + 1], wh[z], wl[z]);
    float u[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, y[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    mma(u[0], wh, th.x, th.y); mma(u[1], wh, th.z, th.w);
    mma(y[0], wl, th.x, th.y); mma(y[1], wl, th.z, th.w);
    mma(y[0], wh, tl.x, tl.y); mma(y[1], wh, tl.z, tl.w);
#pragma unroll
    for (int z = 0; z < 4; z++) split(-(u[z >> 1][(z & 1) * 2] + y[z >> 1][(z & 1) * 2]), -(u[z >> 1][(z & 1) * 2 + 1] + y[z >> 1][(z & 1) * 2 + 1]), wh[z], wl[z]);
#pragma unroll
    for (int i = 0; i < S; i++)
      if (live(i, j)) {
        const int off = 4 * i + part - j;
        uint32_t bh[4], bl[4];
        if (RING && far) {
#pragma unroll
          for (int m = 0; m < 4; m++) { bh[m] = transpose_8x8(gv[off * 256 + m * 32]); bl[m] = transpose_8x8(gv[off * 256 + 128 + m * 32]); }
        } else { load_matrix_transposed(bh, v + off * STEP_BYTES); load_matrix_transposed(bl, v + off * STEP_BYTES + 512); }
#pragma unroll
        for (int t = 0; t < 2; t++) { mma(c[i][t], wl, bh[t], bh[2 + t]); mma(c[i][t], wh, bl[t], bl[2 + t]); mma(c[i][t], wh, bh[t], bh[2 + t]); }
      }
  }

  // ---- geqr2 column by column: rows spread over lanes q and warps; one team barrier a column.
  // On return the live rows of c (and top below the diagonal) hold unscaled reflectors x; inv, beta are per column.
  DEVICE void geqr2(int k, float (&top)[2][4], float (&inv)[2], float (&beta)[2]) {
    const bool owner = (k & 3) == part;
#pragma unroll
    for (int hc = 0; hc < 2; hc++) {
#pragma unroll 1
      for (int cc = 0; cc < 8; cc++) {
        const int col = hc * 8 + cc, src = cc * 4 + q;
        float x[S][2][2], xt[2][2], d0[2] = {0, 0}, d1[2] = {0, 0};
#pragma unroll
        for (int t = hc; t < 2; t++)
#pragma unroll
          for (int e = 0; e < 2; e++) {
            float y = __shfl_sync(ALL, top[t][hc * 2 + e], src);
            xt[t][e] = (8 * t + 2 * q + e >= col) ? y : 0.f;
            d0[e] = fmaf(xt[t][e], top[t][e], d0[e]); d1[e] = fmaf(xt[t][e], top[t][2 + e], d1[e]);
          }
#pragma unroll
        for (int i = 0; i < S; i++)
          if (live(i, k + 1)) {
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
              for (int e = 0; e < 2; e++) {
                x[i][t][e] = __shfl_sync(ALL, c[i][t][hc * 2 + e], src);
                if (hc == 0) d0[e] = fmaf(x[i][t][e], c[i][t][e], d0[e]);
                d1[e] = fmaf(x[i][t][e], c[i][t][2 + e], d1[e]);
              }
          }
        float s0 = d0[0] + d0[1], s1 = d1[0] + d1[1];
        if (hc == 0) { s0 += __shfl_xor_sync(ALL, s0, 1); }
        s1 += __shfl_xor_sync(ALL, s1, 1);
        if (hc == 0) { s0 += __shfl_xor_sync(ALL, s0, 2); }
        s1 += __shfl_xor_sync(ALL, s1, 2);
        float* b = buffer();
        if (q == 0) { if (hc == 0) b[g * 4 + part] = s0; b[(8 + g) * 4 + part] = s1; }
        if (owner && q == cc >> 1) { if (hc == 0) b[64 + g] = (cc & 1) ? top[hc][1] : top[hc][0]; b[72 + g] = (cc & 1) ? top[hc][3] : top[hc][2]; }
        team_sync();
        const float4* b4 = reinterpret_cast<const float4*>(b);
        float4 sc = b4[col]; float alpha = b[64 + col];
        float4 sb = b4[8 + g]; float a1 = b[72 + g];
        float gk = (sc.x + sc.y) + (sc.z + sc.w);
        const bool zero = !(gk > 1e-28f);
        float rs = rsq(gk), ib = alpha >= 0.f ? -rs : rs;
        if (zero) ib = 0.f;
        float bt = zero ? alpha : gk * ib;
        float d = alpha - bt, iv = zero ? 0.f : rcp(d);
        float w0 = 0.f, w1;
        if (hc == 0) { float4 sa = b4[g]; float a0 = b[64 + g]; w0 = g > cc ? a0 - ((sa.x + sa.y) + (sa.z + sa.w)) * ib : 0.f; }
        w1 = (hc == 0 || g > cc) ? a1 - ((sb.x + sb.y) + (sb.z + sb.w)) * ib : 0.f;
        w0 *= -iv; w1 *= -iv;
        if (g == cc) { inv[hc] = iv; beta[hc] = bt; }
#pragma unroll
        for (int t = hc; t < 2; t++)
#pragma unroll
          for (int e = 0; e < 2; e++) {
            if (8 * t + 2 * q + e == col && owner) xt[t][e] = d;
            if (hc == 0) top[t][e] = fmaf(w0, xt[t][e], top[t][e]);
            top[t][2 + e] = fmaf(w1, xt[t][e], top[t][2 + e]);
          }
#pragma unroll
        for (int i = 0; i < S; i++)
          if (live(i, k + 1)) {
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
              for (int e = 0; e < 2; e++) {
                if (hc == 0) c[i][t][e] = fmaf(w0, x[i][t][e], c[i][t][e]);
                c[i][t][2 + e] = fmaf(w1, x[i][t][e], c[i][t][2 + e]);
              }
          }
      }
    }
  }

  // ---- one step of V: two fp16 terms to shared memory (and global), V'V; v becomes hi + lo
  DEVICE void publish(float (&v)[2][4], int k, int s, float (&w)[2][4], float (&x)[2][4]) {
    uint32_t hi[4], lo[4];  // [half * 2 + tile]
#pragma unroll
    for (int m = 0; m < 4; m++) {
      float& v0 = v[m & 1][(m >> 1) * 2]; float& v1 = v[m & 1][(m >> 1) * 2 + 1];
      split(v0, v1, hi[m], lo[m]);
      float2 fh = __half22float2(halves(hi[m])), fl = __half22float2(halves(lo[m]));
      v0 = fh.x + fl.x; v1 = fh.y + fl.y;
    }
    uint32_t* d = reinterpret_cast<uint32_t*>(sv + (triangle(k % p.window, p.steps) + s - k) * STEP_BYTES) + lane;
#pragma unroll
    for (int m = 0; m < 4; m++) { d[m * 32] = hi[m]; d[128 + m * 32] = lo[m]; }
    if (RING && k + p.window < p.steps) {
      uint32_t* e = vg + (size_t)(triangle(k, p.steps) + s - k) * (STEP_BYTES / 4) + lane;
#pragma unroll
      for (int m = 0; m < 4; m++) { e[m * 32] = hi[m]; e[128 + m * 32] = lo[m]; }
    }
    const uint32_t ah[4] = {hi[0], hi[2], hi[1], hi[3]}, al[4] = {lo[0], lo[2], lo[1], lo[3]};
    mma(w[0], ah, hi[0], hi[1]); mma(w[1], ah, hi[2], hi[3]);
    mma(x[0], al, hi[0], hi[1]); mma(x[1], al, hi[2], hi[3]);
    mma(x[0], ah, lo[0], lo[1]); mma(x[1], ah, lo[2], lo[3]);
  }

  // ---- larft by one warp: inv(T) = diag(1/tau) + striu(V'V), tau = 2 / v'v of the rounded v
  DEVICE void larft(int k, const float4* b) {
    float* m = reinterpret_cast<float*>(const_cast<float4*>(b));  // the summed buffer is reused as scratch
    float w[2][4];
#pragma unroll
    for (int t = 0; t < 2; t++) {
      float4 x = b[t * 32 + lane], y = b[64 + t * 32 + lane], z = b[128 + t * 32 + lane], u = b[192 + t * 32 + lane];
      w[t][0] = (x.x + y.x) + (z.x + u.x); w[t][1] = (x.y + y.y) + (z.y + u.y);
      w[t][2] = (x.z + y.z) + (z.z + u.z); w[t][3] = (x.w + y.w) + (z.w + u.w);
    }
    __syncwarp();
    // rows of striu(V'V), shifted: row i holds entries i+1.. from index 0 on, zeros behind; stride 20
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) {
        int i = g + 8 * (r >> 1), j = t * 8 + 2 * q + (r & 1);
        if (j > i) m[i * 20 + j - i - 1] = w[t][r];
        else if (j < i) m[i * 20 + 15 - j] = 0.f;   // 15-i .. 15-1.. covers indices 16-i .. 15
        else { m[i * 20 + 15 - i] = 0.f; m[640 + i] = w[t][r] > 0.f ? 2.f / w[t][r] : 0.f; }
      }
    __syncwarp();
    const int l = lane & 15;
    float x[17], tj = m[640 + l];
    if (lane < 16 && k * GROUP + lane < p.n) tau[k * GROUP + lane] = tj;
#pragma unroll
    for (int r = 0; r < 17; r++) x[r] = r == l ? 1.f : 0.f;
    float* o = m + 320 + l * 20;
#pragma unroll 1
    for (int j = 0; j < 16; j += 4) {
      float t4[4]; float4 ta = *reinterpret_cast<float4*>(m + 640 + j); float tt[4] = {ta.x, ta.y, ta.z, ta.w};
#pragma unroll
      for (int u = 0; u < 4; u++) {
        const float4* row = reinterpret_cast<const float4*>(m + (j + u) * 20);
        float t = x[0] * tt[u]; t4[u] = t;
#pragma unroll
        for (int r = 0; r < 4; r++) {
          float4 y = row[r];
          x[4 * r] = fmaf(-y.x, t, x[4 * r + 1]); x[4 * r + 1] = fmaf(-y.y, t, x[4 * r + 2]);
          x[4 * r + 2] = fmaf(-y.z, t, x[4 * r + 3]); x[4 * r + 3] = fmaf(-y.w, t, x[4 * r + 4]);
        }
      }
      if (lane < 16) *reinterpret_cast<float4*>(o + j) = make_float4(t4[0], t4[1], t4[2], t4[3]);
    }
    __syncwarp();
    uint32_t th[4], tl[4];
#pragma unroll
    for (int z = 0; z < 4; z++) {  // z = column tile * 2 + half of k
      const float* e = m + 320 + (8 * (z & 1) + 2 * q) * 20 + 8 * (z >> 1) + g;
      split(fminf(fmaxf(e[0], -6e4f), 6e4f), fminf(fmaxf(e[20], -6e4f), 6e4f), th[z], tl[z]);
    }
    uint4* tf = reinterpret_cast<uint4*>(st + k * BLOCK_T_BYTES);
    tf[lane] = make_uint4(th[0], th[1], th[2], th[3]); tf[32 + lane] = make_uint4(tl[0], tl[1], tl[2], tl[3]);
    __syncwarp();
    if (lane == 0) barrier_arrive(tbar + k);
  }

  DEVICE void store_step(const float (&v)[2][4], int k, int s, float f0, float f1) {
    const int col = k * GROUP + g;
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int hf = 0; hf < 2; hf++) {
        const int row = s * 16 + t * 8 + 2 * q, cl = col + 8 * hf;
        const float f = hf ? f1 : f0;
        float* o = h + (size_t)cl * p.n + row;
        float v0 = v[t][hf * 2] * f, v1 = v[t][hf * 2 + 1] * f;
        if (cl < p.n) {
          if ((p.n & 1) == 0) { if (row < p.n) *reinterpret_cast<float2*>(o) = make_float2(v0, v1); }
          else { if (row < p.n) o[0] = v0; if (row + 1 < p.n) o[1] = v1; }
        }
      }
  }

  DEVICE void factor(int k) {
    float top[2][4], inv[2] = {0, 0}, beta[2] = {0, 0};
    const bool owner = (k & 3) == part;
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) top[t][r] = 0.f;
#pragma unroll
    for (int i = 0; i < S; i++)
      if (4 * i + part == k) {
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int r = 0; r < 4; r++) top[t][r] = c[i][t][r];
      }
    geqr2(k, top, inv, beta);
    // V'V and V
    float w[2][4], x[2][4], keep[2][4];
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) w[t][r] = x[t][r] = 0.f;
    if (owner) {
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
          const int row = 8 * t + 2 * q + (r & 1), cl = g + 8 * (r >> 1);
          keep[t][r] = row == cl ? beta[r >> 1] : top[t][r];
          top[t][r] = row > cl ? top[t][r] * inv[r >> 1] : (row == cl && inv[r >> 1] != 0.f ? 1.f : 0.f);
        }
      publish(top, k, k, w, x);
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
          const int row = 8 * t + 2 * q + (r & 1), cl = g + 8 * (r >> 1);
          if (row <= cl) top[t][r] = keep[t][r] * unscale[r >> 1];
        }
    }
#pragma unroll
    for (int i = 0; i < S; i++)
      if (live(i, k + 1)) {
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int r = 0; r < 4; r++) c[i][t][r] *= inv[r >> 1];
        publish(c[i], k, 4 * i + part, w, x);
      }
    __syncwarp();
    if (lane == 0) barrier_arrive(vbar + k);
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
      for (int r = 0; r < 4; r++) w[t][r] += x[t][r];
    float4* b = reinterpret_cast<float4*>(buffer());
    b[part * 64 + lane] = make_float4(w[0][0], w[0][1], w[0][2], w[0][3]);
    b[part * 64 + 32 + lane] = make_float4(w[1][0], w[1][1], w[1][2], w[1][3]);
    team_sync();
    if (part == ((k + 2) & 3)) larft(k, b);
    if (owner) store_step(top, k, k, 1.f, 1.f);
#pragma unroll
    for (int i = 0; i < S; i++) {
      const int s = 4 * i + part;
      if (s < k) store_step(c[i], k, s, unscale[0], unscale[1]);
      else if (s > k && s < p.steps) store_step(c[i], k, s, 1.f, 1.f);
    }
  }
};

template <int S, int TEAMS, bool RING>
__global__ void __launch_bounds__(TEAMS * 128, 1) geqrf_teams(Args p) {
  extern __shared__ __align__(128) unsigned char shared[];
  Kernel<S, TEAMS, RING> me;
  me.p = p;
  me.lane = threadIdx.x & 31; me.part = (threadIdx.x >> 5) & 3; me.team = threadIdx.x >> 7;
  me.g = me.lane >> 2; me.q = me.lane & 3; me.parity = 0;
  unsigned char* o = shared;
  me.exchange = reinterpret_cast<float*>(o + me.team * EXCHANGE_BYTES); o += TEAMS * EXCHANGE_BYTES;
  me.st = o; o += p.steps * BLOCK_T_BYTES;
  me.vbar = reinterpret_cast<uint64_t*>(o); me.tbar = me.vbar + p.steps; o += (p.steps * 16 + 127) / 128 * 128;
  me.sv = o;
  const size_t mat = blockIdx.x;
  me.a = p.a + mat * p.n * p.n; me.h = p.h + mat * p.n * p.n; me.tau = p.tau + mat * p.n;
  me.vg = RING ? p.vglobal + mat * (size_t)(triangle(p.steps, p.steps) * (STEP_BYTES / 4)) : nullptr;
  for (int i = threadIdx.x; i < p.n * p.n / 32; i += TEAMS * 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(me.a + (size_t)i * 32));
  for (int i = threadIdx.x; i < p.steps; i += TEAMS * 128) { barrier_init(me.vbar + i, PARTS); barrier_init(me.tbar + i, 1); }
  __syncthreads();
  for (int k = me.team; k < p.steps; k += TEAMS) {
    me.load(k);
    for (int j = 0; j < k; j++) me.apply(j, k);
    me.factor(k);
  }
}

// Blocks whose V fits in shared memory at once, and the bytes of a launch.
struct Plan { int steps, window, bytes; };
inline Plan plan(int n, int teams, int forced) {
  Plan r; r.steps = (n + 15) / 16;
  int fixed = teams * EXCHANGE_BYTES + r.steps * BLOCK_T_BYTES + (r.steps * 16 + 127) / 128 * 128;
  int room = (MAX_SHARED - fixed) / STEP_BYTES, used = 0;
  r.window = 0;
  while (r.window < r.steps && used + r.steps - r.window <= room) used += r.steps - r.window++;
  if (forced && forced < r.window) r.window = forced;
  used = r.window * r.steps - r.window * (r.window - 1) / 2;
  r.bytes = fixed + used * STEP_BYTES;
  return r;
}

template <int S, int TEAMS, bool RING>
int launch_teams(const Args& args, int batch, int bytes) {
  static bool ready = false;
  auto kernel = geqrf_teams<S, TEAMS, RING>;
  if (!ready) {
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MAX_SHARED);
    if (e != cudaSuccess) return (int)e;
    ready = true;
  }
  kernel<<<batch, TEAMS * 128, bytes>>>(args);
  return (int)cudaGetLastError();
}
}  // namespace qr_small
// n <= 32: one warp a matrix, lane = column, the column's rows in registers.
namespace qr_small {
template <bool FULL>
__global__ void __launch_bounds__(32) geqrf_warp(const float* __restrict__ a, float* __restrict__ h, float* __restrict__ tau, int n_) {
  __shared__ __align__(16) float buf[2][32];
  const int n = FULL ? 32 : n_, lane = threadIdx.x;
  const float* ip = a + (size_t)blockIdx.x * n * n;
  float c[32], m[4] = {0, 0, 0, 0};
#pragma unroll
  for (int r = 0; r < 32; r++) c[r] = (FULL || (r < n && lane < n)) ? __ldg(ip + r * n + lane) : 0.f;
#pragma unroll
  for (int r = 0; r < 32; r++) m[r & 3] = fmaxf(m[r & 3], fabsf(c[r]));
  // a power of two brings the largest entry of each column near 1: no square overflows; R is scaled back
  int e = max((int)(__float_as_uint(fmaxf(fmaxf(m[0], m[1]), fmaxf(m[2], m[3]))) >> 23) - 127, -118);
  const float scale = __uint_as_float((uint32_t)(127 - e) << 23), unscale = __uint_as_float((uint32_t)(127 + e) << 23);
#pragma unroll
  for (int r = 0; r < 32; r++) c[r] *= scale;
  float myinv = 0, mybeta = 0, mytau = 0;
#pragma unroll
  for (int k = 0; k < 32; k++) {
    if (!FULL && k >= n) break;
    float* b = buf[k & 1];
    if (lane == k) {
#pragma unroll
      for (int q = k / 4; q < 8; q++) *(float4*)(b + q * 4) = make_float4(c[q * 4], c[q * 4 + 1], c[q * 4 + 2], c[q * 4 + 3]);
    }
    __syncwarp();
    float x[32];
#pragma unroll
    for (int q = k / 4; q < 8; q++) { float4 y = *(float4*)(b + q * 4); x[q * 4] = y.x; x[q * 4 + 1] = y.y; x[q * 4 + 2] = y.z; x[q * 4 + 3] = y.w; }
    float s[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};
    // every lane forms the norm itself (x is a broadcast): no shuffle waits for lane k
#pragma unroll
    for (int r = k; r < 32; r++) { v[r & 3] = fmaf(x[r], x[r], v[r & 3]); s[r & 3] = fmaf(x[r], c[r], s[r & 3]); }
    const float gk = (v[0] + v[1]) + (v[2] + v[3]), g = (s[0] + s[1]) + (s[2] + s[3]);
    const bool zero = !(gk > 1e-30f);
    const float rs = rsq(gk);
    float ib = x[k] >= 0.f ? -rs : rs;
    if (zero) ib = 0.f;
    const float beta = zero ? x[k] : gk * ib, d = x[k] - beta, inv = zero ? 0.f : rcp(d);
    const float w = lane > k ? c[k] - g * ib : 0.f, wi = -w * inv;
    if (lane == k) { myinv = inv; mybeta = beta; mytau = -d * ib; }
    c[k] -= zero ? 0.f : w;
#pragma unroll
    for (int r = k + 1; r < 32; r++) c[r] = fmaf(wi, x[r], c[r]);
  }
  float* op = h + (size_t)blockIdx.x * n * n;
#pragma unroll
  for (int r = 0; r < 32; r++) {
    float v = c[r];
    v = r > lane ? v * myinv : (r == lane ? mybeta * unscale : v * unscale);
    if (FULL || (r < n && lane < n)) op[r * n + lane] = v;
  }
  if (FULL || lane < n) tau[blockIdx.x * n + lane] = mytau;
}
}  // namespace qr_small

extern "C" int qr_small_launch(const float* a, float* h, float* tau, int n, int batch, float* (*workspace)(size_t)) {
  using namespace qr_small;
  if (n <= 32) {
    if (n == 32) geqrf_warp<true><<<batch, 32>>>(a, h, tau, n);
    else geqrf_warp<false><<<batch, 32>>>(a, h, tau, n);
    return (int)cudaGetLastError();
  }
  const int steps_a_warp = (n + 63) / 64, teams = steps_a_warp <= 4 ? 4 : 3;
  const Plan r = plan(n, teams, 0);
  Args args{a, h, tau, nullptr, n, r.steps, r.window};
  if (r.window < r.steps) args.vglobal = (uint32_t*)workspace((size_t)batch * (r.steps * (r.steps + 1) / 2) * STEP_BYTES);
  if (steps_a_warp <= 1) return launch_teams<1, 4, false>(args, batch, r.bytes);
  if (steps_a_warp <= 2) return launch_teams<2, 4, false>(args, batch, r.bytes);
  if (steps_a_warp <= 3) return launch_teams<3, 4, false>(args, batch, r.bytes);
  if (steps_a_warp <= 4) return launch_teams<4, 4, false>(args, batch, r.bytes);
  if (steps_a_warp <= 6) return launch_teams<6, 3, true>(args, batch, r.bytes);
  return launch_teams<8, 3, true>(args, batch, r.bytes);
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

// (H, tau) of a contiguous float32 CUDA tensor (b, n, n) on the current device, 1 <= n <= 512; None for anything else.
static PyObject* geqrf_small(PyObject*, PyObject* arg) {
  if (!THPVariable_Check(arg)) Py_RETURN_NONE;
  const at::Tensor& a = THPVariable_Unpack(arg);
  if (a.dim() != 3 || !a.is_cuda() || a.scalar_type() != at::kFloat || !a.is_contiguous()) Py_RETURN_NONE;
  const int64_t b = a.size(0), n = a.size(1);
  if (n < 1 || n > 512 || a.size(2) != n || b < 1 || b > 1000000 || a.requires_grad()) Py_RETURN_NONE;
  if (a.device().index() != c10::cuda::current_device()) Py_RETURN_NONE;
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
    """The extension's function, or None where it cannot be built or there is no GPU (torch.geqrf then serves every shape)."""
    if not torch.cuda.is_available():
        warnings.warn("no CUDA device: torch.geqrf serves every shape")
        return None
    try:
        major, minor = torch.cuda.get_device_capability()
        os.environ.setdefault("TORCH_CUDA_ARCH_LIST", f"{major}.{minor}" + ("a" if major >= 9 else ""))
        extra = {"no_implicit_headers": True} if "no_implicit_headers" in inspect.signature(load_inline).parameters else {}
        return load_inline("qrkit_small_v10", cpp_sources=SMALL_BINDING, cuda_sources=SMALL_CUDA, extra_cflags=["-O2"],
                           extra_cuda_cflags=["-O3"], verbose=False, **extra).geqrf_small
    except Exception as error:  # a build that fails must not fail the answers
        warnings.warn(f"extension not built, torch.geqrf serves every shape: {error}")
        return None


_small = _build()


def geqrf_small(a: torch.Tensor) -> output_t | None:
    """(H, tau) of a contiguous float32 CUDA tensor (batch, n, n), 1 <= n <= 512 and batch >= 1; None for anything else."""
    return _small(a) if _small is not None else None


def custom_kernel(data: input_t) -> output_t:
    out = geqrf_small(data)
    if out is None:
        h, tau = torch.geqrf(data)
        return h, tau
    return out
