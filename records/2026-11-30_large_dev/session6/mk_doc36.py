i=t.index('"""v127 large'); j=t.index('Algorithm  two kernels',i)
t=t[:i]+'''"""v136 large, one or two terms: v135 with W' of the two panels of a pair made side by side by the two warpgroups.

'''+t[j:]
sub('Parent     v125_large_four_pivots','Parent     v135_large_one_code')
sub('Bound by   the panel chain\n','Bound by   the panel chain, that by latency and instruction fetch\n')
sub('''3    The CTAs of one matrix are a cluster and sum small matrices through distributed shared memory.
''','''3    The CTAs of one matrix are a cluster, or half of one, and sum small matrices through distributed shared memory.
''')
sub('''all that depends on it by two warps, four
     pivots at a time; the update of the rest by all.''','''all that depends on it by four warps, four
     pivots at a time; the update of the rest by all.''')
sub('''//   solve    two warps, a lane a column, four pivots and then four more: every lane factors the 4 x 4 blocks on the diagonal itself (no
//            exchange in the chain of pivots) and applies each pivot to its own column of R~ and U and to its row of L or column of X (L
//            has what X has not yet). A warp alone takes two cycles an instruction or more, so few instructions are what counts
''','''//   solve    four warps, a lane a column, four pivots and then four more: every lane factors the 4 x 4 blocks on the diagonal itself (no
//            exchange in the chain of pivots) and applies each pivot to its own column of R~ and U (two warps) or to its row of L or column
//            of X (the others; L has what X has not yet). A warp alone takes two cycles an instruction or more: few of them are what counts
''')
sub('// They are one cluster: st.async writes','// They are a cluster or half of one: st.async writes')
sub('''// The copies are the tensor copy engine's (cp.async, LDS and STS wait for each other in one queue), issued by a ninth warp (`feed`), which
// also takes the tasks from the list: a stage is filled again as soon as its warpgroup is done with it, so the next task's chunks come in
// while this one's last are worked on.
''','''// All copies are the tensor copy engine's (cp.async, LDS and STS wait for each other in one queue). A ninth warp (`feed`) takes the tasks from
// the list and asks for what comes in: a stage is filled again as soon as its warpgroup is done with it, so the next task's chunks come in
// while this one's last are worked on. In pass 2 the new C takes the place of the old one, and a tenth warp (`drain`) sends it out from there.
// Whoever has read or written a stage by ordinary instructions says fence.proxy.async before it gives the stage to the copy engine; without
// that, and with values of C used only after the stage had gone back, one call in six was wrong.
''')
sub('''    // Where V and T stay here and the inbox of the next W lies apart (one term), a CTA may run ahead into the next panel: all its sends but the first
    // come after sums that need every CTA, and the first one's inbox has not been read since the last such sum.
''','''    // Where V and T stay here and the inbox of the next W lies apart (one term), a CTA may run ahead into the next panel: its first sends go to that
    // inbox, which nobody has read since the sum of V'V; all others come after sums that need every CTA.
''')
sub("5    larfb: W = V'C, W' = T'W, C -= V W' on a strip of columns. S = V0'V1, which couples the panels of a pair, is a task of its own.","5    larfb: W = V'C, W' = T'W, C -= V W' on a strip of columns. S T1 with S = V0'V1, which couples the panels of a pair, is a task of its own.")
t=t.replace("// down the rows, pass 2 back up","// down the rows, pass 2 back up")
