// ---------------------------------------------------------------- sizes

constexpr int NB = 64;         // columns of a panel = reflectors of a block
constexpr int IB = 32;         // columns of a window: one Gram and one recurrence
constexpr int TILE = 8;        // rows of a tile, the n of mma m16n8
constexpr int ROWS = 512;      // rows held on chip; a smaller n is padded with zeros
constexpr int TILES = ROWS / TILE;
constexpr int OWN = TILES / 2; // tiles of a warpgroup
constexpr int WARPS = 8;
constexpr int THREADS = WARPS * 32;
constexpr int MOVER = THREADS - 32;  // the thread that starts all bulk copies
constexpr int GROUPS = NB / TILE;  // groups of 8 reflectors of a block
constexpr int T_OPERANDS = 20;     // 16 x 8 operands of an upper triangular 64 x 64
constexpr int PAD = 36;            // row stride in floats: float4 aligned, a warp's rows on different banks

// A column is scaled by a power of two so that its absolute sum is in [128, 256): its norm is then between 5.6 and 256, and
// orthogonal transforms keep it, so fp16 (65504) cannot overflow; entries under 2^-24 are lost, 2^-26 of the norm.
constexpr int SCALE_LOG2 = 7;
// A pivot this small against the squared norm of its column, or a column of M this large, would magnify the rounding
// of the Gram matrix (2^-22) too much: the window then takes several passes, each up to the first column past the safe values.
constexpr float PIVOT_RATIO = 1e-5f, PIVOT_SAFE = 1e-3f;
constexpr float M_NORM = 1000.f, M_SAFE = 30.f;
constexpr float TINY_SQUARE = 1e-30f;
constexpr int DOWN_LIMIT = 22;  // what is left of a column is scaled up by at most 2^22; its M then fits fp16 or is refused
// Rounding v to fp16 leaves an error of about 2e-4 |p| per column (root mean square of fp16's relative rounding), spread
// over the m rows left: 1-norm sqrt(m) 2e-4 |p|. Where that could reach TWO_TERM_AT of the 20 allowed, V takes two terms.
constexpr float V_ROUNDING = 2e-4f;
#ifndef TWO_TERM_AT
#define TWO_TERM_AT 5.5f
#endif

struct Window {            // scratch of one window's recurrence
  float x[IB][IB + 1];     // G = (x + x')/2
  float g[IB][PAD];        // G, symmetric, and what is left of it
  float diagonal[IB];      // of G at the start
  float pivot[IB];         // of the Cholesky factorization
  float r_abs[IB][PAD];    // [column][row]: Cholesky factor of G
  float top[IB][PAD];      // [row][column]: top of P; on exit R above, v below the diagonal
  float w[IB][PAD];        // [row][column]: U = diag(1/inverse) + w, P = V U
  float m[IB][PAD];        // [reflector][column]: M transposed, V = P M
  float inverse[IB];       // 1 / (alpha - beta), 0 where tau = 0
};
struct Triangle {          // scratch of larft
  float n[IB][PAD];        // V'V, strictly upper used
  float n12t[IB][PAD];     // (V1'V2)'
  float t22t[IB][PAD];     // transposed T of the second window
  float product[IB][PAD];
  float t12t[IB][PAD];
};
struct Scratch {
  float4 partial[WARPS][8][32];
  union { Window win; Triangle tri; };
};
struct __align__(128) Shared {
  uint32_t v[2][TILES][GROUPS][32];  // two stages of V; [0] is where a panel's V is formed, [1] also holds Scratch
  union {
    uint32_t p[2][TILES][4][32];     // a window of P, fp16 hi and lo; column col of a group at col ^ (group & 1)
    struct {
      float4 partial[2][4][GROUPS][32];  // W of both warpgroups; also partial sums of V1'V2
      uint4 operand[2][4][4][32];        // W' of both warpgroups as operands: hi, hi, lo, lo
    };
  };
  uint4 t[2][T_OPERANDS][32];        // T as mma operands: hi b0, hi b1, lo b0, lo b1
  float t11t[IB][PAD];               // transposed T of the first window
  float tau[NB];
  float unscale[NB];                 // undoes the column scaling
  float down[NB];                    // scales what is left of a column to a norm in [1, 2), as far as fp16 can
  float back[NB];                    // undoes both
  float sum[2][NB];                  // column sums of both warpgroups
  float beta[IB];
  int trip;                          // the recurrence cannot be trusted for the whole window
  int good;                          // its columns before the first one in doubt
  int two_terms;                     // V of this panel takes two terms
  uint32_t largest_sum;              // bits of the largest column sum so far: ||A||_1 at the end
  uint32_t largest_column;           // bits of a bound on the largest column norm of this panel
  unsigned long long full[2];        // mbarriers of the stages
};
static_assert(sizeof(Scratch) <= sizeof(uint32_t) * TILES * GROUPS * 32, "scratch fits a stage");

struct Lane { int tid, warp, lane, wg, ws, g, q; };
struct Job {
  const float* a; float* h; float* tau; uint32_t* v; uint32_t* v_lo; uint32_t* t; int n; int panels; int k; uint32_t flags;
};
typedef float Panel[OWN][4];

DEVICE Scratch& scratch(Shared& s) { return *reinterpret_cast<Scratch*>(&s.v[1][0][0][0]); }
DEVICE float power_of_two(int e) { return bits_float((uint32_t)(127 + e) << 23); }
DEVICE void split(float x, float y, uint32_t& hi, uint32_t& lo) {
  hi = pack_half2(x, y);
  float2 f = unpack_half2(hi);
  lo = pack_half2(x - f.x, y - f.y);
}

// ---------------------------------------------------------------- load and scale

template <bool EXACT>
DEVICE void load_panel(Panel& c, const Job& job, int k, const Lane& me) {
  const int col = k * NB + me.ws * 16 + 2 * me.g;
  const float* from = job.a + (me.wg * TILE + 2 * me.q) * ROWS + col;
#pragma unroll
  for (int i = 0; i < OWN; i++) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int row = (2 * i + me.wg) * TILE + 2 * me.q + e;
      if (EXACT) {
        const float2 x = load_once2(from + (16 * i + e) * ROWS);
        c[i][e] = x.x;
        c[i][2 + e] = x.y;
      } else {
        const bool in = row < job.n;
        c[i][e] = in && col < job.n ? load_once(job.a + (size_t)row * job.n + col) : 0.f;
        c[i][2 + e] = in && col + 1 < job.n ? load_once(job.a + (size_t)row * job.n + col + 1) : 0.f;
      }
    }
  }
}

// The next panel from memory to L2 while this one is worked on.
DEVICE void prefetch_panel(const Job& job, int k, const Lane& me) {
#pragma unroll 1
  for (int i = me.tid; i < 2 * job.n; i += THREADS) {
    const int col = k * NB + 32 * (i & 1);
    if (col < job.n) prefetch_line(job.a + (size_t)(i >> 1) * job.n + col);
  }
}

