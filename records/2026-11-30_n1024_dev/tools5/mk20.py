import sys
OPT=globals().get('OPT', sys.argv[2] if len(sys.argv)>2 else '')
s=open('/work/main/submissions/v110_n1024_terms_of_v99.py').read()
def rep(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a)
    s=s.replace(a,b)
ns={'s':s}
m=open('mk13.py').read()
top=m[m.index('s=s[:i]+"""// The top of V, rounded')+len('s=s[:i]+"""'):]; top=top[:top.index('"""+s[j:]')]
top=top.replace('\\\\','\\')
i=s.index("template <class K>\nDEVICE void guard_and_top("); j=s.index("// ------------------------------------------------------------------ the kernel")
s=s[:i]+top+s[j:]
rep("  static constexpr int O_T = O_MISC + 384;","  static constexpr int O_T = O_MISC + 512;")
rep("// m_scale[32], stop, barriers","// tau[32] of a pass, stop, barriers, norms[32]")
rep("  float* m_scale = reinterpret_cast<float*>(sm + K::O_MISC);\n  int* stop_at = reinterpret_cast<int*>(sm + K::O_MISC + 128);","  float* pass_tau = reinterpret_cast<float*>(sm + K::O_MISC);\n  float* norms = reinterpret_cast<float*>(sm + K::O_MISC + 384);  // of P's columns\n  int* stop_at = reinterpret_cast<int*>(sm + K::O_MISC + 128);  // by Cholesky, by the guard")
rep("          m_scale[me.lane] = t;  // both warps write the same","          pass_tau[me.lane] = t;  // both warps write the same")
rep("form_t_32(t_pass, s_own, m_scale, t_scratch","form_t_32(t_pass, s_own, pass_tau, t_scratch")
rep("        else if (me.warp >= 4 && s == 0 && done == 0","""        else if (me.warp == 3) {
          norms[me.lane] = square_root(2.f * fabsf(z.x[me.lane * (LD_X + 1)]));
          stop_at[1] = SUB;
        }
        else if (me.warp >= 4 && s == 0 && done == 0""") if 'G' not in OPT else rep("        else if (me.warp >= 4 && s == 0 && done == 0","""        else if (me.warp == 3) {
          norms[me.lane] = square_root(2.f * fabsf(z.x[me.lane * (LD_X + 1)]));
          stop_at[1] = SUB;
        } else if (me.warp >= 4 && s == 0 && done == 0""")
rep("        guard_and_top<K>(z, m_scale, unscale + SUB * s, done, me.thread);\n        const int stop = uniform(*stop_at);\n","        if (me.thread >= 256) top_of_v<K>(z, unscale + SUB * s, done, me.thread - 256);\n        int stop = uniform(*stop_at);\n        float by;  // 1 / the power of two that scales M's column\n        bool in;\n        for (;;) {\n")
a=m.index('s=s[:i]+"""        // (3) V = P M'); blk=m[a+len('s=s[:i]+"""'):]; blk=blk[:blk.index('"""+s[j:]')].replace("((y >> 1) ^ (me.group & 1)) * 16","(y >> 1) * 16")
i=s.index("        // (3) V = P M, rounded to fp16"); j=s.index("#pragma unroll\n          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              wgmma_fence();\n#pragma unroll\n              for (int kk = 0; kk < 2; kk++) {\n                wgmma<false>(acc[c], m_lo")
s=s[:i]+blk+s[j:]
rep("        if (K::TERMS == 2) named_join(1 + me.group, 128);  // L is spent: V's low terms take its place\n        {\n          const float by = in ? __uint_as_float((254u << 23) - __float_as_uint(m_scale[local])) : 1.f;  // 1 / 2^e\n","        __syncthreads();  // L is spent: with two terms V's low terms take its place\n        const int guarded = uniform(stop_at[1]);\n        if (guarded >= stop) break;\n        stop = guarded;  // again, with fewer columns\n        }\n        {\n")
if 'K' in OPT: # keep the scale's inverse out of the loop's registers
    pass
open(sys.argv[1],'w').write(s)
