import sys
src, dst = sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
import re
scratch=re.search(r"  static constexpr int SCRATCH = ([^,]*), W_BYTES = PANEL \* LD_SHIFT \* 4;.*\n",s).group(0)
sc=re.search(r"SCRATCH = ([^,]*),",scratch).group(1)
rep(scratch,f"""  // the inbox of a pass: the scratch of the recurrence or [W of the peers, W of the own warpgroups], then W and W' of the pass
  static constexpr int SCRATCH = {sc}, W_BYTES = PANEL * LD_SHIFT * 4, IN_PASS = SCRATCH > IN_PW + G * 8192 ? SCRATCH : IN_PW + G * 8192;
""")
rep("(IN_PW > SCRATCH ? IN_PW : SCRATCH) + 2 * W_BYTES)","IN_PASS + 2 * W_BYTES)")
rep("O_PW = O_INBOX + (IN_PW > SCRATCH ? IN_PW : SCRATCH), O_PWP = O_PW + W_BYTES;","O_PW = O_INBOX + IN_PASS, O_PWP = O_PW + W_BYTES;\n  static constexpr int O_PARTIAL = O_INBOX + IN_PW;  // W of a pass, by warpgroup")
rep("  static constexpr int O_INBOX = 2 * STAGE;\n","""  // the next panel's entries, over both stages: rows 4q .. 4q+3 of every 16 in part q, a bank group apart, so that the
  // lanes' reads do not collide
  static constexpr int QUARTER_ROWS = ROWS / C / 4, QUARTER = QUARTER_ROWS * PANEL * 4 + 32;
  static_assert(2 * QUARTER >= STAGE && 2 * QUARTER - 32 <= 2 * QUARTER, "the upper half lies in stage 1");
  static constexpr int O_INBOX = 2 * STAGE + 128;
""")
rep("; later partial sums\n","\n") if "; later partial sums\n" in s else None
rep("enum { FULL_0, FULL_1, T_BAR, INBOX_BAR,","enum { FULL_0, FULL_1, A_BAR, T_BAR, INBOX_BAR,")
rep("""template <class K>
DEVICE void load_t(""","""// Half of the next panel (rows 4q.. of every 16, q = q0, q0 + 1) into the stages, a row of 256 bytes a thread. The caller
// arrives on A_BAR once all have been issued.
template <class K>
DEVICE void load_panel(const Args& p, uint32_t base, int q0, int top, uint32_t rank, int thread) {
  const uint32_t bar = barrier_at<K>(base, A_BAR);
  const float* from = p.a + (size_t)(opaque(blockIdx.x) / K::C) * p.n * p.n + top;
#pragma unroll 1
  for (int i = thread; i < 2 * K::QUARTER_ROWS; i += K::THREADS) {
    const int q = q0 + i / K::QUARTER_ROWS, at = i % K::QUARTER_ROWS, piece = at >> 2;  // a warpgroup's 16 rows
    const int row = (piece / K::G * K::UNITS + rank * K::G + piece % K::G) * 16 + 4 * q + (at & 3);
    barrier_expect_more(bar, PANEL * 4);
    bulk_load(base + q * K::QUARTER + at * (PANEL * 4), from + (size_t)row * p.n, PANEL * 4, bar);
  }
}
template <class K>
DEVICE void load_t(""")
# start
rep("""  __syncthreads();
  cluster_arrive();

  Scratch z;""","""  __syncthreads();
  const bool staged = n == K::ROWS && (reinterpret_cast<uintptr_t>(p.a) & 15) == 0;
  if (staged) {
    load_panel<K>(p, base_address, 2, 0, rank, me.thread);
    load_panel<K>(p, base_address, 0, 0, rank, me.thread);
    __syncthreads();
  }
  cluster_arrive();

  Scratch z;""")
i=s.index("      const float* from = p.a + (size_t)(opaque(blockIdx.x) / K::C) * n * n + (size_t)opaque(unit_ * 16"); j=s.index("      } else {\n#pragma unroll\n        for (int c = 0; c < K::CHUNKS; c++) {\n#pragma unroll\n          for (int i = 0; i < 16; i++) {\n            const int row = chunk_row<K>(c, i >> 2, 0) + (i & 1);")
s=s[:i]+"""      if (staged) {  // on its way since the last pass
        if (me.thread == 0) barrier_arrive(barrier_at<K>(base_address, A_BAR));
        wait_for<K>(base_address, A_BAR, phase);
        const float* from = reinterpret_cast<const float*>(sm + opaque(me.q * K::QUARTER + me.group * (4 * PANEL * 4)) + (me.cg * 8 + me.g) * 4);
#pragma unroll
        for (int pair = 0; pair < 2 * K::CHUNKS; pair++) {
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const int i = (pair & 1) * 8 + (r >> 1) * 4 + (r & 1);
            acc[pair >> 1][i] = from[(pair * K::G * 4 + r) * PANEL];
            acc[pair >> 1][i + 2] = from[(pair * K::G * 4 + r) * PANEL + SUB];
          }
        }
"""+s[j:]
rep("""        for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++) {
            const int row = chunk_row<K>(c, i >> 2, 0) + (i & 1);
            const int column""","""        for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++) {
            const int row = chunk_row<K>(c, i >> 2, 0) + (i & 1);
            const int column""")
