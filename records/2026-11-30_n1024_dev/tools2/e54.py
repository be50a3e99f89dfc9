import sys
s=open('body53.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
# fp16 terms
rep("constexpr int T_BYTES = 36 * 256;     // T: the 8 x 8 tiles on and above the diagonal, column by column","constexpr int T_BYTES = 20 * 512;     // T: tiles of 16 x 8 on and above the diagonal, column by column, two fp16 terms")
rep("float2* t;         //","uint4* t;          //")
rep("DEVICE float2* t_block(","DEVICE uint4* t_block(")
rep("* (T_BYTES / 8);","* (T_BYTES / 16);")
rep("DEVICE int t_tile(int ct, int gt) { return (gt * (gt + 1) / 2 + ct) * 32; }  // rows 8 ct.., columns 8 gt.., ct <= gt","DEVICE int t_tile(int kk, int gt) { return ((gt + 1) * (gt + 1) / 4 + kk) * 32; }  // rows 16 kk.., columns 8 gt.., kk <= gt / 2")
i=s.index("          // split for T's eight warps once; the low"); j=s.index("        }\n      }\n    }\n  }\n  locale();") if False else s.index("        }\n      }\n    }\n",i)
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
i=s.index("        float2* t_to = t_block("); j=s.index("        fence_async();\n      }\n",i)
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
i=s.index("DEVICE void split_tf32("); j=s.index("DEVICE float power_of_two")
s=s[:i]+s[j:]
open('body54.cuh','w').write(s)
# guard beside top, V exact in the low term, X without a barrier, 16 lanes
rep("""  static constexpr int O_X = O_INBOX, O_V = O_X + SUB * LD_TOP * 4, O_R1 = O_V + SUB * LD_SHIFT * 4,
                       O_WR = O_R1 + SUB * LD_SHIFT * 4, O_R = O_WR + SUB * LD_SHIFT * 4, O_M = O_R + SUB * LD_R * 4,
""","""  // (x is written while the inbox is still read; x and m while peers send W of the next panel's first block)
  static constexpr int O_V = O_INBOX, O_R1 = O_V + SUB * LD_SHIFT * 4, O_WR = O_R1 + SUB * LD_SHIFT * 4, O_R = O_WR + SUB * LD_SHIFT * 4,
                       O_X = O_R + SUB * LD_R * 4, O_M = O_X + SUB * LD_TOP * 4,
""")
rep("""  static_assert(SCRATCH_END <= O_INBOX + INBOX, "scratch fits the inbox");""","""  static_assert(SCRATCH_END <= O_INBOX + SCRATCH && O_X >= O_INBOX + IN_X && O_X >= O_INBOX + IN_W, "scratch fits the inbox");""")
i=s.index("        if (me.thread < 256) {  // X = HH/2 + HL, so that")
j=s.rindex("        __syncthreads();\n",0,i)
assert i-j<40
s=s[:j]+s[i:]
rep("*t12 = z.r, *y = z.w;","*t12 = z.x, *y = z.m;")
i=s.index("  // the top of V, rounded, over z.x, and of H")
k=s.rindex("  __syncthreads();\n",0,i)
s=s[:k]+s[i:]
rep("  // the top of V, rounded, over z.x, and of H (R above V), over z.top; both [column][row]\n  float* v_top = z.x;\n  if (thread < 256) {\n    const int row = thread & 31, i = thread >> 5 << 2;",
"  // beside it the top of V, rounded, over |R|, and of H (R above V), over z.top; both [column][row]\n  if (thread >= K::THREADS - 256) {\n    float* v_top = z.r1;\n    const int row = thread & 31, i = (thread - (K::THREADS - 256)) >> 5 << 2;")
rep("const float* v_from = z.x + local","const float* v_from = z.r1 + local")
a="                for (int y = 0; y < 8; y++) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][(y & 1) + (y >> 1 & 1) * 2]);\n"
rep(a,"""                for (int y = 1; y < 8; y += 2) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][1 + (y >> 1 & 1) * 2]);
                a[0][0] = a[0][2] = a[1][0] = a[1][2] = 0u;  // V is exact
                if (stop < SUB) {
#pragma unroll
                  for (int y = 0; y < 8; y += 2) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][(y >> 1 & 1) * 2]);
                }
""")
open('body55.cuh','w').write(s)
i=s.index("#pragma unroll 1\n  for (int i = thread; i < 2 * K::QUARTER_ROWS;"); j=s.index("}\ntemplate <class K>\nDEVICE void load_t(",i)
s=s[:i]+"""  static_assert(2 * K::QUARTER_ROWS == K::THREADS / 2, "half of the lanes of every warp");
  if (thread & 16) return;
  const int i = (thread >> 5) * 16 + (thread & 15), q = q0 + i / K::QUARTER_ROWS, at = i % K::QUARTER_ROWS, piece = at >> 2;  // a warpgroup's 16 rows
  const int row = (piece / K::G * K::UNITS + rank * K::G + piece % K::G) * 16 + 4 * q + (at & 3);
  barrier_expect_more(bar, PANEL * 4);
  bulk_load(base + q * K::QUARTER + at * (PANEL * 4), from + (size_t)row * p.n, PANEL * 4, bar);
"""+s[j:]
# prefetch by idle warps
i=s.index("    if (k + 1 < panels) {  // the next panel's rows of this CTA"); j=s.index("    // ---- the panel\n",i)
s=s[:i]+s[j:]
a="        else if (me.warp == 2) warp_m(z, me.lane);\n"
rep(a,a+"""        else if (me.warp >= 4 && s == 0 && done == 0 && k + 1 < panels) {  // the next panel's rows of this CTA into L2
#pragma unroll 1
          for (int i = me.thread - 128; i < K::ROWS / K::C * 2; i += K::THREADS - 128) {
            const int chunk = i >> 5, row = (chunk / K::G * K::UNITS + rank * K::G + chunk % K::G) * 16 + (i >> 1 & 15);
            if (row < n) prefetch_l2(p.a + ((size_t)(opaque(blockIdx.x) / K::C) * n + row) * n + min(top + PANEL + (i & 1) * 32, n - 1));
          }
        }
""")
open('body56.cuh','w').write(s)
