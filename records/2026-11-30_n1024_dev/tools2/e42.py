import sys
s=open('body41.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
# single site of T
i=s.index("      // T = [T1, -T1 S12 T2; 0, T2] of the last block, while"); j=s.index("MARK(29);\n",i)
s=s[:i]+s[j:]
i=s.index("        // (5) C -= V W' for the columns still open\n"); j=s.index("          MARK(19);\n",i)
s=s[:i]+"""        // (5) T: of the sub-panel once it is complete, and of this pass if that is another one
        const bool alone = done == 0 && stop == SUB, open = SUB * s + stop < PANEL;
        float *t_sub = s == 0 ? t1 : t2, *y = pwp, *t12 = t_pass;
#pragma unroll 1
        for (int r = 0; r < 2; r++) {
          if (me.warp < 2 && (r == 0 ? stop == SUB : open && !alone)) form_t_32(r == 0 ? t_sub : t_pass, s_own, r == 0 ? tau + SUB * s : m_scale, t_scratch, me.thread, 1);
        }
        __syncthreads();
        // W' = W T, a column of C a row, for the columns still open; at the end Y = S12 T2 and T12 = -T1 Y
#pragma unroll 1
        for (int r = 0; r <= (int)last; r++) {
#pragma unroll 1
          for (int i = me.thread; i < 512; i += K::THREADS) {
            const int column = i >> 3, half = column >> 5;
            if (last ? column < SUB : column >= SUB * s + stop) {
              small_product<SUB>(r ? t12 : pwp + half * SUB * LD_SHIFT, r ? t1 : pw + half * SUB * LD_SHIFT,
                                 r ? y : alone || last ? t_sub : t_pass, r ? -1.f : 1.f, i & 255);
            }
          }
          __syncthreads();
        }
        // (6) C -= V W'
        if (open) {
"""+s[j:]
rep("""  float* s1 = reinterpret_cast<float*>(sm + K::O_T1);
""","")
rep("""  float* pwp = reinterpret_cast<float*>(sm + K::O_PWP);
""","""  float* pwp = reinterpret_cast<float*>(sm + K::O_PWP);
  float *t1 = reinterpret_cast<float*>(sm + K::O_T1), *t2 = pwp + SUB * LD_SHIFT;  // W' is not needed in the last pass
""")
rep("// V'V of the first sub-panel\n","// T of the first sub-panel\n")
i=s.rindex("    __syncthreads();\n    cluster_arrive();\n  }\n")
s=s[:i]+"""    // T = [T1, -T1 S12 T2; 0, T2]
    if (k + 1 < panels) {
      const float* t12 = t_pass;
      float2* t_to = t_block(p, opaque(blockIdx.x), k) + me.lane;
#pragma unroll 1
      for (int tile = me.warp; tile < 64; tile += 4 * K::G) {
        const int gt = tile >> 3, ct = tile & 7;
        if (ct <= gt) {
          const int i = (ct & 3) * 8 + 2 * me.q, j = (gt & 3) * 8 + me.g;
          const float* from = (ct < 4 ? (gt < 4 ? t1 : t12) : t2) + i * LD_SHIFT + j;
          t_to[t_tile(ct, gt)] = make_float2(from[0], from[LD_SHIFT]);
        }
      }
      fence_async();
    }
"""+s[i:]
# join by a loop
i=s.index("  named_join(id);\n  small_product<16>(scratch, s + 16,"); j=s.index("}\n",i)
s=s[:i]+"""#pragma unroll 1
  for (int r = 0; r < 2; r++) {
    named_join(id);
    small_product<16>(r ? t + 16 : scratch, r ? t : s + 16, r ? scratch : t + 16 * (LD_SHIFT + 1), r ? -1.f : 1.f, thread);
  }
"""+s[j:]
# prefetch by idle warps
i=s.index("    if (k + 1 < panels) {  // the next panel's rows of this CTA"); j=s.index("    // ---- the panel\n",i)
s=s[:i]+s[j:]
a="        else if (me.warp == 2) warp_m(z, me.lane);\n"
rep(a,a+"""        else if (me.warp >= 4 && s == 0 && done == 0 && k + 1 < panels) {  // the next panel's rows of this CTA into L2
          const int width = min(PANEL, n - top - PANEL);
#pragma unroll 1
          for (int i = me.thread - 128; i < K::ROWS / K::C; i += K::THREADS - 128) {
            const int chunk = i >> 4, row = (chunk / K::G * K::UNITS + rank * K::G + chunk % K::G) * 16 + (i & 15);
            if (row < n) {
              const float* at = p.a + ((size_t)(opaque(blockIdx.x) / K::C) * n + row) * n + top + PANEL;
              if (staged) bulk_prefetch(at, PANEL * 4);
              else {
                prefetch_l2(at);
                prefetch_l2(at + width - 1);
              }
            }
          }
        }
""")
open('body42.cuh','w').write(s)
# fp16 terms
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
i=s.index("      float2* t_to = t_block("); j=s.index("      fence_async();\n    }\n",i)
s=s[:i]+"""      uint4* t_to = t_block(p, opaque(blockIdx.x), k) + me.lane;
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
i=s.index("DEVICE void split_tf32("); j=s.index("DEVICE float power_of_two")
s=s[:i]+s[j:]
open('body43.cuh','w').write(s)
# small things
rep("""  static constexpr int O_X = O_INBOX, O_V = O_X + SUB * LD_TOP * 4, O_R1 = O_V + SUB * LD_SHIFT * 4,
                       O_WR = O_R1 + SUB * LD_SHIFT * 4, O_R = O_WR + SUB * LD_SHIFT * 4, O_M = O_R + SUB * LD_R * 4,
""","""  // (x is written while the inbox is still read)
  static constexpr int O_V = O_INBOX, O_R1 = O_V + SUB * LD_SHIFT * 4, O_WR = O_R1 + SUB * LD_SHIFT * 4, O_R = O_WR + SUB * LD_SHIFT * 4,
                       O_X = O_R + SUB * LD_R * 4, O_M = O_X + SUB * LD_TOP * 4,
""")
rep("""  static_assert(SCRATCH_END <= O_INBOX + INBOX, "scratch fits the inbox");""","""  static_assert(SCRATCH_END <= O_INBOX + SCRATCH && O_X >= O_INBOX + IN_X, "scratch fits the inbox");""")
i=s.index("        if (me.thread < 256) {  // X = HH/2 + HL, so that")
j=s.rindex("        __syncthreads();\n",0,i)
assert i-j<40
s=s[:j]+s[i:]
open('body44.cuh','w').write(s)
h=open('hw.cuh').read()
if 'bulk_prefetch' not in h:
    i=h.index("DEVICE void bulk_store(")
    h=h[:i]+'''DEVICE void bulk_prefetch(const void* p, uint32_t bytes) { asm volatile("cp.async.bulk.prefetch.L2.global [%0],%1;" ::"l"(p), "r"(bytes) : "memory"); }
'''+h[i:]
    open('hw.cuh','w').write(h)
e=open('emu.h').read()
if 'bulk_prefetch' not in e:
    e=e.replace("static void prefetch_l2(const void*){}","static void prefetch_l2(const void*){} static void bulk_prefetch(const void*,uint32_t){}"); open('emu.h','w').write(e)
