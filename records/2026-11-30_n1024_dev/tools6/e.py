import sys
SRC='v129.py'
s=open(SRC).read()
def rep(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a); s=s.replace(a,b)
def noR():
    rep("if (local >= done && first + local < n) {  // R of","if (p.zero && local >= done && first + local < n) {  // R of")
def noV():
    rep("        if (in && first + local < n) {\n","        if (p.zero && in && first + local < n) {\n")
def noW():  # no store of V to the workspace by bulk: wait_read not there (wrong: timing only)
    rep("        if (K::TERMS == 1 ? last && me.cg == copier<K>(rank) && me.lane == 0 : me.cg == copier<K>(rank)) bulk_store_wait_read();\n","")
def gss():
    """H above L in one tile of 64 columns; Gram with A from shared memory"""
    rep("static constexpr int O_H = STAGE, O_L = STAGE + STAGE / 2;","static constexpr int O_H = STAGE, O_L = O_H + 128, O_LOW = STAGE + STAGE / 2;")
    rep("  // inside stage 1 during the panel: H and L tiles; with two terms V's low terms take L's place once L is spent","  // inside stage 1 during the panel: tiles of 8 rows, cores of H and L by turns; with two terms V's low terms lie over half of them once they are spent")
    rep("h16 = uniform(operand_address(base_address + K::O_H + me.group * (K::SLAB / 2)));","h16 = uniform(operand_address(base_address + K::O_H + me.group * K::SLAB));")
    rep("const uint32_t tiles_to = base_address + K::O_H + me.group * (K::SLAB / 2) + (me.lane >> 3) * 512 + me.cg * 128","const uint32_t tiles_to = base_address + K::O_H + me.group * K::SLAB + (me.lane >> 3) * TILE_BYTES + me.cg * 256")
    rep("store_matrices(tiles_to + c * 2048, hi);","store_matrices(tiles_to + c * CHUNK_BYTES, hi);")
    rep("store_matrices(tiles_to + c * 2048 + (K::O_L - K::O_H), lo);","store_matrices(tiles_to + c * CHUNK_BYTES + (K::O_L - K::O_H), lo);")
    rep("const int at = owner % K::G * (K::SLAB / 2) + pair * 1024 + (column >> 3) * 128 + (column & 7) * 16 + me.q * 4;","const int at = owner % K::G * K::SLAB + pair * (2 * TILE_BYTES) + (column >> 3) * 256 + (column & 7) * 16 + me.q * 4;")
    rep("two_rows(K::O_H + 512), l0 = two_rows(K::O_L), l1 = two_rows(K::O_L + 512);","two_rows(K::O_H + TILE_BYTES), l0 = two_rows(K::O_L), l1 = two_rows(K::O_L + TILE_BYTES);")
    i=s.index("          const uint32_t a_at = base_address + K::O_H + (me.lane >> 3 & 1)"); j=s.index("          float4 x4[2] = {")
    globals()['s']=s[:i]+GRAM+s[j:]
    rep("wgmma<false>(acc[c], m_lo[kk], descriptor(h16, c * 2048 + kk * 256, 128, 512));","wgmma<false>(acc[c], m_lo[kk], descriptor(h16, c * CHUNK_BYTES + kk * 512, 256, TILE_BYTES));")
    rep("wgmma<false>(acc[c], m_hi[kk], descriptor(h16, c * 2048 + kk * 256 + (K::O_L - K::O_H), 128, 512));","wgmma<false>(acc[c], m_hi[kk], descriptor(h16, c * CHUNK_BYTES + kk * 512 + (K::O_L - K::O_H), 256, TILE_BYTES));")
    rep("wgmma<false>(acc[c], m_hi[kk], descriptor(h16, c * 2048 + kk * 256, 128, 512));","wgmma<false>(acc[c], m_hi[kk], descriptor(h16, c * CHUNK_BYTES + kk * 512, 256, TILE_BYTES));")
    rep("const uint32_t low_to = base_address + K::O_L +","const uint32_t low_to = base_address + K::O_LOW +")
    rep("base_address + K::O_L + me.group * (K::SLAB / 2) + me.lane * 512, 512);","base_address + K::O_LOW + me.group * (K::SLAB / 2) + me.lane * 512, 512);")
    rep("        if (K::TERMS == 2) named_join(1 + me.group, 128);  // L is spent: V's low terms take its place\n","        if (K::TERMS == 2) __syncthreads();  // H and L are spent: V's low terms take their place\n")
    rep("          float w[16];\n","          const uint32_t low16 = K::TERMS == 1 ? 0 : uniform(operand_address(base_address + K::O_LOW + me.group * (K::SLAB / 2)));\n          float w[16];\n")
    rep("wgmma<true>(w, hi, descriptor(h16, c * 2048 + u * 1024 + (K::O_L - K::O_H), 512, 128));","wgmma<true>(w, hi, descriptor(low16, c * 2048 + u * 1024, 512, 128));")
    rep("#pragma unroll\n          for (int i = 0; i < K::CHUNKS; i++) {\n            const int c = K::TERMS == 1 ? K::CHUNKS","          const uint32_t low16 = K::TERMS == 1 ? 0 : uniform(operand_address(base_address + K::O_LOW + me.group * (K::SLAB / 2)));\n#pragma unroll\n          for (int i = 0; i < K::CHUNKS; i++) {\n            const int c = K::TERMS == 1 ? K::CHUNKS")
    rep("wgmma<false>(acc[c], w_hi[kk], descriptor(h16, c * 2048 + kk * 256 + (K::O_L - K::O_H), 128, 512));","wgmma<false>(acc[c], w_hi[kk], descriptor(low16, c * 2048 + kk * 256, 128, 512));")
    # SS product
    rep("// d += A B, B [k][n] with n = 32 or 64 rows: one chunk","""// The same with A from shared memory, its cores [m][k]
DEVICE void wgmma_shared(float (&d)[16], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},%16,%17,1,1,1,0,0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a), "l"(b));
}
// d += A B, B [k][n] with n = 32 or 64 rows: one chunk""")
    rep("template <class... X>\nDEVICE void wgmma_rows(","""DEVICE void load_matrices(uint32_t row_at, uint32_t (&x)[4]);
DEVICE void wgmma_shared(float (&d)[16], uint64_t a, uint64_t b) {
  const int lane = threadIdx.x & 31;
  uint32_t x[4];
  load_matrices(((uint32_t)(a & 0x3fff) << 4) + ((threadIdx.x >> 5 & 3) * 2 + (lane >> 3 & 1)) * ((uint32_t)(a >> 32 & 0x3fff) << 4) + (lane >> 4) * ((uint32_t)(a >> 16 & 0x3fff) << 4) + (lane & 7) * 16, x);
  wgmma<true>(d, x, b);
}
template <class... X>
DEVICE void wgmma_rows(""")
# D of H'H above L'H: warp w has rows 16w.. of [H; L]: warps 0, 1 H'H, warps 2, 3 L'H

