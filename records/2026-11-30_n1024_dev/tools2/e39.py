s=open('body38.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("""  static constexpr int O_X = O_INBOX, O_V = O_X + SUB * LD_TOP * 4, O_R1 = O_V + SUB * LD_SHIFT * 4,
                       O_WR = O_R1 + SUB * LD_SHIFT * 4, O_R = O_WR + SUB * LD_SHIFT * 4, O_M = O_R + SUB * LD_R * 4,
                       O_Y = O_M""","""  // (x is written while the inbox is still read; x and m while peers send W of the next panel's first block)
  static constexpr int O_V = O_INBOX, O_R1 = O_V + SUB * LD_SHIFT * 4, O_WR = O_R1 + SUB * LD_SHIFT * 4,
                       O_R = O_WR + SUB * LD_SHIFT * 4, O_X = O_R + SUB * LD_R * 4, O_M = O_X + SUB * LD_X * 4,
                       O_Y = O_M""")
rep("""  static_assert(SCRATCH_END <= O_INBOX + INBOX, "scratch fits the inbox");""","""  static_assert(SCRATCH_END <= O_PW_ && O_X >= O_INBOX + IN_X && O_X >= O_INBOX + IN_W, "scratch fits the inbox");""".replace("O_PW_","O_INBOX + SCRATCH"))
# guard beside top
a="""  __syncthreads();
  // the top of V, rounded, over z.x, and of H (R above V), over z.top; both [column][row]
  float* v_top = z.x;
  if (thread < 128) {
    const int row = thread & 31, i = thread >> 5 << 3;  // eight columns, i .. i + 7
"""
rep(a,"""  // beside it the top of V, rounded, and of H (R above V), over z.top; both [column][row]
  else if (thread < 384) {
    float* v_top = z.g_next;
    const int row = thread & 31, i = (thread & 127) >> 5 << 3;  // eight columns, i .. i + 7
""")
rep("const float* v_from = z.x + local","const float* v_from = z.g_next + local")
# X without a barrier between
i=s.index("        if (me.thread < 256) {  // X = HH/2 + HL, so that")
j=s.rindex("        __syncthreads();\n",0,i)
assert i-j<40
s=s[:j]+s[i:]
rep("float *t1 = pwp, *t2 = pwp + SUB * LD_SHIFT, *t12 = z.r1, *y = z.w;","float *t1 = pwp, *t2 = pwp + SUB * LD_SHIFT, *t12 = z.x, *y = z.m;")
rep("SUB * LD_X * 4","SUB * LD_SHIFT * 4")
# H stores while W is on its way
i=s.index("                v = make_float4(f0.x, f0.y, f1.x, f1.y);\n"); j=s.index("              }\n",i)
s=s[:i]+s[j:]
rep("""          float* h_to = h_column();
          const int row0 = unit * 16 + 4 * me.q;
          unsigned char* v_to""","""          const int row0 = unit * 16 + 4 * me.q;
          unsigned char* v_to""")
rep("          const float* h_from = z.top + local * LD_TOP + row0 - first;\n","")
rep("          const bool store = in && first + local < n;\n","")
i=s.index("        // the rest of the four rows in which lim lies"); j=s.index("        fence_async();\n",i)
rest=s[i:j]; s=s[:i]+s[j:]
i=s.index("        wait_for<K>(base_address, PANEL_BAR, phase);\n",s.index("float4 own[PIECES];"))
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
# prefetch by the idle warps
i=s.index("    if (k + 1 < panels) {  // the next panel's rows"); j=s.index("    // ---- the panel\n",i)
s=s[:i]+s[j:]
rep("""          else warp_gram_helper(z, me.lane, 2 + (me.warp >> 2));
        }
""","""          else warp_gram_helper(z, me.lane, 2 + (me.warp >> 2));
        } else if (s == 0 && done == 0 && k + 1 < panels) {  // the next panel's rows of this CTA, 256 bytes each, into L2
#pragma unroll 1
          for (int i = me.thread - 256; i < K::ROWS / K::C * 2; i += K::THREADS - 256) {
            const int chunk = i >> 5, row = (chunk / K::G * K::UNITS + rank * K::G + chunk % K::G) * 16 + (i >> 1 & 15);
            if (row < n) prefetch_l2(p.a + ((size_t)(opaque(blockIdx.x) / K::C) * n + row) * n + min(top + PANEL + (i & 1) * 32, n - 1));
          }
        }
""")
open('body39.cuh','w').write(s)
