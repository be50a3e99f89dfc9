import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
i=s.index("        if (me.warp == 0) warp_cholesky(z, me.lane, done);"); j=s.index("        else if (me.warp >= 4 && s == 0 && done == 0",i)
s=s[:i]+"""        if (me.warp < 3) {
          // the other sub-panel's registers would be spilled: they wait in shared memory
          const uint32_t at = base_address + K::O_INBOX + K::SCRATCH + me.warp * 4096 + me.lane * 16;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int t = 0; t < 2; t++) save_floats(at + (2 * c + t) * 512, acc[c][8 * t + 2], acc[c][8 * t + 3], acc[c][8 * t + 6], acc[c][8 * t + 7]);
          }
          if (me.warp == 0) warp_cholesky(z, me.lane, done);
          else if (me.warp == 1) warp_top(z, me.lane);
          else warp_m(z, me.lane);
          const uint32_t from = shared_address(sm) + K::O_INBOX + K::SCRATCH + (thread_index() >> 5) * 4096 + (thread_index() & 31) * 16;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int t = 0; t < 2; t++) load_floats(from + (2 * c + t) * 512, acc[c][8 * t + 2], acc[c][8 * t + 3], acc[c][8 * t + 6], acc[c][8 * t + 7]);
          }
        }
"""+s[j:]
rep("""  static_assert(SCRATCH_END <= O_INBOX + SCRATCH &&""","""  static_assert(SCRATCH + 3 * 4096 <= INBOX, "three warps' registers beside the scratch");
  static_assert(SCRATCH_END <= O_INBOX + SCRATCH &&""")
open(dst,'w').write(s)
h=open('hw.cuh').read()
if 'save_floats' not in h:
    i=h.index("// d += A B: A 16 x 16, B 16 x 8")
    h=h[:i]+'''DEVICE void save_floats(uint32_t at, float a, float b, float c, float d) {
  asm volatile("st.shared.v4.f32 [%0],{%1,%2,%3,%4};" ::"r"(at), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
DEVICE void load_floats(uint32_t at, float& a, float& b, float& c, float& d) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "r"(at) : "memory");
}

'''+h[i:]
    open('hw.cuh','w').write(h)
e=open('emu.h').read()
if 'save_floats' not in e:
    i=e.index("static void fence_async(){}")
    e=e[:i]+'''static void save_floats(uint32_t at,float a,float b,float c,float d){ float v[4]={a,b,c,d}; memcpy(smem_base()+(at&0xffffff),v,16); } static void load_floats(uint32_t at,float& a,float& b,float& c,float& d){ float v[4]; memcpy(v,smem_base()+(at&0xffffff),16); a=v[0]; b=v[1]; c=v[2]; d=v[3]; }
'''+e[i:]
    open('emu.h','w').write(e)
