import sys
v=sys.argv[1]
src=open('mk9.py').read().rsplit("if __name__",1)[0]
exec(src)
ZU="""#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi"""
rep(ZU,ZU.replace("int c = 0; c < K::CHUNKS; c++","int c = K::CHUNKS - 1; c >= 0; c--"))
if '1' in v: rep("          wgmma_wait();\n          __syncthreads();\n          cluster_arrive();","          wgmma_wait();\n          if (K::TERMS == 2) named_join(1 + me.group, 128);  // V's low terms have left\n          cluster_arrive();")
if '2' in v:
    rep("        const bool last = s == 1 && stop == SUB;  // V is complete, H and L are spent: the next panel may come\n        if (last) {\n","        const bool last = s == 1 && stop == SUB;\n        if (!last) {\n          named_join(1 + me.group, 128);  // only its own tiles of V are a warpgroup's concern\n        } else {  // V is complete, H and L are spent: the next panel may come\n          __syncthreads();\n")
    rep("        fence_async();\n        __syncthreads();\n        const bool last","        fence_async();\n        const bool last")
if '3' in v: rep("              else a[(z >> 1) * 2] = 0u;","              else a[(z >> 1) * 2] = p.zero;")
if '4' in v: rep("              split_fp16(i >= done && i < stop ? -x.x : 0.f, i + 1 >= done && i + 1 < stop ? -x.y : 0.f, w_hi[kk][y], w_lo[kk][y]);","              const bool on = i >= done, off = i < stop;\n              split_fp16(on && off ? -x.x : 0.f, i + 1 >= done && i + 1 < stop ? -x.y : 0.f, w_hi[kk][y], w_lo[kk][y]);")
if '5' in v: # barrier id expression for both
    rep("        fence_async();\n        __syncthreads();\n        const bool last = s == 1 && stop == SUB;","        fence_async();\n        const bool last = s == 1 && stop == SUB;\n        if (last) __syncthreads();\n        else named_join(1 + me.group, 128);  // only its own tiles of V are a warpgroup's concern\n")
if '6' in v: # barrier with computed number of threads: one instruction
    rep("        fence_async();\n        __syncthreads();\n        const bool last = s == 1 && stop == SUB;","        fence_async();\n        const bool last = s == 1 && stop == SUB;\n        named_join(last ? 0 : 1 + me.group, last ? K::THREADS : 128);  // where more is to come only its own tiles of V are a warpgroup's concern\n")
if '7' in v: rep("                if (s == 0) {\n                  low","                {\n                  low")
open(sys.argv[2],'w').write(s)
