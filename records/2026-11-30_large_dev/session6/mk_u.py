# one code for both heights: 256 rows a CTA, or half of them
import re as _re
def inside(a,b,f):
    global t
    i=t.index(a); j=t.index(b,i); t=t[:i]+f(t[i:j])+t[j:]
def care(x):
    def s(o,n,c=1):
        nonlocal x
        assert x.count(o)==c,(x.count(o),o); x=x.replace(o,n)
    s('const uint32_t rank, const size_t slot, const int phase) {','const uint32_t rank, const size_t slot, const bool brief, const int phase) {')
    s('  auto row_of','  const int rows = brief ? RP / 2 : RP; // of a CTA; tiles below them hold zeros\n  auto row_of')
    x=x.replace('(int)rank * RP','(int)rank * rows').replace('rb + rank * RP','rb + rank * rows')
    s('acc[mt][nt][2 * h] = x.x + y.x;','acc[mt][nt][2 * h] = brief && nt > 1 ? 0.f : x.x + y.x;')
    s('acc[mt][nt][2 * h + 1] = x.y + y.y;','acc[mt][nt][2 * h + 1] = brief && nt > 1 ? 0.f : x.y + y.y;')
    s('''      int r = f / (RP / 8), u = f % (RP / 8);
      if ((int)rank * rows + u * 8 < m)''','''      int r = f / (RP / 8), u = f % (RP / 8);
      if (u * 8 < rows && (int)rank * rows + u * 8 < m)''')
    s('f < RP * 8;','f < rows * 8;')
    s('(int)rank * (RP / 8) + w','(int)rank * (rows / 8) + w')
    s('(int)rank == row0 / RP;','(int)rank == row0 / rows;')
    return x
inside('template <int NW, int NTL, int C>\n__device__ __noinline__ int careful','template <int NW, int NTL, int C>\n__device__ __forceinline__ void panel_step',care)
def step(x):
    def s(o,n,c=1):
        nonlocal x
        assert x.count(o)==c,(x.count(o),o); x=x.replace(o,n)
    s('const int k, const uint32_t rank,','const int k, const bool brief, const uint32_t rank,')
    s('  const float *src = ','  const int height = brief ? RP / 2 : RP; // rows of a CTA; brief: tiles 2 and 3 of a warp are not used\n  const float *src = ')
    x=x.replace('(int)rank * RP','(int)rank * height').replace('rb + rank * RP','rb + rank * height')
    i=x.index('  auto row_of'); j=x.index('\n',i)+1; x=x[:i]+x[j:]
    s('''      cp16z(smem_addr(sm + P::VSM) + (r * LD''','''      if (u * 8 >= height) continue;
      cp16z(smem_addr(sm + P::VSM) + (r * LD''')
    s('f < RP * 16;','f < height * 16;'); s('// RP rows of 64 columns, zeros','// its rows of 64 columns, zeros')
    s('''      UNROLL for (int nt = 0; nt < NTL; nt++)
        UNROLL for (int e = 0; e < 2; e++)
          acc[mt]''','''      UNROLL for (int nt = 0; nt < NTL && !(brief && nt > 1); nt++)
        UNROLL for (int e = 0; e < 2; e++)
          acc[mt]''')
    s('''      UNROLL for (int nt = 0; nt < NTL; nt++)
        UNROLL for (int e = 0; e < 2; e++)
        {''','''      UNROLL for (int nt = 0; nt < NTL && !(brief && nt > 1); nt++)
        UNROLL for (int e = 0; e < 2; e++)
        {''')
    s('ks < RP / 16;','ks < height / 16;'); s('ks * 16 + shift < RP;','ks * 16 + shift < height;'); s('ks * 16 + shift - RP +','ks * 16 + shift - height +')
    s('* 64 + shift < RP;','* 64 + shift < height;')
    s('''      UNROLL for (int np = 0; np < NTL / 2; np++) {
        const bool mine''','''      UNROLL for (int np = 0; np < NTL / 2 && !(brief && np); np++) {
        const bool mine''')
    s('''          UNROLL for (int np = 0; np < NTL / 2; np++)
            UNROLL for (int h = 0; h < 2; h++) {''','''          UNROLL for (int np = 0; np < NTL / 2 && !(brief && np); np++)
            UNROLL for (int h = 0; h < 2; h++) {''')
    s('''        UNROLL for (int np = 0; np < NTL / 2; np++) {
          mma(acc''','''        UNROLL for (int np = 0; np < NTL / 2 && !(brief && np); np++) {
          mma(acc''')
    s('''  UNROLL for (int nt = 0; nt < NTL; nt++)
    UNROLL for (int mt = 0; mt < 4; mt++)
      UNROLL for (int h = 0; h < 2; h++) {''','''  UNROLL for (int nt = 0; nt < NTL && !(brief && nt > 1); nt++)
    UNROLL for (int mt = 0; mt < 4; mt++)
      UNROLL for (int h = 0; h < 2; h++) {''')
    s('!(NTL == 4 && n - 64 * k <= 128 * C)','(brief || n - 64 * k > 128 * C)')
    x=x.replace('LD, RP / 16, w, lane, d)','LD, height / 16, w, lane, d)')
    s('i < RP / 8) write_rows','i < height / 8) write_rows'); s('i < RP / 8; i += NW) write_rows','i < height / 8; i += NW) write_rows')
    s('''        UNROLL for (int np = 0; np < NTL / 2; np++) {
          const uint32_t at = ((kt''','''        UNROLL for (int np = 0; np < NTL / 2 && !(brief && np); np++) {
          const uint32_t at = ((kt''')
    s('''          UNROLL for (int np = 0; np < NTL / 2; np++)
            UNROLL for (int h = 0; h < 2; h++) mma(d[jt]''','''          UNROLL for (int np = 0; np < NTL / 2 && !(brief && np); np++)
            UNROLL for (int h = 0; h < 2; h++) mma(d[jt]''',3)
    s('''          UNROLL for (int nt = 0; nt < NTL; nt++) {
            if (pivots_here''','''          UNROLL for (int nt = 0; nt < NTL && !(brief && nt > 1); nt++) {
            if (pivots_here''')
    s('min(RP, m - (int)rank * height)','min(height, m - (int)rank * height)')
    s('(p, k, rank, slot, rphase);','(p, k, rank, slot, brief, rphase);')
    return x
inside('template <int NW, int NTL, int C>\n__device__ __forceinline__ void panel_step','// All panels of one matrix a cluster, beside',step)
i=t.index('  int k = 0;\n#pragma unroll 1\n  for (; k < p.n / 64 && p.n - 64'); j=t.index('  group_sync<C>(bar_group, gphase); // nobody ends',i)
t=t[:i]+'''#pragma unroll 1
  for (int k = 0; k < p.n / 64; k++) {
    panel_step<8, 4, C>(p, k, p.n - 64 * (k - (k > 0)) <= 128 * C, rank, slot, phase, xphase, rphase, nphase, gphase, loaded, waiting, here, owed);
    finish();
  }
'''+t[j:]
sub('''8 warps x 32 rows a CTA while the matrix is taller than 128 C rows,
// then 8 x 16.
''','''8 warps x 32 rows a CTA while the matrix is taller than 128 C rows, then
// 8 x 16, by the same code: other code would come from memory, 84 KB line by line, while all wait (20 us).
''')