GRAM="""          wgmma_fence();
#pragma unroll
          for (int i = 0; i < 16; i++) x[i] = 0.f;
#pragma unroll
          for (int c = K::CHUNKS - 1; c >= 0; c--) {
            if (c == K::CHUNKS - 1 || c >= live) {
#pragma unroll
              for (int u = 0; u < 2; u++)  // cores of H' and L' by turns: a thread has H'H and L'H of the same entries
                wgmma_shared(x, descriptor(h16, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 128), descriptor(h16, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 256));
            }
          }
          wgmma_commit();
          wgmma_wait();
"""
def wr():
    """the next panel's other half asked for by the thread that stored the slab, when that has left: nobody waits"""
    rep("  static constexpr int COPY = G * 16 * SUB * 4;\n","  static constexpr int COPY = G * 16 * SUB * 4;\n  static constexpr bool OWN_PIECES = TERMS == 1 && CHUNKS % 2 == 0;  // no copy over two warpgroups' slabs\n")
    rep("""        if (K::TERMS == 1 ? last && me.cg == copier<K>(rank) && me.lane == 0 : me.cg == copier<K>(rank)) bulk_store_wait_read();
        __syncthreads();
        if (last && staged && top + PANEL < n) {
          load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, top + PANEL, rank, me.thread);
          if (K::TERMS == 2) load_panel<K>(p, map, base_address, 3 * K::CHUNKS, 4 * K::CHUNKS, top + PANEL, rank, me.thread);
        }
""","""        if (K::TERMS == 2 ? me.cg == copier<K>(rank) : !K::OWN_PIECES && last && me.cg == copier<K>(rank) && me.lane == 0) bulk_store_wait_read();
        __syncthreads();
        if (!K::OWN_PIECES && last && staged && top + PANEL < n) {
          load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, top + PANEL, rank, me.thread);
          if (K::TERMS == 2) load_panel<K>(p, map, base_address, 3 * K::CHUNKS, 4 * K::CHUNKS, top + PANEL, rank, me.thread);
        }
""")

