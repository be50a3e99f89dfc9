sub('''          UNROLL for (int nt = 0; nt < NTL; nt++) {
            const int at = (j * LD + (nt * NW + w) * 8 + 2 * q) * 2;
            uint32_t high, low;
            split(d[jt]''','''          UNROLL for (int nt = 0; nt < NTL; nt++) {
            if (pivots_here && nt == above) continue;
            const int at = (j * LD + (nt * NW + w) * 8 + 2 * q) * 2;
            uint32_t high, low;
            split(d[jt]''')
sub('''    if (pivots_here) { // the pivot rows: unit lower triangular, from the recurrence
      block_sync<NT>();
      UNROLL for (int t = 0; t < 64 / NW; t++) {''','''    if (pivots_here) // the pivot rows: unit lower triangular, from the recurrence
      UNROLL for (int t = 0; t < 64 / NW; t++) {''')
sub('''        if (TWO) *(uint32_t *)(sm + P::VLOW + at) = low;
      }
    }
    fence_shared(); // V, for the copies''','''        if (TWO) *(uint32_t *)(sm + P::VLOW + at) = low;
      }
    fence_shared(); // V, for the copies''')
