import os
TERMS = os.environ.get('TERMS', '2')
# v108 from v69 (or a later version of the large family): python mk108.py IN OUT
import sys
t = open(sys.argv[1]).read()
def sub(old, new, count=1):
    global t
    assert t.count(old) == count, (t.count(old), old[:200])
    t = t.replace(old, new)

# ---------------------------------------------------------------- constants, tools
sub('''namespace large {
// ---------------------------------------------------------------- 1. small tools
''', '''namespace large {
// 1: V, C and W' are rounded to FP16 in the updates. 2: they are the sum of two FP16 terms, and the guards are tighter.
constexpr int TERMS = ''' + TERMS + ''';
constexpr bool TWO = TERMS == 2;
constexpr bool WARPGROUPS = true; // strips of 64 columns by section 5b, one worker an SM
// ---------------------------------------------------------------- 1. small tools
''')
sub('''  lo = pack(x - f.x, y - f.y);
}
''', '''  lo = pack(x - f.x, y - f.y);
}
__device__ __forceinline__ float2 sum2(uint32_t hi, uint32_t lo) {
  const float2 x = __half22float2(*(__half2 *)&hi), y = __half22float2(*(__half2 *)&lo);
  return make_float2(x.x + y.x, x.y + y.y);
}
__device__ __forceinline__ float two_terms(float x) { // x as its two FP16 terms hold it
  const float hi = __half2float(__float2half_rn(x));
  return TWO ? hi + __half2float(__float2half_rn(x - hi)) : hi;
}
''')
sub('''constexpr float GROWTH_MAX =
    300.f;''', '''constexpr float GROWTH_MAX =
    TWO ? 60.f : 300.f;''')
sub('constexpr float PIVOT_MIN = 1e-5f;', 'constexpr float PIVOT_MIN = TWO ? 1e-4f : 1e-5f;')

# a call would serialise the warpgroup products of the function that makes it
sub('''__device__ __noinline__ void wait_for(const int *p, int v) {
  const long long t = clock64();
  while (load_acquire(p) < v)
    if (clock64() - t > 4000000000LL) __trap();
}
''', '''__device__ __forceinline__ void poll(const int *p, int v) {
  const long long t = clock64();
  while (load_acquire(p) < v)
    if (clock64() - t > 4000000000LL) __trap();
}
__device__ __noinline__ void wait_for(const int *p, int v) { poll(p, v); }
''')
# ---------------------------------------------------------------- panel: layout
sub("WOWN = WALL + 64 * LDW, WOUT = WOWN + 8 * LDW, END_N = WOUT + 8 * LDW;",
    "WOWN = WALL + TERMS * 64 * LDW, WOUT = WOWN + TERMS * 8 * LDW, END_N = WOUT + TERMS * 8 * LDW; // (two terms: low behind high)")
sub('XSUM = XTOP + 2048, BASE = (XSUM + 3328 + 127)', 'XSUM = XTOP + 2048, BASE = (XSUM + 1280 + 127)')
sub('''G = CIN + CSIZE, X = G + 32 * BLOCK, A = X + 17408,''', '''G = CIN + CSIZE, X = G + 17408, A = X + 17408,''')
sub('''                       END_F = NEXT + 64 * LDW;''', '''                       END_F = NEXT + TERMS * 64 * LDW;
  static constexpr int VLOW = V; // second term of V, where M was''')