def wr2():  # after wr: where
    rep("""        // V of the panel's own rows and the top of R to H while W is on its way
""","""        if (K::OWN_PIECES && last && me.cg == copier<K>(rank) && me.lane == 0) {
          bulk_store_wait_read();
          if (staged && top + PANEL < n) load_pieces<K>(p, map, base_address, me.group, top + PANEL, rank);
        }
        // V of the panel's own rows and the top of R to H while W is on its way
""")
    rep("""template <class K>
DEVICE void load_t(""","""// The copies over one warpgroup's slab of stage 0, by one thread
template <class K>
DEVICE void load_pieces(const Args& p, const CUtensorMap& map, uint32_t base, int group, int top, uint32_t rank) {
  const uint32_t bar = barrier_at<K>(base, A_BAR);
  barrier_expect_more(bar, K::SLAB);
#pragma unroll 1
  for (int i = group * K::CHUNKS / 2; i < (group + 1) * K::CHUNKS / 2; i++)
    panel_copy(base + i * K::COPY, map, top + SUB * (i & 1), (block_index() / K::C * (2 * K::CHUNKS) + (i >> 1)) * K::UNITS + rank * K::G, bar);
}
template <class K>
DEVICE void load_t(""")

def t1():
    rep("  for (int c = K::CHUNKS - 2; c > -2; c -= 2) {  // 64 rows","  for (int c = 0; c < K::CHUNKS; c += 2) {  // 64 rows") if 0 else None
def f1():
    rep("    if (c >= 0 && first <= c) {\n","    if (c >= 0 && first <= c) {\n      wgmma_fence();\n"); rep("    } else if (c == K::CHUNKS - 2 || first == c + 1) {\n","    } else if (c == K::CHUNKS - 2 || first == c + 1) {\n      wgmma_fence();\n")
def u1():  # all operands at once
    rep("  load(0);\n  load(1);\n","  load(0);\n  load(1);\n  load(2);\n  load(3);\n"); rep("        if (c == K::CHUNKS - 2 && k < 2) load(k + 2);\n","",2)
def r1():  # order of the update's chunks
    rep("const int c = K::TERMS == 1 ? K::CHUNKS - 1 - i : i;","const int c = i;")
def x1():
    rep("        if (me.warp < 3) {  // the panel's registers would","        if (opaque(me.warp) < 3) {  // the panel's registers would")
def y1():
    rep("  const int mt = (me.cg + me.group) & 3, nt = me.group;  // 16","  const int mt = opaque(me.cg + me.group) & 3, nt = me.group;  // 16")
def z1():
    rep("  first = uniform(first_chunk<K>(opaque(j)));","  first = uniform(opaque(first_chunk<K>(j)));")
def w1():
    rep("        if (me.thread < 256) {  // X = HH/2","        if (opaque(me.thread) < 256) {  // X = HH/2")

PAIRS="""        // two chunks a product where both are live: shorter products would wait for each other
        auto by_pairs = [&](auto product) {
#pragma unroll
          for (int c = K::CHUNKS - 2; c > -2; c -= 2) {
            if (c >= 0 && live <= c) product(c, acc[c < 0 ? 0 : c], acc[c + 1]);
            else if (c == K::CHUNKS - 2 || live == c + 1) product(c + 1, acc[c + 1]);
          }
          wgmma_commit();
          wgmma_wait();
        };
"""
def vp():  # after gss
    rep("        // (3) V = P M, rounded to fp16\n",PAIRS+"        // (3) V = P M, rounded to fp16\n")
    i=s.index("""#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], m_lo[kk]"""); j=s.index("        if (K::TERMS == 2) __syncthreads();  // H and L")
    globals()['s']=s[:i]+"""          by_pairs([&](int c, auto&... rows) {
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < 2; kk++) {
              const uint32_t at = c * CHUNK_BYTES + kk * 512;
              wgmma_rows(m_lo[kk], descriptor(h16, at, 256, TILE_BYTES), rows...);
              wgmma_rows(m_hi[kk], descriptor(h16, at + (K::O_L - K::O_H), 256, TILE_BYTES), rows...);
              wgmma_rows(m_hi[kk], descriptor(h16, at, 256, TILE_BYTES), rows...);
            }
          });
        }
"""+s[j:]
def up():
    rep("((wgmma<false>(x, a, b), b += 4096 >> 4), ...);","((wgmma<false>(x, a, b), b += 4 * (b >> 32 & 0x3fff)), ...);  // four tiles further\n".rstrip())
    i=s.index("""#pragma unroll
          for (int i = 0; i < K::CHUNKS; i++) {
            const int c = K::TERMS == 1 ? K::CHUNKS - 1 - i : i;"""); j=s.index("          __syncthreads();\n        }\n        done = stop;")
    globals()['s']=s[:i]+"""          by_pairs([&](int c, auto&... rows) {
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < 2; kk++) {
              const uint32_t at = c * CHUNK_BYTES + kk * 256;
              if (K::TERMS == 2) wgmma_rows(w_hi[kk], descriptor(low16, c * 2048 + kk * 256, 128, 512), rows...);
              wgmma_rows(w_lo[kk], descriptor(v16, at, 128, TILE_BYTES), rows...);
              wgmma_rows(w_hi[kk], descriptor(v16, at, 128, TILE_BYTES), rows...);
            }
          });
"""+s[j:]

