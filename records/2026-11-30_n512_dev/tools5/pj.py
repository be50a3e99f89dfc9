def flags(b):
    b.rep('''  uint32_t phase = 0, low_blocks = 0;
''','''  uint32_t phase = 0, low_blocks = 0;  // above the blocks' bits: two terms for C, for W' in this panel
  constexpr uint32_t BLOCK_BITS = 0xff, TWO_C = 0x100, TWO_W = 0x200;
''')
    b.cut('''        const float order = (float)job.n, error''','''        const Part part =''','''        if (inside ? k == 0 : j == 0) {
          const float order = (float)job.n, error = V_ROUNDING * bits_float(s.largest_column);
          const float allowed = TWO_TERM_AT * 1.1920929e-7f * order * reciprocal_sqrt(order) * bits_float(s.largest_sum);
          // Where W and W' are rounded to one term beside C, all together must stay below the bound.
          low_blocks = (low_blocks & BLOCK_BITS) | (error > allowed ? TWO_C : 0u) | (2.f * error > allowed ? TWO_W : 0u);
        }
        const bool two_c = again || (low_blocks & TWO_C), two_w = again || (low_blocks & TWO_W);
''')
