#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""v30 n1024 cluster: left-looking Householder QR, one cluster of four CTAs a matrix, wgmma.

Algorithm  panels of 64 columns, held in registers from load to store, rows dealt 16 at a time to 8 warpgroups of 4 CTAs;
           larfb of the earlier blocks (W summed and W' = T'W distributed over the cluster's shared memory), then twice
           geqr2 of 32 columns: Gram matrix (wgmma) -> recurrence (three warps) -> V = P M (wgmma), then larft
Precision  V rounded to fp16 and then exact: tau = 2/v'v of the rounded v, so H is orthogonal to fp32. larfb: C and W'
           one fp16 term, fp32 accumulation; T' W in 3xTF32; inside the panel two terms throughout
Shapes     513 <= n <= 1536, any batch; everything else: torch.geqrf
Parent     none (shared/prototypes/left_looking_readable.cu, large/blockpanel.cuh)
Result     see records/
Bound by   latency: about 120 exchanges over the cluster, 1,024 serial columns

Guard. A pass over 32 columns stops before column j where its pivot cancelled (pivot < 1e-5 |p_j|^2) or where
sum_k |p_k| |M_kj| > 300, both exact in every CTA; the columns before j are applied and a new pass starts with a new
Gram matrix. The first column always passes, so at worst a pass is one column (zero column: tau = 0, v = 0).
"""
import inspect
import warnings

import torch
from task import input_t, output_t

MIN_N, MAX_N = 513, 1536  # smaller n needs a second fp16 term of V; larger n more rows than a cluster holds

CUDA = r"""
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
DEVICE uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
DEVICE uint32_t bits(__half2 h) { return *reinterpret_cast<uint32_t*>(&h); }

// The same value, but the compiler cannot know it: keeps it from computing hundreds of addresses ahead of a loop and
// spilling them (a function that spills gets its wgmma serialised).
DEVICE int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// d += A B in 3xTF32's single term: A 16 x 8, B 8 x 8
DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Descriptor of an operand in shared memory, no swizzle: 8 x 8 core matrices of 128 contiguous bytes; `lead` is the
// distance between cores along K, `stride` along N.
DEVICE uint64_t descriptor(uint32_t address, uint32_t lead, uint32_t stride) {
  return (uint64_t)((address & 0x3ffff) >> 4) | ((uint64_t)(lead >> 4) << 16) | ((uint64_t)(stride >> 4) << 32);
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
#endif

// Makes this thread's ordinary stores to shared memory visible to wgmma and to bulk copies.
DEVICE void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

DEVICE void named_arrive(int id) { asm volatile("bar.arrive %0,64;" ::"r"(id) : "memory"); }
DEVICE void named_join(int id) { asm volatile("bar.sync %0,64;" ::"r"(id) : "memory"); }

// The cluster: rank, barrier in two halves, address of the same place in another CTA, stores that arrive on a barrier
DEVICE uint32_t cluster_rank() {
  uint32_t r;
  asm volatile("mov.u32 %0,%%cluster_ctarank;" : "=r"(r));
  return r;
}
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
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
DEVICE void barrier_init(uint32_t bar) {
  asm volatile("mbarrier.init.shared.b64 [%0],1;" ::"r"(bar) : "memory");
}
DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void barrier_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;" ::"r"(bar), "r"(bytes) : "memory");
}
DEVICE void barrier_wait(uint32_t bar, uint32_t phase) {
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}"
        : "=r"(done) : "r"(bar), "r"(phase) : "memory");
  }
}
DEVICE void bulk_load(uint32_t to, const void* from, uint32_t bytes, uint32_t bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(bar) : "memory");
}
DEVICE void bulk_store(void* to, uint32_t from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;\ncp.async.bulk.commit_group;" ::"l"(to),
               "r"(from), "r"(bytes) : "memory");
}
DEVICE void bulk_store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// ------------------------------------------------------------------ sizes

constexpr int PANEL = 64;             // columns of a panel = reflectors of a block = M of wgmma
constexpr int SUB = 32;               // columns factorised from one Gram matrix = lanes
constexpr int CHUNKS = 4;             // a warp's rows: 4 chunks of 32 rows (4 tiles of 8)
constexpr int TILE_BYTES = 1024;      // V of 8 rows: 8 groups of 8 reflectors, 8 x 8 halves each
constexpr int CHUNK_BYTES = 4 * TILE_BYTES;
constexpr int MAX_SCALE_LOG2 = 6;     // columns are scaled to a largest entry of 2^6 .. 2^7
constexpr unsigned ALL = ~0u;
constexpr float CANCELLED = 1e-5f;    // pivot / column norm^2 under which the Gram matrix is not trusted
constexpr float AMPLIFIED = 300.f;    // largest sum_k |p_k| |M_kj|
constexpr float ZERO_PIVOT = 1e-20f;

// row strides in floats
constexpr int LD_X = 33, LD_TOP = 34, LD_SHIFT = 36, LD_M = 40;

