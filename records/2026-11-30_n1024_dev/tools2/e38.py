s=open('body37.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("""// C = (I - V_j T_j' V_j') C. Each warp""","""// R of the 64 rows that block j finished, of the panel at column `top`. Four of the matrix' warpgroups hold 16 of them
// each, all in the same place.
template <class K>
DEVICE void store_r(const Acc<K>& acc, const Args& p, const float* unscale, int j, int top, int unit, Lane me) {
  const int pair = 4 * j / K::UNITS;
  if ((unsigned)(unit - 4 * j % K::UNITS) >= 4) return;
  const int column = top + me.cg * 8 + me.g;
  const float undo[2] = {unscale[column - top], unscale[column - top + SUB]};
  float* to = p.h + ((size_t)(opaque(blockIdx.x) / K::C) * p.n + column) * p.ld + (pair * K::UNITS + unit) * 16 + 4 * me.q;
#pragma unroll
  for (int x = 0; x < 2 * K::CHUNKS; x++) {
    if (x == pair) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const float* f = &acc[x >> 1][(x & 1) * 8 + 2 * half];
        const float by = undo[half];
        if (column + SUB * half < p.n) *reinterpret_cast<float4*>(to + (size_t)(SUB * half) * p.ld) = make_float4(f[0] * by, f[1] * by, f[4] * by, f[5] * by);
      }
    }
  }
}

// C = (I - V_j T_j' V_j') C. Each warp""")
rep("""  wait_for<K>(base, WOP_BAR, phase);
""","""  if (j > 0) store_r<K>(acc, p, reinterpret_cast<const float*>(sm + K::O_UNSCALE), j - 1, blocks * PANEL, rank * K::G + me.group, me);  // while W' is on its way
  wait_for<K>(base, WOP_BAR, phase);
""")
i=s.index("    __syncthreads();\n    if (k + 1 < panels) {  // the next panel's rows")
s=s[:i]+"""    if (k > 0) store_r<K>(acc, p, unscale, k - 1, top, unit_, me);
"""+s[i:]
i=s.index("        if (local >= done && first + local < n) {  // R of the finished rows"); j=s.index("MARK(22);",i)
s=s[:i]+"""        if (lim > top && local >= done && first + local < n) {  // R of the panel's own finished rows (rows from lim on that come along are stored again below)
          const int row0 = unit * 16 + 4 * me.q, end = min(lim, n);
          const float undo = unscale[SUB * s + local];
          float* h_to = h_column();
#pragma unroll
          for (int c = 0; c < K::CHUNKS; c++) {
            if (c >= live && c < live + K::STEP) {
#pragma unroll
              for (int tile = 0; tile < 4; tile += 2) {
                const int row = chunk_row<K>(c, tile, 0);
                const float *x = &acc[c][tile * 4], *y = x + 4;
                if (row0 + row >= top && row0 + row < end) *reinterpret_cast<float4*>(h_to + row) = make_float4(x[0] * undo, x[1] * undo, y[0] * undo, y[1] * undo);
              }
            }
          }
        }
"""+s[j:]
# two chunks in flight in phase 1
rep("""    wgmma_wait();  // more in flight would need the operands of two chunks in registers: spills
""","""#ifdef PH1_2
    if (c & 1) wgmma_wait();
#else
    wgmma_wait();  // more in flight would need the operands of two chunks in registers: spills
#endif
""")
open('body38.cuh','w').write(s)
h=open('hw.cuh').read()
if 'TESTWAIT' not in h:
    a='mbarrier.try_wait.parity'
    assert h.count(a)==1
    h=h.replace('''  uint32_t done = 0;
''','''#ifdef TESTWAIT
#define WAIT_WORD "mbarrier.test_wait"
#else
#define WAIT_WORD "mbarrier.try_wait"
#endif
  uint32_t done = 0;
''').replace('"{\\n.reg .pred p;\\nmbarrier.try_wait.parity','"{\\n.reg .pred p;\\n" WAIT_WORD ".parity')
    open('hw.cuh','w').write(h)
