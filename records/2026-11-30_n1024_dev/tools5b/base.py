# patches on v110: python mk.py OUT edit,edit
import sys
s=open('v110.py').read()
def rep(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a); s=s.replace(a,b)
def cut(a,b,y,incl=False):
    global s
    assert s.count(a)==1,(s.count(a),a); i=s.index(a); j=s.index(b,i)+(len(b) if incl else 0); s=s[:i]+y+s[j:]
def swap():
    rep("""      if (s == 0) {  // the second sub-panel moves to the front
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++) {
            if (!(i & 2)) {
              const float x = acc[c][i];
              acc[c][i] = acc[c][i + 2];
              acc[c][i + 2] = x;
            }
          }
        }
      }
    }
""","""      if (s == 1) break;
      s = 1;  // the second sub-panel moves to the front
#pragma unroll
      for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
        for (int i = 0; i < 16; i++) {
          if (!(i & 2)) {
            const float x = acc[c][i];
            acc[c][i] = acc[c][i + 2];
            acc[c][i + 2] = x;
          }
        }
      }
    }
""")
    rep("    for (int s = 0; s < 2; s++) {\n","    for (int s = 0;;) {\n")
def keep():
    """P stays in registers: the three warps of the recurrence put both halves away"""
    rep("""          // the other sub-panel's registers would be spilled: they wait in shared memory
          const uint32_t at = base_address + K::O_INBOX + K::SCRATCH + me.warp * 4096 + me.lane * 16;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int t = 0; t < 2; t++) save_floats(at + (2 * c + t) * 512, acc[c][8 * t + 2], acc[c][8 * t + 3], acc[c][8 * t + 6], acc[c][8 * t + 7]);
          }
""","")
    rep("""        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);
        float4 sum""","""        if (me.warp < 3) {  // the panel's registers would be spilled in the recurrence: they wait in shared memory
          const uint32_t at = base_address + K::O_KEPT + me.warp * (K::CHUNKS * 2048) + me.lane * 16;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int t = 0; t < 4; t++) save_floats(at + (4 * c + t) * 512, acc[c][4 * t], acc[c][4 * t + 1], acc[c][4 * t + 2], acc[c][4 * t + 3]);
          }
        }
        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);
        float4 sum""")
    rep("""          const uint32_t from = shared_address(sm) + K::O_INBOX + K::SCRATCH + (thread_index() >> 5) * 4096 + (thread_index() & 31) * 16;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int t = 0; t < 2; t++) load_floats(from + (2 * c + t) * 512, acc[c][8 * t + 2], acc[c][8 * t + 3], acc[c][8 * t + 6], acc[c][8 * t + 7]);
          }
        }
        else if""","""          const uint32_t from = shared_address(sm) + K::O_KEPT + (thread_index() >> 5) * (K::CHUNKS * 2048) + (thread_index() & 31) * 16;
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int t = 0; t < 4; t++) load_floats(from + (4 * c + t) * 512, acc[c][4 * t], acc[c][4 * t + 1], acc[c][4 * t + 2], acc[c][4 * t + 3]);
          }
        } else if""")
    cut("""#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
          for (int tile = 0; tile < 4; tile++) acc[c][tile * 4] = acc[c][tile * 4 + 1] = 0.f;
        }
        if (done > 0""","        // (3) V = P M, rounded to fp16\n","")
    rep("""        const bool in = local >= done && local < stop;
        {
""","""        const bool in = local >= done && local < stop;
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {  // the columns of other passes stay
#pragma unroll
          for (int tile = 0; tile < 4; tile++) {
            acc[c][tile * 4] = in ? 0.f : acc[c][tile * 4];
            acc[c][tile * 4 + 1] = in ? 0.f : acc[c][tile * 4 + 1];
          }
        }
        {
""")
    rep("""  static_assert(SCRATCH + 3 * 4096 <= INBOX, "three warps' registers beside the scratch");
""","""  // three warps' registers, beside the scratch and beside the sums of the Gram matrix
  static constexpr int O_KEPT = O_INBOX + (SCRATCH > IN_X + (G - 1) * 4096 ? SCRATCH : IN_X + (G - 1) * 4096);
  static_assert(O_KEPT + 3 * CHUNKS * 2048 <= O_W, "three warps' registers fit the inbox");
""")
    rep("        uint32_t h16, v16, tile_at;   //","        uint32_t h16, v16;            //") if 0 else rep("uint32_t h16, v16, tile_at;","uint32_t h16, v16;")
    rep("          tile_at = me.group * (K::SLAB / 2) + me.cg * 128 + me.g * 16 + me.q * 4;\n","")
