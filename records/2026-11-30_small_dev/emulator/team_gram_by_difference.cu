
#include <cuda_fp16.h>
#include <cstdint>
#include <type_traits>
namespace qr_small {
#define DEVICE __device__ __forceinline__
constexpr int GROUP = 16;        // columns of a group = reflectors of a block = rows of a step
constexpr int TWO_CTAS_FROM = 33;  // two CTAs a matrix from this n, where the batch leaves half of the processors idle (measured)
constexpr int PARTS = 4;         // warps of a team: step s of the rows belongs to warp s % 4
constexpr int FAR_BYTES = 2048;  // the same in global memory, as operands for both products
constexpr int STEP_BYTES = 1024; // V of one step: 16 rows x 16 reflectors, two fp16 terms
constexpr int K_BYTES = 1024 + 1024 + 128;  // what a CTA gets of a remote panel's K: E's top rows and the record
constexpr int RECORD_BYTES = 1024 + 128;  // of a block: K as fragments, the scales of its reflectors, what E is
constexpr int BUFFER_BYTES = (PARTS + 1) * 1024;  // one 16 x 16 partial product a warp, and the top rows of C as fragments
constexpr int EXCHANGE_BYTES = 2 * BUFFER_BYTES + 2048 + 128;  // two buffers, the fragments of M, the top block, a flag
constexpr float M_SCALE = 256.f;    // entries of M are about 1 / norm of a column, 2^-4 .. 2^-10: keeps the low fp16 term normal
constexpr float MAX_GROWTH = 8.f;  // bound on the norm of a column of K (columns of P scaled to 1 .. 2), else the panel goes column by column
constexpr float MIN_GRAM = 64.f;  // with MAX_GROWTH it bounds Y below the largest FP16 number, for n <= 512
constexpr float MIN_PIVOT = 1.f / 64;  // squared pivot over its column's entry of the Gram matrix
constexpr float MIN_LEFT = 1.f / 8;    // the same for a Gram matrix by difference, over the whole
constexpr int MAX_SHARED = 232448;
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
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
template <bool CLUSTER> DEVICE bool barrier_passed(uint64_t* b) {
  uint32_t ok;
  if (CLUSTER) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],0; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(shared_address(b)) : "memory");
  else asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p,[%1],0; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(shared_address(b)) : "memory");
  return ok;
}
template <bool CLUSTER> DEVICE bool barrier_tested(uint64_t* b) {  // without waiting
  uint32_t ok;
  if (CLUSTER) asm volatile("{.reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],0; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(shared_address(b)) : "memory");
  else asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p,[%1],0; selp.u32 %0,1,0,p;}" : "=r"(ok) : "r"(shared_address(b)) : "memory");
  return ok;
}
template <bool CLUSTER> DEVICE void barrier_wait(uint64_t* b) { while (!barrier_passed<CLUSTER>(b)) {} }

