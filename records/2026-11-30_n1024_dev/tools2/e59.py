import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
# own sums in shared memory
rep("            const float4* partial = reinterpret_cast<const float4*>(sm + K::O_PARTIAL) + i;\n            float4 x = partial[0];","            float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + i;\n            float4 x = partial[0];")
rep("            own[piece] = x;\n","            partial[0] = x;\n")
rep("r == (int)rank ? own[piece] : in[","r == (int)rank ? *reinterpret_cast<const float4*>(sm + K::O_PARTIAL + i * 16) : in[")
rep("        float4 own[PIECES];\n","")
# j and k over the first product
rep("DEVICE void apply_block(Acc<K>& acc, const Args& p, unsigned char* sm, int j, int blocks,","DEVICE void apply_block(Acc<K>& acc, const Args& p, unsigned char* sm, int& j, int& blocks,")
rep("  {\n    float w[32];\n","  save_words(base + K::O_STATE + me.warp * 16, j, blocks, 0, 0);\n  {\n    float w[32];\n") if s.count("  {\n    float w[32];\n")==1 else print("?")
i=s.index("    locale();") if "locale();" in s else s.index("    locate();\n    // sum over the CTA's")
s=s[:i]+"    {\n      int unused, unused_too;\n      load_words(shared_address(sm) + K::O_STATE + (thread_index() >> 5) * 16, j, blocks, unused, unused_too);\n    }\n"+s[i:]
open(dst,'w').write(s)
import re
t=s.replace("if (me.warp == 0) warp_cholesky(z, me.lane, done);","if (me.warp == 77) {}").replace("else if (me.warp == 1) warp_top(z, me.lane);","").replace("else if (me.warp == 2) warp_m(z, me.lane);","")
open('x_norec.cuh','w').write(t)
