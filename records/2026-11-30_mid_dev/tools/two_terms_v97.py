"""two_terms.py IN OUT: TERMS (1 or 2 fp16 terms of V, C and W') into an n1024 source of v87's kind. Every step names the text that it changes and fails if that is not there once."""
import sys
src = open(sys.argv[1]).read()
OPT = sys.argv[3:]
def sub(old, new, count=1):
    global src
    assert src.count(old) == count, (src.count(old), old)
    src = src.replace(old, new)

# ---- sizes
sub("""constexpr float CANCELLED = 1e-5f;    // pivot / column norm^2 under which the Gram matrix is not trusted
constexpr float AMPLIFIED = 100.f;    // largest sum_k |p_k| |M_kj|: R's error grows with its square
""", "")
sub("template <int C_, int CHUNKS_>\nstruct Config {\n", """template <int C_, int CHUNKS_, int TERMS_>
struct Config {
  static constexpr int TERMS = TERMS_;          // fp16 terms of V, C and W'
  // The guard: pivot / column norm^2 under which the Gram matrix is not trusted, and the largest sum_k |p_k| |M_kj|. With
  // two terms the rounding of the Gram matrix (2^-22, magnified by up to AMPLIFIED^2 in R) must not be what is left.
  static constexpr float CANCELLED = TERMS == 1 ? 1e-5f : 1e-4f, AMPLIFIED = TERMS == 1 ? 100.f : 15.f;
""")
sub("  static constexpr int STAGE = G * SLAB;\n", "  static constexpr int STAGE = G * SLAB;\n  static constexpr int V_BYTES = TERMS * STAGE;  // of a block, a CTA's share: high terms, low terms\n")
sub("""  static constexpr int O_TAU = O_TOP + SUB * LD_TOP * 4;
""", """  static constexpr int O_T1 = O_TOP + SUB * LD_TOP * 4;  // V'V of the first sub-panel
  static constexpr int O_WLOW = O_TOP;                   // low terms of -W', while neither of the two is in use
  static_assert(O_WLOW == O_WOP + 8192);
  static constexpr int O_TAU = O_T1 + SUB * LD_SHIFT * 4;
""")
sub("""  static constexpr int O_T1 = O_MISC + 384;              // V'V of the first sub-panel
  static constexpr int O_T = O_T1 + SUB * LD_SHIFT * 4;  // T of the block that is being applied
""", """  static constexpr int O_T = O_MISC + 384;               // T of the block that is being applied
""")
sub("  // inside stage 1 during the panel: H and L tiles\n", "  // inside stage 1 during the panel: H and L tiles; with two terms V's low terms take L's place once L is spent\n")

