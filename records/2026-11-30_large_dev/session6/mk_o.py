# what leaves goes after V'V is on its way
i=t.index('    if (loaded) load_next();\n    if (lane < 8) { // V^T'); j=t.index("    // ---- (4) V'V, T\n",i)
blk=t[i:j]; t=t[:i]+t[j:]
blk=blk.replace('    if (loaded) load_next();\n','')
a=t.index('    if (7 - w < 32 / C) { // this CTA'); b=t.index('    sum_and_spread(smem_addr(sm + P::X), std::false_type());',a)
h=t[a:b]
L=h.split('\n'); h='\n'.join((l[2:] if l.startswith('        ') else l) for l in L)
assert h.endswith('      }\n'); h=h[:-8]+'    }\n'
t=t[:a]+'    // while the sums travel:\n'+blk+h+'    if (loaded) load_next();\n'+t[b:]
