import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
i=s.index("        // (1) Gram: H and L = 2 (P - H)"); j=s.index("        fence_async();\n        __syncthreads();\nMARK(8);",i)
s=s[:i]+"""        // (1) Gram: H and L = 2 (P - H) of the open rows and columns to shared memory as wgmma operands
        const uint32_t tiles_to = base_address + K::O_H + me.group * 2048 + (me.lane >> 3) * 512 + me.cg * 128 + (me.lane & 7) * 16;
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
          if (c >= live) {
            uint32_t hi[4], lo[4];
#pragma unroll
            for (int tile = 0; tile < 4; tile++) {
              const int row = chunk_row<K>(c, tile, unit) + 4 * me.q;
              const float x0 = local >= done && row >= lim ? acc[c][tile * 4] : 0.f;
              const float x1 = local >= done && row + 1 >= lim ? acc[c][tile * 4 + 1] : 0.f;
              const __half2 h = __floats2half2_rn(x0, x1);
              const float2 f = __half22float2(h);
              hi[tile] = bits(h);
              lo[tile] = pack(2.f * (x0 - f.x), 2.f * (x1 - f.y));
            }
            store_matrices(tiles_to + c * (K::G * 2048), hi);
            store_matrices(tiles_to + c * (K::G * 2048) + (K::O_L - K::O_H), lo);
          }
        }
"""+s[j:]
i=s.index("          unsigned char* v_to = sm + me.group * CHUNK_BYTES"); j=s.index("        // the rest of the four rows in which lim lies",i)
s=s[:i]+"""          const uint32_t v_to = base_address + me.group * CHUNK_BYTES + (me.lane >> 3) * TILE_BYTES + (4 * s + me.cg) * 128 + (me.lane & 7) * 16;
          const float* v_from = z.r1 + local * LD_TOP + row0 - first;
          const float* h_from = z.top + local * LD_TOP + row0 - first;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              uint32_t to_tiles[4];
#pragma unroll
              for (int tile = 0; tile < 4; tile += 2) {
                const int row = chunk_row<K>(c, tile, 0);
                float *x = &acc[c][tile * 4], *y = x + 4;
                float4 v = make_float4(x[0] * by, x[1] * by, y[0] * by, y[1] * by);
                const bool in_top = in && (unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB;
                if (in_top) v = *reinterpret_cast<const float4*>(v_from + row);
                const __half2 v0 = __floats2half2_rn(v.x, v.y), v1 = __floats2half2_rn(v.z, v.w);
                const float2 f0 = __half22float2(v0), f1 = __half22float2(v1);
                if (in) {
                  x[0] = f0.x;
                  x[1] = f0.y;
                  y[0] = f1.x;
                  y[1] = f1.y;
                }
                to_tiles[tile] = local < stop ? bits(v0) : 0u;  // a column of an earlier pass: the same again
                to_tiles[tile + 1] = local < stop ? bits(v1) : 0u;
                v = make_float4(f0.x, f0.y, f1.x, f1.y);
                if (in_top) v = *reinterpret_cast<const float4*>(h_from + row);
                if (store && row0 + row >= lim && row0 + row < n) *reinterpret_cast<float4*>(h_to + row) = v;
              }
              store_matrices(v_to + c * (K::G * CHUNK_BYTES), to_tiles);
            }
          }
        }
"""+s[j:]
open(dst,'w').write(s)
