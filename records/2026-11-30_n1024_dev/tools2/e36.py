import sys
s=open('body35.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("SCRATCH = 27 * 1024 + 512,","SCRATCH = 36 * 1024,")
rep("constexpr int LD_X = 33, LD_TOP = 36, LD_SHIFT = 36, LD_M = 40, LD_R = 33;","constexpr int LD_X = 33, LD_TOP = 36, LD_SHIFT = 36, LD_R = 33;")
rep("O_R = O_WR + SUB * LD_SHIFT * 4, O_M = O_R + SUB * LD_R * 4,\n                       O_INV = O_M + SUB * LD_M * 4, SCRATCH_END = O_INV + 384;",
"O_R = O_WR + SUB * LD_SHIFT * 4, O_M = O_R + SUB * LD_R * 4,\n                       O_Y = O_M + SUB * LD_SHIFT * 4, O_NEXT = O_Y + 16 * LD_SHIFT * 4,\n                       O_INV = O_NEXT + 32 * LD_SHIFT * 4, SCRATCH_END = O_INV + 512;")
i=s.index("// ------------------------------------------------------------------ the recurrence"); j=s.index("// T without a serial substitution")
rec='''// ------------------------------------------------------------------ the recurrence
//
// From the Gram matrix G = P'P and the top A of P to R, the top of V, and M with V = P M below the top:
//   G = |R|'|R|            Cholesky, no signs needed
//   A - R = V_top W        elimination without pivoting; row i's sign is chosen when alpha_i is known, so that
//                          W_ii = alpha_i - beta_i does not cancel
//   M = W^-1
// A lane owns a column. Eight rows a step: every lane factorises the 8 x 8 diagonal block alike, from shared memory, so
// that a chain of eight roots needs no exchange between lanes; then its own column of these rows, then the next eight
// rows. One warp does this for G, one for A a step behind. The rows of steps 2 and 3 are kept up to date by a helper
// warp each until the step before; M is inverted by blocks as T is. The loops are rolled: run once, straight through,
// the code would be bound by instruction fetch.

struct Scratch {
  float *x, *top, *v, *r1, *w, *r, *m, *y, *g_next, *a_next, *inverse, *threshold, *g_diagonal;
  int* stop;
};
struct Quad {
  float e[4];
};
DEVICE Quad load4(const float* p) {
  const float4 x = *reinterpret_cast<const float4*>(p);
  return Quad{{x.x, x.y, x.z, x.w}};
}
DEVICE void load8(float (&to)[8], const float* p) {
  const Quad x = load4(p), y = load4(p + 4);
#pragma unroll
  for (int e = 0; e < 4; e++) {
    to[e] = x.e[e];
    to[4 + e] = y.e[e];
  }
}
DEVICE void store8(float* p, const float (&x)[8]) {
  *reinterpret_cast<float4*>(p) = make_float4(x[0], x[1], x[2], x[3]);
  *reinterpret_cast<float4*>(p + 4) = make_float4(x[4], x[5], x[6], x[7]);
}
// Eight rows lose sum_m x_m y_m; x_m: eight entries at x + m LD_SHIFT
DEVICE void update_8(float (&a)[8], const float* x, const float (&y)[8]) {
#pragma unroll
  for (int m = 0; m < 8; m++) {
    float f[8];
    load8(f, x + m * LD_SHIFT);
#pragma unroll
    for (int u = 0; u < 8; u++) a[u] = fmaf(-f[u], y[m], a[u]);
  }
}
// Named barriers of the recurrence: R, rows 8b.. | G, rows 8w.. are ready | Y of step b | A, rows 8w.. | W, half h | M
enum { R_READY = 1, G_READY = 5, Y_READY = 7, A_READY = 9, W_READY = 11, M_WARPS = 13 };

DEVICE void gram_rows(float (&g)[8], const Scratch& z, int i, int lane) {
#pragma unroll
  for (int u = 0; u < 8; u++) g[u] = z.x[(i + u) * LD_X + lane] + z.x[lane * LD_X + i + u];
}
// Stops where a pivot cancels.
DEVICE void warp_cholesky(const Scratch& z, int lane, int done) {
  float g[8];
  gram_rows(g, z, 0, lane);
  const float g0 = 2.f * z.x[lane * (LD_X + 1)];
  z.threshold[lane] = fmaxf(CANCELLED * g0, ZERO_PIVOT);
  int stop = SUB;
  bool bad = false;
#pragma unroll 1
  for (int i = 0; i < SUB; i += 8) {
    if ((unsigned)(lane - i) < 8) store8(z.g_diagonal + (lane - i) * 8, g);
    __syncwarp();
    float d[8][8], th[8], rs[8];  // d[v][u]: row u <= column v of the diagonal block, then of its |R|
#pragma unroll
    for (int v = 0; v < 8; v++) load8(d[v], z.g_diagonal + v * 8);
    load8(th, z.threshold + i);
#pragma unroll
    for (int c = 0; c < 8; c++) {
      const int column = i + c;
      if (!bad && column >= done && !(d[c][c] > th[c])) {
        bad = true;
        stop = column;
      }
      rs[c] = bad || column < done ? 0.f : reciprocal_sqrt(d[c][c]);
#pragma unroll
      for (int v = c + 1; v < 8; v++) d[v][c] *= rs[c];
#pragma unroll
      for (int v = c + 1; v < 8; v++) {
#pragma unroll
        for (int u = c + 1; u <= v; u++) d[v][u] = fmaf(-d[u][c], d[v][c], d[v][u]);
      }
    }
    float r[8];
    float* rows = z.r1 + i * LD_SHIFT;
#pragma unroll
    for (int u = 0; u < 8; u++) {
      float t = g[u];
#pragma unroll
      for (int m = 0; m < u; m++) t = fmaf(-d[u][m], r[m], t);
      r[u] = t * rs[u];
      rows[u * LD_SHIFT + lane] = r[u];
    }
    __syncwarp();
    named_arrive(R_READY + i / 8, i == 0 ? 128 : i == 8 ? 96 : 64);
    if (i < 24) {
      if (i == 0) {
        gram_rows(g, z, 8, lane);
      } else {
        named_join(G_READY + i / 8 - 1);
#pragma unroll
        for (int u = 0; u < 8; u++) g[u] = z.g_next[(i - 8 + u) * LD_SHIFT + lane];
      }
      update_8(g, rows + i + 8, r);
    }
  }
  const unsigned nonzero = __ballot_sync(ALL, lane >= done && g0 > ZERO_PIVOT);
  if (stop == done) stop = nonzero ? done + 1 : SUB;  // a zero column goes alone with tau = 0; all zero: finished
  if (lane == 0) *z.stop = stop;
}
DEVICE void warp_gram_helper(const Scratch& z, int lane, int w) {
  float g[8];
  gram_rows(g, z, 8 * w, lane);
#pragma unroll 1
  for (int i = 0; i < 8 * (w - 1); i += 8) {
    named_join(R_READY + i / 8, i == 0 ? 128 : 96);
    float y[8];
#pragma unroll
    for (int m = 0; m < 8; m++) y[m] = z.r1[(i + m) * LD_SHIFT + lane];
    update_8(g, z.r1 + i * LD_SHIFT + 8 * w, y);
  }
#pragma unroll
  for (int u = 0; u < 8; u++) z.g_next[(8 * (w - 2) + u) * LD_SHIFT + lane] = g[u];
  named_arrive(G_READY + w - 2);
}

DEVICE void warp_top(const Scratch& z, int lane) {
  float a[8];
  load8(a, z.top + lane * LD_TOP);
#pragma unroll 1
  for (int i = 0; i < SUB; i += 8) {
    // the eight columns at work, as they are: guard_and_top makes V of them
    if ((unsigned)(lane - i) < 8) store8(z.v + lane * LD_SHIFT + i, a);
    named_join(R_READY + i / 8, i == 0 ? 128 : i == 8 ? 96 : 64);
    __syncwarp();
    const float *diagonal = z.v + i * (LD_SHIFT + 1), *r_rows = z.r1 + i * LD_SHIFT;
    float d[8][8], iv[8], sign[8];  // d[v][u], row u, column v: L under the diagonal, W above it
#pragma unroll
    for (int v = 0; v < 8; v++) load8(d[v], diagonal + v * LD_SHIFT);
#pragma unroll
    for (int c = 0; c < 8; c++) {
      float r[8];
      load8(r, r_rows + c * LD_SHIFT + i);
      sign[c] = d[c][c] >= 0.f ? -1.f : 1.f;  // of R_cc
      iv[c] = r[c] > 0.f ? reciprocal(fmaf(-sign[c], r[c], d[c][c])) : 0.f;  // 1 / (alpha - beta), 0 for a zero column
#pragma unroll
      for (int v = c + 1; v < 8; v++) d[v][c] = iv[c] == 0.f ? 0.f : fmaf(-sign[c], r[v], d[v][c]);
#pragma unroll
      for (int u = c + 1; u < 8; u++) d[c][u] *= iv[c];
#pragma unroll
      for (int v = c + 1; v < 8; v++) {
#pragma unroll
        for (int u = c + 1; u < 8; u++) d[v][u] = fmaf(-d[c][u], d[v][c], d[v][u]);
      }
    }
    float w[8], y[8];
#pragma unroll
    for (int u = 0; u < 8; u++) {
      float t = a[u];
#pragma unroll
      for (int m = 0; m < u; m++) t = fmaf(-d[m][u], w[m], t);
      w[u] = iv[u] == 0.f ? 0.f : fmaf(-sign[u], r_rows[u * LD_SHIFT + lane], t);
      z.r[(i + u) * LD_R + lane] = t - w[u];  // R; the lanes left of the diagonal write what nobody reads
      z.w[(i + u) * LD_SHIFT + lane] = w[u];
    }
    if (lane == 0) store8(z.inverse + i, iv);
    // rows below lose l w = x (W^-1 w) with x the eight columns as stored
#pragma unroll
    for (int m = 7; m >= 0; m--) {
      float t = w[m];
#pragma unroll
      for (int v = 7; v > m; v--) t = fmaf(-d[v][m], y[v], t);
      y[m] = t * iv[m];
    }
    if (i < 16) {
#pragma unroll
      for (int m = 0; m < 8; m++) z.y[(i + m) * LD_SHIFT + lane] = y[m];
    }
    __syncwarp();
    if (i < 16) named_arrive(Y_READY + i / 8, i == 0 ? 96 : 64);
    if (i & 8) named_arrive(W_READY + i / 16);
    if (i < 24) {
      if (i == 0) {
        load8(a, z.top + lane * LD_TOP + 8);
      } else {
        named_join(A_READY + i / 8 - 1);
#pragma unroll
        for (int u = 0; u < 8; u++) a[u] = z.a_next[(i - 8 + u) * LD_SHIFT + lane];
      }
      if ((unsigned)(lane - i) < 8) store8(z.v + lane * LD_SHIFT + i + 8, a);
      __syncwarp();
      update_8(a, diagonal + 8, y);
    }
  }
}
DEVICE void warp_top_helper(const Scratch& z, int lane, int w) {
  float a[8];
  load8(a, z.top + lane * LD_TOP + 8 * w);
#pragma unroll 1
  for (int i = 0; i < 8 * (w - 1); i += 8) {
    if ((unsigned)(lane - i) < 8) store8(z.v + lane * LD_SHIFT + 8 * w, a);
    named_join(Y_READY + i / 8, i == 0 ? 96 : 64);
    __syncwarp();
    float y[8];
#pragma unroll
    for (int m = 0; m < 8; m++) y[m] = z.y[(i + m) * LD_SHIFT + lane];
    update_8(a, z.v + i * LD_SHIFT + 8 * w, y);
  }
#pragma unroll
  for (int u = 0; u < 8; u++) z.a_next[(8 * (w - 2) + u) * LD_SHIFT + lane] = a[u];
  named_arrive(A_READY + w - 2);
}

'''
k=s.index("// C = sign A B, SIZE"); inv=s[j:k]
rest=s[k:]
rest=rest.replace("template <class K>\nDEVICE void guard_and_top",'''// M = W^-1 by two warps, the first half of it while W's second half is made
DEVICE void form_m(const Scratch& z, int thread) {
  if (thread < 32) {
#pragma unroll 1
    for (int h = 0; h < 2; h++) {
      named_join(W_READY + h);
      if (thread >> 4 == h) invert_16(z.m, z.w, z.inverse, h, thread & 15);
    }
  }
  named_join(M_WARPS);
  small_product<16>(z.y, z.w + 16, z.m + 16 * (LD_SHIFT + 1), 1.f, thread);
  named_join(M_WARPS);
  small_product<16>(z.m + 16, z.m, z.y, -1.f, thread);
}

template <class K>
DEVICE void guard_and_top''',1)
s=s[:i]+rec+inv+rest
rep('''    const int i = thread >> 3, k4 = (thread & 7) * 4;
''','''    const int i = thread >> 3;
''')
rep('''      const float m = fabsf(z.m[i * LD_M + k4 + e]);
      amplified = fmaf(m, square_root(2.f * fabsf(z.x[(k4 + e) * (LD_X + 1)])), amplified);
''','''      const int k = (thread & 7) + 8 * e;
      const float m = fabsf(z.m[k * LD_SHIFT + i]);
      amplified = fmaf(m, square_root(2.f * fabsf(z.x[k * (LD_X + 1)])), amplified);
''')
i=s.index("  if (thread < 256) {\n    const int row = thread & 31, i = thread >> 5 << 2;"); j=s.index("      const int j = i + u;\n",i)
s=s[:i]+'''  if (thread < 128) {
    const int row = thread & 31, i = thread >> 5 << 3;  // eight columns, i .. i + 7
    float iv[8], l[8];
    load8(iv, z.inverse + i);
#pragma unroll
    for (int u = 0; u < 8; u++) {
      l[u] = z.v[(i + u) * LD_SHIFT + row];
#pragma unroll
      for (int m = 0; m < u; m++) l[u] = fmaf(-l[m], z.w[(i + m) * LD_SHIFT + i + u], l[u]);
      l[u] *= iv[u];
'''+s[j:]
rep("row > j ? below : (row == j && iv.e[u] != 0.f ? 1.f : 0.f)","row > j ? below : (row == j && iv[u] != 0.f ? 1.f : 0.f)")
rep('''  z.threshold = z.inverse + 32;
  z.g_diagonal = z.inverse + 64;
  z.a_diagonal = z.inverse + 80;
''','''  z.threshold = z.inverse + 32;
  z.g_diagonal = z.inverse + 64;
  z.y = reinterpret_cast<float*>(sm + K::O_Y);
  z.g_next = reinterpret_cast<float*>(sm + K::O_NEXT);
  z.a_next = z.g_next + 16 * LD_SHIFT;
''')
rep('''        else if (me.warp == 2) warp_m(z, me.lane);
''','''        else if (me.warp == 4 || me.warp == 5) form_m(z, me.thread - 128);
        else if (me.warp < 8) {
          if (me.warp & 1) warp_top_helper(z, me.lane, 2 + (me.warp >> 2));
          else warp_gram_helper(z, me.lane, 2 + (me.warp >> 2));
        }
''')
rep('''                x = *reinterpret_cast<float2*>(&z.m[local * LD_M + kk * 16 + 2 * me.q + 8 * (y >> 1)]);
''','''                const float* m = z.m + (kk * 16 + 2 * me.q + 8 * (y >> 1)) * LD_SHIFT + local;
                x = make_float2(m[0], m[LD_SHIFT]);
''')
open('body36.cuh','w').write(s)