DEVICE void scale_panel(Panel& c, Shared& s, const Lane& me) {
  float sum[2];
#pragma unroll
  for (int b = 0; b < 2; b++) {
    sum[b] = 0.f;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
      sum[b] += fabsf(c[i][2 * b]);
      sum[b] += fabsf(c[i][2 * b + 1]);
    }
    sum[b] += shfl_xor(sum[b], 1);
    sum[b] += shfl_xor(sum[b], 2);
    if (me.q == 0) s.sum[me.wg][me.ws * 16 + 2 * me.g + b] = sum[b];
  }
  bar_sync(1 + me.ws, 64);
#pragma unroll
  for (int b = 0; b < 2; b++) {
    const int col = me.ws * 16 + 2 * me.g + b;
    const float whole = sum[b] + s.sum[1 - me.wg][col];
    int e = SCALE_LOG2 + 127 - (int)(float_bits(whole) >> 23);
    e = e > 126 ? 126 : e < -126 ? -126 : e;
    const float scale = power_of_two(e);
    if (me.wg == 0 && me.q == 0) {
      s.unscale[col] = power_of_two(-e);
      atomic_max(&s.largest_sum, float_bits(whole));
    }
    float square = 0.f;
#pragma unroll
    for (int i = 0; i < OWN; i++) {
      c[i][2 * b] *= scale;
      c[i][2 * b + 1] *= scale;
      square = fmaf(c[i][2 * b], c[i][2 * b], square);
      square = fmaf(c[i][2 * b + 1], c[i][2 * b + 1], square);
    }
    square += shfl_xor(square, 1);
    square += shfl_xor(square, 2);
    // of half of the rows: twice the larger half is a bound, and near the truth where it matters
    if (me.q == 0 && square > 0.f) {
      atomic_max(&s.largest_column, float_bits(2.f * square * reciprocal_sqrt(2.f * square) * power_of_two(-e)));
    }
  }
}

// ---------------------------------------------------------------- larfb: apply an earlier block

// Lane's word of V's low term straight from global memory: rare, so not staged.
DEVICE uint32_t low_word(const uint32_t* v_lo, int tile, int group, int lane) {
  return load_word(v_lo + (tile * GROUPS + group) * 32 + lane);
}

// V's low term to the free stage, for a block that has one.
DEVICE void fetch_low(Shared& s, const Job& job, int stage, int j) {  // one thread
  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes);
  bulk_load(&s.v[stage][8 * j][0][0], job.v_lo + (size_t)(j * TILES + 8 * j) * GROUPS * 32, bytes, &s.full[stage]);
}

// W'^T = W^T T as d + rest; the accumulators w are the A operand of it. Each warpgroup does the half of it that costs half: groups
// 0, 1, 6, 7 of reflectors (1 + 1 + 4 + 4 operands of T) and 2 to 5.
template <bool TWO>
DEVICE void apply_t(float (&d)[4][4], float (&rest)[4][4], const float (&w)[GROUPS][4], const uint4 (*t_operands)[32],
                    const Lane& me) {
#pragma unroll
  for (int st = 0; st < GROUPS / 2; st++) {
    uint32_t hi[4], lo[4];
#pragma unroll
    for (int z = 0; z < 4; z++) {
      const float(&x)[4] = w[2 * st + (z >> 1)];
      if (TWO) {
        split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z], lo[z]);
      } else {
        hi[z] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
      }
    }
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int r = me.wg == 0 ? (u < 2 ? u : u + 4) : u + 2;
      const bool both = st < (u < 2 ? 1 : 3);
      const bool one = u < 2 ? st == 1 && me.wg == 1 : st == 3 && me.wg == 0;
      if (both || ((st == 1 || st == 3) && one)) {
        const uint4 t = t_operands[st * (9 - st) + r - 2 * st][me.lane];
        mma_fp16(d[u], hi, t.x, t.y);
        mma_fp16(rest[u], hi, t.z, t.w);
        if (TWO) mma_fp16(rest[u], lo, t.x, t.y);
      }
    }
  }
}

struct Part { int window, from, to; };

// C = (I - V T' V') C. Each warp has 16 columns and half of the rows; the two that share columns meet at a barrier of
// their own. `terms` 2: V's low term is in the other stage. `full` false: only the first 32 reflectors count (the others
// are zero in V, undefined in T). `part`: only these reflectors, and only the columns of one window.
DEVICE void apply_block(Panel& c, Shared& s, int stage, int t_stage, int block, int terms, bool two_c, bool two_w, bool full,
                        Part part, uint32_t phase, const Lane& me) {
  const int quad0 = block;  // first group of four own tiles that is live
  float w[GROUPS][4];
#pragma unroll
  for (int r = 0; r < GROUPS; r++) w[r][0] = w[r][1] = w[r][2] = w[r][3] = 0.f;
  // W^T = C^T V: c is the A operand as it stands
#pragma unroll 1
  for (int term = 0; term < terms; term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
    if (term == 1) barrier_wait(&s.full[1 - stage], phase >> (1 - stage) & 1);
#if WARPGROUP_MMA
    const uint64_t v_tiles = tile_descriptor(tiles, 2048, 128);
    // No overlap within a warpgroup: while one splits C, the other one multiplies.
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0 && two_c) {
        uint32_t hi[2][4], lo[2][4];
#pragma unroll
        for (int z = 0; z < 8; z++) {
          float(&x)[4] = c[4 * quad + (z >> 1)];
          split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z >> 2][z & 3], lo[z >> 2][z & 3]);
        }
        wgmma_fence();
#pragma unroll
        for (int u = 0; u < 2; u++) {
          const uint64_t b = v_tiles + (8 * quad + 4 * u) * 64;
          wgmma_64<0>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], b);
          wgmma_64<0>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], lo[u], b);
        }
        wgmma_commit();
        wgmma_wait();
      } else if (quad >= quad0) {
        uint32_t hi[2][4];
#pragma unroll
        for (int z = 0; z < 8; z++) {
          float(&x)[4] = c[4 * quad + (z >> 1)];
          hi[z >> 2][z & 3] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
        }
        wgmma_fence();
#pragma unroll
        for (int u = 0; u < 2; u++) {
          wgmma_64<0>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], v_tiles + (8 * quad + 4 * u) * 64);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
#else
#pragma unroll
    for (int st = 0; st < OWN / 2; st++) {
      if (st / 2 >= quad0) {
        uint32_t hi[4], lo[4];
#pragma unroll
        for (int z = 0; z < 4; z++) {
          float(&x)[4] = c[2 * st + (z >> 1)];
          split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z], lo[z]);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
          uint32_t b0[4], b1[4];
          load_matrix(b0, tiles + (4 * st) * 1024 + half * 512 + me.lane * 16);
          load_matrix(b1, tiles + (4 * st + 2) * 1024 + half * 512 + me.lane * 16);
#pragma unroll
          for (int r = 0; r < 4; r++) mma_fp16(w[4 * half + r], hi, b0[r], b1[r]);
#pragma unroll
          for (int r = 0; r < 4; r++) {
            if (two_c) mma_fp16(w[4 * half + r], lo, b0[r], b1[r]);
          }
        }
      }
    }