// Programmatic dependent launch: a grid may be set up while the one before it runs, but touches global memory only
// when that one is complete. Without the launch attribute both instructions do nothing.
DEVICE void after_earlier_grids() { asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory"); }
template <class... P, class... A>
int launch(void (*kernel)(P...), int grid, int threads, int bytes, A... args) {
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(grid); c.blockDim = dim3(threads); c.dynamicSmemBytes = bytes;
  cudaLaunchAttribute attribute = {};
  attribute.id = static_cast<cudaLaunchAttributeID>(6);  // programmatic serialization (its name is not allowed here)
  *reinterpret_cast<int*>(&attribute.val) = 1;
  c.attrs = &attribute; c.numAttrs = 1;
  return (int)cudaLaunchKernelEx(&c, kernel, args...);
}
struct Args { const float* a; float* h; float* tau; uint32_t* vglobal; int n, steps, window; };

// Blocks 0 .. j-1 of V take triangle(j) steps: a block starts at its own top step.
__host__ __device__ inline int triangle(int j, int steps) { return j * steps - j * (j - 1) / 2; }

template <int TEAMS, bool RING, int CTAS>
struct Kernel {
  Args p;
  const float* a; float* h; float* tau; uint32_t* vg;
  float* exchange;               // this team's two buffers, the fragments of M, a flag
  unsigned char *sc, *sv, *sk, *sz;  // C of this team, E, the records, a step of zeros
  uint64_t *pbar, *kbar, *fbar;  // per block: P is there, K is there, all of E is in global memory (for other CTAs)
  int team, part, lane, g, q, parity;
  int rank;                      // of this CTA in its cluster
  int mine;                      // where the steps of this team's panel begin in the window, less its number
  static constexpr int AT_R = 20, AT_V = 960, AT_W = 340, AT_D = 340, AT_U = 660, AT_INV = 980, AT_BETA = 996, AT_NORM = 1012, AT_WHOLE = 1040, AT_RS = 640;  // scratch of the recurrence
  float unscale[2];
  float gw[2][4], gx[2][4], gy[2][4];  // Gram matrix of the live rows of C: hi hi, lo hi, hi lo

  DEVICE uint32_t peer(int i) { const int r = rank + 1 + i; return r < CTAS ? r : r - CTAS; }
  // block j's barriers: within this CTA plain ones, from another CTA those of the cluster
  DEVICE void wait(uint64_t* b, int j) { if (CTAS == 1 || j / TEAMS % CTAS == rank) barrier_wait<false>(b + j); else barrier_wait<true>(b + j); }
  // a third of a block is in global memory (two warps push it, one sends the top rows): readers of either CTA wait for all three
  DEVICE void arrive_far(int k) {
    if (!RING || k + p.window >= p.steps) return;
    barrier_arrive(fbar + k);
#pragma unroll
    for (int i = 0; i < CTAS - 1; i++) remote_arrive(remote(fbar + k, peer(i)));
  }
  DEVICE void team_sync() { asm volatile("bar.sync %0,128;" ::"r"(team + 1) : "memory"); }
  DEVICE void made_sync() { asm volatile("bar.sync %0,64;" ::"r"(team + 9) : "memory"); }
  DEVICE void read_sync() { asm volatile("bar.sync %0,128;" ::"r"(team + 5) : "memory"); }
  DEVICE void read_arrive() { asm volatile("bar.arrive %0,128;" ::"r"(team + 5) : "memory"); }
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
  DEVICE void load(int k) {
    for (int i = part; i < 17; i += 4) rows_of_r()[32 * i] = EMPTY;  // and the verdicts behind them
    const int col = k * GROUP + g;
    const bool in0 = col < p.n, in1 = col + 8 < p.n;
    float m0 = 0.f, m1 = 0.f;
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
  }

  DEVICE unsigned char* slot(int s) { return sv + (mine + s) * STEP_BYTES; }  // step s of the panel of this team
  DEVICE uint4* global_slot(int k, int s) { return reinterpret_cast<uint4*>(vg) + (size_t)(triangle(k, p.steps) + s - k) * (FAR_BYTES / 16) + lane; }
  // transposed: tiles in the order (half, tile) = 00, 10, 01, 11, so that each B operand is a pair of neighbours
  DEVICE int swapped() { return (((lane >> 3) & 1) * 2 + (lane >> 4)) * 128 + (lane & 7) * 16; }
  DEVICE void store_far(int k, int s, uint32_t at) {  // from the slot at `at`
    uint32_t a[4], b[4], c[4], d[4];
    load_matrix(a, at + lane * 16); load_matrix(b, at + lane * 16 + 512);
    load_matrix_transposed(c, at + swapped()); load_matrix_transposed(d, at + swapped() + 512);
    uint4* g4 = global_slot(k, s);
    g4[0] = make_uint4(a[0], a[1], a[2], a[3]); g4[32] = make_uint4(b[0], b[1], b[2], b[3]);
    g4[64] = make_uint4(c[0], c[1], c[2], c[3]); g4[96] = make_uint4(d[0], d[1], d[2], d[3]);
  }
  DEVICE void gram_step(const uint32_t (&h)[4], const uint32_t (&l)[4]) {  // h[2 * tile + half]
    mma(gw[0], h, h[0], h[2]); mma(gw[1], h, h[1], h[3]);
    mma(gx[0], l, h[0], h[2]); mma(gx[1], l, h[1], h[3]);
    mma(gy[0], h, l[0], l[2]); mma(gy[1], h, l[1], l[3]);
  }
  DEVICE void gram_step(const float (&c)[2][4], bool on) {
    uint32_t h[4], l[4];
    operand(c, h, l);
#pragma unroll
    for (int z = 0; z < 4; z++) { h[z] = on ? h[z] : 0u; l[z] = on ? l[z] : 0u; }
    gram_step(h, l);
  }
  // a step of P to its slot for the other teams, and of its Gram matrix
  DEVICE void publish_step(const float (&c)[2][4], int s, bool out, bool gram) {
    uint32_t h[4], l[4];
    operand(c, h, l);
    if (out) {
      const uint32_t d = shared_address(slot(s)) + lane * 16;
      store_matrix(d, h[0], h[2], h[1], h[3]);
      store_matrix(d + 512, l[0], l[2], l[1], l[3]);
    }
    if (gram) gram_step(h, l);
  }
  // The Gram matrix of panel k as that of the same columns before the last block less the 16 rows which that block finishes: all
  // but those is known before K is. Not for the last panel but one, whose pivots are too small against the whole.
  DEVICE bool by_difference(int k) { return k > 0 && k + 2 < p.steps; }
  // ---- where V of block j is for group k, and 16 x 16 of it as B operands: bh, bl[2 * n tile + half of k]
  struct Source { const uint4* global; uint32_t shared; bool far; };
  DEVICE Source source(int j, int slot, int k) {
    Source o;
    o.far = RING && k >= j + p.window;
    o.global = RING ? reinterpret_cast<const uint4*>(vg) + (size_t)(triangle(j, p.steps) - j) * (FAR_BYTES / 16) + lane : nullptr;
    o.shared = shared_address(sv) + (triangle(slot, p.steps) - j) * STEP_BYTES + lane * 16;
    return o;
  }
  template <bool TRANSPOSED> DEVICE void fetch(const Source& v, int s, uint32_t (&bh)[4], uint32_t (&bl)[4]) {
    const bool on = s < p.steps;  // else zeros
    if (RING && v.far) {
      const uint4 z = make_uint4(0, 0, 0, 0);
      const uint4* g4 = v.global + s * (FAR_BYTES / 16) + (TRANSPOSED ? 64 : 0);
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
  DEVICE void project(const Source& v, int j, float (&w)[2][4]) {
    const int s0 = first_step(j + 1);
    uint32_t bh0[4], bl0[4], bh1[4], bl1[4];
    clear(gw); clear(gx); clear(gy);
    fetch<false>(v, s0, bh0, bl0);
    fetch<false>(v, s0 + 4, bh1, bl1);
#pragma unroll 1
    for (int s = s0; s < p.steps; s += 8) {
      float c0[2][4], c1[2][4];
      get(s, c0);
      get(s + 4 < p.steps ? s + 4 : s, c1);
      w_step(c0, bh0, bl0);
      w_step(c1, bh1, bl1);
      fetch<false>(v, s + 8, bh0, bl0);
      fetch<false>(v, s + 12, bh1, bl1);
    }
    sum_up(w);
  }
  // ---- larfb: C -= E K E' C for block j. Below the top step E is the panel itself, ready before its reflectors are, so that
  // all but 16 rows of E'C is done by the time when K comes. The update of the last block also forms the Gram matrix of
  // what is left, and publishes it as the next panel.
  DEVICE void apply(int j, int slot, int k) {
    const Source v = source(j, slot, k);
    const bool owner = first_step(j) == j, last = j == k - 1, chain = last && by_difference(k);
    const bool sums = j == k - 2 && by_difference(k), gram = last && k + 1 < p.steps && !chain;
    const bool solo = chain && (part == CHOLESKY || part == JORDAN);
    const int s0 = solo ? (part == CHOLESKY ? j : k) : chain ? k + 1 + (part & 1) : first_step(j), stride = chain ? 2 : 4;
    uint32_t bh0[4], bl0[4], bh1[4], bl1[4], ah[4], al[4];
    float w[2][4], x[2][4], y[2][4], own[2][4];
    if (chain) team_sync();  // the sums of the last two products lie in both buffers: all have read what was there
    if (chain && j == 0) {  // no block before it whose update could leave the Gram matrix
      clear(gw); clear(gx); clear(gy);
#pragma unroll 1
      for (int s = part; s < p.steps; s += 4) { get(s, own); gram_step(own, true); }
      sum_up(w);
      post(w, reinterpret_cast<float4*>(buffer()));
    }
    if (RING && v.far) {
      wait(fbar, j);
    } else wait(pbar, j);
    project(v, j, w);
    float* b = buffer();
    post(w, reinterpret_cast<float4*>(b));
    uint4* top = reinterpret_cast<uint4*>(b) + PARTS * 64 + lane;  // the rows of C that every warp needs at the end
    if (owner) {
      float c[2][4];
      get(j, c);
      operand(c, ah, al);
      top[0] = make_uint4(ah[0], ah[1], ah[2], ah[3]); top[32] = make_uint4(al[0], al[1], al[2], al[3]);
    }
    if (s0 != j) fetch<true>(v, s0, bh0, bl0);
    if (!solo) fetch<true>(v, s0 + stride, bh1, bl1);
    team_sync();
    collect(w, reinterpret_cast<const float4*>(b));
    const uint4 uh = top[0], ul = top[32];
    ah[0] = uh.x; ah[1] = uh.y; ah[2] = uh.z; ah[3] = uh.w; al[0] = ul.x; al[1] = ul.y; al[2] = ul.z; al[3] = ul.w;
    if (solo) get(s0, own);
    if (chain && part == CHOLESKY) {  // C'C before this block, in the other buffer
      float* before = exchange + parity * (BUFFER_BYTES / 4);
      collect(gw, reinterpret_cast<const float4*>(before));
      __syncwarp();
      if (q == g >> 1) { before[AT_WHOLE + g] = g & 1 ? gw[0][1] : gw[0][0]; before[AT_WHOLE + 8 + g] = g & 1 ? gw[1][3] : gw[1][2]; }
    }
    wait(kbar, j);
    const unsigned char* record = sk + j * RECORD_BYTES;
    const bool column = *reinterpret_cast<const volatile int*>(record + 1088) != 0;
    if (column) {  // the panel went column by column: E is V, not P
      float z[2][4];
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int r = 0; r < 4; r++) z[t][r] = gw[t][r];
      project(v, j, w);
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int r = 0; r < 4; r++) gw[t][r] = z[t][r];
      team_sync();
      post(w, reinterpret_cast<float4*>(b));
      team_sync();
      collect(w, reinterpret_cast<const float4*>(b));
      if (!solo) fetch<true>(v, s0 + stride, bh1, bl1);
    }
    if (chain && part != JORDAN) read_arrive();  // Gauss-Jordan may write where the sums were
    uint32_t eh[4], el[4];
    fetch<false>(v, j, eh, el);
    if (s0 == j || column) fetch<true>(v, s0, bh0, bl0);
    uint32_t th[4], tl[4];
    load_matrix_transposed(th, shared_address(record) + lane * 16); load_matrix_transposed(tl, shared_address(record) + 512 + lane * 16);
    float sc4[4];
    { const float2 u0 = *reinterpret_cast<const float2*>(record + 1024 + 8 * q), u1 = *reinterpret_cast<const float2*>(record + 1056 + 8 * q); sc4[0] = u0.x; sc4[1] = u0.y; sc4[2] = u1.x; sc4[3] = u1.y; }
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
    if (solo) {
#pragma unroll
      for (int t = 0; t < 2; t++) mma(own[t], wl, bh0[2 * t], bh0[2 * t + 1]);
#pragma unroll
      for (int t = 0; t < 2; t++) mma(own[t], wh, bl0[2 * t], bl0[2 * t + 1]);
#pragma unroll
      for (int t = 0; t < 2; t++) mma(own[t], wh, bh0[2 * t], bh0[2 * t + 1]);
      put(s0, own);
      if (part == CHOLESKY) {  // G = C'C - R'R, R these rows, which are final
        uint32_t h[4], l[4];
        operand(own, h, l);
        clear(w); clear(x); clear(y);
        mma(w[0], h, h[0], h[2]); mma(w[1], h, h[1], h[3]);
        mma(x[0], l, h[0], h[2]); mma(x[1], l, h[1], h[3]);
        mma(y[0], h, l[0], l[2]); mma(y[1], h, l[1], l[3]);
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int r = 0; r < 4; r++) gw[t][r] -= w[t][r] + (x[t][r] + y[t][r]);
      } else {
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int r = 0; r < 4; r++) gw[t][r] = own[t][r];
      }
      return;
    }
    clear(gw); clear(gx); clear(gy);
#pragma unroll 1
    for (int s = s0; s < p.steps; s += 2 * stride) {
      const bool on = s + stride < p.steps;
      const int s1 = on ? s + stride : s;
      float c0[2][4], c1[2][4];
      get(s, c0);
      get(s1, c1);
#pragma unroll
      for (int t = 0; t < 2; t++) { mma(c0[t], wl, bh0[2 * t], bh0[2 * t + 1]); mma(c1[t], wl, bh1[2 * t], bh1[2 * t + 1]); }
#pragma unroll
      for (int t = 0; t < 2; t++) { mma(c0[t], wh, bl0[2 * t], bl0[2 * t + 1]); mma(c1[t], wh, bl1[2 * t], bl1[2 * t + 1]); }
#pragma unroll
      for (int t = 0; t < 2; t++) { mma(c0[t], wh, bh0[2 * t], bh0[2 * t + 1]); mma(c1[t], wh, bh1[2 * t], bh1[2 * t + 1]); }
      put(s, c0);
      if (on) put(s1, c1);
      if (last) { publish_step(c0, s, s > k, gram && s >= k); publish_step(c1, s1, on && s1 > k, gram && on); }
      else if (sums) { gram_step(c0, s > j); gram_step(c1, on); }
      fetch<true>(v, s + 2 * stride, bh0, bl0);
      fetch<true>(v, s + 3 * stride, bh1, bl1);
    }
    if (sums) { sum_up(w); post(w, reinterpret_cast<float4*>(buffer())); }
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

  // ---- geqr2 of the last panel, 16 x 16, by one warp: lane = column (lanes 16.. repeat), its rows in registers, shifted
  // by one a step. Scratch: the pivot columns at AT_V, the rows of R at AT_U, inv and beta as in the recurrence.
  DEVICE void geqr2_square(int k, float (&inv)[2], float (&beta)[2]) {
    float* b = buffer();
    team_sync();  // another warp wrote that step
    if (part == JORDAN) {
      const int j = lane & 15;
      float x[17];
#pragma unroll
      for (int r = 0; r < 16; r += 2) {
        const float2 v = *reinterpret_cast<const float2*>(sc + k * STEP_BYTES + (r >> 3) * 512 + ((j & 7) * 4 + ((r & 7) >> 1)) * 16 + (j >> 3) * 8);
        x[r] = v.x; x[r + 1] = v.y;
      }
      x[16] = 0.f;
      __syncwarp();
      float my_inv = 0.f, my_beta = 0.f;
      float* v = b + AT_W;
#pragma unroll 1
      for (int i = 0; i < 16; i++) {
        if (lane == i) {
#pragma unroll
          for (int z = 0; z < 4; z++) *reinterpret_cast<float4*>(v + 4 * z) = make_float4(x[4 * z], x[4 * z + 1], x[4 * z + 2], x[4 * z + 3]);
        }
        __syncwarp();
        float y[17], n4[4] = {0, 0, 0, 0}, d4[4] = {0, 0, 0, 0};
#pragma unroll
        for (int z = 0; z < 4; z++) { const float4 t = *reinterpret_cast<const float4*>(v + 4 * z); y[4 * z] = t.x; y[4 * z + 1] = t.y; y[4 * z + 2] = t.z; y[4 * z + 3] = t.w; }
        y[16] = 0.f;
#pragma unroll
        for (int r = 0; r < 16; r++) { n4[r & 3] = fmaf(y[r], y[r], n4[r & 3]); d4[r & 3] = fmaf(y[r], x[r], d4[r & 3]); }
        const float gk = (n4[0] + n4[1]) + (n4[2] + n4[3]), dot = (d4[0] + d4[1]) + (d4[2] + d4[3]);
        const bool zero = !(gk > 1e-28f);
        const float rs = rsq(gk), ib = zero ? 0.f : (y[0] >= 0.f ? -rs : rs);
        const float bt = zero ? y[0] : gk * ib, iv = zero ? 0.f : rcp(y[0] - bt);
        const float w = zero ? 0.f : x[0] - dot * ib, wx = -w * iv;
        b[AT_U + i * 20 + j] = x[0] - w;
        my_inv = j == i ? iv : my_inv; my_beta = j == i ? bt : my_beta;
#pragma unroll
        for (int r = 0; r < 16; r++) x[r] = fmaf(wx, y[r + 1], x[r + 1]);
        v += 20;
      }
      if (lane < 16) { b[AT_INV + j] = my_inv; b[AT_BETA + j] = my_beta; }
      __syncwarp();
      float top[2][4];
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
          const int row = 8 * t + 2 * q + (r & 1), cl = g + 8 * (r >> 1);
          top[t][r] = row < cl ? b[AT_U + row * 20 + cl] : b[AT_W + cl * 20 + row - cl];
        }
      put(k, top);
    }
    team_sync();
    inv[0] = b[AT_INV + g]; inv[1] = b[AT_INV + 8 + g]; beta[0] = b[AT_BETA + g]; beta[1] = b[AT_BETA + 8 + g];
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
    if (!by_difference(k)) collect(gw, reinterpret_cast<const float4*>(b));
    __syncwarp();
    rows_to(b + AT_R, gw);   // symmetric: its rows are the columns that the low lanes hold
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
    const float least = by_difference(k) ? MIN_LEFT * b[AT_WHOLE + j] : MIN_PIVOT * g0;
    const bool fine = __all_sync(ALL, !low || (g0 >= MIN_GRAM && pivot >= least));
    if (lane == 0) *verdict() = fine;
  }
  DEVICE void jordan(int k, float* b, float* m, float (&e)[16]) {
    {
      if (by_difference(k)) read_sync(); else get(k, gw);
      rows_to(m + AT_V, gw);  // accumulators of the transpose: the columns of the top block
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
    const bool out = RING && k + p.window < p.steps;
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
  // a step of E as two fp16 terms to its slot, the other CTAs and global memory: [2 * tile + half] stored as [2 * half + tile]
  DEVICE void send(int k, int s, const uint32_t (&hi)[4], const uint32_t (&lo)[4]) {
    uint4* d = reinterpret_cast<uint4*>(slot(s)) + lane;
    store_matrix(shared_address(d), hi[0], hi[2], hi[1], hi[3]);
    store_matrix(shared_address(d) + 512, lo[0], lo[2], lo[1], lo[3]);
    if (CTAS > 1) {
      __syncwarp();
      const uint4 x = d[0], y = d[32];
#pragma unroll
      for (int i = 0; i < CTAS - 1; i++) {
        const uint32_t o = remote(d, peer(i)), to = remote(kbar + k, peer(i));
        if (s == k) { store_async(o, x, to); store_async(o + 512, y, to); } else { remote_store(o, x); remote_store(o + 512, y); }
      }
    }
    if (RING && k + p.window < p.steps) {
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
        publish_step(c, s, s > 0, true);
      }
    }
    const bool sums = !by_difference(k);
    float* b = buffer();
    if (sums) {
      float w[2][4];
      sum_up(w);
      post(w, reinterpret_cast<float4*>(b));
    }
    __syncwarp();
    if (lane == 0) barrier_arrive(pbar + k);
    if (sums) team_sync();
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
      while (*fine_flag() == EMPTY) {}
      if (*fine_flag() != 0) {
        send(k, k, hi, lo);
        put(k, c);  // V's top rows are formed like the others
        __syncwarp();
        if (lane == 0) { barrier_arrive(kbar + k); arrive_far(k); }
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
    const bool square = k + 1 == p.steps;
    float inv[2] = {0, 0}, beta[2] = {0, 0};
    uint32_t mh[4], ml[4];
    const bool gram = !square && geqr2_gram(k, mh, ml);
    if (square) geqr2_square(k, inv, beta);
    else if (!gram) geqr2(k, inv, beta);
    const bool columns = !square && !gram;
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
        send(k, s, hi, lo);
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
#pragma unroll 1
    for (int s = part; s < k; s += 4) {
      float c[2][4];
      get(s, c);
      store_step(k, s, c, unscale[0], unscale[1]);
    }
  }
};

// Shared memory of a launch: TEAMS x (exchange, C), T, barriers, a step of zeros, V.
struct Plan { int steps, window, bytes; };
inline Plan plan(int n, int teams) {
  Plan r;
  r.steps = (n + 15) / 16;
  const int fixed = teams * (EXCHANGE_BYTES + r.steps * STEP_BYTES) + r.steps * RECORD_BYTES + (r.steps * 24 + 127) / 128 * 128 + STEP_BYTES;
  const int room = (MAX_SHARED - fixed) / STEP_BYTES;
  int used = 0;
  r.window = 0;
  while (r.window < r.steps && used + r.steps - r.window <= room) used += r.steps - r.window++;
  r.bytes = fixed + triangle(r.window, r.steps) * STEP_BYTES;
  return r;
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
  me.pbar = reinterpret_cast<uint64_t*>(o); me.kbar = me.pbar + p.steps; me.fbar = me.kbar + p.steps; o += (p.steps * 24 + 127) / 128 * 128;
  me.sz = o; o += STEP_BYTES;
  me.sv = o;
  const size_t mat = blockIdx.x / CTAS;
  me.a = p.a + mat * p.n * p.n; me.h = p.h + mat * p.n * p.n; me.tau = p.tau + mat * p.n;
  me.vg = RING ? p.vglobal + mat * (size_t)(triangle(p.steps, p.steps) * (FAR_BYTES / 4)) : nullptr;
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
  for (int i = threadIdx.x; i < STEP_BYTES / 4; i += TEAMS * 128) reinterpret_cast<uint32_t*>(me.sz)[i] = 0u;
  after_earlier_grids();
  for (int i = rank * TEAMS * 128 + threadIdx.x; i < p.n * p.n / 32; i += CTAS * TEAMS * 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(me.a + (size_t)i * 32));
  if (CTAS > 1) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); cluster_arrive(); } else __syncthreads();
  bool first = CTAS > 1;  // the others may still be setting up their barriers while the first group is loaded
  for (int k = rank * TEAMS + me.team; k < p.steps; k += CTAS * TEAMS) {
    me.mine = triangle(RING ? k % p.window : k, p.steps) - k;
    me.load(k);
    if (first) { cluster_wait(); first = false; }
    for (int j = 0, slot = 0; j < k; j++) { me.apply(j, slot, k); slot = RING && slot + 1 == p.window ? 0 : slot + 1; }
    me.factor(k);
  }
  if (first) cluster_wait();
  if (CTAS > 1) {  // the peers' stores still come here
    for (int j = threadIdx.x; j < p.steps - 1; j += TEAMS * 128) if (j / TEAMS % CTAS != rank) barrier_wait<true>(me.kbar + j);
    __syncwarp();
    cluster_arrive(); cluster_wait();
  }
}
template <int TEAMS, bool RING>
__global__ void __launch_bounds__(TEAMS * 128, 1) geqrf_teams(Args p) { geqrf_body<TEAMS, RING, 1>(p); }
template <int TEAMS, bool RING>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(TEAMS * 128, 1) geqrf_teams2(Args p) { geqrf_body<TEAMS, RING, 2>(p); }