def keep2():
    """as keep, but the half at work comes back only where it is wanted"""
    keep()
    rep("""            for (int t = 0; t < 4; t++) load_floats(from + (4 * c + t) * 512, acc[c][4 * t], acc[c][4 * t + 1], acc[c][4 * t + 2], acc[c][4 * t + 3]);
""","""            for (int t = 0; t < 4; t++) load_two(from + (4 * c + t) * 512 + 8, acc[c][4 * t + 2], acc[c][4 * t + 3]);
""")
    rep("DEVICE void load_floats(","""DEVICE void load_two(uint32_t at, float& a, float& b) {
  asm volatile("ld.shared.v2.f32 {%0,%1},[%2];" : "=f"(a), "=f"(b) : "r"(at) : "memory");
}
DEVICE void load_floats(""")
    rep("""#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {  // the columns of other passes stay
#pragma unroll
          for (int tile = 0; tile < 4; tile++) {
            acc[c][tile * 4] = in ? 0.f : acc[c][tile * 4];
            acc[c][tile * 4 + 1] = in ? 0.f : acc[c][tile * 4 + 1];
          }
        }
""","""        if (done > 0 || stop < SUB) {  // a part of the sub-panel only: the other columns stay
          if (me.warp < 3) {
#pragma unroll
            for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
              for (int t = 0; t < 4; t++) load_two(base_address + K::O_KEPT + me.warp * (K::CHUNKS * 2048) + me.lane * 16 + (4 * c + t) * 512, acc[c][4 * t], acc[c][4 * t + 1]);
            }
          }
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int tile = 0; tile < 4; tile++) {
              acc[c][tile * 4] = in ? 0.f : acc[c][tile * 4];
              acc[c][tile * 4 + 1] = in ? 0.f : acc[c][tile * 4 + 1];
            }
          }
        } else {
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
            for (int tile = 0; tile < 4; tile++) acc[c][tile * 4] = acc[c][tile * 4 + 1] = 0.f;
          }
        }
""")
def load():
    cut("""      } else {
        const int unit_ = rank * K::G + me.group;
""","""      __syncthreads();
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float biggest""","""      }
      __syncthreads();
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float biggest""",True)
    rep("""      if (staged) {  // on its way since the last pass
        wait_for<K>(base_address, A_BAR, k & 1);
        const int core""","""      if (staged) {  // on its way since the last pass
        wait_for<K>(base_address, A_BAR, k & 1);
      } else {  // word by word to the same places, zeros outside
        const int column = me.thread % PANEL, r = me.thread / PANEL, line = (r >> 2) * 2 + (r & 1);  // rows r and r + 8 of every 16
        const uint32_t to = base_address + (column >> 5) * K::COPY + (r >> 1 & 1) * 1024 + line * 128 + ((column >> 2 & 7) ^ line) * 16 + (column & 3) * 4;
        const int open = top + column < n ? n : 0;
        int row = rank * K::G * 16 + r;
        const float* from = p.a + ((size_t)(block_index() / K::C) * n + row) * n + top + column;
#pragma unroll 1
        for (int pair = 0; pair < 2 * K::CHUNKS; pair++) {
#pragma unroll
          for (int i = 0; i < 2 * K::G; i++) {
            const uint32_t at = to + pair * 2 * K::COPY + (i >> 1) * 2048;
            copy_word(i & 1 ? (at + 512) ^ 64 : at, from, row < open);
            row += 8, from += (size_t)8 * n;
          }
          row += (K::UNITS - K::G) * 16, from += (size_t)((K::UNITS - K::G) * 16) * n;
        }
        copies_wait();
        __syncthreads();
        fence_async();
      }
      {
        const int core""")
    rep("""DEVICE void prefetch_l2(""","""DEVICE void copy_word(uint32_t to, const float* from, bool on) {  // 0 where not `on`
  asm volatile("cp.async.ca.shared.global [%0],[%1],4,%2;" ::"r"(to), "l"(from), "r"(on ? 4 : 0) : "memory");
}
DEVICE void copies_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }
DEVICE void prefetch_l2(""")
    rep("DEVICE float load_once(const float* p) {  // past L1\n  float x;\n  asm(\"ld.global.nc.L1::no_allocate.f32 %0,[%1];\" : \"=f\"(x) : \"l\"(p));\n  return x;\n}\n","")
