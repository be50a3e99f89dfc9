# the last warp, which starts the copies, is not waited for in larft: one warpgroup makes V_1'V_0, three warps of the other one the sums
def mover(b):
    i=b.b.index("// V_1'V_0 over the rows of this warpgroup"); j=b.b.index('  if (me.ws < 2) {',i)
    b.b=b.b[:i]+'''// V_1'V_0 (rows 32 .. 63 of the product are of no use): by the first warpgroup, while the other one sums V'V and starts copies.
// FP32_CLASS: by both, each its rows (every second pair of tiles); V_0's low terms are in p[0], V_1's in p[1].
DEVICE void cross_products(Shared& s, int first, float (*out)[IB][PAD], const Lane& me) {
  float x[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&x[0][0])[i] = 0.f;
  const int tile = first + 2 * me.wg;
  const uint32_t v0 = tile_descriptor(shared_address(&s.v[0][0][0][0]), 1024), v1 = tile_descriptor(shared_address(&s.v[0][0][4][0]), 1024);
  if (FP32_CLASS) {
    multiply_tiles<128, P_GROUP>(x, v1, tile_descriptor(shared_address(p_tile(s, 0, 0, 0)), 128), tile);
    multiply_tiles<P_GROUP, 128>(x, tile_descriptor(shared_address(p_tile(s, 1, 0, 0)), 128), v0, tile);
  } else {
    multiply_tiles<128, 128>(x, v1, v0, first + 2);
  }
  multiply_tiles<128, 128>(x, v1, v0, tile);
'''+b.b[j:]
    i=b.b.index("  if (!FP32_CLASS && cross) cross_products(s, first, sc.tri.n21, me);"); j=b.b.index('  if (FP32_CLASS && cross) {\n    barrier_wait(&s.full[CHUNKS]',i)
    b.b=b.b[:i]+'''  const bool apart = !FP32_CLASS && cross;  // the last warp is at its copies
  if (apart && me.wg == 0) cross_products(s, first, sc.tri.n21, me);
#pragma unroll 1
  for (int piece = me.warp - (apart ? 4 : 0); piece >= 0 && piece < 7 && me.warp < WARPS - 1; piece += apart ? 3 : 7) {
    if (piece < 6) {
      const int i = piece < 4 ? piece : piece - 2;
      const int row = 16 * (piece >> 2) + 2 * me.g, col = 16 * (i >> 1) + 4 * me.q + (i & 1);
      const float4 y = sum_partials(sc.partial, piece, me.lane);
      sc.tri.n[row][col] = y.x;
      sc.tri.n[row][col + 2] = y.y;
      sc.tri.n[row + 1][col] = y.z;
      sc.tri.n[row + 1][col + 2] = y.w;
    } else {  // lane = reflector
      const int l = me.lane & 15, at = (l & 1) + (me.lane >> 4) * 4;
      const float* own = &sc.partial[0][at][4 * (l >> 1) + (l >> 2)].x + 2 * (l & 1) + (l >> 1 & 1);
      float square = own[0];
#pragma unroll
      for (int w = 1; w < WARPS; w++) square += own[w * (8 * 32 * 4)];
      const float tau = square > 0.f ? two_over(square) : 0.f;
      const int col = job.k * NB + h * IB + me.lane;
      s.tau[h * IB + me.lane] = tau;
      if (col < job.n) job.tau[col] = tau;
    }
  }
'''+b.b[j:]
    i=b.b.index('  sync_all();\n  // Apart from the roles'); 
    b.b=b.b[:i]+'''  if (!apart) {
    sync_all();
  } else if (me.warp == WARPS - 1) {
    bar_sync(10, THREADS);  // V has been read
  } else {
    bar_arrive(10, THREADS);
    bar_sync(11, THREADS - 32);
  }
'''+b.b[i+len('  sync_all();\n'):]
    b.rep('''      float2 x = *(const float2*)&sc.tri.n21[0][j][m], y = *(const float2*)&sc.tri.n21[1][j][m];
''','''      float2 x = *(const float2*)&sc.tri.n21[0][j][m], y = FP32_CLASS ? *(const float2*)&sc.tri.n21[1][j][m] : make_float2(0.f, 0.f);
''')