i=s.index("      } else {\n#pragma unroll\n        for (int c = 0; c < K::CHUNKS; c++) {\n#pragma unroll\n          for (int i = 0; i < 16; i++) {\n            const int row = chunk_row<K>(c, i >> 2, 0) + (i & 1);")
s=s[:i]+"""      } else {
        const float* from = p.a + (size_t)(opaque(blockIdx.x) / K::C) * n * n + (size_t)opaque(unit_ * 16 + 4 * me.q) * n + top + me.cg * 8 + me.g;
        const int row0 = opaque(unit_ * 16 + 4 * me.q), ld = opaque(n);
"""+s[i+len("      } else {\n"):]
# T block after max+send
i=s.index("      // T = [T1, -T1 S12 T2; 0, T2] of the last block, while"); j=s.index("MARK(21);",i)
tblock=s[i:j]
s=s[:i]+s[j:]
tblock=tblock.replace("while the loads are under way; pw holds [V1'V2; V2'V2]","while the columns' largest entries are\n      // under way; pw holds [V1'V2; V2'V2]").replace("*t12 = z.r1, *y = z.w;","*t12 = z.r, *y = z.w;  // not where peers may send W of the first block already")
a="""      __syncthreads();
      if (k > 0 && me.thread == 0) {
        bulk_store_wait();
        load_t<K>(p, base_address, 0);
      }
"""
rep(a,"      __syncthreads();\n")
k=s.index("      wait_for<K>(base_address, PANEL_BAR, phase);\n      const int* all_max")
s=s[:k]+"      if (k > 0 && me.thread == K::THREADS - 1) load_block<K>(p, base_address, 0);  // the stages have been read\n"+tblock+"MARK(29);\n"+s[k:]
i=s.index("acc[c][i] *= scale;"); j=s.index("      __syncthreads();\n",i)
s=s[:j]+"""      __syncthreads();
      if (k > 0 && me.thread == 0) load_t<K>(p, base_address, 0);
"""+s[j+len("      __syncthreads();\n"):]
# end of the panel
i=s.index("    if (me.thread == 0) {\n      bulk_store(v_block<K>"); j=s.index("    __syncthreads();\n    cluster_arrive();\n  }\n",i)
s=s[:i]+s[j:]
rep("""        fence_async();
        __syncthreads();
        cluster_arrive();  // the inbox and its scratch are free
""","""        fence_async();
        __syncthreads();
        const bool last = s == 1 && stop == SUB;  // V is complete, H and L are spent: the next panel may come
        if (last) {
          if (me.thread == 0) bulk_store(v_block<K>(p, opaque(blockIdx.x), k) + live * K::G * CHUNK_BYTES, base_address + live * K::G * CHUNK_BYTES, K::STAGE - live * K::G * CHUNK_BYTES);
          if (staged && k + 1 < panels) load_panel<K>(p, base_address, 2, top + PANEL, rank, me.thread);
        }
        cluster_arrive();  // the inbox and its scratch are free
""")
rep("reinterpret_cast<float4*>(sm + K::O_H) + me.group * 512 +","reinterpret_cast<float4*>(sm + K::O_PARTIAL) + me.group * 512 +")
rep("reinterpret_cast<const float4*>(sm + K::O_H) + i;","reinterpret_cast<const float4*>(sm + K::O_PARTIAL) + i;")
i=s.index("          for (int ct = 0; ct < 4; ct++) partial[ct * 32] = make_float4(w[4 * ct]"); j=s.index("        __syncthreads();\n        MARK(15);\n        cluster_wait();\n",i); s=s[:j]+s[j:].replace("        MARK(15);\n","",1)
s=s[:j]+"""        if (last && me.thread == 0) bulk_store_wait();
        __syncthreads();
        if (last && staged && k + 1 < panels) load_panel<K>(p, base_address, 0, top + PANEL, rank, me.thread);
        cluster_wait();
"""+s[j+len("        __syncthreads();\n        cluster_wait();\n"):]
rep("  if (me.thread == 0) bulk_store_wait();\n  cluster_wait();\n","  cluster_wait();\n")
open(dst,'w').write(s)
h=open('hw.cuh').read()
if 'barrier_expect_more' not in h:
    i=h.index("DEVICE void barrier_wait(")
    h=h[:i]+'''// in two steps, where many threads announce their own bytes: expect_more by each, then one arrival
DEVICE void barrier_expect_more(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0],%1;" ::"r"(bar), "r"(bytes) : "memory");
}
DEVICE void barrier_arrive(uint32_t bar) { asm volatile("mbarrier.arrive.shared.b64 _,[%0];" ::"r"(bar) : "memory"); }
'''+h[i:]
    open('hw.cuh','w').write(h)
e=open('emu.h').read()
if 'barrier_expect_more' not in e:
    i=e.index("static void barrier_wait(")
    e=e[:i]+'''static void barrier_expect_more(uint32_t bar,uint32_t bytes){ Mbar& m=clu->cta[bar>>24].bars[bar&0xffffff]; if(m.pending<=0){ printf("expect on a finished phase\\n"); exit(1);} m.tx+=bytes; }
static void barrier_arrive(uint32_t bar){ Mbar& m=clu->cta[bar>>24].bars[bar&0xffffff]; if(m.pending<=0){ printf("double arrive\\n"); exit(1);} m.pending--; chk(m); }
'''+e[i:]
    open('emu.h','w').write(e)