# ---- larfb
sub("""// C -= V W'; wop: -W' of this warp's 16 columns as cores of 8 columns x 8 reflectors
""", """// The same with both terms: V's high terms lie in stage 0, its low terms in stage 1; `arrived` waits for two chunks
template <class K, class F>
DEVICE void multiply_two_terms(float (&w)[32], Acc<K>& acc, uint32_t at16, int first, F arrived) {
#pragma unroll
  for (int c = 0; c < K::CHUNKS; c++) {
    if (c % 2 == 0) arrived(c / 2);
    if (c + 1 == K::CHUNKS || c >= first) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint32_t a[4], low[4];  // one after the other in the same registers: eight would spill
        auto entry = [&](int z) { return &acc[c][h * 8 + (z >> 1) * 4 + (z & 1) * 2]; };
        const uint32_t at = c * CHUNK_BYTES + h * 2 * TILE_BYTES;
#pragma unroll
        for (int z = 0; z < 4; z++) split_fp16(entry(z)[0], entry(z)[1], a[z], low[z]);
        wgmma_fence();
        wgmma<true>(w, a, descriptor(at16, at + K::STAGE, TILE_BYTES, 128));
        wgmma<true>(w, a, descriptor(at16, at, TILE_BYTES, 128));
        wgmma_commit();
        wgmma_wait();
        wgmma_fence();
        wgmma<true>(w, low, descriptor(at16, at, TILE_BYTES, 128));
        wgmma_commit();
        wgmma_wait();
      }
    }
  }
}
// C -= V W'; wop: -W' of this warp's 16 columns as cores of 8 columns x 8 reflectors
""")
sub("""struct Args {
  const float* a;
""", """// The same with both terms; `spent`: these two chunks of V have been used
template <class K, class F>
DEVICE void subtract_two_terms(Acc<K>& acc, uint32_t wop, uint32_t at16, int first, int group, F spent) {
  uint32_t hi[4][4], lo[4][4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    load_matrices(wop + (k ^ group) * 512, hi[k]);
    load_matrices(wop + (k ^ group) * 512 + K::O_WLOW - K::O_WOP, lo[k]);
  }
  auto b = [&](int c, int k) { return descriptor(at16, c * CHUNK_BYTES + k * 256, 128, TILE_BYTES); };
#pragma unroll
  for (int c = 0; c < K::CHUNKS; c += 2) {
    auto product = [&](auto&... chunks) {
      const int at = sizeof...(chunks) == 2 || c + 1 == K::CHUNKS ? c : c + 1;
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 4; k++) {
        wgmma_rows(lo[k], b(at, k), chunks...);
        wgmma_rows(hi[k], b(at, k) + (K::STAGE >> 4), chunks...);
        wgmma_rows(hi[k], b(at, k), chunks...);
      }
      wgmma_commit();
      wgmma_wait();
    };
    const int d = c + 1 < K::CHUNKS ? c + 1 : c;
    if (first <= c && d > c) product(acc[c], acc[d]);
    else if (d + 1 == K::CHUNKS || first <= d) product(acc[d]);  // the last chunk is always live
    spent(c / 2);
  }
}

struct Args {
  const float* a;
""")
sub("  unsigned char* v;  // [matrix][block][rank] STAGE bytes\n", "  unsigned char* v;  // [matrix][block][rank] V_BYTES\n")
sub("FULL_BARS: V of a turn, by warpgroup and stage.\n", "FULL_BARS: V of a turn, by warpgroup and stage (two terms: and half of the chunks).\n")
sub("block % K::C) * K::STAGE;", "block % K::C) * K::V_BYTES;")
sub("""// Half of the next panel into a stage: copies of 32 columns of this CTA's rows in one 16-row place of all
// warpgroups, from a warp each.""", """// Copies i, i + 1 .. end - 1 of the 4 K::CHUNKS that bring the next panel over both stages: 32 columns of this CTA's rows in one
// 16-row place of all warpgroups, from a warp each.""")
sub("""DEVICE void load_panel(const Args& p, const CUtensorMap& map, uint32_t base, int stage, int top, uint32_t rank, int thread) {
""", """DEVICE void load_panel(const Args& p, const CUtensorMap& map, uint32_t base, int i, int end, int top, uint32_t rank, int thread) {
""")
sub("""  if (thread % 32 == 0 && thread < 64 * K::CHUNKS) {
    const int half = thread >> 5 & 1, pair = K::CHUNKS * stage + (thread >> 6);
""", """  if (thread % 32 == 0 && thread < 32 * (end - i)) {
    const int half = i + (thread >> 5) & 1, pair = i + (thread >> 5) >> 1;
""")
sub("    load_panel<K>(p, map, base_address, 1, 0, rank, me.thread);\n    load_panel<K>(p, map, base_address, 0, 0, rank, me.thread);\n",
    "    load_panel<K>(p, map, base_address, 2 * K::CHUNKS, 4 * K::CHUNKS, 0, rank, me.thread);\n    load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, 0, rank, me.thread);\n")