# R~ by blocks in less room: block b has no columns before 8 b
sub('''struct Block64 {
  float *r, *lx;                // solved, 8 blocks each: R~, with L below the diagonal of its own block; L right of X
''', '''__device__ __forceinline__ int block_r(int b) { return (60 - 4 * b) * b * LB; } // from column 8 b on, which lies where block b - 1 ends
struct Block64 {
  float *r, *lx;                // solved, 8 blocks each: R~ (see block_r), with L below the diagonal of its own block; L right of X
''')
sub('''__device__ __forceinline__ float entry(''', '''__device__ __forceinline__ float entry_r(const float *m, int i, int j) { return m[block_r(i >> 3) + j * LB + (i & 7)]; }
__device__ __forceinline__ float entry(''')
sub('''  write8(z.r + b * BLOCK + e * LB, gc);
''', '''  if (e >= i0) write8(z.r + block_r(b) + e * LB, gc);
''')
sub('z.r[(j >> 3) * BLOCK + j * LB + (i & 7)]', 'z.r[block_r(j >> 3) + j * LB + (i & 7)]')
sub('''    float *l = z.r + b * BLOCK + i0 * LB;''', '''    float *l = z.r + block_r(b) + i0 * LB;''')
sub('r = smem_addr(z.r + b * BLOCK), u = smem_addr(z.u);', 'r = smem_addr(z.r + block_r(b)), u = smem_addr(z.u);')
sub('''  const float *a;
  float *h;
  float *tau;
  __half *vt;
  __half *ts;
  const uint32_t *colmax;
  int *passes;''', '''  const float *a;
  float *h;
  float *tau;
  __half *vt;
  size_t low; // from V^T to its second term
  __half *ts;
  const uint32_t *colmax;
  int *passes;''')

# ---------------------------------------------------------------- careful
sub('''  auto stage_out = [&](int b, int mt0, float *hs, int ld, __half *vs) {''', '''  auto stage_out = [&](int b, int mt0, float *hs, int ld, __half *vs, __half *vs_low) {''')
sub('''          *(uint32_t *)&vs[c * LD + at] = pack(x, y);
        }
      }
  };
  // by `threads`''', '''          uint32_t high, low;
          split(x, y, high, low);
          *(uint32_t *)&vs[c * LD + at] = high;
          if (TWO) *(uint32_t *)&vs_low[c * LD + at] = low;
        }
      }
  };
  // by `threads`''')
sub('''  auto write_v = [&](int b, int t, int threads) {
    const __half *vs = (const __half *)(sm + P::VHALF);
    __half *out = p.vt + (mat * n + c0 + 32 * b) * (size_t)n + rb + rank * RP;''', '''  auto write_v = [&](int b, int t, int threads, const __half *vs, size_t plane) {
    __half *out = p.vt + plane + (mat * n + c0 + 32 * b) * (size_t)n + rb + rank * RP;''')
sub('''  __half *vHalf = (__half *)(sm + P::VHALF);
''', '''  __half *vHalf = (__half *)(sm + P::VHALF), *vLow = (__half *)(sm + P::REC);
''')
sub('''    stage_out(s, 2, hHalf, 36, vHalf);
    block_sync<NT>();
    write_v(s, tid, NT);''', '''    stage_out(s, 2, hHalf, 36, vHalf, vLow);
    block_sync<NT>();
    write_v(s, tid, NT, vHalf, 0);
    if (TWO) write_v(s, tid, NT, vLow, p.low);''')
sub('''          float lv = __half2float(__float2half_rn(z.left[j * 36 + i] * iv));''', '''          float lv = two_terms(z.left[j * 36 + i] * iv);''')
sub('''      uint32_t vh[2][NTL][2];
      bool in[4];''', '''      uint32_t vh[2][NTL][2], vl[2][NTL][2]; // (vl: the second term)
      bool in[4];''')
