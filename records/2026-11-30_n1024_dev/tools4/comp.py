# comp.py OUT FLAGS...: body101 + named edits -> body<OUT>.cuh
import sys
S = '/tmp/n1024d/'
s = open(S + 'body101.cuh').read()
def rep(a, b, n=1):
    global s
    assert s.count(a) == n, (s.count(a), a)
    s = s.replace(a, b)
def cut(a, b, new=''):
    global s
    assert s.count(a) == 1, (s.count(a), a)
    i = s.index(a); j = s.index(b, i); old = s[i:j]; s = s[:i] + new + s[j:]; return old
E_ = {}
def edit(f): E_[f.__name__] = f; return f
@edit
def rec5():
    rep(open('/tmp/n1024c/rec2.inc').read(), open('/tmp/n1024c/rec5.inc').read())
@edit
def masks():
    i=s.index("            uint32_t hi[4], lo[4];\n"); j=s.index("            store_matrices(tiles_to + c * 2048, hi);")
    cut("            uint32_t hi[4], lo[4];\n", "            store_matrices(tiles_to + c * 2048, hi);", '''            uint32_t hi[4], lo[4];
#pragma unroll
            for (int tile = 0; tile < 4; tile++) split_fp16(acc[c][tile * 4], acc[c][tile * 4 + 1], hi[tile], lo[tile]);
            if (c == live || done > 0) {  // finished rows lie in the first live chunk, finished columns come of a restart
#pragma unroll
              for (int tile = 0; tile < 4; tile++) {
                const int row = chunk_row<K>(c, tile, unit) + 4 * me.q;
                const uint32_t open = local < done || row + 1 < lim ? 0u : row < lim ? 0xffff0000u : ~0u;
                hi[tile] &= open;
                lo[tile] &= open;
              }
            }
''')
    rep("fmaf(0.5f, l0.x, h0.x), fmaf(0.5f, l0.y, h0.y), fmaf(0.5f, l1.x, h1.x), fmaf(0.5f, l1.y, h1.y)", "h0.x + l0.x, h0.y + l0.y, h1.x + l1.x, h1.y + l1.y")
    rep("make_float4(x[0] + x[2], x[1] + x[3], x[4] + x[6], x[5] + x[7]), make_float4(x[8] + x[10], x[9] + x[11], x[12] + x[14], x[13] + x[15])", "make_float4(fmaf(2.f, x[2], x[0]), fmaf(2.f, x[3], x[1]), fmaf(2.f, x[6], x[4]), fmaf(2.f, x[7], x[5])), make_float4(fmaf(2.f, x[10], x[8]), fmaf(2.f, x[11], x[9]), fmaf(2.f, x[14], x[12]), fmaf(2.f, x[15], x[13]))")
    rep("x = fmaf(0.5f, e ? lo.y : lo.x, e ? hi.y : hi.x);", "x = e ? hi.y + lo.y : hi.x + lo.x;")
    rep("        // (1) Gram: H and L = 2 (P - H) of the open rows", "        // (1) Gram: H and L = P - H of the open rows")
    rep("uint32_t m_hi[2][4], m_lo[2][4], m_half[2][4];", "uint32_t m_hi[2][4], m_lo[2][4];")
    rep('''              float2 f = __half22float2(halves(m_hi[kk][y]));
              m_half[kk][y] = pack(0.5f * f.x, 0.5f * f.y);
''','')
    rep("wgmma<false>(acc[c], m_half[kk], descriptor", "wgmma<false>(acc[c], m_hi[kk], descriptor")
@edit
def addr():
    rep('''  {
    const int t = turn();
    wait_for<K>(base, FULL_BARS + 2 * me.group + (t & 1), t >> 1 & 1);
  }
MARK(1);
''','''  uint32_t at16;
  int first;
  {
    const int t = turn();
    at16 = v_at(t & 1);
    first = uniform(first_chunk<K>(j));
    wait_for<K>(base, FULL_BARS + 2 * me.group + (t & 1), t >> 1 & 1);
  }
MARK(1);
''')
    rep("    multiply_by_v<K>(w, acc, v_at(turn() & 1), uniform(first_chunk<K>(j)));\n", "    multiply_by_v<K>(w, acc, at16, first);\n")
    cut("  wait_for<K>(base, WOP_BAR, turn() & 1);\nMARK(6);\n", "MARK(7);\n", '''  locate();
  at16 = v_at(turn() & 1);
  first = uniform(first_chunk<K>(opaque(j)));
  wait_for<K>(base, WOP_BAR, turn() & 1);
MARK(6);
  subtract_v_times_w<K>(acc, base + K::O_WOP + me.cg * 2048 + me.lane * 16, at16, first);
''')
@edit
def early_t():
    blk = cut("      if (k > 0) {\n        if (me.warp < 8) product_32(y, pw, t2, 1.f, me.warp, me.lane);", "MARK(29);\n")
    body = blk[len("      if (k > 0) {\n"):]
    cut("      if (k > 0 && me.thread < 128) {\n        const int half = me.warp >> 1;", "      if (staged) {  // on its way since the last pass\n", '''      if (k > 0) {
        if (me.thread < 128) {
          const int half = me.warp >> 1;
          form_t_32(half ? t2 : t1, half ? pw + SUB * LD_SHIFT : s1, tau + SUB * half, half ? t12 : y, me.thread & 63, 1 + half);
        }
        __syncthreads();
'''+body)
    rep("MARK(21);\n      __syncthreads();\n", "MARK(21);\n      if (k == 0) __syncthreads();  // column_max is 0\n")
    rep('''        if (k > 1) load_slab<K>(p, base_address, k, 1, me.group);
      }
''','''        if (k > 1) load_slab<K>(p, base_address, k, 1, me.group);
        if (me.group == 0) {
          bulk_store(t_block(p, block_index(), k - 1), base_address + K::O_W, T_BYTES);
          if (k == 1) bulk_store_wait();
          load_t<K>(p, base_address, 0);
        }
      }
''')
    cut("      if (k > 0 && copies_t<K>(me, rank)) {\n        bulk_store(t_block", "      cluster_arrive();\n    }\nMARK(0);")
    rep("T1 and T2 while the new panel is on its way, T12 while the columns'\n      // largest entries are; pw holds","while the new panel is on its way; pw holds")
HEAD_U = "#pragma unroll\n  for (int k = 0; k < 4; k++) load_matrices(wop + k * 512, a[k]);\n  static_assert(K::CHUNKS == 4 && K::STEP == 1);\n"
def upd(body):
    cut("  uint32_t a[4][4];\n#pragma unroll\n  for (int k = 0; k < 4; k++) load_matrices(wop + k * 512, a[k]);\n  static_assert(K::CHUNKS == 4", "  wgmma_commit();\n  wgmma_wait();\n}\n\nstruct Args", body)
