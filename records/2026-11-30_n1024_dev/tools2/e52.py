import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
i=s.index("template <class K>\nDEVICE void wait_for("); j=s.index("template <class K>",i+10)
s=s[:i]+"""template <class K>
DEVICE void wait_for(uint32_t base, int i, uint32_t parity) {
  barrier_wait(barrier_at<K>(base, i), parity);
}

"""+s[j:]
rep("// Barriers in shared memory: what has arrived. Bit i of `phase` is the parity to wait for next at barrier i.","""// Barriers in shared memory: what has arrived. The parity to wait for follows from the loop counters: a variable for it
// would be spilled. Panel k has k blocks, of which the even ones come into stage 1; PANEL_BAR completes once for the
// scales and twice a pass.""")
rep("""  wait_for<K>(base, FULL_0 + ((j + 1) & 1), phase);
""","""  wait_for<K>(base, FULL_0 + ((j + 1) & 1), ((j & 1 ? (blocks - 1) * (blocks - 1) / 4 : blocks * blocks / 4) + j / 2) & 1);
""")
rep("barrier_wait(barrier_at<K>(base, INBOX_BAR), phase >> INBOX_BAR & 1);","wait_for<K>(base, INBOX_BAR, turn());")
rep("    phase ^= 1u << INBOX_BAR;\n","")
rep("wait_for<K>(base, T_BAR, phase);","wait_for<K>(base, T_BAR, turn());")
rep("wait_for<K>(base, WOP_BAR, phase);","wait_for<K>(base, WOP_BAR, turn());")
rep("uint32_t rank, uint32_t& phase,\n                        unsigned& last_clock) {\n  const Lane me = lane_of(thread_index());\n  const uint32_t base = opaque(shared_address(sm));","unsigned& last_clock) {\n  Lane me = lane_of(thread_index());\n  uint32_t base = opaque(shared_address(sm)), rank = cluster_rank();\n  auto locate = [&]() {  // anew, so that little has to live across the products\n    me = lane_of(thread_index());\n    base = opaque(shared_address(sm));\n    rank = cluster_rank();\n  };\n  auto turn = [&]() { return (blocks * (blocks - 1) / 2 + j) & 1; };")
rep("j, k, cluster_rank(), phase, last_clock);","j, k, last_clock);")
rep("    // sum over the CTA's warpgroups, a share of the","    locate();\n    // sum over the CTA's warpgroups, a share of the")
i=s.index("  __syncthreads();\n",s.index("reinterpret_cast<uint4*>(partial)[ct * (K::G - 1) * 32]") if "reinterpret_cast<uint4*>(partial)[ct" in s else s.index("to[256] = lo;"))
s=s[:i]+"  locate();\n"+s[i:]
rep("wait_for<K>(base_address, A_BAR, phase);","wait_for<K>(base_address, A_BAR, k & 1);")
assert s.count("wait_for<K>(base_address, PANEL_BAR, phase);")==3
for par in ("k & 1","k + 1 & 1","k & 1"):
    s=s.replace("wait_for<K>(base_address, PANEL_BAR, phase);",f"wait_for<K>(base_address, PANEL_BAR, {par});",1)
rep("  uint32_t phase = 0;\n","")
rep("k, s, done, (int)phase);","k, s, done, 0);")
rep("""        {
          int bits;
          load_words(shared_address(sm) + K::O_STATE + (thread_index() >> 5) * 16, k, s, done, bits);
          phase = bits;
        }
""","""        {
          int unused;
          load_words(shared_address(sm) + K::O_STATE + (thread_index() >> 5) * 16, k, s, done, unused);
        }
""")
rep("// k, s, done, phase during","// k, s, done during")
assert 'phase' not in s.replace('phase1','').replace('// (1) phase',''), [l for l in s.split('\n') if 'phase' in l]
open(dst,'w').write(s)