template <int C_, int G_>
struct Config {
  static constexpr int C = C_;                  // CTAs of a cluster = of a matrix
  static constexpr int G = G_;                  // warpgroups of a CTA
  static constexpr int THREADS = 128 * G;
  static constexpr int UNITS = C * G;           // warpgroups of a matrix; rows are dealt to them 16 at a time
  static constexpr int ROWS = 128 * UNITS;      // rows that fit
  static constexpr int CHUNK_ROWS = 32 * UNITS; // rows of one chunk over the whole matrix
  static constexpr int OWNED = 4 / C;           // groups of 16 columns whose W a CTA sums
  static constexpr int STAGE = CHUNKS * G * CHUNK_BYTES;
  static constexpr int MAX3(int a, int b, int c) { return a > b ? (a > c ? a : c) : (b > c ? b : c); }
  static constexpr int INBOX = MAX3(OWNED * UNITS * 4096, UNITS * 4096, C * 8192);
  static constexpr int O_INBOX = 2 * STAGE;
  static constexpr int O_W = O_INBOX + INBOX;            // summed W as A operand of W'; S in the panel
  static constexpr int O_WOP = O_W + OWNED * 4096;       // -W' as A operand of the update; S in the panel
  static constexpr int O_TOP = O_WOP + 8192;             // top 32 x 32 of the sub-panel, [column][row]
  static constexpr int O_TAU = O_TOP + SUB * LD_TOP * 4;
  static constexpr int O_UNSCALE = O_TAU + 256;
  static constexpr int O_MISC = O_UNSCALE + 256;         // m_scale[32], stop, barriers
  static constexpr int BYTES = O_MISC + 128 + 64 + 64;
  // inside the inbox, once its sums are taken (the recurrence's scratch)
  static constexpr int O_X = O_INBOX, O_V = O_X + SUB * LD_TOP * 4, O_R1 = O_V + SUB * LD_SHIFT * 4,
                       O_WR = O_R1 + SUB * LD_SHIFT * 4, O_R = O_WR + SUB * LD_SHIFT * 4, O_M = O_R + 4096,
                       O_INV = O_M + SUB * LD_M * 4, SCRATCH_END = O_INV + 128;
  static_assert(SCRATCH_END <= O_INBOX + INBOX, "scratch fits the inbox");
  // inside stage 1 during the panel: H and L tiles; later partial sums, W, W', shifted S
  static constexpr int O_H = STAGE, O_L = STAGE + STAGE / 2;
  static constexpr int O_PW = O_L, O_SS = O_PW + PANEL * LD_SHIFT * 4, O_PWP = O_H;
  static_assert(O_SS + 2 * (SUB * LD_SHIFT * 4 + 64) <= 2 * STAGE + (G < 2 ? 0 : 4096), "S fits");
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
using Acc = float[CHUNKS][16];  // [chunk][tile*4 + 2*(column+8) + row]

DEVICE uint32_t pack(float x, float y) { return bits(__floats2half2_rn(x, y)); }
DEVICE __half2 halves(uint32_t u) { return *reinterpret_cast<__half2*>(&u); }
DEVICE void split_fp16(float x, float y, uint32_t& hi, uint32_t& lo) {
  __half2 h = __floats2half2_rn(x, y);
  float2 f = __half22float2(h);
  hi = bits(h);
  lo = pack(x - f.x, y - f.y);
}
DEVICE void split_tf32(float x, uint32_t& hi, uint32_t& lo) {
  hi = __float_as_uint(x) & 0xffffe000u;
  lo = __float_as_uint(x - __uint_as_float(hi));
}
DEVICE float power_of_two(int e) { return __uint_as_float((uint32_t)(127 + e) << 23); }

template <class K>
DEVICE int chunk_row(int chunk, int tile, int unit) {  // first row of a tile
  return ((2 * chunk + (tile >> 1)) * K::UNITS + unit) * 16 + (tile & 1) * 8;
}

// ------------------------------------------------------------------ applying an earlier block

template <int FIRST, class K>
DEVICE void multiply_by_v(float (&w)[32], Acc& acc, uint32_t stage, Lane me) {
#pragma unroll
  for (int c = FIRST; c < CHUNKS; c++) {
    const uint32_t at = stage + (c * K::G + me.group) * CHUNK_BYTES;
    uint32_t a[2][4];
#pragma unroll
    for (int h = 0; h < 2; h++) {
#pragma unroll
      for (int z = 0; z < 4; z++) a[h][z] = pack(acc[c][h * 8 + (z >> 1) * 4 + (z & 1) * 2], acc[c][h * 8 + (z >> 1) * 4 + (z & 1) * 2 + 1]);
    }
    wgmma_fence();
    wgmma<true>(w, a[0], descriptor(at, TILE_BYTES, 128));
    wgmma<true>(w, a[1], descriptor(at + 2 * TILE_BYTES, TILE_BYTES, 128));
    wgmma_commit();
    wgmma_wait();  // more in flight would need the operands of two chunks in registers: spills
  }
  wgmma_wait();
}
template <int FIRST, class K>
DEVICE void subtract_v_times_w(Acc& acc, const uint4* wop, uint32_t stage, Lane me) {
  uint32_t a[4][4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    uint4 x = wop[(me.cg * 4 + k) * 32 + me.lane];
    a[k][0] = x.x;
    a[k][1] = x.y;
    a[k][2] = x.z;
    a[k][3] = x.w;
  }
  wgmma_fence();
#pragma unroll
  for (int c = FIRST; c < CHUNKS; c++) {
    const uint32_t at = stage + (c * K::G + me.group) * CHUNK_BYTES;
#pragma unroll
    for (int k = 0; k < 4; k++) wgmma<false>(acc[c], a[k], descriptor(at + k * 256, 128, TILE_BYTES));
  }
  wgmma_commit();
  wgmma_wait();
}

struct Args {
  const float* a;
  float* h;    // column-major: h[column * ld + row], ld even and > n if n is odd
  float* tau;
  unsigned char* v;  // [matrix][block][rank] STAGE bytes
  float2* t;         // [matrix][block] 64 x 64 floats as operands
  int n, ld;
};

// Barriers in shared memory: what has arrived. Bit i of `phase` is the parity to wait for next at barrier i.
enum { FULL_0, FULL_1, INBOX_BAR, WOP_BAR, PANEL_BAR, BARRIERS };
template <class K>
DEVICE uint32_t barrier_at(uint32_t base, int i) {
  return base + K::O_MISC + 192 + 8 * i;
}
template <class K>
DEVICE void wait_for(uint32_t base, int i, uint32_t& phase) {
  barrier_wait(barrier_at<K>(base, i), phase >> i & 1);
  phase ^= 1u << i;
}

template <class K>
DEVICE unsigned char* v_block(const Args& p, int block, int j) {
  const int panels = (p.n + PANEL - 1) / PANEL;
  return p.v + ((size_t)(block / K::C * panels + j) * K::C + block % K::C) * K::STAGE;
}
DEVICE float2* t_block(const Args& p, int matrix, int j) {
  return p.t + (size_t)(matrix * ((p.n + PANEL - 1) / PANEL) + j) * 2048;
}
template <class K>
DEVICE void load_block(const Args& p, uint32_t base, int j) {  // one thread
  const int first = j * PANEL / K::CHUNK_ROWS, skip = first * K::G * CHUNK_BYTES, stage = (j + 1) & 1;
  const uint32_t bar = barrier_at<K>(base, FULL_0 + stage);
  barrier_expect(bar, K::STAGE - skip);
  bulk_load(base + stage * K::STAGE + skip, v_block<K>(p, opaque(blockIdx.x), j) + skip, K::STAGE - skip, bar);
}

// C = (I - V_j T_j' V_j') C. Each warp sends its 16 x 64 part of W^T = C^T V to the CTA that owns its columns; the
// owner sums, multiplies by T and sends -W' to all CTAs.
template <class K>
DEVICE void apply_block(Acc& acc, const Args& p, unsigned char* sm, int j, int blocks, uint32_t rank, uint32_t& phase,
                        int thread) {
  const Lane me = lane_of(opaque(thread));
  const uint32_t base = opaque(shared_address(sm)), stage = base + ((j + 1) & 1) * K::STAGE;
  const int first = j * PANEL / K::CHUNK_ROWS, unit = rank * K::G + me.group;
  if (me.thread == 0) {
    barrier_expect(barrier_at<K>(base, INBOX_BAR), K::OWNED * K::UNITS * 4096);
    barrier_expect(barrier_at<K>(base, WOP_BAR), 8192);
  }
  wait_for<K>(base, FULL_0 + ((j + 1) & 1), phase);
  {
    float w[32];
#pragma unroll
    for (int i = 0; i < 32; i++) w[i] = 0.f;
    if (first == 0) multiply_by_v<0, K>(w, acc, stage, me);
    else if (first == 1) multiply_by_v<1, K>(w, acc, stage, me);
    else if (first == 2) multiply_by_v<2, K>(w, acc, stage, me);
    else multiply_by_v<3, K>(w, acc, stage, me);
    const int owner = me.cg / K::OWNED, slot = me.cg % K::OWNED * K::UNITS + unit;
    const uint32_t to = map_address(base + K::O_INBOX + slot * 4096 + me.lane * 16, owner);
    const uint32_t to_bar = map_address(barrier_at<K>(base, INBOX_BAR), owner);
#pragma unroll
    for (int ct = 0; ct < 8; ct++) send(to + ct * 512, make_float4(w[4 * ct], w[4 * ct + 1], w[4 * ct + 2], w[4 * ct + 3]), to_bar);
  }
  // T of this warp's 8 reflectors, on its way while the sums arrive
  const int own = me.warp >> 3, gt = me.warp & 7;
  const float2* t_from = t_block(p, opaque(blockIdx.x) / K::C, j) + gt * 256 + me.lane;
  float2 t[8];
#pragma unroll
  for (int ct = 0; ct < 8; ct++) t[ct] = (own < K::OWNED && ct <= gt) ? t_from[ct * 32] : make_float2(0.f, 0.f);
  wait_for<K>(base, INBOX_BAR, phase);
  if (me.thread < 256 * K::OWNED) {
    const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + (me.thread >> 8) * K::UNITS * 256 + (me.thread & 255);
    float4 sum = in[0];
#pragma unroll
    for (int u = 1; u < K::UNITS; u++) {
      float4 x = in[u * 256];
      sum.x += x.x;
      sum.y += x.y;
      sum.z += x.z;
      sum.w += x.w;
    }
    reinterpret_cast<float4*>(sm + K::O_W)[me.thread] = sum;
  }
  __syncthreads();
  // every warp is past block j-1: its stage is free
  if (me.thread == 0 && j + 1 < blocks) load_block<K>(p, base, j + 1);
  if (own < K::OWNED) {
    float d_main[4] = {0, 0, 0, 0}, d_rest[4] = {0, 0, 0, 0};
    const float4* w = reinterpret_cast<const float4*>(sm + K::O_W) + own * 256 + me.lane;
#pragma unroll
    for (int ct = 0; ct < 8; ct++) {
      if (ct <= gt) {  // T is upper triangular
        float4 x = w[ct * 32];
        uint32_t w_hi[4], w_lo[4], t_hi[2], t_lo[2];
        split_tf32(x.x, w_hi[0], w_lo[0]);
        split_tf32(x.z, w_hi[1], w_lo[1]);
        split_tf32(x.y, w_hi[2], w_lo[2]);
        split_tf32(x.w, w_hi[3], w_lo[3]);
        split_tf32(t[ct].x, t_hi[0], t_lo[0]);
        split_tf32(t[ct].y, t_hi[1], t_lo[1]);
        mma_tf32(d_main, w_hi, t_hi[0], t_hi[1]);
        mma_tf32(d_rest, w_hi, t_lo[0], t_lo[1]);
        mma_tf32(d_rest, w_lo, t_hi[0], t_hi[1]);
      }
    }
    float2 out;
    out.x = __uint_as_float(pack(-(d_main[0] + d_rest[0]), -(d_main[1] + d_rest[1])));
    out.y = __uint_as_float(pack(-(d_main[2] + d_rest[2]), -(d_main[3] + d_rest[3])));
    const uint32_t at = base + K::O_WOP + ((((rank * K::OWNED + own) * 4 + (gt >> 1)) * 32 + me.lane) * 2 + (gt & 1)) * 8;
#pragma unroll
    for (int r = 0; r < K::C; r++) send(map_address(at, r), out, map_address(barrier_at<K>(base, WOP_BAR), r));
  }
  wait_for<K>(base, WOP_BAR, phase);
  const uint4* wop = reinterpret_cast<const uint4*>(sm + K::O_WOP);
  if (first == 0) subtract_v_times_w<0, K>(acc, wop, stage, me);
  else if (first == 1) subtract_v_times_w<1, K>(acc, wop, stage, me);
  else if (first == 2) subtract_v_times_w<2, K>(acc, wop, stage, me);
  else subtract_v_times_w<3, K>(acc, wop, stage, me);
}

// ------------------------------------------------------------------ the recurrence: three warps in a pipeline

struct Scratch {
  float *x, *top, *v, *r1, *w, *r, *m, *inverse;
  int* stop;
};

// Warp 0, lane = column: |R| by Cholesky. Stops where a pivot cancels.
DEVICE void warp_cholesky(const Scratch& z, int lane, int done) {
  float G[33];
  float* bp = z.r1;
  float* rp = z.r + lane;
#pragma unroll
  for (int r = 0; r < 32; r++) G[r] = z.x[r * LD_X + lane] + z.x[lane * LD_X + r];
  G[32] = 0;
  const float g0 = 2.f * z.x[lane * (LD_X + 1)], threshold = fmaxf(CANCELLED * g0, ZERO_PIVOT);
  int stop = 32;
  bool bad = false;
  auto pivot = [&](float gd) { return lane < done ? 0.f : (gd > threshold ? reciprocal_sqrt(gd) : -1.f); };
  float rsi = __shfl_sync(ALL, pivot(G[0]), 0);
  if (rsi < 0.f) {
    bad = true;
    stop = 0;
  }
  float R = bad ? 0.f : G[0] * rsi;
  auto step = [&](auto LEN, int i) {
    constexpr int L = decltype(LEN)::value;
    *rp = R;
    int sh = lane - i - 1;
    if (sh >= 0) bp[sh] = R;
    __syncwarp();
    float4 x[L / 4];
#pragma unroll
    for (int r4 = 0; r4 < L / 4; r4++) x[r4] = *(float4*)(bp + r4 * 4);
    float rn = __shfl_sync(ALL, pivot(fmaf(-R, R, G[1])), (i + 1) & 31);
    const float Rp = R;
    G[0] = fmaf(-x[0].x, Rp, G[1]);
    if (rn < 0.f && !bad && i < 31) {
      bad = true;
      stop = i + 1;
    }
    R = bad ? 0.f : G[0] * rn;
    G[1] = fmaf(-x[0].y, Rp, G[2]);
    G[2] = fmaf(-x[0].z, Rp, G[3]);
    G[3] = fmaf(-x[0].w, Rp, G[4]);
#pragma unroll
    for (int r4 = 1; r4 < L / 4; r4++) {
      G[r4 * 4] = fmaf(-x[r4].x, Rp, G[r4 * 4 + 1]);
      G[r4 * 4 + 1] = fmaf(-x[r4].y, Rp, G[r4 * 4 + 2]);
      G[r4 * 4 + 2] = fmaf(-x[r4].z, Rp, G[r4 * 4 + 3]);
      G[r4 * 4 + 3] = fmaf(-x[r4].w, Rp, G[r4 * 4 + 4]);
    }
    bp += LD_SHIFT;
    rp += 32;
  };
#pragma unroll 1
  for (int i = 0; i < 16; i += 4) {
#pragma unroll
    for (int u = 0; u < 4; u++) step(std::integral_constant<int, 32>(), i + u);
    named_arrive(1 + i / 4);
  }
#pragma unroll 1
  for (int i = 16; i < 32; i += 4) {
#pragma unroll
    for (int u = 0; u < 4; u++) step(std::integral_constant<int, 16>(), i + u);
    named_arrive(1 + i / 4);
  }
  unsigned nonzero = __ballot_sync(ALL, lane >= done && g0 > ZERO_PIVOT);
  if (stop == done) stop = nonzero ? done + 1 : 32;
  if (lane == 0) *z.stop = stop;
}

// Warp 1, lane = column: eliminates the top 32 x 32 for the signs, R and the multipliers.
DEVICE void warp_top(const Scratch& z, int lane) {
  float A[33];
  float *bl = z.v, *bw = z.w, *rp = z.r + lane;
#pragma unroll
  for (int r = 0; r < 32; r++) A[r] = z.top[lane * LD_TOP + r];
  A[32] = 0;
  float alpha = A[0], sg, ivi, sgi, iv, vn;
  auto pre = [&](int i, float R) {
    sg = alpha >= 0.f ? -1.f : 1.f;
    iv = R > 0.f ? reciprocal(fmaf(-sg, R, alpha)) : 0.f;
    ivi = __shfl_sync(ALL, iv, i);
    sgi = __shfl_sync(ALL, sg, i);
  };
  auto step = [&](auto LEN, int i, float R, float Rnext, bool more) {
    constexpr int L = decltype(LEN)::value;
    if (lane == i) {
#pragma unroll
      for (int r4 = 0; r4 < L / 4; r4++) *(float4*)(bl + r4 * 4) = make_float4(A[r4 * 4 + 1], A[r4 * 4 + 2], A[r4 * 4 + 3], A[r4 * 4 + 4]);
      z.inverse[i] = iv;
    }
    float Rs = ivi == 0.f ? A[0] : sgi * R;
    float wv = A[0] - Rs;
    alpha = fmaf(-vn, wv, A[1]);
    float cf = -ivi * wv;
    if (lane >= i) *rp = Rs;
    int sh = lane - i - 1;
    if (sh >= 0) bw[sh] = wv;
    __syncwarp();
    float4 x[L / 4];
#pragma unroll
    for (int r4 = 0; r4 < L / 4; r4++) x[r4] = *(float4*)(bl + r4 * 4);
    if (more) pre(i + 1, Rnext);
    A[0] = fmaf(x[0].x, cf, A[1]);
    A[1] = fmaf(x[0].y, cf, A[2]);
    if (more) vn = __shfl_sync(ALL, A[1] * iv, i + 1);
    A[2] = fmaf(x[0].z, cf, A[3]);
    A[3] = fmaf(x[0].w, cf, A[4]);
#pragma unroll
    for (int r4 = 1; r4 < L / 4; r4++) {
      A[r4 * 4] = fmaf(x[r4].x, cf, A[r4 * 4 + 1]);
      A[r4 * 4 + 1] = fmaf(x[r4].y, cf, A[r4 * 4 + 2]);
      A[r4 * 4 + 2] = fmaf(x[r4].z, cf, A[r4 * 4 + 3]);
      A[r4 * 4 + 3] = fmaf(x[r4].w, cf, A[r4 * 4 + 4]);
    }
    bl += LD_SHIFT;
    bw += LD_SHIFT;
    rp += 32;
  };
  auto chunk = [&](auto LEN, int i) {
    named_join(1 + i / 4);
    float Rq[4];
#pragma unroll
    for (int u = 0; u < 4; u++) Rq[u] = ((volatile float*)rp)[u * 32];
    pre(i, Rq[0]);
    vn = __shfl_sync(ALL, A[1] * iv, i);
#pragma unroll
    for (int u = 0; u < 4; u++) step(LEN, i + u, Rq[u], u < 3 ? Rq[u < 3 ? u + 1 : 3] : 0.f, u < 3);
    if (i == 4 || i == 12 || i == 20) named_arrive(9 + i / 8);
    if (i == 24) named_arrive(12);
    if (i == 28) named_arrive(13);
  };
#pragma unroll 1
  for (int i = 0; i < 16; i += 4) chunk(std::integral_constant<int, 32>(), i);
#pragma unroll 1
  for (int i = 16; i < 32; i += 4) chunk(std::integral_constant<int, 16>(), i);
}

// Warp 2, lane = panel column k, row i = reflector: the same elimination on the identity gives M.
DEVICE void warp_m(const Scratch& z, int lane) {
  float M[33];
  float *bw = z.w, *mp = z.m + lane;
#pragma unroll
  for (int r = 0; r < 33; r++) M[r] = (r == lane) ? 1.f : 0.f;
  auto step = [&](auto LEN, float ivi) {
    constexpr int L = decltype(LEN)::value;
    float mi = M[0] * ivi;
    *mp = mi;
#pragma unroll
    for (int r4 = 0; r4 < L / 4; r4++) {
      float4 x = *(float4*)(bw + r4 * 4);
      M[r4 * 4] = fmaf(-x.x, mi, M[r4 * 4 + 1]);
      M[r4 * 4 + 1] = fmaf(-x.y, mi, M[r4 * 4 + 2]);
      M[r4 * 4 + 2] = fmaf(-x.z, mi, M[r4 * 4 + 3]);
      M[r4 * 4 + 3] = fmaf(-x.w, mi, M[r4 * 4 + 4]);
    }
    bw += LD_SHIFT;
    mp += LD_M;
  };
#pragma unroll 1
  for (int i = 0; i < 16; i += 4) {
    if (!(i & 4)) named_join(9 + i / 8);
    float iq[4];
#pragma unroll
    for (int u = 0; u < 4; u++) iq[u] = ((volatile float*)z.inverse)[i + u];
#pragma unroll
    for (int u = 0; u < 4; u++) step(std::integral_constant<int, 32>(), iq[u]);
  }
#pragma unroll 1
  for (int i = 16; i < 32; i += 4) {
    if (i == 16) named_join(11);
    if (i == 24) named_join(12);
    if (i == 28) named_join(13);
    float iq[4];
#pragma unroll
    for (int u = 0; u < 4; u++) iq[u] = ((volatile float*)z.inverse)[i + u];
#pragma unroll
    for (int u = 0; u < 4; u++) step(std::integral_constant<int, 16>(), iq[u]);
  }
}

// One row of W' = W T without T: T^-1 = diag(1/tau) + striu(V'V). `s` holds V'V shifted (row i from its diagonal on).
DEVICE void substitute(float (&w)[33], float* out, const float* s, const float* tau) {
  auto step4 = [&](auto LEN, int i) {
    constexpr int L = decltype(LEN)::value;
    float o[4];
#pragma unroll
    for (int u = 0; u < 4; u++) {
      float wp = tau[i + u] * w[0];
      o[u] = wp;
      const float* sp = s + (i + u) * LD_SHIFT;
#pragma unroll
      for (int r4 = 0; r4 < L / 4; r4++) {
        float4 x = *(const float4*)(sp + r4 * 4);
        w[r4 * 4] = fmaf(-x.x, wp, w[r4 * 4 + 1]);
        w[r4 * 4 + 1] = fmaf(-x.y, wp, w[r4 * 4 + 2]);
        w[r4 * 4 + 2] = fmaf(-x.z, wp, w[r4 * 4 + 3]);
        w[r4 * 4 + 3] = fmaf(-x.w, wp, w[r4 * 4 + 4]);
      }
    }
    *(float4*)(out + i) = make_float4(o[0], o[1], o[2], o[3]);
  };
#pragma unroll 1
  for (int i = 0; i < 16; i += 4) step4(std::integral_constant<int, 32>(), i);
#pragma unroll 1
  for (int i = 16; i < 32; i += 4) step4(std::integral_constant<int, 16>(), i);
}

// After the recurrence, all threads: the guard, each reflector's scale of M, and the top of V, rounded, over z.x.
template <class K>
DEVICE void guard_and_top(const Scratch& z, float* m_scale, const float* unscale, int done, int thread) {
  __syncthreads();
  // guard: sum_k ||p_k|| |M_kj| bounds how much V = P M magnifies rounding
  if (thread < 256) {
    const int i = thread >> 3, k4 = (thread & 7) * 4;
    float amplified = 0.f, biggest = 0.f;
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const float m = fabsf(z.m[i * LD_M + k4 + e]);
      amplified = fmaf(m, sqrtf(2.f * fabsf(z.x[(k4 + e) * (LD_X + 1)])), amplified);
      biggest = fmaxf(biggest, m);
    }
#pragma unroll
    for (int o = 1; o < 8; o <<= 1) {
      amplified += __shfl_xor_sync(ALL, amplified, o);
      biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, o));
    }
    if ((thread & 7) == 0) {
      if (!(amplified <= AMPLIFIED)) atomicMin(z.stop, i > done ? i : done + 1);
      int e = (int)(__float_as_uint(biggest) >> 23) - 127;
      e = min(max(e, -100), 100);
      m_scale[i] = power_of_two(12 - e);
    }
  }
  __syncthreads();
  // the top of V, rounded, over z.x, and of H (R above V), over z.top; both [column][row]
  float* v_top = z.x;
