# form_reflectors: places as loop-carried addresses; M tested beside the recurrence
def form(b):
    b.rep('''DEVICE uint32_t shared_address(''','''// Kept in its register: the compiler would compute it anew in every turn of a loop.
DEVICE void keep(uint32_t& x) { asm volatile("" : "+r"(x)); }
DEVICE void keep(float*& x) { asm volatile("" : "+l"(x)); }
DEVICE uint32_t shared_address(''')
    b.rep('''  const uint32_t at = shared_address(p_tile(s, 0, 0, cg)) + (l ^ (cg & 1)) * 16;
  const uint32_t to = shared_address(&s.v[0][0][0][0]) + h * 512 + operand_row(me.lane) * 16;
''','''  const int own = first + me.warp;
  const uint32_t at = shared_address(p_tile(s, 0, 0, cg)) + (l ^ (cg & 1)) * 16;
  uint32_t offset = p_offset(own), to = shared_address(&s.v[0][own][0][0]) + h * 512 + operand_row(me.lane) * 16;
  float* to_h = job.h + (own * TILE + 2 * me.q) * ROWS + job.k * NB + h * IB + 2 * me.g;
''')
    b.rep('''  for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
    const int row = (tile - first) * TILE + 2 * me.q;
    const bool top''','''  for (int tile = own; tile < TILES; tile += WARPS) {
    const int row = (tile - first) * TILE + 2 * me.q;
    keep(offset);
    const bool top''')
    b.rep('''      load_matrix_transposed(hi, at + p_offset(tile));
      load_matrix_transposed(lo, at + p_offset(tile) + P_LOW);
''','''      load_matrix_transposed(hi, at + offset);
      load_matrix_transposed(lo, at + offset + P_LOW);
''')
    b.rep('''      store_matrix(to + tile * 1024, word);
''','''      keep(to);
      store_matrix(to, word);
''')
    b.rep('store_matrix(low_to + p_offset(tile), low);','store_matrix(low_to + offset, low);')
    b.rep('''      const int col = job.k * NB + h * IB + 8 * i + 2 * me.g;
      if (WHOLE) {
''','''      const int col = job.k * NB + h * IB + 8 * i + 2 * me.g;
      if (WHOLE && EXACT) {
        if (i == 0) keep(to_h);
        store_once2(to_h + 8 * i, make_float2(out[i].x, out[i + 1].x));
        store_once2(to_h + 8 * i + ROWS, make_float2(out[i].y, out[i + 1].y));
      } else if (WHOLE) {
''')
    i=b.b.index('''  if (WHOLE) {
    store_products(scratch(s).partial[me.warp]'''); k=b.b.rindex('  }\n',0,i)
    assert b.b[k:i]=='  }\n'
    b.b=b.b[:k]+'''    offset += FP32_CLASS && (tile & 8) ? CHUNK - WARPS * 128 : p_offset(WARPS);
    to += WARPS * 1024;
    to_h += WARPS * TILE * ROWS;
  }
'''+b.b[i:]
# one address for P only (no H pointer)
def form_h(b):
    form(b)
    b.rep('''  float* to_h = job.h + (own * TILE + 2 * me.q) * ROWS + job.k * NB + h * IB + 2 * me.g;
''','')
    b.rep('''    to_h += WARPS * TILE * ROWS;
''','')
    b.rep('''      if (WHOLE && EXACT) {
        if (i == 0) keep(to_h);
        store_once2(to_h + 8 * i, make_float2(out[i].x, out[i + 1].x));
        store_once2(to_h + 8 * i + ROWS, make_float2(out[i].y, out[i + 1].y));
      } else if (WHOLE) {
''','''      if (WHOLE) {
''')
    b.rep('''DEVICE void keep(float*& x) { asm volatile("" : "+l"(x)); }
''','')
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
    b.rep('''  if (!FP32_CLASS && two) fence_global();
  return true;
}''','''  if (!FP32_CLASS && two) fence_global();
}''')
    b.rep('''DEVICE bool form_reflectors(''','''DEVICE void form_reflectors(''')
    b.rep('''// recurrence. WHOLE: all columns, and the products of the reflectors on the way; false, the same in all warps, and nothing
// stored if M is too large to trust. Otherwise columns done .. good - 1 of the window; those after them are zero in V for now.
''','''// recurrence. WHOLE: all columns, and the products of the reflectors on the way. Otherwise columns done .. good - 1 of the window;
// those after them are zero in V for now.
''')
    b.rep('''    if (again || s.trip || !form_reflectors<EXACT, true>(s, job, h, first, 0, IB, low_before, me)) {
      ready = false;
''','''    if (!again && !s.trip) {
      form_reflectors<EXACT, true>(s, job, h, first, 0, IB, low_before, me);
    } else {
      ready = false;
''')
    # the last four rows of M' by their maker, the others by an idle warp
    b.rep('''DEVICE void recurrence_columns(Window& win, int lane) {
''','''DEVICE bool too_large(const Shared& s, int j, float sum) { return !(FP32_CLASS ? sum * sum * s.ratio[j] < 4.f : sum < M_NORM); }  // of M

DEVICE void recurrence_columns(Shared& s, Window& win, int lane) {
''')
    b.rep('recurrence_columns(win, lane);','recurrence_columns(s, win, lane);')
    b.rep('''      for (int i = 0; i < 4; i++) win.m[o + i][lane] = out[i];
    }
''','''      for (int i = 0; i < 4; i++) win.m[o + i][lane] = out[i];
    }
    if (o == IB - 4) {  // their absolute sums, in units of 1/256; the other rows have a warp that is idle at the end
#pragma unroll
      for (int i = 0; i < 4; i++) {
        if (too_large(s, o + i, (float)sum_lanes((uint32_t)fminf(256.f * fabsf(out[i]), 1e8f)) * (1.f / 256))) s.trip = 1;
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
      if (lane < IB - 4 && too_large(s, lane, sum)) s.trip = 1;
    }
  }
''')