sub('''            UNROLL for (int c = 0; c < 4; c++) vh[c >> 1][nt][c & 1] = 0u;''', '''            UNROLL for (int c = 0; c < 4; c++) vh[c >> 1][nt][c & 1] = vl[c >> 1][nt][c & 1] = 0u;''')
sub('''              vh[c >> 1][nt][c & 1] = pack(x, y);
''', '''              split(x, y, vh[c >> 1][nt][c & 1], vl[c >> 1][nt][c & 1]);
''')
sub('''              __half2 v2 = __floats2half2_rn(in[c] ? d[c >> 1][(c & 1) * 2] * 0.001953125f : 0.f,
                                             in[c] ? d[c >> 1][(c & 1) * 2 + 1] * 0.001953125f : 0.f);
              vh[c >> 1][nt][c & 1] = bits(v2); // 2^-9 undoes 64 and 8
              float2 f = __half22float2(v2);
''', '''              uint32_t &high = vh[c >> 1][nt][c & 1], &low = vl[c >> 1][nt][c & 1];
              split(in[c] ? d[c >> 1][(c & 1) * 2] * 0.001953125f : 0.f, in[c] ? d[c >> 1][(c & 1) * 2 + 1] * 0.001953125f : 0.f, high,
                    low); // 2^-9 undoes 64 and 8
              float2 f = sum2(high, TWO ? low : 0u);
''')
sub('''                al[y] = in[(mt & 1) * 2 + (y & 1)] ? 0u : al[y];''', '''                al[y] = in[(mt & 1) * 2 + (y & 1)] ? (TWO ? vl[mt & 1][2 * ks + (y >> 1)][y & 1] : 0u) : al[y];''')
sub('''              mma(wa[ct], al, vh[ct >> 1][2 * ks][ct & 1], vh[ct >> 1][2 * ks + 1][ct & 1]);
''', '''              mma(wa[ct], al, vh[ct >> 1][2 * ks][ct & 1], vh[ct >> 1][2 * ks + 1][ct & 1]);
              if (TWO) mma(wa[ct], ah, vl[ct >> 1][2 * ks][ct & 1], vl[ct >> 1][2 * ks + 1][ct & 1]);
''')
sub('''        uint32_t bt[NTL][2];
        UNROLL for (int nt = 0; nt < NTL; nt++) {
          bt[nt][0] = transpose8(vh[kk][nt][0]);
          bt[nt][1] = transpose8(vh[kk][nt][1]);
        }''', '''        uint32_t bt[NTL][2], bl[NTL][2];
        UNROLL for (int nt = 0; nt < NTL; nt++)
          UNROLL for (int h = 0; h < 2; h++) {
            bt[nt][h] = transpose8(vh[kk][nt][h]);
            if (TWO) bl[nt][h] = transpose8(vl[kk][nt][h]);
          }''')
sub('''              mma(acc[mt][nt], al, bt[nt][0], bt[nt][1]);
''', '''              mma(acc[mt][nt], al, bt[nt][0], bt[nt][1]);
              if (TWO) mma(acc[mt][nt], ah, bl[nt][0], bl[nt][1]);
''')

# ---------------------------------------------------------------- panel_step: larfb
sub('''    const uint32_t aV = smem_addr(sm + P::V);
    ROLL for (int f = tid; f < 64 * (RP / 8); f += NT) {
      int r = f / (RP / 8), u = f % (RP / 8);
      cp16z(aV + (r * LD + u * 8) * 2, vprev + (size_t)r * n + u * 8, (int)rank * RP + u * 8 < m);
    }''', '''    ROLL for (int f = tid; f < 64 * (RP / 8); f += NT) {
      int r = f / (RP / 8), u = f % (RP / 8);
      cp16z(smem_addr(sm + P::VSM) + (r * LD + u * 8) * 2, vprev + (size_t)r * n + u * 8, (int)rank * RP + u * 8 < m);
      if (TWO) cp16z(smem_addr(sm + P::VLOW) + (r * LD + u * 8) * 2, vprev + p.low + (size_t)r * n + u * 8, (int)rank * RP + u * 8 < m);
    }''')
sub('''    const uint32_t aV = smem_addr(sm + P::V), aC = smem_addr(sm + P::C16),''', '''    const uint32_t aC = smem_addr(sm + P::C16),''')
sub('''    const uint32_t aSrc = (here ? smem_addr(sm + P::VSM) : aV) + shift * 2, aNext = smem_addr(sm + P::NEXT);''', '''    const uint32_t aSrc = smem_addr(sm + P::VSM) + shift * 2, aNext = smem_addr(sm + P::NEXT), // and from these to their second terms:
        dV = (uint32_t)(P::VLOW - P::VSM), dNext = 64 * P::LDW, dWall = 64 * P::LDW;''')
sub('''          *(uint32_t *)&hC[(mt * 16 + g + 8 * e) * LD + (nt * NW + w) * 8 + 2 * q] = pack(acc[mt][nt][2 * e], acc[mt][nt][2 * e + 1]);
    if (tid == 0) {
      mbar_expect(bar_in, 16384);
      mbar_expect(bar_out, 8192);
    }''', '''        {
          uint32_t high, low;
          split(acc[mt][nt][2 * e], acc[mt][nt][2 * e + 1], high, low);
          __half *to = hC + (mt * 16 + g + 8 * e) * LD + (nt * NW + w) * 8 + 2 * q;
          *(uint32_t *)to = high;
          if (TWO) *(uint32_t *)(to + P::TILE / 2) = low;
        }
    if (tid == 0) {
      mbar_expect(bar_in, 16384);
      mbar_expect(bar_out, TERMS * 8192);
    }''')