#pragma unroll 1
  for (int e = thread; e < SUB * SUB; e += K::THREADS) {
    const int i = e & 31, j = e >> 5;
    const float inv = z.inverse[j];
    const float below = i > j ? __half2float(__float2half_rn(z.v[j * LD_SHIFT + i - j - 1] * inv)) : 0.f;
    v_top[j * LD_TOP + i] = i < done ? 0.f : (i > j ? below : (i == j && inv != 0.f ? 1.f : 0.f));
    z.top[j * LD_TOP + i] = i > j ? below : z.r[i * SUB + j] * unscale[j];
  }
  __syncthreads();
}

// ------------------------------------------------------------------ the kernel


template <class K>
__global__ void __launch_bounds__(K::THREADS, K::G == 2 ? 2 : 1) geqrf_kernel(const __grid_constant__ Args p) {
  extern __shared__ __align__(1024) unsigned char sm[];
  Lane me = lane_of(threadIdx.x);
  const uint32_t rank = cluster_rank();
  const int unit_ = rank * K::G + me.group, n = p.n, panels = (n + PANEL - 1) / PANEL;
  
  const uint32_t base_address_ = shared_address(sm), base_address = base_address_;
  float* tau = reinterpret_cast<float*>(sm + K::O_TAU);
  float* unscale = reinterpret_cast<float*>(sm + K::O_UNSCALE);
  float* m_scale = reinterpret_cast<float*>(sm + K::O_MISC);
  int* stop_at = reinterpret_cast<int*>(sm + K::O_MISC + 128);
  uint32_t phase = 0;
  if (me.thread == 0) {
    for (int i = 0; i < BARRIERS; i++) barrier_init(barrier_at<K>(base_address, i));
    barrier_init_fence();
  }
  __syncthreads();
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
  z.stop = stop_at;
  float* s_blocks = reinterpret_cast<float*>(sm + K::O_W);   // V'V: 0 = V1'V1, 1 = V1'V2, 2 = V2'V2
  float* pw = reinterpret_cast<float*>(sm + K::O_PW);
  float* pwp = reinterpret_cast<float*>(sm + K::O_PWP);
  float* ss = reinterpret_cast<float*>(sm + K::O_SS);

#pragma unroll 1
  for (int k = 0; k < panels; k++) {
    me = lane_of(opaque(threadIdx.x));
    const int top = k * PANEL, live = top / K::CHUNK_ROWS;  // first live row and chunk
    if (me.thread == 0) {
      bulk_store_wait();
      if (k > 0) load_block<K>(p, base_address, 0);
    }
    // ---- load and scale
    Acc acc;
    {
      int* column_max = reinterpret_cast<int*>(m_scale);  // 64 ints: m_scale and stop's room
      column_max = reinterpret_cast<int*>(sm + K::O_TOP);
      if (me.thread < PANEL) column_max[me.thread] = 0;
      const float* from = p.a + (size_t)(opaque(blockIdx.x) / K::C) * n * n + (size_t)opaque(unit_ * 16 + 2 * me.q) * n + top + me.cg * 16 + me.g;
      const int row0 = opaque(unit_ * 16 + 2 * me.q), ld = opaque(n);
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
        for (int i = 0; i < 16; i++) {
          const int row = chunk_row<K>(c, i >> 2, 0) + (i & 1);
          const int column = top + me.cg * 16 + me.g + 8 * (i >> 1 & 1);
          acc[c][i] = (row0 + row < n && column < n) ? from[row * ld + 8 * (i >> 1 & 1)] : 0.f;
        }
      }
      __syncthreads();
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float biggest = 0.f;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++)
            if ((i >> 1 & 1) == half) biggest = fmaxf(biggest, fabsf(acc[c][i]));
        }
        biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, 1));
        biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, 2));
        if (me.q == 0) atomicMax(&column_max[me.cg * 16 + me.g + 8 * half], __float_as_int(biggest));
      }
      __syncthreads();
      cluster_wait();
      if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::C * 256);
      if (me.thread < PANEL) {
        const uint32_t at = base_address + K::O_INBOX + (rank * PANEL + me.thread) * 4;
#pragma unroll
        for (int r = 0; r < K::C; r++) send(map_address(at, r), column_max[me.thread], map_address(barrier_at<K>(base_address, PANEL_BAR), r));
      }
      wait_for<K>(base_address, PANEL_BAR, phase);
      const int* all_max = reinterpret_cast<const int*>(sm + K::O_INBOX);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int column = me.cg * 16 + me.g + 8 * half;
        int biggest = 0;
