sub('''    if (pivots_here) // the pivot rows of H
      UNROLL for (int t = 0; t < 32 / NW; t++) {
        const int f = t * NW + w, i4 = f >> 1, half = f & 1; // rows 4 i4..
        float *out = p.h + (mat * n + c0) * (size_t)n + c0;
''','''    if (7 - w < 32 / C) { // this CTA's share of the pivot rows of H
        const int f = rank * (32 / C) + 7 - w, i4 = f >> 1, half = f & 1; // rows 4 i4..
        float *out = p.h + (mat * n + c0) * (size_t)n + c0;
''')
i=t.index("    if (7 - w < 32 / C) {"); i=t.index('\n',i)+1; j=t.index('    sum_and_spread(smem_addr(sm + P::X)',i); h=t[i:j]
assert h.endswith('      }\n')
h='\n'.join(l[2:] if l.startswith('      ') else l for l in h.split('\n'))
t=t[:i]+h+t[j:]
