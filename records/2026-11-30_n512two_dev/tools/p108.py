# p108.py IN OUT: on top of p106: hi and low in place (v[0], v[1]), by chunks of 128 rows; all products of a quad together
import sys, re
b = open(sys.argv[1]).read()
def rep(x, y, n=1):
    global b
    parts = x.split('\n')
    m = list(re.finditer('\n(?://@.*\n)*'.join(re.escape(p) for p in parts), b))
    assert len(m) == n, (len(m), x)
    for q in reversed(m): b = b[:q.start()] + y + b[q.end():]

# layout
i = b.index('constexpr uint32_t LOW_GROUP'); j = b.index('DEVICE Scratch& scratch(Shared& s)')
b = b[:i] + '''// FP32_CLASS: P and the low terms lie by chunks of 16 tiles, 16 KB: of P high and low term of 4 groups, of V's low term 8 groups.
constexpr int CHUNKS = TILES / 16;
constexpr int P_GROUP = FP32_CLASS ? 2048 : 128, P_LOW = FP32_CLASS ? 4 * P_GROUP : TILES * 512;  // bytes
DEVICE int p_offset(int tile) { return FP32_CLASS ? (tile >> 4) * 16384 + (tile & 15) * 128 : tile * 512; }
DEVICE uint32_t* p_tile(Shared& s, int term, int tile, int group) {
  return &s.p[0][0][0][0] + (p_offset(tile) + term * P_LOW + group * P_GROUP) / 4;
}
''' + b[j:]
b = b.replace('  return (row >> 3) * LOW_GROUP + (row & 7) * 16;', '  return (row >> 3) * P_GROUP + (row & 7) * 16;')
rep('constexpr int SHARED_BYTES = FP32_CLASS ? sizeof(Shared) + 8192 : sizeof(Shared);', 'constexpr int SHARED_BYTES = sizeof(Shared);')
b = b.replace('// FP32_CLASS: inside a panel W of 32 absent reflectors is taken from beyond p[1].\n', '')
rep('  unsigned long long full[2];        // mbarriers of the stages', '  unsigned long long full[4];        // mbarriers of the stages; FP32_CLASS: of the chunks')
rep('const TensorMap* map; int row;', 'const TensorMap* map; int row; const TensorMap* low_map; int low_row;')
rep('store_matrix(at + (8 * quad + 2 * u) * P_TILE, z[u]);', 'store_matrix(at + p_offset(8 * quad + 2 * u), z[u]);')
rep('left = p + b1 * P_TILE + b0 * P_GROUP + (l ^ b0) * 16, right = p + b0 * P_TILE + b1 * P_GROUP + (l ^ b1) * 16;',
    'left = p + b1 * P_TILE + b0 * P_GROUP + (l ^ b0) * 16, right = p + b0 * P_TILE + b1 * P_GROUP + (l ^ b1) * 16;')
b = b.replace('P_TILE + b', 'p_offset(1) + b').replace('const int at = u * (2 * P_TILE) + z', 'const int at = p_offset(2 * u) + z')
b = b.replace('b1 * p_offset(1)', 'b1 * p_offset(1)')
b = b.replace('at + tile * P_TILE + LOW)', 'at + p_offset(tile) + P_LOW)').replace('at + tile * P_TILE)', 'at + p_offset(tile))')
b = b.replace('right + at + LOW)', 'right + at + P_LOW)')
b = b.replace('  constexpr int LOW = TILES * 512;\n', '')
rep('store_matrix(low_to + tile * 128, low);', 'store_matrix(low_to + p_offset(tile), low);')
rep('load_matrix(low, low1 + tile * 128);', 'load_matrix(low, low1 + p_offset(first + tile));')
rep('load_matrix(a0, low0 + tile * 128);', 'load_matrix(a0, low0 + p_offset(first + tile));')
rep('load_matrix(a1, low0 + (tile + 2) * 128);', 'load_matrix(a1, low0 + p_offset(first + tile + 2));')
rep('p_tile(s, 0, first + (me.lane >> 4), 2', 'p_tile(s, 0, me.lane >> 4, 2')
rep('p_tile(s, 1, first + (me.lane >> 3), r)', 'p_tile(s, 1, me.lane >> 3, r)')

