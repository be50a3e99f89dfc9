import sys
s=open('/work/main/submissions/v110_n1024_terms_of_v99.py').read()
def rep(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a)
    s=s.replace(a,b)
def cut(a,b,new):  # from the start of a up to the start of b
    global s
    assert s.count(a)==1,(s.count(a),a)
    i=s.index(a); j=s.index(b,i); s=s[:i]+new+s[j:]
# ---- layout
rep("""SCRATCH = 27 * 1024 + 512, W_BYTES = PANEL * LD_SHIFT * 4,""","""SCRATCH = 23 * 1024 + 384, W_BYTES = PANEL * LD_SHIFT * 4,""")
rep("IN_W = OWNED * (C - 1) * 4096, IN_X = C * 4096, IN_PW","IN_W = OWNED * (C - 1) * 4096, IN_PW")
rep("MAX3(IN_W + 4 * G * SUMS, IN_X + (G - 1) * 4096, IN_PASS + 2 * W_BYTES)","MAX3(IN_W + 4 * G * SUMS, IN_PASS + 2 * W_BYTES, 0)")
rep("""  // (x is written while the inbox is still read; x and m while peers send W of the next panel's first block)
""","""  // (r and m are T12's and its scratch while peers send W of the next panel's first block)
""")
rep("""                       O_X = O_R + SUB * LD_R * 4, O_M = O_X + SUB * LD_TOP * 4,
                       O_INV = O_M + SUB * LD_M * 4, SCRATCH_END = O_INV + 384;
  static_assert(SCRATCH + 3 * 4096 <= INBOX, "three warps' registers beside the scratch");
  static_assert(SCRATCH_END <= O_INBOX + SCRATCH && O_X >= O_INBOX + IN_X && O_X >= O_INBOX + IN_W, "scratch fits the inbox");
""","""                       O_M = O_R + SUB * LD_SHIFT * 4, O_INV = O_M + SUB * LD_M * 4, SCRATCH_END = O_INV + 512;
  static_assert(SCRATCH + 4 * 4096 <= IN_PASS, "four warps' registers beside the scratch");
  static_assert(SCRATCH_END <= O_INBOX + SCRATCH + 128 && O_R >= O_INBOX + IN_W, "scratch fits the inbox");
""")
rep("""  static constexpr int O_PARTIAL = O_INBOX + IN_PW;  // W of a pass, by warpgroup
""","""  static constexpr int O_PARTIAL = O_INBOX + IN_PW;  // sums of a pass, by warpgroup
  // during the recurrence, in the place of W and W' of a pass: top of the columns still open, P'C (then Z), the Gram matrix
  static constexpr int O_TOP2 = O_PW, O_Z = O_TOP2 + SUB * LD_TOP * 4, O_X = O_PWP;
""")
s=s.replace("SCRATCH + 4 * 4096 <= IN_PASS","SCRATCH + 128 + 4 * 4096 <= IN_PASS")
# ---- recurrence
rep("  float *x, *top, *v, *r1, *w, *r, *m, *inverse, *threshold, *g_diagonal, *a_diagonal;\n  int* stop;","  float *x, *top, *v, *r1, *w, *r, *m, *inverse, *threshold, *g_diagonal, *a_diagonal, *roots, *top2, *z;\n  int *stop, others;  // others: threads that follow Cholesky and the top beside M: 32 each where columns are still open, else 0")
rep("    __syncwarp();\n    named_arrive(1 + i / 4);\n","    if (lane == 0) *reinterpret_cast<float4*>(z.roots + i) = make_float4(rs[0], rs[1], rs[2], rs[3]);\n    __syncwarp();\n    named_arrive(1 + i / 4, 64 + z.others);\n")
rep("  named_join(1);\n  __syncwarp();","  named_join(1, 64 + z.others);\n  __syncwarp();")
rep("    if (i > 0) named_arrive(8 + i / 4);\n    if (i + 4 < SUB) named_join(1 + (i + 4) / 4);","    if (i > 0) named_arrive(8 + i / 4, 64 + 2 * z.others);\n    if (i + 4 < SUB) named_join(1 + (i + 4) / 4, 64 + z.others);")
rep("    if (i != 4) named_join(i == 0 ? 9 : 8 + i / 4);\n","    if (i != 4) named_join(i == 0 ? 9 : 8 + i / 4, 64 + 2 * z.others);\n")
rep("""// 16 x 8 entries of sign A B, DEPTH""","""// The 32 columns that are still open, a lane a column, follow: R12 = |R|'^-1 P'C beside Cholesky ...
DEVICE void warp_cholesky_open(const Scratch& z, int lane) {
  float g[SUB];
#pragma unroll
  for (int r = 0; r < SUB; r++) g[r] = z.z[r * LD_SHIFT + lane];
#pragma unroll 1
  for (int i = 0; i < SUB; i += 4) {
    const float* rows = z.r1 + i * LD_SHIFT + i;
    named_join(1 + i / 4, 64 + z.others);
    const Quad r0 = load4(rows), r1 = load4(rows + LD_SHIFT), r2 = load4(rows + 2 * LD_SHIFT), rs = load4(z.roots + i);
    float r[4];
    r[0] = g[0] * rs.e[0];
    r[1] = fmaf(-r0.e[1], r[0], g[1]) * rs.e[1];
    r[2] = fmaf(-r1.e[2], r[1], fmaf(-r0.e[2], r[0], g[2])) * rs.e[2];
    r[3] = fmaf(-r2.e[3], r[2], fmaf(-r1.e[3], r[1], fmaf(-r0.e[3], r[0], g[3]))) * rs.e[3];
#pragma unroll
    for (int u = 0; u < 4; u++) z.z[(i + u) * LD_SHIFT + lane] = r[u];
    __syncwarp();
    if (i > 0) named_arrive(8 + i / 4, 64 + 2 * z.others);
#pragma unroll
    for (int q = 1; q < SUB / 4; q++) update_quad(g, q, rows, r);
  }
}
// ... and C_top - R12 = V_top Z beside the top
DEVICE void warp_top_open(const Scratch& z, int lane) {
  float a[SUB];
#pragma unroll
  for (int r = 0; r < SUB / 4; r++) {
    const Quad x = load4(z.top2 + lane * LD_TOP + 4 * r);
#pragma unroll
    for (int e = 0; e < 4; e++) a[4 * r + e] = x.e[e];
  }
#pragma unroll 1
  for (int i = 0; i < SUB; i += 4) {
    if (i != 4) named_join(i == 0 ? 9 : 8 + i / 4, 64 + 2 * z.others);
    const float *columns = z.v + i * LD_SHIFT, *w_rows = z.w + i * LD_SHIFT;
    const Quad iv = load4(z.inverse + i), x0 = load4(columns), x1 = load4(columns + LD_SHIFT), x2 = load4(columns + 2 * LD_SHIFT);
    const Quad w0 = load4(w_rows), w1 = load4(w_rows + LD_SHIFT), w2 = load4(w_rows + 2 * LD_SHIFT);
    const float l10 = x0.e[1] * iv.e[0], l20 = x0.e[2] * iv.e[0], l30 = x0.e[3] * iv.e[0];
    const float l21 = fmaf(-l20, w0.e[0], x1.e[2]) * iv.e[1], l31 = fmaf(-l30, w0.e[0], x1.e[3]) * iv.e[1];
    const float l32 = fmaf(-l31, w1.e[0], fmaf(-l30, w0.e[1], x2.e[3])) * iv.e[2];
    float* rows = z.z + i * LD_SHIFT + lane;
    auto multiplier = [&](int u, float x) { return iv.e[u] != 0.f ? fmaf(copysignf(1.f, iv.e[u]), rows[u * LD_SHIFT], x) : 0.f; };
    float w[4], y[4];
    w[0] = multiplier(0, a[0]);
    w[1] = multiplier(1, fmaf(-l10, w[0], a[1]));
    w[2] = multiplier(2, fmaf(-l21, w[1], fmaf(-l20, w[0], a[2])));
    w[3] = multiplier(3, fmaf(-l32, w[2], fmaf(-l31, w[1], fmaf(-l30, w[0], a[3]))));
#pragma unroll
    for (int u = 0; u < 4; u++) rows[u * LD_SHIFT] = w[u];
    y[3] = w[3] * iv.e[3];
    y[2] = fmaf(-w2.e[0], y[3], w[2]) * iv.e[2];
    y[1] = fmaf(-w1.e[1], y[3], fmaf(-w1.e[0], y[2], w[1])) * iv.e[1];
    y[0] = fmaf(-w0.e[2], y[3], fmaf(-w0.e[1], y[2], fmaf(-w0.e[0], y[1], w[0]))) * iv.e[0];
#pragma unroll
    for (int q = 1; q < SUB / 4; q++) update_quad(a, q, columns, y);
  }
}

// 16 x 8 entries of sign A B, DEPTH""")
# ---- kernel
rep("""  z.a_diagonal = z.inverse + 80;
""","""  z.a_diagonal = z.inverse + 80;
  z.roots = z.inverse + 96;
  z.top2 = reinterpret_cast<float*>(sm + K::O_TOP2);
  z.z = reinterpret_cast<float*>(sm + K::O_Z);
""")
rep("  float *t_pass = z.r1, *t_scratch = z.w;  // free after the recurrence, with x, v, r, m\n","")
rep("*t2 = pwp + SUB * LD_SHIFT, *t12 = z.x, *y = z.m;","*t2 = pwp + SUB * LD_SHIFT, *t12 = z.r, *y = z.m;")
rep("          tile_at = me.group * (K::SLAB / 2) + me.cg * 128 + me.g * 16 + me.q * 4;","          tile_at = me.group * (K::SLAB / 2) + (me.cg ^ 2 * (me.group & 1)) * 128 + me.g * 16 + me.q * 4;")
rep("me.group * (K::SLAB / 2) + (me.lane >> 3) * 512 + me.cg * 128 + (me.lane & 7) * 16;\n#pragma unroll\n        for (int c = 0; c < K::CHUNKS; c++) {\n          if (c >= live) {\n            uint32_t hi[4], lo[4];","me.group * (K::SLAB / 2) + (me.lane >> 3) * 512 + (me.cg ^ 2 * (me.group & 1)) * 128 + (me.lane & 7) * 16;\n#pragma unroll\n        for (int c = 0; c < K::CHUNKS; c++) {\n          if (c >= live) {\n            uint32_t hi[4], lo[4];")
rep("barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::C * 4096 + 4096);","barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::IN_PW + (s == 0 ? 8192 : 4096));")
rep("owner % K::G * (K::SLAB / 2) + pair * 1024 + (column >> 3) * 128 +","owner % K::G * (K::SLAB / 2) + pair * 1024 + ((column >> 3) ^ 2 * (owner & 1)) * 128 +")
cut("        {\n          float x[16];\n          const uint32_t a_at =","        if (local >= done && first + local < n) {  // R of the finished rows","""        if (s == 0 && (unit ^ first / 16 % K::UNITS) < 2) {  // and the top of the other sub-panel, rounded as in the product
          float4 x = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
          for (int i = 0; i < 2 * K::CHUNKS; i++) {
            const float* y = &acc[i >> 1][(i & 1) * 8 + 2];
            if (i == first / 16 / K::UNITS) x = make_float4(y[0], y[1], y[4], y[5]);
          }
          x = make_float4(rounded<K>(x.x), rounded<K>(x.y), rounded<K>(x.z), rounded<K>(x.w));
          const uint32_t to = base_address + K::O_TOP2 + (local * LD_TOP + (unit & 1) * 16 + me.q * 4) * 4;
#pragma unroll
          for (int r = 0; r < K::C; r++) send(map_address(to, r), x, map_address(barrier_at<K>(base_address, PANEL_BAR), r));
        }
        {
          float x[16], y[16];  // [P, other]'H and [P, other]'L
#pragma unroll
          for (int i = 0; i < 16; i++) x[i] = y[i] = 0.f;
          auto operand = [&](int c, int u, uint32_t (&a)[4]) {  // four registers at a time: more would spill
#pragma unroll
            for (int z = 0; z < 4; z++) a[(z & 1) + (z >> 1) * 2] = pack(acc[c][8 * u + 2 * z], acc[c][8 * u + 2 * z + 1]);
          };
          auto low_operand = [&](int c, int u, uint32_t (&a)[4]) {
            uint32_t unused;
#pragma unroll
            for (int z = 0; z < 4; z++) split_fp16(acc[c][8 * u + 2 * z], acc[c][8 * u + 2 * z + 1], unused, a[(z & 1) + (z >> 1) * 2]);
          };
#pragma unroll
          for (int c = K::CHUNKS - 1; c >= 0; c--) {
            if (c == K::CHUNKS - 1 || c >= live) {
#pragma unroll
              for (int u = 0; u < 2; u++) {
                const uint64_t b = descriptor(h16, c * 2048 + u * 1024, 512, 128);
                uint32_t a[4];
                operand(c, u, a);
                wgmma_fence();
                wgmma<true>(x, a, b);
                wgmma<true>(y, a, b + (K::O_L - K::O_H >> 4));
                wgmma_commit();
                wgmma_wait();
                if constexpr (K::TERMS == 2) {
                  low_operand(c, u, a);
                  wgmma_fence();
                  wgmma<true>(y, a, b);
                  wgmma_commit();
                  wgmma_wait();
                }
              }
            }
          }
          // P: HH + 2 HL, twice the Gram matrix but for its symmetry (two terms: HH + HL + LH); other: P'C
#pragma unroll
          for (int i = 0; i < 16; i++) x[i] = fmaf(i & 2 || K::TERMS == 2 ? 1.f : 2.f, y[i], x[i]);
          if (s == 1) {  // in place of P'C: V1'V1, V1 the other sub-panel
            const uint32_t v1 = uniform(operand_address(base_address + me.group * K::SLAB + (me.group >> 1) * 512));
#pragma unroll
            for (int i = 0; i < 16; i++) y[i] = 0.f;
            auto product = [&](bool low) {
#pragma unroll
              for (int c = K::CHUNKS - 1; c >= 0; c--) {
                if (c == K::CHUNKS - 1 || c >= live) {
#pragma unroll
                  for (int u = 0; u < 2; u++) {
                    uint32_t a[4];
                    if (low) low_operand(c, u, a);
                    else operand(c, u, a);
                    wgmma_fence();
                    wgmma<true>(y, a, descriptor(v1, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 128));
                    wgmma_commit();
                    wgmma_wait();
                  }
                }
              }
            };
            if constexpr (K::TERMS == 2) {  // twice lo'hi + hi'hi / 2: the transpose is added later
              product(true);
#pragma unroll
              for (int i = 0; i < 16; i++) y[i] *= 2.f;
            }
            product(false);
#pragma unroll
            for (int i = 0; i < 16; i++)
              if (i & 2) x[i] = y[i];
          }
          put_sums<K>(x, sm, me);
        }
        __syncthreads();
        float4 own = send_sums<K>(sm, base_address, rank, me);
""")
cut("        float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);\n        if (me.thread < 256) {\n          const float4* in","        __syncthreads();\n        // (2) recurrence.","""        {
          const float4 sum = take_sums<K>(own, sm, rank, me);
          const int column = me.group * 8 + me.g, reflector = me.cg * 8 + 2 * me.q;
          float* to = z.x + column * LD_X + reflector;  // X with the Gram matrix X + X'
          to[0] = column < done ? 0.f : 0.5f * sum.x;
          to[1] = column < done ? 0.f : 0.5f * sum.y;
          if (s == 0) {  // P'C
            z.z[reflector * LD_SHIFT + column] = sum.z;
            z.z[(reflector + 1) * LD_SHIFT + column] = sum.w;
          } else {
            *reinterpret_cast<float2*>(s1 + column * LD_SHIFT + reflector) = K::TERMS == 1 ? make_float2(sum.z, sum.w) : make_float2(0.5f * sum.z, 0.5f * sum.w);
          }
        }
""")
rep("        if (me.warp < 3) {\n          // the other sub-panel's registers would be spilled: they wait in shared memory\n          const uint32_t at = base_address + K::O_INBOX + K::SCRATCH + me.warp * 4096 + me.lane * 16;","        z.others = s == 0 ? 32 : 0;\n        if (me.warp < 3 || (s == 0 && me.warp < 5)) {\n          // the other sub-panel's registers would be spilled: they wait in shared memory\n          const uint32_t at = base_address + saved<K>(me.warp) + me.lane * 16;")
rep("          else warp_m(z, me.lane);\n          const uint32_t from = shared_address(sm) + K::O_INBOX + K::SCRATCH + (thread_index() >> 5) * 4096 + (thread_index() & 31) * 16;","          else if (me.warp == 2) warp_m(z, me.lane);\n          else if (me.warp == 3) warp_cholesky_open(z, me.lane);\n          else warp_top_open(z, me.lane);\n          const uint32_t from = shared_address(sm) + saved<K>(thread_index() >> 5) + (thread_index() & 31) * 16;")
rep("        else if (me.warp >= 4 && s == 0 && done == 0","""        else if (s == 1 && me.warp == 3) {  // tau of the first sub-panel
          if (K::TERMS == 2) {
#pragma unroll 1
            for (int r = 0; r < SUB; r++) {
              float* x = s1 + r * LD_SHIFT + me.lane;
              if (me.lane >= r) *x += s1[me.lane * LD_SHIFT + r];
              __syncwarp();
            }
          }
          finish_tau<K>(p, tau, s1, top, rank, me.lane);
        }
        else if (me.warp >= 5 && s == 0 && done == 0""")
