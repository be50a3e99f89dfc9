# (c) recurrence: Cholesky a block ahead of the other eliminations, a warp of its own
NEW='''// From G and the top 32 x 32 of P: R, the top of V, and M with V = P M, four columns at a time, by three eliminations:
//   Cholesky  G = R'R without signs; row i of it is |row i of R|
//   LU        of the top of P: with beta = sign |R_ii| (no cancellation in alpha - beta) and v_i = 1, row i loses
//             w = (row i) - (row i of R), the rows below lose v w
//   inverse   P = V U with U = diag(alpha - beta) + w, so V = P M with M = U^-1
// Four warps have roles. Warp 0 does Cholesky (lane = column), one block ahead of the others: warp 1 the four rows of R and w (lane =
// column), warp 2 four columns of V (lane = row), warp 3 four rows of M' (lane = row). Each takes the rank-4 update of its last block into
// what it reads, and does the 4 x 4 on the diagonal by every lane for itself: no shuffle in the chain. Meanwhile the other
// warps do that update for what comes later, so that there is one barrier a block. A rolled loop for each role: straight-line code
// costs over 4 cycles an instruction, and so do tests. r_abs, w and out begin with four columns of zeros: the block before the first.
DEVICE void recurrence_cholesky(Window& win, int lane) {
  float4 own = make_float4(0.f, 0.f, 0.f, 0.f);  // the lane's part of the block before
#pragma unroll 1
  for (int o = 0; o < IB; o += 4) {
    float4 before[4];
    float g[4][4], x[4], root[4], out[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(float4*)&g[i][0] = *(const float4*)&win.g[o + i][o];
      before[i] = *(const float4*)&win.r_abs[o + i][o];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = win.g[o + i][lane];
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = i; j < 4; j++) g[i][j] = minus_dot(g[i][j], before[i], before[j]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = minus_dot(x[i], before[i], own);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      root[i] = reciprocal_sqrt(g[i][i]);
#pragma unroll
      for (int j = i + 1; j < 4; j++) g[i][j] *= root[i];
#pragma unroll
      for (int k = i + 1; k < 4; k++) {
#pragma unroll
        for (int j = k; j < 4; j++) g[k][j] = fmaf(-g[i][k], g[i][j], g[k][j]);
      }
      out[i] = x[i] * root[i];
#pragma unroll
      for (int k = i + 1; k < 4; k++) x[k] = fmaf(-g[i][k], out[i], x[k]);
    }
    own = make_float4(out[0], out[1], out[2], out[3]);
    *(float4*)&win.r_abs[lane][4 + o] = own;
    if (lane == 0) *(float4*)&win.pivot[o] = make_float4(g[0][0], g[1][1], g[2][2], g[3][3]);
    sync_all();
  }
}

template <int ROLE>
DEVICE void recurrence_role(Window& win, int lane) {
  float4 own = make_float4(0.f, 0.f, 0.f, 0.f);  // the lane's part of the block before
#pragma unroll 1
  for (int o = 0; o < IB; o += 4) {
    sync_all();
    float4 v[4], w[4];                      // of the block before
    float a[4][4], r[4][4], mine[4], x[4], out[4], inverse[4];  // r[j][i] = |R_ij|
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(float4*)&a[i][0] = *(const float4*)&win.top[o + i][o];
      v[i] = *(const float4*)&win.out[o + i][o];
      w[i] = *(const float4*)&win.w[o + i][o];
      *(float4*)&r[i][0] = *(const float4*)&win.r_abs[o + i][4 + o];
    }
    if (ROLE == 1) *(float4*)&x[0] = *(const float4*)&win.top[lane][o];
    if (ROLE == 0) *(float4*)&mine[0] = *(const float4*)&win.r_abs[lane][4 + o];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (ROLE == 0) x[i] = win.top[o + i][lane];
      if (ROLE == 2) x[i] = win.m[o + i][lane];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) a[i][j] = minus_dot(a[i][j], v[i], w[j]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = minus_dot(x[i], ROLE == 0 ? v[i] : w[i], own);
    // a[i][j]: w right of the diagonal, v left of it
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const bool live = r[i][i] > LEAST_NORM;  // otherwise inverse is zero
      const uint32_t minus = float_bits(a[i][i]) & 0x80000000u;  // the sign of alpha: beta has the other one
      inverse[i] = reciprocal(a[i][i] + bits_float(float_bits(live ? r[i][i] : INFINITY) | minus));
#pragma unroll
      for (int j = i + 1; j < 4; j++) a[i][j] += bits_float(float_bits(r[j][i]) ^ minus);
#pragma unroll
      for (int k = i + 1; k < 4; k++) {
        a[k][i] *= inverse[i];
#pragma unroll
        for (int j = i + 1; j < 4; j++) a[k][j] = fmaf(-a[k][i], a[i][j], a[k][j]);
      }
      if (ROLE == 0) {
        const float beta = live ? -bits_float(float_bits(mine[i]) ^ minus) : x[i];
        out[i] = x[i] - beta;
        if (lane >= o + i) win.out[o + i][4 + lane] = beta;
      } else {
        out[i] = x[i] * inverse[i];
        if (ROLE == 2) win.m[o + i][lane] = out[i];
        if (ROLE == 1 && lane > o + i) win.out[lane][4 + o + i] = out[i];
      }
#pragma unroll
      for (int k = i + 1; k < 4; k++) x[k] = fmaf(ROLE == 0 ? -a[k][i] : -a[i][k], out[i], x[k]);
    }
    own = make_float4(out[0], out[1], out[2], out[3]);
    if (ROLE == 0) {
      *(float4*)&win.w[lane][4 + o] = own;
      if (lane == 0) *(float4*)&win.inverse[o] = *(float4*)&inverse[0];
    }
  }
}

// Rows (of M': columns) shared out to the warps, lane = column (of M': row). In step t warp 0 is at block t, the other roles at block
// t - 1: block t - 1 is taken out of G from block t + 1 on, block t - 2 out of the others from block t on.
DEVICE void recurrence_rest(Window& win, int warp, int lane) {
#pragma unroll 1
  for (int t = 1; t < IB / 4; t++) {
    sync_all();
    const int at = 4 * t - 4;
    const float4 r4 = *(const float4*)&win.r_abs[lane][4 + at], w4 = *(const float4*)&win.w[lane][at];
    float m[4] = {0.f, 0.f, 0.f, 0.f};
    if (t > 1) {
#pragma unroll
      for (int i = 0; i < 4; i++) m[i] = win.m[at - 4 + i][lane];
    }
    const float4 m4 = make_float4(m[0], m[1], m[2], m[3]);
#pragma unroll 1
    for (int row = 4 * t + warp; row < IB; row += 8) {
      const bool second = row + 4 < IB;
      const int row2 = second ? row + 4 : row;
      const float4 f0 = *(const float4*)&win.out[row][at], f1 = *(const float4*)&win.w[row][at], f2 = *(const float4*)&win.r_abs[row][4 + at];
      float x0 = win.top[row][lane], x1 = win.m[row][lane], x2 = win.g[row][lane];
      const float4 e0 = *(const float4*)&win.out[row2][at], e1 = *(const float4*)&win.w[row2][at], e2 = *(const float4*)&win.r_abs[row2][4 + at];
      float y0 = win.top[row2][lane], y1 = win.m[row2][lane], y2 = win.g[row2][lane];
      x0 = minus_dot(x0, f0, w4); x1 = minus_dot(x1, f1, m4); x2 = minus_dot(x2, f2, r4);
      y0 = minus_dot(y0, e0, w4); y1 = minus_dot(y1, e1, m4); y2 = minus_dot(y2, e2, r4);
      if (lane >= 4 * t) win.top[row][lane] = x0;
      win.m[row][lane] = x1;
      if (row >= 4 * t + 4) win.g[row][lane] = x2;
      if (second) {
        if (lane >= 4 * t) win.top[row2][lane] = y0;
        win.m[row2][lane] = y1;
        win.g[row2][lane] = y2;
      }
    }
  }
  sync_all();
}

'''
def rec(b):
    b.cut('''// From G and the top 32 x 32 of P: R, the top of V,''','''// The warps without a role have nothing''',NEW)
    b.cut('''// The warps without a role have nothing''','''// Where pivots or M are too extreme''','''// Nothing to do in the first step but Cholesky's: the last warp decides on terms and scales, the others clear the second half of V,
// which is zero while the first is applied to the second window, and stays so in the first 32 rows.
DEVICE void recurrence(Shared& s, const Job& job, int h, int first, int done, const Norm& norm, const Lane& me) {
  Window& win = scratch(s).win;
  const int lane = me.lane;
  if (me.warp == WARPS - 1) {
    window_norms(s, job, h, first, h == 0 && done == 0, norm, me);
  } else if (me.warp > 0 && h == 0) {
    const uint4 zero = {0u, 0u, 0u, 0u};
#pragma unroll 1
    for (int tile = first + me.warp - 1; tile < TILES; tile += WARPS - 2) *reinterpret_cast<uint4*>(&s.v[0][tile][4][lane * 4]) = zero;
  }
  if (me.warp == 1) recurrence_role<0>(win, lane);
  else if (me.warp == 2) recurrence_role<1>(win, lane);
  else if (me.warp == 3) recurrence_role<2>(win, lane);
  else if (me.warp > 3) recurrence_rest(win, me.warp - 4, lane);
  else {
    recurrence_cholesky(win, lane);
    const float whole = win.diagonal[lane];
    const uint32_t zeros = ballot(whole == 0.f);
    const bool bad = whole != 0.f && !(win.pivot[lane] > PIVOT_RATIO * whole);
    const bool gap = (zeros & (~zeros + 1u)) + zeros != 0u;  // zero columns before others
    if ((ballot(bad) != 0u || gap) && lane == 0) s.trip = 1;
  }
}

''')
    b.rep('''  float out[IB][PAD];      // [row][column]: R on and above the diagonal, v below
''','''  float out[IB][PAD];      // [row][4 + column]: R on and above the diagonal, v below
''')
    b.rep('''  float r_abs[IB][PAD];    // [column][row]: Cholesky factor of G
''','''  float r_abs[IB][PAD];    // [column][4 + row]: Cholesky factor of G
''')
    b.rep('''  float w[IB][PAD];        // [column][row]: U = diag(1/inverse) + w, P = V U
  float block[3][32];      // 4 x 4 on the diagonal of g and of top, once for each role
''','''  float w[IB][PAD];        // [column][4 + row]: U = diag(1/inverse) + w, P = V U
''')
    b.rep('''        const float x_top = win.out[row][j], y_top = win.out[row + 1][j];
''','''        const float x_top = win.out[row][4 + j], y_top = win.out[row + 1][4 + j];
''')
    b.rep('''    sc.win.diagonal[me.lane] = norm.square * own * own;
  }
''','''    sc.win.diagonal[me.lane] = norm.square * own * own;
  } else {  // the block before the first
    const float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
    *(float4*)&sc.win.r_abs[me.lane][0] = zero;
    *(float4*)&sc.win.w[me.lane][0] = zero;
    *(float4*)&sc.win.out[me.lane][0] = zero;
  }
''')
    b.rep('''constexpr float ZERO_PIVOT = 1e-37f;  // stands for the pivot of a zero column, so that its square root has an inverse
''','''constexpr float ZERO_PIVOT = 1e-37f;  // stands for the pivot of a zero column, so that its square root has an inverse
constexpr float LEAST_NORM = 4.5e-19f;  // above its square root
''')
    b.rep("code run once a panel","code run once a panel")
