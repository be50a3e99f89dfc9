import sys
v=sys.argv[1]
OPT=''
src=open('mk20.py').read().rsplit("open(sys.argv[1]",1)[0]
exec(src)
if '2' in v:
    a="#pragma unroll\n          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              uint32_t to_tiles[4], low_tiles[4];"
    rep(a,a.replace("int c = 0; c < K::CHUNKS; c++","int c = K::CHUNKS - 1; c >= 0; c--"))
if '3' in v:
    a="#pragma unroll\n          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              wgmma_fence();\n#pragma unroll\n              for (int kk = 0; kk < 2; kk++) {\n                wgmma<false>(acc[c], m_lo"
    rep(a,a.replace("int c = 0; c < K::CHUNKS; c++","int c = K::CHUNKS - 1; c >= 0; c--"))
if '4' in v:
    rep("          by = in ? power_of_two(e - 12) : 1.f;\n","          if (me.q == 0) norms[SUB + local] = in ? power_of_two(e - 12) : 1.f;  // alike in all warpgroups\n")
    rep("        float by;  // 1 / the power of two that scales M's column\n","")
    rep("        stop = guarded;  // again, with fewer columns\n        }\n        {\n","        stop = guarded;  // again, with fewer columns\n        }\n        {\n          const float by = norms[SUB + local];  // 1 / the power of two that scaled M's column\n")
    rep("O_T = O_MISC + 512;","O_T = O_MISC + 640;") 
if '5' in v:
    rep("        for (;;) {\n","        do {\n"); rep("        if (guarded >= stop) break;\n        stop = guarded;  // again, with fewer columns\n        }\n","        again = guarded < stop;  // with fewer columns\n        stop = min(stop, guarded);\n        } while (again);\n"); rep("        bool in;\n","        bool in, again;\n")
if '6' in v: rep("if (me.thread >= 256) top_of_v","if (me.warp >= 8) top_of_v")
if '7' in v:
    a="#pragma unroll\n          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              wgmma_fence();\n#pragma unroll\n              for (int kk = 0; kk < 2; kk++) {\n                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi"
    rep(a,a.replace("int c = 0; c < K::CHUNKS; c++","int c = K::CHUNKS - 1; c >= 0; c--"))
if '8' in v: # guard's redo without a loop variable: stop read anew
    rep("        int stop = uniform(*stop_at);\n","        int stop = uniform(min(*stop_at, SUB));\n")
open(sys.argv[2],'w').write(s)