template <int TEAMS, bool RING>
__global__ void __cluster_dims__(3, 1, 1) __launch_bounds__(TEAMS * 128, 1) geqrf_teams3(Args p) { geqrf_body<TEAMS, RING, 3>(p); }

template <int TEAMS, bool RING, int CTAS>
int launch_teams(const Args& args, int batch, int bytes) {
  static bool ready = false;
  void (*kernel)(Args);
  if constexpr (CTAS == 1) kernel = geqrf_teams<TEAMS, RING>; else if constexpr (CTAS == 3) kernel = geqrf_teams3<TEAMS, RING>; else kernel = geqrf_teams2<TEAMS, RING>;
  if (!ready) {
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, MAX_SHARED);
    if (e != cudaSuccess) return (int)e;
    ready = true;
  }
  return launch(kernel, batch * CTAS, TEAMS * 128, bytes, args);
}
}  // namespace qr_small
using namespace qr_small;
extern "C" int run_team(const float* a, float* h, float* tau, void* vg, int n, int batch, int teams) {
  Plan r = plan(n, teams % 10);
  Args args{a, h, tau, (uint32_t*)vg, n, r.steps, r.window};
  if (teams == 13 && r.window == r.steps) return launch_teams<3, false, 2>(args, batch, r.bytes);
  if (teams == 14 && r.window < r.steps) return launch_teams<4, true, 2>(args, batch, r.bytes);
  return -1;
}
