def apply(B):
    rep=B.rep
    # W: two quads a wait in one term
    B.cut('''      } else if (quad >= quad0) {
        uint32_t hi[2][4];
''','''#else
#pragma unroll
    for (int st = 0; st < OWN / 2; st++) {''','''      } else if (!two_c && (quad % 2 == 0 ? quad >= quad0 : quad == quad0)) {  // two groups, or the odd one that comes first
        constexpr int STEPS = 4;
        const int steps = quad % 2 == 0 ? STEPS : 2;
        uint32_t hi[STEPS][4];
#pragma unroll
        for (int z = 0; z < 4 * steps; z++) {
          float(&x)[4] = c[4 * quad + (z >> 1)];
          hi[z >> 2][z & 3] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
        }
        wgmma_fence();
#pragma unroll
        for (int u = 0; u < steps; u++) {
          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], v_tiles + (8 * quad + 4 * u) * 64);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
''')
    # update by 64 rows
    B.cut('''      if (quad >= quad0) {
        const int i = 4 * quad;
        if (two_w) {''','''#else
    // four tiles at a time''','''      const int i = 4 * quad;
      const uint32_t b = v_rows + 8 * quad * 64;
      if (quad % 2 == 0 && quad >= quad0) {  // two groups at once
        if (two_w) {
          wgmma_fence();
#pragma unroll
          for (int z = 0; z < 8; z++) wgmma_64<1, 2048>(ROWS_OF_8(c, i), z < 4 ? wl[z & 3] : wh[z & 3], b + (z & 3) * 16);
          wgmma_commit();
          wgmma_wait();
        } else {
          wgmma_fence();
#pragma unroll
          for (int z = 0; z < 4; z++) wgmma_64<1, 2048>(ROWS_OF_8(c, i), wh[z], b + z * 16);
          wgmma_commit();
          wgmma_wait();
        }
      } else if (quad % 2 == 1 && quad == quad0) {  // the odd one that comes first
        if (two_w) {
          wgmma_fence();
#pragma unroll
          for (int z = 0; z < 8; z++) wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], z < 4 ? wl[z & 3] : wh[z & 3], b + (z & 3) * 16);
          wgmma_commit();
          wgmma_wait();
        } else {
          wgmma_fence();
#pragma unroll
          for (int z = 0; z < 4; z++) wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[z], b + z * 16);
          wgmma_commit();
          wgmma_wait();
        }
      }
    }
''')
    rep('''struct Part { int window''','''#define ROWS_OF_8(c, i) c[i], c[i + 1], c[i + 2], c[i + 3], c[i + 4], c[i + 5], c[i + 6], c[i + 7]

struct Part { int window''')