#endif
  }
//@TICK(11)
#pragma unroll
  for (int r = 0; r < GROUPS; r++) {
    s.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
  }
  bar_sync(1 + me.ws, 64);
#pragma unroll
  for (int r = 0; r < GROUPS; r++) {
    float4 x = s.partial[1 - me.wg][me.ws][r][me.lane];
    w[r][0] += x.x; w[r][1] += x.y; w[r][2] += x.z; w[r][3] += x.w;
  }
  if (part.window >= 0) {
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int reflector = 8 * r + 2 * me.q + (e & 1);
        if (reflector < part.from || reflector >= part.to || me.ws >> 1 != part.window) w[r][e] = 0.f;
      }
    }
  }
  // Where one term is enough for W' it is for W too, beside T in two.
  float d[4][4], rest[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&d[0][0])[i] = (&rest[0][0])[i] = 0.f;
  if (two_w) {
    apply_t<true>(d, rest, w, s.t[t_stage], me);
  } else {
    apply_t<false>(d, rest, w, s.t[t_stage], me);
  }
  uint32_t wh[GROUPS / 2][4], wl[GROUPS / 2][4];
#pragma unroll
  for (int u = 0; u < 4; u++) {
    const int r = me.wg == 0 ? (u < 2 ? u : u + 4) : u + 2;
    const bool on = full || r < GROUPS / 2;
    uint4 x;
#pragma unroll
    for (int e = 0; e < 4; e++) d[u][e] = on ? -d[u][e] - rest[u][e] : 0.f;
    split(d[u][0], d[u][1], x.x, x.z);
    split(d[u][2], d[u][3], x.y, x.w);
    s.operand[me.wg][me.ws][u][me.lane] = x;
  }
  bar_sync(1 + me.ws, 64);
#pragma unroll
  for (int r = 0; r < GROUPS; r++) {
    const int owner = r < 2 || r > 5 ? 0 : 1, u = r < 2 ? r : r > 5 ? r - 4 : r - 2;
    const uint4 x = s.operand[owner][me.ws][u][me.lane];
    wh[r >> 1][(r & 1) * 2] = x.x;
    wh[r >> 1][(r & 1) * 2 + 1] = x.y;
    wl[r >> 1][(r & 1) * 2] = x.z;
    wl[r >> 1][(r & 1) * 2 + 1] = x.w;
  }
//@TICK(12)
  // C^T -= W'^T V^T
#pragma unroll 1
  for (int term = 0; term < terms; term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
#if WARPGROUP_MMA
    const uint64_t v_rows = tile_descriptor(tiles, 128, 2048);  // descriptors count in 16 bytes
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        const int i = 4 * quad;
        if (two_w) {
          wgmma_fence();
#pragma unroll
          for (int z = 0; z < 8; z++) {
            const int st = z & 3;
            wgmma_32<1>(c[i], c[i + 1], c[i + 2], c[i + 3], z < 4 ? wl[st] : wh[st], v_rows + 8 * quad * 64 + st * 16);
          }
          wgmma_commit();
          wgmma_wait();
        } else {
          wgmma_fence();
#pragma unroll
          for (int st = 0; st < 4; st++) {
            wgmma_32<1>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], v_rows + 8 * quad * 64 + st * 16);
          }
          wgmma_commit();
          wgmma_wait();
        }
      }
    }
#else
    // four tiles at a time so that independent products hide the latency of mma
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          uint32_t b[4][4];
#pragma unroll
          for (int u = 0; u < 4; u++) {
            load_matrix_transposed(b[u], tiles + (8 * quad + 2 * u) * 1024 + half * 512 + me.lane * 16);
          }
#pragma unroll
          for (int z = 0; z < 2; z++) {
#pragma unroll
            for (int u = 0; u < 4; u++) mma_fp16(c[4 * quad + u], wl[2 * half + z], b[u][2 * z], b[u][2 * z + 1]);
#pragma unroll
            for (int u = 0; u < 4; u++) mma_fp16(c[4 * quad + u], wh[2 * half + z], b[u][2 * z], b[u][2 * z + 1]);
          }
        }
      }
    }
#endif
  }
//@TICK(13)
}

// ---------------------------------------------------------------- geqr2: one window of 32 columns

template <bool EXACT>
DEVICE void store_pair(const Job& job, int row, int col, float x, float y) {  // columns col, col + 1
  if (EXACT) {
    store_once2(job.h + (size_t)row * ROWS + col, make_float2(x, y));
  } else if (row < job.n) {
    if (col < job.n) job.h[(size_t)row * job.n + col] = x;
    if (col + 1 < job.n) job.h[(size_t)row * job.n + col + 1] = y;
  }
}

// The rows of R that the earlier blocks finished; inside the panel the 32 of the first window.
template <bool EXACT>
DEVICE void store_r(Panel& c, Shared& s, const Job& job, int from, int to, bool inside, const Lane& me) {
  const int col = me.ws * 16 + 2 * me.g;
  const float u0 = s.unscale[col], u1 = s.unscale[col + 1];
#pragma unroll
  for (int quad = 0; quad < OWN / 4; quad++) {
    if (quad >= from && quad < to) {
#pragma unroll
      for (int i = 4 * quad; i < 4 * quad + 4; i++) {
        if (i < 4 * quad + 2 || !inside) {
          const int row = (2 * i + me.wg) * TILE + 2 * me.q;
          store_pair<EXACT>(job, row, job.k * NB + col, c[i][0] * u0, c[i][2] * u1);
          store_pair<EXACT>(job, row + 1, job.k * NB + col, c[i][1] * u0, c[i][3] * u1);
        }
      }
    }
  }
}

// The first `done` rows and columns of a window are finished: they are zero in what is left of it.
DEVICE void clear_done(Panel& c, int first, int done, const Lane& me) {
#pragma unroll
  for (int i = 0; i < OWN; i++) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int row = (2 * i + me.wg - first) * TILE + 2 * me.q + (e & 1), col = (me.ws & 1) * 16 + 2 * me.g + (e >> 1);
      if (row >= 0 && (row < done || col < done)) c[i][e] = 0.f;
    }
  }
}

// P to shared memory as fp16 hi and lo tiles.
DEVICE void stage_window(Panel& c, Shared& s, int first, const Lane& me) {
  // this lane's row of the four matrices hi(2g), hi(2g + 1), lo(2g), lo(2g + 1): a column of P
  const int r = me.lane & 7, b = me.lane >> 3 & 1;
  const int group = 2 * (me.ws & 1) + (r >> 2);
  const uint32_t at = shared_address(&s.p[me.lane >> 4][me.wg][group][(((2 * r + b) & 7) ^ (group & 1)) * 4]);
#pragma unroll
  for (int i = 0; i < OWN; i++) {
    if (2 * i >= first) {
      uint32_t z[4];
      split(c[i][0], c[i][1], z[0], z[2]);
      split(c[i][2], c[i][3], z[1], z[3]);
      store_matrix(at + 2 * i * 512, z);
    }
  }
}