B = """  static_assert(K::CHUNKS == 4 && K::STEP == 1);
  auto b = [&](int c, int k) { return descriptor(at16, c * CHUNK_BYTES + k * 256, 128, TILE_BYTES); };
"""
LOADS = """#pragma unroll
LL for (int k = 0; k < 4; k++) load_matrices(wop + k * 512, a[k]);
"""
def pair(c): return "#pragma unroll\n      for (int k = 0; k < 4; k++) wgmma_rows(a[k], b(%d, k), acc[%d], acc[%d]);\n" % (c, c, c + 1)
def one(c): return "#pragma unroll\n      for (int k = 0; k < 4; k++) wgmma_rows(a[k], b(%d, k), acc[%d]);\n" % (c, c)
LD = "#pragma unroll\n  for (int k = 0; k < 4; k++) load_matrices(wop + k * 512, a[k]);\n"
@edit
def u1():
    l = "      uint32_t a[4][4];\n" + LD
    upd(B + "  wgmma_fence();\n  if (first <= 0) {\n" + l + pair(0) + "  } else if (first == 1) {\n" + l + one(1) + "  }\n  if (first <= 2) {\n" + l + pair(2) + "  } else if (first == 3) {\n" + l + one(3) + "  }\n")
@edit
def u2():
    upd("  uint32_t a[4][4];\n" + LD + B + "  wgmma_fence();\n  if (first <= 2) {\n" + pair(2) + "  } else {\n" + one(3) + "  }\n  if (first <= 0) {\n" + pair(0) + "  } else if (first == 1) {\n" + one(1) + "  }\n")
@edit
def u3():
    upd("  uint32_t a[4][4];\n" + LD + B + "  wgmma_fence();\n  if (first == 3) {\n" + one(3) + "  } else {\n" + pair(2) + "    if (first == 1) {\n" + one(1) + "    }\n    if (first == 0) {\n" + pair(0) + "    }\n  }\n")
@edit
def u4():
    upd(B + "  wgmma_fence();\n#pragma unroll\n  for (int k = 0; k < 4; k++) {\n    uint32_t a[4];\n    load_matrices(wop + k * 512, a);\n    if (first <= 0) wgmma_rows(a, b(0, k), acc[0], acc[1]);\n    else if (first == 1) wgmma_rows(a, b(1, k), acc[1]);\n    if (first <= 2) wgmma_rows(a, b(2, k), acc[2], acc[3]);\n    else wgmma_rows(a, b(3, k), acc[3]);\n  }\n")
@edit
def u5():
    f = "#pragma unroll\n      for (int k = 0; k < 4; k++) {\n        uint32_t a[4];\n        load_matrices(wop + k * 512, a);\n        %s;\n      }\n"
    upd(B + "  wgmma_fence();\n  if (first <= 0) {\n" + f % "wgmma_rows(a, b(0, k), acc[0], acc[1])" + "  } else if (first == 1) {\n" + f % "wgmma_rows(a, b(1, k), acc[1])" + "  }\n  if (first <= 2) {\n" + f % "wgmma_rows(a, b(2, k), acc[2], acc[3])" + "  } else {\n" + f % "wgmma_rows(a, b(3, k), acc[3])" + "  }\n")
@edit
def amp100():
    rep("constexpr float AMPLIFIED = 300.f;    // largest sum_k |p_k| |M_kj|", "constexpr float AMPLIFIED = 100.f;    // largest sum_k |p_k| |M_kj|: R's error grows with its square")
@edit
def pieces():
    """the next panel by 16-row pieces of a warpgroup: those in places of finished rows are asked for when the panel begins"""
    cut("// Half of the next panel into a stage: eight copies", "template <class K>\nDEVICE void load_t(", """// The next panel's entries, 2 KB for 32 columns of a 16-row piece of a warpgroup, in the places of V (stage 0), H and L
// (stage 1) of each warpgroup's chunks: places of chunks whose rows are finished are free as soon as the panel begins.
// A warp asks for the pieces of one warpgroup in one chunk's place of `stage`. The order of rows and the swizzle are
// those of panel_map: rows with bits [x1][q][x0] for row 4q + 2 x1 + x0, so that the lanes' reads do not collide. Thread 0
// arrives on A_BAR once all have been issued.
template <class K>
DEVICE int piece_at(int stage, int place, int group, int half) {
  return stage ? K::STAGE + half * (K::STAGE / 2) + group * (K::SLAB / 2) + place * (CHUNK_BYTES / 2) : group * K::SLAB + place * CHUNK_BYTES + half * (CHUNK_BYTES / 2);
}
template <class K>
DEVICE void load_pieces(const Args& p, const CUtensorMap& map, uint32_t base, int stage, int top, uint32_t rank, int warp) {
  const uint32_t bar = barrier_at<K>(base, A_BAR);
  const int place = warp / K::G, group = warp % K::G;
  const int piece = (block_index() / K::C * (2 * K::CHUNKS) + K::CHUNKS * stage + place) * K::UNITS + rank * K::G + group;
  barrier_expect_more(bar, CHUNK_BYTES);
  panel_copy(base + piece_at<K>(stage, place, group, 0), map, top, piece, bar);
  panel_copy(base + piece_at<K>(stage, place, group, 1), map, top + SUB, piece, bar);
}
""")
    rep("""  // the next panel's entries, over both stages: [pair of 16-row pieces][half of the columns] as tensor copies lay them
  static constexpr int COPY = G * 16 * SUB * 4;
  static_assert(2 * CHUNKS * COPY == STAGE, "half of the pieces fill a stage");
""", """  static_assert(CHUNK_BYTES == 2 * 16 * SUB * 4 && CHUNKS == 4, "half of the next panel's entries fill a stage, a place a warp");
""")
    rep("""    load_panel<K>(p, map, base_address, 1, 0, rank, me.thread);
    load_panel<K>(p, map, base_address, 0, 0, rank, me.thread);
    __syncthreads();
""", """    if (me.lane == 0) {
      load_pieces<K>(p, map, base_address, 0, 0, rank, me.warp);
      load_pieces<K>(p, map, base_address, 1, 0, rank, me.warp);
    }
    __syncthreads();
""")
    cut("        const unsigned char* even = sm + opaque(me.group * 2048", "      } else {\n        const int unit_", """        const unsigned char* even = sm + opaque(me.q * 256 + core * 16 + (me.g & 3) * 4);
        const unsigned char* odd = sm + opaque(me.q * 256 + 128 + (core ^ 1) * 16 + (me.g & 3) * 4);
#pragma unroll
        for (int pair = 0; pair < 2 * K::CHUNKS; pair++) {
          if (pair % K::CHUNKS == 0) {
            even += opaque(me.group * (pair ? K::SLAB / 2 - K::SLAB : K::SLAB));
            odd += opaque(me.group * (pair ? K::SLAB / 2 - K::SLAB : K::SLAB));
          }
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const int i = (pair & 1) * 8 + (r >> 1) * 4 + (r & 1);
            const unsigned char* from = (r & 1 ? odd : even) + (r >> 1) * 1024;
            acc[pair >> 1][i] = *reinterpret_cast<const float*>(from + piece_at<K>(pair / K::CHUNKS, pair % K::CHUNKS, 0, 0));
            acc[pair >> 1][i + 2] = *reinterpret_cast<const float*>(from + piece_at<K>(pair / K::CHUNKS, pair % K::CHUNKS, 0, 1));
          }
        }
""")
    rep("""    __syncthreads();
    // ---- the panel
""", """    __syncthreads();
    // ---- the panel
    if (staged && top + PANEL < n && me.lane == 0 && me.warp / K::G < live) {  // places of finished rows: the next panel's pieces
      load_pieces<K>(p, map, base_address, 0, top + PANEL, rank, me.warp);
      load_pieces<K>(p, map, base_address, 1, top + PANEL, rank, me.warp);
    }
""")
    rep("          if (staged && top + PANEL < n) load_panel<K>(p, map, base_address, 1, top + PANEL, rank, me.thread);\n", "          if (staged && top + PANEL < n && me.lane == 0 && me.warp / K::G >= live) load_pieces<K>(p, map, base_address, 1, top + PANEL, rank, me.warp);\n")
    rep("        if (last && staged && top + PANEL < n) load_panel<K>(p, map, base_address, 0, top + PANEL, rank, me.thread);\n", "        if (last && staged && top + PANEL < n && me.lane == 0 && me.warp / K::G >= live) load_pieces<K>(p, map, base_address, 0, top + PANEL, rank, me.warp);\n")
    rep("""              for (int i = me.warp - 4; i < 4 * K::CHUNKS; i += 4 * K::G - 4)
                panel_prefetch(map, top + PANEL + SUB * (i & 1), (block_index() / K::C * (2 * K::CHUNKS) + (i >> 1)) * K::UNITS + rank * K::G);
""", """              for (int i = me.warp - 4; i < 4 * K::CHUNKS * K::G; i += 4 * K::G - 4) {
                const int pair = i / 2 / K::G;
                if (pair % K::CHUNKS >= live) panel_prefetch(map, top + PANEL + SUB * (i & 1), (block_index() / K::C * (2 * K::CHUNKS) + pair) * K::UNITS + rank * K::G + i / 2 % K::G);
              }
""")
@edit
def copier():
    rep("DEVICE int copier(uint32_t rank) { return rank == K::C - 1 ? 0 : 3; }", "DEVICE int copier(uint32_t rank) { return (rank * K::OWNED) ^ 3; }")
