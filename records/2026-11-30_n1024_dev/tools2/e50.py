import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
i=s.index("  // the top of V, rounded, over z.x, and of H"); j=s.index("    float l[4];\n",i)
print(s[i-40:j])
k=s.rindex("  __syncthreads();\n",0,i)
s=s[:k]+s[i:]
rep("  // the top of V, rounded, over z.x, and of H (R above V), over z.top; both [column][row]\n  float* v_top = z.x;\n  if (thread < 256) {\n    const int row = thread & 31, i = thread >> 5 << 2;",
"  // beside it the top of V, rounded, over |R|, and of H (R above V), over z.top; both [column][row]\n  if (thread >= K::THREADS - 256) {\n    float* v_top = z.r1;\n    const int row = thread & 31, i = (thread - (K::THREADS - 256)) >> 5 << 2;")
rep("const float* v_from = z.x + local","const float* v_from = z.r1 + local")
a="                for (int y = 0; y < 8; y++) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][(y & 1) + (y >> 1 & 1) * 2]);\n"
rep(a,"""                for (int y = 1; y < 8; y += 2) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][1 + (y >> 1 & 1) * 2]);
                a[0][0] = a[0][2] = a[1][0] = a[1][2] = 0u;  // V is exact
                if (stop < SUB) {
#pragma unroll
                  for (int y = 0; y < 8; y += 2) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][(y >> 1 & 1) * 2]);
                }
""")
open(dst,'w').write(s)