def p1():  # pairs with one term only
    rep("            if (c >= 0 && live <= c) product(c, acc[c < 0 ? 0 : c], acc[c + 1]);\n            else if (c == K::CHUNKS - 2 || live == c + 1) product(c + 1, acc[c + 1]);\n","            if (K::TERMS == 1 && c >= 0 && live <= c) {\n              product(c, acc[c < 0 ? 0 : c], acc[c + 1]);\n            } else {\n              if (c >= 0 && live <= c) product(c, acc[c < 0 ? 0 : c]);  // two terms: pairs cost moves of accumulators\n              if (c == K::CHUNKS - 2 || live <= c + 1) product(c + 1, acc[c + 1]);\n            }\n")
def p2():  # order 0, 1, 2, 3 with two terms
    rep("          for (int c = K::CHUNKS - 2; c > -2; c -= 2) {\n            if (K::TERMS == 1 &&","          for (int i = K::CHUNKS - 2; i > -2; i -= 2) {\n            const int c = K::TERMS == 1 ? i : K::CHUNKS - 2 - i - K::CHUNKS % 2;\n            if (K::TERMS == 1 &&")

HV="""    if ((int)rank == blocks % K::C) {  // H under block j: V of this panel's rows is here, while W is on its way
      const int row = blocks * PANEL + me.group * 16 + 4 * me.q;
      if (row < p.n) {
        const int at = (K::TERMS == 2 ? 0 : (turn() & 1) * K::STAGE) + me.group * K::SLAB + blocks / K::C * (2 * TILE_BYTES) + me.cg * 256 + me.lane * 4;
        float* to = h_at<K>(p, j * PANEL + me.g, row);
#pragma unroll
        for (int i = 0; i < 2; i++) {
          auto two_rows = [&](int tile) {
            const unsigned char* from = sm + at + i * 128 + tile * TILE_BYTES;
            float2 x = __half22float2(halves(*reinterpret_cast<const uint32_t*>(from)));
            if constexpr (K::TERMS == 2) {
              const float2 low = __half22float2(halves(*reinterpret_cast<const uint32_t*>(from + K::STAGE)));
              x.x += low.x, x.y += low.y;
            }
            return x;
          };
          const float2 x = two_rows(0), y = two_rows(1);
          store_h(to + ((2 * me.cg + i) ^ 2 * me.group) * 8 * p.ld, x.x, x.y, y.x, y.y);
        }
      }
    }
"""
HR="""  if ((int)cluster_rank() == j % K::C) {  // H: the rows of block j are R now
    me = lane_of(thread_index());
    const int column = me.cg * 8 + me.g;
    const float* unscale = reinterpret_cast<const float*>(sm + K::O_UNSCALE) + column;
    const float undo = unscale[0], undo_other = unscale[SUB];
    float *to = h_at<K>(p, blocks * PANEL + column, j * PANEL + me.group * 16 + 4 * me.q), *other = to + SUB * p.ld;
    const int open = p.n - blocks * PANEL - column;
    piece_of<K>(acc, j / K::C, [&](const float* x) {
      if (open > 0) store_h(to, x[0] * undo, x[1] * undo, x[4] * undo, x[5] * undo);
      if (open > SUB) store_h(other, x[2] * undo_other, x[3] * undo_other, x[6] * undo_other, x[7] * undo_other);
    });
  }
"""
PIECE="""// H, kept by columns, from (row, column) of this CTA's matrix on
template <class K>
DEVICE float* h_at(const Args& p, int column, int row) {
  return p.h + (size_t)((uint32_t)block_index() / K::C) * (uint32_t)(p.n * p.ld) + (uint32_t)(column * p.ld + row);
}
// f(registers of this thread in the warpgroup's 16-row piece `pair`): block j of 64 rows is piece j / C of the CTA j % C
template <class K, class F>
DEVICE void piece_of(Acc<K>& acc, int pair, F f) {
#pragma unroll
  for (int i = 0; i < 2 * K::CHUNKS; i++)
    if (pair == i) f(&acc[i >> 1][(i & 1) * 8]);
}
"""
def hs():
    rep("// d += A B: A 16 x 16, B 16 x 8\n","""DEVICE void store_h(float* to, float a, float b, float c, float d) {
  asm volatile("st.global.v4.f32 [%0],{%1,%2,%3,%4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

// d += A B: A 16 x 16, B 16 x 8
""")
    rep("// C = (I - V_j T_j' V_j') C. The parts of",PIECE+"// C = (I - V_j T_j' V_j') C. The parts of")
    rep("    wait_for<K>(base, T_BAR, turn() & 1);\n",HV+"    wait_for<K>(base, T_BAR, turn() & 1);\n")
    rep("""      if (me.cg == copier<K>(rank) && me.lane == 0) load_half_slab<K>(p, base, j + 1, me.group, half);
    }
  });
}""","""      if (me.cg == copier<K>(rank) && me.lane == 0) load_half_slab<K>(p, base, j + 1, me.group, half);
    }
  });
"""+HR+"}")
    i=s.index("        if (local >= done && first + local < n) {  // R of the finished rows"); j=s.index("        if (me.warp < 3) {  // the panel's registers would")
    globals()['s']=s[:i]+"""        if ((int)rank == k % K::C && local >= done && first + local < n) {  // R of the panel's finished rows (rows from lim on that come along are stored again below)
          const int row = top + me.group * 16 + 4 * me.q;
          if (row < min(lim, n)) {
            const float undo = unscale[SUB * s + local];
            float* to = h_at<K>(p, first + local, row);
            piece_of<K>(acc, k / K::C, [&](const float* x) { store_h(to, x[0] * undo, x[1] * undo, x[4] * undo, x[5] * undo); });
          }
        }
"""+s[j:]
    rep("        auto h_column = [&]() { return p.h + ((size_t)(block_index() / K::C) * n + first + local) * p.ld + unit * 16 + 4 * me.q; };\n","")
    rep("z.top[local * LD_TOP + row - first];\n          }\n        }\n        wait_for","z.top[local * LD_TOP + i - first];\n          }\n        }\n        wait_for")
    i=s.index("        if (in && first + local < n) {\n"); j=s.index("          // the rest of the four rows in which lim lies")
    globals()['s']=s[:i]+"""        if ((int)rank == k % K::C && in && first + local < n) {
          const int row = top + me.group * 16 + 4 * me.q;
          float* to = h_at<K>(p, first + local, row);
          if (row >= lim && row < n) {
            if (row < first + SUB) {
              const Quad x = load4(z.top + local * LD_TOP + row - first);
              store_h(to, x.e[0], x.e[1], x.e[2], x.e[3]);
            } else {
              piece_of<K>(acc, k / K::C, [&](const float* x) { store_h(to, x[0], x[1], x[4], x[5]); });
            }
          }
"""+s[j:]
    rep("        // V and the top of R to H while W is on its way","        // V of the panel's own rows and the top of R to H while W is on its way")
    rep("          if ((done & 3) && lim / 16 % K::UNITS == unit && me.q == (lim >> 2 & 3)) {","          if ((done & 3) && row == (lim & ~3)) {")
    rep("            for (int row = lim; row <= (lim | 3) && row < n; row++)\n              p.h[((size_t)(block_index() / K::C) * n + first + local) * p.ld + row] = z.top","            for (int i = lim; i <= (lim | 3) && i < n; i++) to[i - row] = z.top")