def y():
    rep("fmaf(-x3.e[e], y[3], fmaf(-x2.e[e], y[2], fmaf(-x1.e[e], y[1], fmaf(-x0.e[e], y[0], a[4 + e]))))","fmaf(-x0.e[e], y[0], fmaf(-x1.e[e], y[1], fmaf(-x2.e[e], y[2], fmaf(-x3.e[e], y[3], a[4 + e]))))")
def xx():
    rep("constexpr int LD_X = 33, LD_TOP = 36,","constexpr int LD_X = 36, LD_TOP = 36,")
    rep("""          float* to = z.x + ((me.thread >> 6) * 8 + me.g) * LD_X + (me.thread >> 5 & 1) * 16 + 2 * me.q;
          to[0] = 0.5f * sum.x;
          to[1] = 0.5f * sum.y;
          to[8] = 0.5f * sum.z;
          to[9] = 0.5f * sum.w;
""","""          const int row = (me.thread >> 6) * 8 + me.g, column = (me.thread >> 5 & 1) * 16 + 2 * me.q;
          const float4 x = make_float4(0.5f * sum.x, 0.5f * sum.y, 0.5f * sum.z, 0.5f * sum.w);
          float *to = z.x + row * LD_X + column, *transposed = z.m + column * LD_X + row;
          *reinterpret_cast<float2*>(to) = make_float2(x.x, x.y);
          *reinterpret_cast<float2*>(to + 8) = make_float2(x.z, x.w);
          transposed[0] = x.x;
          transposed[LD_X] = x.y;
          transposed[8 * LD_X] = x.z;
          transposed[9 * LD_X] = x.w;
""")
    rep("""  for (int r = 0; r < SUB; r++) g[r] = z.x[r * LD_X + lane] + z.x[lane * LD_X + r];
""","""  for (int r = 0; r < SUB; r += 4) {
    const Quad x = load4(z.x + lane * LD_X + r), y = load4(z.m + lane * LD_X + r);
#pragma unroll
    for (int e = 0; e < 4; e++) g[r + e] = x.e[e] + y.e[e];
  }
""")
    rep("X = HH/2 + HL, so that the Gram matrix is X + X'","X = HH/2 + HL, so that the Gram matrix is X + X'; X' in the place of M")
