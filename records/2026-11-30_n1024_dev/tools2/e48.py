import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
i=s.index("        const uint32_t tile_at = (me.group * 4) * 512 + me.cg * 128"); j=s.index("        fence_async();\n        __syncthreads();\nMARK(8);",i)
s=s[:i]+"""        const uint32_t tile_at = (me.group * 4) * 512 + me.cg * 128 + me.g * 16 + me.q * 4;
        const uint32_t h_to = base_address + K::O_H + me.group * 2048 + (me.lane >> 3) * 512 + me.cg * 128 + (me.lane & 7) * 16;
        uint32_t hi[K::CHUNKS][4];
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
          if (c >= live) {
            if (c < live + K::STEP) {  // the only chunk with finished rows
#pragma unroll
              for (int tile = 0; tile < 4; tile++) {
                const int row = chunk_row<K>(c, tile, unit) + 4 * me.q;
                if (row < lim) acc[c][tile * 4] = 0.f;
                if (row + 1 < lim) acc[c][tile * 4 + 1] = 0.f;
              }
            }
            if (local < done) {
#pragma unroll
              for (int tile = 0; tile < 4; tile++) acc[c][tile * 4] = acc[c][tile * 4 + 1] = 0.f;
            }
            uint32_t lo[4];
#pragma unroll
            for (int tile = 0; tile < 4; tile++) {
              const float x0 = acc[c][tile * 4], x1 = acc[c][tile * 4 + 1];
              const __half2 h = __floats2half2_rn(x0, x1);
              const float2 f = __half22float2(h);
              hi[c][tile] = bits(h);
              lo[tile] = pack(2.f * (x0 - f.x), 2.f * (x1 - f.y));
            }
            store_matrices(h_to + c * (K::G * 2048), hi[c]);
            store_matrices(h_to + c * (K::G * 2048) + (K::O_L - K::O_H), lo);
          }
        }
"""+s[j:]
i=s.index("              uint32_t a_hi[2][4];  // only the rows of the sub-panel"); j=s.index("              wgmma_fence();",i)
s=s[:i]+"""              const uint32_t a_hi[2][4] = {{hi[c][0], 0u, hi[c][1], 0u}, {hi[c][2], 0u, hi[c][3], 0u}};  // only the sub-panel's columns
"""+s[j:]
# epilogue
i=s.index("          unsigned char* v_to = sm + me.group * CHUNK_BYTES"); j=s.index("        // the rest of the four rows in which lim lies",i)
old=s[i:j]
s=s[:i]+"""          const uint32_t v_to = base_address + me.group * CHUNK_BYTES + (me.lane >> 3) * TILE_BYTES + (4 * s + me.cg) * 128 + (me.lane & 7) * 16;
          const float* v_from = V_TOP + local * LD_TOP + row0 - first;
          const float* h_from = z.top + local * LD_TOP + row0 - first;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              uint32_t v[4];
              bool in_top[2] = {false, false};
              if (c < live + K::STEP) {  // the only chunk with rows of the top
#pragma unroll
                for (int t = 0; t < 2; t++) in_top[t] = (unsigned)(chunk_row<K>(c, 2 * t, unit) - first) < SUB;
              }
#pragma unroll
              for (int t = 0; t < 2; t++) {
                float *x = &acc[c][t * 8], *y = x + 4;
                if (in) {
                  float4 f = make_float4(x[0] * by, x[1] * by, y[0] * by, y[1] * by);
                  if (in_top[t]) f = *reinterpret_cast<const float4*>(v_from + chunk_row<K>(c, 2 * t, 0));
                  const __half2 v0 = __floats2half2_rn(f.x, f.y), v1 = __floats2half2_rn(f.z, f.w);
                  const float2 f0 = __half22float2(v0), f1 = __half22float2(v1);
                  x[0] = f0.x;
                  x[1] = f0.y;
                  y[0] = f1.x;
                  y[1] = f1.y;
                  v[2 * t] = bits(v0);
                  v[2 * t + 1] = bits(v1);
                } else {  // of an earlier pass, the same again; of a later one, nothing yet
                  v[2 * t] = local < done ? pack(x[0], x[1]) : 0u;
                  v[2 * t + 1] = local < done ? pack(y[0], y[1]) : 0u;
                }
              }
              store_matrices(v_to + c * (K::G * CHUNK_BYTES), v);
#pragma unroll
              for (int t = 0; t < 2; t++) {
                const int row = chunk_row<K>(c, 2 * t, 0);
                const float *x = &acc[c][t * 8], *y = x + 4;
                float4 f = make_float4(x[0], x[1], y[0], y[1]);
                if (in_top[t]) f = *reinterpret_cast<const float4*>(h_from + row);
                if (store && row0 + row >= lim && row0 + row < n) *reinterpret_cast<float4*>(h_to + row) = f;
              }
            }
          }
        }
""".replace("V_TOP", "z.g_next" if "z.g_next + local" in old else "z.x")+s[j:]
open(dst,'w').write(s)
h=open('hw.cuh').read()
if 'store_matrices' not in h:
    i=h.index("// Makes this thread's ordinary stores")
    h=h[:i]+'''// Four 8 x 8 matrices of halves, a thread's words (row lane/4, columns 2 (lane%4)) to the rows that lanes 8i .. 8i+7 name
DEVICE void store_matrices(uint32_t row_at, const uint32_t (&x)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" ::"r"(row_at), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]) : "memory");
}

'''+h[i:]
    open('hw.cuh','w').write(h)
e=open('emu.h').read()
if 'store_matrices' not in e:
    i=e.index("static void fence_async(){}")
    e=e[:i]+'''static void store_matrices(uint32_t at,const uint32_t (&x)[4]){ int l=cur->tid&31; for(int i=0;i<4;i++){ uint32_t a=shfl_(at,i*8+l/4); memcpy(smem_base()+(a&0xffffff)+(l%4)*4,&x[i],4); } int z=0; collect(&z,4); }
'''+e[i:]
    open('emu.h','w').write(e)
