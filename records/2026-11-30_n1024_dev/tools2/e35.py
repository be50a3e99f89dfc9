s=open('body.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
# sizes
rep("""  static constexpr int SCRATCH = 27 * 1024 + 512;
  static constexpr int INBOX = MAX3(IN_W + 4 * G * 4096, IN_X + (G - 1) * 4096, IN_PW > SCRATCH ? IN_PW : SCRATCH);
""","""  static constexpr int SCRATCH = 27 * 1024 + 512, W_BYTES = PANEL * LD_SHIFT * 4;  // W and W' of a pass follow the scratch
  static constexpr int INBOX = MAX3(IN_W + 4 * (G - 1) * 4096, IN_X + (G - 1) * 4096, (IN_PW > SCRATCH ? IN_PW : SCRATCH) + 2 * W_BYTES);
""")
rep("""  static constexpr int BYTES = O_T1 + SUB * LD_SHIFT * 4;
""","""  static constexpr int O_T = O_T1 + SUB * LD_SHIFT * 4;  // T of the block that is being applied
  static constexpr int BYTES = O_T + T_BYTES;
""")
rep("""  static constexpr int O_PW = O_L, O_PWP = O_H;
  static_assert(O_PW + PANEL * LD_SHIFT * 4 <= 2 * STAGE && O_PWP + PANEL * LD_SHIFT * 4 <= O_PW, "W and W' fit");
""","""  static constexpr int O_PW = O_INBOX + (IN_PW > SCRATCH ? IN_PW : SCRATCH), O_PWP = O_PW + W_BYTES;
""")
rep("// inside stage 1 during the panel: H and L tiles; later partial sums, W, W', shifted S","// inside stage 1 during the panel: H and L tiles; later partial sums")
rep("// T of the first sub-panel\n","// V'V of the first sub-panel\n")
rep("""constexpr unsigned ALL = ~0u;
""","""constexpr int T_BYTES = 36 * 256;     // T: the 8 x 8 tiles on and above the diagonal, column by column
constexpr unsigned ALL = ~0u;
""")
rep("enum { FULL_0, FULL_1, INBOX_BAR,","enum { FULL_0, FULL_1, T_BAR, INBOX_BAR,")
rep("""  float2* t;         // [matrix][rank][block] 64 x 64 floats as operands""","""  float2* t;         // [matrix][rank][block] T_BYTES""")
rep("""  return p.t + ((size_t)block * ((p.n + PANEL - 1) / PANEL) + j) * 2048;
}
""","""  return p.t + ((size_t)block * ((p.n + PANEL - 1) / PANEL) + j) * (T_BYTES / 8);
}
DEVICE int t_tile(int ct, int gt) { return (gt * (gt + 1) / 2 + ct) * 32; }  // rows 8 ct.., columns 8 gt.., ct <= gt
template <class K>
DEVICE void load_t(const Args& p, uint32_t base, int j) {  // one thread
  const uint32_t bar = barrier_at<K>(base, T_BAR);
  barrier_expect(bar, T_BYTES);
  bulk_load(base + K::O_T, t_block(p, opaque(blockIdx.x), j), T_BYTES, bar);
}
""")
# sum over warpgroups
rep("""    float4* partial = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_W) + me.cg * K::G * 256 + me.lane;
#pragma unroll
    for (int ct = 0; ct < 8; ct++) partial[me.group * 256 + ct * 32] = make_float4(w[4 * ct], w[4 * ct + 1], w[4 * ct + 2], w[4 * ct + 3]);
""","""    float4* partial = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_W) + me.cg * (K::G - 1) * 256 + me.lane;
    float4 own[(8 + K::G - 1) / K::G];
#pragma unroll
    for (int ct = 0; ct < 8; ct++) {
      const int adder = ct % K::G;  // its own share a warp keeps
      const float4 x = make_float4(w[4 * ct], w[4 * ct + 1], w[4 * ct + 2], w[4 * ct + 3]);
      if (me.group == adder) own[ct / K::G] = x;
      else partial[(ct * (K::G - 1) + (me.group < adder ? me.group : me.group - 1)) * 32] = x;
    }
""")
rep("""        float4 sum = partial[ct * 32];
#pragma unroll
        for (int u = 1; u < K::G; u++) add4(sum, partial[u * 256 + ct * 32]);
""","""        float4 sum = own[i];
#pragma unroll
        for (int u = 0; u < K::G - 1; u++) add4(sum, partial[(ct * (K::G - 1) + u) * 32]);
""")
rep("""          reinterpret_cast<uint4*>(partial)[ct * 32] = make""","""          reinterpret_cast<uint4*>(partial)[ct * (K::G - 1) * 32] = make""")
i=s.index("  // T of this warp's reflectors, on its way"); j=s.index("  __syncthreads();\n",i)
s=s[:i]+s[j:]
rep("""MARK(4);
  // every warp is past block j-1: its stage is free
  if (me.thread == 0 && j + 1 < blocks) load_block<K>(p, base, j + 1);
""","""MARK(4);
  // every warp is past block j-1: its stage is free
  if (me.thread == 0 && j + 1 < blocks) load_block<K>(p, base, j + 1);
  wait_for<K>(base, T_BAR, phase);
""")
rep("+ (rank * K::OWNED + own) * K::G * 256 + me.lane;","+ (rank * K::OWNED + own) * (K::G - 1) * 256 + me.lane;")
rep("""const uint4 high = w_at[ct * 32], low = w_low[ct * 32];""","""const uint4 high = w_at[ct * 32], low = w_low[ct * (K::G - 1) * 32];
          const float2 t = t_at[ct * 32];""")
rep("""split_tf32(t[i][ct].x,""","""split_tf32(t.x,""")
rep("""split_tf32(t[i][ct].y,""","""split_tf32(t.y,""")
rep("""      const uint4* w_at = reinterpret""","""      const float2* t_at = reinterpret_cast<const float2*>(sm + K::O_T) + t_tile(0, gt) + me.lane;
      const uint4* w_at = reinterpret""")
rep("""  __syncthreads();
MARK(5);
""","""  __syncthreads();
MARK(5);
  if (me.thread == 0 && j + 1 < blocks) load_t<K>(p, base, j + 1);
""")
# substitution -> inverse
i=s.index("// One row of W' = W T without T"); j=s.index("template <class K>\nDEVICE void guard_and_top")
s=s[:i]+"""// T without a serial substitution over 32 or 64 reflectors: T^-1 = diag(1/tau) + striu(S), S = V'V, inverted in blocks of
// 16, which are then joined, T = [Ta, -Ta Sab Tb; 0, Tb]. All row strides LD_SHIFT.
// Column c of the inverse of diagonal block h of a 32 x 32; the zeros below it too.
DEVICE void invert_16(float* t, const float* s, const float* tau, int h, int c) {
  const float* from = s + h * 16 * (LD_SHIFT + 1);
  float* to = t + h * 16 * LD_SHIFT + c;
  float x[16];
#pragma unroll
  for (int r = 15; r >= 0; r--) {
    float sum = 0.f;
#pragma unroll
    for (int m4 = 12; m4 + 3 > r; m4 -= 4) {
      const Quad y = load4(from + r * LD_SHIFT + m4);
#pragma unroll
      for (int e = 3; e >= 0; e--)
        if (m4 + e > r) sum = fmaf(y.e[e], x[m4 + e], sum);
    }
    x[r] = tau[16 * h + r] * ((r == c ? 1.f : 0.f) - sum);
    to[r * LD_SHIFT + 16 * h] = x[r];
    if (h == 0) to[(r + 16) * LD_SHIFT] = 0.f;
  }
}
// C = sign A B, SIZE x SIZE, four entries of a row a thread
template <int SIZE>
DEVICE void small_product(float* c, const float* a, const float* b, float sign, int thread) {
  const int i = thread / (SIZE / 4), j = thread % (SIZE / 4) * 4;
  float y[4] = {0, 0, 0, 0};
#pragma unroll
  for (int m = 0; m < SIZE; m += 4) {
    const Quad x = load4(a + i * LD_SHIFT + m);
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const Quad z = load4(b + (m + u) * LD_SHIFT + j);
#pragma unroll
      for (int e = 0; e < 4; e++) y[e] = fmaf(x.e[u], z.e[e], y[e]);
    }
  }
  *reinterpret_cast<float4*>(c + i * LD_SHIFT + j) = make_float4(sign * y[0], sign * y[1], sign * y[2], sign * y[3]);
}
// T of 32 reflectors by two warps (`thread` of 64, barrier `id`); scratch 16 x 16
DEVICE void form_t_32(float* t, const float* s, const float* tau, float* scratch, int thread, int id) {
  if (thread < 32) invert_16(t, s, tau, thread >> 4, thread & 15);
  named_join(id);
  small_product<16>(scratch, s + 16, t + 16 * (LD_SHIFT + 1), 1.f, thread);
  named_join(id);
  small_product<16>(t + 16, t, scratch, -1.f, thread);
}

"""+s[j:]
# pass
i=s.index("          // and, beside it, T of the first sub-panel once"); j=s.index("          __syncthreads();\n          MARK(19);")
s=s[:i]+"""          if (me.warp < 2) form_t_32(t_pass, s_own, m_scale, t_scratch, me.thread, 1);
          else if (s == 0 && stop == SUB && me.thread >= 128 && me.thread < 384) {  // S for T of the whole panel
            const int at = (me.thread - 128 >> 3) * LD_SHIFT + (me.thread & 7) * 4;
            *reinterpret_cast<float4*>(s1 + at) = *reinterpret_cast<const float4*>(s_own + at);
          }
          __syncthreads();
#pragma unroll
          for (int part = 0; part < (512 + K::THREADS - 1) / K::THREADS; part++) {
            const int i = part * K::THREADS + me.thread, column = i >> 3;  // W' = W T, a column of C a row
            if (column >= SUB * s + stop && column < PANEL) small_product<SUB>(pwp + (column >> 5) * SUB * LD_SHIFT, pw + (column >> 5) * SUB * LD_SHIFT, t_pass, 1.f, i & 255);
          }
"""+s[j:]
rep("""  float* t1 = reinterpret_cast<float*>(sm + K::O_T1);
""","""  float* s1 = reinterpret_cast<float*>(sm + K::O_T1);
  float *t_pass = z.r1, *t_scratch = z.w;  // free after the recurrence, with x, v, r, m
""")
# T of the panel
i=s.index("      // T = [T1, -T1 S12 T2; 0, T2] of the last block"); j=s.index("MARK(21);")
s=s[:i]+"""      // T = [T1, -T1 S12 T2; 0, T2] of the last block, while the loads are under way; pw holds [V1'V2; V2'V2]
      if (k > 0) {
        float *t1 = pwp, *t2 = pwp + SUB * LD_SHIFT, *t12 = z.r1, *y = z.w;
        if (me.thread < 128) {
          const int half = me.warp >> 1;
          form_t_32(half ? t2 : t1, half ? pw + SUB * LD_SHIFT : s1, tau + SUB * half, half ? t12 : y, me.thread & 63, 1 + half);
        }
        __syncthreads();
        if (me.thread < 256) small_product<SUB>(y, pw, t2, 1.f, me.thread);
        __syncthreads();
        if (me.thread < 256) small_product<SUB>(t12, t1, y, -1.f, me.thread);
        __syncthreads();
        float2* t_to = t_block(p, opaque(blockIdx.x), k - 1) + me.lane;
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
"""+s[j:]
rep("""MARK(21);
      __syncthreads();
""","""MARK(21);
      __syncthreads();
      if (k > 0 && me.thread == 0) {
        bulk_store_wait();
        load_t<K>(p, base_address, 0);
      }
""")
i=s.index("    if (me.thread == 0) bulk_store(v_block"); j=s.index("    __syncthreads();\n    cluster_arrive();\n  }\n",i)
s=s[:i]+"""    if (me.thread == 0) {
      bulk_store(v_block<K>(p, opaque(blockIdx.x), k) + live * K::G * CHUNK_BYTES, base_address + live * K::G * CHUNK_BYTES, K::STAGE - live * K::G * CHUNK_BYTES);
      if (k == 0) bulk_store_wait();
      if (k + 1 < panels) load_block<K>(p, base_address, 0);
    }
"""+s[j:]
open('body35.cuh','w').write(s)
