def apply(B):
    B.cut('''#pragma unroll 1
  for (int term = 0; term < terms; term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
    if (term == 1) barrier_wait''','''#else
#pragma unroll
    for (int st = 0; st < OWN / 2; st++) {''','''  // Passes: C's high term with V's high one, C's low one with it, C's high one with V's low one.
#pragma unroll 1
  for (int pass = 0; pass < (terms == 2 ? 3 : two_c ? 2 : 1); pass += pass == 0 && !two_c ? 2 : 1) {
    const uint32_t tiles = shared_address(&s.v[stage ^ (pass >> 1)][me.wg][0][0]);
    if (pass == 2) barrier_wait(&s.full[1 - stage], phase >> (1 - stage) & 1);
#if WARPGROUP_MMA
    const uint32_t v_tiles = tile_descriptor(tiles, 2048);
    // No overlap within a warpgroup: while one rounds C, the other one multiplies.
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        uint32_t a[2][4];
#pragma unroll
        for (int z = 0; z < 8; z++) {
          float(&x)[4] = c[4 * quad + (z >> 1)];
          a[z >> 2][z & 3] = pack_half2(x[(z & 1) * 2], x[(z & 1) * 2 + 1]);
        }
        if (pass == 1) {
#pragma unroll
          for (int z = 0; z < 8; z++) {
            float(&x)[4] = c[4 * quad + (z >> 1)];
            const float2 f = unpack_half2(a[z >> 2][z & 3]);
            a[z >> 2][z & 3] = pack_half2(x[(z & 1) * 2] - f.x, x[(z & 1) * 2 + 1] - f.y);
          }
        }
        wgmma_fence();
#pragma unroll
        for (int u = 0; u < 2; u++) {
          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
''')
    B.rep('''          for (int r = 0; r < 4; r++) mma_fp16(w[4 * half + r], hi, b0[r], b1[r]);
#pragma unroll
          for (int r = 0; r < 4; r++) {
            if (two_c) mma_fp16(w[4 * half + r], lo, b0[r], b1[r]);
          }
''','''          for (int r = 0; r < 4; r++) {
            if (pass == 1) {
              mma_fp16(w[4 * half + r], lo, b0[r], b1[r]);
            } else {
              mma_fp16(w[4 * half + r], hi, b0[r], b1[r]);
            }
          }
''')