DEVICE float4 sum_partials(const float4 (*partial)[8][32], int product, int lane) {
  float4 sum = partial[0][product][lane];
#pragma unroll
  for (int w = 1; w < WARPS; w++) {
    float4 x = partial[w][product][lane];
    sum.x += x.x; sum.y += x.y; sum.z += x.z; sum.w += x.w;
  }
  return sum;
}

// x with G = (x + x')/2 = P'P: x = HH + 2 HL for P = H + L in fp16. Rows are split over the warps.
DEVICE void gram(Shared& s, const Job& job, int h, int first, int done, const Lane& me) {
  const int l = me.lane & 7, cg = me.lane >> 3;
  const uint32_t at = shared_address(&s.p[0][0][cg][0]) + (l ^ (cg & 1)) * 16;
  constexpr int LOW = TILES * 512;
#pragma unroll
  for (int i = 0; i < 2; i++) {  // the top 32 x 32 of P in fp32
    const int tile = me.warp & 3, group = 2 * (me.warp >> 2) + i;
    const int word = (me.g ^ (group & 1)) * 4 + me.q;
    const float2 hi = unpack_half2(s.p[0][first + tile][group][word]), lo = unpack_half2(s.p[1][first + tile][group][word]);
    float(&top)[IB][PAD] = scratch(s).win.top;
    top[8 * tile + 2 * me.q][8 * group + me.g] = hi.x + lo.x;
    top[8 * tile + 2 * me.q + 1][8 * group + me.g] = hi.y + lo.y;
  }
  float x[2][4][4];
#pragma unroll
  for (int i = 0; i < 32; i++) (&x[0][0][0])[i] = 0.f;
#pragma unroll 1
  for (int u = first / 2 + me.warp; u < TILES / 2; u += WARPS) {
    uint32_t h0[4], h1[4], l0[4], l1[4];
    load_matrix(h0, at + (2 * u) * 512);
    load_matrix(h1, at + (2 * u + 1) * 512);
    load_matrix(l0, at + (2 * u) * 512 + LOW);
    load_matrix(l1, at + (2 * u + 1) * 512 + LOW);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const uint32_t a[4] = {h0[2 * half], h0[2 * half + 1], h1[2 * half], h1[2 * half + 1]};
#pragma unroll
      for (int r = 0; r < 4; r++) mma_fp16(x[half][r], a, h0[r], h1[r]);
#pragma unroll
      for (int r = 0; r < 4; r++) mma_fp16(x[half][r], a, twice(l0[r]), twice(l1[r]));
    }
  }
  Scratch& sc = scratch(s);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float(&y)[4] = x[i >> 2][i & 3];
    sc.partial[me.warp][i][me.lane] = make_float4(y[0], y[1], y[2], y[3]);
  }
  sync_all();
  {
    const float4 y = sum_partials(sc.partial, me.warp, me.lane);
    const int row = (me.warp >> 2) * 16 + me.g, col = (me.warp & 3) * 8 + 2 * me.q;
    sc.win.x[row][col] = y.x;
    sc.win.x[row][col + 1] = y.y;
    sc.win.x[row + 8][col] = y.z;
    sc.win.x[row + 8][col + 1] = y.w;
  }
  sync_all();
  // Columns scaled by powers of two to a norm in [1, 2): `down` on P where it becomes V, the rest (beyond fp16's range) on M.
  const float square = sc.win.x[me.lane][me.lane];
  const int e = (127 - (int)(float_bits(square) >> 23)) >> 1;
  const float own = square < TINY_SQUARE ? 0.f : power_of_two(e > DOWN_LIMIT ? DOWN_LIMIT : e);
  const float own_down = own < 32768.f ? own : 32768.f;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int row = 4 * me.warp + i;
    const float y = (sc.win.x[row][me.lane] + sc.win.x[me.lane][row]) * (0.5f * own) * shfl(own, row);
    sc.win.g[row][me.lane] = y;
    sc.win.top[row][me.lane] *= own;
    if (row == me.lane) sc.win.diagonal[row] = y;
    sc.win.m[row][me.lane] = row != me.lane ? 0.f : own > 32768.f ? own * (1.f / 32768.f) : 1.f;
  }
  if (me.warp == 7) {
    const float unscale = s.unscale[h * IB + me.lane];
    s.down[h * IB + me.lane] = own_down;
    s.back[h * IB + me.lane] = own == 0.f ? 0.f : unscale / own;
    const float norm = largest(square < TINY_SQUARE ? 0.f : square * reciprocal_sqrt(square) * unscale);
    const float rows = (float)(job.n - first * TILE);
    const float error = rows > 0.f ? rows * reciprocal_sqrt(rows) * V_ROUNDING * norm : 0.f;
    const bool two = error > TWO_TERM_AT * 1.1920929e-7f * (float)job.n * bits_float(s.largest_sum);
    if (me.lane == 0) {
      s.two_terms = h == 0 && done == 0 ? two : two || s.two_terms;
      s.good = IB;
      s.trip = 0;
    }
  }
  sync_all();
}

// From G and the top 32 x 32 of P: R, the top of V, and M with V = P M, four columns at a time, by three eliminations that
// run together:
//   Cholesky  G = R'R without signs; row i of it is |row i of R|
//   LU        of the top of P: with beta = sign |R_ii| (no cancellation in alpha - beta) and v_i = 1, row i loses
//             w = (row i) - (row i of R), the rows below lose v w
//   inverse   P = V U with U = diag(alpha - beta) + w, so V = P M with M = U^-1
// The 4 x 4 on the diagonal is done by every lane for itself: no shuffle in the chain. Warp 0 then does the four rows (lane =
// column), warp 1 the columns of V, warp 2 those of M (lane = row); all warps share the rank-4 update of the rest.
// Why four and a rolled loop: straight-line code costs over 4 cycles an instruction in fetches alone. The same by eight
// columns was 1,000 instructions and 500 cycles a column.
DEVICE void recurrence(Shared& s, const Lane& me) {
  Window& win = scratch(s).win;
  const int lane = me.lane;
#pragma unroll 1
  for (int o = 0; o < IB; o += 4) {
    if (me.warp < 3) {
      float g[4][4], a[4][4], x[4], y[4], out[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        *(float4*)&g[i][0] = *(const float4*)&win.g[o + i][o];
        *(float4*)&a[i][0] = *(const float4*)&win.top[o + i][o];
      }
      if (me.warp == 0) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          y[i] = win.top[o + i][lane];
          x[i] = win.g[o + i][lane];
        }
      } else if (me.warp == 1) {
        *(float4*)&x[0] = *(const float4*)&win.top[lane][o];
      } else {
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = win.m[o + i][lane];
      }
      bar_sync(5, 96);  // all have read before any writes
      float root[4], inverse[4], sign[4];
      // g[i][j]: row i of R right of the diagonal; a[i][j]: w right of it, v left of it
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float pivot = g[i][i];
        const bool real = pivot > 0.f;
        root[i] = real ? reciprocal_sqrt(pivot) : 0.f;
#pragma unroll
        for (int j = i + 1; j < 4; j++) g[i][j] *= root[i];
#pragma unroll
        for (int k = i + 1; k < 4; k++) {
#pragma unroll
          for (int j = k; j < 4; j++) g[k][j] = fmaf(-g[i][k], g[i][j], g[k][j]);
        }
        sign[i] = !real ? 0.f : a[i][i] >= 0.f ? -1.f : 1.f;
        inverse[i] = real ? reciprocal(fmaf(-sign[i], pivot * root[i], a[i][i])) : 0.f;
#pragma unroll
        for (int j = i + 1; j < 4; j++) a[i][j] = real ? fmaf(-sign[i], g[i][j], a[i][j]) : 0.f;
#pragma unroll
        for (int k = i + 1; k < 4; k++) {
          a[k][i] *= inverse[i];
#pragma unroll
          for (int j = i + 1; j < 4; j++) a[k][j] = fmaf(-a[k][i], a[i][j], a[k][j]);
        }
      }
      if (me.warp == 0) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          out[i] = x[i] * root[i];
          const float beta = sign[i] == 0.f ? y[i] : sign[i] * out[i];
          const float w = y[i] - beta;
          if (lane >= o + i) win.top[o + i][lane] = beta;
          win.w[o + i][lane] = w;
