# from v119: panel copies in a loop, A first out of L2, products that depend on one another further apart
import re
V119=open('/work/main/submissions/v119_n512_one_or_two_terms.py').read()
def v119(b):
    b.rep('''DEVICE void tensor_load(void* to''','''constexpr uint64_t EVICT_FIRST = 0x12F0000000000000;  // createpolicy's word for all of A: it is read once
DEVICE void tensor_load(void* to''')
    b.rep('''mbarrier::complete_tx::bytes [%0],[%1,{%2,%3}],[%4];" ::"r"(
                   shared_address(to)), "l"(map), "r"(column), "r"(row), "r"(shared_address(b)) : "memory");''','''mbarrier::complete_tx::bytes.L2::cache_hint [%0],[%1,{%2,%3}],[%4],%5;"
               ::"r"(shared_address(to)), "l"(map), "r"(column), "r"(row), "r"(shared_address(b)), "l"(EVICT_FIRST) : "memory");''')
    b.rep('''L2.global.tile [%0,{%1,%2}];" ::"l"(map), "r"(column), "r"(row) : "memory");''','''L2.global.tile.L2::cache_hint [%0,{%1,%2}],%3;" ::"l"(map), "r"(column), "r"(row),
               "l"(EVICT_FIRST) : "memory");''')
    b.rep('''  barrier_expect(&s.panel, ROWS * NB * 2);
#pragma unroll
  for (int i = 0; i < 4; i++) {''','''  barrier_expect(&s.panel, ROWS * NB * 2);
#pragma unroll 1
  for (int i = 0; i < 4; i++) {''')
def order(b):
    b.rep('''        for (int u = st; u < 4; u++) {
          const uint4 t = t_of(s, t_stage, st, u, me);
          mma_fp16(d[u], hi, t.x, t.y);
          mma_fp16(rest[u], hi, t.z, t.w);
          mma_fp16(rest[u], lo, t.x, t.y);
        }
''','''        for (int u = st; u < 4; u++) t[st][u] = t_of(s, t_stage, st, u, me);
#pragma unroll
        for (int u = st; u < 4; u++) mma_fp16(d[u], hi, t[st][u].x, t[st][u].y);
#pragma unroll
        for (int u = st; u < 4; u++) mma_fp16(rest[u], hi, t[st][u].z, t[st][u].w);
#pragma unroll
        for (int u = st; u < 4; u++) mma_fp16(rest[u], lo, t[st][u].x, t[st][u].y);
''')
    b.rep('''      for (int u = st; u < 4; u++) {
        mma_fp16(d[u], sum[st], t[st][u].x, t[st][u].y);
        mma_fp16(rest[u], sum[st], t[st][u].z, t[st][u].w);
      }
''','''      for (int u = st; u < 4; u++) mma_fp16(d[u], sum[st], t[st][u].x, t[st][u].y);
#pragma unroll
      for (int u = st; u < 4; u++) mma_fp16(rest[u], sum[st], t[st][u].z, t[st][u].w);
''')
    b.rep('''    uint4 t[4][4];  // on their way meanwhile
#pragma unroll''','''    // T's operands are on their way meanwhile
#pragma unroll''')
    b.rep('''  float d[4][4], rest[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&d[0][0])[i] = (&rest[0][0])[i] = 0.f;
  if (two_w) {''','''  float d[4][4], rest[4][4];
  uint4 t[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&d[0][0])[i] = (&rest[0][0])[i] = 0.f;
  if (two_w) {''')
