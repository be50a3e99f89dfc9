def apply(B,t_one=False):
    rep=B.rep
    B.cut('''template <bool TWO>
DEVICE void apply_t(''','''struct Part {''','''template <bool TWO>
DEVICE void apply_t(float (&d)[4][4], float (&rest)[4][4], const uint32_t (&hi)[4][4], const uint32_t (&lo)[4][4],
                    const uint4 (*t_operands)[32], const Lane& me) {
#pragma unroll
  for (int st = 0; st < GROUPS / 2; st++) {
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int r = me.wg == 0 ? (u < 2 ? u : u + 4) : u + 2;
      const bool both = st < (u < 2 ? 1 : 3);
      const bool one = u < 2 ? st == 1 && me.wg == 1 : st == 3 && me.wg == 0;
      if (both || ((st == 1 || st == 3) && one)) {
        const uint4 t = t_operands[st * (9 - st) + r - 2 * st][me.lane];
        mma_fp16(d[u], hi[st], t.x, t.y);
        mma_fp16(rest[u], hi[st], t.z, t.w);
        if (TWO) mma_fp16(rest[u], lo[st], t.x, t.y);
      }
    }
  }
}

''')
    if 'ROWS_OF_8' in B.b: rep('''struct Part { int window''','''#define ROWS_OF_8(c, i) c[i], c[i + 1], c[i + 2], c[i + 3], c[i + 4], c[i + 5], c[i + 6], c[i + 7]

struct Part { int window''')
    B.cut('''#pragma unroll
  for (int r = 0; r < GROUPS; r++) {
    s.partial[me.wg]''','''  uint32_t wh[GROUPS / 2][4], wl[GROUPS / 2][4];
''','''  // The two halves of W meet. Where one term is enough for W' it is for W too, beside T in two.
  float d[4][4], rest[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&d[0][0])[i] = (&rest[0][0])[i] = 0.f;
  uint32_t hi[GROUPS / 2][4], lo[GROUPS / 2][4];
  if (two_w) {
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      s.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      float4 x = s.partial[1 - me.wg][me.ws][r][me.lane];
      w[r][0] += x.x; w[r][1] += x.y; w[r][2] += x.z; w[r][3] += x.w;
    }
    if (part.window >= 0) {
#pragma unroll
      for (int r = 0; r < GROUPS; r++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int reflector = 8 * r + 2 * me.q + (e & 1);
          if (reflector < part.from || reflector >= part.to || me.ws >> 1 != part.window) w[r][e] = 0.f;
        }
      }
    }
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
#pragma unroll
      for (int z = 0; z < 4; z++) {
        const float(&x)[4] = w[2 * st + (z >> 1)];
        split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[st][z], lo[st][z]);
      }
    }
    apply_t<true>(d, rest, hi, lo, s.t[t_stage], me);
  } else {
    uint4(*mine)[32] = reinterpret_cast<uint4(*)[32]>(s.partial[me.wg][me.ws]);
    uint4(*other)[32] = reinterpret_cast<uint4(*)[32]>(s.partial[1 - me.wg][me.ws]);
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
#pragma unroll
      for (int z = 0; z < 4; z++) {
        const float(&x)[4] = w[2 * st + (z >> 1)];
        hi[st][z] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
      }
      mine[st][me.lane] = {hi[st][0], hi[st][1], hi[st][2], hi[st][3]};
    }
    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = other[st][me.lane];
      hi[st][0] = plus_half2(hi[st][0], x.x);
      hi[st][1] = plus_half2(hi[st][1], x.y);
      hi[st][2] = plus_half2(hi[st][2], x.z);
      hi[st][3] = plus_half2(hi[st][3], x.w);
    }
    apply_t<false>(d, rest, hi, hi, s.t[t_stage], me);
  }
''')
    if t_one:
        rep('''        mma_fp16(rest[u], hi[st], t.z, t.w);
        if (TWO) mma_fp16(rest[u], lo[st], t.x, t.y);''','''        if (TWO) mma_fp16(rest[u], hi[st], t.z, t.w);
        if (TWO) mma_fp16(rest[u], lo[st], t.x, t.y);''')
