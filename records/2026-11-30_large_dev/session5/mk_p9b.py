# of p9 only the short loop for the pivot rows of V; updates in few, wide basic blocks
i=t.index('// L of A - R~ = L U below the diagonal\n'); 
t=t[:i]+'''// row i of L (A - R~ = L U) and, where (i, j) lies in a 4 x 4 block on the diagonal or above, of R~: columns j .. j + 3, a multiple of 4
__device__ __forceinline__ void pivot_row(const Block64 &z, int i, int j, float (&x)[4]) {
  const bool l = (i >> 2) > (j >> 2);
  const float *p = l ? z.lx + (j >> 3) * BLOCK + i * LB + (j & 7) : z.r + block_r(i >> 3) + j * LB + (i & 7);
  UNROLL for (int e = 0; e < 4; e++) x[e] = p[l ? e : e * LB];
}
'''+t[t.index('// Upper 16 x 16 blocks (i, j)'):]
i=t.index('      UNROLL for (int t = 0; t < 64 / NW; t++) {\n        const int f = t * NW + w, j ='); j=t.index('    fence_shared(); // V, for the copies',i)
t=t[:i]+'''      ROLL for (int f = tid; f < 512; f += NT) {
        const int i = (f & 31) * 2, j = (f >> 5) * 4;
        float x[4], y[4];
        pivot_row(z, i, j, x);
        pivot_row(z, i + 1, j, y);
        UNROLL for (int e = 0; e < 4; e++) {
          const int at = ((j + e) * LD + above * 64 + i) * 2;
          uint32_t high, low;
          split(i > j + e ? x[e] : i == j + e, i + 1 > j + e ? y[e] : i + 1 == j + e, high, low);
          *(uint32_t *)(sm + P::VSM + at) = high;
          if (TWO) *(uint32_t *)(sm + P::VLOW + at) = low;
        }
      }
    }
'''+t[j:]
i=t.index('  // row tiles t, t + 1 of one matrix\n'); j=t.index('// row i of L (A - R~')
t=t[:i]+'''  // all loads, then the products by rounds: one after the other they would wait for each other
  auto rank8 = [&](auto tiles, auto both) {
    constexpr int N = decltype(tiles)::value, M = decltype(both)::value ? 2 * N : N;
    uint32_t x[M][4], l[M][4];
    UNROLL for (int i = 0; i < M; i++) ldsm4(x[i], (i < N ? la : lg) + i % N * 16 * LB * 4);
    UNROLL for (int i = 0; i < M; i++)
      UNROLL for (int v = 0; v < 4; v++) split_tf32(x[i][v], x[i][v], l[i][v]);
    UNROLL for (int term = 0; term < 3; term++)
      UNROLL for (int i = 0; i < M; i++) {
        const uint32_t *right = (term == 1 ? bl : bh) + (i < N ? 0 : 2);
        mma_tf32(i < N ? a[i % N] : g[i % N], term == 0 ? l[i] : x[i], right[0], right[1]);
      }
  };
  if (first < 2) { // (tiles past the last one and those of G left of the diagonal collect what nobody reads)
    if (done) rank8(Len<4>(), std::false_type());
    else rank8(Len<4>(), std::true_type());
  } else {
    if (done) rank8(Len<2>(), std::false_type());
    else rank8(Len<2>(), std::true_type());
  }
}
'''+t[j:]
