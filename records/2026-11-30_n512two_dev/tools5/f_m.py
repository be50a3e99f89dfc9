import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
def cut(a,b,y,incl=False):
    global t
    assert t.count(a)==1,(t.count(a),a); i=t.index(a); j=t.index(b,i)+(len(b) if incl else 0); t=t[:i]+y+t[j:]
rep('''#pragma unroll
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
''','''#pragma unroll
    for (int pair = 0; pair < 4; pair += 2) {
      const bool both = st < (pair == 0 ? 1 : 3);
      const bool one = pair == 0 ? st == 1 && me.wg == 1 : st == 3 && me.wg == 0;
      if (both || ((st == 1 || st == 3) && one)) {
        const int r = me.wg == 0 ? 3 * pair : pair + 2;
        const uint4 t[2] = {t_operands[st * (9 - st) + r - 2 * st][me.lane], t_operands[st * (9 - st) + r + 1 - 2 * st][me.lane]};
#pragma unroll
        for (int u = 0; u < 2; u++) mma_fp16(d[pair + u], hi[st], t[u].x, t[u].y);
#pragma unroll
        for (int u = 0; u < 2; u++) mma_fp16(rest[pair + u], hi[st], t[u].z, t[u].w);
#pragma unroll
        for (int u = 0; u < 2; u++) {
          if (TWO) mma_fp16(rest[pair + u], lo[st], t[u].x, t[u].y);
        }
      }
    }
''')
rep('''  constexpr int HALF[3] = {0, 1, 1};
''','''  constexpr int HALF[3] = {1, 0, 1};
''')
rep('''#pragma unroll
      for (int f = 0; f < 3; f++) {
        const int z = 2 * DEPTH[f];
        rest[f][0] = rest[f][1] = rest[f][2] = rest[f][3] = 0.f;
        mma_fp16(rest[f], m_lo[f], hi[z], hi[z + 1]);
        mma_fp16(d[HALF[f]], m_hi[f], hi[z], hi[z + 1]);
        mma_fp16(rest[f], m_hi[f], lo[z], lo[z + 1]);
      }
''','''#pragma unroll
      for (int f = 0; f < 3; f++) {
        rest[f][0] = rest[f][1] = rest[f][2] = rest[f][3] = 0.f;
        mma_fp16(rest[f], m_lo[f], hi[2 * DEPTH[f]], hi[2 * DEPTH[f] + 1]);
      }
#pragma unroll
      for (int f = 0; f < 3; f++) mma_fp16(d[HALF[f]], m_hi[f], hi[2 * DEPTH[f]], hi[2 * DEPTH[f] + 1]);
#pragma unroll
      for (int f = 0; f < 3; f++) mma_fp16(rest[f], m_hi[f], lo[2 * DEPTH[f]], lo[2 * DEPTH[f] + 1]);
''')
rep('''        x[i] = i < 2 ? d[0][e] + rest[0][e] : d[1][e] + (rest[1][e] + rest[2][e]);
        y[i] = i < 2 ? d[0][e + 1] + rest[0][e + 1] : d[1][e + 1] + (rest[1][e + 1] + rest[2][e + 1]);
''','''        x[i] = i < 2 ? d[0][e] + rest[1][e] : d[1][e] + (rest[0][e] + rest[2][e]);
        y[i] = i < 2 ? d[0][e + 1] + rest[1][e + 1] : d[1][e + 1] + (rest[0][e + 1] + rest[2][e + 1]);
''')
i=t.index("DEVICE void cross_products"); j=t.index("// out' = scale * (x' y)")
b=t[i:j]
def r2(x,y):
    global b
    assert b.count(x)==1,(b.count(x),x); b=b.replace(x,y)
r2("  float x[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};\n","  float x[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, low_v[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, v_low[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};\n")
r2('''      mma_fp16(x[0], a0, low[0], low[1]);
      mma_fp16(x[1], a1, low[2], low[3]);
''','''      mma_fp16(v_low[0], a0, low[0], low[1]);
      mma_fp16(v_low[1], a1, low[2], low[3]);
''')
k=b.index("      load_matrix(a1, low0 +"); b2=b[k:]
b2=b2.replace('''      mma_fp16(x[0], a0, b[0], b[1]);
      mma_fp16(x[1], a1, b[2], b[3]);
''','''      mma_fp16(low_v[0], a0, b[0], b[1]);
      mma_fp16(low_v[1], a1, b[2], b[3]);
''',1); b=b[:k]+b2
r2("  const int row = 16 * half + me.g, col = 8 * r + 2 * me.q;\n",'''#pragma unroll
  for (int i = 0; TERMS == 2 && i < 8; i++) x[i >> 2][i & 3] += low_v[i >> 2][i & 3] + v_low[i >> 2][i & 3];
  const int row = 16 * half + me.g, col = 8 * r + 2 * me.q;
''')
t=t[:i]+b+t[j:]
open(sys.argv[2],'w').write(t)