@edit
def loadif():
    rep("        for (int z = 0; z < 4; z++) t_hi[kk][z] = t_lo[kk][z] = 0u;\n        load_if(", "@@\n        load_if(")
    rep("#pragma unroll\n@@\n", "")
@edit
def tread():
    """T leaves the place of W before the first block, not in it"""
    rep("    if (j == 0 && copies_t<K>(me, rank)) bulk_store_wait_read();  // T has left the place of W and W': now peers may go on\n", "")
    if "        if (k == 1) bulk_store_wait();\n        load_t<K>(p, base_address, 0);\n      }\n      cluster_arrive();" in s:
        rep("        if (k == 1) bulk_store_wait();\n        load_t<K>(p, base_address, 0);\n", "        if (k == 1) bulk_store_wait();\n        else bulk_store_wait_read();  // T has left the place of W and W'\n        load_t<K>(p, base_address, 0);\n")
    else: rep("          if (k == 1) bulk_store_wait();\n          load_t<K>(p, base_address, 0);\n", "          if (k == 1) bulk_store_wait();\n          else bulk_store_wait_read();  // T has left the place of W and W'\n          load_t<K>(p, base_address, 0);\n")
@edit
def rev1():
    rep("""  for (int c = 0; c < K::CHUNKS; c++) {
    if (c >= first) {
#pragma unroll
      for (int h = 0; h < 2; h++) {""", """  for (int c = K::CHUNKS - 1; c >= 0; c--) {  // the last chunk is always live
    if (c == K::CHUNKS - 1 || c >= first) {
#pragma unroll
      for (int h = 0; h < 2; h++) {""")
@edit
def rev2():
    a = "          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n#pragma unroll\n              for (int u = 0; u < 2; u++) {\n                uint32_t a[4];  // H' above L'"
    rep(a, a.replace("for (int c = 0; c < K::CHUNKS; c++)", "for (int c = K::CHUNKS - 1; c >= 0; c--)").replace("c >= live", "c == K::CHUNKS - 1 || c >= live"))
@edit
def rev3():
    a = "          for (int c = 0; c < K::CHUNKS; c++) {\n            if (c >= live) {\n              uint32_t a[2][4];\n"
    rep(a, a.replace("for (int c = 0; c < K::CHUNKS; c++)", "for (int c = K::CHUNKS - 1; c >= 0; c--)").replace("c >= live", "c == K::CHUNKS - 1 || c >= live"))
@edit
def rev4():
    global s
    s = s.replace("if (c >= live) {", "if (c == K::CHUNKS - 1 || c >= live) {")
@edit
def xor():
    """V's groups of eight reflectors lie in the order r ^ 2 group"""
    cut("    float4 sum[K::SHARE];\n", "    named_join(1 + me.cg, 32 * K::G);\nMARK(26);", """    float4 sum[2] = {make_float4(w[0], w[1], w[2], w[3]), make_float4(w[4], w[5], w[6], w[7])};  // the own share comes first
#pragma unroll
    for (int i = 1; i < K::G; i++) {
      float4* to = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_W + ((i ^ me.group) * 4 + me.cg) * K::SUMS + (i - 1) * 512) + me.lane;
      to[0] = make_float4(w[8 * i], w[8 * i + 1], w[8 * i + 2], w[8 * i + 3]);
      to[(K::G - 1) * 32] = make_float4(w[8 * i + 4], w[8 * i + 5], w[8 * i + 6], w[8 * i + 7]);
    }
""")
    rep("uniform(operand_address(base_address + me.group * K::SLAB + s * 512))", "uniform(operand_address(base_address + me.group * K::SLAB + (s ^ me.group >> 1) * 512))")
    rep("(4 * s + me.cg) * 128", "((4 * s + me.cg) ^ 2 * me.group) * 128", 2)
    rep("          for (int ct = 0; ct < 4; ct++) partial[ct * 32] = ", "          for (int ct = 0; ct < 4; ct++) partial[(ct & 1) * 32 + ((ct & 2) ^ (me.group & 1) * 2) * 32] = ")
    rep("pwp[column * LD_SHIFT + kk * 16 + 2 * me.q + 8 * (y >> 1)]", "pwp[column * LD_SHIFT + (kk ^ (me.group & 1)) * 16 + 2 * me.q + 8 * (y >> 1)]")
    n = s.count("load_matrices(wop + k * 512, a[k])"); assert n == 1
    rep("load_matrices(wop + k * 512, a[k])", "load_matrices(wop + (k ^ group) * 512, a[k])")
    rep("subtract_v_times_w(Acc<K>& acc, uint32_t wop, uint32_t at16, int first) {", "subtract_v_times_w(Acc<K>& acc, uint32_t wop, uint32_t at16, int first, int group) {")
    rep("me.cg * 2048 + me.lane * 16, at16, first);", "me.cg * 2048 + me.lane * 16, at16, first, me.group);")