def k1(): rep("const int open = p.n - blocks * PANEL - column;","const int open = p.n - opaque(blocks) * PANEL - column;")
def k2(): rep("if ((int)cluster_rank() == j % K::C) {  // H: the","if ((int)cluster_rank() == opaque(j) % K::C) {  // H: the")
def k3(): rep("  if ((int)cluster_rank() == j % K::C) {  // H: the","  if (uniform(cluster_rank()) == opaque(j) % K::C) {  // H: the")
def k4(): rep("    if ((int)rank == blocks % K::C) {  // H under","    if ((int)cluster_rank() == opaque(blocks) % K::C) {  // H under")
def k5(): rep("    if ((int)rank == blocks % K::C) {  // H under block j: V of this panel's rows is here, while W is on its way\n","    if ((int)rank == blocks % K::C) {  // H under block j: V of this panel's rows is here, while W is on its way\n      locate();\n")
def k6(): rep("        if ((int)rank == k % K::C && in && first","        if ((int)cluster_rank() == k % K::C && in && first")
def k7(): rep("      if (row < p.n) {\n        const int at","      if (opaque(row) < p.n) {\n        const int at")

def rw():
    """R of the block before in the window; of the last block in the panel"""
    i=s.index("  if ((int)cluster_rank() == j % K::C) {  // H: the"); j=s.index("\n}\n",i)
    t=s[i:j+1]; globals()['s']=s[:i]+s[j+1:]
    t=t.replace("  if ((int)cluster_rank() == j % K::C) {  // H: the rows of block j are R now","  if (j > 0 && (int)rank == (j - 1) % K::C) {  // H: the rows of the block before are R; the panel stores the last")
    t=t.replace("    me = lane_of(thread_index());\n","").replace("j * PANEL + me.group","(j - 1) * PANEL + me.group").replace("piece_of<K>(acc, j / K::C","piece_of<K>(acc, (j - 1) / K::C")
    t="".join("  "+l+"\n" for l in t.rstrip("\n").split("\n"))
    rep("    wait_for<K>(base, T_BAR, turn() & 1);\n",t+"    wait_for<K>(base, T_BAR, turn() & 1);\n")
    i=s.index("        if ((int)rank == k % K::C && local >= done"); j=s.index("        if (me.warp < 3) {  // the panel's registers would")
    globals()['s']=s[:i]+"""        // R of the block before and of the panel's finished rows (rows from lim on that come along are stored again below)
        if (const int block = (int)rank == k % K::C ? k : k - 1; block >= 0 && (int)rank == block % K::C && local >= done && first + local < n) {
          const int row = block * PANEL + me.group * 16 + 4 * me.q;
          if (row < min(lim, n)) {
            const float undo = unscale[SUB * s + local];
            float* to = h_at<K>(p, first + local, row);
            piece_of<K>(acc, block / K::C, [&](const float* x) { store_h(to, x[0] * undo, x[1] * undo, x[4] * undo, x[5] * undo); });
          }
        }
"""+s[j:]
def lu():
    rep("  me.warp = thread >> 5;\n","  me.warp = uniform(thread >> 5);\n")
