# products over tiles as a loop inside the asm: one wait (instead of xb's and xl's loops); after xl.larft, xb.gram
TILES_NEW='''// d += A'B over the pairs of tiles `tile`, tile + 4, ..: A's rows 16 ws .. + 15 and 32 columns of B. Tiles [column][row] in shared memory,
// M_STRIDE, N_STRIDE between those of neighbouring columns; 2048: by chunks. a, b: where tile 0 is.
#if WARPGROUP_MMA
// The loop is the assembler's: in a loop of the compiler's, which copies accumulators, every product would be waited for.
template <int M_STRIDE, int N_STRIDE>
DEVICE void multiply_tiles(float (&d)[4][4], uint32_t a, uint32_t b, int tile) {
  asm volatile(
      "{.reg .b64 d,e; .reg .b32 t,o,c,x,y; .reg .pred p; mov.u32 t,%18; wgmma.fence.sync.aligned;\\n"
      "TILE_LOOP: and.b32 o,t,-16; shl.b32 o,o,6; and.b32 c,t,15;"
      "shl.b32 x,c,%21; add.u32 x,x,o; add.u32 x,x,%16; mov.b64 d,{x,%19};"
      "shl.b32 y,c,%22; add.u32 y,y,o; add.u32 y,y,%17; mov.b64 e,{y,%20};"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},d,e,1,1,1,0,0;"
      "add.u32 t,t,4; setp.lt.u32 p,t,64; @p bra TILE_LOOP;\\n"
      "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"
      : ACC4(d[0]), ACC4(d[1]), ACC4(d[2]), ACC4(d[3])
      : "r"(a), "r"(b), "r"(tile), "n"(M_STRIDE >> 4), "n"(N_STRIDE >> 4), "n"(M_STRIDE == 2048 ? 3 : 6), "n"(N_STRIDE == 2048 ? 3 : 6)
      : "memory");
}
#else
DEVICE uint32_t tile_descriptor(uint32_t address, uint32_t k_stride) { return address | (k_stride >> 4) << 20; }
template <int M_STRIDE, int N_STRIDE>
DEVICE void multiply_tiles(float (&d)[4][4], uint32_t a, uint32_t b, int tile) {
  const int lane = threadIdx.x & 31, ws = threadIdx.x >> 5 & 3, z0 = lane >> 3 & 1, z1 = lane >> 4;
  a = (a & 0xfffff) + (2 * ws + z0) * M_STRIDE + z1 * (a >> 20 << 4) + (lane & 7) * 16;
  b = (b & 0xfffff) + z1 * N_STRIDE + z0 * (b >> 20 << 4) + (lane & 7) * 16;
#pragma unroll 1
  for (; tile < 64; tile += 4) {
    const uint32_t at = (tile & ~15) << 10, c = tile & 15;
    uint32_t x[4], y[4];
    load_matrix(x, a + at + (c << (M_STRIDE == 2048 ? 7 : 10)));
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      load_matrix(y, b + at + (c << (N_STRIDE == 2048 ? 7 : 10)) + i * N_STRIDE);
      mma_fp16(d[i], x, y[0], y[1]);
      mma_fp16(d[i + 1], x, y[2], y[3]);
    }
  }
}
#endif

'''
CROSS='''// V_1'V_0 over the rows of this warpgroup (every second pair of tiles); rows 32 .. 63 of the product are of no use.
// FP32_CLASS: V_0's low terms are in p[0], V_1's in p[1].
DEVICE void cross_products(Shared& s, int first, float (*out)[IB][PAD], const Lane& me) {
  float x[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&x[0][0])[i] = 0.f;
  const int tile = first + 2 * me.wg;
  const uint32_t v0 = tile_descriptor(shared_address(&s.v[0][0][0][0]), 1024), v1 = tile_descriptor(shared_address(&s.v[0][0][4][0]), 1024);
  if (FP32_CLASS) {
    multiply_tiles<128, P_GROUP>(x, v1, tile_descriptor(shared_address(p_tile(s, 0, 0, 0)), 128), tile);
    multiply_tiles<P_GROUP, 128>(x, tile_descriptor(shared_address(p_tile(s, 1, 0, 0)), 128), v0, tile);
  }
  multiply_tiles<128, 128>(x, v1, v0, tile);
  if (me.ws < 2) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      *(float2*)&out[me.wg][16 * me.ws + me.g][8 * i + 2 * me.q] = make_float2(x[i][0], x[i][1]);
      *(float2*)&out[me.wg][16 * me.ws + me.g + 8][8 * i + 2 * me.q] = make_float2(x[i][2], x[i][3]);
    }
  }
}

'''
def loop(b):
    # after xl.larft (and xb.gram): all products over tiles by multiply_tiles
    i=b.b.index('// the same with both in shared memory, K contiguous'); j=b.b.index('// ---------------------------------------------------------------- sizes')
    b.b=b.b[:i]+'#endif\n\n'+TILES_NEW+b.b[j:]
    i=b.b.index("// V_1'V_0 over the rows of this warpgroup"); j=b.b.index('// Small products in two fp16',i); b.b=b.b[:i]+CROSS+b.b[j:]
    x='''#pragma unroll 1
  for (int tile = first + 2 * me.wg; tile < TILES; tile += 4) {
    const uint32_t at = p + p_offset(tile) / 16;'''
    if x in b.b:
        i=b.b.index(x); j=b.b.index('  float4(*partial)[4][32]',i)
        b.b=b.b[:i]+'''  multiply_tiles<P_GROUP, P_GROUP>(x, p, p, first + 2 * me.wg);
'''+b.b[j:]