#pragma unroll
        for (int r = 0; r < K::C; r++) biggest = max(biggest, all_max[r * PANEL + column]);
        int e = (biggest >> 23) - 127;
        e = biggest == 0 ? MAX_SCALE_LOG2 : max(e, -119);
        const float scale = power_of_two(MAX_SCALE_LOG2 - e);
        if (me.group == 0 && me.q == 0) unscale[column] = power_of_two(e - MAX_SCALE_LOG2);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++)
            if ((i >> 1 & 1) == half) acc[c][i] *= scale;
        }
      }
      __syncthreads();
      cluster_arrive();
    }
    // ---- earlier blocks
#pragma unroll 1
    for (int j = 0; j < k; j++) {
      apply_block<K>(acc, p, sm, j, k, rank, phase, me.thread);
    }
    __syncthreads();
    // ---- the panel
#pragma unroll 1
    for (int s = 0; s < 2; s++) {
      const bool mine = (me.cg >> 1) == s;
      int done = 0, stored = 0;  // rows under `stored` are in H
#pragma unroll 1
      while (done < SUB) {
        const int first = top + SUB * s, lim = first + done;  // rows under lim are finished
        me = lane_of(opaque(threadIdx.x));
        const int unit = opaque(unit_);
        const uint32_t base_address = opaque(base_address_);
        if (mine) {  // R of the finished rows (a pair may end one row late: that entry is stored again below)
#pragma unroll
          for (int half = 0; half < 2; half++) {
            const int column = me.cg * 16 + half * 8 + me.g;
            const float undo = unscale[column];
            if (column - SUB * s >= done && top + column < n) {
              float* to = p.h + ((size_t)(opaque(blockIdx.x) / K::C) * n + top + column) * p.ld + unit * 16 + 2 * me.q;
              const int row0 = unit * 16 + 2 * me.q, end = min(lim, n);
#pragma unroll
              for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
                for (int tile = 0; tile < 4; tile++) {
                  const int row = chunk_row<K>(c, tile, 0);
                  const float x = acc[c][tile * 4 + half * 2] * undo, y = acc[c][tile * 4 + half * 2 + 1] * undo;
                  if (row0 + row < end) {
                    if (row0 + row >= stored) *reinterpret_cast<float2*>(to + row) = make_float2(x, y);
                    else if (row0 + row + 1 >= stored) to[row + 1] = y;
                  }
                }
              }
            }
          }
        }
        stored = lim;
        // (1) Gram: H and L = 2 (P - H) of the open rows and columns to shared memory as wgmma operands
        const uint32_t tile_at = (me.group * 4) * 512 + (me.cg & 1) * 256 + me.g * 16 + me.q * 4;
        if (mine) {
#pragma unroll
          for (int c = 0; c < CHUNKS; c++) {
            if (c >= live) {
#pragma unroll
              for (int y = 0; y < 8; y++) {
                const int tile = y >> 1, half = y & 1;
                const int row = chunk_row<K>(c, tile, unit) + 2 * me.q;
                const bool open = (me.cg & 1) * 16 + half * 8 + me.g >= done;
                const float x0 = open && row >= lim ? acc[c][tile * 4 + half * 2] : 0.f;
                const float x1 = open && row + 1 >= lim ? acc[c][tile * 4 + half * 2 + 1] : 0.f;
                __half2 hi = __floats2half2_rn(x0, x1);
                float2 f = __half22float2(hi);
                const uint32_t at = tile_at + c * (K::G * 2048) + tile * 512 + half * 128;
                *reinterpret_cast<uint32_t*>(sm + K::O_H + at) = bits(hi);
                *reinterpret_cast<uint32_t*>(sm + K::O_L + at) = pack(2.f * (x0 - f.x), 2.f * (x1 - f.y));
              }
            }
          }
        }
        fence_async();
        __syncthreads();
        cluster_wait();
        if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::UNITS * 4096 + 4096);
        // the top 32 x 32, from its owners to all; finished rows and columns are 0 in H and L already
