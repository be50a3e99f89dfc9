# T's operands asked for before the halves of W meet
def exchange(b, hoist_two=False):
    b.cut('''// W'^T = W^T T as d + rest; the accumulators w''','''struct Part { int window''','''// T's operands of one warpgroup: it makes the half of W' that costs half, groups 0, 1, 6, 7 of reflectors (1 + 1 + 4 + 4 operands) or
// 2 to 5 (2 + 2 + 3 + 3).
struct TOperands { uint4 last[3][2], first[2], more[2]; };
DEVICE void load_t(TOperands& t, const uint4 (*operands)[32], const Lane& me) {
  const auto at = [&](int st, int r) { return operands[st * (9 - st) + r - 2 * st][me.lane]; };
  const int first = 2 * me.wg, last = 6 - first;
#pragma unroll
  for (int u = 0; u < 2; u++) {
    t.first[u] = at(0, first + u);
#pragma unroll
    for (int st = 0; st < 3; st++) t.last[st][u] = at(st, last + u);
    t.more[u] = at(3 - first, 6 - 2 * first + u);
  }
}
// W'^T = W^T T as d + rest; the accumulators w are the A operand of it.
template <bool TWO>
DEVICE void apply_t(float (&d)[4][4], float (&rest)[4][4], const uint32_t (&hi)[4][4], const uint32_t (&lo)[4][4], const TOperands& t,
                    const Lane& me) {
  const auto add = [&](int at, int st, const uint4 (&x)[2]) {
#pragma unroll
    for (int u = 0; u < 2; u++) mma_fp16(d[at + u], hi[st], x[u].x, x[u].y);
#pragma unroll
    for (int u = 0; u < 2; u++) mma_fp16(rest[at + u], hi[st], x[u].z, x[u].w);
#pragma unroll
    for (int u = 0; u < 2; u++) {
      if (TWO) mma_fp16(rest[at + u], lo[st], x[u].x, x[u].y);
    }
  };
  add(2, 0, t.last[0]);
  add(0, 0, t.first);
  add(2, 1, t.last[1]);
  add(2, 2, t.last[2]);
  if (me.wg == 0) add(2, 3, t.more);
  else add(0, 1, t.more);
}

''')
    b.rep('''    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      if (r < 6 || me.wg == 0) {''','''    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      if (r < 6 || me.wg == 0) {''')
    b.rep('''    apply_t<true>(d, rest, hi, lo, s.t[t_stage], me);
''','''    load_t(t, s.t[t_stage], me);
    apply_t<true>(d, rest, hi, lo, t, me);
''')
    b.rep('''    apply_t<false>(d, rest, hi, hi, s.t[t_stage], me);
''','''    apply_t<false>(d, rest, hi, hi, t, me);
''')
    b.rep('''      mine[st][me.lane] = {hi[st][0], hi[st][1], hi[st][2], hi[st][3]};
    }
''','''      mine[st][me.lane] = {hi[st][0], hi[st][1], hi[st][2], hi[st][3]};
    }
    load_t(t, s.t[t_stage], me);  // on their way meanwhile
''')
    b.rep('''  uint32_t hi[GROUPS / 2][4], lo[GROUPS / 2][4];
  if (two_w) {''','''  uint32_t hi[GROUPS / 2][4], lo[GROUPS / 2][4];
  TOperands t;
  if (two_w) {''')
    b.rep('''    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = other[st][me.lane];
      hi[st][0] = plus_half2(hi[st][0], x.x);''','''    bar_sync(1 + me.ws, 64);
    uint4 theirs[GROUPS / 2];
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) theirs[st] = other[st][me.lane];
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = theirs[st];
      hi[st][0] = plus_half2(hi[st][0], x.x);''')