def ve():
    """V after the copies, beside W'"""
    i=s.index("    if ((int)rank == blocks % K::C) {  // H under"); j=s.index("    wait_for<K>(base, T_BAR, turn() & 1);",i)
    if "j > 0 && (int)rank" in s[i:j]: j=s.index("    if (j > 0 && (int)rank",i)
    t=s[i:j]; globals()['s']=s[:i]+s[j:]
    t="".join((l if l[0]=="#" else l[2:])+"\n" for l in t.rstrip("\n").split("\n"))
    rep("  __syncthreads();\n  if (copies_t<K>(me, rank) && j + 1 < blocks) {",t+"  __syncthreads();\n  if (copies_t<K>(me, rank) && j + 1 < blocks) {")

WRITER="""// Writers: CTAs that the matrices leave idle. They put V of finished blocks, from the workspace, to its place in H, but for the rows of
// the block's own panel.
template <class K>
DEVICE void write_v(const Args& p) {
  const int writer = block_index() - p.workers, panels = (p.n + PANEL - 1) / PANEL, matrices = p.workers / K::C;
  const Lane me = lane_of(thread_index());
#pragma unroll 1
  for (int j = 0; j + 1 < panels; j++) {
#pragma unroll 1
    for (int m = writer; m < matrices; m += p.writers) {
      if (me.thread == 0)
        for (int spin = 0; spin < SPINS && load_acquire(p.ready + m) < (j + 1) * K::UNITS; spin++) {}
      __syncthreads();
#pragma unroll 1
      for (int k = j + 1 + me.group; k < panels; k += K::G) {  // a warpgroup a block of 64 rows
        const unsigned char* v = p.v + (size_t)(uint32_t)((m * panels + j) * K::C + k % K::C) * K::V_BYTES + k / K::C * (2 * TILE_BYTES) + me.lane * 4;
        {  // all loads, then all stores: a load takes 700 cycles
          uint32_t x[8][2];
#pragma unroll
          for (int u = 0; u < 8; u++) {
            const int piece = u >> 1;
            const unsigned char* from = v + piece * K::SLAB + ((2 * me.cg + (u & 1)) ^ 2 * piece) * 128;
            x[u][0] = load_shared_by_gpu(from);
            x[u][1] = load_shared_by_gpu(from + TILE_BYTES);
          }
#pragma unroll
          for (int u = 0; u < 8; u++) {
            const int row = k * PANEL + (u >> 1) * 16 + 4 * me.q, column = j * PANEL + (2 * me.cg + (u & 1)) * 8 + me.g;
            const float2 a = __half22float2(halves(x[u][0])), b = __half22float2(halves(x[u][1]));
            if (row < p.n) store_h(p.h + (size_t)m * (uint32_t)(p.n * p.ld) + (uint32_t)(column * p.ld + row), a.x, a.y, b.x, b.y);
          }
        }
      }
    }
  }
}
"""

