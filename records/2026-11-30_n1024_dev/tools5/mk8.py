import sys
src=open('mk7.py').read().rsplit("if __name__",1)[0]
exec(src)
rep("""                if constexpr (K::TERMS == 2) {
                  low_operand(c, u, a);
                  wgmma_fence();
                  wgmma<true>(w, a, b);  // low low comes along
""","""                if (K::TERMS == 2 || s == 0) {
                  low_operand(c, u, a);
                  wgmma_fence();
                  wgmma<true>(*reinterpret_cast<float(*)[16]>(w), a, b);
""")
rep("          // P: HH + 2 HL, twice the Gram matrix but for its symmetry (two terms: HH + HL + LH); other: P'C","          // P: HH + HL + LH (or HH + 2 HL, as good since the transpose is added); other: P'C")
rep("fmaf(i & 2 || K::TERMS == 2 ? 1.f : 2.f, w[16 + i], w[i]);","fmaf(K::TERMS == 2 || s == 0 ? 1.f : 2.f, w[16 + i], w[i]);")
rep("          x = make_float4(rounded<K>(x.x), rounded<K>(x.y), rounded<K>(x.z), rounded<K>(x.w));\n","")
rep(", rounded as in the product","")
i=s.index("template <class K>\nDEVICE float rounded("); j=s.index("// 64 columns x 32 reflectors a warpgroup, then"); s=s[:i]+s[j:]
if __name__=='__main__': open(sys.argv[1],'w').write(s)
