import sys
v=sys.argv[1]
src=open('var21.py').read().rsplit("open(sys.argv[2]",1)[0]
src=src.replace("v=sys.argv[1]\nif 'a' in v","v='am'\nif 'a' in v")
exec(src)
v=sys.argv[1]
MT="      const int mt = (me.cg + me.group) & 3;\n      const uint32_t t_at"
if v=='p': rep(MT,"      const int mt = (thread_index() >> 5) + (thread_index() >> 7) & 3;\n      const uint32_t t_at")
if v=='q': rep(MT,"      const Lane now = lane_of(thread_index());\n      const int mt = (now.cg + now.group) & 3;\n      const uint32_t t_at")
if v=='r': rep("    wait_for<K>(base, T_BAR, turn() & 1);\n    {\n      const int mt = (me.cg + me.group) & 3;","    const int mt = (thread_index() * 5 >> 7) & 3;\n    wait_for<K>(base, T_BAR, turn() & 1);\n    {")
if v=='t': rep("if (last && staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, rank, me.thread);","if (last && staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, cluster_rank(), thread_index());")
if v=='u': rep("if (last && staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, rank, me.thread);","if (last && staged && top + PANEL < n) load_panel<K>(p, map, opaque(shared_address(sm)), 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, cluster_rank(), thread_index());")
W="    wait_for<K>(base, T_BAR, turn() & 1);\n    {\n      const int mt = (me.cg + me.group) & 3;"
if v=='r2': rep(W,"    const int mt = (thread_index() >> 5) * 5 >> 2 & 3;\n    wait_for<K>(base, T_BAR, turn() & 1);\n    {")
if v=='r3': rep(W,"    const int mt = thread_index() / 32 * 5 / 4 % 4;\n    wait_for<K>(base, T_BAR, turn() & 1);\n    {")
if v=='r4': rep(W,"    const int mt = (thread_index() >> 5) + (thread_index() >> 7) & 3;\n    wait_for<K>(base, T_BAR, turn() & 1);\n    {")
if v=='r5': rep(W,"    const int mt = ((thread_index() & ~31) * 5 >> 7) & 3;\n    wait_for<K>(base, T_BAR, turn() & 1);\n    {")
open(sys.argv[2],'w').write(s)
