import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
# X1: groups 6, 7 of W are for warpgroup 0 only
rep('''    for (int r = 0; r < GROUPS; r++) {
      x_change.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      float4 x = x_change.partial[1 - me.wg][me.ws][r][me.lane];
      w[r][0] += x.x; w[r][1] += x.y; w[r][2] += x.z; w[r][3] += x.w;
    }
''','''    for (int r = 0; r < GROUPS; r++) {
      if (r < 6 || me.wg == 1) x_change.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      if (r < 6 || me.wg == 0) {  // the last two groups enter W' of warpgroup 0 only
        float4 x = x_change.partial[1 - me.wg][me.ws][r][me.lane];
        w[r][0] += x.x; w[r][1] += x.y; w[r][2] += x.z; w[r][3] += x.w;
      }
    }
''')
# X2: own W' stays in registers
i=t.index("// `next`: the block whose chunks take the place"); j=t.index("#endif\n\n// C = (I - V T' V') C.")
b=t[i:j]
def r2(x,y):
    global b
    assert b.count(x)==1,(b.count(x),x); b=b.replace(x,y)
r2('''// `next`: the block''','''// w_hi[0], [1]: this warp's half of W', of the reflectors from 16 mine[0] and 16 mine[1] on; the other half comes through shared
// memory. `next`: the block''')
r2('''DEVICE void subtract_two_terms(Panel& c, Shared& s, const Job& job, const uint4 (*operand)[4][4][32], LowTerms low, int quad0, int next,
                               const Lane& me) {
  uint32_t w_hi[4][4], w_lo[4][4];
#pragma unroll
  for (int st = 0; st < 4; st++) {
    const uint4 x = operand[0][me.ws][st][me.lane], y = operand[1][me.ws][st][me.lane];
    w_hi[st][0] = x.x; w_hi[st][1] = x.y; w_hi[st][2] = x.z; w_hi[st][3] = x.w;
    w_lo[st][0] = y.x; w_lo[st][1] = y.y; w_lo[st][2] = y.z; w_lo[st][3] = y.w;
  }
''','''DEVICE void subtract_two_terms(Panel& c, Shared& s, const Job& job, uint32_t (&w_hi)[4][4], uint32_t (&w_lo)[4][4],
                               const uint4 (*operand)[4][4][32], LowTerms low, int quad0, int next, const Lane& me) {
  uint32_t v_hi[4], v_lo[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int st = me.wg == (i >> 1) ? 3 * (i & 1) : 1 + (i & 1);
    v_hi[i] = tile_descriptor(shared_address(&s.v[0][me.wg][2 * st][0]), 128);
    v_lo[i] = tile_descriptor(low.tiles + (st & 1) * 2 * P_GROUP + (st < 2 ? 0 : low.other()), P_GROUP);
    if (i >= 2) {
      const uint4 x = operand[0][me.ws][st][me.lane], y = operand[1][me.ws][st][me.lane];
      w_hi[i][0] = x.x; w_hi[i][1] = x.y; w_hi[i][2] = x.z; w_hi[i][3] = x.w;
      w_lo[i][0] = y.x; w_lo[i][1] = y.y; w_lo[i][2] = y.z; w_lo[i][3] = y.w;
    }
  }
''')
k=b.index("  const uint32_t v_hi = tile_descriptor"); l=b.index("#pragma unroll\n  for (int quad"); b=b[:k]+b[l:]
r2('''        const uint32_t y = v_lo[st >> 1] + quad / 2 * 1024 + quad % 2 * 64 + (st & 1) * (2 * P_GROUP / 16);
        wgmma_32<1, 256>(c[i], c[i + 1], c[i + 2], c[i + 3], w_hi[st], y);
''','''        wgmma_32<1, 256>(c[i], c[i + 1], c[i + 2], c[i + 3], w_hi[st], v_lo[st] + quad / 2 * 1024 + quad % 2 * 64);
''')
r2("z < 4 ? w_lo[st] : w_hi[st], v_hi + 8 * quad * 64 + st * 16);","z < 4 ? w_lo[st] : w_hi[st], v_hi[st] + 8 * quad * 64);")
b=b.replace("of the reflectors from 16 mine[0] and 16 mine[1] on; the other","the other") 
t=t[:i]+b+t[j:]
rep('''#pragma unroll
  for (int pair = 0; pair < 2; pair++) {  // reflectors 0 .. 15 and 48 .. 63, or 16 .. 31 and 32 .. 47
    const bool on = full || pair == 0;
    uint32_t hi[4], lo[4];
#pragma unroll
    for (int z = 0; z < 4; z++) {
      const int u = 2 * pair + (z >> 1), e = 2 * (z & 1);
      const float x = on ? -d[u][e] - rest[u][e] : 0.f, y = on ? -d[u][e + 1] - rest[u][e + 1] : 0.f;
      split(x, y, hi[z], lo[z]);
    }
    const int st = me.wg == 0 ? 3 * pair : 1 + pair;
    x_change.operand[0][me.ws][st][me.lane] = {hi[0], hi[1], hi[2], hi[3]};
    if (two_w) x_change.operand[1][me.ws][st][me.lane] = {lo[0], lo[1], lo[2], lo[3]};
  }
''','''#pragma unroll
  for (int pair = 0; pair < 2; pair++) {  // reflectors 0 .. 15 and 48 .. 63, or 16 .. 31 and 32 .. 47
    const bool on = full || pair == 0;
#pragma unroll
    for (int z = 0; z < 4; z++) {
      const int u = 2 * pair + (z >> 1), e = 2 * (z & 1);
      const float x = on ? -d[u][e] - rest[u][e] : 0.f, y = on ? -d[u][e + 1] - rest[u][e + 1] : 0.f;
      split(x, y, hi[pair][z], lo[pair][z]);
    }
    const int st = me.wg == 0 ? 3 * pair : 1 + pair;
    x_change.operand[0][me.ws][st][me.lane] = {hi[pair][0], hi[pair][1], hi[pair][2], hi[pair][3]};
    if (two_w) x_change.operand[1][me.ws][st][me.lane] = {lo[pair][0], lo[pair][1], lo[pair][2], lo[pair][3]};
  }
''')
rep("subtract_two_terms(c, s, job, x_change.operand, low, quad0, next, me);","subtract_two_terms(c, s, job, hi, lo, x_change.operand, low, quad0, next, me);")
open(sys.argv[2],'w').write(t)