# as v120: a restart's selection out of line
def select(b):
    b.rep('''struct Part { int window, from, to; };
''','''struct Part { int window, from, to; };
// Of this lane's W only that: rare.
NOINLINE void select_part(float4 (*w)[32], Part part, Lane me) {
#pragma unroll 1
  for (int i = 0; i < 4 * GROUPS; i++) {
    const int reflector = 8 * (i >> 2) + 2 * me.q + (i & 1);
    if (reflector < part.from || reflector >= part.to || me.ws >> 1 != part.window) (&w[i >> 2][me.lane].x)[i & 3] = 0.f;
  }
}
''')
    b.rep('''      if (r < 6 || me.wg == 1) x_change.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
''','''      x_change.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    if (RARE(part.window >= 0)) {
      select_part(x_change.partial[me.wg][me.ws], part, me);
#pragma unroll
      for (int r = 0; r < GROUPS; r++) *(float4*)&w[r][0] = x_change.partial[me.wg][me.ws][r][me.lane];
    }
''')
    b.cut('''    if (part.window >= 0) {
#pragma unroll
      for (int r = 0; r < GROUPS; r++) {''','''#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
#pragma unroll
      for (int z = 0; z < 4; z++) {
        const float(&x)[4] = w[2 * st + (z >> 1)];
        split(''','')
# T's operands asked for before W's products
def early(b):
    b.rep('''    load_t(t, s.t[t_stage], me);  // on their way meanwhile
''','')
    b.rep('''    load_t(t, s.t[t_stage], me);
    apply_t<true>(d, rest, hi, lo, t, me);
''','''    if (FP32_CLASS) load_t(t, s.t[t_stage], me);
    apply_t<true>(d, rest, hi, lo, t, me);
''')
    b.rep('''  TOperands t;
  if (two_w) {''','''  if (two_w) {''')
    b.rep('''  // W^T = C^T V: c is the A operand as it stands
#if''','''  TOperands t;
  if (!FP32_CLASS) load_t(t, s.t[t_stage], me);  // early: they take 320 turns of shared memory's queue
  // W^T = C^T V: c is the A operand as it stands
#if''')
# between the last products of W and the wait for them (one term of C)
def late(b):
    early(b)
    b.rep('''  if (!FP32_CLASS) load_t(t, s.t[t_stage], me);  // early: they take 320 turns of shared memory's queue
''','')
    b.rep('''          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64);
        }
        wgmma_commit();
        wgmma_wait();
''','''          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64);
        }
        wgmma_commit();
        if (quad == OWN / 4 - 1) load_t(t, s.t[t_stage], me);  // 320 turns of shared memory's queue
        wgmma_wait();
''')
# part of T's operands before W's products, the others after its halves are on their way
def early2(b, n=3):
    b.cut('''DEVICE void load_t(TOperands& t,''','''// W'^T = W^T T as d''','''template <bool EARLY>
DEVICE void load_t(TOperands& t, const uint4 (*operands)[32], const Lane& me) {
  const auto at = [&](int st, int r) { return operands[st * (9 - st) + r - 2 * st][me.lane]; };
  const int first = 2 * me.wg, last = 6 - first;
#pragma unroll
  for (int u = 0; u < 2; u++) {
    if (!EARLY) t.first[u] = at(0, first + u);
#pragma unroll
    for (int st = 0; st < 3; st++) {
      if ((st < EARLY_T) == EARLY) t.last[st][u] = at(st, last + u);
    }
    if (!EARLY) t.more[u] = at(3 - first, 6 - 2 * first + u);
  }
}
'''.replace('EARLY_T',str(n)))
    b.rep('''    load_t(t, s.t[t_stage], me);  // on their way meanwhile
''','''    load_t<false>(t, s.t[t_stage], me);  // on their way meanwhile
''')
    b.rep('''    load_t(t, s.t[t_stage], me);
    apply_t<true>(d, rest, hi, lo, t, me);
''','''    load_t<false>(t, s.t[t_stage], me);
    if (FP32_CLASS) load_t<true>(t, s.t[t_stage], me);
    apply_t<true>(d, rest, hi, lo, t, me);
''')
    b.rep('''  TOperands t;
  if (two_w) {''','''  if (two_w) {''')
    b.rep('''  // W^T = C^T V: c is the A operand as it stands
#if''','''  TOperands t;
  if (!FP32_CLASS) load_t<true>(t, s.t[t_stage], me);  // early: all of them take 320 turns of shared memory's queue
  // W^T = C^T V: c is the A operand as it stands
#if''')
def early1(b): early2(b,2)
