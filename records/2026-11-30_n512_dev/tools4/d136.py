def w(B):
    B.cut('''    // No overlap within a warpgroup: while one rounds C''','''#else
#pragma unroll
    for (int st = 0; st < OWN / 2; st++) {''','''    // Two groups of tiles at once. Where the first of them is finished its rows of C count as zeros (V's are finite there).
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad += 2) {
      if (quad + 1 >= quad0) {
        uint32_t a[4][4];
#pragma unroll
        for (int z = 0; z < 16; z++) {
          float(&x)[4] = c[4 * quad + (z >> 1)];
          a[z >> 2][z & 3] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
        }
        if (pass == 1) {
#pragma unroll
          for (int z = 0; z < 16; z++) {
            float(&x)[4] = c[4 * quad + (z >> 1)];
            const float2 f = unpack_half2(a[z >> 2][z & 3]);
            a[z >> 2][z & 3] = pack_half2(x[(z & 1) * 2] - f.x, x[(z & 1) * 2 + 1] - f.y);
          }
        }
        if (quad < quad0) {
#pragma unroll
          for (int z = 0; z < 8; z++) a[z >> 2][z & 3] = 0u;
        }
        wgmma_fence();
#pragma unroll
        for (int u = 0; u < 4; u++) {
          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
''')
    B.rep('''DEVICE void prefetch_block(Shared& s, const Job& job, int j) {  // one thread
  const int stage = j & 1;
  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes + T_OPERANDS * 512);
''','''DEVICE void prefetch_block(Shared& s, const Job& job, int j) {  // one thread
  const int stage = j & 1;
  const int bytes = (TILES - 8 * j) * 1024, above = j == 1 ? 8 * 1024 : 0;
  barrier_expect(&s.full[stage], bytes + above + T_OPERANDS * 512);
  if (j == 1) {  // V_1's stage has been scratch: any finite numbers above it
    bulk_load(&s.v[stage][0][0][0], job.v, above, &s.full[stage]);
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
          wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], v_rows + 8 * quad * 64 + st * 16);
          wgmma_32<1, 2048>(c[(i + 4) % OWN], c[(i + 5) % OWN], c[(i + 6) % OWN], c[(i + 7) % OWN], wh[st],
                            v_rows + 8 * (quad + 1) * 64 + st * 16);
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
def low(B):
    B.rep('''  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes);
''','''  const int bytes = (TILES - 8 * j) * 1024, above = j & 1 ? 8 * 1024 : 0;
  barrier_expect(&s.full[stage], bytes + above);
  if (above > 0) bulk_load(&s.v[stage][8 * (j - 1)][0][0], job.v, above, &s.full[stage]);  // any finite numbers
''')
