def words(b):
    b.rep('''    uint32_t p[2][TILES][4][32];     // a window of P, fp16 hi and lo; column col of a group at col ^ (group & 1)
''','''    uint32_t p[TILES][2][4][32];     // a window of P, fp16 hi and lo (see p_tile); column col of a group at col ^ (group & 1)
''')
    b.b=b.b.replace('s.p[0][0][0][0]','s.p[0][0][0][0]')
    b.rep('''// FP32_CLASS: P and V's low terms lie by chunks''','''// P: 8 groups a tile, high terms and then low ones.
// FP32_CLASS: P and V's low terms lie by chunks''')
    b.rep('''DEVICE unsigned long long* state(const Job& job) { return reinterpret_cast<unsigned long long*>(job.v + (size_t)(job.panels - 1) * TILES * GROUPS * 32); }
''','''DEVICE unsigned long long* state(const Job& job) {
  return reinterpret_cast<unsigned long long*>(job.v + (size_t)(job.panels - 1) * TILES * GROUPS * 32);
}
''')
    i=b.b.index('  for (int pass = FUSED ? 4 :'); j=b.b.index('\n',i); l=b.b[i:j]
    if '  // low and high term' in l:
        k=b.b.rindex('#pragma unroll 1\n',0,i)
        b.b=b.b[:k]+"  // low and high term of W' for each term of V\n"+b.b[k:i]+l.split('  // low and high')[0]+b.b[j:]
def lines(b):
    b.rep("  // Apart from the roles of the warps: a loop of one thread in their chain, and ptxas takes the whole kernel for divergent (+1,000 instructions).\n",
"  // Apart from the roles of the warps: with a loop of one thread in their chain ptxas takes the whole kernel for divergent (1,000\n  // instructions more).\n")