@edit
def formt():
    """T of 32 reflectors by blocks of 8, 16, 32"""
    cut("// T without a serial substitution over 32 or 64", "template <class K>\nDEVICE void guard_and_top(", """// 16 x 8 entries of sign A B, DEPTH terms each, on the tensor cores in two fp16 terms of both factors: a warp. All row
// strides LD_SHIFT.
template <int DEPTH>
DEVICE void product_tile(float* c, const float* a, const float* b, float sign, int lane) {
  const int g = lane >> 2, q = lane & 3;
  float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < DEPTH; k += 16) {
    uint32_t a_hi[4], a_lo[4], b_hi[2], b_lo[2];
#pragma unroll
    for (int y = 0; y < 4; y++) {
      const float2 x = *reinterpret_cast<const float2*>(a + (g + (y & 1) * 8) * LD_SHIFT + k + (y >> 1) * 8 + 2 * q);
      split_fp16(x.x, x.y, a_hi[y], a_lo[y]);
    }
#pragma unroll
    for (int y = 0; y < 2; y++) {
      const float* x = b + (k + 8 * y + 2 * q) * LD_SHIFT + g;
      split_fp16(x[0], x[LD_SHIFT], b_hi[y], b_lo[y]);
    }
    mma_fp16(d, a_hi, b_hi[0], b_hi[1]);
    mma_fp16(e, a_hi, b_lo[0], b_lo[1]);
    mma_fp16(e, a_lo, b_hi[0], b_hi[1]);
  }
  float* to = c + g * LD_SHIFT + 2 * q;
  *reinterpret_cast<float2*>(to) = make_float2(sign * (d[0] + e[0]), sign * (d[1] + e[1]));
  *reinterpret_cast<float2*>(to + 8 * LD_SHIFT) = make_float2(sign * (d[2] + e[2]), sign * (d[3] + e[3]));
}
// C = sign A B, 32 x 32: tile 0 .. 7 of it
DEVICE void product_32(float* c, const float* a, const float* b, float sign, int tile, int lane) {
  const int row = (tile >> 2) * 16 * LD_SHIFT, column = (tile & 3) * 8;
  product_tile<SUB>(c + row + column, a + row, b + column, sign, lane);
}
// T of 32 reflectors by two warps (`thread` of 64, barrier `id`), without a serial substitution over all of them:
// T^-1 = diag(1/tau) + striu(S), S = V'V, inverted in blocks of 8, which are then joined, T = [Ta, -Ta Sab Tb; 0, Tb].
// Scratch: 16 x 16.
DEVICE void form_t_32(float* t, const float* s, const float* tau, float* scratch, int thread, int id) {
  const int warp = thread >> 5, lane = thread & 31;
  if (warp == 0) {  // the diagonal blocks, a lane a column
    const int b = lane >> 3, c = lane & 7;
    const float* from = s + 8 * b * (LD_SHIFT + 1);
    float x[8];
#pragma unroll
    for (int r = 7; r >= 0; r--) {
      const Quad y[2] = {load4(from + r * LD_SHIFT), load4(from + r * LD_SHIFT + 4)};
      float sum = 0.f;
#pragma unroll
      for (int m = 7; m > r; m--) sum = fmaf(y[m >> 2].e[m & 3], x[m], sum);
      x[r] = tau[8 * b + r] * ((r == c ? 1.f : 0.f) - sum);
      t[8 * b * (LD_SHIFT + 1) + r * LD_SHIFT + c] = x[r];
    }
  } else if (lane < 24) {  // zeros under them
#pragma unroll
    for (int q = 0; q < 6; q++)
      if (q < 2 * (lane / 8 + 1)) *reinterpret_cast<float4*>(t + (8 + lane) * LD_SHIFT + 4 * q) = make_float4(0.f, 0.f, 0.f, 0.f);
  }
  named_join(id);
  {  // blocks of 16, each by a warp
    const int i = lane >> 2, j = (lane & 3) * 2;
    float* corner = t + 16 * warp * (LD_SHIFT + 1);
    float* y = scratch + 8 * warp * LD_SHIFT + j;
    auto product = [&](const float* a, const float* b) {
      const Quad x[2] = {load4(a + i * LD_SHIFT), load4(a + i * LD_SHIFT + 4)};
      float2 sum = make_float2(0.f, 0.f);
#pragma unroll
      for (int m = 0; m < 8; m++) {
        const float2 z = *reinterpret_cast<const float2*>(b + m * LD_SHIFT);
        sum.x = fmaf(x[m >> 2].e[m & 3], z.x, sum.x);
        sum.y = fmaf(x[m >> 2].e[m & 3], z.y, sum.y);
      }
      return sum;
    };
    *reinterpret_cast<float2*>(y + i * LD_SHIFT) = product(s + 16 * warp * (LD_SHIFT + 1) + 8, corner + 8 * (LD_SHIFT + 1) + j);
    __syncwarp();
    const float2 z = product(corner, y);
    *reinterpret_cast<float2*>(corner + i * LD_SHIFT + 8 + j) = make_float2(-z.x, -z.y);
  }
  named_join(id);
  product_tile<16>(scratch + 8 * warp, s + 16, t + 16 * (LD_SHIFT + 1) + 8 * warp, 1.f, lane);
  __syncwarp();
  product_tile<16>(t + 16 + 8 * warp, t, scratch + 8 * warp, -1.f, lane);
}

""")
@edit
def late():
    """V stays unrounded in registers (every product packs it, H's store rounds it): no selects, no conversion back"""
    cut("              for (int tile = 0; tile < 4; tile += 2) {\n                const int row = chunk_row<K>(c, tile, 0);\n                float *x = &acc[c][tile * 4], *y = x + 4;\n                float4 v = make_float4(x[0] * by", "              store_matrices(v_to + c * CHUNK_BYTES, to_tiles);", """              for (int tile = 0; tile < 4; tile += 2) {
                float *x = &acc[c][tile * 4], *y = x + 4;
                float4 v = make_float4(x[0] * by, x[1] * by, y[0] * by, y[1] * by);
                if (in && (unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB) v = *reinterpret_cast<const float4*>(v_from + chunk_row<K>(c, tile, 0));
                x[0] = v.x;
                x[1] = v.y;
                y[0] = v.z;
                y[1] = v.w;
                to_tiles[tile] = local < stop ? pack(v.x, v.y) : 0u;  // a column of an earlier pass: the same again
                to_tiles[tile + 1] = local < stop ? pack(v.z, v.w) : 0u;
              }
""")
    rep("                float4 v = make_float4(x[0], x[1], y[0], y[1]);\n                if ((unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB) v =", "                const float2 v0 = __half22float2(__floats2half2_rn(x[0], x[1])), v1 = __half22float2(__floats2half2_rn(y[0], y[1]));\n                float4 v = make_float4(v0.x, v0.y, v1.x, v1.y);\n                if ((unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB) v =")
    rep("""                for (int y = 1; y < 8; y += 2) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][1 + (y >> 1 & 1) * 2]);
""", """                for (int y = 1; y < 8; y += 2) a[y >> 2][1 + (y >> 1 & 1) * 2] = 0u;
                if (s == 0) {  // else it is V of the first sub-panel
#pragma unroll
                  for (int y = 1; y < 8; y += 2) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][1 + (y >> 1 & 1) * 2]);
                }
""")
    rep("""                  for (int y = 0; y < 8; y += 2) split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][(y >> 1 & 1) * 2]);
""", """                  for (int y = 0; y < 8; y += 2) {
                    split_fp16(acc[c][2 * y], acc[c][2 * y + 1], unused, a[y >> 2][(y >> 1 & 1) * 2]);
                    if (local < stop) a[y >> 2][(y >> 1 & 1) * 2] = 0u;
                  }
""")
@edit
def stack():
    """V = P M with both terms of M as one operand of 64 rows"""
    clear = "#pragma unroll\n        for (int c = 0; c < K::CHUNKS; c++) {\n#pragma unroll\n          for (int tile = 0; tile < 4; tile++) acc[c][tile * 4] = acc[c][tile * 4 + 1] = 0.f;\n        }\n"
    global s
    i = s.index(clear); j = s.index("        // (3) V = P M, rounded to fp16\n")
    k = s.index("        {\n          const float by = in ? __uint_as_float((254u << 23) - __float_as_uint(m_scale[local])) : 1.f;  // 1 / 2^e")
    back = s[i + len(clear):j]
    new = """        // (3) V = P M. High and low terms of M are one operand of 64 rows
        const bool in = local >= done && local < stop;
        {
          uint32_t m[2][4], m_hi[2][4];
#pragma unroll
          for (int kk = 0; kk < 2; kk++) {
#pragma unroll
            for (int y = 0; y < 4; y += 2) {
              float2 x = *reinterpret_cast<float2*>(&z.m[local * LD_M + kk * 16 + 2 * me.q + 4 * y]);
              const float by = m_scale[local];
              x = in ? make_float2(x.x * by, x.y * by) : make_float2(0.f, 0.f);
              split_fp16(x.x, x.y, m[kk][y], m[kk][y + 1]);
              m_hi[kk][y] = m[kk][y];
              m_hi[kk][y + 1] = 0u;
            }
          }
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            float d[16];
#pragma unroll
            for (int i = 0; i < 16; i++) d[i] = 0.f;
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(d, m_hi[kk], descriptor(h16, c * 2048 + kk * 256 + (K::O_L - K::O_H), 128, 512));
                wgmma<false>(d, m[kk], descriptor(h16, c * 2048 + kk * 256, 128, 512));
              }
              wgmma_commit();
              wgmma_wait();
            }
#pragma unroll
            for (int i = 0; i < 16; i++)
              if (!(i & 2)) acc[c][i] = d[i] + d[i + 2];
          }
        }
"""
    s = s[:i] + "MARK(12);\n" + new + "MARK(13);\n" + back.replace("MARK(12);\n", "") + s[k:]