def vh():
    rep("""          const float* h_from = z.top + local * LD_TOP + row0 - first;
""","")
    rep("""                const float *x = &acc[c][tile * 4], *y = x + 4;
                float4 v = make_float4(x[0], x[1], y[0], y[1]);
                if ((unsigned)(chunk_row<K>(c, tile, unit) - first) < SUB) v = *reinterpret_cast<const float4*>(h_from + row);
                if (row0 + row >= lim && row0 + row < n) *reinterpret_cast<float4*>(h_to + row) = v;
""","""                const float *x = &acc[c][tile * 4], *y = x + 4;
                if (row0 + row >= first + SUB && row0 + row < n) *reinterpret_cast<float4*>(h_to + row) = make_float4(x[0], x[1], y[0], y[1]);
""")
    rep("        // V and the top of R to H while W is on its way\n","""        // V and the top of R to H while W is on its way
        if (me.thread < 256 / K::C) {
          const int column = rank * (SUB / K::C) + (me.thread >> 3), row = (me.thread & 7) * 4;
          if (column >= done && column < stop && row >= done && first + max(row, column) < n)
            *reinterpret_cast<float4*>(p.h + ((size_t)(block_index() / K::C) * n + first + column) * p.ld + first + row) = *reinterpret_cast<const float4*>(z.top + column * LD_TOP + row);
        }
""")
def keep3():
    """as keep; both halves come back only where wanted, written as one condition"""
    keep2()
    rep("""          if (me.warp < 3) {
#pragma unroll
            for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
              for (int t = 0; t < 4; t++) load_two(base_address""","""          if (me.warp < 3) {
#pragma unroll
            for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
              for (int t = 0; t < 4; t++) if (!in) load_two(base_address""")
    i=s.index("          if (me.warp < 3) {\n#pragma unroll\n            for (int c = 0; c < K::CHUNKS; c++) {\n#pragma unroll\n              for (int t = 0; t < 4; t++) if (!in)")
def zero():
    """zeros first, then the others' columns"""
    rep("""        if (done > 0 || stop < SUB) {  // a part of the sub-panel only: bring back the other columns
          const float redo""","""        if (done > 0 || stop < SUB) {  // a part of the sub-panel only: bring back the other columns
          const float redo""")
def small():
    """the columns of other passes from memory, by fewer instructions"""
    cut("""              for (int tile = 0; tile < 4; tile++) {
                const uint32_t at = tile_at + c""","""        // (3) V = P M, rounded to fp16
""","""              for (int tile = 0; tile < 4; tile++) {
                const uint32_t at = tile_at + c * 2048 + tile * 512;
                const uint32_t v_at = me.group * K::SLAB + c * CHUNK_BYTES + tile * TILE_BYTES + ((4 * s + me.cg) ^ 2 * me.group) * 128 + me.g * 16 + me.q * 4;
                const int row = chunk_row<K>(c, tile, unit) + 4 * me.q;
                const bool there = row < n && first + local < n, before = local < done;
                float2 kept = make_float2(0.f, 0.f);
                if (there) kept = *reinterpret_cast<const float2*>(h_to + chunk_row<K>(c, tile, 0));
                const float2 hi = __half22float2(halves(*reinterpret_cast<uint32_t*>(sm + (before ? v_at : K::O_H + at))));
                const float2 lo = __half22float2(halves(*reinterpret_cast<uint32_t*>(sm + K::O_L + at)));
#pragma unroll
                for (int e = 0; e < 2; e++) {
                  const bool inside = row + e >= (before ? K::TERMS == 1 ? top : first + local + 1 : lim);
                  const float h = row + e < n ? (e ? kept.y : kept.x) : 0.f, x = (e ? hi.y : hi.x) + (before ? 0.f : e ? lo.y : lo.x);
                  acc[c][tile * 4 + e] = in ? 0.f : K::TERMS == 1 || !before ? inside ? x : before ? 0.f : h * redo : inside ? h : c >= live ? x : 0.f;
                }
              }
            }
          }
        }
""")
    rep("        const int stop = uniform(*stop_at);\n","        const int stop = uniform(*stop_at);\n        const bool in = local >= done && local < stop;\n")
    rep("        const bool in = local >= done && local < stop;\n        {\n","        {\n")
