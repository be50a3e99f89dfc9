# form_reflectors: places as loop-carried addresses; |M| tested in the recurrence
def form(b):
    b.rep('''DEVICE uint32_t shared_address(''','''// Kept in its register: the compiler would compute it anew in every turn of a loop.
DEVICE void keep(uint32_t& x) { asm volatile("" : "+r"(x)); }
DEVICE void keep(float*& x) { asm volatile("" : "+l"(x)); }
DEVICE uint32_t shared_address(''')
    b.rep('''  const uint32_t at = shared_address(&s.p[0][0][cg][0]) + (l ^ (cg & 1)) * 16;
  constexpr int LOW = TILES * 512;
  const uint32_t to = shared_address(&s.stage[0].v[0][0][0]) + h * 512 + operand_row(me.lane) * 16;
''','''  const int own = first + me.warp;
  uint32_t at = shared_address(&s.p[0][own][cg][0]) + (l ^ (cg & 1)) * 16;
  constexpr int LOW = TILES * 512;
  uint32_t to = shared_address(&s.stage[0].v[own][0][0]) + h * 512 + operand_row(me.lane) * 16;
  float* to_h = job.h + (size_t)(own * TILE + 2 * me.q) * ROWS + job.k * NB + h * IB + 2 * me.g;
''')
    b.rep('''  for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
    const int row = (tile - first) * TILE + 2 * me.q;
    const bool top''','''  for (int tile = own; tile < TILES; tile += WARPS) {
    const int row = (tile - first) * TILE + 2 * me.q;
    keep(at);
    const bool top''')
    b.rep('''      load_matrix_transposed(hi, at + tile * 512);
      load_matrix_transposed(lo, at + tile * 512 + LOW);
''','''      load_matrix_transposed(hi, at);
      load_matrix_transposed(lo, at + LOW);
''')
    b.rep('''      store_matrix(to + tile * 1024, word);
''','''      keep(to);
      store_matrix(to, word);
''')
    b.rep('''      const int col = job.k * NB + h * IB + 8 * i + 2 * me.g;
      if (WHOLE) {
''','''      const int col = job.k * NB + h * IB + 8 * i + 2 * me.g;
      if (WHOLE && EXACT) {
        if (i == 0) keep(to_h);
        store_once2(to_h + 8 * i, make_float2(out[i].x, out[i + 1].x));
        store_once2(to_h + 8 * i + ROWS, make_float2(out[i].y, out[i + 1].y));
      } else if (WHOLE) {
''')
    b.rep('''  if (WHOLE) {
    store_products(scratch(s).partial[me.warp]''','''    at += WARPS * 512;
    to += WARPS * 1024;
    to_h += WARPS * TILE * ROWS;
  }
  if (WHOLE) {
    store_products(scratch(s).partial[me.warp]''')
    i=b.b.index('    at += WARPS * 512;'); k=b.b.rindex('  }\n',0,i)
    assert b.b[k:i]=='  }\n'
    b.b=b.b[:k]+b.b[i:]
    if 'keep' not in open('emu5.h').read(): open('emu5.h','a').write('inline void keep(uint32_t&){} inline void keep(float*&){}\n')
def large(b):
    b.rep('''  float size[2][2] = {{0.f, 0.f}, {0.f, 0.f}};
''','')
    b.rep('''      size[HALF[f]][z & 1] += fabsf(x.x) + fabsf(x.y);
''','')
    b.cut('''  bool large = false;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float x = size''','''  const int l = me.lane & 7, cg = me.lane >> 3;
''','')
    b.rep('''  if (two) fence_global();
  return true;
}''','''  if (two) fence_global();
}''')
    b.rep('''DEVICE bool form_reflectors(''','''DEVICE void form_reflectors(''')
    b.rep('''// recurrence. WHOLE: all columns, and the products of the reflectors on the way; false, the same in all warps, and nothing
// stored if M is too large to trust. Otherwise''','''// recurrence. WHOLE: all columns, and the products of the reflectors on the way. Otherwise''')
    b.rep('''    if (again || s.trip || !form_reflectors<EXACT, true>(s, job, h, first, 0, IB, low_before, me)) {
      ready = false;
''','''    if (!again && !s.trip) {
      form_reflectors<EXACT, true>(s, job, h, first, 0, IB, low_before, me);
    } else {
      ready = false;
''')
    # the last four rows of M' by their maker, the others by an idle warp
    b.rep('''DEVICE void recurrence_columns(Window& win, int lane) {
''','''DEVICE void recurrence_columns(Window& win, int& trip, int lane) {
''')
    b.rep('recurrence_columns(win, lane);','recurrence_columns(win, s.trip, lane);')
    b.rep('''      for (int i = 0; i < 4; i++) win.m[o + i][lane] = out[i];
    }
''','''      for (int i = 0; i < 4; i++) win.m[o + i][lane] = out[i];
    }
    if (o == IB - 4) {  // their norms, in sixteenths; the other rows have a warp that is idle at the end
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (sum_lanes((uint32_t)fminf(16.f * fabsf(out[i]), 1e7f)) >= (uint32_t)(16.f * M_NORM)) trip = 1;
      }
    }
''')
    b.rep('''DEVICE uint32_t ballot(bool p)''','''DEVICE uint32_t sum_lanes(uint32_t x) { return __reduce_add_sync(~0u, x); }
DEVICE uint32_t ballot(bool p)''')
    b.rep('''  else if (me.warp > 2) recurrence_rest(win, me.warp - 3, lane);
''','''  else if (me.warp > 2) {
    recurrence_rest(win, me.warp - 3, lane);
    if (me.warp == WARPS - 1) {  // lane = row of M'
      float sum = 0.f;
#pragma unroll
      for (int i = 0; i < IB - 4; i += 4) {
        const float4 x = *(const float4*)&win.m[lane][i];
        sum += (fabsf(x.x) + fabsf(x.y)) + (fabsf(x.z) + fabsf(x.w));
      }
      if (lane < IB - 4 && !(sum < M_NORM)) s.trip = 1;
    }
  }
''')
