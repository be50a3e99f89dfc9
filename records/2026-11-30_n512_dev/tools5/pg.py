# the exchange of W: T's operands asked for before the barrier, the same shape for both warpgroups, restarts' masks out of line
def fixcross(b):
    b.rep('''  wgmma_fence();
#pragma unroll 1
  for (int tile = 0; tile < TILES - first; tile += 4) {  // rows 32 .. 63 of the product are of no use
    wgmma_tiles<128>(x[0], x[1], x[2], x[3], v + (4 * 128 + tile * 1024) / 16, v + tile * 1024 / 16);
  }
  wgmma_commit();
  wgmma_wait();
''','''#pragma unroll 1
  for (int tile = 0; tile < TILES - first; tile += 4) {  // rows 32 .. 63 of the product are of no use
    wgmma_fence();
    wgmma_tiles<128>(x[0], x[1], x[2], x[3], v + (4 * 128 + tile * 1024) / 16, v + tile * 1024 / 16);
    wgmma_commit();
  }
  wgmma_wait();
''')
def exchange(b):
    b.cut('''// W'^T = W^T T as d + rest; the accumulators w''','''// C = (I - V T' V') C. Each warp''','''// W'^T = W^T T, the accumulators w being its A operand. Warpgroup 0 makes groups 0, 3, 4, 7 of reflectors, warpgroup 1 groups 1, 2, 5, 6:
// group u of either takes the first u + 1 operands of W^T.
DEVICE int t_group(int u, const Lane& me) { return 2 * u + ((u & 1) ^ me.wg); }
DEVICE const uint4& t_of(const Shared& s, int t_stage, int st, int u, const Lane& me) {
  return s.stage[t_stage].t[st * (9 - st) - 2 * st + t_group(u, me)][me.lane];
}
DEVICE uint2& w_operand(Shared& s, int term, int u, const Lane& me) {
  return reinterpret_cast<uint2*>(&s.operand[term][me.ws][u][me.lane])[t_group(u, me) & 1];
}

struct Part { int window, from, to; };

// A restart's, which counts only some reflectors and columns, in two terms; from both halves of W in shared memory, short rather than
// fast: rare.
NOINLINE void apply_t_again(Shared& s, int t_stage, bool full, Part part, Lane me) {
#pragma unroll 1
  for (int u = 0; u < 4; u++) {
    float d[4] = {0.f, 0.f, 0.f, 0.f}, rest[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll 1
    for (int st = 0; (full || u < 2) && st <= u; st++) {
      uint32_t hi[4], lo[4];
#pragma unroll
      for (int z = 0; z < 2; z++) {
        const float4 x = s.partial[0][me.ws][2 * st + z][me.lane], y = s.partial[1][me.ws][2 * st + z][me.lane];
        float w[4] = {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w};
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int reflector = 8 * (2 * st + z) + 2 * me.q + (e & 1);
          if (reflector < part.from || reflector >= part.to || me.ws >> 1 != part.window) w[e] = 0.f;
        }
        split(w[0], w[1], hi[2 * z], lo[2 * z]);
        split(w[2], w[3], hi[2 * z + 1], lo[2 * z + 1]);
      }
      const uint4 t = t_of(s, t_stage, st, u, me);
      mma_fp16(d, hi, t.x, t.y);
      mma_fp16(rest, hi, t.z, t.w);
      mma_fp16(rest, lo, t.x, t.y);
    }
    uint2 hi, lo;
    split(-d[0] - rest[0], -d[1] - rest[1], hi.x, lo.x);
    split(-d[2] - rest[2], -d[3] - rest[3], hi.y, lo.y);
    w_operand(s, 0, u, me) = hi;
    w_operand(s, 1, u, me) = lo;
  }
}

''')
    b.cut('''  // The two halves of W meet. Where one term''','''  bar_sync(1 + me.ws, 64);
  // C^T -= W'^T V^T''','''  // The two halves of W meet. Where one term is enough for W' it is for W too, beside T in two.
  float d[4][4], rest[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&d[0][0])[i] = (&rest[0][0])[i] = 0.f;
  if (two_w) {
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      s.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    bar_sync(1 + me.ws, 64);
    if (RARE(part.window >= 0)) {
      apply_t_again(s, t_stage, full, part, me);
    } else {
#pragma unroll
      for (int st = 0; st < GROUPS / 2; st++) {
        uint32_t hi[4], lo[4];
#pragma unroll
        for (int z = 0; z < 2; z++) {
          const float(&y)[4] = w[2 * st + z];
          const float4 x = s.partial[1 - me.wg][me.ws][2 * st + z][me.lane];
          split(y[0] + x.x, y[1] + x.y, hi[2 * z], lo[2 * z]);
          split(y[2] + x.z, y[3] + x.w, hi[2 * z + 1], lo[2 * z + 1]);
        }
#pragma unroll
        for (int u = st; u < 4; u++) {
          const uint4 t = t_of(s, t_stage, st, u, me);
          mma_fp16(d[u], hi, t.x, t.y);
          mma_fp16(rest[u], hi, t.z, t.w);
          mma_fp16(rest[u], lo, t.x, t.y);
        }
      }
#pragma unroll
      for (int u = 0; u < 4; u++) {
        uint2 hi = {0u, 0u}, lo = hi;
        if (full || u < 2) {
          split(-d[u][0] - rest[u][0], -d[u][1] - rest[u][1], hi.x, lo.x);
          split(-d[u][2] - rest[u][2], -d[u][3] - rest[u][3], hi.y, lo.y);
        }
        w_operand(s, 0, u, me) = hi;
        w_operand(s, 1, u, me) = lo;
      }
    }
  } else {
    uint32_t sum[GROUPS / 2][4];
    uint4(*mine)[32] = reinterpret_cast<uint4(*)[32]>(s.partial[me.wg][me.ws]);
    uint4(*other)[32] = reinterpret_cast<uint4(*)[32]>(s.partial[1 - me.wg][me.ws]);
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
#pragma unroll
      for (int z = 0; z < 4; z++) {
        const float(&x)[4] = w[2 * st + (z >> 1)];
        sum[st][z] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
      }
      mine[st][me.lane] = {sum[st][0], sum[st][1], sum[st][2], sum[st][3]};
    }
    uint4 t[4][4];  // on their way meanwhile
#pragma unroll
    for (int st = 0; st < 4; st++) {
#pragma unroll
      for (int u = st; u < 4; u++) t[st][u] = t_of(s, t_stage, st, u, me);
    }
    bar_sync(1 + me.ws, 64);
    uint4 x[GROUPS / 2];
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) x[st] = other[st][me.lane];
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
      sum[st][0] = plus_half2(sum[st][0], x[st].x);
      sum[st][1] = plus_half2(sum[st][1], x[st].y);
      sum[st][2] = plus_half2(sum[st][2], x[st].z);
      sum[st][3] = plus_half2(sum[st][3], x[st].w);
#pragma unroll
      for (int u = st; u < 4; u++) {
        mma_fp16(d[u], sum[st], t[st][u].x, t[st][u].y);
        mma_fp16(rest[u], sum[st], t[st][u].z, t[st][u].w);
      }
    }
#pragma unroll
    for (int u = 0; u < 4; u++) {
      uint2 y = {0u, 0u};
      if (full || u < 2) {
        y.x = pack_half2(-d[u][0] - rest[u][0], -d[u][1] - rest[u][1]);
        y.y = pack_half2(-d[u][2] - rest[u][2], -d[u][3] - rest[u][3]);
      }
      w_operand(s, 0, u, me) = y;
    }
  }
''')
def exchange2(b):  # T's operands of the second pair of st after the barrier
    exchange(b)
    b.rep('''    for (int st = 0; st < 4; st++) {
#pragma unroll
      for (int u = st; u < 4; u++) t[st][u] = t_of(s, t_stage, st, u, me);
    }
    bar_sync(1 + me.ws, 64);
''','''    for (int st = 0; st < 2; st++) {
#pragma unroll
      for (int u = st; u < 4; u++) t[st][u] = t_of(s, t_stage, st, u, me);
    }
    bar_sync(1 + me.ws, 64);
''')
    b.rep('''      sum[st][0] = plus_half2(sum[st][0], x[st].x);''','''      if (st == 1) {
#pragma unroll
        for (int u = 2; u < 4; u++) t[2][u] = t_of(s, t_stage, 2, u, me);
        t[3][3] = t_of(s, t_stage, 3, 3, me);
      }
      sum[st][0] = plus_half2(sum[st][0], x[st].x);''')
