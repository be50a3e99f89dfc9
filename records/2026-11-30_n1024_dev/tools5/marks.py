# prof.py IN OUT: marks
import sys,re
s=open(sys.argv[1]).read()
def rep(a,b,n=1):
    global s
    if s.count(a)!=n: print('MARK anchor',s.count(a),repr(a[:70])); return
    s=s.replace(a,b)
def after(a,i): rep(a,a+f"\nMARK({i})\n")
def before(a,i): rep(a,f"\nMARK({i})\n"+a)
s=s.replace("int zero;           // 0, but","unsigned long long* clk; int zero;           // 0, but")
rep("struct Args {","""#define MARK(i) { if (thread_index() == 0 && block_index() == 0) { unsigned t_ = clock(); unsigned* c_ = reinterpret_cast<unsigned*>(sm + K::BYTES - 256); c_[i] += t_ - c_[63]; c_[63] = t_; } }
struct Args {""")
s=re.sub(r"static constexpr int BYTES = (.*?);",r"static constexpr int BYTES = \1 + 256;",s,count=1)
rep("  if (me.thread == 0) {\n    for (int i = 0; i < FULL_BARS","  if (me.thread < 64) reinterpret_cast<unsigned*>(sm + K::BYTES - 256)[me.thread] = me.thread == 63 ? clock() : 0;\n  if (me.thread == 0) {\n    for (int i = 0; i < FULL_BARS")
rep("    __syncthreads();\n    cluster_arrive();\n  }\n  cluster_wait();\n}","    __syncthreads();\n    cluster_arrive();\nMARK(23)\n  }\n  cluster_wait();\n  if (block_index() == 0 && thread_index() < 63) p.clk[thread_index()] += reinterpret_cast<unsigned*>(sm + K::BYTES - 256)[thread_index()];\n}")
# blocks
after("  if (K::TERMS == 1) wait_for<K>(base, FULL_BARS + 2 * me.group + (t & 1), t >> 1 & 1);".replace("  if","    if",1),1)
before("    me = lane_of(thread_index() | (__float_as_int(w[0]) & p.zero));",2)
after("    named_join(1 + me.cg, 32 * K::G);\n    if (j == 0".split("\n")[0] if 0 else "    if (j == 0 && copies_t<K>(me, rank)) bulk_store_wait_read();  // T has left the place of W and W': now peers may go on",3)
after("      wait_for<K>(base, INBOX_BAR, turn() & 1);",4)
before("  locate();\n  const int mt = (me.cg + me.group) & 3, nt = me.group;",5)
after("  const int mt = (me.cg + me.group) & 3, nt = me.group;  // 16 reflectors of W' of 8 columns a warp\n  __syncthreads();",6)
before("  if (copies_t<K>(me, rank) && j + 1 < blocks) {",7)
after("wait_for<K>(base, WOP_BAR, turn() & 1);  // else this CTA has made them",8)
rep("    if (j + 1 < blocks) {\n      named_join(5 + me.group, 128);  // all four warps have used them\n      if (me.cg == copier<K>(rank) && me.lane == 0) load_half_slab<K>(p, base, j + 1, me.group, half);\n    }\n  });\n}","    if (j + 1 < blocks) {\n      named_join(5 + me.group, 128);  // all four warps have used them\n      if (me.cg == copier<K>(rank) && me.lane == 0) load_half_slab<K>(p, base, j + 1, me.group, half);\n    }\n  });\nMARK(9)\n}")
# panel
before("        fence_async();\n        __syncthreads();\n        cluster_wait();",10)
before("        if (s == 0 && (unit ^ first / 16",11)
before("        __syncthreads();\n        float4 own = send_sums",12)
before("        if (local >= done && first + local < n) {  // R of the finished rows",13)
before("        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);",14)
after("        wait_for<K>(base_address, PANEL_BAR, k + 1 & 1);",15)
before("        // (2) recurrence.",16)
before("        else if (s == 1 && me.warp == 3) {",40)if 0 else None
rep("          if (me.warp == 0) warp_cholesky(z, me.lane, done, K::CANCELLED);","          if (me.warp == 0) { warp_cholesky(z, me.lane, done, K::CANCELLED); MARK(17) }")
before("        guard_and_top<K>(z,",18)
after("        const int stop = uniform(*stop_at);",19)
before("        // (3) V = P M, rounded to fp16",20)
before("        if (K::TERMS == 2) named_join(1 + me.group, 128);  // L is spent",21)
before("        const bool last = s == 1 && stop == SUB;",22)
before("        // V and the top of R to H while",24)
rep("        if (last) {\n          wait_for<K>(base_address, PANEL_BAR, k & 1);","MARK(25)\n        if (last) {\n          wait_for<K>(base_address, PANEL_BAR, k & 1);\nMARK(26)")
rep("        } else {\n          // (5) C -= V Z","MARK(27)\n        } else {\n          // (5) C -= V Z")
before("          wgmma_wait();\n          if (K::TERMS == 2) named_join(1",28)
after("named_join(1 + me.group, 128);  // V's low terms have left\n          cluster_arrive();",29)
# between
before("      if (staged) {  // on its way since the last pass",30)
before("      cluster_wait();\n      if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::C * 256);",31)
before("      wait_for<K>(base_address, PANEL_BAR, k & 1);\n      const int* all_max",32)
after("      wait_for<K>(base_address, PANEL_BAR, k & 1);",33) if 0 else None
rep("      const int* all_max","MARK(33)\n      const int* all_max")
before("    // ---- earlier blocks",34)
before("    // ---- the panel\n",35)
open(sys.argv[2],'w').write(s)