sub('''        uint32_t a[4];
        ldsm4(a, ks * 16 + shift < RP ? aSrc + ((rt * 16 + (lane & 15)) * LD + ks * 16 + (lane >> 4) * 8) * 2
                                      : aNext + ((rt * 16 + (lane & 15)) * 72 + ks * 16 + shift - RP + (lane >> 4) * 8) * 2);
        UNROLL for (int nt = 0; nt < PN; nt += 2) {
          uint32_t b[4];
          ldsm4(b, aC + (((n0 + nt) * 8 + (lane & 7) + ((lane >> 4) << 3)) * LD + ks * 16 + ((lane >> 3) & 1) * 8) * 2);
''', '''        uint32_t a[4], al[4];
        const bool mine = ks * 16 + shift < RP;
        const uint32_t at = mine ? aSrc + ((rt * 16 + (lane & 15)) * LD + ks * 16 + (lane >> 4) * 8) * 2
                                 : aNext + ((rt * 16 + (lane & 15)) * 72 + ks * 16 + shift - RP + (lane >> 4) * 8) * 2;
        ldsm4(a, at);
        if (TWO) ldsm4(al, at + (mine ? dV : dNext));
        UNROLL for (int nt = 0; nt < PN; nt += 2) {
          uint32_t b[4], bl[4];
          const uint32_t bt = aC + (((n0 + nt) * 8 + (lane & 7) + ((lane >> 4) << 3)) * LD + ks * 16 + ((lane >> 3) & 1) * 8) * 2;
          ldsm4(b, bt);
          if (TWO) {
            ldsm4(bl, bt + P::TILE);
            mma(pa[nt], al, b[0], b[1]);
            mma(pa[nt + 1], al, b[2], b[3]);
            mma(pa[nt], a, bl[0], bl[1]);
            mma(pa[nt + 1], a, bl[2], bl[3]);
          }
''')
sub('''      wown[c * 72 + k] = __float2half_rn(s.x);
      wown[(c + 1) * 72 + k] = __float2half_rn(s.y);
      wown[c * 72 + k + 8] = __float2half_rn(s.z);
      wown[(c + 1) * 72 + k + 8] = __float2half_rn(s.w);
''', '''      const float x[4] = {s.x, s.y, s.z, s.w};
      UNROLL for (int i = 0; i < 4; i++) {
        __half *to = wown + (c + (i & 1)) * 72 + k + 8 * (i >> 1);
        to[0] = __float2half_rn(x[i]);
        if (TWO) to[8 * 72] = __float2half_rn(x[i] - __half2float(to[0]));
      }
''')
sub('''        UNROLL for (int ks = 0; ks < 4; ks++)
          mma(d, *(uint32_t *)&wown[g * 72 + ks * 16 + 2 * q], 0u, *(uint32_t *)&wown[g * 72 + ks * 16 + 2 * q + 8], 0u, tf[low][2 * ks],
              tf[low][2 * ks + 1]); // 8 rows are enough: CW <= 8
      *(uint32_t *)&wout[g * 72 + 8 * w + 2 * q] = pack(-d[0], -d[1]);
''', '''        UNROLL for (int ks = 0; ks < 4; ks++) { // 8 rows are enough, as CW <= 8; the other 8: second term of W
          const __half *x = wown + g * 72 + ks * 16 + 2 * q;
          mma(d, *(uint32_t *)x, TWO ? *(uint32_t *)(x + 8 * 72) : 0u, *(uint32_t *)(x + 8), TWO ? *(uint32_t *)(x + 8 * 72 + 8) : 0u,
              tf[low][2 * ks], tf[low][2 * ks + 1]);
        }
      uint32_t high, lower;
      split(-(d[0] + d[2]), -(d[1] + d[3]), high, lower);
      *(uint32_t *)&wout[g * 72 + 8 * w + 2 * q] = high;
      if (TWO) *(uint32_t *)&wout[(8 + g) * 72 + 8 * w + 2 * q] = lower;
''')
sub('''    ROLL for (int i = tid; i < CW * 8 * C; i += NT) {
      int to = i / (CW * 8), c = i % (CW * 8) / 8, u = i % 8;
      st_async(map_rank(aWall + (rank * CW + c) * P::LDW + u * 16, to), *(float4 *)((char *)wout + c * P::LDW + u * 16),
               map_rank(bar_out, to));
    }''', '''        ROLL for (int i = tid; i < TERMS * CW * 8 * C; i += NT) {
      const int to = i / (CW * 8) % C, low = i / (CW * 8 * C), c = i % (CW * 8) / 8, u = i % 8;
      st_async(map_rank(aWall + low * dWall + (rank * CW + c) * P::LDW + u * 16, to),
               *(float4 *)((char *)wout + (low * 8 + c) * P::LDW + u * 16), map_rank(bar_out, to));
    }''')