def sel():
    """no selects where all columns are of the pass"""
    rep("""                if (in) {
                  x[0] = f0.x;
                  x[1] = f0.y;
                  y[0] = f1.x;
                  y[1] = f1.y;
                }
                to_tiles[tile] = local < stop ? bits(v0) : 0u;  // a column of an earlier pass: the same again
                to_tiles[tile + 1] = local < stop ? bits(v1) : 0u;
""","""                if (K::TERMS == 1) {
                  unpack_if(in, bits(v0), x[0], x[1]);
                  unpack_if(in, bits(v1), y[0], y[1]);
                } else if (in) {
                  x[0] = f0.x;
                  x[1] = f0.y;
                  y[0] = f1.x;
                  y[1] = f1.y;
                }
                to_tiles[tile] = local < stop ? bits(v0) : 0u;  // a column of an earlier pass: the same again
                to_tiles[tile + 1] = local < stop ? bits(v1) : 0u;
""")
    rep("""DEVICE float4 load_float4(""","""DEVICE void unpack_if(bool on, uint32_t u, float& x, float& y) {  // x and y stay as they are where not `on`
  asm("{\\n.reg .pred p;\\n.reg .b16 a,b;\\nsetp.ne.s32 p,%3,0;\\nmov.b32 {a,b},%2;\\n@p cvt.f32.f16 %0,a;\\n@p cvt.f32.f16 %1,b;\\n}" : "+f"(x), "+f"(y) : "r"(u), "r"((int)on));
}
DEVICE float4 load_float4(""")
def slots():
    """sums over the warpgroups in slots by which other warpgroup it is: the thread's own place, with two bits flipped"""
    rep("""      float4* to = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_W + ((i ^ me.group) * 4 + me.cg) * K::SUMS + (i - 1) * 512) + me.lane;
      to[0] = make_float4(w[8 * i], w[8 * i + 1], w[8 * i + 2], w[8 * i + 3]);
      to[(K::G - 1) * 32] = make_float4(w[8 * i + 4], w[8 * i + 5], w[8 * i + 6], w[8 * i + 7]);
""","""      float4* to = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_W) + (i - 1) * 2 * K::THREADS + (me.thread ^ i * 128);  // warpgroup ^ i
      to[0] = make_float4(w[8 * i], w[8 * i + 1], w[8 * i + 2], w[8 * i + 3]);
      to[K::THREADS] = make_float4(w[8 * i + 4], w[8 * i + 5], w[8 * i + 6], w[8 * i + 7]);
""")
    rep("""    const float4* partial = reinterpret_cast<const float4*>(sm + K::O_INBOX + K::IN_W + (me.group * 4 + me.cg) * K::SUMS) + me.lane;
""","""    const float4* partial = reinterpret_cast<const float4*>(sm + K::O_INBOX + K::IN_W) + me.thread;
""")
    rep("add4(sum[i], partial[(i * (K::G - 1) + u) * 32]);","add4(sum[i], partial[(2 * u + i) * K::THREADS]);")
    rep("""        const int slot = column * (K::C - 1) + (rank < owner ? rank : rank - 1);
""","""        const int slot = column * (K::C - 1) + (K::C == 2 ? 0 : rank < owner ? rank : rank - 1);
""")
    rep("""  static constexpr int SUMS = 2 * (G - 1) * 512;  // 16 reflectors' sums are made by one warp: what the other warpgroups hand to it
""","")
    rep("IN_W + 4 * G * SUMS,","IN_W + 2 * (G - 1) * THREADS * 16,")
def nozero():
    rep("""        for (int z = 0; z < 4; z++) t_hi[kk][z] = t_lo[kk][z] = 0u;
        load_if(""","""        load_if(""") if 0 else rep("""#pragma unroll
        for (int z = 0; z < 4; z++) t_hi[kk][z] = t_lo[kk][z] = 0u;
""","")
    rep("""DEVICE void load_if(bool on, uint32_t at, uint32_t (&x)[4]) {  // x stays as it is where not `on`
""","""DEVICE void load_if(bool on, uint32_t at, uint32_t (&x)[4]) {  // x is anything where not `on`
""")
    rep("""@p ld.shared.v4.b32 {%0,%1,%2,%3},[%4];\\n}" : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])""","""@p ld.shared.v4.b32 {%0,%1,%2,%3},[%4];\\n}" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])""")