sub("""// C = (I - V_j T_j' V_j') C. The parts""", """// Two terms: both of two chunks of a warpgroup's rows; a turn without live rows among them completes its barrier at once
template <class K>
DEVICE void load_half_slab(const Args& p, uint32_t base, int j, int group, int half) {
  const int first = max(first_chunk<K>(j), 2 * half), bytes = max(min(2 * half + 2, K::CHUNKS) - first, 0) * CHUNK_BYTES, at = group * K::SLAB + first * CHUNK_BYTES;
  const uint32_t bar = barrier_at<K>(base, FULL_BARS + 2 * group + half);
  barrier_expect(bar, 2 * bytes);
  if (bytes) {
    const unsigned char* from = v_block<K>(p, block_index(), j) + at;
    bulk_load(base + at, from, bytes, bar);
    bulk_load(base + K::STAGE + at, from + K::STAGE, bytes, bar);
  }
}

// C = (I - V_j T_j' V_j') C. The parts""")
sub("  auto turn = [&]() { return turn_of(opaque(blocks), j); };\n", """  const uint32_t parity = K::TERMS == 2 ? uniform(turn_of(blocks, j) & 1) : 0;  // one vector register less than `turn`
  auto turn = [&]() { return K::TERMS == 2 ? (int)parity : turn_of(opaque(blocks), j); };
""")
sub("""    at16 = v_at(t & 1);
    first = uniform(first_chunk<K>(j));
    wait_for<K>(base, FULL_BARS + 2 * me.group + (t & 1), t >> 1 & 1);
""", """    at16 = v_at(K::TERMS == 2 ? 0 : t & 1);
    first = uniform(first_chunk<K>(j));
    if (K::TERMS == 1) wait_for<K>(base, FULL_BARS + 2 * me.group + (t & 1), t >> 1 & 1);
""")
sub("    multiply_by_v<K>(w, acc, at16, first);\n", """    if constexpr (K::TERMS == 1) multiply_by_v<K>(w, acc, at16, first);
    else multiply_two_terms<K>(w, acc, at16, first, [&](int half) {
      wait_for<K>(opaque(shared_address(sm)), FULL_BARS + 2 * (thread_index() >> 7) + half, turn() & 1);
    });
""")
sub("    const bool more = j > 0 && j + 1 < blocks;\n", "    const bool more = K::TERMS == 1 && j > 0 && j + 1 < blocks;  // two terms: both stages hold this block\n")
sub("barrier_expect(barrier_at<K>(base, WOP_BAR), (4 - K::OWNED) * 2048);", "barrier_expect(barrier_at<K>(base, WOP_BAR), (4 - K::OWNED) * 2048 * K::TERMS);")
sub("""    store_transposed(at, pack(d_main[0], d_main[1]), pack(d_main[2], d_main[3]));
    __syncwarp();
    if (me.lane < 16) {
      const float4 x = load_float4(at);
#pragma unroll
      for (int r = 1; r < K::C; r++) {
        const uint32_t peer = (rank + r) % K::C;
        send(map_address(at, peer),""", """    uint32_t from = at;
    if constexpr (K::TERMS == 1) {
      store_transposed(at, pack(d_main[0], d_main[1]), pack(d_main[2], d_main[3]));
    } else {
      uint32_t hi[2], lo[2];
      split_fp16(d_main[0], d_main[1], hi[0], lo[0]);
      split_fp16(d_main[2], d_main[3], hi[1], lo[1]);
      store_transposed(at, hi[0], hi[1]);
      store_transposed(at + K::O_WLOW - K::O_WOP, lo[0], lo[1]);
      if (me.lane >= 16) from = at + K::O_WLOW - K::O_WOP;  // the other half of the lanes sends these
    }
    __syncwarp();
    if (K::TERMS == 2 || me.lane < 16) {
      const float4 x = load_float4(from);
#pragma unroll
      for (int r = 1; r < K::C; r++) {
        const uint32_t peer = (rank + r) % K::C;
        send(map_address(from, peer),""")
sub("  at16 = v_at(turn() & 1);\n", "  at16 = v_at(K::TERMS == 2 ? 0 : turn() & 1);\n")
sub("""  subtract_v_times_w<K>(acc, base + K::O_WOP + me.cg * 2048 + me.lane * 16, at16, first, me.group);
""", """  const uint32_t wop = base + K::O_WOP + me.cg * 2048 + me.lane * 16;
  if constexpr (K::TERMS == 1) subtract_v_times_w<K>(acc, wop, at16, first, me.group);
  else subtract_two_terms<K>(acc, wop, at16, first, me.group, [&](int half) {
    if (j + 1 < blocks) {
      named_join(5 + me.group, 128);  // all four warps have used them
      if (me.cg == copier<K>(rank) && me.lane == 0) load_half_slab<K>(p, base, j + 1, me.group, half);
    }
  });
""")

# ---- recurrence and guard
sub("DEVICE void warp_cholesky(const Scratch& z, int lane, int done) {", "DEVICE void warp_cholesky(const Scratch& z, int lane, int done, float cancelled) {")
sub("fmaxf(CANCELLED * g0, ZERO_PIVOT)", "fmaxf(cancelled * g0, ZERO_PIVOT)")
sub("warp_cholesky(z, me.lane, done);", "warp_cholesky(z, me.lane, done, K::CANCELLED);")
sub("if (!(amplified <= AMPLIFIED))", "if (!(amplified <= K::AMPLIFIED))")
sub("""      const float below = __half2float(__float2half_rn(l[u]));
""", """      float below = __half2float(__float2half_rn(l[u]));
      if (K::TERMS == 2) below += __half2float(__float2half_rn(l[u] - below));
""")