# low terms: what fetches them
i = b.index('  if (FP32_CLASS) {\n#pragma unroll 1\n    for (int i = 0; i < GROUPS; i++) {'); j = b.index('    return;\n  }\n', i) + len('    return;\n  }\n')
b = b[:i] + b[j:]
rep('''// W'^T = W^T T as d + rest;''', '''// FP32_CLASS: blocks in place, high terms in v[0], low ones in v[1], T in turn.
DEVICE void expect_chunk(Shared& s, int j, int chunk, bool high) {  // one thread
  const int tile = 8 * j > 16 * chunk ? 8 * j : 16 * chunk;
  barrier_expect(&s.full[chunk], 16384 + (high ? (16 * chunk + 16 - tile) * 1024 : 0) + (chunk == j >> 1 ? T_OPERANDS * 512 : 0));
}
DEVICE void fetch_high_chunk(Shared& s, const Job& job, int j, int chunk) {
  const int tile = 8 * j > 16 * chunk ? 8 * j : 16 * chunk;
  bulk_load(&s.v[0][tile][0][0], job.v + (size_t)(j * TILES + tile) * GROUPS * 32, (16 * chunk + 16 - tile) * 1024, &s.full[chunk]);
  if (chunk == j >> 1) bulk_load(&s.t[j & 1][0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, &s.full[chunk]);
}
DEVICE void fetch_low_chunk(Shared& s, const Job& job, int j, int chunk) {
  uint32_t* to = &s.v[1][16 * chunk][0][0];
  tensor_load_low(to, job.low_map, 16 * chunk, job.low_row + 8 * j, &s.full[chunk]);
  tensor_load_low(to + 2048, job.low_map, 16 * chunk, job.low_row + 8 * j + 4, &s.full[chunk]);
}
// A chunk of this block is not needed any more (by this warp): the next block's into its place.
DEVICE void release_chunk(Shared& s, const Job& job, int next, int chunk, const Lane& me) {
  if (next < 0 || chunk < next >> 1) return;
  if (me.warp == WARPS - 1) {
    bar_sync(6 + chunk, THREADS);
    if (me.tid == MOVER) {
      if (chunk == next >> 1) {
        if (next == 1) bulk_store_read();           // T's stage is free
        if (next + 1 == job.k) bulk_store_wait();  // block k - 1 is in memory
      }
      expect_chunk(s, next, chunk, true);
      fetch_high_chunk(s, job, next, chunk);
      fetch_low_chunk(s, job, next, chunk);
    }
  } else {
    bar_arrive(6 + chunk, THREADS);
  }
}

// W'^T = W^T T as d + rest;''')
rep('''DEVICE void next_block(Shared& s, const Job& job, int next, const Lane& me);
''', '')
i = b.index('DEVICE void next_block(Shared& s, const Job& job, int next, const Lane& me) {'); j = b.index('// Those sums from V as it is stored')
b = b[:i] + b[j:]

# apply_block: W
rep('''#pragma unroll 1
  for (int term = 0; term < (FP32_CLASS ? 1 : terms); term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
    if (term == 1)''', '''  // The low terms of V, 8 reflectors 2 KB apart. Inside the panel there are those of one window; W of the other 32 reflectors is
  // then anything and is not used, and their W' is zero beside low terms of this window.
  const uint32_t low_tiles = shared_address(inside ? p_tile(s, 1, me.wg, 0) : &s.v[1][0][0][me.wg * 32]);
  const int window = part.window == 1;
  const uint32_t low_lane = low_tiles + (me.lane >> 3) * P_GROUP + (me.lane & 7) * 16;
#if WARPGROUP_MMA
  if (FP32_CLASS) {
    const uint32_t high = tile_descriptor(shared_address(&s.v[0][me.wg][0][0]), 2048);
    const uint32_t low = tile_descriptor(low_tiles - window * 4 * P_GROUP, 256);
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        if (!inside && (quad % 2 == 0 || quad == quad0)) barrier_wait(&s.full[quad / 2], phase >> (quad / 2) & 1);
        uint32_t hi[2][4], lo[2][4];
#pragma unroll
        for (int z = 0; z < 8; z++) {
          float(&x)[4] = c[4 * quad + (z >> 1)];
          split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z >> 2][z & 3], lo[z >> 2][z & 3]);
        }
        wgmma_fence();
#pragma unroll
        for (int u = 0; u < 2; u++) {
          const uint32_t x = high + (8 * quad + 4 * u) * 64, y = low + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;
          wgmma_64<0, 2048>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], y);
          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], lo[u], x);
          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], x);
        }
        wgmma_commit();
        wgmma_wait();
      }
    }
  }
#else
  if (FP32_CLASS && !inside) {
#pragma unroll 1
    for (int i = quad0 >> 1; i < CHUNKS; i++) barrier_wait(&s.full[i], phase >> i & 1);
  }
#endif
#pragma unroll 1
  for (int term = 0; term < (FP32_CLASS ? (WARPGROUP_MMA ? 0 : 1) : terms); term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
    if (term == 1)''')
