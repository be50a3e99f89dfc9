# p111.py IN OUT: on top of 110: chunks that would wait for the block before lie where that one does not
import sys, re
b = open(sys.argv[1]).read()
def rep(x, y, n=1):
    global b
    assert b.count(x) == n, (b.count(x), x)
    b = b.replace(x, y)
rep('  unsigned long long full[4];        // mbarriers of the stages; FP32_CLASS: of the chunks', '  unsigned long long full[8];        // mbarriers of the stages; FP32_CLASS: of the chunks, blocks in turn')
rep('    for (int i = 0; i < 4; i++) barrier_init(&s.full[i]);', '    for (int i = 0; i < 8; i++) barrier_init(&s.full[i]);')
i = b.index('// FP32_CLASS: blocks in place, high'); j = b.index("// W'^T = W^T T as d + rest;")
b = b[:i] + '''// FP32_CLASS: a block by chunks of 16 tiles, high terms in v[0], low ones in v[1], T in turn. A block is shorter than the one
// before: what of it fits beside that one lies there, so that it can be fetched in time. Chunk i of block j is in place i, but
DEVICE int chunk_place(int j, int i) { return (j & 1) && i == 3 && j >= 3 ? 0 : (j & 1) && i == 2 && j >= 5 ? 1 : i; }
DEVICE unsigned long long* chunk_full(Shared& s, int j, int i) { return &s.full[4 * (j & 1) + i]; }
DEVICE void expect_chunk(Shared& s, int j, int i, bool high) {  // one thread
  const int tile = 8 * j > 16 * i ? 8 * j : 16 * i;
  barrier_expect(chunk_full(s, j, i), 16384 + (high ? (16 * i + 16 - tile) * 1024 : 0) + (i == j >> 1 ? T_OPERANDS * 512 : 0));
}
DEVICE void fetch_high_chunk(Shared& s, const Job& job, int j, int i) {
  const int tile = 8 * j > 16 * i ? 8 * j : 16 * i;
  bulk_load(&s.v[0][tile + 16 * (chunk_place(j, i) - i)][0][0], job.v + (size_t)(j * TILES + tile) * GROUPS * 32,
            (16 * i + 16 - tile) * 1024, chunk_full(s, j, i));
  if (i == j >> 1) bulk_load(&s.t[j & 1][0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, chunk_full(s, j, i));
}
DEVICE void fetch_low_chunk(Shared& s, const Job& job, int j, int i) {
  uint32_t* to = &s.v[1][16 * chunk_place(j, i)][0][0];
  tensor_load_low(to, job.low_map, 16 * i, job.low_row + 8 * j, chunk_full(s, j, i));
  tensor_load_low(to + 2048, job.low_map, 16 * i, job.low_row + 8 * j + 4, chunk_full(s, j, i));
}
// Chunk i of the block before `next` is not needed any more (by this warp): what comes into its place, or with the last one into
// what the next block leaves free.
DEVICE void release_chunk(Shared& s, const Job& job, int next, int i, const Lane& me) {
  const bool here = i >= next >> 1 && chunk_place(next, i) == chunk_place(next - 1, i);
  if (next < 0 || !(here || i == CHUNKS - 1)) return;
  if (me.warp == WARPS - 1) {
    bar_sync(6 + i, THREADS);
    if (me.tid == MOVER) {
      const int last = i == CHUNKS - 1 && next >= 2 && next + 1 < job.k ? next + 1 : next;
#pragma unroll 1
      for (int j = next; j <= last; j++) {
#pragma unroll 1
        for (int u = j == next ? i : j >> 1; u < CHUNKS; u++) {
          if (j == next ? !here || u > i : chunk_place(j, u) == chunk_place(next, u)) continue;
          if (j == 1 && u == 0) bulk_store_read();  // T's stage is free
          if (j + 1 == job.k) bulk_store_wait();    // block k - 1 is in memory
          expect_chunk(s, j, u, true);
          fetch_high_chunk(s, job, j, u);
          fetch_low_chunk(s, job, j, u);
        }
      }
    }
  } else {
    bar_arrive(6 + i, THREADS);
  }
}

''' + b[j:]
rep('''            for (int i = 0; i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
            phase ^= 15u;''', '''            for (int i = 0; i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
            phase ^= 15u;''')
rep('phase ^= FP32_CLASS ? 15u << (j >> 1) & 15u : 2u >> stage;', 'phase ^= FP32_CLASS ? (15u << (j >> 1) & 15u) << 4 * (j & 1) : 2u >> stage;')
# apply_block
rep('''    if (!inside) barrier_wait(&s.full[quad0 >> 1], phase >> (quad0 >> 1) & 1);
''', '''    if (!inside) barrier_wait(&s.full[turn + (quad0 >> 1)], phase >> (turn + (quad0 >> 1)) & 1);
''')
rep('''        if (!inside && quad % 2 == 0) barrier_wait(&s.full[quad / 2], phase >> (quad / 2) & 1);
''', '''        if (!inside && quad % 2 == 0) barrier_wait(&s.full[turn + quad / 2], phase >> (turn + quad / 2) & 1);
''')
rep('''    for (int i = quad0 >> 1; i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
''', '''    for (int i = quad0 >> 1; i < CHUNKS; i++) barrier_wait(&s.full[turn + i], phase >> (turn + i) & 1);
''')
rep('''  const int window = part.window == 1;
''', '''  const int window = part.window == 1, turn = 4 * (quad0 & 1);
  const auto moved = [&](int quad) { return FP32_CLASS && !inside ? (chunk_place(quad0, quad / 2) - quad / 2) * 1024 : 0; };  // in 16 bytes
''')
rep('const uint32_t x = high + (8 * quad + 4 * u) * 64, y = low + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;',
    'const uint32_t x = high + moved(quad) + (8 * quad + 4 * u) * 64, y = low + moved(quad) + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;')
rep('''                           low + quad / 2 * 1024 + quad''', '''                           low + moved(quad) + quad / 2 * 1024 + quad''')
rep('''z < 4 ? wl[st] : wh[st], high + 8 * quad * 64 + st * 16);''', '''z < 4 ? wl[st] : wh[st], high + moved(quad) + 8 * quad * 64 + st * 16);''')
# mma.sync
rep('load_matrix(b0, tiles + (4 * st) * 1024', 'load_matrix(b0, tiles + moved(st / 2) * 16 + (4 * st) * 1024')
rep('load_matrix(b1, tiles + (4 * st + 2) * 1024', 'load_matrix(b1, tiles + moved(st / 2) * 16 + (4 * st + 2) * 1024')
rep('+ p_offset(4 * st);', '+ p_offset(4 * st) + moved(st / 2) * 16;')
rep('load_matrix_transposed(b[u], tiles + (8 * quad + 2 * u) * 1024', 'load_matrix_transposed(b[u], tiles + moved(quad) * 16 + (8 * quad + 2 * u) * 1024')
rep('+ p_offset(8 * quad + 2 * u));', '+ p_offset(8 * quad + 2 * u) + moved(quad) * 16);')
open(sys.argv[2], 'w').write(b)
