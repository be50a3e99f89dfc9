# recurrence again: V and M' in one warp (they share the lanes), the rest's rows of the two share lanes too, fewer broadcasts
ROLES='''// From G and the top 32 x 32 of P: R, the top of V, and M with V = P M, four columns at a time, by three eliminations:
//   Cholesky  G = R'R without signs; row i of it is |row i of R|
//   LU        of the top of P: with beta = sign |R_ii| (no cancellation in alpha - beta) and v_i = 1, row i loses
//             w = (row i) - (row i of R), the rows below lose v w
//   inverse   P = V U with U = diag(alpha - beta) + w, so V = P M with M = U^-1
// Three warps have roles. Warp 0 does Cholesky (lane = column), one block ahead of the others: warp 1 the four rows of R and w (lane =
// column), warp 2 four columns of V (lane = row) and four rows of M' (lane = row), which go by the same formula and need
// different lanes. Each takes the rank-4 update of its last block into what it reads, and does the 4 x 4 on the diagonal by every
// lane for itself. Meanwhile the other warps do that update for what comes later, so that there is one barrier a block. A rolled
// loop for each role: straight-line code costs over 4 cycles an instruction, and so do tests. r_abs, w and out begin with four
// columns of zeros: the block before the first.
'''
ROLE='''struct Four { float a[4][4], inverse[4]; uint32_t minus[4]; bool live[4]; };
// LU of the 4 x 4 on the diagonal, r[j][i] = |R_ij| being known: a[i][j] becomes w right of the diagonal, v left of it.
DEVICE void eliminate(Four& f, int i, const float (&r)[4][4]) {
  float(&a)[4][4] = f.a;
  f.live[i] = r[i][i] > LEAST_NORM;  // otherwise inverse is zero
  f.minus[i] = float_bits(a[i][i]) & 0x80000000u;  // the sign of alpha: beta has the other one
  f.inverse[i] = reciprocal(a[i][i] + bits_float(float_bits(f.live[i] ? r[i][i] : INFINITY) | f.minus[i]));
#pragma unroll
  for (int j = i + 1; j < 4; j++) a[i][j] += bits_float(float_bits(r[j][i]) ^ f.minus[i]);
#pragma unroll
  for (int k = i + 1; k < 4; k++) {
    a[k][i] *= f.inverse[i];
#pragma unroll
    for (int j = i + 1; j < 4; j++) a[k][j] = fmaf(-a[k][i], a[i][j], a[k][j]);
  }
}

DEVICE void recurrence_rows(Window& win, int lane) {
  float4 own = make_float4(0.f, 0.f, 0.f, 0.f);  // the lane's part of w of the block before
#pragma unroll 1
  for (int o = 0; o < IB; o += 4) {
    sync_all();
    float4 v[4];  // of the block before
    float r[4][4], mine[4], x[4], w[4];
    Four f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      v[i] = *(const float4*)&win.out[o + i][o];
      x[i] = win.top[o + i][lane];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) *(float4*)&r[i][0] = *(const float4*)&win.r_abs[o + i][4 + o];
    *(float4*)&mine[0] = *(const float4*)&win.r_abs[lane][4 + o];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      x[i] = minus_dot(x[i], v[i], own);
#pragma unroll
      for (int j = 0; j < 4; j++) f.a[i][j] = shfl(x[i], o + j);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      eliminate(f, i, r);
      const float beta = f.live[i] ? -bits_float(float_bits(mine[i]) ^ f.minus[i]) : x[i];
      w[i] = x[i] - beta;
      if (lane >= o + i) win.out[o + i][4 + lane] = beta;
#pragma unroll
      for (int k = i + 1; k < 4; k++) x[k] = fmaf(-f.a[k][i], w[i], x[k]);
    }
    own = make_float4(w[0], w[1], w[2], w[3]);
    *(float4*)&win.w[lane][4 + o] = own;
    if (lane == 0) *(float4*)&win.inverse[o] = *(float4*)&f.inverse[0];
  }
}

// Lanes from o + 4 on: rows of V; those before: rows of M', columns of M.
DEVICE void recurrence_columns(Window& win, int lane) {
  float4 own = make_float4(0.f, 0.f, 0.f, 0.f);  // the lane's part of the block before
#pragma unroll 1
  for (int o = 0; o < IB; o += 4) {
    sync_all();
    float4 v[4], w[4];  // of the block before
    float r[4][4], x[4], out[4];
    Four f;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(float4*)&f.a[i][0] = *(const float4*)&win.top[o + i][o];
      v[i] = *(const float4*)&win.out[o + i][o];
      w[i] = *(const float4*)&win.w[o + i][o];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) *(float4*)&r[i][0] = *(const float4*)&win.r_abs[o + i][4 + o];
    if (lane >= o + 4) {
      *(float4*)&x[0] = *(const float4*)&win.top[lane][o];
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) x[i] = win.m[o + i][lane];
    }
    if (lane >> 2 == o >> 2) own = make_float4(0.f, 0.f, 0.f, 0.f);  // has been V's
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) f.a[i][j] = minus_dot(f.a[i][j], v[i], w[j]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = minus_dot(x[i], w[i], own);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      eliminate(f, i, r);
      out[i] = x[i] * f.inverse[i];
#pragma unroll
      for (int k = i + 1; k < 4; k++) x[k] = fmaf(-f.a[i][k], out[i], x[k]);
    }
    own = make_float4(out[0], out[1], out[2], out[3]);
    if (lane >= o + 4) {
      *(float4*)&win.out[lane][4 + o] = own;
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) win.m[o + i][lane] = out[i];
    }
    if (lane == 0) {
      win.out[o + 1][4 + o] = f.a[1][0];
      *(float2*)&win.out[o + 2][4 + o] = make_float2(f.a[2][0], f.a[2][1]);
      *(float2*)&win.out[o + 3][4 + o] = make_float2(f.a[3][0], f.a[3][1]);
      win.out[o + 3][6 + o] = f.a[3][2];
    }
  }
}

// Rows shared out to the warps, lane = column (of M': row). In step t warp 0 is at block t, the other roles at block
// t - 1: block t - 1 is taken out of G from block t + 1 on, block t - 2 out of the others from block t on. What is left of the top
// of P and what there is of M' share a row's lanes.
DEVICE void recurrence_rest(Window& win, int warp, int lane) {
#pragma unroll 1
  for (int t = 1; t < IB / 4; t++) {
    sync_all();
    const int at = 4 * t - 4;
    const bool right = lane >= 4 * t;
    const float4 r4 = *(const float4*)&win.r_abs[lane][4 + at];
    float4 own = make_float4(0.f, 0.f, 0.f, 0.f);
    if (right) {
      own = *(const float4*)&win.w[lane][at];
    } else if (t > 1) {
      own = make_float4(win.m[at - 4][lane], win.m[at - 3][lane], win.m[at - 2][lane], win.m[at - 1][lane]);
    }
    float(*target)[PAD] = right ? win.top : win.m;
    const float(*factor)[PAD] = right ? win.out : win.w;
#pragma unroll 1
    for (int row = 4 * t + warp; row < IB; row += 3 * REST) {  // three rows at a time
      float4 f[3][2];
      float x[3][2];
#pragma unroll
      for (int i = 0; i < 3; i++) {
        const int at_row = row + REST * i;
        if (at_row < IB) {
          f[i][0] = *(const float4*)&factor[at_row][at];
          f[i][1] = *(const float4*)&win.r_abs[at_row][4 + at];
          x[i][0] = target[at_row][lane];
          x[i][1] = win.g[at_row][lane];
        }
      }
#pragma unroll
      for (int i = 0; i < 3; i++) {
        x[i][0] = minus_dot(x[i][0], f[i][0], own);
        x[i][1] = minus_dot(x[i][1], f[i][1], r4);
      }
#pragma unroll
      for (int i = 0; i < 3; i++) {
        const int at_row = row + REST * i;
        if (at_row < IB) {
          target[at_row][lane] = x[i][0];
          if (at_row >= 4 * t + 4) win.g[at_row][lane] = x[i][1];
        }
      }
    }
  }
  sync_all();
}

'''
def rec2(b):
    b.cut('''// From G and the top 32 x 32 of P: R, the top of V,''','''DEVICE void recurrence_cholesky(''',ROLES)
    b.cut('''template <int ROLE>
DEVICE void recurrence_role(''','''// Nothing to do in the first step''',ROLE)
    b.rep('''  if (me.warp == 1) recurrence_role<0>(win, lane);
  else if (me.warp == 2) recurrence_role<1>(win, lane);
  else if (me.warp == 3) recurrence_role<2>(win, lane);
  else if (me.warp > 3) recurrence_rest(win, me.warp - 4, lane);
''','''  if (me.warp == 1) recurrence_rows(win, lane);
  else if (me.warp == 2) recurrence_columns(win, lane);
  else if (me.warp > 2) recurrence_rest(win, me.warp - 3, lane);
''')
    b.rep('''constexpr int GROUPS =''','''constexpr int REST = WARPS - 3;   // warps without a role in the recurrence
constexpr int GROUPS =''')
