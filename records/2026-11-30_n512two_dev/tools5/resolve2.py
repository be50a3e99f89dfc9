t=open('r.py').read()
i=t.index("struct Part { int window, from, to; };"); j=t.index("// ---------------------------------------------------------------- geqr2: one window of 32 columns")
new = r'''struct Part { int window, from, to; };

// TERMS = 2: where V's low terms are: 8 reflectors 2 KB apart, and `inside` the panel where form_reflectors left those of one
// window. W of the other 32 reflectors is then anything and is not used, and their W' is zero beside low terms of this window.
struct LowTerms { uint32_t tiles; bool inside; int window; };
#if WARPGROUP_MMA
DEVICE void multiply_two_terms(float (&w)[GROUPS][4], Panel& c, Shared& s, LowTerms low, int quad0, uint32_t phase, const Lane& me) {
  const uint32_t v_hi = tile_descriptor(shared_address(&s.v[0][me.wg][0][0]), 2048);
  const uint32_t v_lo = tile_descriptor(low.tiles - low.window * 4 * P_GROUP, 256);
  if (!low.inside) barrier_wait(&s.full[quad0 >> 1], phase >> (quad0 >> 1) & 1);
#pragma unroll
  for (int quad = 0; quad < OWN / 4; quad++) {
    if (quad >= quad0) {
      if (!low.inside && quad % 2 == 0) barrier_wait(&s.full[quad / 2], phase >> (quad / 2) & 1);
      uint32_t hi[2][4], lo[2][4];
#pragma unroll
      for (int z = 0; z < 8; z++) {
        float(&x)[4] = c[4 * quad + (z >> 1)];
        split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z >> 2][z & 3], lo[z >> 2][z & 3]);
      }
      wgmma_fence();
#pragma unroll
      for (int u = 0; u < 2; u++) {
        const uint32_t x = v_hi + (8 * quad + 4 * u) * 64, y = v_lo + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;
        wgmma_64<0, P_GROUP>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], y);
        wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], lo[u], x);
        wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], x);
      }
      wgmma_commit();
      wgmma_wait();
    }
  }
}
// `next`: the block whose chunks take the place of those that are done with; -1: none.
DEVICE void subtract_two_terms(Panel& c, Shared& s, const Job& job, const uint4 (*operand)[4][4][32], LowTerms low, int quad0, int next,
                               const Lane& me) {
  uint32_t w_hi[4][4], w_lo[4][4];
#pragma unroll
  for (int st = 0; st < 4; st++) {
    const uint4 x = operand[0][me.ws][st][me.lane], y = operand[1][me.ws][st][me.lane];
    w_hi[st][0] = x.x; w_hi[st][1] = x.y; w_hi[st][2] = x.z; w_hi[st][3] = x.w;
    w_lo[st][0] = y.x; w_lo[st][1] = y.y; w_lo[st][2] = y.z; w_lo[st][3] = y.w;
  }
  const uint32_t v_hi = tile_descriptor(shared_address(&s.v[0][me.wg][0][0]), 128);
  const uint32_t v_lo = tile_descriptor(low.tiles, P_GROUP), other = low.inside ? 0u : 4 * P_GROUP / 16;
#pragma unroll
  for (int quad = 0; quad < OWN / 4; quad++) {
    if (quad >= quad0) {
      const int i = 4 * quad;
      wgmma_fence();
#pragma unroll
      for (int st = 0; st < 4; st++) {
        const uint32_t y = v_lo + quad / 2 * 1024 + quad % 2 * 64 + (st & 1) * (2 * P_GROUP / 16) + (st < 2 ? 0u : other);
        wgmma_32<1, 256>(c[i], c[i + 1], c[i + 2], c[i + 3], w_hi[st], y);
      }
#pragma unroll
      for (int z = 0; z < 8; z++) {
        const int st = z & 3;
        wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], z < 4 ? w_lo[st] : w_hi[st], v_hi + 8 * quad * 64 + st * 16);
      }
      wgmma_commit();
      wgmma_wait();
    }
    if (quad % 2 == 1) release_chunk(s, job, next, quad / 2, me);
  }
}
#endif

// C = (I - V T' V') C. Each warp has 16 columns and half of the rows; the two that share columns meet at a barrier of
// their own. `terms` 2: V's low term is in the other stage. `full` false: only the first 32 reflectors count (the others
// are zero in V, undefined in T). `part`: only these reflectors, and only the columns of one window.
DEVICE void apply_block(Panel& c, Shared& s, const Job& job, bool inside, int next, int stage, int t_stage, int block, int terms,
                        bool two_c, bool two_w, bool full, Part part, uint32_t phase, const Lane& me) {
  const int quad0 = (int)first_lane((uint32_t)block);  // first group of four own tiles that is live
  const LowTerms low = {shared_address(inside ? p_tile(s, 1, me.wg, 0) : &s.v[1][0][0][me.wg * 32]), inside, part.window == 1};
  Exchange& x_change = TERMS == 2 && inside ? *reinterpret_cast<Exchange*>(&scratch(s)) : s.exchange;
  float w[GROUPS][4];
#pragma unroll
  for (int r = 0; r < GROUPS; r++) w[r][0] = w[r][1] = w[r][2] = w[r][3] = 0.f;
  // W^T = C^T V: c is the A operand as it stands
#if WARPGROUP_MMA
  if constexpr (TERMS == 2) multiply_two_terms(w, c, s, low, quad0, phase, me);
#endif
  // Passes: C's high term with V's high one, C's low one with it, C's high one with V's low one.
#pragma unroll 1
  for (int pass = FUSED ? 3 : 0; pass < (terms == 2 ? 3 : two_c ? 2 : 1); pass += pass == 0 && !two_c ? 2 : 1) {
    const uint32_t tiles = shared_address(&s.v[stage ^ (pass >> 1)][me.wg][0][0]);
    if (TERMS == 1 && pass == 2) barrier_wait(&s.full[1 - stage], phase >> (1 - stage) & 1);
'''
a=t.index("#if WARPGROUP_MMA\n    const uint32_t v_tiles",i); b=t.index("@@A5")
new += t[a:b]
new += '''  // The two halves of W meet. Where one term is enough for W' it is for W too, beside T in two.
  float d[4][4], rest[4][4];
#pragma unroll
  for (int i = 0; i < 16; i++) (&d[0][0])[i] = (&rest[0][0])[i] = 0.f;
  uint32_t hi[GROUPS / 2][4], lo[GROUPS / 2][4];
  if (two_w) {
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      x_change.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    bar_sync(1 + me.ws, 64);
#pragma unroll
    for (int r = 0; r < GROUPS; r++) {
      float4 x = x_change.partial[1 - me.wg][me.ws][r][me.lane];
      w[r][0] += x.x; w[r][1] += x.y; w[r][2] += x.z; w[r][3] += x.w;
    }
'''
a=t.index("    if (part.window >= 0) {\n#pragma unroll\n      for (int r",i); b=t.index("@@A8")
new += t[a:b].replace('s.partial[','x_change.partial[')
new += '''  // C^T -= W'^T V^T
#if WARPGROUP_MMA
  if constexpr (TERMS == 2) subtract_two_terms(c, s, job, x_change.operand, low, quad0, next, me);
#endif
#pragma unroll 1
  for (int pass = FUSED ? 4 : two_w ? 0 : 1; pass < 2 * terms; pass += two_w ? 1 : 2) {  // low and high term of W' for each term of V
    const int low = 1 - (pass & 1);
    const uint32_t tiles = shared_address(&s.v[stage ^ (pass >> 1)][me.wg][0][0]);
    uint32_t wh[GROUPS / 2][4];
#pragma unroll
    for (int st = 0; st < GROUPS / 2; st++) {
      const uint4 x = x_change.operand[low][me.ws][st][me.lane];
      wh[st][0] = x.x; wh[st][1] = x.y; wh[st][2] = x.z; wh[st][3] = x.w;
    }
'''
a=t.index("#if WARPGROUP_MMA\n    const uint32_t v_rows",i); 
new += t[a:j]
t=t[:i]+new+t[j:]
t=t.replace('FP32_CLASS','TERMS == 2').replace('!TERMS == 2','TERMS == 1').replace('constexpr bool TERMS == 2 = true;','constexpr int TERMS = 2;')
assert '@@' not in t
open('w0.py','w').write(t)