sub('''      uint32_t b[NTL / 2][4];
      UNROLL for (int np = 0; np < NTL / 2; np++)
        ldsm4t(b[np], (2 * np + (lane >> 4)) * 64 + shift < RP
                          ? aSrc + ((ks * 16 + (lane & 15)) * LD + ((2 * np + (lane >> 4)) * NW + w) * 8) * 2
                          : aNext + ((ks * 16 + (lane & 15)) * 72 + w * 8) * 2);
      UNROLL for (int mt = 0; mt < 4; mt++) {
        uint32_t a[4];
        ldsm4(a, aWall + (mt * 16 + (lane & 15)) * P::LDW + ks * 32 + (lane >> 4) * 16);
''', '''      uint32_t b[NTL / 2][4], bl[NTL / 2][4];
      UNROLL for (int np = 0; np < NTL / 2; np++) {
        const bool mine = (2 * np + (lane >> 4)) * 64 + shift < RP;
        const uint32_t at = mine ? aSrc + ((ks * 16 + (lane & 15)) * LD + ((2 * np + (lane >> 4)) * NW + w) * 8) * 2
                                 : aNext + ((ks * 16 + (lane & 15)) * 72 + w * 8) * 2;
        ldsm4t(b[np], at);
        if (TWO) ldsm4t(bl[np], at + (mine ? dV : dNext));
      }
      UNROLL for (int mt = 0; mt < 4; mt++) {
        uint32_t a[4], al[4];
        const uint32_t at = aWall + (mt * 16 + (lane & 15)) * P::LDW + ks * 32 + (lane >> 4) * 16;
        ldsm4(a, at);
        if (TWO) {
          ldsm4(al, at + dWall);
          UNROLL for (int np = 0; np < NTL / 2; np++)
            UNROLL for (int h = 0; h < 2; h++) {
              mma(acc[mt][2 * np + h], al, b[np][2 * h], b[np][2 * h + 1]);
              mma(acc[mt][2 * np + h], a, bl[np][2 * h], bl[np][2 * h + 1]);
            }
        }
''')

# ---------------------------------------------------------------- panel_step: factor
sub('''  const uint32_t aVsm = smem_addr(sm + P::VSM);
  int *sFlag''', '''  const uint32_t aVsm = smem_addr(sm + P::VSM), aVlow = smem_addr(sm + P::VLOW);
  int *sFlag''')