# ---- the kernel
sub("""      if (k > 0 && me.cg == copier<K>(rank) && me.lane == 0) {  // the stages have been read
        bulk_store_wait();
        load_slab<K>(p, base_address, k, 0, me.group);
        if (k > 1) load_slab<K>(p, base_address, k, 1, me.group);
""", """      if (K::TERMS == 2 && k > 0 && me.cg == copier<K>(rank)) {  // every lane has stored low terms
        bulk_store_wait();
        __syncwarp();
      }
      if (k > 0 && me.cg == copier<K>(rank) && me.lane == 0) {  // the stages have been read
        if constexpr (K::TERMS == 1) {
          bulk_store_wait();
          load_slab<K>(p, base_address, k, 0, me.group);
          if (k > 1) load_slab<K>(p, base_address, k, 1, me.group);
        } else {
          load_half_slab<K>(p, base_address, 0, me.group, 0);
          load_half_slab<K>(p, base_address, 0, me.group, 1);
        }
""")
sub("""        load_t<K>(p, base_address, 0);
      }
      cluster_arrive();
""", """        load_t<K>(p, base_address, 0);
      }
      if (K::TERMS == 1) cluster_arrive();
""")
sub("""    __syncthreads();
    // ---- the panel
""", """    if (K::TERMS == 2) cluster_arrive();  // W's low terms lie where peers send the top: not before they have been read
    __syncthreads();
    // ---- the panel
""")
sub("""                  if (local < done) x = c >= live ? (e ? v.y : v.x) : 0.f;
""", """                  if (local < done) {
                    x = c >= live ? (e ? v.y : v.x) : 0.f;
                    if (K::TERMS == 2 && row + e > first + local && row + e < n && first + local < n) x = h_to[chunk_row<K>(c, tile, 0) + e];  // both terms
                  }
""")
sub("""        {
          const float by = in ?""", """        if (K::TERMS == 2) named_join(1 + me.group, 128);  // L is spent: V's low terms take its place
        {
          const float by = in ?""")
sub("              uint32_t to_tiles[4];\n", "              uint32_t to_tiles[4], low_tiles[4];\n")
sub("""                const float2 f0 = __half22float2(v0), f1 = __half22float2(v1);
                if (in) {
""", """                float2 f0 = __half22float2(v0), f1 = __half22float2(v1);
                if constexpr (K::TERMS == 2) {
                  const __half2 l0 = __floats2half2_rn(v.x - f0.x, v.y - f0.y), l1 = __floats2half2_rn(v.z - f1.x, v.w - f1.y);
                  const float2 g0 = __half22float2(l0), g1 = __half22float2(l1);
                  f0 = make_float2(f0.x + g0.x, f0.y + g0.y);
                  f1 = make_float2(f1.x + g1.x, f1.y + g1.y);
                  low_tiles[tile] = local < stop ? bits(l0) : 0u;
                  low_tiles[tile + 1] = local < stop ? bits(l1) : 0u;
                }
                if (in) {
""")
sub("""              store_matrices(v_to + c * CHUNK_BYTES, to_tiles);
""", """              store_matrices(v_to + c * CHUNK_BYTES, to_tiles);
              if constexpr (K::TERMS == 2) store_matrices(low_to + c * 2048, low_tiles);
""")
sub("""          const float* v_from = z.r1 + local * LD_TOP + row0 - first;
""", """          const uint32_t low_to = base_address + K::O_L + me.group * (K::SLAB / 2) + (me.lane >> 3) * 512 + (me.cg ^ 2 * (me.group & 1)) * 128 + (me.lane & 7) * 16;
          const float* v_from = z.r1 + local * LD_TOP + row0 - first;
""")
sub("""          if (staged && top + PANEL < n) load_panel<K>(p, map, base_address, 1, top + PANEL, rank, me.thread);
        }
        cluster_arrive();""", """          if (staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, rank, me.thread);
        }
        if (K::TERMS == 2 && stop == SUB && me.cg == copier<K>(rank) && me.lane >= 4 * live && me.lane < 4 * K::CHUNKS)  // low terms, a tile a lane
          bulk_store(v_block<K>(p, block_index(), k) + K::STAGE + me.group * K::SLAB + me.lane * TILE_BYTES + (s ^ me.group >> 1) * 512, base_address + K::O_L + me.group * (K::SLAB / 2) + me.lane * 512, 512);
        cluster_arrive();""")