#pragma unroll 1
        for (int e = me.thread; e < 512; e += K::THREADS) {
          const int part = first / 16 + (e >> 8), owner = part % K::UNITS, pair = part / K::UNITS;
          if (owner / K::G == (int)rank) {
            const int column = e >> 3 & 31, tile = (pair & 1) * 2 + (e >> 2 & 1);
            const int at = ((pair >> 1) * K::G + owner % K::G) * 2048 + tile * 512 + (column >> 3) * 128 + (column & 7) * 16 + (e & 3) * 4;
            const float2 hi = __half22float2(halves(*reinterpret_cast<uint32_t*>(sm + K::O_H + at)));
            const float2 lo = __half22float2(halves(*reinterpret_cast<uint32_t*>(sm + K::O_L + at)));
            const float2 x = make_float2(fmaf(0.5f, lo.x, hi.x), fmaf(0.5f, lo.y, hi.y));
            const uint32_t to = base_address + K::O_TOP + (column * LD_TOP + (e >> 8) * 16 + (e >> 2 & 1) * 8 + (e & 3) * 2) * 4;
#pragma unroll
            for (int r = 0; r < K::C; r++) send(map_address(to, r), x, map_address(barrier_at<K>(base_address, PANEL_BAR), r));
          }
        }
        {
          float x[16];
#pragma unroll
          for (int i = 0; i < 16; i++) x[i] = 0.f;
#pragma unroll
          for (int c = 0; c < CHUNKS; c++) {
            if (c >= live) {
              uint32_t a_hi[2][4];
#pragma unroll
              for (int y = 0; y < 8; y++) {
                a_hi[y >> 2][(y & 1) + (y >> 1 & 1) * 2] =
                    mine ? *reinterpret_cast<uint32_t*>(sm + K::O_H + tile_at + c * (K::G * 2048) + (y >> 1) * 512 + (y & 1) * 128) : 0u;
              }
              const uint32_t at = base_address + K::O_H + (c * K::G + me.group) * 2048;
              wgmma_fence();
#pragma unroll
              for (int u = 0; u < 2; u++) {
                wgmma<true>(x, a_hi[u], descriptor(at + u * 1024, 512, 128));
                wgmma<true>(x, a_hi[u], descriptor(at + u * 1024 + (K::O_L - K::O_H), 512, 128));
              }
              wgmma_commit();
            }
          }
          wgmma_wait();
          if (mine) {
            const uint32_t at = base_address + K::O_INBOX + (unit * 2 + (me.cg & 1)) * 2048 + me.lane * 16;
#pragma unroll
            for (int r = 0; r < K::C; r++) {
              const uint32_t to = map_address(at, r), to_bar = map_address(barrier_at<K>(base_address, PANEL_BAR), r);
#pragma unroll
              for (int ct = 0; ct < 4; ct++) send(to + ct * 512, make_float4(x[4 * ct], x[4 * ct + 1], x[4 * ct + 2], x[4 * ct + 3]), to_bar);
            }
          }
        }
        wait_for<K>(base_address, PANEL_BAR, phase);
        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
        if (me.thread < 256) {
          const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + me.thread;
#pragma unroll
          for (int u = 0; u < K::UNITS; u++) {
            float4 x = in[u * 256];
            sum.x += x.x;
            sum.y += x.y;
            sum.z += x.z;
            sum.w += x.w;
          }
        }
        __syncthreads();
        if (me.thread < 256) {  // X = HH/2 + HL, so that the Gram matrix is X + X'
          float* to = z.x + ((me.thread >> 7) * 16 + me.g) * LD_X + (me.thread >> 5 & 3) * 8 + 2 * me.q;
          to[0] = 0.5f * sum.x;
          to[1] = 0.5f * sum.y;
          to[8 * LD_X] = 0.5f * sum.z;
          to[8 * LD_X + 1] = 0.5f * sum.w;
        }
        for (int i = me.thread; i < 3 * SUB * LD_SHIFT; i += K::THREADS) z.v[i] = 0.f;
        __syncthreads();
        // (2) recurrence. The warps of the sub-panel do it: P is in H and L, their accumulators are free meanwhile.
        int stop;
        if (mine) {
          if (me.group == 0 && (me.cg & 1) == 0) warp_cholesky(z, me.lane, done);
          if (me.group == 0 && (me.cg & 1) == 1) warp_top(z, me.lane);
          if (me.group == 1 && (me.cg & 1) == 0) warp_m(z, me.lane);
          guard_and_top<K>(z, m_scale, unscale + SUB * s, done, me.thread);
          stop = *stop_at;
#pragma unroll
          for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
            for (int i = 0; i < 16; i++) acc[c][i] = 0.f;
          }
          if (done > 0 || stop < SUB) {  // a part of the sub-panel only: bring back the other columns
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
              if (c >= live) {
#pragma unroll
                for (int y = 0; y < 8; y++) {
                  const int local = (me.cg & 1) * 16 + (y & 1) * 8 + me.g, i = (y >> 1) * 4 + (y & 1) * 2;
                  const uint32_t at = tile_at + c * (K::G * 2048) + (y >> 1) * 512 + (y & 1) * 128;
                  const uint32_t v_at = (c * K::G + me.group) * CHUNK_BYTES + (y >> 1) * TILE_BYTES + (me.cg * 2 + (y & 1)) * 128 + me.g * 16 + me.q * 4;
                  const float2 hi = __half22float2(halves(*reinterpret_cast<uint32_t*>(sm + K::O_H + at)));
                  const float2 lo = __half22float2(halves(*reinterpret_cast<uint32_t*>(sm + K::O_L + at)));
                  const float2 v = __half22float2(halves(*reinterpret_cast<uint32_t*>(sm + v_at)));
                  if (local < done) {
                    acc[c][i] = v.x;
                    acc[c][i + 1] = v.y;
                  } else if (local >= stop) {
                    acc[c][i] = fmaf(0.5f, lo.x, hi.x);
                    acc[c][i + 1] = fmaf(0.5f, lo.y, hi.y);
                  }
                }
              }
            }
          }
        } else {
          guard_and_top<K>(z, m_scale, unscale + SUB * s, done, me.thread);
          stop = *stop_at;
        }
        // (3) V = P M, rounded to fp16
        bool in[2];
        in[0] = mine && (me.cg & 1) * 16 + me.g >= done && (me.cg & 1) * 16 + me.g < stop;
        in[1] = mine && (me.cg & 1) * 16 + 8 + me.g >= done && (me.cg & 1) * 16 + 8 + me.g < stop;
        {
          uint32_t m_hi[2][4], m_lo[2][4], m_half[2][4];
#pragma unroll
          for (int kk = 0; kk < 2; kk++) {
#pragma unroll
            for (int y = 0; y < 4; y++) {
              const int reflector = (me.cg & 1) * 16 + me.g + 8 * (y & 1);
              float2 x = *reinterpret_cast<float2*>(&z.m[reflector * LD_M + kk * 16 + 2 * me.q + 8 * (y >> 1)]);
              const float by = m_scale[reflector];
              const bool on = in[y & 1];
              split_fp16(on ? x.x * by : 0.f, on ? x.y * by : 0.f, m_hi[kk][y], m_lo[kk][y]);
              float2 f = __half22float2(halves(m_hi[kk][y]));
              m_half[kk][y] = pack(0.5f * f.x, 0.5f * f.y);
            }
          }
#pragma unroll
          for (int c = 0; c < CHUNKS; c++) {
            if (c >= live) {
              const uint32_t at = base_address + K::O_H + (c * K::G + me.group) * 2048;
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], m_lo[kk], descriptor(at + kk * 256, 128, 512));
                wgmma<false>(acc[c], m_half[kk], descriptor(at + kk * 256 + (K::O_L - K::O_H), 128, 512));
                wgmma<false>(acc[c], m_hi[kk], descriptor(at + kk * 256, 128, 512));
              }
              wgmma_commit();
            }
          }
          wgmma_wait();
        }
        if (mine) {
#pragma unroll
          for (int half = 0; half < 2; half++) {
            const int local = (me.cg & 1) * 16 + half * 8 + me.g;
            const float by = in[half] ? 1.f / m_scale[local] : 1.f;
            const bool store = in[half] && top + SUB * s + local < n;
            float* to = p.h + ((size_t)(opaque(blockIdx.x) / K::C) * n + first + local) * p.ld + unit * 16 + 2 * me.q;
            const int row0 = unit * 16 + 2 * me.q;
            unsigned char* v_to = sm + me.group * CHUNK_BYTES + (me.cg * 2 + half) * 128 + me.g * 16 + me.q * 4;
            const float* v_from = z.x + local * LD_TOP + row0 - first;
            const float* h_from = z.top + local * LD_TOP + row0 - first;
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
              if (c >= live) {
#pragma unroll
                for (int tile = 0; tile < 4; tile++) {
                  const int row = chunk_row<K>(c, tile, 0);
                  float &x = acc[c][tile * 4 + half * 2], &y = acc[c][tile * 4 + half * 2 + 1];
                  float2 v = make_float2(x * by, y * by);
                  const bool in_top = (unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB;
                  if (in_top) v = *reinterpret_cast<const float2*>(v_from + row);
                  __half2 v16 = __floats2half2_rn(v.x, v.y);
                  v = __half22float2(v16);
                  if (in[half]) {
                    x = v.x;
                    y = v.y;
                  }
                  if (in_top) v = *reinterpret_cast<const float2*>(h_from + row);
                  if (store && row0 + row < n) {
                    if (row0 + row >= lim) *reinterpret_cast<float2*>(to + row) = v;
                    else if (row0 + row + 1 >= lim) to[row + 1] = v.y;
                  }
                  if (in[half] || local >= stop) *reinterpret_cast<uint32_t*>(v_to + c * K::G * CHUNK_BYTES + tile * TILE_BYTES) = in[half] ? bits(v16) : 0u;
                }
              }
            }
          }
        }
        fence_async();
        __syncthreads();
        cluster_arrive();  // the inbox and its scratch are free
        // (4) W^T = [V1, V2, C]^T V, V the reflectors of this sub-panel
        {
          float w[16];
#pragma unroll
          for (int i = 0; i < 16; i++) w[i] = 0.f;
#pragma unroll
          for (int c = 0; c < CHUNKS; c++) {
            if (c >= live) {
              uint32_t a_hi[2][4], a_lo[2][4];
#pragma unroll
              for (int y = 0; y < 8; y++) {
                const int i = (y >> 1) * 4 + (y & 1) * 2;
                split_fp16(acc[c][i], acc[c][i + 1], a_hi[y >> 2][(y & 1) + (y >> 1 & 1) * 2], a_lo[y >> 2][(y & 1) + (y >> 1 & 1) * 2]);
              }
              const uint32_t at = base_address + (c * K::G + me.group) * CHUNK_BYTES + s * 512;
              wgmma_fence();
#pragma unroll
              for (int u = 0; u < 2; u++) {
                wgmma<true>(w, a_lo[u], descriptor(at + u * 2 * TILE_BYTES, TILE_BYTES, 128));
                wgmma<true>(w, a_hi[u], descriptor(at + u * 2 * TILE_BYTES, TILE_BYTES, 128));
              }
              wgmma_commit();
              wgmma_wait();
            }
          }
          wgmma_wait();
          float4* partial = reinterpret_cast<float4*>(sm + K::O_H) + me.group * 512 + me.cg * 128 + me.lane;
#pragma unroll
          for (int ct = 0; ct < 4; ct++) partial[ct * 32] = make_float4(w[4 * ct], w[4 * ct + 1], w[4 * ct + 2], w[4 * ct + 3]);
        }
        __syncthreads();
        cluster_wait();
        if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::C * 8192);
        for (int i = me.thread; i < 512; i += K::THREADS) {
          const float4* partial = reinterpret_cast<const float4*>(sm + K::O_H) + i;
          float4 x = partial[0];
#pragma unroll
          for (int u = 1; u < K::G; u++) {
            float4 y = partial[u * 512];
            x.x += y.x;
            x.y += y.y;
            x.z += y.z;
            x.w += y.w;
          }
          const uint32_t at = base_address + K::O_INBOX + (rank * 512 + i) * 16;
#pragma unroll
          for (int r = 0; r < K::C; r++) send(map_address(at, r), x, map_address(barrier_at<K>(base_address, PANEL_BAR), r));
        }
        wait_for<K>(base_address, PANEL_BAR, phase);
        for (int i = me.thread; i < 512; i += K::THREADS) {
          const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + i;
          float4 x = in[0];
#pragma unroll
          for (int r = 1; r < K::C; r++) {
            float4 y = in[r * 512];
            x.x += y.x;
            x.y += y.y;
            x.z += y.z;
            x.w += y.w;
          }
          const int column = (i >> 7) * 16 + me.g, reflector = (i >> 5 & 3) * 8 + 2 * me.q;
          *reinterpret_cast<float2*>(&pw[column * LD_SHIFT + reflector]) = make_float2(x.x, x.y);
          *reinterpret_cast<float2*>(&pw[(column + 8) * LD_SHIFT + reflector]) = make_float2(x.z, x.w);
          const float four[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const int c = column + 8 * (e >> 1), j = reflector + (e & 1), local = c - SUB * s;
            if (local < SUB && j >= done && j < stop && local <= j) s_blocks[((c >> 5) + s) * 1024 + (c & 31) * SUB + j] = four[e];
            if (local >= 0 && local < SUB) {
              if (j > local) ss[local * LD_SHIFT + j - local - 1] = four[e];
              if (j < local) ss[local * LD_SHIFT + 35 - j] = 0.f;
              if (j == local) {
                const bool on = j >= done && j < stop;
                const float t = on && four[e] > 0.5f ? 2.f / four[e] : 0.f;
                m_scale[j] = t;  // this pass's tau: 0 for reflectors of other passes
                if (on) {
                  tau[SUB * s + j] = t;
                  if (rank == 0 && top + SUB * s + j < n) p.tau[(size_t)(opaque(blockIdx.x) / K::C) * n + top + SUB * s + j] = t;
                }
              }
            }
          }
        }
        __syncthreads();
        // (5) C -= V W' for the columns still open
        if (SUB * s + stop < PANEL) {
          if (me.thread < PANEL && me.thread >= SUB * s + stop) {
            float w[33];
#pragma unroll
            for (int i = 0; i < 8; i++) {
              float4 x = *reinterpret_cast<const float4*>(&pw[me.thread * LD_SHIFT + 4 * i]);
              w[4 * i] = x.x;
              w[4 * i + 1] = x.y;
              w[4 * i + 2] = x.z;
              w[4 * i + 3] = x.w;
            }
            w[32] = 0.f;
            substitute(w, pwp + me.thread * LD_SHIFT, ss, m_scale);
          }
          __syncthreads();
          uint32_t w_hi[2][4], w_lo[2][4];
#pragma unroll
          for (int kk = 0; kk < 2; kk++) {
#pragma unroll
            for (int y = 0; y < 4; y++) {
              const int column = me.cg * 16 + me.g + 8 * (y & 1);
              float2 x = *reinterpret_cast<float2*>(&pwp[column * LD_SHIFT + kk * 16 + 2 * me.q + 8 * (y >> 1)]);
              const bool on = column >= SUB * s + stop;
              split_fp16(on ? -x.x : 0.f, on ? -x.y : 0.f, w_hi[kk][y], w_lo[kk][y]);
            }
          }
#pragma unroll
          for (int c = 0; c < CHUNKS; c++) {
            if (c >= live) {
              const uint32_t at = base_address + (c * K::G + me.group) * CHUNK_BYTES + s * 512;
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], w_lo[kk], descriptor(at + kk * 256, 128, TILE_BYTES));
                wgmma<false>(acc[c], w_hi[kk], descriptor(at + kk * 256, 128, TILE_BYTES));
              }
              wgmma_commit();
            }
          }
          wgmma_wait();
          __syncthreads();
        }
        done = stop;
        if (!(s == 1 && done == SUB)) cluster_arrive();
      }
    }
    // ---- T = [T1, -T1 S12 T2; 0, T2], T_i by substitution on the identity
    if (me.thread == 0) bulk_store(v_block<K>(p, opaque(blockIdx.x), k) + live * K::G * CHUNK_BYTES, base_address + live * K::G * CHUNK_BYTES, K::STAGE - live * K::G * CHUNK_BYTES);
    for (int e = me.thread; e < 2 * SUB * SUB; e += K::THREADS) {
      const int b = e >> 10, i = e >> 5 & 31, j = e & 31;
      float* to = ss + b * (SUB * LD_SHIFT + 16) + i * LD_SHIFT;
      if (j > i) to[j - i - 1] = s_blocks[2 * b * 1024 + i * SUB + j];
      if (j < i) to[35 - j] = 0.f;
      if (j == i) to[35] = to[34] = to[33] = to[32] = 0.f;
    }
    __syncthreads();
    float* t_rows = pwp;  // [64][36]
    if (me.thread < PANEL) {
      float w[33];
#pragma unroll
      for (int i = 0; i < 33; i++) w[i] = i == me.lane ? 1.f : 0.f;
      substitute(w, t_rows + me.thread * LD_SHIFT, ss + me.warp * (SUB * LD_SHIFT + 16), tau + me.warp * SUB);
    }
    __syncthreads();
    float* y_rows = pw;  // S12 T2
    for (int e = me.thread; e < SUB * SUB; e += K::THREADS) {
      const int i = e >> 5, j = e & 31;
      float y = 0.f;
#pragma unroll 8
      for (int m = 0; m < SUB; m++) y = fmaf(s_blocks[1024 + i * SUB + m], t_rows[(SUB + m) * LD_SHIFT + j], y);
      y_rows[i * LD_SHIFT + j] = y;
    }
    __syncthreads();
    float* t12 = y_rows + SUB * LD_SHIFT;
    for (int e = me.thread; e < SUB * SUB; e += K::THREADS) {
      const int i = e >> 5, j = e & 31;
      float y = 0.f;
#pragma unroll 8
      for (int m = 0; m < SUB; m++) y = fmaf(t_rows[i * LD_SHIFT + m], y_rows[m * LD_SHIFT + j], y);
      t12[i * LD_SHIFT + j] = -y;
    }
    __syncthreads();
    if (k + 1 < panels) {
      for (int e = me.thread; e < 2048; e += K::THREADS) {
        const int tile = e >> 5, gt = tile >> 3, ct = tile & 7;
        if ((tile & (K::C - 1)) == (int)rank && ct <= gt) {
          const int i = ct * 8 + 2 * me.q, j = gt * 8 + me.g;
          const float* from = ct < 4 ? (gt < 4 ? t_rows + i * LD_SHIFT + j : t12 + i * LD_SHIFT + j - SUB) : t_rows + i * LD_SHIFT + j - SUB;
          t_block(p, opaque(blockIdx.x) / K::C, k)[e] = make_float2(from[0], from[LD_SHIFT]);
        }
      }
    }
    __syncthreads();
    cluster_arrive();
  }
  if (me.thread == 0) bulk_store_wait();
  cluster_wait();
}


