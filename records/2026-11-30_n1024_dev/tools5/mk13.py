import sys
src=open('var12.py').read().rsplit("open(sys.argv[2]",1)[0].replace("v=sys.argv[1]","v='1'")
exec(src)
i=s.index("template <class K>\nDEVICE void guard_and_top("); j=s.index("// ------------------------------------------------------------------ sums of a pass")
s=s[:i]+"""// The top of V, rounded, over |R|, and of H (R above V), over z.top; both [column][row]: 256 threads
template <class K>
DEVICE void top_of_v(const Scratch& z, const float* unscale, int done, int thread) {
  float* v_top = z.r1;
  const int row = thread & 31, i = thread >> 5 << 2;  // four columns, i .. i + 3
  const Quad iv = load4(z.inverse + i);
  const float* x = z.v + i * LD_SHIFT + max(row - i, 0);
  const float* w = z.w + i * LD_SHIFT;
  float l[4];
  l[0] = x[0] * iv.e[0];
  l[1] = fmaf(-l[0], w[0], x[LD_SHIFT]) * iv.e[1];
  l[2] = fmaf(-l[1], w[LD_SHIFT], fmaf(-l[0], w[1], x[2 * LD_SHIFT])) * iv.e[2];
  l[3] = fmaf(-l[2], w[2 * LD_SHIFT], fmaf(-l[1], w[LD_SHIFT + 1], fmaf(-l[0], w[2], x[3 * LD_SHIFT]))) * iv.e[3];
#pragma unroll
  for (int u = 0; u < 4; u++) {
    const int j = i + u;
    float below = __half2float(__float2half_rn(l[u]));
    if (K::TERMS == 2) below += __half2float(__float2half_rn(l[u] - below));
    v_top[j * LD_TOP + row] = row < done ? 0.f : (row > j ? below : (row == j && iv.e[u] != 0.f ? 1.f : 0.f));
    z.top[j * LD_TOP + row] = row > j ? below : z.r[row * LD_R + j] * unscale[j];
  }
}

"""+s[j:]
rep("  float* m_scale = reinterpret_cast<float*>(sm + K::O_MISC);\n  int* stop_at = reinterpret_cast<int*>(sm + K::O_MISC + 128);","  float* norms = reinterpret_cast<float*>(sm + K::O_MISC);  // of P's columns\n  int* stop_at = reinterpret_cast<int*>(sm + K::O_MISC + 128);  // by Cholesky, by the guard")
rep("// m_scale[32], stop, barriers","// norms[32], stop, barriers")
rep("        else if (me.warp >= 5 && s == 0 && done == 0","""        else if (me.warp == 5) {
          norms[me.lane] = square_root(2.f * fabsf(z.x[me.lane * (LD_X + 1)]));
          stop_at[1] = SUB;
        }
        else if (me.warp >= 6 && s == 0 && done == 0""")
rep("for (int i = me.warp - 5; i < 4 * K::CHUNKS; i += 4 * K::G - 5)","for (int i = me.warp - 6; i < 4 * K::CHUNKS; i += 4 * K::G - 6)")
rep("for (int i = me.thread - 160; i < K::ROWS / K::C * 2; i += K::THREADS - 160) {","for (int i = me.thread - 192; i < K::ROWS / K::C * 2; i += K::THREADS - 192) {")
rep("        guard_and_top<K>(z, m_scale, unscale + SUB * s, done, me.thread);\n        const int stop = uniform(*stop_at);\n","        if (me.thread >= 256) top_of_v<K>(z, unscale + SUB * s, done, me.thread - 256);\n        int stop = uniform(*stop_at);\n        float by;  // 1 / the power of two that scales M's column\n        bool in;\n        for (;;) {\n")
i=s.index("        // (3) V = P M, rounded to fp16"); j=s.index("#pragma unroll\n          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              wgmma_fence();\n#pragma unroll\n              for (int kk = 0; kk < 2; kk++) {\n                wgmma<false>(acc[c], m_lo")
s=s[:i]+"""        // (3) V = P M, rounded to fp16. The guard beside it: sum_k |p_k| |M_kj| bounds how much V magnifies rounding
        in = local >= done && local < stop;
        {
          uint32_t m_hi[2][4], m_lo[2][4];
          float2 x[2][2];
          float amplified = 0.f, biggest = 0.f;
#pragma unroll
          for (int y = 0; y < 4; y++) {
            const int i = ((y >> 1) ^ (me.group & 1)) * 16 + 2 * me.q + 8 * (y & 1);
            const float2 m = *reinterpret_cast<float2*>(&z.m[local * LD_M + i]), norm = *reinterpret_cast<float2*>(&norms[i]);
            amplified = fmaf(fabsf(m.y), norm.y, fmaf(fabsf(m.x), norm.x, amplified));
            biggest = fmaxf(biggest, fmaxf(fabsf(m.x), fabsf(m.y)));
            x[y >> 1][y & 1] = in ? m : make_float2(0.f, 0.f);
          }
#pragma unroll
          for (int o = 1; o < 4; o <<= 1) {
            amplified += __shfl_xor_sync(ALL, amplified, o);
            biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, o));
          }
          if (me.group == 0 && !(amplified <= K::AMPLIFIED)) atomicMin(stop_at + 1, max(local, done + 1));
          const int e = min(max((int)(__float_as_uint(biggest) >> 23) - 127, -100), 100);
          const float scale = power_of_two(12 - e);
          by = in ? power_of_two(e - 12) : 1.f;
#pragma unroll
          for (int y = 0; y < 4; y++) {
            split_fp16(x[y >> 1][y & 1].x * scale, x[y >> 1][y & 1].y * scale, m_hi[y >> 1][2 * (y & 1)], m_lo[y >> 1][2 * (y & 1)]);
            m_hi[y >> 1][2 * (y & 1) + 1] = m_lo[y >> 1][2 * (y & 1) + 1] = 0u;  // rows of the other sub-panel
          }
"""+s[j:]
rep("        if (K::TERMS == 2) named_join(1 + me.group, 128);  // L is spent: V's low terms take its place\n        {\n          const float by = in ? __uint_as_float((254u << 23) - __float_as_uint(m_scale[local])) : 1.f;  // 1 / 2^e\n","        __syncthreads();  // L is spent: with two terms V's low terms take its place\n        const int guarded = uniform(stop_at[1]);\n        if (guarded >= stop) break;\n        stop = guarded;  // again, with fewer columns\n        }\n        {\n")
OPT3=sys.argv[2] if __name__=='__main__' and len(sys.argv)>2 else ''
if '4' in OPT3:
    rep("          by = in ? power_of_two(e - 12) : 1.f;\n","          if (me.q == 0) unscale_m[local] = in ? power_of_two(e - 12) : 1.f;  // alike in all warpgroups\n")
    rep("        float by;  // 1 / the power of two that scales M's column\n","")
    rep("        stop = guarded;  // again, with fewer columns\n        }\n        {\n","        stop = guarded;  // again, with fewer columns\n        }\n        {\n          const float by = unscale_m[local];\n")
    rep("  int* stop_at = reinterpret","  float* unscale_m = reinterpret_cast<float*>(sm + K::O_MISC + 384);  // 1 / the powers of two that scale M's columns\n  int* stop_at = reinterpret")
    rep("O_T = O_MISC + 384;","O_T = O_MISC + 512;")
if __name__=='__main__': open(sys.argv[1],'w').write(s)