#pragma unroll
          for (int k = i + 1; k < 4; k++) {
            x[k] = fmaf(-g[i][k], out[i], x[k]);
            y[k] = fmaf(-a[k][i], w, y[k]);
          }
        }
        *(float4*)&win.r_abs[lane][o] = *(float4*)&out[0];
        if (lane == 0) {
          *(float4*)&win.pivot[o] = make_float4(g[0][0], g[1][1], g[2][2], g[3][3]);
          *(float4*)&win.inverse[o] = *(float4*)&inverse[0];
        }
      } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          out[i] = x[i] * inverse[i];
          if (me.warp == 2) win.m[o + i][lane] = out[i];
          if (me.warp == 1 && lane > o + i) win.top[lane][o + i] = out[i];
#pragma unroll
          for (int k = i + 1; k < 4; k++) x[k] = fmaf(-a[i][k], out[i], x[k]);
        }
      }
    }
    if (o == IB - 4) break;
    sync_all();
    // the rest: rows (of M': columns) shared out to the warps, lane = column (of M': row)
    const float4 r4 = *(const float4*)&win.r_abs[lane][o];
    float w4[4], m4[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      w4[i] = win.w[o + i][lane];
      m4[i] = win.m[o + i][lane];
    }
#pragma unroll 2
    for (int row = o + 4 + me.warp; row < IB; row += WARPS) {
      const float4 r = *(const float4*)&win.r_abs[row][o];
      const float4 v = *(const float4*)&win.top[row][o];
      float g = win.g[row][lane], a = win.top[row][lane], m = win.m[row][lane];
      g = fmaf(-r.x, r4.x, g); a = fmaf(-v.x, w4[0], a); m = fmaf(-win.w[o][row], m4[0], m);
      g = fmaf(-r.y, r4.y, g); a = fmaf(-v.y, w4[1], a); m = fmaf(-win.w[o + 1][row], m4[1], m);
      g = fmaf(-r.z, r4.z, g); a = fmaf(-v.z, w4[2], a); m = fmaf(-win.w[o + 2][row], m4[2], m);
      g = fmaf(-r.w, r4.w, g); a = fmaf(-v.w, w4[3], a); m = fmaf(-win.w[o + 3][row], m4[3], m);
      win.g[row][lane] = g;
      if (lane >= o + 4) win.top[row][lane] = a;
      win.m[row][lane] = m;
    }
    sync_all();
  }
  if (me.warp == 0) {
    sync_warp();
    const float whole = win.diagonal[lane];
    const uint32_t zeros = ballot(whole == 0.f);
    const bool bad = whole != 0.f && !(win.pivot[lane] > PIVOT_RATIO * whole);
    const bool gap = (zeros & (~zeros + 1u)) + zeros != 0u;  // zero columns before others
    if ((ballot(bad) != 0u || gap) && lane == 0) s.trip = 1;
  }
}

// Where pivots or M are too extreme to trust: how many of the window's columns may be trusted, more than `done`. The pass ends
// before the first column where rounding in G may have been magnified at all.
NOINLINE int safe_columns(Shared& s, int done, const Lane& me) {
  Window& win = scratch(s).win;
#pragma unroll
  for (int i = 0; i < IB / WARPS; i++) {
    const int j = IB / WARPS * me.warp + i;
    float x = fabsf(win.m[j][me.lane]);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) x += shfl_xor(x, d);
    if (me.lane == 0 && !(x < M_SAFE)) atomic_min(&s.good, j);
  }
  if (me.warp == WARPS - 1) {
    const float whole = win.diagonal[me.lane];
    const uint32_t unsafe = ballot(whole != 0.f && !(win.pivot[me.lane] > PIVOT_SAFE * whole));
    // A zero column keeps its row of R, which G does not know: the columns after it are for the next pass.
    const uint32_t zeros = ballot(whole == 0.f && me.lane >= done);
    const bool gap = (zeros & (~zeros + 1u)) + zeros != 0u;
    if (me.lane == 0) {
      if (unsafe != 0u) atomic_min(&s.good, lowest_bit(unsafe));
      if (gap) atomic_min(&s.good, lowest_bit(zeros) + 1);
    }
  }
  sync_all();
  return s.good > done ? s.good : done + 1;
}

// The second half of V is zero while the first is applied to the second window, and stays so in the first 32 rows.
DEVICE void clear_second_half(Shared& s, const Job& job, int h, bool low_before, const Lane& me) {
  const uint4 zero = {0u, 0u, 0u, 0u};
  const bool clear_low = s.two_terms && (h == 0 || !low_before);  // of the other window
  if (h == 1 && !clear_low) return;
#pragma unroll 1
  for (int i = me.tid; i < (TILES - 8 * job.k) * 32; i += THREADS) {
    const int tile = 8 * job.k + (i >> 5);
    if (h == 0) *reinterpret_cast<uint4*>(&s.v[0][tile][4][(i & 31) * 4]) = zero;
    if (clear_low) {
      *reinterpret_cast<uint4*>(&job.v_lo[((size_t)(job.k * TILES + tile) * GROUPS + 4 * (1 - h)) * 32 + (i & 31) * 4]) = zero;
      // the first 32 rows of the second window, which form_reflectors does not write
      if (h == 1 && tile < 8 * job.k + 4) {
        *reinterpret_cast<uint4*>(&job.v_lo[((size_t)(job.k * TILES + tile) * GROUPS + 4) * 32 + (i & 31) * 4]) = zero;
      }
    }
  }
  if (clear_low) fence_all();
}