@edit
def oneterm():
    """C and W' of a pass in one fp16 term, as in larfb"""
    cut("          if (s == 0 || stop < SUB) {  // columns of C take part: their low term\n", "          float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.group", "")
    rep("          uint32_t w_hi[2][4], w_lo[2][4];\n", "          uint32_t w[2][4];\n")
    rep("split_fp16(on ? -x.x : 0.f, on ? -x.y : 0.f, w_hi[kk][y], w_lo[kk][y]);", "w[kk][y] = on ? pack(-x.x, -x.y) : 0u;")
    rep("                wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));\n", "")
    rep("wgmma<false>(acc[c], w_hi[kk], descriptor(v16", "wgmma<false>(acc[c], w[kk], descriptor(v16")
@edit
def simple():
    """four warpgroups a CTA, for every n; 3 or 4 chunks of rows"""
    global s
    rep("template <int C_, int G_, int CHUNKS_>\nstruct Config {", "template <int C_, int CHUNKS_>\nstruct Config {")
    rep("  static constexpr int G = G_;                  // warpgroups of a CTA\n  static constexpr int THREADS = 128 * G;\n", "  static constexpr int G = 4;                   // warpgroups of a CTA\n  static constexpr int THREADS = 128 * G;\n")
    rep("  static constexpr int STEP = CHUNKS / 4;       // finished rows are skipped in steps of so many chunks\n", "")
    rep("""  static constexpr int SHARE = (8 + G - 1) / G;  // groups of 8 reflectors whose sums over the warpgroups a warp makes
  static constexpr int SUMS = SHARE * (G - 1) * 512;  // what the other warpgroups hand to a warp for that
""", """  static constexpr int SUMS = 2 * (G - 1) * 512;  // 16 reflectors' sums are made by one warp: what the other warpgroups hand to it
""")
    rep('  static_assert(8 * OWNED <= 4 * G, "16 x 8 pieces of W\': at most one a warp");\n', "")
    s = s.replace("(K::CHUNK_ROWS * K::STEP) * K::STEP", "K::CHUNK_ROWS")
    rep("c < live + K::STEP", "c < live + 1")
    rep("  static_assert(K::CHUNKS == 4 && K::STEP == 1);\n", "")
    i = s.index("  wgmma_fence();\n  if (first <= 2) {"); j = s.index("  wgmma_commit();\n  wgmma_wait();\n}\n\nstruct Args", i)
    s = s[:i] + """  wgmma_fence();
#pragma unroll
  for (int c = K::CHUNKS - 2; c > -2; c -= 2) {  // 64 rows a product where both chunks live: shorter ones would wait for each other
    if (c >= 0 && first <= c) {
#pragma unroll
      for (int k = 0; k < 4; k++) wgmma_rows(a[k], b(c, k), acc[c < 0 ? 0 : c], acc[c + 1]);
    } else if (c == K::CHUNKS - 2 || first == c + 1) {
#pragma unroll
      for (int k = 0; k < 4; k++) wgmma_rows(a[k], b(c + 1, k), acc[c + 1]);
    }
  }
""" + s[j:]
    rep("  if (thread % 32 == 0 && thread < 256) {", "  if (thread % 32 == 0 && thread < 64 * K::CHUNKS) {")
    rep("half of the next panel into a stage: eight copies of", "half of the next panel into a stage: copies of") if "half of the next panel into a stage: eight" in s else rep("// Half of the next panel into a stage: eight copies of", "// Half of the next panel into a stage: copies of")
    i = s.index("#pragma unroll\n    for (int i = 0; i < K::SHARE; i++) {"); j = s.index("    // a thread that sends, not sums:", i)
    s = s[:i] + """#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int u = 0; u < K::G - 1; u++) add4(sum[i], partial[(i * (K::G - 1) + u) * 32]);
      if (owner != (int)rank) {
        const int slot = column * (K::C - 1) + (rank < owner ? rank : rank - 1);
        send(map_address(base + K::O_INBOX + slot * 4096 + (me.group * 2 + i) * 512 + me.lane * 16, owner), sum[i], map_address(barrier_at<K>(base, INBOX_BAR), owner));
      }
    }
""" + s[j:]
    i = s.index("      const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + (column * (K::C - 1) * 8"); j = s.index("MARK(3);\n", i)
    s = s[:i] + """      const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + (column * (K::C - 1) * 8 + me.group * 2) * 32 + me.lane;
      uint32_t x[2][4];
#pragma unroll
      for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int r = 0; r < K::C - 1; r++) add4(sum[i], in[r * 256 + i * 32]);
        split_fp16(sum[i].x, sum[i].y, x[i][0], x[i][1]);
        split_fp16(sum[i].z, sum[i].w, x[i][2], x[i][3]);
      }
      // as B operands of T'W for 8 columns each: 16 reflectors' high terms, then their low terms
      uint4* to = reinterpret_cast<uint4*>(sm + K::O_W) + (column * 8 + me.group) * 32 + me.lane;
      to[0] = make_uint4(x[0][0], x[1][0], x[0][1], x[1][1]);
      to[128] = make_uint4(x[0][2], x[1][2], x[0][3], x[1][3]);
    }
  }
""" + s[j:]
    rep("  if (2 * K::OWNED >= K::G || nt < 2 * K::OWNED) {", "  if (K::C == 2 || nt < 2 * K::OWNED) {")
    rep("thread >= K::THREADS - 256", "thread >= 256"); rep("(thread - (K::THREADS - 256)) >> 5 << 2", "(thread - 256) >> 5 << 2")
    i = s.index("        constexpr int PIECES"); j = s.index("MARK(16);\n", i)
    s = s[:i] + """        {
          float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.thread;
          float4 x = partial[0];
#pragma unroll
          for (int u = 1; u < K::G; u++) add4(x, partial[u * 512]);
          partial[0] = x;
#pragma unroll
          for (int r = 1; r < K::C; r++) {
            const uint32_t peer = (rank + r) % K::C, at = base_address + K::O_INBOX + ((rank < peer ? rank : rank - 1) * 512 + me.thread) * 16;
            send(map_address(at, peer), x, map_address(barrier_at<K>(base_address, PANEL_BAR), peer));
          }
        }
""" + s[j:]
    i = s.index("#pragma unroll\n        for (int piece = 0; piece < PIECES; piece++) {"); j = s.index("        __syncthreads();\n        // tau = 2 / v'v", i)
    s = s[:i] + """        {
          const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + me.thread;
          float4 x = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
          for (int r = 0; r < K::C; r++)  // in the same order in every CTA: they must agree to the last bit
            add4(x, r == (int)rank ? *reinterpret_cast<const float4*>(sm + K::O_PARTIAL + me.thread * 16) : in[(r < (int)rank ? r : r - 1) * 512]);
          const int column = SUB * s + me.group * 8 + me.g, other = column ^ SUB, reflector = me.cg * 8 + 2 * me.q;
          *reinterpret_cast<float2*>(&pw[column * LD_SHIFT + reflector]) = make_float2(x.x, x.y);
          *reinterpret_cast<float2*>(&pw[other * LD_SHIFT + reflector]) = make_float2(x.z, x.w);
        }
""" + s[j:]
    i = s.index("            for (int u = 1; u < K::G; u++) {\n#pragma unroll\n              for (int i = 0; i < 2; i++) {"); j = s.index("            const uint32_t at = base_address + K::O_INBOX + (rank * 4 + me.cg) * 1024", i)
    s = s[:i] + """            for (int u = 1; u < K::G; u++) {
#pragma unroll
              for (int i = 0; i < 2; i++) add4(x4[i], partial[u * 64 + i * 32]);
            }
""" + s[j:]
    a = s.index("          for (int u = 0; u < K::C; u++) {\n            float4 x = in[u * 256];"); b = s.index("        if (me.thread < 256) {  // X = HH/2", a)
    s = s[:a] + "          for (int u = 0; u < K::C; u++) add4(sum, in[u * 256]);\n        }\n" + s[b:]
