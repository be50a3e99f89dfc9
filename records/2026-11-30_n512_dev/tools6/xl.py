# larft on the tensor cores in p1's source, both classes
from lib import load
V115=load('/work/main/submissions/v115_n512_shared_memory_queue.py')[1]
def piece(x,y):
    i=V115.index(x); return V115[i:V115.index(y,i)]
CROSS='''// V_1'V_0 over the rows of this warpgroup (every second pair of tiles; without its products, of this warp's quarter of the columns).
// FP32_CLASS: V_0's low terms are in p[0], V_1's in p[1].
#if WARPGROUP_MMA
DEVICE void cross_products(Shared& s, int first, float (*out)[IB][PAD], const Lane& me) {
  float x[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&x[0][0])[i] = 0.f;
  const uint32_t v = tile_descriptor(shared_address(&s.v[0][first - 4 + 2 * me.wg][0][0]), 1024);
  const uint32_t low = tile_descriptor(shared_address(p_tile(s, 0, 0, 0)), 128);
#pragma unroll 1
  for (int tile = 0; tile < TILES - first + 4; tile += 8) {  // rows 32 .. 63 of the product are of no use
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint32_t at = v + (tile + 4 * i) * 64;
      if (FP32_CLASS) {
        const uint32_t at_low = low + p_offset(first - 4 + 2 * me.wg + tile + 4 * i) / 16;
        wgmma_tiles<128, P_GROUP>(x[0], x[1], x[2], x[3], at + 32, at_low);
        wgmma_tiles<P_GROUP, 128>(x[0], x[1], x[2], x[3], at_low + P_LOW / 16, at);
      }
      wgmma_tiles<128, 128>(x[0], x[1], x[2], x[3], at + 32, at);
    }
    wgmma_commit();
    wgmma_wait();
  }
  if (me.ws < 2) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(float2*)&out[me.wg][16 * me.ws + me.g][8 * i + 2 * me.q] = make_float2(x[i][0], x[i][1]);
      *(float2*)&out[me.wg][16 * me.ws + me.g + 8][8 * i + 2 * me.q] = make_float2(x[i][2], x[i][3]);
    }
  }
}
#else
DEVICE void cross_products(Shared& s, int first, float (*out)[IB][PAD], const Lane& me) {
#pragma unroll 1
  for (int half = 0; half < 2; half++) {
    float x[4] = {0.f, 0.f, 0.f, 0.f};
    // operands of the groups 2 half, 2 half + 1 of V_1 and of group ws of V_0
    const auto add = [&](int tile, bool low1, bool low0) {
      uint32_t a[4], b[2];
#pragma unroll
      for (int z = 0; z < 4; z++) {
        const int t = tile + (z >> 1), g = 2 * half + (z & 1);
        a[z] = low1 ? p_tile(s, 1, t, g)[me.lane] : s.v[0][t][4 + g][me.lane];
        if (z < 2) b[z] = low0 ? p_tile(s, 0, tile + z, me.ws)[me.lane] : s.v[0][tile + z][me.ws][me.lane];
      }
      mma_fp16(x, a, b[0], b[1]);
    };
#pragma unroll 4
    for (int tile = first + 2 * me.wg; tile < TILES; tile += 4) {
      if (FP32_CLASS) {
        add(tile, true, false);
        add(tile, false, true);
      }
      add(tile, false, false);
    }
    *(float2*)&out[me.wg][16 * half + me.g][8 * me.ws + 2 * me.q] = make_float2(x[0], x[1]);
    *(float2*)&out[me.wg][16 * half + me.g + 8][8 * me.ws + 2 * me.q] = make_float2(x[2], x[3]);
  }
}
#endif

'''
WINDOW_T='''// T of one window from V'V: tau = 2/v'v, T = (diag(1/tau) + strictly upper V'V)^-1, and for the second window of a panel
// X = T11 V_0'V_1. `ready`: form_reflectors has left its sums.
template <bool EXACT>
DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool whole, uint32_t phase,
                     const Lane& me) {
  Scratch& sc = scratch(s);
  if (RARE(!ready)) {
    products_again(s, job, h, first, me);
    sync_all();
  }
  const bool cross = h == 1 && need_t;
  if (!FP32_CLASS && cross) cross_products(s, first, sc.tri.n21, me);
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
#pragma unroll
    for (int w = 1; w < WARPS; w++) square += own[w * (8 * 32 * 4)];
    const float tau = square > 0.f ? two_over(square) : 0.f;
    const int at = job.k * NB + h * IB + me.lane;
    s.tau[h * IB + me.lane] = tau;
    if (at < job.n) job.tau[at] = tau;
  }
  if (FP32_CLASS && cross) {
    barrier_wait(&s.full[CHUNKS], phase >> CHUNKS & 1);
    cross_products(s, first, sc.tri.n21, me);
    fence_async();
  }
  sync_all();
  // Apart from the roles of the warps: a loop of one thread in their chain, and ptxas takes the whole kernel for divergent (+1,000 instructions).
  if (EXACT && cross && whole && me.tid == MOVER) {  // V's place is free once it has been read, P's one as well
    bulk_store_read();
    if (FP32_CLASS) fetch_boxes(s, job, job.k + 1, 0, job.k >> 1, 4);
    fetch_half(s, job, job.k + 1, 1);
  }
  if (!need_t) return;
  float(*tt)[PAD] = h == 0 ? s.t11t : sc.tri.t22t;
  if (me.warp == 0) {
    invert_window(sc.tri, s.tau + h * IB, tt, me);
  } else if (me.warp == 1) {  // below the diagonal
#pragma unroll
    for (int i = 0; i < 8; i++) tt[2 * i + (me.lane >> 4)][16 + (me.lane & 15)] = 0.f;
  } else if (cross && me.warp < 6) {
    float d[2][4];
    const int part = me.warp - 2;
    product_part(d, part, [&](int j, int m) {
      float2 x = *(const float2*)&sc.tri.n21[0][j][m], y = *(const float2*)&sc.tri.n21[1][j][m];
      if (!FP32_CLASS && RARE(s.two_terms)) {
        x.x += sc.tri.n21[2][j][m];
        x.y += sc.tri.n21[2][j][m + 1];
      }
      return make_float2(x.x + y.x, x.y + y.y);
    }, [&](int m, int a) { return make_float2(s.t11t[m][a], s.t11t[m + 1][a]); }, me);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int z = 0; z < 4; z++) sc.tri.x[16 * (part >> 1) + 8 * i + 2 * me.q + (z & 1)][16 * (part & 1) + me.g + 8 * (z >> 1)] = d[i][z];
    }
  }
}

'''
AGAIN_LOW='''  if (!FP32_CLASS && h == 1 && s.two_terms) {  // and their part of V_1'V_0
    const int half = me.warp >> 2, r = me.warp & 3, g = 4 + 2 * half;
    const uint32_t* lo = job.v_lo + (size_t)job.k * TILES * GROUPS * 32;
    float y[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll 2
    for (int tile = first; tile < TILES; tile++) {
      const uint32_t* v = &s.v[0][tile][0][me.lane];
      mma_fp16_k8(y, v[g * 32], v[(g + 1) * 32], low_word(lo, tile, r, me.lane));
      mma_fp16_k8(y, low_word(lo, tile, g, me.lane), low_word(lo, tile, g + 1, me.lane), v[r * 32]);
    }
    float(&out)[IB][PAD] = scratch(s).tri.n21[2];
    *(float2*)&out[16 * half + me.g][8 * r + 2 * me.q] = make_float2(y[0], y[1]);
    *(float2*)&out[16 * half + me.g + 8][8 * r + 2 * me.q] = make_float2(y[2], y[3]);
  }
'''
def larft(b):
    i=b.b.index('NOINLINE void products_again('); k=b.b.index('  store_products(scratch(s).partial[me.warp], x, me.lane);',i)
    b.b=b.b[:k]+AGAIN_LOW+b.b[k:]
    inv=piece('// Small products in two fp16','// T of one window from V\'V: tau')
    st=piece('// T as operands: (st, r) is rows','// ---------------------------------------------------------------- geqrf').replace('s.stage[1].t[','s.t[1][')
    b.cut('''// (V_0'V_1)', transposed: a warp one piece''','''// ---------------------------------------------------------------- geqrf
''',CROSS+inv+WINDOW_T+st)
    b.cut('''struct Triangle {          // scratch of larft
''','''struct Scratch {''','''struct Triangle {          // scratch of larft
  float n[IB][PAD];        // V'V, strictly upper used
  float n21[3][IB][PAD];   // V_1'V_0 of either warpgroup's rows; what V's low terms add if they are not always there
  float t22t[IB][PAD];     // transposed T of the second window
  float x[IB][PAD];        // T11 V_0'V_1
};
''')
    b.rep('''    Triangle& tri = scratch(s).tri;
    float(*tt)[PAD] = h == 0 ? s.t11t : tri.t22t;
''','')
    b.cut('''    invert_window(tri, tt, me);
''','''    fence_async();
    sync_all();
    if (h == 1 && whole && me.tid == MOVER) {''','''    store_t(s, h, me);
''')
    b.rep('''template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_32(''','''template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_32(''')
    i=b.b.index('template <int TRANSPOSED, int N_STRIDE>\nDEVICE void wgmma_32('); j=b.b.index('#endif',i)
    b.b=b.b[:j]+'''// the same with both in shared memory, K contiguous
template <int M_STRIDE, int N_STRIDE>
DEVICE void wgmma_tiles(float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], uint32_t a, uint32_t b) {
  asm volatile(
      "{.reg .b64 d,e; mov.b64 d,{%16,%18}; mov.b64 e,{%17,%19};"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},d,e,1,1,1,0,0;}"
      : ACC4(d0), ACC4(d1), ACC4(d2), ACC4(d3) : "r"(a), "r"(b), "n"(M_STRIDE >> 4), "n"(N_STRIDE >> 4));
}
'''+b.b[j:]
    b.rep('''//         | window_t:         V'V -> tau, T
''','''//         | window_t:         V'V -> tau, T (and T11 V_0'V_1 with the second window); store_t: T as operands
''')
    b.rep('''DEVICE uint32_t transpose_8x8(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(y) : "r"(x));
  return y;
}
''','')