sub('''      uint32_t v[4];
      ldsm4t(v, aVsm + ((half * 32 + lane) * LD + 8 * i) * 2);
      UNROLL for (int u = 0; u < 4; u++) *(float2 *)(out + half * 32 + 8 * u) = __half22float2(*(__half2 *)&v[u]);
''', '''      uint32_t v[4], vl[4] = {0u, 0u, 0u, 0u};
      ldsm4t(v, aVsm + ((half * 32 + lane) * LD + 8 * i) * 2);
      if (TWO) ldsm4t(vl, aVlow + ((half * 32 + lane) * LD + 8 * i) * 2);
      UNROLL for (int u = 0; u < 4; u++) *(float2 *)(out + half * 32 + 8 * u) = sum2(v[u], vl[u]);
''')
sub('''      UNROLL for (int jt = 0; jt < 4; jt++)
        UNROLL for (int h = 0; h < 2; h++) {
          const int j = jt * 16 + g + 8 * h;
          const float mu = sMu[j];
          UNROLL for (int nt = 0; nt < NTL; nt++) {
            const float x = d[jt][nt][2 * h] * mu, y = d[jt][nt][2 * h + 1] * mu;
            *(uint32_t *)(sm + P::VSM + (j * LD + (nt * NW + w) * 8 + 2 * q) * 2) = pack(x, y);
          }
        }
''', '''          if (TWO) block_sync<NT>(); // everybody has read M
      UNROLL for (int jt = 0; jt < 4; jt++)
        UNROLL for (int h = 0; h < 2; h++) {
          const int j = jt * 16 + g + 8 * h;
          const float mu = sMu[j];
          UNROLL for (int nt = 0; nt < NTL; nt++) {
            const int at = (j * LD + (nt * NW + w) * 8 + 2 * q) * 2;
            uint32_t high, low;
            split(d[jt][nt][2 * h] * mu, d[jt][nt][2 * h + 1] * mu, high, low);
            *(uint32_t *)(sm + P::VSM + at) = high;
            if (TWO) *(uint32_t *)(sm + P::VLOW + at) = low;
          }
        }
''')
sub('''        const float x = lower(z, i, j), y = lower(z, i + 1, j);
        *(uint32_t *)(sm + P::VSM + (j * LD + above * 64 + i) * 2) = pack(i > j    ? x
                                                                          : i == j ? 1.f
                                                                                   : 0.f,
                                                                          i + 1 > j    ? y
                                                                          : i + 1 == j ? 1.f
                                                                                       : 0.f);
''', '''        const float x = lower(z, i, j), y = lower(z, i + 1, j);
        const int at = (j * LD + above * 64 + i) * 2;
        uint32_t high, low;
        split(i > j ? x : i == j ? 1.f : 0.f, i + 1 > j ? y : i + 1 == j ? 1.f : 0.f, high, low);
        *(uint32_t *)(sm + P::VSM + at) = high;
        if (TWO) *(uint32_t *)(sm + P::VLOW + at) = low;
''')
sub('''        if ((int)rank * RP + u * 8 < m) *(float4 *)(out + (size_t)r * n + u * 8) = x;
''', '''            if ((int)rank * RP + u * 8 < m) {
          *(float4 *)(out + (size_t)r * n + u * 8) = x;
          if (TWO) *(float4 *)(out + p.low + (size_t)r * n + u * 8) = *(const float4 *)(sm + P::VLOW + (r * LD + u * 8) * 2);
        }
''')
sub('''    if (tid == 0 && rank < C - 1) mbar_expect(bar_next, 8192);
    ROLL for (int f = tid; f < 512; f += NT) {
      const int r = f >> 3, u = f & 7;
      if (rank)
        st_async(map_rank(smem_addr(sm + P::NEXT) + (r * 72 + u * 8) * 2, rank - 1),
                 *(const float4 *)(sm + P::VSM + (r * LD + u * 8) * 2), map_rank(bar_next, rank - 1));
      if (rank == C - 1) *(float4 *)(sm + P::NEXT + (r * 72 + u * 8) * 2) = make_float4(0, 0, 0, 0);
    }''', '''    if (tid == 0 && rank < C - 1) mbar_expect(bar_next, TERMS * 8192);
    ROLL for (int f = tid; f < TERMS * 512; f += NT) {
      const int r = f >> 3 & 63, u = f & 7, to = P::NEXT + (f >> 9) * 64 * P::LDW + (r * 72 + u * 8) * 2;
      if (rank)
        st_async(map_rank(smem_addr(sm + to), rank - 1), *(const float4 *)(sm + (f >> 9 ? P::VLOW : P::VSM) + (r * LD + u * 8) * 2),
                 map_rank(bar_next, rank - 1));
      if (rank == C - 1) *(float4 *)(sm + to) = make_float4(0, 0, 0, 0);
    }''')
