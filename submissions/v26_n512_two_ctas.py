#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v26 n512 two matrices an SM: one's serial chain under the other's products

Algorithm  left-looking; panels of 32 columns in registers (Gram on tensor cores, recurrence, V = P M, larft), larfb with
           blocks of 64 reflectors; two CTAs an SM; A is read once and H written once
Precision  fp32 storage; V rounded to fp16, exact from then on (tau = 2/v'v of the rounded v), a second term where the
           panel's own norms ask for it; C, W', T in two fp16 terms (22 bits), fp32 accumulation
Shapes     257 <= n <= 512: this path; all others: torch.geqrf
Parent     v20_n512_panel64 (geometry of the update, certificate), the prototype left_looking_v2 (two CTAs an SM)
Result     see records/
Bound by   barriers and the serial recurrence; registers (128 a thread)
"""
import inspect
import warnings

import torch
from torch.utils.cpp_extension import load_inline

try:
    from task import input_t, output_t
except ImportError:
    input_t, output_t = torch.Tensor, tuple

CUDA = r'''
// Left-looking Householder QR of a batch of n x n FP32 matrices, one CTA a matrix, two CTAs an SM: while one matrix is in
// a serial part, the other one multiplies.
//
// DATA FLOW (panel k = columns 32k .. 32k+31; it stays in registers from load to store)
//
//      A, global                             earlier blocks V_j, T_j of 64 reflectors (j < (k+1)/2), global
//         | load_panel, scale_panel               | load_chunk, load_t: bulk copies
//         v                                       v
//   +-----------------+     apply_block(j), j = 0, 1, ..:
//   | c: panel,       |        W  = V_j' C             rows split over four row groups of warps, summed in shared memory
//   | registers       | <-->  W' = T_j' W
//   | (all warps)     |        C  = C - V_j W'
//   +-----------------+     then a pass (almost always one):
//         | stage_panel: P = the unfinished rows, normalised, as fp16 hi + lo tiles in shared memory
//         | gram:             G = P'P
//         | cholesky, eliminate_top, invert_top: G and the top 32 x 32 of P -> R, M (three warps, scalar)
//         | form_reflectors:  V = P M, rounded to fp16; R and V to H
//         | panel_t:          V'V -> tau, T; with the panel before: T of the block of 64
//         v
//      H, tau, V_k, T
// An odd panel's last block has only 32 reflectors so far, those of the panel before.
//
// REGISTERS: warp = 2 rg + ch holds columns 16 ch .. + 15 of the panel and every fourth 8-row tile (tile 4i + rg) as mma
// accumulators of C transposed. With g = lane/4 and q = lane%4:
//      c[i][e], c[i][2 + e]: columns 16 ch + 2g, + 1; row 8 (4i + rg) + 2q + e
// Packed in fp16 the same registers are the A operand of W^T = C^T V and the accumulators of C^T -= W'^T V^T: nothing is
// shuffled. Sums of W^T are in turn an A operand of W'^T = W^T T, and those of W'^T the A operand of the update. Tiles
// alternate between the row groups so that all lose rows at the same pace.
//
// TILES: V and P lie in shared memory as 8 x 8 tiles of halves, 128 bytes, [reflector][row]: what ldmatrix reads, plain
// for one product and transposed for the other. A block of V is consumed in four chunks of 128 rows; as soon as all
// warps have updated C with a chunk, the next block's chunk is fetched into its place.
//
// PRECISION. I - tau v v' is orthogonal exactly when tau = 2/v'v. Taking v'v from the ROUNDED v keeps every reflector
// orthogonal to fp32 accuracy, whatever the Gram matrix or the rounding did to v; the error shows only as a residue under
// the diagonal, about 2e-4 of the column's remaining norm. Where its 1-norm could count against ||A||_1 (band), V of the
// panel takes two terms. The test uses exact column norms and the exact column sums so far.
//
// WHEN THE RECURRENCE CANNOT BE TRUSTED: rounding in G is 2^-22; a pivot below PIVOT_RATIO of its column, or a column of
// M above M_NORM, would magnify it too much. Both are known exactly. The pass then ends before that column: the
// reflectors so far are applied to the rest of the panel (apply_block again) and a new pass starts with a new Gram matrix.
// A pass takes at least one column.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>

namespace n512b {

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
DEVICE uint32_t halve(uint32_t u) {
  __half2 h = __hmul2(*reinterpret_cast<__half2*>(&u), __float2half2_rn(0.5f));
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
DEVICE void load_matrix(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
DEVICE void load_matrix_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}
DEVICE uint32_t transpose_8x8(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(y) : "r"(x));
  return y;
}
DEVICE float shfl(float x, int lane) { return __shfl_sync(~0u, x, lane); }
DEVICE float shfl_xor(float x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
DEVICE uint32_t ballot(bool p) { return __ballot_sync(~0u, p); }
DEVICE void sync_warp() { __syncwarp(); }
DEVICE void sync_all() { __syncthreads(); }
DEVICE void bar_sync(int id, int threads) { asm volatile("bar.sync %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void bar_arrive(int id, int threads) { asm volatile("bar.arrive %0,%1;" ::"r"(id), "r"(threads) : "memory"); }
// A is read once and H written once: out of the way of V in L2.
DEVICE float load_once(const float* p) {
  float x;
  asm volatile("ld.global.cs.f32 %0,[%1];" : "=f"(x) : "l"(p));
  return x;
}
DEVICE float2 load_once2(const float* p) {
  float2 x;
  asm volatile("ld.global.cs.v2.f32 {%0,%1},[%2];" : "=f"(x.x), "=f"(x.y) : "l"(p));
  return x;
}
DEVICE void store_once2(float* p, float2 x) { __stcs(reinterpret_cast<float2*>(p), x); }
DEVICE uint32_t load_word(const uint32_t* p) { return *reinterpret_cast<const volatile uint32_t*>(p); }
// Bulk copies between global and shared memory, counted in bytes by an mbarrier on the way in.
DEVICE void barrier_init(unsigned long long* b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0],%1;" ::"r"(shared_address(b)), "r"(arrivals) : "memory");
}
DEVICE void barrier_arrive(unsigned long long* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _,[%0];" ::"r"(shared_address(b)) : "memory");
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
DEVICE void bulk_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void bulk_store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

DEVICE void atomic_max(uint32_t* p, uint32_t x) { atomicMax(p, x); }
DEVICE int first_bit(uint32_t x) { return __ffs(x) - 1; }
DEVICE uint4 load_quad(const uint4* p) { return __ldcg(p); }
DEVICE void prefetch_line(const float* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }


DEVICE int thread_number() {
  int x;
  x = threadIdx.x;
  return x;
}
DEVICE int lane_number() {
  int x;
  x = threadIdx.x & 31;
  return x;
}
DEVICE int atomic_add(int* p, int x) { return atomicAdd(p, x); }

// ---------------------------------------------------------------- sizes

#ifndef C_TERMS
#define C_TERMS 2
#endif
constexpr int IB = 32;           // columns of a panel: one Gram and one recurrence
constexpr int TILE = 8;          // rows of a tile, the n of mma m16n8
constexpr int ROWS = 512;        // rows held on chip; a smaller n is padded with zeros
constexpr int TILES = ROWS / TILE;
constexpr int OWN = TILES / 4;   // tiles of a warp
constexpr int WARPS = 8;
constexpr int THREADS = WARPS * 32;
constexpr int CHUNKS = 4;        // a block of V arrives and leaves in chunks of 16 tiles
constexpr int T_OPERANDS = 20;   // 16 x 8 operands of an upper triangular 64 x 64
constexpr int PANEL_WORDS = TILES * 4 * 32;   // V of a panel in the workspace, half2 words
constexpr int PAD = 36;          // row stride in floats: float4 aligned, a warp's rows on different banks

// A column is scaled so that its largest entry is in [4, 8): its norm is then at most 8 sqrt(512) = 181, and
// orthogonal transforms keep it, so fp16 (65504) cannot overflow; entries under 2^-24 are lost, 2^-26 of the norm.
constexpr int SCALE_LOG2 = 2;
// A pivot this small against the squared norm of its column, or a column of M this large, would magnify the rounding
// of the Gram matrix (2^-22) too much: the pass ends before that column and a new one starts there.
constexpr float PIVOT_RATIO = 1e-5f;
constexpr float M_NORM = 300.f;
constexpr float TINY_SQUARE = 1e-30f;
// Rounding v to fp16 leaves an error of about 2e-4 |p| per column (root mean square of fp16's relative rounding), spread
// over the m rows left: 1-norm sqrt(m) 2e-4 |p|. Where that could reach TWO_TERM_AT of the 20 allowed, V takes two terms.
constexpr float V_ROUNDING = 2e-4f;
#ifndef TWO_TERM_AT
#define TWO_TERM_AT 7.f
#endif

struct Window {                  // scratch of one panel's recurrence; row i of the shifted ones starts at column i + 1
  float r_abs[IB][PAD];          // shifted: rows of the Cholesky factor of G
  float reflector[IB][PAD];      // shifted: v below its diagonal, top 32 rows
  float w[IB][PAD];              // shifted: U = diag(1/inverse) + w, P = V U
  float r[IB][IB];               // R: first up to sign, then signed
  float m[IB][PAD];              // [reflector][column]: M transposed, V = P M
  float inverse[IB];             // 1 / (alpha - beta), 0 where tau = 0
};
struct Triangle {                // scratch of larft
  float n12t[IB][PAD];           // (V1'V2)'
  float t11t[IB][PAD];           // transposed T of the block's first panel
  float t22t[IB][PAD];           // and of the second
  float product[IB][PAD];
  float t12t[IB][PAD];
};
struct Top {
  float top[IB][PAD];            // [row][column]: top of P
  float x[IB][IB + 1];           // half Gram, G = x + x'
};
struct Lane { int tid, warp, lane, rg, ch, g, q; };  // rg: row group, ch: column half
DEVICE Lane this_lane() {
  Lane me;
  me.tid = thread_number();
  me.lane = me.tid & 31;
  me.warp = me.tid >> 5;
  me.rg = me.warp >> 1;
  me.ch = me.warp & 1;
  me.g = me.lane >> 2;
  me.q = me.lane & 3;
  return me;
}
struct Job {  // kept in shared memory: registers are scarce
  const float* a; float* h; float* tau; uint32_t* v; uint32_t* v_lo; uint32_t* t; float* t11;
  int n, panels;
  int k;           // this panel
  uint32_t flags;  // panels whose V takes two terms
};
struct __align__(128) Shared {
  union {
    uint32_t v[2][TILES][4][32];   // an earlier block: V of its two panels
    uint32_t p[2][TILES][4][32];   // this panel: P as fp16 hi and lo, column col of a group at col ^ (group & 1); V takes hi's place
  };
  union {
    float4 partial[4][2][8][32];   // W of the row groups; [0] then holds W and [1] W' as operands
    float4 product[WARPS][8][32];  // 32 x 32 products of the warps' rows
    Window win;
    Triangle tri;
  };
  union {
    uint4 t[T_OPERANDS][32];       // T as mma operands: hi b0, hi b1, lo b0, lo b1
    Top top;
    float n[IB][PAD];              // V'V, strictly upper used
  };
  float tau[IB];
  float unscale[IB];               // undoes the column scaling
  float down[IB];                  // scales what is left of a column to a norm in [1, 2)
  float back[IB];                  // undoes both
  float2 stat[4][IB];              // column maxima and sums, then norms, of the row groups
  uint32_t largest_sum;            // bits of the largest column sum so far: ||A||_1 at the end
  uint32_t largest_left;           // bits of the largest norm left in this panel's columns
  int stop;                        // first column that this pass may not take
  unsigned long long full[CHUNKS + 1];  // mbarriers: chunks of V, T
  int left[CHUNKS];                // warps that have left a chunk
  Job job;
};

typedef float Panel[OWN][4];

DEVICE float power_of_two(int e) { return bits_float((uint32_t)(127 + e) << 23); }
DEVICE void split(float x, float y, uint32_t& hi, uint32_t& lo) {
  hi = pack_half2(x, y);
  float2 f = unpack_half2(hi);
  lo = pack_half2(x - f.x, y - f.y);
}

// ---------------------------------------------------------------- load and scale

template <bool EXACT>
DEVICE void load_panel(Panel& c, const Job& job, int k, const Lane& me) {
  const int col = k * IB + me.ch * 16 + 2 * me.g;
#pragma unroll
  for (int i = 0; i < OWN; i++) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int row = (4 * i + me.rg) * TILE + 2 * me.q + e;
      if (EXACT) {
        float2 x = load_once2(job.a + (size_t)row * ROWS + col);
        c[i][e] = x.x;
        c[i][2 + e] = x.y;
      } else {
        const bool in = row < job.n;
        c[i][e] = in && col < job.n ? load_once(job.a + (size_t)row * job.n + col) : 0.f;
        c[i][2 + e] = in && col + 1 < job.n ? load_once(job.a + (size_t)row * job.n + col + 1) : 0.f;
      }
    }
  }
}

// The next panel from memory to L2 while this one is worked on.
DEVICE void prefetch_panel(const Job& job, int k, const Lane& me) {
#pragma unroll 1
  for (int row = me.tid; row < job.n; row += THREADS) prefetch_line(job.a + (size_t)row * job.n + k * IB);
}

// c and raw are different registers: 8-byte loads and mma want different pairs side by side.
DEVICE void scale_panel(Panel& c, Panel& raw, Shared& s, const Lane& me) {
#pragma unroll
  for (int b = 0; b < 2; b++) {
    float most = 0.f, sum = 0.f;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
      float x = fabsf(raw[i][2 * b]), y = fabsf(raw[i][2 * b + 1]);
      most = fmaxf(most, fmaxf(x, y));
      sum += x + y;
    }
    most = fmaxf(most, shfl_xor(most, 1));
    most = fmaxf(most, shfl_xor(most, 2));
    sum += shfl_xor(sum, 1);
    sum += shfl_xor(sum, 2);
    if (me.q == 0) s.stat[me.rg][me.ch * 16 + 2 * me.g + b] = make_float2(most, sum);
  }
  sync_all();
#pragma unroll
  for (int b = 0; b < 2; b++) {
    const int col = me.ch * 16 + 2 * me.g + b;
    float most = 0.f, sum = 0.f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float2 x = s.stat[i][col];
      most = fmaxf(most, x.x);
      sum += x.y;
    }
    int e = SCALE_LOG2 + 127 - (int)(float_bits(most) >> 23);
    e = e > 126 ? 126 : e < -126 ? -126 : e;
    const float scale = power_of_two(e);
    if (me.rg == 0 && me.q == 0) {
      s.unscale[col] = power_of_two(-e);
      atomic_max(&s.largest_sum, float_bits(sum));
    }
#pragma unroll
    for (int i = 0; i < OWN; i++) {
      c[i][2 * b] = raw[i][2 * b] * scale;
      c[i][2 * b + 1] = raw[i][2 * b + 1] * scale;
    }
  }
}

// ---------------------------------------------------------------- larfb: apply an earlier block

// Lane's word of V's low term straight from global memory: rare, so not staged.
DEVICE uint32_t low_word(const uint32_t* v_lo, int tile, int group, int lane) {
  return load_word(v_lo + (tile * 4 + group) * 32 + lane);
}

DEVICE int block_panels(int j, int k) { return 2 * j + 1 < k ? 2 : 1; }

DEVICE void load_t(Shared& s, const Job& job, int j) {  // one thread
  barrier_expect(&s.full[CHUNKS], T_OPERANDS * 512);
  bulk_load(&s.t[0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, &s.full[CHUNKS]);
}
DEVICE void load_chunk(Shared& s, const Job& job, int j, int k, int q) {  // one thread
  const int first = 16 * q > 8 * j ? 16 * q : 8 * j;
  const int bytes = (16 * q + 16 - first) * 512, panels = block_panels(j, k);
  barrier_expect(&s.full[q], bytes * panels);
  for (int h = 0; h < panels; h++) {
    bulk_load(&s.v[h][first][0][0], job.v + (size_t)(2 * j + h) * PANEL_WORDS + first * 128, bytes, &s.full[q]);
  }
}

// One lane of each warp, when the warp has left chunk q of block j: the last one asks for the next block's.
DEVICE void leave_chunk(Shared& s, int j, int k, int q) {
  if (atomic_add(&s.left[q], 1) == WARPS - 1) {
    s.left[q] = 0;
    load_chunk(s, s.job, j + 1, k, q);
  }
}

// Which panels of the block have a second term of V: bits.
DEVICE uint32_t low_terms(Shared& s, int j, int k, bool inner) {
  const uint32_t flags = load_word(&s.job.flags);
  return inner ? flags >> k & 1u : flags >> (2 * j) & (block_panels(j, k) == 2 ? 3u : 1u);
}

// C = (I - V T' V') C with block j. `inner`: V is this panel's own, in place already, and nothing is to be loaded.
// Registers: 64 for C, 32 for W or W'; so indices are taken afresh from the hardware's thread number and flags from shared
// memory wherever they are needed. A spill would go to L2: shared memory leaves L1 no room.
DEVICE void apply_block(Panel& c, Shared& s, int j, int k, bool inner, uint32_t& phase) {
  const int halves = inner ? 1 : block_panels(j, k);
  {
    const Lane me = this_lane();
    // ldmatrix: this warp's tile and its next one, of two groups: the pairs are B operands
    const uint32_t v_at = shared_address(&s.v[0][me.rg + 4 * (me.lane >> 3 & 1)][me.lane >> 4][0]) + (me.lane & 7) * 16;
    // W^T = C^T V: c is the A operand as it stands. Reflectors 32 at a time: W beside C must fit the registers.
#pragma unroll 1
    for (int half = 0; half < halves; half++) {
      const uint32_t v_half = v_at + half * (TILES * 512);
      float w[4][4];
#pragma unroll
      for (int r = 0; r < 4; r++) w[r][0] = w[r][1] = w[r][2] = w[r][3] = 0.f;
#pragma unroll
      for (int st = 0; st < OWN / 2; st++) {
        if (st >= j) {
          if (!inner && half == 0 && ((st & 1) == 0 || st == j)) {
            barrier_wait(&s.full[st >> 1], phase >> (st >> 1) & 1);
            phase ^= 1u << (st >> 1);
          }
          uint32_t hi[4], lo[4], b[2][4];
          load_matrix(b[0], v_half + (8 * st) * 512);
          load_matrix(b[1], v_half + (8 * st) * 512 + 256);
#pragma unroll
          for (int z = 0; z < 4; z++) {
            split(c[2 * st + (z >> 1)][(z & 1) * 2], c[2 * st + (z >> 1)][(z & 1) * 2 + 1], hi[z], lo[z]);
          }
#pragma unroll
          for (int r = 0; r < 4; r++) mma_fp16(w[r], hi, b[r >> 1][2 * (r & 1)], b[r >> 1][2 * (r & 1) + 1]);
          if (C_TERMS == 2) {
#pragma unroll
            for (int r = 0; r < 4; r++) mma_fp16(w[r], lo, b[r >> 1][2 * (r & 1)], b[r >> 1][2 * (r & 1) + 1]);
          }
        }
      }
      if (low_terms(s, j, k, inner) >> half & 1u) {
        const uint32_t* from = s.job.v_lo + (size_t)(inner ? k : 2 * j + half) * PANEL_WORDS;
#pragma unroll
        for (int st = 0; st < OWN / 2; st++) {
          if (st >= j) {
            uint32_t hi[4];
#pragma unroll
            for (int z = 0; z < 4; z++) hi[z] = pack_half2(c[2 * st + (z >> 1)][(z & 1) * 2], c[2 * st + (z >> 1)][(z & 1) * 2 + 1]);
#pragma unroll
            for (int r = 0; r < 4; r++) {
              mma_fp16(w[r], hi, low_word(from, 8 * st + me.rg, r, me.lane), low_word(from, 8 * st + 4 + me.rg, r, me.lane));
            }
          }
        }
      }
#pragma unroll
      for (int r = 0; r < 4; r++) {
        s.partial[me.rg][me.ch][4 * half + r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
      }
    }
    bar_sync(1 + me.ch, 128);
  }
  {
    const Lane me = this_lane();
    // Of the 16-reflector steps, warp rg sums its own over the row groups: an A operand of the product with T. It takes
    // the place of what only this warp has read.
    uint4(*op)[32] = reinterpret_cast<uint4(*)[32]>(&s.partial[0][me.ch][0][0]);
    uint4(*op2)[32] = reinterpret_cast<uint4(*)[32]>(&s.partial[1][me.ch][0][0]);
    const bool mine = me.rg < 2 * halves;
    if (mine) {
      float4 x = s.partial[0][me.ch][2 * me.rg][me.lane], y = s.partial[0][me.ch][2 * me.rg + 1][me.lane];
#pragma unroll
      for (int i = 1; i < 4; i++) {
        const float4 x1 = s.partial[i][me.ch][2 * me.rg][me.lane], y1 = s.partial[i][me.ch][2 * me.rg + 1][me.lane];
        x.x += x1.x; x.y += x1.y; x.z += x1.z; x.w += x1.w;
        y.x += y1.x; y.y += y1.y; y.z += y1.z; y.w += y1.w;
      }
      uint4 hi, lo;
      split(x.x, x.y, hi.x, lo.x);
      split(x.z, x.w, hi.y, lo.y);
      split(y.x, y.y, hi.z, lo.z);
      split(y.z, y.w, hi.w, lo.w);
      op[2 * me.rg][me.lane] = hi;
      op[2 * me.rg + 1][me.lane] = lo;
    }
    bar_sync(1 + me.ch, 128);
    // W'^T = W^T T; the accumulators of two groups are an A operand of the next product again
    if (!inner) {
      barrier_wait(&s.full[CHUNKS], phase >> CHUNKS & 1);
      phase ^= 1u << CHUNKS;
    }
    if (mine) {
      float d[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, e[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll 1
      for (int st = 0; st <= me.rg; st++) {
        const uint4 h4 = op[2 * st][me.lane], l4 = op[2 * st + 1][me.lane];
        const uint32_t hi[4] = {h4.x, h4.y, h4.z, h4.w}, lo[4] = {l4.x, l4.y, l4.z, l4.w};
        const int at = st * (9 - st) + 2 * (me.rg - st);
#pragma unroll
        for (int u = 0; u < 2; u++) {
          const uint4 t = s.t[at + u][me.lane];
          mma_fp16(e[u], hi, t.z, t.w);
          mma_fp16(d[u], hi, t.x, t.y);
          mma_fp16(e[u], lo, t.x, t.y);
        }
      }
      uint4 hi, lo;
      split(-(d[0][0] + e[0][0]), -(d[0][1] + e[0][1]), hi.x, lo.x);
      split(-(d[0][2] + e[0][2]), -(d[0][3] + e[0][3]), hi.y, lo.y);
      split(-(d[1][0] + e[1][0]), -(d[1][1] + e[1][1]), hi.z, lo.z);
      split(-(d[1][2] + e[1][2]), -(d[1][3] + e[1][3]), hi.w, lo.w);
      op2[2 * me.rg][me.lane] = hi;
      op2[2 * me.rg + 1][me.lane] = lo;
    }
  }
  sync_all();
  const bool more = !inner && j + 1 < (k + 1) / 2;
  if (more && thread_number() == 0) load_t(s, s.job, j + 1);
  // C^T -= W'^T V^T
  if (low_terms(s, j, k, inner)) {
    const Lane me = this_lane();
    const uint32_t low = low_terms(s, j, k, inner);
    const uint32_t* v_lo = s.job.v_lo + (size_t)(inner ? k : 2 * j) * PANEL_WORDS;
#pragma unroll 1
    for (int st = 0; st < 2 * halves; st++) {
      if (low >> (st >> 1) & 1) {
        const uint32_t* from = v_lo + (st >> 1) * PANEL_WORDS;
        const uint4 h4 = reinterpret_cast<uint4(*)[32]>(&s.partial[1][me.ch][0][0])[2 * st][me.lane];
        const uint32_t hi[4] = {h4.x, h4.y, h4.z, h4.w};
#pragma unroll
        for (int i = 0; i < OWN; i++) {
          if (i >= 2 * j) {
            mma_fp16(c[i], hi, transpose_8x8(low_word(from, 4 * i + me.rg, 2 * (st & 1), me.lane)),
                     transpose_8x8(low_word(from, 4 * i + me.rg, 2 * (st & 1) + 1, me.lane)));
          }
        }
      }
    }
  }
#pragma unroll 1
  for (int half = 0; half < halves; half++) {
    const Lane me = this_lane();
    const uint32_t v_half =
        shared_address(&s.v[0][me.rg + 4 * (me.lane >> 4)][0][0]) + (me.lane & 15) * 16 + half * (TILES * 512);
    uint32_t wh[2][4], wl[2][4];
#pragma unroll
    for (int z = 0; z < 2; z++) {
      const uint4* op2 = reinterpret_cast<const uint4*>(&s.partial[1][me.ch][4 * half + 2 * z][me.lane]);
      const uint4 h4 = op2[0], l4 = op2[32];
      wh[z][0] = h4.x; wh[z][1] = h4.y; wh[z][2] = h4.z; wh[z][3] = h4.w;
      wl[z][0] = l4.x; wl[z][1] = l4.y; wl[z][2] = l4.z; wl[z][3] = l4.w;
    }
#pragma unroll
    for (int st = 0; st < OWN / 2; st++) {
      if (st >= j) {
        uint32_t b[2][4];
        load_matrix_transposed(b[0], v_half + (8 * st) * 512);
        load_matrix_transposed(b[1], v_half + (8 * st) * 512 + 256);
#pragma unroll
        for (int z = 0; z < 2; z++) {
          mma_fp16(c[2 * st], wl[z], b[z][0], b[z][1]);
          mma_fp16(c[2 * st + 1], wl[z], b[z][2], b[z][3]);
        }
#pragma unroll
        for (int z = 0; z < 2; z++) {
          mma_fp16(c[2 * st], wh[z], b[z][0], b[z][1]);
          mma_fp16(c[2 * st + 1], wh[z], b[z][2], b[z][3]);
        }
        // This chunk may be overwritten by the next block's: the last warp to leave it asks for that.
        if ((st & 1) == 1 && st >= j + 1 && more && half == 1) {
          sync_warp();
          if (lane_number() == 0) leave_chunk(s, j, k, st >> 1);
        }
      }
    }
  }
}

// ---------------------------------------------------------------- geqr2: a panel of 32 columns

// Norms of what is left of this warp's columns below row `done` of the panel, and the power of two that brings them
// to [1, 2).
DEVICE void remaining_norms(Panel& c, Shared& s, int k, int done, const Lane& me) {
#pragma unroll
  for (int b = 0; b < 2; b++) {
    float sum = 0.f;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
      const int row = (4 * i + me.rg - 4 * k) * TILE + 2 * me.q - done;
      if (4 * i + 3 >= 4 * k) {
        const float x = row >= 0 ? c[i][2 * b] : 0.f, y = row + 1 >= 0 ? c[i][2 * b + 1] : 0.f;
        sum = fmaf(x, x, sum);
        sum = fmaf(y, y, sum);
      }
    }
    sum += shfl_xor(sum, 1);
    sum += shfl_xor(sum, 2);
    if (me.q == 0) s.stat[me.rg][me.ch * 16 + 2 * me.g + b].x = sum;
  }
  sync_all();
#pragma unroll
  for (int b = 0; b < 2; b++) {
    const int col = me.ch * 16 + 2 * me.g + b;
    const float square = s.stat[0][col].x + s.stat[1][col].x + s.stat[2][col].x + s.stat[3][col].x;
    const int e = square < TINY_SQUARE ? 0 : ((int)(float_bits(square) >> 23) - 127) >> 1;
    if (me.rg == 0 && me.q == 0) {
      s.down[col] = power_of_two(-e);
      s.back[col] = power_of_two(e) * s.unscale[col];
      if (square >= TINY_SQUARE && done == 0) {
        atomic_max(&s.largest_left, float_bits(square * reciprocal_sqrt(square) * s.unscale[col]));
      }
    }
  }
  sync_all();
}

template <bool EXACT>
DEVICE void store_pair(const Job& job, int row, int col, float x, float y) {
  if (EXACT) {
    store_once2(job.h + (size_t)col * ROWS + row, make_float2(x, y));
  } else if (col < job.n) {
    if (row < job.n) job.h[(size_t)col * job.n + row] = x;
    if (row + 1 < job.n) job.h[(size_t)col * job.n + row + 1] = y;
  }
}

// Rows of R above the panel's top.
template <bool EXACT>
DEVICE void store_r(Panel& c, Shared& s, const Job& job, const Lane& me) {
  const int col = me.ch * 16 + 2 * me.g;
  const float u0 = s.unscale[col], u1 = s.unscale[col + 1];
#pragma unroll
  for (int i = 0; i < OWN; i++) {
    if (i < job.k) {
      const int row = (4 * i + me.rg) * TILE + 2 * me.q;
      store_pair<EXACT>(job, row, job.k * IB + col, c[i][0] * u0, c[i][1] * u0);
      store_pair<EXACT>(job, row, job.k * IB + col + 1, c[i][2] * u1, c[i][3] * u1);
    }
  }
}

// P, scaled by `down`, to shared memory as fp16 hi and lo tiles; its top 32 rows also in fp32. Columns and rows that
// are done count as zero in the tiles.
DEVICE void stage_panel(Panel& c, Shared& s, int k, int done, const Lane& me) {
  const int col = me.ch * 16 + 2 * me.g;
  const float d0 = s.down[col], d1 = s.down[col + 1];
  const int group = 2 * me.ch + (me.g >> 2);
  const int word0 = (((2 * me.g) & 7) ^ (group & 1)) * 4 + me.q;
  const int word1 = (((2 * me.g + 1) & 7) ^ (group & 1)) * 4 + me.q;
#pragma unroll
  for (int i = 0; i < OWN; i++) {
    if (i >= k) {
      const int tile = 4 * i + me.rg;
      float x0 = c[i][0] * d0, y0 = c[i][1] * d0, x1 = c[i][2] * d1, y1 = c[i][3] * d1;
      if (i == k) {
        const int row = me.rg * TILE + 2 * me.q;
        *(float2*)&s.top.top[row][col] = make_float2(x0, x1);
        *(float2*)&s.top.top[row + 1][col] = make_float2(y0, y1);
        if (row < done) x0 = x1 = 0.f;
        if (row + 1 < done) y0 = y1 = 0.f;
      }
      if (col < done) x0 = y0 = 0.f;
      if (col + 1 < done) x1 = y1 = 0.f;
      uint32_t hi, lo;
      split(x0, y0, hi, lo);
      s.p[0][tile][group][word0] = hi;
      s.p[1][tile][group][word0] = lo;
      split(x1, y1, hi, lo);
      s.p[0][tile][group][word1] = hi;
      s.p[1][tile][group][word1] = lo;
    }
  }
  if (k & 1) {  // of a block's second panel: no reflector reaches the first 32 rows
    for (int at = me.tid; at < 4 * 128; at += THREADS) (&s.p[0][4 * k - 4][0][0])[at] = 0u;
  }
}

template <int N>
DEVICE float4 sum_products(const float4 (*product)[8][32], int i, int lane) {
  float4 sum = product[0][i][lane];
#pragma unroll
  for (int w = 1; w < N; w++) {
    float4 x = product[w][i][lane];
    sum.x += x.x; sum.y += x.y; sum.z += x.z; sum.w += x.w;
  }
  return sum;
}

// Half Gram x with G = x + x' = P'P: x = HH/2 + HL for P = H + L in fp16. Rows are split over the warps.
DEVICE void gram(Shared& s, int first, const Lane& me) {
  const int l = me.lane & 7, cg = me.lane >> 3;
  const uint32_t at = shared_address(&s.p[0][0][cg][0]) + (l ^ (cg & 1)) * 16;
  constexpr int LOW = TILES * 512;
  float x[2][4][4];
#pragma unroll
  for (int i = 0; i < 32; i++) (&x[0][0][0])[i] = 0.f;
#pragma unroll 1
  for (int u = first / 2 + me.warp; u < TILES / 2; u += WARPS) {
    uint32_t h0[4], h1[4], l0[4], l1[4];
    load_matrix(h0, at + (2 * u) * 512);
    load_matrix(h1, at + (2 * u + 1) * 512);
    load_matrix(l0, at + (2 * u) * 512 + LOW);
    load_matrix(l1, at + (2 * u + 1) * 512 + LOW);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint32_t a[4] = {h0[2 * half], h0[2 * half + 1], h1[2 * half], h1[2 * half + 1]};
#pragma unroll
      for (int r = 0; r < 4; r++) mma_fp16(x[half][r], a, halve(h0[r]), halve(h1[r]));
#pragma unroll
      for (int r = 0; r < 4; r++) mma_fp16(x[half][r], a, l0[r], l1[r]);
    }
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float(&y)[4] = x[i >> 2][i & 3];
    s.product[me.warp][i][me.lane] = make_float4(y[0], y[1], y[2], y[3]);
  }
  sync_all();
  {
    const float4 y = sum_products<8>(s.product, me.warp, me.lane);
    const int row = (me.warp >> 2) * 16 + me.g, col = (me.warp & 3) * 8 + 2 * me.q;
    s.top.x[row][col] = y.x;
    s.top.x[row][col + 1] = y.y;
    s.top.x[row + 8][col] = y.z;
    s.top.x[row + 8][col + 1] = y.w;
  }
  sync_all();
}

// Why the recurrences are rolled loops: one warp runs this code once a panel, so unrolled it is bound by instruction
// fetch and evicts the other CTA's code. A rolled loop cannot index registers by i, so the registers move instead: x[0]
// is always row i of the lane's column, and a step moves row r+1 into r while it updates it. The multipliers are stored
// shifted to match, so that float4 loads stay aligned. The second half of the steps has only LIVE = 16 rows left.
template <int LIVE>
DEVICE void shift_and_add(float (&x)[IB + 1], const float* shifted_row, float factor) {
#pragma unroll
  for (int r = 0; r < LIVE; r += 4) {
    float4 y = *(const float4*)(shifted_row + r);
    x[r] = fmaf(y.x, factor, x[r + 1]);
    x[r + 1] = fmaf(y.y, factor, x[r + 2]);
    x[r + 2] = fmaf(y.z, factor, x[r + 3]);
    x[r + 3] = fmaf(y.w, factor, x[r + 4]);
  }
}

// Warp 0, lane = column: G = R'R. Signs are not needed for it. The next pivot needs only its own lane (g - r r), so the
// serial chain is one rsqrt and one shuffle a step.
template <int LIVE>
DEVICE void cholesky_steps(int begin, float (&g)[IB + 1], float& pivot, float& own, float least, Window& win, int lane) {
#pragma unroll 1
  for (int b = begin; b < begin + 2; b++) {
#pragma unroll 4
    for (int i = 8 * b; i < 8 * b + 8; i++) {
      float root = pivot > least ? reciprocal_sqrt(pivot) : 0.f;
      root = shfl(root, i);
      own = lane == i ? pivot : own;
      const float r = g[0] * root;
      pivot = fmaf(-r, r, g[1]);
      win.r[i][lane] = r;
      if (lane > i) win.r_abs[i][lane - i - 1] = r;
      sync_warp();
      shift_and_add<LIVE>(g, win.r_abs[i], -r);
    }
    bar_arrive(5 + b, 64);
  }
}
DEVICE void cholesky(Shared& s, int done, const Lane& me) {
  float g[IB + 1];
#pragma unroll
  for (int r = 0; r < IB; r++) g[r] = s.top.x[r][me.lane] + s.top.x[me.lane][r];
  g[IB] = 0.f;
  const float diagonal = 2.f * s.top.x[me.lane][me.lane];
  const float least = PIVOT_RATIO * diagonal;
  float pivot = g[0], own = 0.f;
  cholesky_steps<32>(0, g, pivot, own, least, s.win, me.lane);
  cholesky_steps<16>(2, g, pivot, own, least, s.win, me.lane);
  // The pass ends before a pivot that is too small, and after a zero column unless all that follow are zero too (the
  // Gram matrix has not lost that column's row of R).
  const bool zero = diagonal == 0.f;
  uint32_t bad = ballot(!zero && !(own > least));
  const uint32_t nonzero = ballot(!zero);
  const uint32_t zeros = ballot(zero && me.lane >= done && (me.lane < 31 && (nonzero >> me.lane) != 0u));
  bad |= zeros << 1;
  if (me.lane == 0) s.stop = bad != 0u ? first_bit(bad) : IB;
}

// Warp 1, lane = column: eliminate the top 32 x 32 for the signs. With v_i = 1, row i of the multipliers is
// w = (row i of P) - (row i of R), and the rows below lose v w.
template <int LIVE>
DEVICE void top_steps(int begin, float (&a)[IB + 1], float& alpha, Window& win, int lane) {
#pragma unroll 1
  for (int b = begin; b < begin + 2; b++) {
    bar_sync(5 + b, 64);
#pragma unroll 4
    for (int i = 8 * b; i < 8 * b + 8; i++) {
      const float r_abs = win.r[i][lane];
      // Meant for lane i: beta = -sign(alpha) |r| does not cancel in alpha - beta.
      const float sign = alpha >= 0.f ? -1.f : 1.f;
      const float inverse = r_abs > 0.f ? reciprocal(fmaf(-sign, r_abs, alpha)) : 0.f;
      const float inverse_i = shfl(inverse, i);
      const float sign_i = shfl(sign, i);
      const float v_next = shfl(a[1] * inverse, i);
      const float r = inverse_i == 0.f ? a[0] : sign_i * r_abs;
      const float w = a[0] - r;
      alpha = fmaf(-v_next, w, a[1]);
      if (lane >= i) win.r[i][lane] = r;
      if (lane > i) win.w[i][lane - i - 1] = w;
      if (lane == i) {
        win.inverse[i] = inverse;
#pragma unroll
        for (int u = 0; u < LIVE; u += 4) {
          *(float4*)&win.reflector[i][u] =
              make_float4(a[u + 1] * inverse, a[u + 2] * inverse, a[u + 3] * inverse, a[u + 4] * inverse);
        }
      }
      sync_warp();
      shift_and_add<LIVE>(a, win.reflector[i], -w);
    }
    bar_arrive(9 + b, 64);
  }
}
DEVICE void eliminate_top(Shared& s, const Lane& me) {
  float a[IB + 1];
#pragma unroll
  for (int r = 0; r < IB; r++) a[r] = s.top.top[r][me.lane];
  a[IB] = 0.f;
  float alpha = a[0];
  top_steps<32>(0, a, alpha, s.win, me.lane);
  top_steps<16>(2, a, alpha, s.win, me.lane);
}

// Warp 2, lane = row of M: from v_i = (p_i - sum over m < i of v_m w_mi) / (alpha_i - beta_i) follows V = P M; this is
// the same elimination run on the identity.
template <int LIVE>
DEVICE void m_steps(int begin, float (&m)[IB + 1], Window& win, int lane) {
#pragma unroll 1
  for (int b = begin; b < begin + 2; b++) {
    bar_sync(9 + b, 64);
#pragma unroll 4
    for (int i = 8 * b; i < 8 * b + 8; i++) {
      const float x = m[0] * win.inverse[i];
      win.m[i][lane] = x;
      shift_and_add<LIVE>(m, win.w[i], -x);
    }
  }
}
DEVICE void invert_top(Shared& s, const Lane& me) {
  float m[IB + 1];
#pragma unroll
  for (int r = 0; r <= IB; r++) m[r] = r == me.lane ? 1.f : 0.f;
  m_steps<32>(0, m, s.win, me.lane);
  m_steps<16>(2, m, s.win, me.lane);
}

// V = P M on tensor cores, rounded to fp16 (hi, or hi + lo), for the columns done <= j < stop: over P's high term, and to
// H. The top 32 rows come from the recurrence. Returns stop, the same in all warps: M must not be too large either.
template <bool EXACT>
DEVICE int form_reflectors(Shared& s, const Job& job, int done, const Lane& me) {
  Window& win = s.win;
  const int first = 4 * job.k;
  constexpr int HALF[3] = {0, 1, 1};
  constexpr int DEPTH[3] = {0, 0, 1};
  uint32_t m_hi[3][4], m_lo[3][4];
  float size[2][2] = {{0.f, 0.f}, {0.f, 0.f}};
#pragma unroll
  for (int f = 0; f < 3; f++) {
#pragma unroll
    for (int z = 0; z < 4; z++) {
      const float2 x = *(const float2*)&win.m[HALF[f] * 16 + me.g + 8 * (z & 1)][DEPTH[f] * 16 + 2 * me.q + 8 * (z >> 1)];
      split(x.x, x.y, m_hi[f][z], m_lo[f][z]);
      size[HALF[f]][z & 1] += fabsf(x.x) + fabsf(x.y);
    }
  }
  int stop = s.stop;
#pragma unroll
  for (int i = 3; i >= 0; i--) {
    float x = size[i >> 1][i & 1];
    x += shfl_xor(x, 1);
    x += shfl_xor(x, 2);
    const uint32_t large = ballot(!(x < M_NORM) && 8 * i + me.g > done);
    if (large != 0u) {
      const int at = 8 * i + first_bit(large) / 4;
      stop = at < stop ? at : stop;
    }
  }
  const int l = me.lane & 7, cg = me.lane >> 3;
  const uint32_t at = shared_address(&s.p[0][0][cg][0]) + (l ^ (cg & 1)) * 16;
  constexpr int LOW = TILES * 512;
  const bool two = job.flags >> job.k & 1u;
  const bool whole = done == 0 && stop == IB;
  float back[4], unit[4];
  bool in[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int j = 8 * i + me.g;
    back[i] = s.back[j];
    unit[i] = win.inverse[j] == 0.f ? 0.f : 1.f;
    in[i] = j >= done && j < stop;
  }
#pragma unroll 1
  for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
    uint32_t hi[4], lo[4];
    load_matrix_transposed(hi, at + tile * 512);
    load_matrix_transposed(lo, at + tile * 512 + LOW);
    float d[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
#pragma unroll
    for (int f = 0; f < 3; f++) {
      const int z = 2 * DEPTH[f];
      mma_fp16(d[HALF[f]], m_lo[f], hi[z], hi[z + 1]);
      mma_fp16(d[HALF[f]], m_hi[f], lo[z], lo[z + 1]);
      mma_fp16(d[HALF[f]], m_hi[f], hi[z], hi[z + 1]);
    }
    const bool top = tile < first + 4;
    const int row = (tile - first) * TILE + 2 * me.q;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int j = 8 * i + me.g;
      float x = d[i >> 1][(i & 1) * 2], y = d[i >> 1][(i & 1) * 2 + 1];
      if (top) {
        x = row > j ? win.reflector[j][row - j - 1] : row == j ? 1.f : 0.f;
        y = row + 1 > j ? win.reflector[j][row - j] : row + 1 == j ? 1.f : 0.f;
      }
      if (!in[i] || unit[i] == 0.f) x = y = 0.f;
      const uint32_t word = pack_half2(x, y);
      const size_t where = ((size_t)(job.k * TILES + tile) * 4 + i) * 32 + me.lane;
      s.p[0][tile][i][me.lane] = word;
      if (!whole && in[i]) job.v[where] = word;
      float2 v = unpack_half2(word);
      if (two) {
        const uint32_t low = pack_half2(x - v.x, y - v.y);
        if (j >= done) job.v_lo[where] = low;
        const float2 f = unpack_half2(low);
        v.x += f.x;
        v.y += f.y;
      }
      if (top) {
        if (row <= j) v.x = win.r[row][j] * back[i];
        if (row + 1 <= j) v.y = win.r[row + 1][j] * back[i];
      }
      if (in[i]) store_pair<EXACT>(job, first * TILE + row, job.k * IB + j, v.x, v.y);
    }
  }
  if (two && (job.k & 1)) {
    for (int i = me.tid; i < 4 * 128; i += THREADS) job.v_lo[(size_t)(job.k * TILES + first - 4) * 128 + i] = 0u;
  }
  return stop;
}

// ---------------------------------------------------------------- larft

// Sums of Va'Vb over every `step`th pair of tiles from `begin` on, to product[slot]. Vb is this panel's V, Va that too or
// the panel's before (shared memory half a).
DEVICE void reflector_products(Shared& s, const Job& job, int a, int begin, int step, int slot, const Lane& me) {
  const uint32_t at = shared_address(&s.v[0][0][0][0]) + me.lane * 16;
  const bool low_b = job.flags >> job.k & 1u, low_a = job.flags >> (job.k - a) & 1u;
  const uint32_t* lo_b = job.v_lo + (size_t)job.k * PANEL_WORDS;
  const uint32_t* lo_a = lo_b - a * PANEL_WORDS;
  float x[2][4][4];
#pragma unroll
  for (int i = 0; i < 32; i++) (&x[0][0][0])[i] = 0.f;
#pragma unroll 1
  for (int u = begin; u < TILES / 2; u += step) {
    uint32_t a0[4], a1[4], b0[4], b1[4];
    load_matrix(a0, at + a * (TILES * 512) + (2 * u) * 512);
    load_matrix(a1, at + a * (TILES * 512) + (2 * u + 1) * 512);
    load_matrix(b0, at + (2 * u) * 512);
    load_matrix(b1, at + (2 * u + 1) * 512);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint32_t op[4] = {a0[2 * half], a0[2 * half + 1], a1[2 * half], a1[2 * half + 1]};
#pragma unroll
      for (int r = 0; r < 4; r++) mma_fp16(x[half][r], op, b0[r], b1[r]);
      if (low_b) {
#pragma unroll
        for (int r = 0; r < 4; r++) {
          mma_fp16(x[half][r], op, low_word(lo_b, 2 * u, r, me.lane), low_word(lo_b, 2 * u + 1, r, me.lane));
        }
      }
      if (low_a) {
        const uint32_t op_lo[4] = {low_word(lo_a, 2 * u, 2 * half, me.lane), low_word(lo_a, 2 * u, 2 * half + 1, me.lane),
                                   low_word(lo_a, 2 * u + 1, 2 * half, me.lane), low_word(lo_a, 2 * u + 1, 2 * half + 1, me.lane)};
#pragma unroll
        for (int r = 0; r < 4; r++) mma_fp16(x[half][r], op_lo, b0[r], b1[r]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float(&y)[4] = x[i >> 2][i & 3];
    s.product[slot][i][me.lane] = make_float4(y[0], y[1], y[2], y[3]);
  }
}

// One warp, lane = row: out = U^-1 transposed for U = diag(1/inverse) + w, upper triangular. inverse 0 gives a zero
// row and column.
DEVICE void invert_upper(const float (*w)[PAD], const float* inverse, float (*out)[PAD], int lane) {
  float m[IB];
#pragma unroll
  for (int r = 0; r < IB; r++) m[r] = r == lane ? 1.f : 0.f;
#pragma unroll 1
  for (int b = 0; b < 4; b++) {
    float m8[8];
#pragma unroll
    for (int st = 0; st < 8; st++) {
      m8[st] = m[st] * inverse[8 * b + st];
      out[8 * b + st][lane] = m8[st];
#pragma unroll
      for (int u = st + 1; u < 8; u++) m[u] = fmaf(-w[8 * b + st][8 * b + u], m8[st], m[u]);
    }
#pragma unroll
    for (int block = 0; block < 3; block++) {
      if (block < 3 - b) {
        float t[8];
#pragma unroll
        for (int u = 0; u < 8; u++) t[u] = m[8 * block + 8 + u];
#pragma unroll
        for (int st = 0; st < 8; st++) {
          const float4 x = *(const float4*)&w[8 * b + st][8 * b + 8 + 8 * block];
          const float4 y = *(const float4*)&w[8 * b + st][8 * b + 12 + 8 * block];
          t[0] = fmaf(-x.x, m8[st], t[0]); t[1] = fmaf(-x.y, m8[st], t[1]);
          t[2] = fmaf(-x.z, m8[st], t[2]); t[3] = fmaf(-x.w, m8[st], t[3]);
          t[4] = fmaf(-y.x, m8[st], t[4]); t[5] = fmaf(-y.y, m8[st], t[5]);
          t[6] = fmaf(-y.z, m8[st], t[6]); t[7] = fmaf(-y.w, m8[st], t[7]);
        }
#pragma unroll
        for (int u = 0; u < 8; u++) m[8 * block + u] = t[u];
      }
    }
  }
}

// V'V of this panel, tau = 2/v'v and T = (diag(1/tau) + strictly upper V'V)^-1, transposed, to tri.t22t; with `cross` also
// V1'V2, V1 being the panel before in half 1 of the shared memory.
template <bool EXACT>
DEVICE void panel_t(Shared& s, const Job& job, bool cross, bool need_t, const Lane& me) {
  const int k = job.k;
  if (cross) {
    reflector_products(s, job, me.warp >> 2, 2 * k + (me.warp & 3), 4, me.warp, me);
  } else {
    reflector_products(s, job, 0, 2 * k + me.warp, WARPS, me.warp, me);
  }
  sync_all();
  const int row = (me.warp >> 2) * 16 + me.g, col = (me.warp & 3) * 8 + 2 * me.q;
  const float4 y = cross ? sum_products<4>(s.product, me.warp, me.lane) : sum_products<8>(s.product, me.warp, me.lane);
  float4 y12 = make_float4(0.f, 0.f, 0.f, 0.f);
  if (cross) y12 = sum_products<4>(s.product + 4, me.warp, me.lane);
  const float z[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int a = row + 8 * (i >> 1), b = col + (i & 1);
    s.n[a][b] = z[i];
    if (a == b) {
      const float tau = z[i] > 0.f ? two_over(z[i]) : 0.f;
      s.tau[a] = tau;
      if (k * IB + a < job.n) job.tau[k * IB + a] = tau;
    }
  }
  sync_all();
  if (cross) {
    s.tri.n12t[col][row] = y12.x;
    s.tri.n12t[col + 1][row] = y12.y;
    s.tri.n12t[col][row + 8] = y12.z;
    s.tri.n12t[col + 1][row + 8] = y12.w;
    for (int i = me.tid; i < IB * IB; i += THREADS) s.tri.t11t[i >> 5][i & 31] = job.t11[i];
  }
  if (need_t && me.warp == 0) invert_upper(s.n, s.tau, s.tri.t22t, me.lane);
  sync_all();
}

// out' = scale * (x' y) for 32 x 32: out[j][a] = scale * sum over m of x[j][m] y[m][a]
DEVICE void small_product(float (*out)[PAD], const float (*x)[PAD], const float (*y)[PAD], float scale, const Lane& me) {
  const int j = me.tid >> 3, a = 4 * (me.tid & 7);
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 8
  for (int m = 0; m < IB; m++) {
    const float u = x[j][m];
    const float4 z = *(const float4*)&y[m][a];
    sum.x = fmaf(u, z.x, sum.x);
    sum.y = fmaf(u, z.y, sum.y);
    sum.z = fmaf(u, z.z, sum.z);
    sum.w = fmaf(u, z.w, sum.w);
  }
  *(float4*)&out[j][a] = make_float4(scale * sum.x, scale * sum.y, scale * sum.z, scale * sum.w);
}

// T as B operands: operand (st, r) is rows 16 st .. + 15, columns 8 r .. + 7.
DEVICE uint4 t_operand(int st, int r, const float (*tt)[PAD], const Lane& me) {
  const float* t = &tt[(8 * r + me.g) & 31][(16 * st + 2 * me.q) & 31];
  uint4 x;
  split(t[0], t[1], x.x, x.z);
  split(t[8], t[9], x.y, x.w);
  return x;
}

// ---------------------------------------------------------------- geqrf

template <bool EXACT>
DEVICE void factor_matrix(Shared& s, const Job& io) {
  uint32_t phase = 0;
  Lane me = this_lane();
  Job& job = s.job;
  if (me.tid == 0) {
    for (int q = 0; q <= CHUNKS; q++) barrier_init(&s.full[q], 1);
    for (int q = 0; q < CHUNKS; q++) s.left[q] = 0;
    fence_async();
    s.largest_sum = 0u;
    s.largest_left = 0u;
    job = io;
    job.k = 0;
    job.flags = 0u;
  }
  sync_all();
  const int panels = io.panels;
#pragma unroll 1
  for (int k = 0; k < panels; k++) {
    if (me.tid == 0) job.k = k;
    const bool last = k + 1 == panels;
    me = this_lane();
    if (!last) prefetch_panel(job, k + 1, me);
    Panel c;
    {
      Panel raw;
      load_panel<EXACT>(raw, job, k, me);
      scale_panel(c, raw, s, me);
    }
    const int blocks = (k + 1) / 2;
    int j = 0, done = 0;
    bool inner = false;
#pragma unroll 1
    while (true) {
#pragma unroll 1
      for (; j < blocks || inner; j++) {
        apply_block(c, s, inner ? k / 2 : j, k, inner, phase);
        if (inner) break;
      }
      me = this_lane();
      inner = false;
      j = blocks;
      sync_all();  // the stage becomes P's
      remaining_norms(c, s, k, done, me);
      if (done == 0) {
        const float m = (float)(job.n - k * IB);
        const float left = sqrtf(m) * V_ROUNDING * bits_float(s.largest_left);
        if (left > TWO_TERM_AT * 1.1920929e-7f * (float)job.n * bits_float(s.largest_sum) && me.tid == 0) {
          job.flags |= 1u << k;
        }
      }
      stage_panel(c, s, k, done, me);
      sync_all();
      if (me.tid == 0) s.largest_left = 0u;
      me = this_lane();
      gram(s, 4 * k, me);
      me = this_lane();
      if (me.warp == 0) cholesky(s, done, me);
      if (me.warp == 1) eliminate_top(s, me);
      if (me.warp == 2) invert_top(s, me);
      sync_all();
      const bool whole = done == 0;
      me = this_lane();
      done = form_reflectors<EXACT>(s, job, done, me);
      sync_all();
      me = this_lane();
      if (done == IB) {
        if (!whole) {  // the columns of all passes together
          const uint32_t* from = job.v + (size_t)k * PANEL_WORDS;
          for (int at = 4 * k * 128 + me.tid; at < PANEL_WORDS; at += THREADS) (&s.p[0][0][0][0])[at] = load_word(from + at);
          sync_all();
        }
        break;
      }
      panel_t<EXACT>(s, job, false, true, me);
      me = this_lane();
      if (me.warp < 6) {
        const int st = me.warp < 4 ? 0 : 1, r = me.warp < 4 ? me.warp : me.warp - 2;
        s.t[st * (9 - st) + r - 2 * st][me.lane] = t_operand(st, r, s.tri.t22t, me);
      }
      sync_all();
      inner = true;
    }
    store_r<EXACT>(c, s, job, me);
    me = this_lane();
    const bool cross = (k & 1) && !last;
    if (cross) {
      if (me.tid == 0) {
        fence_async();
        const int first = 4 * k - 4;
        barrier_expect(&s.full[0], (TILES - first) * 512);
        bulk_load(&s.v[1][first][0][0], job.v + (size_t)(k - 1) * PANEL_WORDS + first * 128, (TILES - first) * 512, &s.full[0]);
      }
      barrier_wait(&s.full[0], phase & 1);
      phase ^= 1u;
    }
    panel_t<EXACT>(s, job, cross, !last, me);
    me = this_lane();
    if (!last) {
      Triangle& tri = s.tri;
      if (cross) {
        small_product(tri.product, tri.t22t, tri.n12t, 1.f, me);
        sync_all();
        small_product(tri.t12t, tri.product, tri.t11t, -1.f, me);
        sync_all();
        for (int f = me.warp; f < T_OPERANDS; f += WARPS) {
          const int st = f < 8 ? 0 : f < 14 ? 1 : f < 18 ? 2 : 3;
          const int r = f - st * (9 - st) + 2 * st;
          s.t[f][me.lane] = t_operand(st, r, r < 4 ? tri.t11t : st < 2 ? tri.t12t : tri.t22t, me);
        }
      } else {
        if (me.warp < 6) {
          const int st = me.warp < 4 ? 0 : 1, r = me.warp < 4 ? me.warp : me.warp - 2;
          s.t[st * (9 - st) + r - 2 * st][me.lane] = t_operand(st, r, tri.t22t, me);
        }
        for (int i = me.tid; i < IB * IB; i += THREADS) job.t11[i] = tri.t22t[i >> 5][i & 31];
      }
      fence_async();
      sync_all();
      if (me.tid == 0) {
        const int first = 4 * (k & ~1);
        bulk_store(job.v + (size_t)k * PANEL_WORDS + first * 128, &s.v[0][first][0][0], (TILES - first) * 512);
        bulk_store(job.t + (size_t)(k >> 1) * T_OPERANDS * 128, &s.t[0][0], T_OPERANDS * 512);
        bulk_store_commit();
        bulk_store_wait();
        for (int q = 0; q < CHUNKS; q++) load_chunk(s, job, 0, k + 1, q);
        load_t(s, job, 0);
      }
    }
  }
}


template <bool EXACT>
__global__ void __launch_bounds__(THREADS, 2)
    geqrf_kernel(const float* a, float* h, float* tau, uint32_t* v, uint32_t* v_lo, uint32_t* t, float* t11, int n, int panels) {
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  Shared& s = *reinterpret_cast<Shared*>(shared_bytes);
  const size_t matrix = blockIdx.x;
  const int blocks = (panels + 1) / 2;
  Job job;
  job.a = a + matrix * n * n;
  job.h = h + matrix * n * n;
  job.tau = tau + matrix * n;
  job.v = v + matrix * panels * PANEL_WORDS;
  job.v_lo = v_lo + matrix * panels * PANEL_WORDS;
  job.t = t + matrix * blocks * (T_OPERANDS * 128);
  job.t11 = t11 + matrix * (IB * IB);
  job.n = n;
  job.panels = panels;
  factor_matrix<EXACT>(s, job);
}

// Launches on the default queue; returns a CUDA error code.
// Workspace bytes: v, v_lo batch * panels * 32768 each; t batch * blocks * 10240; t11 batch * 4096.
static int launch(const void* a, void* h, void* tau, void* v, void* v_lo, void* t, void* t11, int batch, int n) {
  auto kernel = n == ROWS ? geqrf_kernel<true> : geqrf_kernel<false>;
  cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(Shared));
  if (e != cudaSuccess) return (int)e;
  kernel<<<batch, THREADS, sizeof(Shared)>>>((const float*)a, (float*)h, (float*)tau, (uint32_t*)v, (uint32_t*)v_lo,
                                             (uint32_t*)t, (float*)t11, n, (n + IB - 1) / IB);
  return (int)cudaGetLastError();
}

}  // namespace n512b

int n512b_launch(const void* a, void* h, void* tau, void* v, void* v_lo, void* t, void* t11, int batch, int n) {
  return n512b::launch(a, h, tau, v, v_lo, t, t11, batch, n);
}
'''

# The binding is compiled by the host compiler alone: nvcc never sees torch's headers (35 s of build).
BINDING = r'''
#include <torch/extension.h>

int n512b_launch(const void* a, void* h, void* tau, void* v, void* v_lo, void* t, void* t11, int batch, int n);

// a: (batch, n, n) float32, contiguous. Returns H as a transposed view, tau. Workspace: V in fp16 (half of A's bytes), its
// low term (as much, written only where a panel asks for it), T.
std::vector<torch::Tensor> n512b_geqrf(torch::Tensor a) {
  const int64_t batch = a.size(0), n = a.size(1), panels = (n + 31) / 32, blocks = (panels + 1) / 2;
  const int64_t v_bytes = batch * panels * 32768, t_bytes = batch * blocks * 10240;
  auto h = torch::empty({batch, n, n}, a.options());
  auto tau = torch::empty({batch, n}, a.options());
  auto work = torch::empty({2 * v_bytes + t_bytes + batch * 4096}, a.options().dtype(torch::kUInt8));
  char* w = static_cast<char*>(work.data_ptr());
  const int error = n512b_launch(a.data_ptr(), h.data_ptr(), tau.data_ptr(), w, w + v_bytes, w + 2 * v_bytes,
                                 w + 2 * v_bytes + t_bytes, (int)batch, (int)n);
  TORCH_CHECK(error == 0, "n512b launch: CUDA error ", error);
  return {h.transpose(1, 2), tau};
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("geqrf", &n512b_geqrf); }
'''

MIN_N, MAX_N = 257, 512  # a panel of 32 columns and 512 rows fills half of a CTA's registers


def _build():
    """The compiled module, or None (torch.geqrf then does the work) without a CUDA device or a compiler."""
    if not torch.cuda.is_available():
        warnings.warn("n512b: no CUDA device, using torch.geqrf")
        return None
    major, minor = torch.cuda.get_device_capability()
    arch = f"{major}{minor}" + ("a" if major >= 9 else "")
    options = {}
    if "no_implicit_headers" in inspect.signature(load_inline).parameters:
        options["no_implicit_headers"] = True
    return load_inline(
        name="qr_v26", cpp_sources=[BINDING], cuda_sources=[CUDA], extra_cflags=["-O2"],
        extra_cuda_cflags=["-O3", "-std=c++17", f"-gencode=arch=compute_{arch},code=sm_{arch}"], **options)


_module = _build()


def geqrf_n512b(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(batch, n, n) float32 CUDA, MIN_N <= n <= MAX_N: (H, tau) like torch.geqrf, H as a transposed view."""
    h, tau = _module.geqrf(a.contiguous())
    return h, tau


def custom_kernel(data: input_t) -> output_t:
    n = data.shape[-1]
    if _module is not None and data.is_cuda and data.shape[0] > 0 and MIN_N <= n <= MAX_N:
        return geqrf_n512b(data)
    h, tau = torch.geqrf(data)
    return h, tau