@edit
def ownskip():
    """W' of the own columns needs no wait for the peers"""
    rep("  wait_for<K>(base, WOP_BAR, turn() & 1);\nMARK(6);", "  if (me.cg / K::OWNED != (int)rank) wait_for<K>(base, WOP_BAR, turn() & 1);  // else this CTA has made them\nMARK(6);")
@edit
def onew():
    rep("          uint32_t w_hi[2][4], w_lo[2][4];\n", "          uint32_t w[2][4];  // one fp16 term, as in larfb\n")
    rep("split_fp16(on ? -x.x : 0.f, on ? -x.y : 0.f, w_hi[kk][y], w_lo[kk][y]);", "w[kk][y] = on ? pack(-x.x, -x.y) : 0u;")
    rep("                wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));\n", "")
    rep("wgmma<false>(acc[c], w_hi[kk], descriptor(v16", "wgmma<false>(acc[c], w[kk], descriptor(v16")
@edit
def onec():
    cut("          if (s == 0 || stop < SUB) {  // columns of C take part: their low term\n", "          float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.group", "")
@edit
def pipe():
    """operands of C -= V W' loaded while products run"""
    rep("#pragma unroll\n  for (int k = 0; k < 4; k++) load_matrices(wop + (k ^ group) * 512, a[k]);\n", "  auto load = [&](int k) { load_matrices(wop + (k ^ group) * 512, a[k]); };\n  load(0);\n  load(1);\n")
    rep("      for (int k = 0; k < 4; k++) wgmma_rows(a[k], b(c, k), acc[c < 0 ? 0 : c], acc[c + 1]);\n", "      for (int k = 0; k < 4; k++) {\n        wgmma_rows(a[k], b(c, k), acc[c < 0 ? 0 : c], acc[c + 1]);\n        if (c == K::CHUNKS - 2 && k < 2) load(k + 2);\n      }\n")
    rep("      for (int k = 0; k < 4; k++) wgmma_rows(a[k], b(c + 1, k), acc[c + 1]);\n", "      for (int k = 0; k < 4; k++) {\n        wgmma_rows(a[k], b(c + 1, k), acc[c + 1]);\n        if (c == K::CHUNKS - 2 && k < 2) load(k + 2);\n      }\n")
