def apply(B):
    B.rep('''    if (me.tid == MOVER) {
#pragma unroll 1
      for (int i = 0; i < 8; i++) tensor_prefetch(job.map, k * NB + (i & 1) * IB, job.row + (i >> 1) * BOX);
    }
''','''    if (me.tid == MOVER) {
      const bool other = k == job.panels;
      const int col = other ? 0 : k * NB, row = other ? job.row + AHEAD * ROWS : job.row;
#pragma unroll 1
      for (int i = 0; i < 8; i++) tensor_prefetch(job.map, col + (i & 1) * IB, row + (i >> 1) * BOX);
    }
''')
    B.rep('''    if (!inside && !last) prefetch_panel<EXACT>(job, k + 1, me);''','''    if (!inside) prefetch_panel<EXACT>(job, k + 1, me);''')
    B.rep('''// The next panel from memory to L2 while this one is worked on.''','''// The next panel from memory to L2 while this one is worked on; beside the last one the first of the matrix that this processor
// gets next, by guess (outside of the batch nothing happens).''')
    B.rep('''constexpr int WARPS = 8;''','''constexpr int AHEAD = 132;     // matrices that are worked on at a time
constexpr int WARPS = 8;''')