old = """              uint32_t a[2][4];
#pragma unroll
              for (int y = 0; y < 8; y++) a[y >> 2][(y & 1) + (y >> 1 & 1) * 2] = pack(acc[c][2 * y], acc[c][2 * y + 1]);
              wgmma_fence();
#pragma unroll
              for (int u = 0; u < 2; u++) wgmma<true>(w, a[u], descriptor(v16, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 128));
              wgmma_commit();
              wgmma_wait();
"""
sub(old, """              if constexpr (K::TERMS == 1) {
""" + "".join(l if l[0] == "#" else "  " + l for l in old.splitlines(True)) + """              } else {
#pragma unroll
                for (int u = 0; u < 2; u++) {
                  uint32_t hi[4], lo[4];
#pragma unroll
                  for (int y = 0; y < 4; y++) split_fp16(acc[c][8 * u + 2 * y], acc[c][8 * u + 2 * y + 1], hi[(y & 1) + (y >> 1) * 2], lo[(y & 1) + (y >> 1) * 2]);
                  const uint64_t v = descriptor(v16, c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 128);
                  wgmma_fence();
                  wgmma<true>(w, hi, descriptor(h16, c * 2048 + u * 1024 + (K::O_L - K::O_H), 512, 128));
                  wgmma<true>(w, lo, v);
                  wgmma<true>(w, hi, v);
                  wgmma_commit();
                  wgmma_wait();
                }
              }
""")
sub("""        if (last && me.cg == copier<K>(rank) && me.lane == 0) bulk_store_wait_read();
        __syncthreads();
        if (last && staged && top + PANEL < n) load_panel<K>(p, map, base_address, 0, top + PANEL, rank, me.thread);
""", """        if (K::TERMS == 1 ? last && me.cg == copier<K>(rank) && me.lane == 0 : me.cg == copier<K>(rank)) bulk_store_wait_read();
        __syncthreads();
        if (last && staged && top + PANEL < n) {
          load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, top + PANEL, rank, me.thread);
          if (K::TERMS == 2) load_panel<K>(p, map, base_address, 3 * K::CHUNKS, 4 * K::CHUNKS, top + PANEL, rank, me.thread);
        }
""")
sub("""                wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
""", """                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi[kk], descriptor(h16, c * 2048 + kk * 256 + (K::O_L - K::O_H), 128, 512));
                wgmma<false>(acc[c], w_lo[kk], descriptor(v16, c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES));
""")

# ---- launch
sub("""// Bytes of the two workspaces: V of all blocks, T of all blocks.
""", """#ifndef FP16_TERMS  // of V, C and W': the build says
#define FP16_TERMS 1
#endif
template <class F>
static auto dispatch(int n, F f) {
  if (FP16_TERMS == 2 && n <= 768) return f(Config<2, FP16_TERMS == 2 ? 3 : 4, FP16_TERMS>());
  if (n <= 1024) return f(Config<2, 4, FP16_TERMS>());
  return f(Config<4, 3, FP16_TERMS>());
}

// Bytes of the two workspaces: V of all blocks, T of all blocks.
""")
a = src.index("long v_workspace(int n, int batch) {\n"); b = src.index("long t_workspace(int n, int batch) { return (long)", a)
src = src[:a] + """long v_workspace(int n, int batch) {
  return dispatch(n, [&](auto k) { return (long)batch * ((n + PANEL - 1) / PANEL) * decltype(k)::C * decltype(k)::V_BYTES; });
}
""" + src[b:]
sub("""  if (n <= 1024) return run<Config<2, 4>>(args, batch);
  if (n <= 1536) return run<Config<4, 3>>(args, batch);
  return -1;
""", """  return n > 1536 ? -1 : dispatch(n, [&](auto k) { return run<decltype(k)>(args, batch); });
""")

open(sys.argv[2], "w").write(src)
