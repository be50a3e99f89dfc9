s=open('body39.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("constexpr int T_BYTES = 36 * 256;     // T: the 8 x 8 tiles on and above the diagonal, column by column","constexpr int T_BYTES = 20 * 512;     // T: tiles of 16 x 8 on and above the diagonal, column by column, two fp16 terms")
rep("float2* t;         //","uint4* t;          //")
rep("DEVICE float2* t_block(","DEVICE uint4* t_block(")
rep("* (T_BYTES / 8);","* (T_BYTES / 16);")
rep("DEVICE int t_tile(int ct, int gt) { return (gt * (gt + 1) / 2 + ct) * 32; }  // rows 8 ct.., columns 8 gt.., ct <= gt","DEVICE int t_tile(int kk, int gt) { return ((gt + 1) * (gt + 1) / 4 + kk) * 32; }  // rows 16 kk.., columns 8 gt.., kk <= gt / 2")
i=s.index("          // split for T's eight warps once; the low"); j=s.index("        }\n      }\n    }\n    phase ^= 1u << INBOX_BAR;")
s=s[:i]+"""          // split for T's eight warps once
          uint2 hi, lo;
          split_fp16(sum.x, sum.y, hi.x, lo.x);
          split_fp16(sum.z, sum.w, hi.y, lo.y);
          uint2* to = reinterpret_cast<uint2*>(sm + K::O_W) + ((column * 8 + (ct >> 1)) * 32 + me.lane) * 2 + (ct & 1);
          to[0] = hi;
          to[256] = lo;
"""+s[j:]
i=s.index("      const float2* t_at = reinterpret"); j=s.index("#pragma unroll\n      for (int z = 0; z < 4; z++) d_rest[z] += d_also[z];")
s=s[:i]+"""      const uint4* t_at = reinterpret_cast<const uint4*>(sm + K::O_T) + t_tile(0, gt) + me.lane;
      const uint4* w_at = reinterpret_cast<const uint4*>(sm + K::O_W) + own * 256 + me.lane;
#pragma unroll
      for (int kk = 0; kk < 4; kk++) {
        if (kk <= gt / 2) {  // T is upper triangular
          const uint4 high = w_at[kk * 32], low = w_at[kk * 32 + 128], t = t_at[kk * 32];
          const uint32_t w_hi[4] = {high.x, high.y, high.z, high.w}, w_lo[4] = {low.x, low.y, low.z, low.w};
          mma_fp16(d_main, w_hi, t.x, t.y);
          mma_fp16(d_rest, w_hi, t.z, t.w);
          mma_fp16(d_also, w_lo, t.x, t.y);
        }
      }
"""+s[j:]
i=s.index("        float2* t_to = t_block("); j=s.index("        fence_async();\n      }\n      wait_for<K>(base_address, PANEL_BAR, phase);")
s=s[:i]+"""        uint4* t_to = t_block(p, opaque(blockIdx.x), k - 1) + me.lane;
#pragma unroll 1
        for (int tile = me.warp; tile < 32; tile += 4 * K::G) {
          const int gt = tile >> 2, kk = tile & 3;
          if (kk <= gt / 2) {
            const int i = (kk & 1) * 16 + 2 * me.q, j = (gt & 3) * 8 + me.g;
            const float* from = (kk < 2 ? (gt < 4 ? t1 : t12) : t2) + i * LD_SHIFT + j;
            uint4 x;
            split_fp16(from[0], from[LD_SHIFT], x.x, x.z);
            split_fp16(from[8 * LD_SHIFT], from[9 * LD_SHIFT], x.y, x.w);
            t_to[t_tile(kk, gt)] = x;
          }
        }
"""+s[j:]
# tf32 is gone
i=s.index("DEVICE void split_tf32("); j=s.index("DEVICE float power_of_two")
s=s[:i]+s[j:]
open('body40.cuh','w').write(s)
h=open('hw.cuh').read()
if 'mma_fp16' not in h:
    i=h.index("// d += A B in 3xTF32's single term"); j=h.index("// A value that is the same in all lanes")
    h=h[:i]+'''// d += A B: A 16 x 16, B 16 x 8
DEVICE void mma_fp16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

'''+h[i:]  # mma_tf32 kept for older bodies
    open('hw.cuh','w').write(h)
e=open('emu.h').read()
if 'mma_fp16' not in e:
    i=e.index("static uint32_t operand_address")
    e=e[:i]+'''static void mma_fp16(float (&d)[4],const uint32_t (&a)[4],uint32_t b0,uint32_t b1){ uint32_t v[6]={a[0],a[1],a[2],a[3],b0,b1}; auto B=collect(v,24); int l=cur->tid&31,g=l/4,q=l%4; auto hf=[](uint32_t u,int e){ __half2 h; memcpy(&h,&u,4); return (float)(e?h.y:h.x); }; for(int z=0;z<4;z++){ int r=g+8*(z>>1),n=2*q+(z&1); float s=d[z]; for(int k=0;k<16;k++){ uint32_t x[6]; memcpy(x,B[(r%8)*4+(k%8)/2],24); float av=hf(x[(r/8)+2*(k/8)],k&1); memcpy(x,B[n*4+(k%8)/2],24); float bv=hf(x[4+k/8],k&1); s+=av*bv; } d[z]=s; } }
'''+e[i:]
    open('emu.h','w').write(e)
m=open('emu_main.cpp').read()
m=m.replace('std::vector<float2> t((size_t)batch*K::C*panels*1152,float2{NAN,NAN})','std::vector<uint4> t((size_t)batch*K::C*panels*640+1,uint4{~0u,~0u,~0u,~0u})')
open('emu_main.cpp','w').write(m)
l=open('lib.cu').read().replace("(float2*)t","decltype(Args::t)(t)"); open('lib.cu','w').write(l)