@edit
def prio():
    """owners begin their sums when the senders have sent half of theirs"""
    rep("    for (int i = 0; i < 2; i++) {\n#pragma unroll\n      for (int u = 0; u < K::G - 1; u++) add4(sum[i], partial", "    for (int i = 0; i < 2; i++) {\n      if (i == 0 && owner == (int)rank) named_join(9, K::THREADS);  // the sums to be sent go first\n      if (i == 1 && owner != (int)rank) named_arrive(9, K::THREADS);\n#pragma unroll\n      for (int u = 0; u < K::G - 1; u++) add4(sum[i], partial")
@edit
def flag():
    """C and W' of a pass in one fp16 term for n >= 1024 (as in larfb), two below"""
    rep("          if (s == 0 || stop < SUB) {  // columns of C take part: their low term\n", "          if (two_terms && (s == 0 || stop < SUB)) {  // columns of C take part: their low term\n")
    rep("  const bool staged = p.staged;\n", "  const bool staged = p.staged, two_terms = n < 1024;  // of C and W' of a pass: the smaller n, the smaller what is allowed\n")
    rep("""              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
                wgmma<false>(acc[c], w_hi[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
              }
""", """              for (int kk = 0; kk < 2; kk++) wgmma<false>(acc[c], w_hi[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
              if (two_terms) {
#pragma unroll
                for (int kk = 0; kk < 2; kk++) wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
              }
""")
@edit
def emax():
    """the next panel's largest entries by warps that wait for the recurrence; T and scales before the panel is there"""
    global s
    rep("PANEL_BAR completes\n// once for the scales and twice a pass. FULL_BARS:", "SCALE_BAR completes\n// once a panel, PANEL_BAR twice a pass. FULL_BARS:")
    rep("enum { A_BAR, T_BAR, INBOX_BAR, WOP_BAR, PANEL_BAR, FULL_BARS };", "enum { A_BAR, T_BAR, INBOX_BAR, WOP_BAR, PANEL_BAR, SCALE_BAR, FULL_BARS };")
    rep("  static constexpr int BYTES = O_STATE + THREADS / 32 * 16;\n", "  static constexpr int O_MAX = O_STATE + THREADS / 32 * 16;  // largest entries of the next panel's columns: this CTA's rows, then all CTAs'\n  static constexpr int BYTES = O_MAX + (1 + C) * PANEL * 4;\n")
    rep("template <class K>\nDEVICE void load_t(", """// Largest entries of a panel's columns over this CTA's rows, by THREADS threads, and their exchange
template <class K, int THREADS>
DEVICE void panel_max(const Args& p, unsigned char* sm, int top, uint32_t rank, int thread) {
  constexpr int STEP = THREADS / PANEL, PIECE = 16 * K::G;  // rows at a time; rows of this CTA that follow each other
  const int n = opaque(p.n), column = thread & (PANEL - 1);
  const float* from = p.a + (size_t)(block_index() / K::C) * n * n + min(top + column, n - 1);
  float biggest = 0.f;
#pragma unroll 1
  for (int row = rank * PIECE + thread / PANEL; row < K::ROWS; row += K::C * PIECE) {
#pragma unroll
    for (int i = 0; i < PIECE; i += STEP)  // past the CTA's rows or n: other rows of the column, which do no harm
      biggest = fmaxf(biggest, fabsf(load_once(from + min(row + i, n - 1) * n)));
  }
  if (top + column < n) atomicMax(reinterpret_cast<int*>(sm + K::O_MAX) + column, __float_as_int(biggest));
}
template <class K>
DEVICE void send_max(unsigned char* sm, uint32_t base, uint32_t rank, int thread) {
  const uint32_t bar = barrier_at<K>(base, SCALE_BAR), at = base + K::O_MAX + ((1 + rank) * PANEL + thread) * 4;
  if (thread == 0) barrier_expect(bar, K::C * PANEL * 4);
  if (thread < PANEL) {
    const int biggest = reinterpret_cast<const int*>(sm + K::O_MAX)[thread];
#pragma unroll
    for (int r = 0; r < K::C; r++) send(map_address(at, r), biggest, map_address(bar, r));
  }
}
template <class K>
DEVICE void load_t(""")
    a = s.index("    // ---- load and scale\n"); b = s.index("MARK(0);\n    // ---- earlier blocks", a)
    old = s[a:b]
    conv = old[old.index("#pragma unroll 1\n        for (int tile = me.warp; tile < 16;"):old.index("        fence_async();\n      }\nMARK(29);")]
    lds = old[old.index("        const int core = (2 * me.cg"):old.index("MARK(21);")]
    lds = lds.replace("acc[pair >> 1][i] = *reinterpret_cast<const float*>(from);", "acc[pair >> 1][i] = *reinterpret_cast<const float*>(from) * scale[0];").replace("acc[pair >> 1][i + 2] = *reinterpret_cast<const float*>(from + K::COPY);", "acc[pair >> 1][i + 2] = *reinterpret_cast<const float*>(from + K::COPY) * scale[1];").replace("(row0 + row < n && column < n) ? from[row * ld + SUB * (i >> 1 & 1)] : 0.f;", "(row0 + row < n && column < n) ? from[row * ld + SUB * (i >> 1 & 1)] * scale[i >> 1 & 1] : 0.f;")
    new = """    // ---- load and scale
    Acc<K> acc;
    {
      // T = [T1, -T1 S12 T2; 0, T2] of the last block while the new panel is on its way; pw holds [V1'V2; V2'V2]
      float *t1 = pwp, *t2 = pwp + SUB * LD_SHIFT, *t12 = z.x, *y = z.m;  // not where peers may send W of the first block already
      if (me.thread < PANEL) reinterpret_cast<int*>(sm + K::O_MAX)[me.thread] = 0;
      if (staged && me.thread == 0) barrier_arrive(barrier_at<K>(base_address, A_BAR));
      cluster_wait();
      if (k > 0) {
        if (me.thread < 128) {
          const int half = me.warp >> 1;
          form_t_32(half ? t2 : t1, half ? pw + SUB * LD_SHIFT : s1, tau + SUB * half, half ? t12 : y, me.thread & 63, 1 + half);
        }
        __syncthreads();
        if (me.warp < 8) product_32(y, pw, t2, 1.f, me.warp, me.lane);
        __syncthreads();
        if (me.warp < 8) product_32(t12, t1, y, -1.f, me.warp, me.lane);
        __syncthreads();
""" + conv + """        fence_async();
      }
MARK(29);
      wait_for<K>(base_address, SCALE_BAR, k & 1);
      float scale[2];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int column = me.cg * 8 + me.g + SUB * half;
        int biggest = 0;
#pragma unroll
        for (int r = 0; r < K::C; r++) biggest = max(biggest, reinterpret_cast<const int*>(sm + K::O_MAX)[(1 + r) * PANEL + column]);
        int e = (biggest >> 23) - 127;
        e = biggest == 0 ? MAX_SCALE_LOG2 : max(e, -119);
        scale[half] = power_of_two(MAX_SCALE_LOG2 - e);
        if (me.group == 0 && me.q == 0) unscale[column] = power_of_two(e - MAX_SCALE_LOG2);
      }
      if (staged) {  // on its way since the last pass
        wait_for<K>(base_address, A_BAR, k & 1);
""" + lds + """MARK(21);
      __syncthreads();
      if (k > 0 && me.cg == copier<K>(rank) && me.lane == 0) {  // the stages have been read
        bulk_store_wait();
        load_slab<K>(p, base_address, k, 0, me.group);
        if (k > 1) load_slab<K>(p, base_address, k, 1, me.group);
        if (me.group == 0) {
          bulk_store(t_block(p, block_index(), k - 1), base_address + K::O_W, T_BYTES);
          if (k == 1) bulk_store_wait();
          else bulk_store_wait_read();  // T has left the place of W and W'
          load_t<K>(p, base_address, 0);
        }
      }
      cluster_arrive();
    }
"""
    s = s[:a] + new + s[b:]
    rep("    __syncthreads();\n  }\n  cluster_arrive();\n", "    __syncthreads();\n  }\n  if (me.thread < PANEL) reinterpret_cast<int*>(sm + K::O_MAX)[me.thread] = 0;\n  __syncthreads();\n  panel_max<K, K::THREADS>(p, sm, 0, rank, me.thread);\n  __syncthreads();\n  cluster_arrive();\n  cluster_wait();  // all barriers are ready\n  send_max<K>(sm, base_address, rank, me.thread);\n  cluster_arrive();\n")
    i = s.index("        else if (me.warp >= 4 && s == 0 && done == 0 && top + PANEL < n) {"); j = s.index("MARK(23);\n", i)
    s = s[:i] + "        else if (me.warp >= 4 && s == 0 && done == 0 && top + PANEL < n) panel_max<K, K::THREADS - 128>(p, sm, top + PANEL, rank, me.thread - 128);\n" + s[j:]
    rep("    __syncthreads();\n    // ---- the panel\n", """    __syncthreads();
    // ---- the panel
    if (top + PANEL < n) {  // the next one's rows of this CTA into L2
      if (staged) {
        if (me.lane == 0 && me.warp < 4 * K::CHUNKS)
          panel_prefetch(map, top + PANEL + SUB * (me.warp & 1), (block_index() / K::C * (2 * K::CHUNKS) + (me.warp >> 1)) * K::UNITS + rank * K::G);
      } else
#pragma unroll 1
        for (int i = me.thread; i < K::ROWS / K::C * 2; i += K::THREADS) {
          const int chunk = i >> 5, row = (chunk / K::G * K::UNITS + rank * K::G + chunk % K::G) * 16 + (i >> 1 & 15);
          if (row < n) prefetch_l2(p.a + ((size_t)(block_index() / K::C) * n + row) * n + min(top + PANEL + (i & 1) * 32, n - 1));
        }
    }
""")
    rep("        guard_and_top<K>(z, m_scale, unscale + SUB * s, done, me.thread);\n", "        if (s == 0 && done == 0 && top + PANEL < n) send_max<K>(sm, base_address, rank, me.thread);\n        guard_and_top<K>(z, m_scale, unscale + SUB * s, done, me.thread);\n")
    rep("wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);", "wait_for<K>(base_address, PANEL_BAR, 0);")
    rep("wait_for<K>(base_address, PANEL_BAR, k & 1);", "wait_for<K>(base_address, PANEL_BAR, 1);")
