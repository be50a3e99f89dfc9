import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("  static constexpr int BYTES = O_T + T_BYTES;","  static constexpr int O_STATE = O_T + T_BYTES;     // k, s, done, phase during the recurrence, by warp\n  static constexpr int BYTES = O_STATE + THREADS / 32 * 16;")
rep("  const Lane me = lane_of(opaque(thread));","  const Lane me = lane_of(thread_index());")
rep("uint32_t& phase,\n                        int thread, unsigned& last_clock)","uint32_t& phase,\n                        unsigned& last_clock)")
rep("rank, phase, me.thread, last_clock);","cluster_rank(), phase, last_clock);")
rep("""  const uint32_t rank = cluster_rank();
  const int unit_ = rank * K::G + me.group, n = p.n, panels = (n + PANEL - 1) / PANEL;
  
  const uint32_t base_address_ = shared_address(sm), base_address = base_address_;
""","""  uint32_t rank = cluster_rank(), base_address = shared_address(sm);
""")
rep("  const bool staged = n == K::ROWS &&","  const int n = p.n, panels = (n + PANEL - 1) / PANEL;\n  const bool staged = n == K::ROWS &&")
rep("""    me = lane_of(opaque(threadIdx.x));
    const int top = k * PANEL, live""","""    me = lane_of(thread_index());
    rank = cluster_rank();
    base_address = opaque(shared_address(sm));
    int top = k * PANEL, live""")
rep("""        const float* from = p.a + (size_t)(opaque(blockIdx.x) / K::C) * n * n + (size_t)opaque(unit_ * 16 + 4 * me.q) * n + top""","""        const int unit_ = rank * K::G + me.group;
        const float* from = p.a + (size_t)(opaque(blockIdx.x) / K::C) * n * n + (size_t)opaque(unit_ * 16 + 4 * me.q) * n + top""")
i=s.index("        const int first = top + SUB * s, lim = first + done;  // rows"); j=s.index("        auto h_column = [&]()",i)
s=s[:i]+"""        int first, lim, unit, local;  // lim: rows under it are finished; local: this thread's column of the sub-panel
        uint32_t h16, v16, tile_at;   // this warpgroup's tiles of H and of V
        // from the few numbers that matter: called again after the recurrence, so that nothing else has to live (spill)
        // across it
        auto locate = [&]() {
          me = lane_of(thread_index());
          rank = cluster_rank();
          unit = rank * K::G + me.group;
          base_address = opaque(shared_address(sm));
          top = k * PANEL;
          live = top / (K::CHUNK_ROWS * K::STEP) * K::STEP;
          first = top + SUB * s;
          lim = first + done;
          h16 = uniform(operand_address(base_address + K::O_H + me.group * 2048));
          v16 = uniform(operand_address(base_address + me.group * CHUNK_BYTES + s * 512));
          local = me.cg * 8 + me.g;
          tile_at = (me.group * 4) * 512 + me.cg * 128 + me.g * 16 + me.q * 4;
        };
        locate();
"""+s[j:]
rep("        const uint32_t tile_at = (me.group * 4) * 512 + me.cg * 128 + me.g * 16 + me.q * 4;\n","")
a="        // (2) recurrence. P is in H and L, its registers are free meanwhile\n"
rep(a,a+"""        save_words(base_address + K::O_STATE + me.warp * 16, k, s, done, (int)phase);
""")
i=s.index("        guard_and_top<K>(z, m_scale")
s=s[:i]+"""        {
          int bits;
          load_words(shared_address(sm) + K::O_STATE + (thread_index() >> 5) * 16, k, s, done, bits);
          phase = bits;
        }
        locate();
"""+s[i:]
open(dst,'w').write(s)
h=open('hw.cuh').read()
if 'thread_index' not in h:
    i=h.index("// d += A B: A 16 x 16, B 16 x 8")
    h=h[:i]+'''// threadIdx.x, read anew: it need not stay in a register
DEVICE int thread_index() {
  int x;
  asm volatile("mov.u32 %0,%%tid.x;" : "=r"(x));
  return x;
}
// Four words in shared memory and back: where the compiler would spill them, each thread for itself
DEVICE void save_words(uint32_t at, int a, int b, int c, int d) {
  asm volatile("st.shared.v4.b32 [%0],{%1,%2,%3,%4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEVICE void load_words(uint32_t at, int& a, int& b, int& c, int& d) {
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3},[%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
}

'''+h[i:]
    open('hw.cuh','w').write(h)
e=open('emu.h').read()
if 'thread_index' not in e:
    i=e.index("static void fence_async(){}")
    e=e[:i]+'''static int thread_index(){ return cur->tid; } static void save_words(uint32_t at,int a,int b,int c,int d){ int v[4]={a,b,c,d}; memcpy(smem_base()+(at&0xffffff),v,16); } static void load_words(uint32_t at,int& a,int& b,int& c,int& d){ int v[4]; memcpy(v,smem_base()+(at&0xffffff),16); a=v[0]; b=v[1]; c=v[2]; d=v[3]; }
'''+e[i:]
    open('emu.h','w').write(e)