template <class K>
static int run(const Args& args, int batch) {
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
  return cudaLaunchKernelEx(&config, geqrf_kernel<K>, args);
}

// Bytes of the two workspaces: V of all blocks, T of all blocks.
long v_workspace(int n, int batch) {
  const int panels = (n + PANEL - 1) / PANEL;
  if (n <= 1024) return (long)batch * panels * Config<4, 2>::C * Config<4, 2>::STAGE;
  if (n <= 1536) return (long)batch * panels * Config<4, 3>::C * Config<4, 3>::STAGE;
  return -1;
}
long t_workspace(int n, int batch) { return (long)batch * ((n + PANEL - 1) / PANEL) * 2048 * sizeof(float2); }
int geqrf(const float* a, float* h, float* tau, void* v, void* t, int n, int ld, int batch) {
  const Args args{a, h, tau, static_cast<unsigned char*>(v), static_cast<float2*>(t), n, ld};
  if (n <= 1024) return run<Config<4, 2>>(args, batch);
  if (n <= 1536) return run<Config<4, 3>>(args, batch);
  return -1;
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


def build():
    """The compiled extension, or None (with a warning) where there is no CUDA device."""
    if not torch.cuda.is_available():
        warnings.warn("n1024_v30: no CUDA device, torch.geqrf is used")
        return None
    from torch.utils.cpp_extension import load_inline

    major, minor = torch.cuda.get_device_capability()
    arch = f"{major}{minor}a"
    extra = {}
    if "no_implicit_headers" in inspect.signature(load_inline).parameters:
        extra["no_implicit_headers"] = True  # the CUDA part needs no torch header: 20 s less
    return load_inline(
        name="n1024_v30",
        cpp_sources=CPP,
        cuda_sources=CUDA,
        functions=["geqrf_n1024"],
        extra_cuda_cflags=["-O3", "-std=c++17", f"-gencode=arch=compute_{arch},code=sm_{arch}"],
        **extra,
    )


EXTENSION = build()


def geqrf_n1024(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """QR of a (batch, n, n), MIN_N <= n <= MAX_N: (H, tau) in LAPACK's form. The input is not changed."""
    return EXTENSION.geqrf_n1024(a.contiguous())


def custom_kernel(data: input_t) -> output_t:
    n = data.shape[-1]
    if EXTENSION is None or not data.is_cuda or data.shape[0] == 0 or not MIN_N <= n <= MAX_N:
        return torch.geqrf(data)
    return geqrf_n1024(data)
