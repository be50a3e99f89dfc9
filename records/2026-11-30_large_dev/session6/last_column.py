import sys
t=open(sys.argv[1]).read()
def sub(a,b,n=1):
    global t
    assert t.count(a)==n,(t.count(a),a); t=t.replace(a,b)
sub('''solve_four(float (&g)[4][4], float (&a)[4][4], int me, float *y, float *z) {
  float rs = fast_rsqrt(g[0][0]);
  UNROLL for (int u = 0; u < 4; u++) {
''','''solve_four(float (&g)[4][4], float (&a)[4][4], int me, float *y, float *z, bool last = false) {
  float rs = fast_rsqrt(g[0][0]);
  UNROLL for (int u = 0; u < 4; u++) {
    if (u == 3 && last) { // The matrix's last column has no rows below its pivot: |R| is the pivot. What is left of the Gram matrix has cancelled.
      g[3][3] = a[3][3] * a[3][3];
      rs = fast_rsqrt(g[3][3]);
      if (!X && me == 3) y[3] = g[3][3];
    }
''')
sub('solve_block(const Block64 &z, const int b, const int e) { // e: this lane\'s column','solve_block(const Block64 &z, const int b, const int e, const bool last) { // e: this lane\'s column; last: is column 63 the matrix\'s last?')
sub('solve_four<X>(g, a, me - 4, yc + 4, zc + 4);','solve_four<X>(g, a, me - 4, yc + 4, zc + 4, last && b == 7);')
sub('solve_block<false>(z, b, tid);','solve_block<false>(z, b, tid, square);')
sub('solve_block<true>(z, b, tid - 64);','solve_block<true>(z, b, tid - 64, square);')
sub('''    if (!(grow <= GROWTH_MAX) || !(pivot * pivot > sThr[j])) *sFlag = 1;
''','''    if (square && j == 63 ? !(pivot * pivot > 0.f && grow < 1e30f) : !(grow <= GROWTH_MAX && pivot * pivot > sThr[j])) *sFlag = 1;
''')
sub('''  // ---- (2) recurrence, repeated in every CTA''','''  const bool square = k + 1 == n / 64; // nothing below the pivot rows
  // ---- (2) recurrence, repeated in every CTA''')
i=t.index('"""v137'); j=t.index('\nAlgorithm')
t=t[:i]+'"""v138 large, no reflector needed for the last column: v137, whose last panel went column by column for nothing.\n'+t[j:]
sub('Parent     v128_large_full_gpc','Parent     v137_large_by_columns'); sub('qrkit_large_v137','qrkit_large_v138')
open(sys.argv[2],'w').write(t)
