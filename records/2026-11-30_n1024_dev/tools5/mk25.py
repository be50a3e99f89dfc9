import sys
v=sys.argv[2]
s=open('v20_4.py').read()
def rep(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a)
    s=s.replace(a,b)
# no loop: where the guard trips the columns behind it get P back instead of V
i=s.index("        if (done > 0 || stop < SUB) {  // a part of the sub-panel only"); j=s.index("        // (3) V = P M, rounded to fp16. The guard")
back=s[i:j]; s=s[:i]+s[j:]
rep("        for (;;) {\n","")
rep("        const int guarded = uniform(stop_at[1]);\n        if (guarded >= stop) break;\n        stop = guarded;  // again, with fewer columns\n        }\n","        stop = min(stop, (int)uniform(stop_at[1]));\n        in = in && local < stop;\n"+back)
rep("          const float by = norms[SUB + local];","          const float by = in ? norms[SUB + local] : 1.f;")
if 'a' in v: rep("          wgmma_wait();\n          __syncthreads();\n        }\n        done = stop;","          wgmma_wait();\n          if (K::TERMS == 2) __syncthreads();  // V's low terms have been read\n        }\n        done = stop;")
if 'r' in v: rep("    wait_for<K>(base, T_BAR, turn() & 1);\n    {\n      const int mt = (me.cg + me.group) & 3;","    const int mt = (thread_index() >> 5) * 5 >> 2 & 3;\n    wait_for<K>(base, T_BAR, turn() & 1);\n    {")
if '7' in v:
    a="#pragma unroll\n          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              wgmma_fence();\n#pragma unroll\n              for (int kk = 0; kk < 2; kk++) {\n                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi"
    rep(a,a.replace("int c = 0; c < K::CHUNKS; c++","int c = K::CHUNKS - 1; c >= 0; c--"))
open(sys.argv[1],'w').write(s)