sub('''      gram64<false>(aVsm, 0, LD, RP / 16, w, lane, d);''', '''      gram64<TWO>(aVsm, aVlow, LD, RP / 16, w, lane, d);''')
sub('''x[e] = i > j ? __half2float(__float2half_rn(lower(z, i, j))) : entry(z.r, i, j) * sUnscale[j];''',
    '''x[e] = i > j ? two_terms(lower(z, i, j)) : entry_r(z.r, i, j) * sUnscale[j];''')

# ---------------------------------------------------------------- larfb
i, j = t.index("// ---------------------------------------------------------------- 5. larfb"), t.index("// A task: x = matrix | half << 16")
one = t[i:j]
exec(open('/tmp/large2t/strips.py').read())
t = t[:i] + strips(one) + t[j:]
i = t.index("__global__ void __launch_bounds__(256, 2) larfb(")
j = t.index("// ---------------------------------------------------------------- 6.")
t = t[:i] + t[i:j].replace("wait_for(", "poll(") + t[j:]
sub("__global__ void __launch_bounds__(256, 2) larfb(const __grid_constant__ LarfbArgs p) {", "__global__ void __launch_bounds__(256, WARPGROUPS ? 1 : 2) larfb(const __grid_constant__ LarfbArgs p, const __grid_constant__ StripMaps maps) {")
i = t.index("larfb(const __grid_constant__ LarfbArgs p, const")
x = t[i:]
def subx(old, new):
    global x
    assert x.count(old) == 1, (x.count(old), old)
    x = x.replace(old, new)
subx('''  __shared__ int4 next;
  const int tid = threadIdx.x;
''', '''  __shared__ int4 next;
  const int tid = threadIdx.x;
  uint32_t phase = 0;
  if (tid == 0)
    for (int i = 0; i < StripSmem::COUNT; i++) mbar_init(smem_addr(strip_base(sm)) + StripSmem::BARS + 8 * i);
''')
subx('''    if (tid == 0) poll(p.counter + 2, p.maxima_units);
    __syncthreads();
  }
''', '''    if (tid == 0) poll(p.counter + 2, p.maxima_units);
  }
  fence_shared();
  __syncthreads();
''')
subx('''    __syncthreads();
    if (tid == 0) {
      if (parts > 1)''', '''    fence_shared();
    __syncthreads();
    if (tid == 0) {
      if (parts > 1)''')
t = t[:i] + x
sub("larfb<<<1, 256, LARFB_SMEM>>>(none);", "larfb<<<1, 256, LARFB_SMEM>>>(none, StripMaps{});")
sub("#include <cstdint>\n", "#include <cstdint>\n#include <cuda.h>\n")
sub('''    if (half == 2) strip<64, 128, false>(p, mat, top, column, 0, 1, 0);
    else if (half == 3) coupling(p, mat, top);
    else if (k.x >> 24 & 1) near_strip<64>(p, mat, top, column, part, parts);
    else near_strip<128>(p, mat, top, column, part, parts);
''', '''    const bool single = k.x >> 24 & 1;
    if (half == 3) coupling(p, mat, top);
    else if constexpr (WARPGROUPS) {
      if (single) warpgroup_strip<64>(p, maps, mat, top, column, part, parts, phase);
      else warpgroup_strip<128>(p, maps, mat, top, column, part, parts, phase);
    } else {
      if (half == 2) strip<64, 128, false>(p, mat, top, column, 0, 1, 0);
      else if (single) near_strip<64>(p, mat, top, column, part, parts);
      else near_strip<128>(p, mat, top, column, part, parts);
    }
''')
i = t.index("// colmax: column maxima and, behind them")
t = t[:i] + """// rows x columns as boxes of 64 rows, 128 bytes each; false where the driver cannot
static bool tensor_map(CUtensorMap &map, const void *at, CUtensorMapDataType type, int bytes, size_t rows, int columns) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {
    void *f = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &f, cudaEnableDefault, &found);
#endif
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(f) : nullptr;
  }();
  const cuuint64_t sizes[2] = {(cuuint64_t)columns, (cuuint64_t)rows}, strides[1] = {(cuuint64_t)bytes * columns};
  const cuuint32_t box[2] = {128u / bytes, 64}, steps[2] = {1, 1};
  return encode && encode(&map, type, 2, const_cast<void *>(at), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                          CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
static bool strip_maps(StripMaps &maps, const float *a, float *h, __half *vt, __half *ts, int n, int batch) {
  const size_t rows = (size_t)batch * n;
  return tensor_map(maps.a, a, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, rows, n) && tensor_map(maps.h, h, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, rows, n) &&
         tensor_map(maps.v, vt, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, TERMS * rows, n) &&
         tensor_map(maps.t, ts, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, sizes(n, batch).tt / 64, 64);
}
""" + t[i:]
# ---------------------------------------------------------------- order of work
sub("constexpr int LARFB_SMEM = std::max(LarfbSmem<64>::BYTES, LarfbSmem<32>::BYTES);", "constexpr int LARFB_SMEM = WARPGROUPS ? StripSmem::BYTES : std::max(LarfbSmem<64>::BYTES, LarfbSmem<32>::BYTES);")
sub('''        half = x.near[c]++;
        k64 = !(c & 1);''', '''        half = WARPGROUPS ? 2 : x.near[c];
        x.near[c] += WARPGROUPS ? 2 : 1;
        k64 = !(c & 1);''')
