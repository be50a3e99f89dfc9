# p110.py IN OUT: on top of 108: nothing is fetched for a panel of zeros
import sys, re
b = open(sys.argv[1]).read()
def rep(x, y):
    global b
    assert b.count(x) == 1, (b.count(x), x)
    b = b.replace(x, y)
rep('''        if (FP32_CLASS && s.largest_column == 0u) {  // C is zero and stays so
#pragma unroll 1
          for (int i = inside ? CHUNKS : j >> 1; i < CHUNKS; i++) {
            barrier_wait(&s.full[i], phase >> i & 1);
            release_chunk(s, job, next_j, i, me);
          }
        } else {
          apply_block(''', '''        if (FP32_CLASS && s.largest_column == 0u) {  // C is zero and stays so
          if (!inside) {  // block 0 is on its way
#pragma unroll 1
            for (int i = 0; i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
            phase ^= 15u;
            if (me.tid == MOVER) bulk_store_read();  // T's stage is free
          }
          break;
        } else {
          apply_block(''')
rep('''        const uint32_t high = tile_descriptor''', '''        const uint32_t high = tile_descriptor''') if False else None
rep('''    const uint32_t low = tile_descriptor(low_tiles - window * 4 * P_GROUP, 256);
#pragma unroll''', '''    const uint32_t low = tile_descriptor(low_tiles - window * 4 * P_GROUP, 256);
    if (!inside) barrier_wait(&s.full[quad0 >> 1], phase >> (quad0 >> 1) & 1);
//@TICK(17)
#pragma unroll''')
rep('''        if (!inside && (quad % 2 == 0 || quad == quad0)) barrier_wait''', '''        if (!inside && quad % 2 == 0) barrier_wait''')
open(sys.argv[2], 'w').write(b)
