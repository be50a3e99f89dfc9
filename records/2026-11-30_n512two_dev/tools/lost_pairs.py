# p113.py IN OUT [update]: on top of 110: W by two quads: the second is split while the first is multiplied; update by two quads a wait
import sys, re
b = open(sys.argv[1]).read()
def rep(x, y, n=1):
    global b
    assert b.count(x) == n, (b.count(x), x)
    b = b.replace(x, y)
i = b.index('''#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        if (!inside && quad % 2 == 0) barrier_wait''')
j = b.index('#else\n', i)
b = b[:i] + '''    const auto part_of = [&](int quad, uint32_t (&hi)[2][4], uint32_t (&lo)[2][4]) {
#pragma unroll
      for (int z = 0; z < 8; z++) {
        float(&x)[4] = c[4 * quad + (z >> 1)];
        split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z >> 2][z & 3], lo[z >> 2][z & 3]);
      }
    };
    const auto multiply = [&](int quad, const uint32_t (&hi)[2][4], const uint32_t (&lo)[2][4]) {
      wgmma_fence();
#pragma unroll
      for (int u = 0; u < 2; u++) {
        const uint32_t x = high + (8 * quad + 4 * u) * 64, y = low + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;
        wgmma_64<0, 2048>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], y);
        wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], lo[u], x);
        wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], x);
      }
      wgmma_commit();
    };
    // Two at a time: the second is split while the first is multiplied.
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad += 2) {
      if (quad >= quad0) {
        if (!inside) barrier_wait(&s.full[quad / 2], phase >> (quad / 2) & 1);
        uint32_t hi[2][4], lo[2][4], hi2[2][4], lo2[2][4];
        part_of(quad, hi, lo);
        multiply(quad, hi, lo);
        part_of(quad + 1, hi2, lo2);
        multiply(quad + 1, hi2, lo2);
        wgmma_wait();
      } else if (quad + 1 == quad0) {
        uint32_t hi[2][4], lo[2][4];
        part_of(quad + 1, hi, lo);
        multiply(quad + 1, hi, lo);
        wgmma_wait();
      }
    }
  }
''' + b[j:]
if len(sys.argv) > 3:
    i = b.index('''#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        const int i = 4 * quad;
        wgmma_fence();
#pragma unroll
        for (int st = 0; st < 4; st++) {
          wgmma_32<1, 256>''')
    j = b.index('#else\n', i)
    b = b[:i] + '''    const auto update = [&](int quad) {
      const int i = 4 * quad;
#pragma unroll
      for (int st = 0; st < 4; st++) {
        wgmma_32<1, 256>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st],
                         low + quad / 2 * 1024 + quad % 2 * 64 + (st & 1) * (2 * P_GROUP / 16) + (st < 2 ? 0u : other));
      }
#pragma unroll
      for (int z = 0; z < 8; z++) {
        const int st = z & 3;
        wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], z < 4 ? wl[st] : wh[st], high + 8 * quad * 64 + st * 16);
      }
    };
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad += 2) {
      if (quad >= quad0) {
        wgmma_fence();
        update(quad);
        update(quad + 1);
        wgmma_commit();
        wgmma_wait();
      } else if (quad + 1 == quad0) {
        wgmma_fence();
        update(quad + 1);
        wgmma_commit();
        wgmma_wait();
      }
      release_chunk(s, job, next, quad / 2, me);
    }
''' + b[j:]
open(sys.argv[2], 'w').write(b)