@edit
def keepx():
    """a thread's own sum of W stays in its registers"""
    rep("""        {
          float4* partial = reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.thread;
          float4 x = partial[0];
#pragma unroll
          for (int u = 1; u < K::G; u++) add4(x, partial[u * 512]);
          partial[0] = x;
""", """        float4 own;
        {
          const float4* partial = reinterpret_cast<const float4*>(sm + K::O_PARTIAL) + me.thread;
          own = partial[0];
#pragma unroll
          for (int u = 1; u < K::G; u++) add4(own, partial[u * 512]);
""")
    rep("send(map_address(at, peer), x, map_address(barrier_at<K>(base_address, PANEL_BAR), peer));\n          }\n        }\nMARK(16);", "send(map_address(at, peer), own, map_address(barrier_at<K>(base_address, PANEL_BAR), peer));\n          }\n        }\nMARK(16);")
    rep("r == (int)rank ? *reinterpret_cast<const float4*>(sm + K::O_PARTIAL + me.thread * 16) : in[", "r == (int)rank ? own : in[")
@edit
def loc():
    rep("  __syncthreads();\n  if (copies_t<K>(me, rank) && j + 1 < blocks) {\n", "  __syncthreads();\n  locate();\n  if (copies_t<K>(me, rank) && j + 1 < blocks) {\n")
    i = s.index("  locate();\n  if (copies_t<K>(me, rank) && j + 1 < blocks) {"); j = s.index("  locate();\n  at16 = v_at", i)
    globals()['s'] = s[:j] + s[j + len("  locate();\n"):]
if __name__ == '__main__':
    for f in sys.argv[2:]: E_[f]()
    open(S + 'body%s.cuh' % sys.argv[1], 'w').write(s)
