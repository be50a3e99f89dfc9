import sys
t=open(sys.argv[1]).read()
def cut(a,b):
    global t
    assert t.count(a)==1,(t.count(a),a)
    i=t.index(a); j=t.index(b,i); t=t[:i]+t[j:]
def sub(a,b,n=1):
    global t
    assert t.count(a)==n,(t.count(a),a); t=t.replace(a,b)
# ---- what goes: sums of the careful way, its recurrence, itself
cut('// All-reduce of 2048 floats','// ---------------------------------------------------------------- 4a. 32 reflectors')
i=t.index('// ---------------------------------------------------------------- 4a. 32 reflectors'); j=t.index('constexpr int LDM = 68;')
old=t[i:j]
load4=old[old.index('// Several loads before the first use'):old.index('template <int L> using Len')]
join=[l for l in old.split('\n') if 'void bar_join' in l][0]+'\n'
t=t[:i]+join+load4+'template <int L> using Len = std::integral_constant<int, L>;\n'+t[j:]
cut('// The careful way: 32 columns at a time','template <int NW, int NTL, int C>\n__device__ __forceinline__ void panel_step')
cut('__device__ __forceinline__ uint32_t transpose8','__device__ __forceinline__ void ldsm4(')
# ---- its shared memory
sub(''', TR = NB / C;
  using Reduce = AllReduce<C>;
''',''';
''')
cut('  // careful: red = partial sums','  static constexpr int END_NF')
sub('''  static constexpr int END_NF = END_N > END_F ? END_N : END_F, BYTES = ((END_NF > END_C ? END_NF : END_C) + 127) / 128 * 128;
  static_assert(VHALF + 32 * LD * 2 <= REC && BYTES <= 232448);
''','''  static constexpr int BYTES = ((END_N > END_F ? END_N : END_F) + 127) / 128 * 128;
  static_assert(RP * 4 + 2 * (C + 3) * 256 <= 17408 && BYTES <= 232448); // by_columns
''')
sub('''constexpr float NORM_MIN64 = 1.f / 64;''','''constexpr float GROWTH_MAX = TWO ? 60.f : 300.f; // sum_k ||p_k|| |X_jk|: by how much V = P X^T magnifies rounding; a pivot alone does not bound it
constexpr float NORM_MIN64 = 1.f / 64;''')
sub('as a small number or as NaN; then the panel goes the careful way.','as a small number or as NaN; then the panel goes by columns (4d).')
# ---- 4d
new = r"""// ---------------------------------------------------------------- 4d. geqr2 column by column, in FP32: right for every panel
// LAPACK's own: x below the pivot alpha, beta = -sign(alpha) |(alpha, x)|, v = (1, x / (alpha - beta)), tau = (beta - alpha) / beta, and
// w_c = v'C, C -= tau v w' on the columns behind. One meeting of the CTAs a column: they send each other x'C and the pivot row. From P in
// two terms; leaves V^T as the common way does, a zero row where x = 0 (tau = 0), and writes the pivot rows of H, whose first is `out`.
template <int NW, int NTL, int C>
__device__ __noinline__ void by_columns(const uint32_t rank, const int row0, const int m, const uint32_t bars, float *out, const int n) {
  using P = PanelShape<NW, NTL, C>;
  constexpr int LD = P::LD, I = P::RP / 32, L = 64 / NW;
  constexpr float NOTHING = 1e-36f; // |x|^2, where the column's largest entry was 8 or more: zero
  extern __shared__ __align__(128) char sm[];
  const int tid = threadIdx.x, lane = tid & 31, w = tid >> 5;
  const bool alone = m <= P::RP; // are all rows CTA 0's?
  const int ctas = alone ? 1 : C;
  const int pivot0 = row0 - (int)rank * P::RP; // the first pivot row in this CTA's rows; all of them are CTA 0's
  float *column = (float *)(sm + P::X), *inbox = column + P::RP, *taken = (float *)(sm + P::THR);
  const float *unscale = (const float *)(sm + P::SC) + 64;
  float p[L][I]; // column w + NW l, row lane + 32 i
  UNROLL for (int l = 0; l < L; l++)
    UNROLL for (int i = 0; i < I; i++) {
      const int at = (w + NW * l) * LD + lane + 32 * i;
      p[l][i] = __half2float(((const __half *)(sm + P::PH))[at]) + __half2float(((const __half *)(sm + P::PL))[at]);
    }
  if ((int)rank < ctas)
    ROLL for (int j = 0; j < 64; j++) {
      const int pivot = pivot0 + j;
      float *in = inbox + (j & 1) * (C + 1) * 64, *ours = alone ? in : inbox + (2 * (C + 1) + 2 * (j & 1)) * 64, x[I];
      UNROLL for (int l = 0; l < L; l++)
        if (w + NW * l == j) // (an ordinary store would make p an array in memory)
          UNROLL for (int i = 0; i < I; i++) asm volatile("st.shared.f32 [%0],%1;" ::"r"(smem_addr(column + lane + 32 * i)), "f"(p[l][i]) : "memory");
      block_sync<P::NT>();
      UNROLL for (int i = 0; i < I; i++) x[i] = lane + 32 * i > pivot ? column[lane + 32 * i] : 0.f;
      float d[L], top[L]; // x'C, the pivot row
      UNROLL for (int l = 0; l < L; l++) {
        d[l] = top[l] = 0.f;
        UNROLL for (int i = 0; i < I; i++) {
          d[l] = fmaf(x[i], p[l][i], d[l]);
          if (lane + 32 * i == pivot) top[l] = p[l][i];
        }
      }
      UNROLL for (int s = 16; s; s /= 2)
        UNROLL for (int l = 0; l < L; l++) d[l] += __shfl_xor_sync(~0u, d[l], s);
      if (lane == 0)
        UNROLL for (int l = 0; l < L; l++) ours[w + NW * l] = d[l];
      if (rank == 0 && lane == (pivot & 31))
        UNROLL for (int l = 0; l < L; l++) (alone ? in + C * 64 : ours + 64)[w + NW * l] = top[l];
      block_sync<P::NT>();
      if (!alone) { // (a meeting costs its messages: 16 bytes each)
        const uint32_t bar = bars + 8 * (j & 1);
        if (tid == 0) mbar_expect(bar, (C + 1) * 256);
        ROLL for (int f = tid; f < 16 * C * (rank ? 1 : 2); f += P::NT) {
          const int to = f % C, q = f / C; // number of 16 sums, 16 of the pivot row
          st_async(map_rank<C>(smem_addr(q < 16 ? in + rank * 64 + 4 * q : in + C * 64 + 4 * q - 64), to), *(const float4 *)(ours + 4 * q), map_rank<C>(bar, to));
        }
        mbar_wait(bar, j >> 1 & 1);
      }
      auto sum = [&](int c) {
        float s = 0.f;
        UNROLL for (int u = 0; u < C; u++) s += u < ctas ? in[u * 64 + c] : 0.f;
        return s;
      };
      const float alpha = in[C * 64 + j], square = sum(j);
      const bool take = square > NOTHING;
      const float norm2 = fmaf(alpha, alpha, square), inv = fast_rsqrt(norm2), beta = -copysignf(norm2 * inv, alpha),
                  scale = take ? fast_rcp(alpha - beta) : 0.f;
      const int mine = w + NW * (lane % L); // of column w + NW l in lane l: tau w
      const float tw = take && mine > j ? fmaf(fabsf(alpha), inv, 1.f) * fmaf(scale, sum(mine), in[C * 64 + mine]) : 0.f;
      UNROLL for (int i = 0; i < I; i++) x[i] *= scale;
      UNROLL for (int l = 0; l < L; l++) {
        const float t = __shfl_sync(~0u, tw, l);
        UNROLL for (int i = 0; i < I; i++) {
          p[l][i] = fmaf(-t, x[i], p[l][i]);
          if (lane + 32 * i == pivot) p[l][i] -= t;
        }
        UNROLL for (int i = 0; i < I; i++) { // the column itself
          const float y = lane + 32 * i > pivot ? x[i] : lane + 32 * i == pivot && take ? beta : p[l][i];
          p[l][i] = w + NW * l == j ? y : p[l][i];
        }
      }
      if (tid == 0) taken[j] = take; // v's pivot
    }
  block_sync<P::NT>();
  UNROLL for (int l = 0; l < L; l++)
    UNROLL for (int i = 0; i < I; i++) { // V^T: unit diagonal, zeros above; and the pivot rows of H
      const int c = w + NW * l, r = lane + 32 * i, row = r - pivot0;
      const float x = p[l][i], v = row > c ? x : row == c && rank == 0 ? taken[c] : 0.f, high = __half2float(__float2half_rn(v));
      ((__half *)(sm + P::VSM))[c * LD + r] = __float2half_rn(v);
      if (TWO) ((__half *)(sm + P::VLOW))[c * LD + r] = __float2half_rn(v - high);
      if (rank == 0 && row >= 0 && row < 64) out[(size_t)row * n + c] = row <= c ? x * unscale[c] : two_terms(x);
    }
}
"""
sub('template <int NW, int NTL, int C>\n__device__ __forceinline__ void panel_step', new+'template <int NW, int NTL, int C>\n__device__ __forceinline__ void panel_step')

