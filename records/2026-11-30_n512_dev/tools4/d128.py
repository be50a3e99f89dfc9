def w(B):
    B.cut('''      } else if (quad >= quad0) {
        uint32_t hi[2][4];
''','''#else
#pragma unroll
    for (int st = 0; st < OWN / 2; st++) {''','''      } else if (!two_c && (quad % 2 == 0 ? quad >= quad0 : quad == quad0)) {
        // two groups of tiles, the second one packed while the first is multiplied; or the odd one that comes first
#pragma unroll
        for (int part = 0; part < 2 - quad % 2; part++) {
          uint32_t hi[2][4];
#pragma unroll
          for (int z = 0; z < 8; z++) {
            float(&x)[4] = c[4 * (quad + part) + (z >> 1)];
            hi[z >> 2][z & 3] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
          }
          wgmma_fence();
#pragma unroll
          for (int u = 0; u < 2; u++) {
            wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], v_tiles + (8 * (quad + part) + 4 * u) * 64);
          }
          wgmma_commit();
        }
        wgmma_wait();
      }
    }
''')
def u(B):
    B.cut('''      if (quad >= quad0) {
        const int i = 4 * quad;
        wgmma_fence();
''','''#else
    // four tiles at a time''','''      const int i = 4 * quad;
      if (quad % 2 == 0 && quad >= quad0) {  // two groups of tiles at once
        wgmma_fence();
#pragma unroll
        for (int st = 0; st < 4; st++) {
          wgmma_64<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], c[(i + 4) % OWN], c[(i + 5) % OWN], c[(i + 6) % OWN], c[(i + 7) % OWN],
                            wh[st], v_rows + 8 * quad * 64 + st * 16);
        }
        wgmma_commit();
        wgmma_wait();
      } else if (quad % 2 == 1 && quad == quad0) {  // the odd one that comes first
        wgmma_fence();
#pragma unroll
        for (int st = 0; st < 4; st++) {
          wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], v_rows + 8 * quad * 64 + st * 16);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
''')