def rest3(b):
    b.cut('''#pragma unroll 1
    for (int row = 4 * t + warp; row < IB; row += 8) {''','''  sync_all();
}

''','''#pragma unroll 1
    for (int row = 4 * t + warp; row < IB; row += 12) {  // three rows at a time
      float4 f[3][3];
      float x[3][3];
#pragma unroll
      for (int i = 0; i < 3; i++) {
        const int at_row = row + 4 * i < IB ? row + 4 * i : row;
        f[i][0] = *(const float4*)&win.out[at_row][at];
        f[i][1] = *(const float4*)&win.w[at_row][at];
        f[i][2] = *(const float4*)&win.r_abs[at_row][4 + at];
        x[i][0] = win.top[at_row][lane];
        x[i][1] = win.m[at_row][lane];
        x[i][2] = win.g[at_row][lane];
      }
#pragma unroll
      for (int i = 0; i < 3; i++) {
        x[i][0] = minus_dot(x[i][0], f[i][0], w4);
        x[i][1] = minus_dot(x[i][1], f[i][1], m4);
        x[i][2] = minus_dot(x[i][2], f[i][2], r4);
      }
#pragma unroll
      for (int i = 0; i < 3; i++) {
        const int at_row = row + 4 * i;
        if (at_row < IB) {
          if (lane >= 4 * t) win.top[at_row][lane] = x[i][0];
          win.m[at_row][lane] = x[i][1];
          if (at_row >= 4 * t + 4) win.g[at_row][lane] = x[i][2];
        }
      }
    }
  }
''')