# ---- panel_step
i=t.index('  loaded = false;\n  if (!failed) {\n'); j=t.index('    fence_shared(); // V, for the copies\n')
common=t[i:j]
common=common.replace('  loaded = false;\n  if (!failed) {\n','')
a=common.index('    // ---- (3) V = P M'); head=common[:a]; body=common[a:]
head='\n'.join(l[2:] if l.startswith('  ') else l for l in head.split('\n'))
t=t[:i]+head.rstrip(' ')+'  if (failed) {\n    if (m > RP) group_sync<C>(bar_group, gphase); // its inbox lies where other things were\n    by_columns<NW, NTL, C>(rank, row0, m, bar_next + 16, p.h + (mat * n + c0) * (size_t)n + c0, n);\n  } else {\n'+body+'  }\n'+t[j:]
i=t.index('    fence_shared(); // V, for the copies\n'); j=t.index('    if (p.passes && rank == 0 && tid == 0)')
tail=t[i:j]
tail='\n'.join(l[2:] if l.startswith('    ') else l for l in tail.split('\n'))
k=t.index('''    rphase = careful<NW, NTL, C>(p, k, rank, slot, rphase);
  }
'''); e=k+len('''    rphase = careful<NW, NTL, C>(p, k, rank, slot, rphase);
  }
''')
t=t[:i]+tail.rstrip(' ')+t[e:]
sub("if (7 - w < 32 / C) { // this CTA's share of the pivot rows of H","if (!failed && 7 - w < 32 / C) { // this CTA's share of the pivot rows of H")
sub('if (tid < 64) sTau[tid] = 2.f * fast_rcp(sX[tid * (LDM + 1)]);','if (tid < 64) sTau[tid] = sX[tid * (LDM + 1)] > 0.5f ? 2.f * fast_rcp(sX[tid * (LDM + 1)]) : 0.f; // v\'v >= 1, or 0: no part')
# ---- two functions of one name, one of which is the prelude's in an assembled file
sub('__device__ __forceinline__ void tensor_load(uint32_t to, const CUtensorMap *map, int x, int y, int z, uint32_t bar) {','__device__ __forceinline__ void tensor_load_blocks(uint32_t to, const CUtensorMap *map, int x, int y, int z, uint32_t bar) {')
sub('tensor_load(to + L::C, r0 ? &maps.h','tensor_load_blocks(to + L::C, r0 ? &maps.h')
# ---- what nobody asks for
sub('int &rphase, ',''); sub('rphase, ','',2); sub(', rphase = 0','')
sub('sums of the careful way in, in, out, out; ','')
sub('for (int i = 0; i < 10; i++) mbar_init','for (int i = 0; i < 8; i++) mbar_init')
sub('rows of V from below; all meet','rows of V from below; all meet; 4d in, in')
sub('i < 9 ? 1 : C','i == 5 ? C : 1')
sub('bar_next = bar_in + 64, bar_group = bar_in + 72;','bar_next = bar_in + 32, bar_group = bar_in + 40;')
sub('smem_addr(sm + P::BARS + 72)','smem_addr(sm + P::BARS + 40)')
sub('    // a later panel of this cluster reads V and T from memory, or the careful way has used buffers of its own: all stores count\n','    // a later panel of this cluster reads V and T from memory: all stores count\n')
sub('  int *passes;\n',''); sub('void *colmax_, int *passes, void *partial','void *colmax_, void *partial'); sub('vt, low, ts, colmax, passes, made','vt, low, ts, colmax, made')
sub('void*, void*, void*, int*, void*, int, int); }','void*, void*, void*, void*, int, int); }'); sub('geqrf_large(at::Tensor a, std::optional<at::Tensor> passes)','geqrf_large(at::Tensor a)')
sub('passes ? passes->data_ptr<int>() : nullptr, ',''); sub('_large.geqrf_large(a, None)','_large.geqrf_large(a)')
i=t.index('4a   32 reflectors'); j=t.index('4b   The panels.')
t=t[:i]+t[j:]
sub('is tiny or rounding would grow, decided from exact numbers that are the same in every CTA, the panel goes the careful way: 4a, 32 columns at a time.','is tiny or rounding would grow, decided from exact numbers that are the same in every CTA, the panel goes column by column (4d).')
sub('''pivots at a time; the update of the rest by all.
''','''pivots at a time; the update of the rest by all.
4d   LAPACK's own geqr2 on the panel, in FP32: right for every panel.
''')
for a,b in (('4b','4a'),('4c','4b'),('4d','4c')):
    for x in (' %s)','(%s)','%s.','%s  ',' %s '): t=t.replace(x%a,x%b)
t=t.replace('exchange of 4c;','exchange of 4b;').replace('matrices of 4c;','matrices of 4b;')
import re
name=re.search(r'"""(v\d+)',t).group(1); parent=sys.argv[1].split('/')[-1][:-3]
i=t.index('"""v1'); j=t.index('\nAlgorithm')
t=t[:i]+'"""v137 large, fewer lines: '+name+', and where a panel cannot go the common way it goes column by column.\n'+t[j:]
t=re.sub(r'Parent     \w+','Parent     '+parent,t,count=1)
sub('qrkit_large_'+name,'qrkit_large_v137')
open(sys.argv[2],'w').write(t)