// V = P M on tensor cores, rounded to fp16 (hi, or hi + lo): to its stage and to H. The top 32 rows come from the
// recurrence. WHOLE: all columns; false, the same in all warps, and nothing stored if M is too large to trust. Otherwise
// columns done .. good - 1 of the window; those after them are zero in V for now.
template <bool EXACT, bool WHOLE>
DEVICE bool form_reflectors(Shared& s, const Job& job, int h, int first, int done, int good, bool low_before, const Lane& me) {
  Window& win = scratch(s).win;
  constexpr int HALF[3] = {0, 1, 1};
  constexpr int DEPTH[3] = {0, 0, 1};
  uint32_t m_hi[3][4], m_lo[3][4];
  float size[2][2] = {{0.f, 0.f}, {0.f, 0.f}};
#pragma unroll
  for (int f = 0; f < 3; f++) {
#pragma unroll
    for (int z = 0; z < 4; z++) {
      const float2 x = *(const float2*)&win.m[HALF[f] * 16 + 2 * me.g + (z & 1)][DEPTH[f] * 16 + 2 * me.q + 8 * (z >> 1)];
      split(x.x, x.y, m_hi[f][z], m_lo[f][z]);
      size[HALF[f]][z & 1] += fabsf(x.x) + fabsf(x.y);
    }
  }
  bool large = false;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float x = size[i >> 1][i & 1];
    x += shfl_xor(x, 1);
    x += shfl_xor(x, 2);
    large = large || !(x < M_NORM);
  }
  if (WHOLE && ballot(large) != 0u) return false;

  const int l = me.lane & 7, cg = me.lane >> 3;
  const uint32_t at = shared_address(&s.p[0][0][cg][0]) + (l ^ (cg & 1)) * 16;
  constexpr int LOW = TILES * 512;
  const bool two = s.two_terms;
  // This lane's reflectors: 16 (i / 2) + 2 g + i % 2, neighbours in a row of H
  float back[4], unit[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
    back[i] = s.back[h * IB + j];
    unit[i] = win.inverse[j] == 0.f ? 0.f : 1.f;
  }
  uint32_t down[4];
#pragma unroll
  for (int i = 0; i < 4; i++) down[i] = pack_half2(s.down[h * IB + 8 * i + 2 * me.q], s.down[h * IB + 8 * i + 2 * me.q + 1]);
  uint32_t next_hi[4] = {0, 0, 0, 0}, next_lo[4] = {0, 0, 0, 0};
  if (first + me.warp < TILES) {
    load_matrix_transposed(next_hi, at + (first + me.warp) * 512);
    load_matrix_transposed(next_lo, at + (first + me.warp) * 512 + LOW);
  }
#pragma unroll 1
  for (int tile = first + me.warp; tile < TILES; tile += WARPS) {
    uint32_t hi[4], lo[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      hi[i] = times_half2(next_hi[i], down[i]);
      lo[i] = times_half2(next_lo[i], down[i]);
    }
    if (tile + WARPS < TILES) {
      load_matrix_transposed(next_hi, at + (tile + WARPS) * 512);
      load_matrix_transposed(next_lo, at + (tile + WARPS) * 512 + LOW);
    }
    float d[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, rest[3][4];
#pragma unroll
    for (int f = 0; f < 3; f++) {
      const int z = 2 * DEPTH[f];
      rest[f][0] = rest[f][1] = rest[f][2] = rest[f][3] = 0.f;
      mma_fp16(rest[f], m_lo[f], hi[z], hi[z + 1]);
      mma_fp16(d[HALF[f]], m_hi[f], hi[z], hi[z + 1]);
      mma_fp16(rest[f], m_hi[f], lo[z], lo[z + 1]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      d[0][i] += rest[0][i];
      d[1][i] += rest[1][i] + rest[2][i];
    }
    const bool top = tile < first + 4;
    const int row = (tile - first) * TILE + 2 * me.q;
    float2 out[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int j = 16 * (i >> 1) + 2 * me.g + (i & 1);
      float x = d[i >> 1][(i & 1) * 2], y = d[i >> 1][(i & 1) * 2 + 1], x_top = 0.f, y_top = 0.f;
      if (top) {  // R on and above the diagonal, v below
        x_top = win.top[row][j];
        y_top = win.top[row + 1][j];
        x = row > j ? x_top * unit[i] : row == j ? unit[i] : 0.f;
        y = row + 1 > j ? y_top * unit[i] : row + 1 == j ? unit[i] : 0.f;
      }
      if (!WHOLE && j >= good) x = y = 0.f;
      const uint32_t word = pack_half2(x, y);
      const int group = 4 * h + (j >> 3), at_word = (j & 7) * 4 + me.q;
      if (WHOLE || j >= done) s.v[0][tile][group][at_word] = word;
      out[i] = unpack_half2(word);
      if (two) {
        const uint32_t low = pack_half2(x - out[i].x, y - out[i].y);
        const size_t at_low = ((size_t)(job.k * TILES + tile) * GROUPS + group) * 32 + at_word;
        if (WHOLE || j >= done) {
          job.v_lo[at_low] = low;
        } else if (!low_before) {
          job.v_lo[at_low] = 0u;
        }
        const float2 f = unpack_half2(low);
        out[i].x += f.x;
        out[i].y += f.y;
      }
      if (top) {
        if (row <= j) out[i].x = x_top * back[i];
        if (row + 1 <= j) out[i].y = y_top * back[i];
      }
    }
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int col = job.k * NB + h * IB + 8 * i + 2 * me.g;
      if (WHOLE) {
        store_pair<EXACT>(job, first * TILE + row, col, out[i].x, out[i + 1].x);
        store_pair<EXACT>(job, first * TILE + row + 1, col, out[i].y, out[i + 1].y);
      } else {
#pragma unroll
        for (int z = 0; z < 4; z++) {  // rows done .. good - 1 of R, and V
          const int r = row + (z >> 1), j = 8 * i + 2 * me.g + (z & 1), at_row = first * TILE + r;
          const bool mine = r <= j ? r >= done && r < good : j >= done && j < good;
          if (mine && at_row < job.n && col + (z & 1) < job.n) {
            job.h[(size_t)at_row * job.n + col + (z & 1)] = z >> 1 ? out[i + (z & 1)].y : out[i + (z & 1)].x;
          }
        }
      }
    }
  }
  if (two) fence_all();
  return true;
}

// A pass that makes only some of the columns: rare, so out of the way.
template <bool EXACT>
NOINLINE void form_some_reflectors(Shared& s, const Job& job, int h, int first, int done, int good, bool low_before,
                                   const Lane& me) {
  form_reflectors<EXACT, false>(s, job, h, first, done, good, low_before, me);
}

// ---------------------------------------------------------------- larft

DEVICE void prefetch_block(Shared& s, const Job& job, int j) {  // one thread
  const int stage = j & 1;
  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes + T_OPERANDS * 512);
  bulk_load(&s.v[stage][8 * j][0][0], job.v + (size_t)(j * TILES + 8 * j) * GROUPS * 32, bytes, &s.full[stage]);
  bulk_load(&s.t[stage][0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, &s.full[stage]);
}