def wv():
    rep("// d += A B: A 16 x 16, B 16 x 8\n","""DEVICE void store_h(float* to, float a, float b, float c, float d) {
  asm volatile("st.global.v4.f32 [%0],{%1,%2,%3,%4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
// What one CTA counts and another waits for
DEVICE void count_release(int* p) { asm volatile("red.release.gpu.global.add.s32 [%0],1;" ::"l"(p) : "memory"); }
DEVICE int load_acquire(const int* p) {
  int x;
  asm volatile("ld.acquire.gpu.global.s32 %0,[%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
}
DEVICE uint32_t load_shared_by_gpu(const void* p) {
  uint32_t x;
  asm volatile("ld.relaxed.gpu.global.u32 %0,[%1];" : "=r"(x) : "l"(p) : "memory");
  return x;
}

// d += A B: A 16 x 16, B 16 x 8
""")
    rep("  int zero;           // 0, but the compiler cannot know it\n","  int zero;           // 0, but the compiler cannot know it\n  int workers, writers;  // CTAs that factorise, and CTAs that put V into H (0: the workers do)\n  int* ready;            // [matrix]: how many warpgroups have put a block's V into the workspace\n")
    rep("// ------------------------------------------------------------------ the kernel\n","// ------------------------------------------------------------------ the kernel\n\n#define SPINS (1 << 22)\n"+WRITER)
    rep("  float* tau = reinterpret_cast<float*>(sm + K::O_TAU);\n","  if (K::TERMS == 1 && block_index() >= p.workers) {\n    write_v<K>(p);\n    return;\n  }\n  float* tau = reinterpret_cast<float*>(sm + K::O_TAU);\n")
    rep("          bulk_store_wait();\n          load_slab<K>(p, base_address, k, 0, me.group);\n","          bulk_store_wait();\n          if (p.writers) count_release(p.ready + block_index() / K::C);\n          load_slab<K>(p, base_address, k, 0, me.group);\n")
    i=s.index("        if (in && first + local < n) {\n"); j=s.index("          // the rest of the four rows in which lim lies")
    t=s[i:j]
    t=t.replace("          float* h_to = h_column();\n","          float* h_to = h_column();\n          const int end = K::TERMS == 1 && p.writers ? min(n, top + PANEL) : n;\n")
    t=t.replace("            if (c >= live) {\n","            if (c == live || (c > live && end == n)) {\n").replace("row0 + row < n)","row0 + row < end)")
    globals()['s']=s[:i]+t+s[j:]
    rep("  config.gridDim = dim3(batch * K::C);\n","""  args.workers = batch * K::C;
  static const int sms = [] {
    int device = 0, count = 0;
    return cudaGetDevice(&device) || cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) ? 0 : count;
  }();
  if (K::TERMS == 1 && args.workers + K::C <= sms) {
    args.writers = (sms - args.workers) / K::C * K::C;
    args.ready = reinterpret_cast<int*>(args.v + (size_t)args.workers * ((args.n + PANEL - 1) / PANEL) * K::V_BYTES);
    if (cudaMemsetAsync(args.ready, 0, sizeof(int) * batch)) return -1;
  }
  config.gridDim = dim3(args.workers + args.writers);
""")
    rep("decltype(k)::C * decltype(k)::V_BYTES; });","decltype(k)::C * decltype(k)::V_BYTES + 4 * (long)batch; });  // and Args::ready")

def tt():
    """the products of the panel with two terms in the order for which ptxas moves nothing; after gss"""
    rep("b += 4096 >> 4), ...);","b += 4 * (b >> 32 & 0x3fff)), ...);  // four tiles further") if 0 else None
    ORD="        const auto chunk_at = [](int i) { return K::TERMS == 1 || K::CHUNKS == 3 ? i : i ^ 2; };  // of two terms: the order for which ptxas moves no accumulators\n"
    a="""#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], m_lo[kk]"""
    rep(a,a.replace("int c = 0; c < K::CHUNKS; c++) {","int i = 0; i < K::CHUNKS; i++) {\n            const int c = K::TERMS == 1 || K::CHUNKS == 3 ? i : i ^ 2;"))
    rep("const int c = K::TERMS == 1 ? K::CHUNKS - 1 - i : i;","const int c = K::TERMS == 1 ? K::CHUNKS - 1 - i : K::CHUNKS == 3 ? i : i ^ 2;")

def tc():
    """with two terms one commit for all chunks of a product of the panel"""
    rep("""                wgmma<false>(acc[c], m_hi[kk], descriptor(h16, c * CHUNK_BYTES + kk * 512, 256, TILE_BYTES));
              }
              wgmma_commit();
            }
          }
          wgmma_wait();
""","""                wgmma<false>(acc[c], m_hi[kk], descriptor(h16, c * CHUNK_BYTES + kk * 512, 256, TILE_BYTES));
              }
              if (K::TERMS == 1) wgmma_commit();  // with two terms ptxas moves accumulators for it
            }
          }
          if (K::TERMS == 2) wgmma_commit();
          wgmma_wait();
""")
    rep("""                wgmma<false>(acc[c], w_hi[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
              }
              wgmma_commit();
            }
          }
          wgmma_wait();
""","""                wgmma<false>(acc[c], w_hi[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
              }
              if (K::TERMS == 1) wgmma_commit();
            }
          }
          if (K::TERMS == 2) wgmma_commit();
          wgmma_wait();
""")

