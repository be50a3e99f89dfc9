# (a) gram with the upper triangle only, two barriers; (b) norms and clearing by warps idle in the recurrence's first block
def gram(b):
    b.cut('''struct Window {            // scratch of one window's recurrence
''','''  float g[IB][PAD];        // G,''','''struct Window {            // scratch of one window's recurrence
  float out[IB][PAD];      // [row][column]: R on and above the diagonal, v below
''')
    b.rep('''  float g[IB][PAD];        // G, symmetric, and what is left of it
''','''  float g[IB][PAD];        // upper triangle of G, and what is left of it
''')
    # products move before gram
    i=b.b.index("// Partial sums of V_h'V_h (the upper"); j=b.b.index("DEVICE int operand_row(int lane)"); prod=b.b[i:j]; b.b=b.b[:i]+b.b[j:]
    prod=prod.replace('''// Partial sums of V_h'V_h (the upper triangle of 8 x 8 pieces). Operand i of a tile: lane's word is reflector
// 16 (i / 2) + 2 g + i % 2, rows 2q, 2q + 1, which is how V = P M leaves the tensor cores.
''','''// Partial sums of P'P or V_h'V_h: six pieces of 16 x 8, those that hold the upper triangle.
''')
    k=prod.index('DEVICE void add_own'); l=prod.index('DEVICE void store_products')
    add=prod[k:l]; prod=prod[:k]+prod[l:]
    b.rep('DEVICE int operand_row(int lane)','''// V'V. Operand i of a tile: lane's word is reflector 16 (i / 2) + 2 g + i % 2, rows 2q, 2q + 1, which is how V = P M leaves the
// tensor cores.
'''+add+'DEVICE int operand_row(int lane)')
    b.cut('''// x with G = (x + x')/2 = P'P: x = HH''','''DEVICE float minus_dot(''',prod+'''
struct Norm { float square, scale; };  // of a lane's column

// G = P'P = H'H + H'L + L'H for P = H + L in fp16, its columns scaled by powers of two to a norm in [1, 2), and the top 32 x 32 of P
// as well. Rows are split over the warps.
DEVICE Norm gram(Shared& s, int first, const Lane& me) {
  constexpr int LOW = TILES * 512;
  Scratch& sc = scratch(s);
  float2 top[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int tile = me.warp & 3, group = 2 * (me.warp >> 2) + i;
    const int word = (me.g ^ (group & 1)) * 4 + me.q;
    const float2 hi = unpack_half2(s.p[0][first + tile][group][word]), lo = unpack_half2(s.p[1][first + tile][group][word]);
    top[i] = make_float2(hi.x + lo.x, hi.y + lo.y);
  }
  Products sums;
  clear_products(sums);
  // The left operands (two groups of two tiles) and the right ones (two tiles of a group, twice) each by loads of their own:
  // taken from one another they would cost half of the loop in moves.
  const int l = me.lane & 7, b0 = me.lane >> 3 & 1, b1 = me.lane >> 4;
  const uint32_t p = shared_address(&s.p[0][0][0][0]);
  const uint32_t left = p + b1 * 512 + b0 * 128 + (l ^ b0) * 16, right = p + b0 * 512 + b1 * 128 + (l ^ b1) * 16;
#pragma unroll 1
  for (int u = first / 2 + me.warp; u < TILES / 2; u += WARPS) {
    uint32_t a[2][4], a_lo[2][4], hi[2][4], lo[2][4];
#pragma unroll
    for (int z = 0; z < 2; z++) {
      load_matrix(a[z], left + u * 1024 + z * 256);
      load_matrix(hi[z], right + u * 1024 + z * 256);
      load_matrix(lo[z], right + u * 1024 + z * 256 + LOW);
      load_matrix(a_lo[z], left + u * 1024 + z * 256 + LOW);
    }
#pragma unroll
    for (int term = 0; term < 3; term++) {
#pragma unroll
      for (int i = 0; i < 6; i++) {
        const int r = i < 4 ? i : i - 2, half = r >> 1, z = 2 * (r & 1);
        const uint32_t(&y)[4] = term == 1 ? lo[half] : hi[half];
        mma_fp16(sums.own[i], term == 2 ? a_lo[i >> 2] : a[i >> 2], y[z], y[z + 1]);
      }
    }
  }
  store_products(sc.partial[me.warp], sums, me.lane);
  sync_all();
  // lane = column
  const float* own_partial = &sc.partial[0][(me.lane >> 3) + 2 * (me.lane >> 4)][4 * l + (l >> 1)].x + 2 * b0 + (l & 1);
  Norm norm;
  norm.square = own_partial[0];
#pragma unroll
  for (int w = 1; w < WARPS; w++) norm.square += own_partial[w * (8 * 32 * 4)];
  const int e = (127 - (int)(float_bits(norm.square) >> 23)) >> 1;
  const float own = norm.square < TINY_SQUARE ? 0.f : power_of_two(e > DOWN_LIMIT ? DOWN_LIMIT : e);
  norm.scale = own;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int row = 8 * (me.warp & 3) + 2 * me.q, col = 8 * (2 * (me.warp >> 2) + i) + me.g;
    const float scale = shfl(own, col);
    sc.win.top[row][col] = top[i].x * scale;
    sc.win.top[row + 1][col] = top[i].y * scale;
  }
  if (me.warp < 6) {
    const float4 y = sum_partials(sc.partial, me.warp, me.lane);
    const int row = 16 * (me.warp >> 2) + me.g, col = 8 * (me.warp < 4 ? me.warp : me.warp - 2) + 2 * me.q;
    const float left = shfl(own, col), right = shfl(own, col + 1), upper = shfl(own, row), lower = shfl(own, row + 8);
    // a zero column's pivot
    const float x[4] = {y.x * left * upper, y.y * right * upper, y.z * left * lower, y.w * right * lower};
    const float pivot[4] = {row == col ? ZERO_PIVOT : x[0], row == col + 1 ? ZERO_PIVOT : x[1],
                            row + 8 == col ? ZERO_PIVOT : x[2], row + 8 == col + 1 ? ZERO_PIVOT : x[3]};
    *(float2*)&sc.win.g[row][col] = make_float2(fmaxf(x[0], pivot[0]), fmaxf(x[1], pivot[1]));
    *(float2*)&sc.win.g[row + 8][col] = make_float2(fmaxf(x[2], pivot[2]), fmaxf(x[3], pivot[3]));
  } else if (me.warp == 6) {
    // what fp16 cannot scale (beyond 2^15) is scaled in M
#pragma unroll
    for (int i = 0; i < IB; i += 4) *(float4*)&sc.win.m[me.lane][i] = make_float4(0.f, 0.f, 0.f, 0.f);
    sc.win.m[me.lane][me.lane] = own > 32768.f ? own * (1.f / 32768.f) : 1.f;
    sc.win.diagonal[me.lane] = norm.square * own * own;
  }
  sync_all();
  return norm;
}

// By one warp beside the recurrence: how V's columns are scaled, and whether V takes two terms.
DEVICE void window_norms(Shared& s, const Job& job, int h, int first, bool first_pass, const Norm& norm, const Lane& me) {
  const float own = norm.scale, unscale = s.unscale[h * IB + me.lane];
  s.down[h * IB + me.lane] = own < 32768.f ? own : 32768.f;
  s.back[h * IB + me.lane] = own == 0.f ? 0.f : unscale * bits_float(0x7f000000u - float_bits(own));  // unscale / own
  const float largest_norm = largest(own == 0.f ? 0.f : norm.square * reciprocal_sqrt(norm.square) * unscale);
  const float rows = (float)(job.n - first * TILE);
  const float error = rows > 0.f ? rows * reciprocal_sqrt(rows) * V_ROUNDING * largest_norm : 0.f;
  const bool two = error > TWO_TERM_AT * 1.1920929e-7f * (float)job.n * bits_float(s.largest_sum);
  if (me.lane == 0) {
    s.two_terms = first_pass ? two : two || s.two_terms;
    s.good = IB;
    s.trip = 0;
  }
}

''')
    b.rep('''DEVICE void recurrence(Shared& s, const Lane& me) {
  Window& win = scratch(s).win;
  const int lane = me.lane;
''','''// The warps without a role have nothing to do in the first block: the last one decides on terms and scales, the others clear the
// second half of V, which is zero while the first is applied to the second window, and stays so in the first 32 rows.
DEVICE void recurrence(Shared& s, const Job& job, int h, int first, int done, const Norm& norm, const Lane& me) {
  Window& win = scratch(s).win;
  const int lane = me.lane;
  if (me.warp == WARPS - 1) {
    window_norms(s, job, h, first, h == 0 && done == 0, norm, me);
  } else if (me.warp >= 3 && h == 0) {
    const uint4 zero = {0u, 0u, 0u, 0u};
#pragma unroll 1
    for (int tile = first + me.warp - 3; tile < TILES; tile += WARPS - 4) *reinterpret_cast<uint4*>(&s.v[0][tile][4][me.lane * 4]) = zero;
  }
''')
    b.cut('''// The second half of V is zero while the first''','''// V'V. Operand i''','''// V takes two terms from this window on: those of the other window are zero. Rare.
NOINLINE void clear_low(Shared& s, Job job, int h, Lane me) {
  const uint4 zero = {0u, 0u, 0u, 0u};
#pragma unroll 1
  for (int i = me.tid; i < (TILES - 8 * job.k) * 32; i += THREADS) {
    const int tile = 8 * job.k + (i >> 5);
    *reinterpret_cast<uint4*>(&job.v_lo[((size_t)(job.k * TILES + tile) * GROUPS + 4 * (1 - h)) * 32 + (i & 31) * 4]) = zero;
    // the first 32 rows of the second window, which form_reflectors does not write
    if (h == 1 && tile < 8 * job.k + 4) {
      *reinterpret_cast<uint4*>(&job.v_lo[((size_t)(job.k * TILES + tile) * GROUPS + 4) * 32 + (i & 31) * 4]) = zero;
    }
  }
  fence_global();
}

''')
    b.rep('''    gram(s, job, h, first, done, me);
    if (s.two_terms) low_blocks |= 1u << k;
    clear_second_half(s, job, h, low_before, me);
    recurrence(s, me);
    sync_all();
''','''    const Norm norm = gram(s, first, me);
    recurrence(s, job, h, first, done, norm, me);
    sync_all();
    if (s.two_terms) {
      low_blocks |= 1u << k;
      if (h == 0 || !low_before) clear_low(s, job, h, me);  // of the other window
    }
''')
def tri(b):
    b.cut('''// T of one window, transposed: the two 16 x 16 blocks''','''DEVICE void invert_window(''','''// T of one window, transposed, up to the two 16 x 16 blocks on its diagonal: 8 x 8 blocks by substitution (a quarter warp each, lane =
// row), joined by T12 = -T1 N12 T2 (two lanes a row). Beside it, for the second window of a panel: (T11 N12)' of the whole block.
DEVICE void invert_diagonal(Triangle& tri, const float* tau, float (*tt)[PAD], const float (*t11t)[PAD], const Lane& me) {
  if (me.warp == 0) {
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
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float(&t2)[PAD] = tt[p + 8 + own + i];
      const float4 z = *(const float4*)&t2[p + 8 + own], z2 = *(const float4*)&t2[p + 8 + other];
      tt[p + 8 + own + i][p + r] = minus_dot(minus_dot(0.f, z, make_float4(y[0], y[1], y[2], y[3])), z2, make_float4(y2[0], y2[1], y2[2], y2[3]));
    }
  } else if (me.warp == 1) {
#pragma unroll
    for (int i = 0; i < 8; i++) tt[2 * i + (me.lane >> 4)][16 + (me.lane & 15)] = 0.f;
#pragma unroll
    for (int i = 0; i < 8; i += 2) tt[(me.lane & 16) + i + (me.lane >> 3 & 1)][(me.lane & 16) + 8 + (me.lane & 7)] = 0.f;
  }
  if (t11t && me.warp >= WARPS / 2) {
    small_product(tri.t12t, tri.n12t, t11t, 1.f, me.tid - THREADS / 2);
    small_product(tri.t12t, tri.n12t, t11t, 1.f, me.tid);
  }
}
''')
