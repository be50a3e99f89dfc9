import sys
v=sys.argv[1]
src=open('var20.py').read().rsplit("open(sys.argv[2]",1)[0].replace("v=sys.argv[1]","v='4'")
exec(src)
v=sys.argv[1]
if 'a' in v: rep("          wgmma_wait();\n          __syncthreads();\n        }\n        done = stop;","          wgmma_wait();\n          if (K::TERMS == 2) __syncthreads();  // V's low terms have been read\n        }\n        done = stop;")
if 'm' in v:
    rep("        const bool last = s == 1 && stop == SUB;  // V is complete, H and L are spent: the next panel may come\n","")
    rep("        stop = guarded;  // again, with fewer columns\n        }\n","        stop = guarded;  // again, with fewer columns\n        }\n        const bool last = s == 1 && stop == SUB;  // H and L are spent: the next panel may come\n        if (last && staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, rank, me.thread);\n")
    rep("          if (staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, rank, me.thread);\n        }\n        if (K::TERMS == 2 && stop","        }\n        if (K::TERMS == 2 && stop")
if 'M' in v: # the same, by warps 8 to 15
    pass
if '7' in v:
    a="#pragma unroll\n          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              wgmma_fence();\n#pragma unroll\n              for (int kk = 0; kk < 2; kk++) {\n                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi"
    rep(a,a.replace("int c = 0; c < K::CHUNKS; c++","int c = K::CHUNKS - 1; c >= 0; c--"))
if '3' in v:
    a="#pragma unroll\n          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              wgmma_fence();\n#pragma unroll\n              for (int kk = 0; kk < 2; kk++) {\n                wgmma<false>(acc[c], m_lo"
    rep(a,a.replace("int c = 0; c < K::CHUNKS; c++","int c = K::CHUNKS - 1; c >= 0; c--"))
open(sys.argv[2],'w').write(s)