i = b.index('  // The low terms of V, 8 reflectors 8 KB apart.'); j = b.index('#else\n  const uint32_t low_lane'); k = b.index('//@TICK(15)')
tail = b[j:k].replace('#else\n  const uint32_t low_lane = low_tiles + (me.lane >> 3) * LOW_GROUP + (me.lane & 7) * 16;\n', '#if !WARPGROUP_MMA\n')
tail = tail.replace("const uint32_t b = low_lane + (inside ? 0 : half * 4 * LOW_GROUP) + 4 * st * 128;", "const uint32_t b = low_lane + (inside ? 0 : half * 4 * P_GROUP) + p_offset(4 * st);")
b = b[:i] + tail + b[k:]
# exchange area
rep('''    struct {
      float4 partial[2][4][GROUPS][32];  // W of both warpgroups
      uint4 operand[2][4][4][32];        // W', hi and lo, by columns, 16 reflectors each
    };
''', '''    Exchange exchange;
''')
rep('''struct __align__(128) Shared {''', '''struct Exchange {
  float4 partial[2][4][GROUPS][32];  // W of both warpgroups
  uint4 operand[2][4][4][32];        // W', hi and lo, by columns, 16 reflectors each
};
struct __align__(128) Shared {''')
rep('''  uint4(*operand)[4][4][32] = FP32_CLASS && inside ? reinterpret_cast<uint4(*)[4][4][32]>(&scratch(s)) : s.operand;
''', '''  Exchange& x_change = FP32_CLASS && inside ? *reinterpret_cast<Exchange*>(&scratch(s)) : s.exchange;
''')
b = b.replace('s.partial[me.wg][me.ws]', 'x_change.partial[me.wg][me.ws]').replace('s.partial[1 - me.wg][me.ws]', 'x_change.partial[1 - me.wg][me.ws]')
b = re.sub(r'(?<![\w.])operand\[([01])\]\[me\.ws\]', r'x_change.operand[\1][me.ws]', b)
# update
i = b.index('''  if (FP32_CLASS) {
#if WARPGROUP_MMA
    const uint32_t low = tile_descriptor(low_tiles, LOW_GROUP), other'''); j = b.index('#else\n', i); k = b.index('    next_block(s, job, next, me);\n  }\n', i)
mid = b[j:k].replace('(inside ? 0 : half * 4 * LOW_GROUP) + (8 * quad + 2 * u) * 128', '(inside ? 0 : half * 4 * P_GROUP) + p_offset(8 * quad + 2 * u)')
b = b[:i] + '''  if (FP32_CLASS) {
#if WARPGROUP_MMA
    const uint32_t high = tile_descriptor(shared_address(&s.v[0][me.wg][0][0]), 128);
    const uint32_t low = tile_descriptor(low_tiles, P_GROUP), other = inside ? 0u : 4 * P_GROUP / 16;
#pragma unroll
    for (int quad = 0; quad < OWN / 4; quad++) {
      if (quad >= quad0) {
        const int i = 4 * quad;
        wgmma_fence();
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
        wgmma_commit();
        wgmma_wait();
      }
      if (quad % 2 == 1) release_chunk(s, job, next, quad / 2, me);
    }
''' + mid + '  }\n' + b[k + len('    next_block(s, job, next, me);\n  }\n'):]
rep('''#pragma unroll 1
  for (int term = 0; term < (FP32_CLASS ? 1 : terms); term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
#if WARPGROUP_MMA
    const uint32_t v_rows''', '''#pragma unroll 1
  for (int term = 0; term < (FP32_CLASS ? (WARPGROUP_MMA ? 0 : 1) : terms); term++) {
    const uint32_t tiles = shared_address(&s.v[stage ^ term][me.wg][0][0]);
#if WARPGROUP_MMA
    const uint32_t v_rows''')
