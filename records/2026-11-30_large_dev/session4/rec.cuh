// ---------------------------------------------------------------- 4c. 64 reflectors from one 64 x 64 Gram matrix, by blocks of 8
// G = P'P = R'R (upper half), A = the 64 pivot rows, A - R~ = L U with R~ = R with signs, X = U^-T, so that V = P X^T below the pivot rows.
// All three live in the accumulators of 8 warps, a column tile of 8 each, and are updated by mma in three tf32 products (22 bits). A step:
//   publish  the next 8 rows of G, A and X and the next 8 columns of A go to shared memory, [column][8], so that a lane reads its own
//            column by two loads and ldmatrix reads the solved ones as operands
//   solve    two warps, a lane a column: every lane factors the 8 x 8 blocks on the diagonal itself (no exchange in the chain of pivots)
//            and applies each pivot to its own column of R~ and U and to its row of L or column of X (L has what X has not yet)
//   update   G -= R'R, A -= L U where columns are open, X -= U'X where they are done
// Fails (flag) where a pivot has cancelled; then the panel goes the careful way.
constexpr int LB = 12, BLOCK = 64 * LB;  // floats of a column of a block (ldmatrix and 16-byte accesses free of conflicts) and of a block
constexpr float PIVOT_MIN64 = 1e-4f;   // of the column's own norm^2
constexpr float NORM_MIN64 = 1.f / 64; // norm^2 of a column whose largest entry was in [8,16): below it the second fp16 term loses bits
struct Block64 {
  float *r, *lx;                // solved, 8 blocks each: R~, with L below the diagonal of its own block; L right of X
  float *u, *gin, *ain, *xin;   // one block each: U of this step; rows and columns as they come
  const float *threshold;
  int *flag;
};
__device__ __forceinline__ float entry(const float *m, int i, int j) { return m[(i >> 3) * BLOCK + j * LB + (i & 7)]; }
__device__ __forceinline__ void read8(float (&x)[8], const float *p) {
  const float4 v = *(const float4 *)p, w = *(const float4 *)(p + 4);
  x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w, x[4] = w.x, x[5] = w.y, x[6] = w.z, x[7] = w.w;
}
__device__ __forceinline__ void write8(float *p, const float (&x)[8]) {
  *(float4 *)p = make_float4(x[0], x[1], x[2], x[3]);
  *(float4 *)(p + 4) = make_float4(x[4], x[5], x[6], x[7]);
}
__device__ __forceinline__ void solve_block(const Block64 &z, const int b, const int e, const int lane) {
  const int i0 = 8 * b;
  float g[8][8], a[8][8], thr[8], gc[8], ac[8], xc[8]; // [column][row] on the diagonal
  UNROLL for (int c = 0; c < 8; c++) {
    read8(g[c], z.gin + (i0 + c) * LB);
    read8(a[c], z.ain + (i0 + c) * LB);
  }
  read8(thr, z.threshold + i0);
  read8(gc, z.gin + e * LB);
  read8(ac, z.ain + e * LB);
  read8(xc, z.xin + e * LB);
  bool ok = g[0][0] > thr[0];
  float rs = fast_rsqrt(g[0][0]);
  UNROLL for (int u = 0; u < 8; u++) {
    const float r = g[u][u] * rs;
    // R~_uu has the sign opposite to that of the eliminated pivot
    const float sign = a[u][u] >= 0.f ? -1.f : 1.f, iv = fast_rcp(fmaf(-sign, r, a[u][u])), srs = sign * rs;
    UNROLL for (int v = u + 1; v < 8; v++) g[v][u] *= srs;
    if (u < 7) { // one column ahead of the elimination
      g[u + 1][u + 1] = fmaf(-g[u + 1][u], g[u + 1][u], g[u + 1][u + 1]);
      ok = ok && g[u + 1][u + 1] > thr[u + 1];
      rs = fast_rsqrt(g[u + 1][u + 1]);
    }
    UNROLL for (int v = u + 1; v < 8; v++)
      UNROLL for (int c = v; c < 8; c++)
        if (c > u + 1) g[c][v] = fmaf(-g[v][u], g[c][u], g[c][v]);
    UNROLL for (int v = u + 1; v < 8; v++) {
      a[v][u] -= g[v][u];
      a[u][v] *= iv;
    }
    UNROLL for (int v = u + 1; v < 8; v++)
      UNROLL for (int c = u + 1; c < 8; c++) a[c][v] = fmaf(-a[u][v], a[c][u], a[c][v]);
    gc[u] *= srs;
    ac[u] -= gc[u];
    xc[u] *= iv;
    UNROLL for (int v = u + 1; v < 8; v++) {
      gc[v] = fmaf(-g[v][u], gc[u], gc[v]);
      ac[v] = fmaf(-a[u][v], ac[u], ac[v]);
      xc[v] = fmaf(-a[v][u], xc[u], xc[v]);
    }
  }
  write8(z.u + e * LB, ac);
  write8(z.lx + b * BLOCK + e * LB, xc);
  write8(z.r + b * BLOCK + e * LB, gc);
  __syncwarp();
  if (e == (i0 & ~31)) { // L of the block itself, below R~
    float *l = z.r + b * BLOCK + i0 * LB;
    UNROLL for (int c = 0; c < 7; c++)
      UNROLL for (int v = c + 1; v < 8; v++) l[c * LB + v] = a[c][v];
    }
  if (e == 0 && !ok) *z.flag = 1;
}
// D (16x8) += A (16x8, tf32, rows) B (8x8, tf32, columns)
__device__ __forceinline__ void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// x = high + low, 11 bits each
__device__ __forceinline__ void split_tf32(uint32_t x, uint32_t &high, uint32_t &low) {
  high = x & 0xffffe000u;
  low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high));
}
// warp w: rows 16 i.. of columns 8 w..; g: tiles of G, i <= w / 2; a: tiles of A while w is to come, then of X
__device__ __forceinline__ void publish_block(const Block64 &z, const int b, const int w, const int lane, const float (&g)[4][4],
                                              float (&a)[4][4]) {
  const int gr = lane >> 2, q = lane & 3;
  float *gin = z.gin + (8 * w + 2 * q) * LB + gr, *in = (w < b ? z.xin : z.ain) + (8 * w + 2 * q) * LB + gr;
  UNROLL for (int i = 0; i < 4; i++)
    UNROLL for (int h = 0; h < 2; h++)
      if (2 * i + h == b) {
        in[0] = a[i][2 * h];
        in[LB] = a[i][2 * h + 1];
        if (w >= b) {
          gin[0] = g[i][2 * h];
          gin[LB] = g[i][2 * h + 1];
        }
      }
  if (w == b)
    UNROLL for (int i = 0; i < 4; i++)
      UNROLL for (int h = 0; h < 2; h++) {
        float2 x = make_float2(a[i][2 * h], a[i][2 * h + 1]);
        if (2 * i + h == b) x = make_float2(gr == 2 * q, gr == 2 * q + 1);
        if (2 * i + h >= b) *(float2 *)(z.xin + (16 * i + 8 * h + gr) * LB + 2 * q) = x;
        a[i][2 * h] = a[i][2 * h + 1] = 0.f;
      }
}
__device__ __forceinline__ void update_block(const Block64 &z, const int b, const int w, const int lane, float (&g)[4][4],
                                             float (&a)[4][4]) {
  const bool done = w <= b;
  const uint32_t lx = smem_addr(z.lx + b * BLOCK), r = smem_addr(z.r + b * BLOCK), u = smem_addr(z.u);
  uint32_t bh[4], bl[4], right[4]; // columns 8 w..: of U or X, of R
  ldsm4(right, ((lane & 16) ? r : done ? lx : u) + ((8 * w + (lane & 7)) * LB + (lane & 8) / 2) * 4);
  const uint32_t at = ((lane & 15) * LB + (lane >> 4) * 4) * 4, la = (done ? u : lx) + at, lg = r + at;
  UNROLL for (int i = 0; i < 4; i++) {
    split_tf32(right[i] ^ 0x80000000u, bh[i], bl[i]);
  }
  UNROLL for (int i = 0; i < 4; i++) {
    if (2 * i + 1 <= b) continue;
    uint32_t x[4], h[4], l[4];
    ldsm4(x, la + i * 16 * LB * 4);
    UNROLL for (int v = 0; v < 4; v++) split_tf32(x[v], h[v], l[v]);
    mma_tf32(a[i], l, bh[0], bh[1]);
    mma_tf32(a[i], h, bl[0], bl[1]);
    mma_tf32(a[i], h, bh[0], bh[1]);
    if (!done && 2 * i <= w) {
      ldsm4(x, lg + i * 16 * LB * 4);
      UNROLL for (int v = 0; v < 4; v++) split_tf32(x[v], h[v], l[v]);
      mma_tf32(g[i], l, bh[2], bh[3]);
      mma_tf32(g[i], h, bl[2], bl[3]);
      mma_tf32(g[i], h, bh[2], bh[3]);
    }
  }
}
