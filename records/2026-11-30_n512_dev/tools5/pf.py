# larft on the tensor cores: (V_1'V_0) by warpgroup products, T by 8, 16 and 32 in one warp, T12 straight to operands
LARFT='''// V_1'V_0 over the rows of this warpgroup (every second pair of tiles; without its products, of this warp's quarter of the columns).
#if WARPGROUP_MMA
DEVICE void cross_products(Shared& s, int first, float (*out)[IB][PAD], const Lane& me) {
  float x[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&x[0][0])[i] = 0.f;
  const uint32_t v = tile_descriptor(shared_address(&s.stage[0].v[first + 2 * me.wg][0][0]), 1024);
  wgmma_fence();
#pragma unroll 1
  for (int tile = 0; tile < TILES - first; tile += 4) {  // rows 32 .. 63 of the product are of no use
    wgmma_tiles<128>(x[0], x[1], x[2], x[3], v + (4 * 128 + tile * 1024) / 16, v + tile * 1024 / 16);
  }
  wgmma_commit();
  wgmma_wait();
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
#pragma unroll 4
    for (int tile = first + 2 * me.wg; tile < TILES; tile += 4) {
      const uint32_t *v = &s.stage[0].v[tile][0][me.lane], *next = v + GROUPS * 32;
      const uint32_t a[4] = {v[(4 + 2 * half) * 32], v[(5 + 2 * half) * 32], next[(4 + 2 * half) * 32], next[(5 + 2 * half) * 32]};
      mma_fp16(x, a, v[me.ws * 32], next[me.ws * 32]);
    }
    *(float2*)&out[me.wg][16 * half + me.g][8 * me.ws + 2 * me.q] = make_float2(x[0], x[1]);
    *(float2*)&out[me.wg][16 * half + me.g + 8][8 * me.ws + 2 * me.q] = make_float2(x[2], x[3]);
  }
}
#endif

// V's low terms in it: rare.
NOINLINE void cross_products_low(Shared& s, Job job, int first, Lane me) {
  const int half = me.warp >> 2, r = me.warp & 3;
  const uint32_t* lo = job.v_lo + (size_t)job.k * TILES * GROUPS * 32;
  float x[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll 4
  for (int tile = first; tile < TILES; tile++) {
    const uint32_t* v = &s.stage[0].v[tile][0][me.lane];
    const int g = 4 + 2 * half;
    mma_fp16_k8(x, v[g * 32], v[(g + 1) * 32], low_word(lo, tile, r, me.lane));
    mma_fp16_k8(x, low_word(lo, tile, g, me.lane), low_word(lo, tile, g + 1, me.lane), v[r * 32]);
  }
  sync_all();
  float(&out)[IB][PAD] = scratch(s).tri.n21[0];
  const int row = 16 * half + me.g, col = 8 * r + 2 * me.q;
  out[row][col] += x[0];
  out[row][col + 1] += x[1];
  out[row + 8][col] += x[2];
  out[row + 8][col + 1] += x[3];
}

// Small products in two fp16 terms (22 bits): d += A B without low times low.
struct Terms { uint32_t hi[4], lo[4]; };
DEVICE void mma_two_terms(float (&d)[4], const Terms& a, uint32_t hi0, uint32_t hi1, uint32_t lo0, uint32_t lo1) {
  mma_fp16(d, a.lo, hi0, hi1);
  mma_fp16(d, a.hi, lo0, lo1);
  mma_fp16(d, a.hi, hi0, hi1);
}

// T of one window, transposed, by one warp: 8 x 8 blocks by substitution (a quarter warp each, lane = row), joined by
// T12 = -T1 N12 T2: to 16 x 16 by two lanes a row, then on the tensor cores.
DEVICE void invert_window(Triangle& tri, const float* tau, float (*tt)[PAD], const Lane& me) {
  const int o = me.lane & 24, r = me.lane & 7;
  float x[8], t[8];
  *(float4*)&t[0] = *(const float4*)&tau[o];
  *(float4*)&t[4] = *(const float4*)&tau[o + 4];
#pragma unroll
  for (int i = 0; i < 8; i++) x[i] = i == r ? 1.f : 0.f;
#pragma unroll
  for (int st = 0; st < 8; st++) {
    float row[8];
#pragma unroll
    for (int u = (st + 1) & ~3; u < 8; u += 4) *(float4*)&row[u] = *(const float4*)&tri.n[o + st][o + u];
    x[st] *= t[st];
    tt[o + st][me.lane] = x[st];
    if (me.lane & 8) tt[o - 8 + st][me.lane] = 0.f;
#pragma unroll
    for (int u = st + 1; u < 8; u++) x[u] = fmaf(-row[u], x[st], x[u]);
  }
  const int p = me.lane & 16, own = me.lane >> 1 & 4, other = own ^ 4;  // this lane's columns of T12, and its partner's
  float y[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
  for (int m = 0; m < 8; m++) {
    const float u = shfl(x[m], me.lane & 23);
    const float4 z = *(const float4*)&tri.n[p + m][p + 8 + own];
    y[0] = fmaf(u, z.x, y[0]); y[1] = fmaf(u, z.y, y[1]); y[2] = fmaf(u, z.z, y[2]); y[3] = fmaf(u, z.w, y[3]);
  }
  float y2[4];
#pragma unroll
  for (int i = 0; i < 4; i++) y2[i] = shfl_xor(y[i], 8);
  sync_warp();
  float4 z[4], z2[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    z[i] = *(const float4*)&tt[p + 8 + own + i][p + 8 + own];
    z2[i] = *(const float4*)&tt[p + 8 + own + i][p + 8 + other];
  }
  const float4 left = make_float4(y[0], y[1], y[2], y[3]), right = make_float4(y2[0], y2[1], y2[2], y2[3]);
#pragma unroll
  for (int i = 0; i < 4; i++) tt[p + 8 + own + i][p + r] = minus_dot(minus_dot(0.f, z[i], left), z2[i], right);
  sync_warp();
  Terms a;
  float d[2][4], e[2][4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = me.g + 8 * (i & 1), m = 2 * me.q + 8 * (i >> 1);
    split(tt[m][row], tt[m + 1][row], a.hi[i], a.lo[i]);
    d[0][i] = d[1][i] = e[0][i] = e[1][i] = 0.f;
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const float(*n)[PAD] = &tri.n[2 * me.q];
    const int col = 16 + 8 * i + me.g;
    uint32_t hi[2], lo[2];
    split(n[0][col], n[1][col], hi[0], lo[0]);
    split(n[8][col], n[9][col], hi[1], lo[1]);
    mma_two_terms(d[i], a, hi[0], hi[1], lo[0], lo[1]);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) split(d[i >> 1][2 * (i & 1)], d[i >> 1][2 * (i & 1) + 1], a.hi[i], a.lo[i]);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const float* t2 = &tt[16 + 8 * i + me.g][16 + 2 * me.q];
    uint32_t hi[2], lo[2];
    split(t2[0], t2[1], hi[0], lo[0]);
    split(t2[8], t2[9], hi[1], lo[1]);
    mma_two_terms(e[i], a, hi[0], hi[1], lo[0], lo[1]);
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
#pragma unroll
    for (int z = 0; z < 4; z++) tt[16 + 8 * i + 2 * me.q + (z & 1)][me.g + 8 * (z >> 1)] = -e[i][z];
  }
}

// What is left of a product of two 32 x 32 by four warps: part 0 .. 3 has rows 16 (part % 2) .. + 15, columns 16 (part / 2) .. + 15.
// d = A B as [tile of 8 columns]; a(row, k) two neighbours in k, b(k, column) too.
template <class A, class B>
DEVICE void product_part(float (&d)[2][4], int part, A a, B b, const Lane& me) {
#pragma unroll
  for (int i = 0; i < 8; i++) (&d[0][0])[i] = 0.f;
#pragma unroll
  for (int k = 0; k < IB; k += 16) {
    Terms x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float2 y = a(16 * (part & 1) + me.g + 8 * (i & 1), k + 2 * me.q + 8 * (i >> 1));
      split(y.x, y.y, x.hi[i], x.lo[i]);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t hi[2], lo[2];
#pragma unroll
      for (int z = 0; z < 2; z++) {
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
DEVICE void window_t(bool ready, Shared& s, const Job& job, int h, int first, bool need_t, bool whole, const Lane& me) {
  Scratch& sc = scratch(s);
  if (RARE(!ready)) {
    products_again(s, job, h, first, me);
    sync_all();
  }
  const bool cross = h == 1 && need_t;
  if (cross) {
    cross_products(s, first, sc.tri.n21, me);
    if (RARE(s.two_terms)) cross_products_low(s, job, first, me);
  }
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
  sync_all();
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
      const float2 x = *(const float2*)&sc.tri.n21[0][j][m], y = *(const float2*)&sc.tri.n21[1][j][m];
      return make_float2(x.x + y.x, x.y + y.y);
    }, [&](int m, int a) { return make_float2(s.t11t[m][a], s.t11t[m + 1][a]); }, me);
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int z = 0; z < 4; z++) sc.tri.x[16 * (part >> 1) + 8 * i + 2 * me.q + (z & 1)][16 * (part & 1) + me.g + 8 * (z >> 1)] = d[i][z];
    }
  } else if (cross && whole && job.k > 0 && me.tid == MOVER) {  // V's stage is free once it has been read
    bulk_store_read();
    prefetch_block(s, job, 0);
  }
}

// T as operands: (st, r) is rows 16 st .. + 15, columns 8 r .. + 7 of it; the ones under the diagonal do not exist.
DEVICE uint4& t_operand(Shared& s, int st, int r, const Lane& me) { return s.stage[1].t[st * (9 - st) + r - 2 * st][me.lane]; }
DEVICE void store_t_operand(Shared& s, int st, int r, const float (*tt)[PAD], const Lane& me) {
  const float* t = &tt[(8 * r + me.g) & 31][(16 * st + 2 * me.q) & 31];
  uint4 x;
  split(t[0], t[1], x.x, x.z);
  split(t[8], t[9], x.y, x.w);
  t_operand(s, st, r, me) = x;
}
// The six of a window's own T, and with the second window those of T12 = -X T22, transposed as they come from the tensor cores.
DEVICE void store_t(Shared& s, int h, const Lane& me) {
  const Triangle& tri = scratch(s).tri;
  if (h == 1 && me.warp < 4) {
    float d[2][4];
    product_part(d, me.warp, [&](int c, int j) { return *(const float2*)&tri.t22t[c][j]; },
                 [&](int j, int a) { return *(const float2*)&tri.x[a][j]; }, me);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint4 x;
      split(-d[0][2 * i], -d[0][2 * i + 1], x.x, x.z);
      split(-d[1][2 * i], -d[1][2 * i + 1], x.y, x.w);
      t_operand(s, me.warp >> 1, 4 + 2 * (me.warp & 1) + i, me) = x;
    }
  } else {
#pragma unroll 1
    for (int i = h == 0 ? me.warp : me.warp - 4; i < 6; i += h == 0 ? WARPS : 4) {
      const int st = i < 4 ? 0 : 1;
      store_t_operand(s, st + 2 * h, (i < 4 ? i : i - 2) + 4 * h, h == 0 ? s.t11t : tri.t22t, me);
    }
  }
}

'''
def larft(b):
    b.cut('''// (V_0'V_1)', transposed: a warp one piece''','''// ---------------------------------------------------------------- geqrf
''',LARFT)
    b.cut('''struct Triangle {          // scratch of larft
''','''struct Scratch {''','''struct Triangle {          // scratch of larft
  float n[IB][PAD];        // V'V, strictly upper used
  float n21[2][IB][PAD];   // V_1'V_0 of either warpgroup's rows
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
    b.rep('''      s.largest_column = 0u;
      bulk_store(job.v''','''      s.largest_column = 0u;
      if (EXACT) fetch_half(s, job, k + 1, 0, s.half);
      bulk_store(job.v''')
    b.rep('''      bulk_store_commit();
      if (EXACT) fetch_half(s, job, k + 1, 0, s.half);
''','''      bulk_store_commit();
''')
    b.rep('''#define ACC4(x)''','''// d (4 tiles of 8 columns) += A B, both in tiles of 8 x 8 with K contiguous, N_STRIDE between tiles along M and N
#define ACC4(x)''')
    b.rep('''template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_32(''','''template <int N_STRIDE>
DEVICE void wgmma_tiles(float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], uint32_t a, uint32_t b) {
  asm volatile(
      "{.reg .b64 d,e; mov.b64 d,{%16,%18}; mov.b64 e,{%17,%18};"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},d,e,1,1,1,0,0;}"
      : ACC4(d0), ACC4(d1), ACC4(d2), ACC4(d3) : "r"(a), "r"(b), "n"(N_STRIDE >> 4));
}
template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_32(''')
    b.b=b.b.replace('''// d (4 tiles of 8 columns) += A B, both in tiles of 8 x 8 with K contiguous, N_STRIDE between tiles along M and N
#define ACC4(x)''','#define ACC4(x)').replace('''template <int N_STRIDE>
DEVICE void wgmma_tiles''','''// d (4 tiles of 8 columns) += A B, both in shared memory, K contiguous
template <int N_STRIDE>
DEVICE void wgmma_tiles''')