def tp():
    """two terms: the products of the panel chunk by chunk through one function (ptxas moves accumulators otherwise)"""
    i=s.index("""#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], m_lo[kk]"""); j=s.index("        if (K::TERMS == 2) __syncthreads();  // H and L")
    one_v=s[i:j]; assert one_v.endswith("        }\n")
    one_v=one_v[:-len("        }\n")]
    vp(); 
    i=s.index("          by_pairs([&](int c, auto&... rows) {\n            wgmma_fence();\n#pragma unroll\n            for (int kk = 0; kk < 2; kk++) {\n              const uint32_t at = c * CHUNK_BYTES + kk * 512;"); j=s.index("          });\n",i)+len("          });\n")
    t=s[i:j]
    globals()['s']=s[:i]+"          if constexpr (K::TERMS == 1) {\n"+one_v+"          } else {\n"+t+"          }\n"+s[j:]
    i=s.index("""#pragma unroll
          for (int i = 0; i < K::CHUNKS; i++) {
            const int c = K::TERMS == 1 ? K::CHUNKS - 1 - i : i;"""); j=s.index("          __syncthreads();\n        }\n        done = stop;")
    one_u=s[i:j].replace("const int c = K::TERMS == 1 ? K::CHUNKS - 1 - i : i;","const int c = K::CHUNKS - 1 - i;").replace("                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi[kk], descriptor(low16, c * 2048 + kk * 256, 128, 512));\n","")
    up()
    i=s.index("          by_pairs([&](int c, auto&... rows) {\n            wgmma_fence();\n#pragma unroll\n            for (int kk = 0; kk < 2; kk++) {\n              const uint32_t at = c * CHUNK_BYTES + kk * 256;"); j=s.index("          });\n",i)+len("          });\n")
    t=s[i:j].replace("if (K::TERMS == 2) ","")
    globals()['s']=s[:i]+"          if constexpr (K::TERMS == 1) {\n"+one_u+"          } else {\n"+t+"          }\n"+s[j:]
    i=s.index("        // two chunks a product where both"); j=s.index("        // (3) V = P M, rounded to fp16\n")
    globals()['s']=s[:i]+"""        auto by_chunks = [&](auto product) {  // the order for which ptxas moves no accumulators
#pragma unroll
          for (int c = K::CHUNKS - 2; c > -2; c -= 2) {
            if (c >= 0 && live <= c) product(c, acc[c < 0 ? 0 : c]);
            if (c == K::CHUNKS - 2 || live <= c + 1) product(c + 1, acc[c + 1]);
          }
          wgmma_commit();
          wgmma_wait();
        };
"""+s[j:].replace("by_pairs","by_chunks").replace("auto&... rows","auto& rows").replace("rows...","rows")

HAT="""// H, kept by columns, from (row, column) of this CTA's matrix on
template <class K>
DEVICE float* h_at(const Args& p, int column, int row) {
  return p.h + (size_t)((uint32_t)block_index() / K::C) * (uint32_t)(p.n * p.ld) + (uint32_t)(column * p.ld + row);
}
"""
def ha():
    rep("// C = (I - V_j T_j' V_j') C. The parts of",HAT+"// C = (I - V_j T_j' V_j') C. The parts of")
    rep("        auto h_column = [&]() { return p.h + ((size_t)(block_index() / K::C) * n + first + local) * p.ld + unit * 16 + 4 * me.q; };\n","")
    rep("float* h_to = h_column();","float* h_to = h_at<K>(p, first + local, row0);",2)
def hb():  # two terms: as hs, R and V of H in the blocks
    pass

def cap():
    rep("    args.writers = (sms - args.workers) / K::C * K::C;\n","    args.writers = std::min({sms - args.workers, sms / 4, batch}) / K::C * K::C;  // few, so that they never keep workers out\n")
    rep("  if (K::TERMS == 1 && args.workers + K::C <= sms) {","  if (K::TERMS == 1 && args.workers + std::max(batch / 6, K::C) <= sms) {  // a writer keeps up with six matrices")
    rep("#include <type_traits>\n","#include <algorithm>\n#include <type_traits>\n")
    rep("        for (int spin = 0; spin < SPINS && load_acquire","        while (load_acquire"); rep(" < (j + 1) * K::UNITS; spin++) {}"," < (j + 1) * K::UNITS) {}"); rep("#define SPINS (1 << 22)\n","")

def hc():
    rep("        auto h_column = [&]() { return p.h + ((size_t)(block_index() / K::C) * n + first + local) * p.ld + unit * 16 + 4 * me.q; };\n","""        auto h_column = [&]() {
          const int row = unit * 16 + 4 * me.q;
          if constexpr (K::CHUNKS == 3)  // the same address; each form is the one with which ptxas does not spill
            return p.h + (size_t)((uint32_t)block_index() / K::C) * (uint32_t)(n * p.ld) + (uint32_t)((first + local) * p.ld + row);
          else
            return p.h + ((size_t)(block_index() / K::C) * n + first + local) * p.ld + row;
        };
""")
if __name__=='__main__':
    for f in [x for x in sys.argv[2].split(',') if x]: globals()[f]()
    open(sys.argv[1]+'.py','w').write(s)