sub('''        half = (q & 1) ? 1 : c - x.made <= urgent ? 0 : 2;
        x.claimed[c] += half == 2 ? 2 : 1;''', '''        half = (q & 1) ? 1 : c - x.made <= urgent && !WARPGROUPS ? 0 : 2;
        x.claimed[c] += half == 2 ? 2 : 1;''')
sub('''      const int parts = half < 2 ? std::min(''', '''      const bool divide = WARPGROUPS ? is_near || c - x.made <= urgent : half < 2;
      const int parts = divide ? std::min(''')
sub('''        place(mat, c, half == 2 ? 2 : part == parts - 1, (n - 64.f * top) * ((k64 ? 256 : 512) + 12 * (half == 2 ? 64 : 32)) / parts);''',
    '''        place(mat, c, part < parts - 1 ? 0 : half == 2 ? 2 : 1,
              (n - 64.f * top) * (TERMS * (k64 ? 256 : 512) + 12 * (half == 2 ? 64 : 32)) / parts);''')
sub('static int workers_an_sm(int n) { return n > 2048 ? 1 : 2; }', 'static int workers_an_sm(int n) { return WARPGROUPS || n > 2048 ? 1 : 2; }')
# ---------------------------------------------------------------- arguments
sub("const PanelArgs p{a, h, tau, vt, ts,", "const size_t low = (size_t)batch * n * n;\n    const PanelArgs p{a, h, tau, vt, low, ts,")
sub("workers({a, h, vt, ts,", "workers({a, h, vt, low, ts,")
sub("            workers_an_sm(n) * sms);", "            maps, workers_an_sm(n) * sms);")
sub("static void workers(const LarfbArgs &a, int places) {", "static void workers(const LarfbArgs &a, const StripMaps &maps, int places) {")
sub("cudaLaunchKernelEx(&cfg, larfb, a);", "cudaLaunchKernelEx(&cfg, larfb, a, maps);")
sub("  const int count = n / 64, C = cluster_ctas(n), group = group_size(n);\n", "  const int count = n / 64, C = cluster_ctas(n), group = group_size(n);\n  StripMaps maps;\n  if (!strip_maps(maps, a, h, vt, ts, n, batch)) return \"the driver makes no tensor maps\";\n")
sub('''  const __half *vt;
  __half *ts; // and,''', '''  const __half *vt;
  size_t low; // from V^T to its second term
  __half *ts; // and,''')
sub('''struct Sizes {
  long tt, counters, partials;
};''', '''struct Sizes {
  long tt, counters, partials, terms;
};''')
sub("counters(n, batch), partials(n, batch)};", "counters(n, batch), partials(n, batch), TERMS};")
sub("struct Sizes { long tt, counters, partials; };", "struct Sizes { long tt, counters, partials, terms; };")
sub("at::Tensor vt = at::empty({b, np, np}, o.dtype(at::kHalf))", "at::Tensor vt = at::empty({s.terms * b, np, np}, o.dtype(at::kHalf))")
import re
t = re.sub(r'"qrkit_large_v\d+"', '"qrkit_large_' + os.environ.get('NAME', 'v109') + '"', t)
open(sys.argv[2], 'w').write(t)