// Partial sums over this warp's rows of V_h'V_h and, for the second window if `cross`, of V_0'V_1.
DEVICE void reflector_products(Shared& s, const Job& job, int h, int first, float4 (*partial)[8][32], bool cross,
                               float4 (*partial_cross)[8][32], const Lane& me) {
  const uint32_t at = shared_address(&s.v[0][0][0][0]) + me.lane * 16;
  const uint32_t* lo = s.two_terms ? job.v_lo + (size_t)job.k * TILES * GROUPS * 32 : nullptr;
#pragma unroll 1
  for (int a = cross ? 0 : h; a <= h; a++) {
    float x[2][4][4];
#pragma unroll
    for (int i = 0; i < 32; i++) (&x[0][0][0])[i] = 0.f;
#pragma unroll 1
    for (int u = first / 2 + me.warp; u < TILES / 2; u += WARPS) {
      uint32_t a0[4], a1[4], b0[4], b1[4];
      load_matrix(a0, at + (2 * u) * 1024 + a * 512);
      load_matrix(a1, at + (2 * u + 1) * 1024 + a * 512);
      load_matrix(b0, at + (2 * u) * 1024 + h * 512);
      load_matrix(b1, at + (2 * u + 1) * 1024 + h * 512);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint32_t op[4] = {a0[2 * half], a0[2 * half + 1], a1[2 * half], a1[2 * half + 1]};
#pragma unroll
        for (int r = 0; r < 4; r++) mma_fp16(x[half][r], op, b0[r], b1[r]);
      }
      if (lo) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const uint32_t op[4] = {a0[2 * half], a0[2 * half + 1], a1[2 * half], a1[2 * half + 1]};
          const int g = 4 * a + 2 * half;
          const uint32_t op_lo[4] = {low_word(lo, 2 * u, g, me.lane), low_word(lo, 2 * u, g + 1, me.lane),
                                     low_word(lo, 2 * u + 1, g, me.lane), low_word(lo, 2 * u + 1, g + 1, me.lane)};
#pragma unroll
          for (int r = 0; r < 4; r++) {
            mma_fp16(x[half][r], op, low_word(lo, 2 * u, 4 * h + r, me.lane), low_word(lo, 2 * u + 1, 4 * h + r, me.lane));
            mma_fp16(x[half][r], op_lo, b0[r], b1[r]);
          }
        }
      }
    }
    float4(*to)[8][32] = a == h ? partial : partial_cross;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float(&y)[4] = x[i >> 2][i & 3];
      to[me.warp][i][me.lane] = make_float4(y[0], y[1], y[2], y[3]);
    }
  }
}

// out' = scale * (x' y) for 32 x 32: out[j][a] = scale * sum over m of x[j][m] y[m][a]
DEVICE void small_product(float (*out)[PAD], const float (*x)[PAD], const float (*y)[PAD], float scale, int thread) {
  const int j = thread >> 3, a = 4 * (thread & 7);
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 8
  for (int m = 0; m < IB; m++) {
    const float u = x[j][m];
    const float4 z = *(const float4*)&y[m][a];
    sum.x = fmaf(u, z.x, sum.x);
    sum.y = fmaf(u, z.y, sum.y);
    sum.z = fmaf(u, z.z, sum.z);
    sum.w = fmaf(u, z.w, sum.w);
  }
  *(float4*)&out[j][a] = make_float4(scale * sum.x, scale * sum.y, scale * sum.z, scale * sum.w);
}

// T of one window, transposed: the two 16 x 16 blocks on the diagonal by substitution (a half warp each, lane = row), then
// T12 = -T11 N12 T22 by everyone. Beside the substitution, for the second window of a panel: (T11 N12)' of the whole block.
DEVICE void invert_window(Triangle& tri, const float* tau, float (*tt)[PAD], const float (*t11t)[PAD], const Lane& me) {
  if (me.warp == 0) {
    const int o = me.lane & 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; i++) x[i] = i == (me.lane & 15) ? 1.f : 0.f;
#pragma unroll
    for (int st = 0; st < 16; st++) {
      float row[16];
#pragma unroll
      for (int u = (st + 1) & ~3; u < 16; u += 4) *(float4*)&row[u] = *(const float4*)&tri.n[o + st][o + u];
      x[st] *= tau[o + st];
      tt[o + st][me.lane] = x[st];
#pragma unroll
      for (int u = st + 1; u < 16; u++) x[u] = fmaf(-row[u], x[st], x[u]);
    }
  } else if (me.warp == 1) {
#pragma unroll
    for (int i = 0; i < 8; i++) tt[2 * i + (me.lane >> 4)][16 + (me.lane & 15)] = 0.f;
  }
  if (t11t && me.warp >= WARPS / 2) {
    small_product(tri.t12t, tri.n12t, t11t, 1.f, me.tid - THREADS / 2);
    small_product(tri.t12t, tri.n12t, t11t, 1.f, me.tid);
  }
  sync_all();
  {
    const int m = me.tid >> 4, col = me.tid & 15;
    float sum = 0.f;
#pragma unroll
    for (int u = 0; u < 16; u += 4) {
      const float4 x = *(const float4*)&tri.n[m][16 + u];
      const float4 y = *(const float4*)&tt[16 + col][16 + u];
      sum = fmaf(x.x, y.x, sum);
      sum = fmaf(x.y, y.y, sum);
      sum = fmaf(x.z, y.z, sum);
      sum = fmaf(x.w, y.w, sum);
    }
    tri.product[m][col] = sum;
  }
  sync_all();
  {
    const int r = me.tid & 15, col = me.tid >> 4;
    float sum = 0.f;
#pragma unroll
    for (int m = 0; m < 16; m++) sum = fmaf(tt[m][r], tri.product[m][col], sum);
    tt[16 + col][r] = -sum;
  }
  sync_all();
}

// T of one window: V'V, tau = 2/v'v, T = (diag(1/tau) + strictly upper V'V)^-1.
template <bool EXACT>
DEVICE void window_t(Shared& s, const Job& job, int h, int first, bool need_t, bool whole, const Lane& me) {
  Scratch& sc = scratch(s);
  float4(*cross)[8][32] = reinterpret_cast<float4(*)[8][32]>(&s.partial[0][0][0][0]);
  reflector_products(s, job, h, first, sc.partial, h == 1 && need_t, cross, me);
  sync_all();
  if (h == 1 && need_t && whole && job.k > 0 && me.tid == MOVER) {  // V's stage is free once it has been read
    bulk_store_read();
    prefetch_block(s, job, 0);
  }
  {
    const int row = (me.warp >> 2) * 16 + me.g, col = (me.warp & 3) * 8 + 2 * me.q;
    float4 y = sum_partials(sc.partial, me.warp, me.lane);
    const float z[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int a = row + 8 * (i >> 1), b = col + (i & 1);
      sc.tri.n[a][b] = z[i];
      if (a == b) {
        const float tau = z[i] > 0.f ? two_over(z[i]) : 0.f;
        const int at = job.k * NB + h * IB + a;
        s.tau[h * IB + a] = tau;
        if (at < job.n) job.tau[at] = tau;
      }
    }
    if (h == 1 && need_t) {
      y = sum_partials(cross, me.warp, me.lane);
      sc.tri.n12t[col][row] = y.x;
      sc.tri.n12t[col + 1][row] = y.y;
      sc.tri.n12t[col][row + 8] = y.z;
      sc.tri.n12t[col + 1][row + 8] = y.w;
    }
  }
  sync_all();
  if (need_t) invert_window(sc.tri, s.tau + h * IB, h == 0 ? s.t11t : sc.tri.t22t, h == 0 ? nullptr : s.t11t, me);
}