# end of apply_block: mma.sync releases at the end
i = b.index('//@TICK(13)\n}'); 
b = b[:i] + '''#if !WARPGROUP_MMA
  if (FP32_CLASS) {
#pragma unroll 1
    for (int i = 0; i < CHUNKS; i++) release_chunk(s, job, next, i, me);
  }
#endif
''' + b[i:]

# larft: block 0
rep('''  const int stage = j & 1;
  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes + T_OPERANDS * 512);''', '''  if (FP32_CLASS) {  // the low terms come later
#pragma unroll 1
    for (int i = 0; i < CHUNKS; i++) {
      expect_chunk(s, j, i, true);
      fetch_high_chunk(s, job, j, i);
    }
    return;
  }
  const int stage = j & 1;
  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes + T_OPERANDS * 512);''')
# geqrf
rep('''    barrier_init(&s.full[0]);
    barrier_init(&s.full[1]);
''', '''    for (int i = 0; i < 4; i++) barrier_init(&s.full[i]);
''')
rep('''        const int stage = inside ? 0 : j & 1;
''', '''        const int stage = inside || FP32_CLASS ? 0 : j & 1, t_stage = inside ? 1 : j & 1;
''')
rep('''        if (!inside) {
          barrier_wait(&s.full[stage], phase >> stage & 1);''', '''        if (FP32_CLASS && j == 0) sync_all();
        if (!FP32_CLASS && !inside) {
          barrier_wait(&s.full[stage], phase >> stage & 1);''')
rep('''          if (FP32_CLASS && j > 0 && me.tid == MOVER) fetch_low(s, job, 1 - stage, j);  // that of block 0 is on its way
          if (!FP32_CLASS && me.tid == MOVER) {''', '''          if (me.tid == MOVER) {''')
rep('''          if (!inside) barrier_wait(&s.full[1 - stage], phase >> (1 - stage) & 1);
          next_block(s, job, next_j, me);
''', '''#pragma unroll 1
          for (int i = inside ? CHUNKS : j >> 1; i < CHUNKS; i++) {
            barrier_wait(&s.full[i], phase >> i & 1);
            release_chunk(s, job, next_j, i, me);
          }
''')
rep('''next_j, stage, inside ? 1 : stage, j, terms''', '''next_j, stage, t_stage, j, terms''')
rep('''        if (FP32_CLASS ? !inside : terms == 2) phase ^= 2u >> stage;
''', '''        if (FP32_CLASS ? !inside : terms == 2) phase ^= FP32_CLASS ? 15u << (j >> 1) & 15u : 2u >> stage;
''')
i = b.index('        barrier_expect(&s.low, (TILES - 8 * k) * 512);'); j = b.index('    if (h == 1 && whole && !last && me.tid == MOVER) {', i)
b = b[:i] + '''        barrier_expect(&s.low, (CHUNKS - (k >> 1)) * 8192);
#pragma unroll 1
        for (int i = k >> 1; i < CHUNKS; i++) tensor_load_low(p_tile(s, 0, 16 * i, 0), job.low_map, 16 * i, job.low_row + 8 * k, &s.low);
      }
      if (whole) {
#pragma unroll 1
        for (int i = k >> 1; i < CHUNKS; i++) tensor_store_low(job.low_map, p_tile(s, 1, 16 * i, 0), 16 * i, job.low_row + 8 * k + 4 * h);
        bulk_store_commit();
      }
    }
''' + b[j:]
rep('''        barrier_expect(&s.full[0], T_OPERANDS * 512);
        bulk_load(&s.t[0][0][0], job.t, T_OPERANDS * 512, &s.full[0]);
      }
      if (FP32_CLASS) fetch_low(s, job, 1, 0);
''', '''        if (!FP32_CLASS) barrier_expect(&s.full[0], T_OPERANDS * 512);
        for (int i = 0; FP32_CLASS && i < CHUNKS; i++) expect_chunk(s, 0, i, false);
        bulk_load(&s.t[0][0][0], job.t, T_OPERANDS * 512, &s.full[0]);
      }
#pragma unroll 1
      for (int i = 0; FP32_CLASS && i < CHUNKS; i++) fetch_low_chunk(s, job, 0, i);
''')
assert 'LOW_GROUP' not in b and 'P_TILE' not in b, re.findall('.*(?:LOW_GROUP|P_TILE).*', b)
open(sys.argv[2], 'w').write(b)