def slots2():
    slots()
    rep("(K::C == 2 ? 0 : rank < owner ? rank : rank - 1)","(rank < owner ? rank : rank - 1)")
def slots3():
    slots()
    rep("""      float4* to = reinterpret_cast<float4*>(sm + K::O_INBOX + K::IN_W) + (i - 1) * 2 * K::THREADS + (me.thread ^ i * 128);  // warpgroup ^ i
      to[0] = make_float4(w[8 * i], w[8 * i + 1], w[8 * i + 2], w[8 * i + 3]);
      to[K::THREADS] = make_float4(w[8 * i + 4], w[8 * i + 5], w[8 * i + 6], w[8 * i + 7]);
""","""      const uint32_t to = base + K::O_INBOX + K::IN_W + (i - 1) * 32 * K::THREADS + (me.thread ^ i * 128) * 16;  // warpgroup ^ i
      save_floats(to, w[8 * i], w[8 * i + 1], w[8 * i + 2], w[8 * i + 3]);
      save_floats(to + 16 * K::THREADS, w[8 * i + 4], w[8 * i + 5], w[8 * i + 6], w[8 * i + 7]);
""")
def slots4():
    slots()
    rep("(me.thread ^ i * 128);  // warpgroup ^ i","((i ^ me.group) * 128 + (me.thread & 127));")
def rev():
    rep("""#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi""","""#pragma unroll
          for (int c = K::CHUNKS - 1; c >= 0; c--) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi""")
def revv():
    rep("""#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], m_lo""","""#pragma unroll
          for (int c = K::CHUNKS - 1; c >= 0; c--) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                wgmma<false>(acc[c], m_lo""")
def swapb():
    """the swap under a branch that ptxas cannot turn into selects"""
    rep("""      if (s == 0) {  // the second sub-panel moves to the front
""","""      if (s == 0) {  // the second sub-panel moves to the front
        asm volatile("" ::: "memory");
""")
def topsend():
    pass

def mask():
    """masks of the Gram operands: whole pieces of 16 rows unless a pass is restarted"""
    rep("""            if (c == live || done > 0) {  // finished rows lie in the first live chunk, finished columns come of a restart
#pragma unroll
""","""            if (done == 0) {  // finished rows lie in the first live chunk, and are whole pieces of 16
              if (c == live) {
#pragma unroll
                for (int tile = 0; tile < 4; tile++) {
                  const uint32_t open = chunk_row<K>(c, tile & 2, unit) < lim ? 0u : ~0u;
                  hi[tile] &= open;
                  lo[tile] &= open;
                }
              }
            } else {  // finished columns come of a restart
#pragma unroll
""")
def mask2():
    """the same by zeros where a piece is finished"""
    rep("""            if (c == live || done > 0) {  // finished rows lie in the first live chunk, finished columns come of a restart
#pragma unroll
              for (int tile = 0; tile < 4; tile++) {
                const int row = chunk_row<K>(c, tile, unit) + 4 * me.q;
                const uint32_t open = local < done || row + 1 < lim ? 0u : row < lim ? 0xffff0000u : ~0u;
""","""            if (c == live || done > 0) {  // finished rows lie in the first live chunk, finished columns come of a restart
#pragma unroll
              for (int tile = 0; tile < 4; tile++) {
                const int row = lim - chunk_row<K>(c, tile, unit) - 4 * me.q;
                const uint32_t open = local < done || row > 1 ? 0u : row == 1 ? 0xffff0000u : ~0u;
""")
def revt():
    rep("""#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi""","""#pragma unroll
          for (int i = 0; i < K::CHUNKS; i++) {
            const int c = K::TERMS == 1 ? K::CHUNKS - 1 - i : i;  // either order is right: ptxas moves no accumulators in this one
            if (c >= live) {
              wgmma_fence();
#pragma unroll
              for (int kk = 0; kk < 2; kk++) {
                if (K::TERMS == 2) wgmma<false>(acc[c], w_hi""")