// T as operands: (st, r) is rows 16 st .. + 15, columns 8 r .. + 7 of it; the ones under the diagonal do not exist.
DEVICE void store_t_operand(Shared& s, int st, int r, const float (*tt)[PAD], const Lane& me) {
  const float* t = &tt[(8 * r + me.g) & 31][(16 * st + 2 * me.q) & 31];
  const int operand = st * (9 - st) + r - 2 * st;
  uint4 x;
  split(t[0], t[1], x.x, x.z);
  split(t[8], t[9], x.y, x.w);
  s.t[1][operand][me.lane] = x;
}

// ---------------------------------------------------------------- geqrf

// Windows one after the other: step 2k + h is window h of panel k. One loop body, so that every stage's code exists once:
// the instruction cache, not the arithmetic, was the limit when it did not.
template <bool EXACT>
DEVICE void factor_matrix(Shared& s, Job& job, const Lane& me) {
  Panel c;
  uint32_t phase = 0, low_blocks = 0;
  int step = -1;             // only loads
  int done = 0, before = 0;  // finished columns of the window, and how many there were one pass earlier
  if (me.tid == MOVER) {
    barrier_init(&s.full[0]);
    barrier_init(&s.full[1]);
    s.largest_sum = 0u;
    s.largest_column = 0u;
  }
//@TICK0()
#pragma unroll 1
  while (true) {
    const int k = step >> 1, h = step & 1;
    const int first = 8 * k + 4 * h;  // tile of the window's first row
    const bool last = k + 1 == job.panels, again = done > 0;
    const bool inside = h == 1 || again;  // the block to apply is this panel's own
    job.k = k;
    if (step >= 0) {
      if (!inside) {
        scale_panel(c, s, me);
        if (!last) prefetch_panel(job, k + 1, me);
      }
//@TICK(0)
#pragma unroll 1
      for (int j = inside ? k : 0; j < k + inside; j++) {
        const int stage = inside ? 0 : j & 1;
        const int terms = 1 + (low_blocks >> j & 1);
        if (!inside) {
          barrier_wait(&s.full[stage], phase >> stage & 1);
          phase ^= 1u << stage;
          sync_all();  // the other stage is free
          if (me.tid == MOVER) {
            if (j == 0) bulk_store_wait();  // block k - 1 is in memory and its stage free
            if (terms == 1 && j + 1 < k) prefetch_block(s, job, j + 1);
            if (terms == 2) fetch_low(s, job, 1 - stage, j);
          }
        }
        if (inside && terms == 2 && me.tid == MOVER) fetch_low(s, job, 1, j);
//@TICK(1)
        const float order = (float)job.n, error = V_ROUNDING * bits_float(s.largest_column);
        const float allowed = TWO_TERM_AT * 1.1920929e-7f * order * reciprocal_sqrt(order) * bits_float(s.largest_sum);
        // Where W and W' are rounded to one term beside C, all together must stay below the bound.
        const bool two_c = again || error > allowed, two_w = again || 2.f * error > allowed;
        const Part part = {again ? h : -1, h * IB + before, h * IB + done};
        apply_block(c, s, stage, inside ? 1 : stage, j, terms, two_c, two_w, again ? h == 1 : h == 0, part, phase, me);
        if (terms == 2) phase ^= 2u >> stage;
        if (!inside && terms == 2) {
          sync_all();
          if (j + 1 < k && me.tid == MOVER) prefetch_block(s, job, j + 1);
        }
//@TICK(2 + 7 * h)
      }
      sync_all();
//@TICK(3)
      if (me.ws >> 1 == h) {
        if (again) clear_done(c, first, done, me);
        stage_window(c, s, first, me);
      }
      // Beside it the warps of the other window store R, which stays in their registers until here.
      if (!again && (h == 1 || me.ws >= 2)) {
        const bool inside = me.ws >> 1 == h;  // of this panel's own first window
        store_r<EXACT>(c, s, job, inside ? k : 0, inside ? k + 1 : k, inside, me);
      }
    } else {
      load_panel<EXACT>(c, job, 0, me);
      sync_all();
      step++;
      continue;
    }
    sync_all();
//@TICK(4)
    const bool low_before = low_blocks >> k & 1;
    gram(s, job, h, first, done, me);
    if (s.two_terms) low_blocks |= 1u << k;
//@TICK(5)
    clear_second_half(s, job, h, low_before, me);
    recurrence(s, me);
    sync_all();
//@TICK(6)
    int good = IB;
    if (again || s.trip || !form_reflectors<EXACT, true>(s, job, h, first, 0, IB, low_before, me)) {
      good = safe_columns(s, done, me);
      form_some_reflectors<EXACT>(s, job, h, first, done, good, low_before, me);
    }
    const bool whole = good == IB;
    if (h == 1 && whole && !last) load_panel<EXACT>(c, job, k + 1, me);
//@TICK(14)
    if (h == 1) fence_async();
    sync_all();
    if (h == 1 && whole && !last && me.tid == MOVER) {
      s.largest_column = 0u;
      bulk_store(job.v + (size_t)(k * TILES + 8 * k) * GROUPS * 32, &s.v[0][8 * k][0][0], (TILES - 8 * k) * 1024);
      bulk_store_commit();
    }
//@TICK(7)
    const bool end = h == 1 && whole && last;
    window_t<EXACT>(s, job, h, first, !end, whole, me);
    if (end) break;
    Triangle& tri = scratch(s).tri;
    if (h == 1) {
      small_product(tri.product, tri.t22t, tri.t12t, -1.f, me.tid);
      sync_all();
    }
#pragma unroll 1
    for (int f = me.warp; f < T_OPERANDS; f += WARPS) {
      const int st = f < 8 ? 0 : f < 14 ? 1 : f < 18 ? 2 : 3;
      const int r = f - st * (9 - st) + 2 * st;
      if (r < 4 || h == 1) store_t_operand(s, st, r, r < 4 ? s.t11t : st < 2 ? tri.product : tri.t22t, me);
    }
    fence_async();
    sync_all();
    if (h == 1 && whole && me.tid == MOVER) {
      bulk_store(job.t + (size_t)k * T_OPERANDS * 128, &s.t[1][0][0], T_OPERANDS * 512);
      bulk_store_commit();
      if (k == 0) {  // V is where the next panel wants it
        bulk_store_wait();
        barrier_expect(&s.full[0], T_OPERANDS * 512);
        bulk_load(&s.t[0][0][0], job.t, T_OPERANDS * 512, &s.full[0]);
      }
    }
    before = whole ? 0 : done;
    done = whole ? 0 : good;
    step += whole;
//@TICK(8 + 2 * h)
  }
  job.flags = low_blocks;
//@TICKEND()
}
