import sys
OPT=globals().get('OPT', sys.argv[2] if len(sys.argv)>2 else '')
src=open('mk13.py').read().rsplit("if __name__",1)[0]
exec(src)
# roles: warp 7 beside Cholesky's follower; half of the rows only where the others are finished
for f,d in (('g','rows, r'),('a','columns, y')):
    rep(f"""#pragma unroll
    for (int q = 1; q < SUB / 4; q++) update_quad({f}, q, {d});
""",f"""#pragma unroll
    for (int q = 1; q < SUB / 8; q++) update_quad({f}, q, {d});
    if (i < SUB / 2) {{
#pragma unroll
      for (int q = SUB / 8; q < SUB / 4; q++) update_quad({f}, q, {d});
    }}
""")
rep("        if (me.warp < 3 || (s == 0 && me.warp < 5)) {","        if (role()) {")
rep("        z.others = s == 0 ? 32 : 0;\n","")
rep("        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);\n","        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);\n") 
i=s.index("        if (local >= done && first + local < n) {  // R of the finished rows"); j=s.index("        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);")
body=s[i:j]
lines=body.rstrip('\n').split('\n')
lam="        // R of the finished rows (rows from lim on that come along are stored again below); the roles of the recurrence before it, the others beside it\n        auto role = [&]() { return me.warp < 3 || (s == 0 && (me.warp == 3 || me.warp == 7)); };\n        auto store_r = [&]() {\n"+'\n'.join('  '+l for l in lines).replace("  // R of the finished rows (rows from lim on that come along are stored again below)","")+"\n        };\n        if (role()) store_r();\n        z.others = s == 0 ? 32 : 0;\n"
s=s[:i]+lam+s[j:]
i=s.index("        else if (s == 1 && me.warp == 3) {  // tau of the first"); j=s.index("        __syncthreads();\n        {\n          int unused;")
blk=s[i:j]
blk=blk.replace("        else if (s == 1 && me.warp == 3) {  // tau of the first sub-panel","        else {\n          store_r();\n          if (s == 1 && me.warp == 3) {  // tau of the first sub-panel",1)
head,rest=blk.split("        else {\n          store_r();\n",1)
rest='\n'.join(('  '+l if l and not l.startswith('#') and not l.startswith('          if (s == 1 && me.warp == 3)') else l) for l in rest.split('\n'))
blk="        else {\n          store_r();\n"+rest.rstrip()+"\n        }\n"
s=s[:i]+blk+s[j:]
rep("else if (me.warp >= 6 && s == 0 && done == 0","else if (me.warp >= 8 && s == 0 && done == 0")
rep("for (int i = me.warp - 6; i < 4 * K::CHUNKS; i += 4 * K::G - 6)","for (int i = me.warp - 8; i < 4 * K::CHUNKS; i += 4 * K::G - 8)")
rep("for (int i = me.thread - 192; i < K::ROWS / K::C * 2; i += K::THREADS - 192) {","for (int i = me.thread - 256; i < K::ROWS / K::C * 2; i += K::THREADS - 256) {")
# V to H after the update
i=s.index("        // V and the top of R to H while W is on its way"); j=s.index("        if (last) {\n          wait_for<K>(base_address, PANEL_BAR, k & 1);")
vh=s[i:j]; s=s[:i]+s[j:]
i=s.index("        if (last) {\n          wait_for<K>(base_address, PANEL_BAR, k & 1);"); m=s.index("        } else {\n          // (5) C -= V Z"); e=s.index("        done = stop;\n")
w=s[i:m]; upd=s[m:e]
upd=upd.replace("        } else {\n          // (5)","        if (!last) {\n          // (5)",1)
upd=upd.replace("          cluster_arrive();\n        }\n","        }\n")
s=s[:i]+upd+vh.replace("// V and the top of R to H while W is on its way","// V and the top of R to H; the last time while V'V is on its way")+w+"        } else {\n          cluster_arrive();\n        }\n"+s[e:]
if 'N' in OPT: # no low terms of the other sub-panel in P'C
    i=s.index("                if (s == 0) {\n                  low_operand"); j=s.index("              }\n            }\n          }\n          // P: HH + 2 HL"); s=s[:i]+"                if constexpr (K::TERMS == 2) {\n"+s[i+len("                if (s == 0) {\n"):]
if 'O' in OPT: # Z in one term
    rep("                wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));","                if (K::TERMS == 2) wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));")
if 'F' in OPT: # low terms of both sub-panels
    rep("              if (z & 1) split_fp16(acc[c][8 * u + 2 * z], acc[c][8 * u + 2 * z + 1], unused, a[1 + (z >> 1) * 2]);\n              else a[(z >> 1) * 2] = 0u;\n","              split_fp16(acc[c][8 * u + 2 * z], acc[c][8 * u + 2 * z + 1], unused, a[(z & 1) + (z >> 1) * 2]);\n")
    rep("fmaf(i & 2 ? 1.f : 2.f, w[16 + i], w[i]);","fmaf(i & 2 || s == 0 ? 1.f : 2.f, w[16 + i], w[i]);")
    rep("          auto low_operand = [&](int c, int u, uint32_t (&a)[4]) {  // of the other sub-panel","          auto low_operand = [&](int c, int u, uint32_t (&a)[4]) {")
    rep("          // P: HH + 2 HL, twice the Gram","          // P: HH + HL + LH or, as good, HH + 2 HL, twice the Gram")
if 'R' in OPT: # R as before
    rep("        if (role()) store_r();\n","        store_r();\n"); rep("          store_r();\n          if (s == 1 && me.warp == 3)","          if (s == 1 && me.warp == 3)")
if 'P' in OPT: rep("        __syncthreads();\n        float4 own = send_sums","        __syncthreads();\n        locate();\n        float4 own = send_sums")
if 'Q' in OPT: rep("          store_r();\n          if (s == 1 && me.warp == 3)","          locate();\n          store_r();\n          if (s == 1 && me.warp == 3)")
if '4' in OPT:
    rep("          by = in ? power_of_two(e - 12) : 1.f;\n","          if (me.q == 0) unscale_m[local] = in ? power_of_two(e - 12) : 1.f;  // alike in all warpgroups\n")
    rep("        float by;  // 1 / the power of two that scales M's column\n","")
    rep("        stop = guarded;  // again, with fewer columns\n        }\n        {\n","        stop = guarded;  // again, with fewer columns\n        }\n        {\n          const float by = unscale_m[local];\n")
    rep("  int* stop_at = reinterpret","  float* unscale_m = reinterpret_cast<float*>(sm + K::O_MISC + 384);  // 1 / the powers of two that scale M's columns\n  int* stop_at = reinterpret")
    rep("O_T = O_MISC + 384;","O_T = O_MISC + 512;")
if __name__=='__main__': open(sys.argv[1],'w').write(s)
