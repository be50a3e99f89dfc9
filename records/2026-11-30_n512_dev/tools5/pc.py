# T: loads before stores; no null pointer
def tri2(b):
    b.rep('''    sync_warp();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float(&t2)[PAD] = tt[p + 8 + own + i];
      const float4 z = *(const float4*)&t2[p + 8 + own], z2 = *(const float4*)&t2[p + 8 + other];
      tt[p + 8 + own + i][p + r] = minus_dot(minus_dot(0.f, z, make_float4(y[0], y[1], y[2], y[3])), z2, make_float4(y2[0], y2[1], y2[2], y2[3]));
    }
''','''    sync_warp();
    float4 z[4], z2[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      z[i] = *(const float4*)&tt[p + 8 + own + i][p + 8 + own];
      z2[i] = *(const float4*)&tt[p + 8 + own + i][p + 8 + other];
    }
    const float4 left = make_float4(y[0], y[1], y[2], y[3]), right = make_float4(y2[0], y2[1], y2[2], y2[3]);
#pragma unroll
    for (int i = 0; i < 4; i++) tt[p + 8 + own + i][p + r] = minus_dot(minus_dot(0.f, z[i], left), z2[i], right);
''')
    b.rep('''DEVICE void invert_diagonal(Triangle& tri, const float* tau, float (*tt)[PAD], const float (*t11t)[PAD], const Lane& me) {''',
    '''DEVICE void invert_diagonal(Triangle& tri, const float* tau, float (*tt)[PAD], bool whole, const float (*t11t)[PAD], const Lane& me) {''')
    b.rep('if (t11t && me.warp >= WARPS / 2) {','if (whole && me.warp >= WARPS / 2) {')
    b.rep('h == 0 ? s.t11t : sc.tri.t22t, h == 0 ? nullptr : s.t11t, me);','h == 0 ? s.t11t : sc.tri.t22t, h == 1, s.t11t, me);')
# W' in two terms out of line
def two_w(b):
    b.cut('''// W'^T = W^T T as d + rest; the accumulators w''','''struct Part { int window''','''// W'^T = W^T T as d + rest; the accumulators w are the A operand of it. Each warpgroup does the half of it that costs half: groups
// 0, 1, 6, 7 of reflectors (1 + 1 + 4 + 4 operands of T) and 2 to 5.
DEVICE void apply_t(float (&d)[4][4], float (&rest)[4][4], const uint32_t (&w)[4][4], const uint4 (*t_operands)[32], const Lane& me) {
#pragma unroll
  for (int st = 0; st < GROUPS / 2; st++) {
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int r = me.wg == 0 ? (u < 2 ? u : u + 4) : u + 2;
      const bool both = st < (u < 2 ? 1 : 3);
      const bool one = u < 2 ? st == 1 && me.wg == 1 : st == 3 && me.wg == 0;
      if (both || ((st == 1 || st == 3) && one)) {
        const uint4 t = t_operands[st * (9 - st) + r - 2 * st][me.lane];
        mma_fp16(d[u], w[st], t.x, t.y);
        mma_fp16(rest[u], w[st], t.z, t.w);
      }
    }
  }
}

''')
    b.rep('''struct Part { int window, from, to; };
''','''struct Part { int window, from, to; };

// The same with W and W' in two terms, from both halves of W in shared memory, short rather than fast: rare.
NOINLINE void apply_t_two_terms(Shared& s, int t_stage, bool full, Part part, Lane me) {
#pragma unroll 1
  for (int u = 0; u < 4; u++) {
    const int r = me.wg == 0 ? (u < 2 ? u : u + 4) : u + 2;
    float d[4] = {0.f, 0.f, 0.f, 0.f}, rest[4] = {0.f, 0.f, 0.f, 0.f};
    const bool on = full || u < 2;
#pragma unroll 1
    for (int st = 0; on && st <= r >> 1; st++) {
      uint32_t hi[4], lo[4];
#pragma unroll
      for (int z = 0; z < 2; z++) {
        const float4 x = s.partial[0][me.ws][2 * st + z][me.lane], y = s.partial[1][me.ws][2 * st + z][me.lane];
        float w[4] = {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w};
        if (part.window >= 0) {
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const int reflector = 8 * (2 * st + z) + 2 * me.q + (e & 1);
            if (reflector < part.from || reflector >= part.to || me.ws >> 1 != part.window) w[e] = 0.f;
          }
        }
        split(w[0], w[1], hi[2 * z], lo[2 * z]);
        split(w[2], w[3], hi[2 * z + 1], lo[2 * z + 1]);
      }
      const uint4 t = s.t[t_stage][st * (9 - st) + r - 2 * st][me.lane];
      mma_fp16(d, hi, t.x, t.y);
      mma_fp16(rest, hi, t.z, t.w);
      mma_fp16(rest, lo, t.x, t.y);
    }
    uint2 hi, lo;
    split(-d[0] - rest[0], -d[1] - rest[1], hi.x, lo.x);
    split(-d[2] - rest[2], -d[3] - rest[3], hi.y, lo.y);
    reinterpret_cast<uint2*>(&s.operand[0][me.ws][r >> 1][me.lane])[r & 1] = hi;
    reinterpret_cast<uint2*>(&s.operand[1][me.ws][r >> 1][me.lane])[r & 1] = lo;
  }
}
''')
    b.cut('''  // The two halves of W meet. Where one term''','''  bar_sync(1 + me.ws, 64);
  // C^T -= W'^T V^T''','''  // The two halves of W meet. Where one term is enough for W' it is for W too, beside T in two.
  if (two_w) {
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      s.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    bar_sync(1 + me.ws, 64);
    apply_t_two_terms(s, t_stage, full, part, me);
  } else {
    float d[4][4], rest[4][4];
#pragma unroll
    for (int i = 0; i < 16; i++) (&d[0][0])[i] = (&rest[0][0])[i] = 0.f;
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
    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = other[st][me.lane];
      sum[st][0] = plus_half2(sum[st][0], x.x);
      sum[st][1] = plus_half2(sum[st][1], x.y);
      sum[st][2] = plus_half2(sum[st][2], x.z);
      sum[st][3] = plus_half2(sum[st][3], x.w);
    }
    apply_t(d, rest, sum, s.t[t_stage], me);
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {  // reflectors 0 .. 15 and 48 .. 63, or 16 .. 31 and 32 .. 47
      const bool on = full || pair == 0;
      uint32_t x[4];
#pragma unroll
      for (int z = 0; z < 4; z++) {
        const int u = 2 * pair + (z >> 1), e = 2 * (z & 1);
        x[z] = on ? pack_half2(-d[u][e] - rest[u][e], -d[u][e + 1] - rest[u][e + 1]) : 0u;
      }
      s.operand[0][me.ws][me.wg == 0 ? 3 * pair : 1 + pair][me.lane] = {x[0], x[1], x[2], x[3]};
    }
  }
''')
