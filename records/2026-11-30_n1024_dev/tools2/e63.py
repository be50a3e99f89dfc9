s=open('body62.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
src=open('e36.py').read()
i=src.index("rec='''")+7; j=src.index("'''\n",i); rec=src[i:j]
rep("SCRATCH = 27 * 1024 + 512,","SCRATCH = 36 * 1024,")
rep("constexpr int LD_X = 33, LD_TOP = 36, LD_SHIFT = 36, LD_M = 40, LD_R = 33;","constexpr int LD_X = 33, LD_TOP = 36, LD_SHIFT = 36, LD_R = 33;")
import re
m=re.search(r"                       O_X = O_R \+ SUB \* LD_R \* 4, O_M = O_X \+ SUB \* LD_TOP \* 4,\n.*\n",s); print(m.group(0))
s=s.replace(m.group(0),"""                       O_X = O_R + SUB * LD_R * 4, O_M = O_X + SUB * LD_TOP * 4, O_Y = O_M + SUB * LD_SHIFT * 4,
                       O_NEXT = O_Y + 16 * LD_SHIFT * 4, O_INV = O_NEXT + 32 * LD_SHIFT * 4, SCRATCH_END = O_INV + 512;
""")
i=s.index("// ------------------------------------------------------------------ the recurrence"); j=s.index("// T without a serial substitution")
k=s.index("// C = sign A B, SIZE"); inv=s[j:k]; rest=s[k:]
i2=src.index("'''// M = W^-1 by two warps")+3; j2=src.index("template <class K>\nDEVICE void guard_and_top",i2); formm=src[i2:j2]
rest=rest.replace("template <class K>\nDEVICE void guard_and_top",formm+"template <class K>\nDEVICE void guard_and_top",1)
s=s[:i]+rec+inv+rest
rep('''    const int i = thread >> 3, k4 = (thread & 7) * 4;
''','''    const int i = thread >> 3;
''')
rep('''      const float m = fabsf(z.m[i * LD_M + k4 + e]);
      amplified = fmaf(m, square_root(2.f * fabsf(z.x[(k4 + e) * (LD_X + 1)])), amplified);
''','''      const int k = (thread & 7) + 8 * e;
      const float m = fabsf(z.m[k * LD_SHIFT + i]);
      amplified = fmaf(m, square_root(2.f * fabsf(z.x[k * (LD_X + 1)])), amplified);
''')
i=s.index("    const int row = thread & 31, i = (thread - (K::THREADS - 256)) >> 5 << 2;"); j=s.index("      const int j = i + u;\n",i)
print(s[i:j+400])
s=s[:i]+'''    const int row = thread & 31, own = (thread - (K::THREADS - 256)) >> 5 << 2, i = own & ~7;  // four columns, own .. own + 3
    float iv[8], l[8];
    load8(iv, z.inverse + i);
#pragma unroll
    for (int u = 0; u < 8; u++) {
      l[u] = z.v[(i + u) * LD_SHIFT + row];
#pragma unroll
      for (int m = 0; m < u; m++) l[u] = fmaf(-l[m], z.w[(i + m) * LD_SHIFT + i + u], l[u]);
      l[u] *= iv[u];
      if ((u & 4) != (own & 4)) continue;
'''+s[j:]
rep("row > j ? below : (row == j && iv.e[u] != 0.f ? 1.f : 0.f)","row > j ? below : (row == j && iv[u] != 0.f ? 1.f : 0.f)")
rep('''  z.threshold = z.inverse + 32;
  z.g_diagonal = z.inverse + 64;
  z.a_diagonal = z.inverse + 80;
''','''  z.threshold = z.inverse + 32;
  z.g_diagonal = z.inverse + 64;
  z.y = reinterpret_cast<float*>(sm + K::O_Y);
  z.g_next = reinterpret_cast<float*>(sm + K::O_NEXT);
  z.a_next = z.g_next + 16 * LD_SHIFT;
''')
rep("        if (me.warp < 3) {\n          // the other","        if (me.warp < 2) {\n          // the other")
rep("          else if (me.warp == 1) warp_top(z, me.lane);\n          else warp_m(z, me.lane);\n","          else warp_top(z, me.lane);\n")
assert s.count("K::O_INBOX + K::SCRATCH +")==2
s=s.replace("K::O_INBOX + K::SCRATCH +","K::O_PW +")
rep("""  static_assert(SCRATCH + 3 * 4096 <= INBOX, "three warps' registers beside the scratch");""","""  static_assert(2 * W_BYTES >= 2 * 4096, "two warps' registers where W will be");""")
rep("        else if (me.warp >= 4 && s == 0 && done == 0","""        else if (me.warp == 4 || me.warp == 5) form_m(z, me.thread - 128);
        else if (me.warp < 8) {
          if (me.warp & 1) warp_top_helper(z, me.lane, 2 + (me.warp >> 2));
          else warp_gram_helper(z, me.lane, 2 + (me.warp >> 2));
        }
        else if (s == 0 && done == 0""")
rep("for (int i = me.warp - 4; i < 4 * K::CHUNKS; i += 4 * K::G - 4)","for (int i = me.warp - 8; i < 4 * K::CHUNKS; i += 4 * K::G - 8)")
rep("for (int i = me.thread - 128; i < K::ROWS / K::C * 2; i += K::THREADS - 128)","for (int i = me.thread - 256; i < K::ROWS / K::C * 2; i += K::THREADS - 256)")
rep('''                x = *reinterpret_cast<float2*>(&z.m[local * LD_M + kk * 16 + 2 * me.q + 8 * (y >> 1)]);
''','''                const float* m = z.m + (kk * 16 + 2 * me.q + 8 * (y >> 1)) * LD_SHIFT + local;
                x = make_float2(m[0], m[LD_SHIFT]);
''')
open('body63.cuh','w').write(s)
