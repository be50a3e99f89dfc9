# G by warpgroup products: [H L]'H
FALL='''#else
// The same by ordinary products.
DEVICE uint32_t tile_descriptor(uint32_t address, uint32_t k_stride) { return address >> 4 | (k_stride >> 4) << 16; }
DEVICE void wgmma_fence() {}
DEVICE void wgmma_commit() {}
DEVICE void wgmma_wait() {}
template <int M_STRIDE, int N_STRIDE>
DEVICE void wgmma_tiles(float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], uint32_t a, uint32_t b) {
  const int lane = threadIdx.x & 31, ws = threadIdx.x >> 5 & 3, l = (lane & 7) * 16, z0 = lane >> 3 & 1, z1 = lane >> 4;
  const uint32_t from_b = (b << 4 & 0x3fff0) + z1 * N_STRIDE + z0 * (b >> 16 << 4) + l;
  uint32_t x[4], y[2][4];
  load_matrix(x, (a << 4 & 0x3fff0) + (2 * ws + z0) * M_STRIDE + z1 * (a >> 16 << 4) + l);
  load_matrix(y[0], from_b);
  load_matrix(y[1], from_b + 2 * N_STRIDE);
  mma_fp16(d0, x, y[0][0], y[0][1]);
  mma_fp16(d1, x, y[0][2], y[0][3]);
  mma_fp16(d2, x, y[1][0], y[1][1]);
  mma_fp16(d3, x, y[1][2], y[1][3]);
}
#endif

// ---------------------------------------------------------------- sizes
'''
GRAM='''struct Norm { float square, scale; };  // of a lane's column

// G = P'P = H'H + X + X' with X = L'H for P = H + L in fp16, its columns scaled by powers of two to a norm in [1, 2), and the top
// 32 x 32 of P as well. Rows are split over the warpgroups; warps 0 and 1 of either have H'H, 2 and 3 X, as fragments with the columns
// where they are in P's tiles.
DEVICE Norm gram(Shared& s, int first, const Lane& me) {
  Scratch& sc = scratch(s);
  float2 top[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int tile = me.warp & 3, group = 2 * (me.warp >> 2) + i;
    const int word = (me.g ^ (group & 1)) * 4 + me.q;
    const float2 hi = unpack_half2(p_tile(s, 0, first + tile, group)[word]), lo = unpack_half2(p_tile(s, 1, first + tile, group)[word]);
    top[i] = make_float2(hi.x + lo.x, hi.y + lo.y);
  }
  float x[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&x[0][0])[i] = 0.f;
  const uint32_t p = tile_descriptor(shared_address(p_tile(s, 0, 0, 0)), p_offset(1));
#pragma unroll 1
  for (int tile = first + 2 * me.wg; tile < TILES; tile += 4) {
    const uint32_t at = p + p_offset(tile) / 16;
    wgmma_fence();
    wgmma_tiles<P_GROUP, P_GROUP>(x[0], x[1], x[2], x[3], at, at);
    wgmma_commit();
    WAIT_IN
  }
  WAIT_OUT
  float4(*partial)[4][32] = reinterpret_cast<float4(*)[4][32]>(sc.partial);
  float(*transposed)[IB][PAD] = reinterpret_cast<float(*)[IB][PAD]>(sc.partial[WARPS / 2]);  // X of either warpgroup
  const int half = me.ws & 1, lower = 8 + (me.g ^ 1);  // the second row of a fragment
#pragma unroll
  for (int i = 0; i < 4; i++) {
    partial[me.warp][i][me.lane] = make_float4(x[i][0], x[i][1], x[i][2], x[i][3]);
    if (me.ws >= 2) {
#pragma unroll
      for (int e = 0; e < 4; e++) transposed[me.wg][8 * i + 2 * me.q + (e & 1 ^ i & 1)][16 * half + (e < 2 ? me.g : lower)] = x[i][e];
    }
  }
  sync_all();
  // lane = column
  const int at = (me.lane & 7) ^ (me.lane >> 3 & 1);  // in its group
  const float* own_partial = &partial[me.lane >> 4][me.lane >> 3][4 * at + (at >> 1)].x + 2 * (me.lane >> 3 & 1) + (at & 1);
  constexpr int WARP = 4 * 32 * 4;
  Norm norm;
  norm.square = own_partial[0] + own_partial[4 * WARP] + 2.f * (own_partial[2 * WARP] + own_partial[6 * WARP]);
  const int e = (127 - (int)(float_bits(norm.square) >> 23)) >> 1;
  const float own = norm.square < TINY_SQUARE ? 0.f : power_of_two(e > DOWN_LIMIT ? DOWN_LIMIT : e);
  norm.scale = own;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int row = 8 * (me.warp & 3) + 2 * me.q, col = 8 * (2 * (me.warp >> 2) + i) + me.g;
    const float scale = shfl(own, col);
    sc.win.top[row][col] = top[i].x * scale;
    sc.win.top[row + 1][col] = top[i].y * scale;
  }
  if (me.warp < 6) {
    const int h = me.warp >> 2, i = me.warp < 4 ? me.warp : me.warp - 2;
    const int row = 16 * h + me.g, below = 16 * h + lower, col = 8 * i + 2 * me.q;
    float y[4];
#pragma unroll
    for (int z = 0; z < 2; z++) {
      const float2 t = *(const float2*)&transposed[0][z ? below : row][col], u = *(const float2*)&transposed[1][z ? below : row][col];
      y[2 * z] = t.x + u.x;
      y[2 * z + 1] = t.y + u.y;
    }
#pragma unroll
    for (int w = 6; w >= 0; w -= 2) {
      const float4 part = partial[h + w][i][me.lane];
      const bool odd = i & 1;
      y[0] += odd ? part.y : part.x;
      y[1] += odd ? part.x : part.y;
      y[2] += odd ? part.w : part.z;
      y[3] += odd ? part.z : part.w;
    }
    const float left = shfl(own, col), right = shfl(own, col + 1), upper = shfl(own, row), under = shfl(own, below);
    // a zero column's pivot
    const float g[4] = {y[0] * left * upper, y[1] * right * upper, y[2] * left * under, y[3] * right * under};
    const float pivot[4] = {row == col ? ZERO_PIVOT : g[0], row == col + 1 ? ZERO_PIVOT : g[1],
                            below == col ? ZERO_PIVOT : g[2], below == col + 1 ? ZERO_PIVOT : g[3]};
    *(float2*)&sc.win.g[row][col] = make_float2(fmaxf(g[0], pivot[0]), fmaxf(g[1], pivot[1]));
    *(float2*)&sc.win.g[below][col] = make_float2(fmaxf(g[2], pivot[2]), fmaxf(g[3], pivot[3]));
'''
def gram(b, inside=True):
    b.cut('''struct Norm { float square''','''  } else if (me.warp == 6) {
    // what fp16''',GRAM.replace('WAIT_IN','wgmma_wait();' if inside else '').replace('  WAIT_OUT\n','' if inside else '  wgmma_wait();\n').replace('    \n',''))
    b.rep('constexpr int P_GROUP = FP32_CLASS ? 2048 : 128, P_LOW = FP32_CLASS ? 4 * P_GROUP : TILES * 512;  // bytes','constexpr int P_GROUP = FP32_CLASS ? 2048 : 128, P_LOW = 4 * P_GROUP;  // bytes')
    b.rep(': tile * 512; }',': tile * 1024; }')
    # one product for both kinds of card
    i=b.b.index('// ---------------------------------------------------------------- sizes'); j=b.b.rindex('#endif',0,i)
    b.b=b.b[:j]+FALL+b.b[i:].split('\n',1)[1]
    i=b.b.index("// V_1'V_0 over the rows of this warpgroup"); j=b.b.index('#if WARPGROUP_MMA\n',i)
    b.b=b.b[:i]+b.b[i:j].replace(" (every second pair of tiles; without its products, of this warp's quarter of the columns)"," (every second pair of tiles)")+b.b[j+len('#if WARPGROUP_MMA\n'):]
    i=b.b.index('#else\nDEVICE void cross_products'); j=b.b.index('#endif\n',i)+len('#endif\n')
    b.b=b.b[:i]+b.b[j:]
    b.rep('''    } else {
    sync_all();
    const bool low_before''','''    } else {
    fence_async();
    sync_all();
    const bool low_before''')
    i=b.b.index('NOINLINE void clear_done('); j=b.b.index('  sync_all();',i); b.b=b.b[:j]+'  fence_async();\n'+b.b[j:]
def gram2(b): gram(b,False)
