import sys
src=open('mk8.py').read().rsplit("if __name__",1)[0]
exec(src)
# low terms of the other sub-panel only (s == 0), of V1 (two terms, s == 1)
i=s.index("          auto low_operand = [&]"); j=s.index("#pragma unroll\n          for (int c = K::CHUNKS - 1; c >= 0; c--) {\n            if (c == K::CHUNKS - 1 || c >= live) {\n#pragma unroll\n              for (int u = 0; u < 2; u++) {\n                const uint64_t b")
s=s[:i]+"""          auto low_operand = [&](int c, int u, uint32_t (&a)[4]) {  // of the other sub-panel
            uint32_t unused;
#pragma unroll
            for (int z = 0; z < 4; z++) {
              if (z & 1) split_fp16(acc[c][8 * u + 2 * z], acc[c][8 * u + 2 * z + 1], unused, a[1 + (z >> 1) * 2]);
              else a[(z >> 1) * 2] = 0u;
            }
          };
"""+s[j:]
rep("                if (K::TERMS == 2 || s == 0) {\n","                if (s == 0) {\n")
rep("          // P: HH + HL + LH (or HH + 2 HL, as good since the transpose is added); other: P'C","          // P: HH + 2 HL, twice the Gram matrix but for its symmetry; other: P'C")
rep("fmaf(K::TERMS == 2 || s == 0 ? 1.f : 2.f, w[16 + i], w[i]);","fmaf(i & 2 ? 1.f : 2.f, w[16 + i], w[i]);")
# two terms: a tie would split into other terms the next time
rep("                  f0 = make_float2(f0.x + g0.x, f0.y + g0.y);\n                  f1 = make_float2(f1.x + g1.x, f1.y + g1.y);\n","                  f0 = make_float2(f0.x + g0.x, f0.y + g0.y);\n                  f1 = make_float2(f1.x + g1.x, f1.y + g1.y);\n")
rep("                const __half2 v0 = __floats2half2_rn(v.x, v.y), v1 = __floats2half2_rn(v.z, v.w);\n","                __half2 v0 = __floats2half2_rn(v.x, v.y), v1 = __floats2half2_rn(v.z, v.w);\n")
rep("                  const __half2 l0 = __floats2half2_rn(v.x - f0.x, v.y - f0.y), l1 = __floats2half2_rn(v.z - f1.x, v.w - f1.y);\n                  const float2 g0 = __half22float2(l0), g1 = __half22float2(l1);\n","                  __half2 l0 = __floats2half2_rn(v.x - f0.x, v.y - f0.y), l1 = __floats2half2_rn(v.z - f1.x, v.w - f1.y);\n                  float2 g0 = __half22float2(l0), g1 = __half22float2(l1);\n")
rep("                  f1 = make_float2(f1.x + g1.x, f1.y + g1.y);\n","""                  f1 = make_float2(f1.x + g1.x, f1.y + g1.y);
                  // V'V splits the sum again: where the low term is half a unit, into other terms unless they are taken here
                  v0 = __floats2half2_rn(f0.x, f0.y), v1 = __floats2half2_rn(f1.x, f1.y);
                  g0 = __half22float2(v0), g1 = __half22float2(v1);
                  l0 = __floats2half2_rn(f0.x - g0.x, f0.y - g0.y), l1 = __floats2half2_rn(f1.x - g1.x, f1.y - g1.y);
""")
if __name__=='__main__': open(sys.argv[1],'w').write(s)
