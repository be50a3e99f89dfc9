import sys
b = open(sys.argv[1]).read()
def rep(x, y, n=1):
    global b
    assert b.count(x) == n, (b.count(x), x)
    b = b.replace(x, y)
rep('''    const uint32_t low = tile_descriptor(low_tiles - window * 4 * P_GROUP, 256);
''', '''    const uint32_t low = tile_descriptor(low_tiles - window * 4 * P_GROUP, 256);
    const uint32_t moved2 = first_lane((uint32_t)moved(4)), moved3 = first_lane((uint32_t)moved(6));
''')
rep('''const uint32_t x = high + moved(quad) + (8 * quad + 4 * u) * 64, y = low + moved(quad) + quad''', '''const uint32_t m = quad / 2 == 3 ? moved3 : quad / 2 == 2 ? moved2 : 0u;
          const uint32_t x = high + m + (8 * quad + 4 * u) * 64, y = low + m + quad''')
rep(''', other = inside ? 0u : 4 * P_GROUP / 16;
''', ''', other = inside ? 0u : 4 * P_GROUP / 16;
    const uint32_t moved2 = first_lane((uint32_t)moved(4)), moved3 = first_lane((uint32_t)moved(6));
''')
rep('''        const int i = 4 * quad;
        wgmma_fence();
#pragma unroll
        for (int st = 0; st < 4; st++) {
          wgmma_32<1, 256>''', '''        const int i = 4 * quad;
        const uint32_t m = quad / 2 == 3 ? moved3 : quad / 2 == 2 ? moved2 : 0u;
        wgmma_fence();
#pragma unroll
        for (int st = 0; st < 4; st++) {
          wgmma_32<1, 256>''')
rep('low + moved(quad) + quad / 2 * 1024 + quad', 'low + m + quad / 2 * 1024 + quad')
rep('wh[st], high + moved(quad) + 8', 'wh[st], high + m + 8')
open(sys.argv[2], 'w').write(b)
