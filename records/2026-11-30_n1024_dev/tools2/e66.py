import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("""                v = make_float4(f0.x, f0.y, f1.x, f1.y);
                if (in_top) v = *reinterpret_cast<const float4*>(h_from + row);
                if (store && row0 + row >= lim && row0 + row < n) *reinterpret_cast<float4*>(h_to + row) = v;
""","")
rep("          const float* h_from = z.top + local * LD_TOP + row0 - first;\n","")
i=s.index("          const bool store = in && first + local < n;\n"); j=s.index("          const int row0 = unit * 16 + 4 * me.q;\n",i)
s=s[:i]+s[j:]
i=s.index("        // the rest of the four rows in which lim lies"); j=s.index("        fence_async();\n",i)
s=s[:i]+s[j:]
# after the sends of W
i=s.index("        wait_for<K>(base_address, PANEL_BAR, k & 1);\n",s.index("constexpr int PIECES"))
s=s[:i]+"""        // V and the top of R to H while W is on its way
        if (in && first + local < n) {
          const int row0 = unit * 16 + 4 * me.q;
          const float* h_from = z.top + local * LD_TOP + row0 - first;
          float* h_to = h_column();
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
#pragma unroll
              for (int tile = 0; tile < 4; tile += 2) {
                const int row = chunk_row<K>(c, tile, 0);
                const float *x = &acc[c][tile * 4], *y = x + 4;
                float4 v = make_float4(x[0], x[1], y[0], y[1]);
                if ((unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB) v = *reinterpret_cast<const float4*>(h_from + row);
                if (row0 + row >= lim && row0 + row < n) *reinterpret_cast<float4*>(h_to + row) = v;
              }
            }
          }
          // the rest of the four rows in which lim lies, by the thread that stored those four before
          if ((done & 3) && lim / 16 % K::UNITS == unit && me.q == (lim >> 2 & 3)) {
#pragma unroll 1
            for (int row = lim; row <= (lim | 3) && row < n; row++)
              p.h[((size_t)(opaque(blockIdx.x) / K::C) * n + first + local) * p.ld + row] = z.top[local * LD_TOP + row - first];
          }
        }
"""+s[i:]
# R: only chunks with finished rows
a="""#pragma unroll
            for (int tile = 0; tile < 4; tile += 2) {
              const int row = chunk_row<K>(c, tile, 0);
              const float *x = &acc[c][tile * 4], *y = x + 4;
              if (row0 + row < end)"""
assert s.count(a)==1
i=s.index(a); j=s.index("            }\n",i)
s=s[:i]+"            if (c < live + K::STEP) {\n"+s[i:j]+"            }\n            }\n"+s[j+len("            }\n"):]
open(dst,'w').write(s)
