def prefetch(b):
    b.rep('''    if (!inside && !last) prefetch_panel<EXACT>(job, k + 1, me);  // no block is on its way now
''','')
    b.rep('''    const Norm norm = gram(s, first, me);
''','''    const Norm norm = gram(s, first, me);
    if (!inside && !last) prefetch_panel<EXACT>(job, k + 1, me);  // no block is on its way now, and its warp has nothing to do yet
''')