def exchange3(b):  # all after the barrier
    exchange(b)
    b.cut('''    uint4 t[4][4];  // on their way meanwhile
''','''    bar_sync(1 + me.ws, 64);
''','')
    b.rep('''        mma_fp16(d[u], sum[st], t[st][u].x, t[st][u].y);
        mma_fp16(rest[u], sum[st], t[st][u].z, t[st][u].w);
''','''        const uint4 t = t_of(s, t_stage, st, u, me);
        mma_fp16(d[u], sum[st], t.x, t.y);
        mma_fp16(rest[u], sum[st], t.z, t.w);
''')
def cross2(b):  # two products a wait; the first 32 rows, where V_1 is zero, make their number even
    b.cut('''#pragma unroll 1
  for (int tile = 0; tile < TILES - first; tile += 4) {  // rows''','''  if (me.ws < 2) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(float2*)&out[me.wg]''','''#pragma unroll 1
  for (int tile = 0; tile < TILES - first + 4; tile += 8) {  // rows 32 .. 63 of the product are of no use
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint32_t at = v + (tile + 4 * i) * 64;
      wgmma_tiles<128>(x[0], x[1], x[2], x[3], at + 32, at);
    }
    wgmma_commit();
    wgmma_wait();
  }
''')
    b.rep('&s.stage[0].v[first + 2 * me.wg][0][0]), 1024);','&s.stage[0].v[first - 4 + 2 * me.wg][0][0]), 1024);')
def cross1(b):
    b.rep('''    wgmma_commit();
  }
  wgmma_wait();
  if (me.ws < 2) {''','''    wgmma_commit();
    wgmma_wait();
  }
  if (me.ws < 2) {''')