# head and tail
h = open('head90.cuh').read()
x = 'DEVICE void bulk_store_commit()'
assert h.count(x) == 1
h = h.replace(x, '''// Low terms of V: 16 tiles of 4 groups of reflectors.
DEVICE void tensor_load_low(void* to, const TensorMap* map, int tile, int group, unsigned long long* b) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3,%4}],[%5];" ::"r"(
                   shared_address(to)), "l"(map), "r"(0), "r"(tile), "r"(group), "r"(shared_address(b)) : "memory");
}
DEVICE void tensor_store_low(const TensorMap* map, const void* from, int tile, int group) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0,{%1,%2,%3}],[%4];" ::"l"(map), "r"(0), "r"(tile),
               "r"(group), "r"(shared_address(from)) : "memory");
}
''' + x)
open('head108.cuh', 'w').write(h)
t = open('tail90.cuh').read()
def rept(x, y):
    global t
    assert t.count(x) == 1, (t.count(x), x)
    t = t.replace(x, y)
rept('const __grid_constant__ TensorMap map)', 'const __grid_constant__ TensorMap map, const __grid_constant__ TensorMap low_map)')
rept('  job.row = (int)matrix * n;\n', '  job.row = (int)matrix * n;\n  job.low_map = &low_map;\n  job.low_row = (int)matrix * panels * GROUPS;\n')
i = t.index('// The batch as one tall matrix'); j = t.index('  if (!encode ||')
pre = t[i:j]; post = t[j:t.index('// Launches on')]
body = pre[pre.index('  static const Encode encode'):].replace('  static const Encode encode = ', '  static const Encode encode = ')
t = t.replace(pre + post, '''using Encode = decltype(&cuTensorMapEncodeTiled);
static Encode encoder() {
''' + body.rstrip() + '''
  return encode;
}
// The batch as one tall matrix of which a copy takes BOX rows of IB columns, swizzled. False where the driver cannot.
static bool panel_map(TensorMap& map, const void* a, int n, int batch) {
  const Encode encode = encoder();
''' + post.rstrip() + '''
// V's low terms: copies of 16 tiles (of 64) of 4 groups of reflectors (of 8 a block).
static bool low_map(TensorMap& map, const void* v_lo, int blocks) {
  const Encode encode = encoder();
  const cuuint64_t sizes[3] = {32, TILES, (cuuint64_t)blocks * GROUPS}, strides[2] = {128, TILES * 128};
  const cuuint32_t box[3] = {32, 16, 4}, steps[3] = {1, 1, 1};
  return encode && encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 3, const_cast<void*>(v_lo), sizes, strides, box, steps,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

''')
t = t.replace('  TensorMap map{};\n', '  TensorMap map{}, low{};\n  const int panels = (n + NB - 1) / NB;\n  if (FP32_CLASS && !low_map(low, v_lo, batch * panels)) return (int)cudaErrorNotSupported;\n')
t = t.replace('(uint32_t*)t, n, (n + NB - 1) / NB, map);', '(uint32_t*)t, n, panels, map, low);')
open('tail108.cuh', 'w').write(t)