rep("for (int i = me.warp - 4; i < 4 * K::CHUNKS; i += 4 * K::G - 4)","for (int i = me.warp - 5; i < 4 * K::CHUNKS; i += 4 * K::G - 5)")
rep("for (int i = me.thread - 128; i < K::ROWS / K::C * 2; i += K::THREADS - 128) {","for (int i = me.thread - 160; i < K::ROWS / K::C * 2; i += K::THREADS - 160) {")
rep("x = *reinterpret_cast<float2*>(&z.m[local * LD_M + kk * 16 + 2 * me.q + 8 * (y >> 1)]);","x = *reinterpret_cast<float2*>(&z.m[local * LD_M + (kk ^ (me.group & 1)) * 16 + 2 * me.q + 8 * (y >> 1)]);")
rep("        cluster_arrive();  // the inbox and its scratch are free\n        // (4) W^T = [V1, V2, C]^T V, V the reflectors of this sub-panel\n        {\n          float w[16];","        if (K::TERMS == 2 && me.cg == copier<K>(rank)) bulk_store_wait_read();\n        // (4) the panel is complete: [V2, V1]^T V2, for T\n        own = make_float4(0.f, 0.f, 0.f, 0.f);\n        if (last) {\n          cluster_arrive();  // the inbox and its scratch are free\n          float w[16];")
cut("          float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.group * 512 + me.cg * 128 + me.lane;\n#pragma unroll\n          for (int ct","        // V and the top of R to H while W is on its way","""          put_sums<K>(w, sm, me);
          if (K::TERMS == 1 && me.cg == copier<K>(rank) && me.lane == 0) bulk_store_wait_read();
          __syncthreads();
          if (staged && top + PANEL < n) {
            load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, top + PANEL, rank, me.thread);
            if (K::TERMS == 2) load_panel<K>(p, map, base_address, 3 * K::CHUNKS, 4 * K::CHUNKS, top + PANEL, rank, me.thread);
          }
          cluster_wait();
          if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::IN_PW);
          own = send_sums<K>(sm, base_address, rank, me);
        }
""")
cut("        wait_for<K>(base_address, PANEL_BAR, k & 1);\n        {\n          const float4* in","        done = stop;\n","""        if (last) {
          wait_for<K>(base_address, PANEL_BAR, k & 1);
          const float4 x = take_sums<K>(own, sm, rank, me);
          const int column = SUB + me.group * 8 + me.g, other = column ^ SUB, reflector = me.cg * 8 + 2 * me.q;
          *reinterpret_cast<float2*>(&pw[column * LD_SHIFT + reflector]) = make_float2(x.x, x.y);
          *reinterpret_cast<float2*>(&pw[other * LD_SHIFT + reflector]) = make_float2(x.z, x.w);
          __syncthreads();
          if (me.warp == 0) finish_tau<K>(p, tau + SUB, pw + SUB * LD_SHIFT, first, rank, me.lane);
        } else {
          // (5) C -= V Z for the columns still open: Z of the other sub-panel, and where the pass stopped early W's columns of this one
          if (me.thread == 0) barrier_arrive(barrier_at<K>(base_address, PANEL_BAR));  // in place of V'V's exchange: parities
          uint32_t w_hi[2][4], w_lo[2][4];
#pragma unroll
          for (int kk = 0; kk < 2; kk++) {
#pragma unroll
            for (int y = 0; y < 4; y++) {
              const int i = (kk ^ (me.group & 1)) * 16 + 2 * me.q + 8 * (y >> 1);
              float2 x = make_float2(0.f, 0.f);
              if (y & 1) {
                if (s == 0) x = make_float2(z.z[i * LD_SHIFT + local], z.z[(i + 1) * LD_SHIFT + local]);
              } else if (local >= stop) {
                x = make_float2(z.w[i * LD_SHIFT + max(local - i - 1, 0)], z.w[(i + 1) * LD_SHIFT + max(local - i - 2, 0)]);
              }
              split_fp16(i >= done && i < stop ? -x.x : 0.f, i + 1 >= done && i + 1 < stop ? -x.y : 0.f, w_hi[kk][y], w_lo[kk][y]);
            }
          }
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi[kk], descriptor(h16, c * 2048 + kk * 256 + (K::O_L - K::O_H), 128, 512));
                wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
                wgmma<false>(acc[c], w_hi[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
              }
              wgmma_commit();
            }
          }
          wgmma_wait();
          __syncthreads();
          cluster_arrive();
        }
""")
rep("        if (!(s == 1 && done == SUB)) cluster_arrive();\n","")
rep("""struct Lane {
""","""template <class K>
DEVICE int saved(int warp) {  // where a role of the recurrence leaves its registers
  return warp < 4 ? K::O_INBOX + K::SCRATCH + 128 + warp * 4096 : K::O_X + SUB * LD_TOP * 4;
}

struct Lane {
""")
rep("""// ------------------------------------------------------------------ the kernel

""","""// ------------------------------------------------------------------ sums of a pass over the cluster

template <class K>
DEVICE float rounded(float x) {
  const float hi = __half2float(__float2half_rn(x));
  return K::TERMS == 1 ? hi : hi + __half2float(__float2half_rn(x - hi));
}
// 64 columns x 32 reflectors a warpgroup, then one float4 a thread: two reflectors each of a column of the sub-panel at work
// and of one of the other
template <class K>
DEVICE void put_sums(const float (&w)[16], unsigned char* sm, const Lane& me) {
  float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.group * 512 + me.cg * 128 + me.lane;
#pragma unroll
  for (int ct = 0; ct < 4; ct++) partial[(ct & 1) * 32 + ((ct & 2) ^ (me.group & 1) * 2) * 32] = make_float4(w[4 * ct], w[4 * ct + 1], w[4 * ct + 2], w[4 * ct + 3]);
}
template <class K>
DEVICE float4 send_sums(unsigned char* sm, uint32_t base, uint32_t rank, const Lane& me) {
  const float4* partial = reinterpret_cast<const float4*>(sm + K::O_PARTIAL) + me.thread;
  float4 own = partial[0];
#pragma unroll
  for (int u = 1; u < K::G; u++) add4(own, partial[u * 512]);
#pragma unroll
  for (int r = 1; r < K::C; r++) {
    const uint32_t peer = (rank + r) % K::C, at = base + K::O_INBOX + ((rank < peer ? rank : rank - 1) * 512 + me.thread) * 16;
    send(map_address(at, peer), own, map_address(barrier_at<K>(base, PANEL_BAR), peer));
  }
  return own;
}
template <class K>
DEVICE float4 take_sums(float4 own, unsigned char* sm, uint32_t rank, const Lane& me) {
  const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + me.thread;
  float4 x = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
  for (int r = 0; r < K::C; r++)  // in the same order in every CTA: they must agree to the last bit
    add4(x, r == (int)rank ? own : in[(r < (int)rank ? r : r - 1) * 512]);
  return x;
}
// tau = 2 / v'v of 32 reflectors from column `first` on; 0 for a zero column
template <class K>
DEVICE void finish_tau(const Args& p, float* tau, const float* s, int first, uint32_t rank, int lane) {
  const float vv = s[lane * (LD_SHIFT + 1)], t = vv > 0.5f ? 2.f * reciprocal(vv) : 0.f;
  tau[lane] = t;
  if (rank == 0 && first + lane < p.n) p.tau[(size_t)(block_index() / K::C) * p.n + first + lane] = t;
}

// ------------------------------------------------------------------ the kernel

""")
open(sys.argv[1] if len(sys.argv)>1 else 'z1.py','w').write(s)
