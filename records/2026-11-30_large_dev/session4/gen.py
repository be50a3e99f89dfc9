import sys,re
# gen.py CU NAME : writes NAME.py (plain) and NAMEt.py (stamps, trace, tunable)
base=open('/work/main/submissions/v69_large_one_gram.py').read()
def wrap(cu,name,trace,head=None):
    head=head or base.split('LARGE_CUDA = r"""',1)[0]; tail=open('/tmp/large4/tail.txt').read().replace('NAME',name)
    if trace:
        tail=tail.replace('namespace large { struct Sizes','namespace large { void get_trace(void*, void*, bool); void tune(double, double, double, double, int, int, int); struct Sizes')
        tail=tail.replace('functions=["geqrf_large", "side_by_side"]','functions=["geqrf_large", "side_by_side", "get_trace", "tune"]')
        i=tail.index('bool side_by_side() { return')
        tail=tail[:i]+'''std::vector<at::Tensor> get_trace(bool clear) { at::Tensor a = at::empty({64, 128, 3}, at::kLong), b = at::empty({512, 8}, at::kLong); large::get_trace(a.data_ptr(), b.data_ptr(), clear); return {a, b}; }
void tune(double a, double b, double c, double d, int u, int ps, int rows) { large::tune(a, b, c, d, u, ps, rows); }
'''+tail[i:]
    return head+'LARGE_CUDA = r"""\n'+cu.lstrip('\n')+'"""\n\n'+tail
def traced(s):
    def ins(anchor,text,after=False,n=1):
        nonlocal s
        assert s.count(anchor)==n,(s.count(anchor),anchor)
        i=s.index(anchor); 
        if after: i+=len(anchor)
        s=s[:i]+text+s[i:]
    ins('template <int NW, int NTL, int C>\n__device__ __forceinline__ void panel_step' if 'template <int NW, int NTL, int C>\n__device__ __forceinline__ void panel_step' in s else 'template <int NW, int NTL, int C, bool DSMEM>\n__device__ __forceinline__ void panel_step','''__device__ unsigned long long trace_p[64][128][3], trace_f[512][8];
__device__ unsigned long long trace_s[2][32];
#define STAMP(id) if (tid == 0 && blockIdx.x == 0) { uint32_t t_ = clock(); ((uint32_t *)(sm + 1808))[id] += t_ - last_; last_ = t_; }
__device__ __forceinline__ unsigned long long gtime() { unsigned long long t; asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(t)); return t; }
''')
    ins("  const size_t mat = p.mat0 + slot;\n  const int n = p.n, c0 = 64 * k, row0 = k ? 64 : 0, rb = c0 - row0,\n",'  uint32_t last_ = clock();\n  if (tid == 0 && rank == 0) trace_p[p.mat0 + slot][k][0] = gtime();\n')
    ins("  if (tid < 64) {\n    uint32_t b = __ldcg(p.colmax + mat * n + c0 + tid);","  if (tid == 0 && rank == 0) trace_p[mat][k][1] = gtime();\n  STAMP(0)\n")
    for a,i in STAMPS: ins(a,f'\n  STAMP({i})\n') if s.count(a)==1 else print('no stamp',i,s.count(a))
    ins("  int k = 0;\n#pragma unroll 1\n",'''  if (threadIdx.x < 28) ((uint32_t *)(sm + 1808))[threadIdx.x] = 0;
  auto dump = [&](int w) { __syncthreads(); if (threadIdx.x < 28 && blockIdx.x == 0) { trace_s[w][threadIdx.x] += ((uint32_t *)(sm + 1808))[threadIdx.x]; ((uint32_t *)(sm + 1808))[threadIdx.x] = 0; } __syncthreads(); };
''')
    s=re.sub(r'(panel_step<8, [24], C>\(p, k[^;]*;\n\s*finish\((?:k)?\);\n)',r'\1    if (threadIdx.x == 0 && rank == 0) trace_p[p.mat0 + slot][k][2] = gtime();\n',s)
    i=s.index('panel_step<8, 2',s.index('geqr2(const __grid_constant__')); j=s.rindex('#pragma unroll 1',0,i); s=s[:j]+'dump(0);\n'+s[j:]
    i=s.index('finish(',s.index('panel_step<8, 2',s.index('geqr2(const __grid_constant__'))); i=s.index('\n  }\n',i)+5; s=s[:i]+'dump(1);\n'+s[i:]
    # workers
    if 'give_out' in s:
        ins("      wait_for_task(slot);\n","      const unsigned long long tw0 = gtime();\n")
        ins("      wait_for_task(slot);\n","      trace_f[blockIdx.x][0] += gtime() - tw0; \n",True)
        ins("    const size_t mat = p.mat0 + (k & 63);\n","    const unsigned long long t1 = gtime();\n",True)
        i=s.index("    __syncthreads();\n    if (tid == 0) {\n      if (parts > 1) __threadfence();")
        s=s[:i]+"    if (tid == 0) { unsigned long long t2 = gtime(); int kind = half == 2 ? 0 : half == 3 ? 3 : k64 ? 1 : 2; trace_f[blockIdx.x][1 + kind] += t2 - t1; trace_f[blockIdx.x][5 + (kind > 2 ? 2 : kind)]++; }\n"+s[i:]
        ins("static int workers_an_sm(int n) {","static int FORCE = 0;\n")
        ins("static int workers_an_sm(int n) { return ","FORCE ? FORCE : ",True)
    else:
        ins("        const int4 k = __ldg(p.tasks + t);","        const unsigned long long tw0 = gtime();\n")
        ins("        next = k;\n","        trace_f[blockIdx.x][0] += gtime() - tw0; \n",True)
        ins("    const int part = k.x >> 18 & 7, parts = (k.x >> 21 & 7) + 1;\n","    const unsigned long long t1 = gtime();\n",True)
        i=s.index("    __threadfence();\n    __syncthreads();\n    if (tid == 0 && (parts == 1") if "    __threadfence();\n    __syncthreads();\n    if (tid == 0 && (parts == 1" in s else s.index("    __syncthreads();\n    if (tid == 0) {\n      if (parts > 1) __threadfence();")
        s=s[:i]+"    if (tid == 0) { unsigned long long t2 = gtime(); int kind = half == 2 ? 0 : half == 3 ? 3 : k.x >> 24 & 3 ? 1 : 2; trace_f[blockIdx.x][1 + kind] += t2 - t1; trace_f[blockIdx.x][5 + (kind > 2 ? 2 : kind)]++; }\n"+s[i:]
        # tunables
        s=s.replace("constexpr float PANEL_TALL","static float PANEL_TALL"); s=s.replace("constexpr int PART_ROWS","static int FORCE = 0, URGENT = 0, PART_ROWS")
        (s.count('SLACK_STRIP = 95') or ins("static int urgent_panels(int n) { return ","URGENT ? URGENT : ",True))
        s=s.replace("constexpr float SLACK_PANEL","static float SLACK_PANEL")
        ins("static int workers_an_sm(int n) { return ","FORCE ? FORCE : ",True)
        s=s.replace("  static std::map<std::tuple<int, int, int>, List> kept;\n",""); ins("static const List &task_list(","static std::map<std::tuple<int, int, int>, List> kept;\n")
    ins("const char *run(const float *a",'''void get_trace(void *a, void *b, bool clear) {
  cudaDeviceSynchronize();
  cudaMemcpyFromSymbol(a, trace_p, sizeof(trace_p)); cudaMemcpyFromSymbol((char *)a + 62 * 128 * 3 * 8, trace_s, sizeof(trace_s)); cudaMemcpyFromSymbol(b, trace_f, sizeof(trace_f));
  if (clear) { void *x; cudaGetSymbolAddress(&x, trace_f); cudaMemset(x, 0, sizeof(trace_f)); cudaGetSymbolAddress(&x, trace_s); cudaMemset(x, 0, sizeof(trace_s)); }
}
void tune(double a, double b, double c, double d, int u, int ps, int rows) {
  TUNEBODY
}
''')
    s=s.replace('TUNEBODY','FORCE = ps;' if 'give_out' in s else 'PANEL_TALL = a; PANEL_SHORT = b; RATE_ONE = c; RATE_TWO = d; URGENT = u; FORCE = ps; PART_ROWS = rows; kept.clear();' + (' if (u) SLACK_STRIP = u;' if 'SLACK_STRIP = 95' in s else ''))
    return s
L="  "
STAMPS=[("  // ---- larfb: C -= V T' V'C with the 64",1),("    // partial W over this CTA's rows: warp",2),("    // sums of this CTA's columns, W' = T'W for them",3),("    UNROLL for (int ks = 0; ks < 4; ks++) { // C^T += (-W')^T V^T",4),
("  // ---- rows above the pivot rows are final",5),("  if (tid == 0) {\n    mbar_expect(xbar_in, 10240 + FT * 16);",6),("  if (above) // the rows above leave",7),("  // ---- (2) recurrence, repeated",8),("  recurrence(z, sG, sA, w, lane",9),
("  waiting = false;\n  if (tid == 32)",15),("  const bool failed = *sFlag;",16),("    if (loaded) { // the updates of the next",17),("    // ---- (4) V'V, T",18),("    if (pivots_here) // the pivot rows of H",19),("    sum_and_spread(smem_addr(sm + P::X), std::false_type());",20),
("    if (tid < 64) sTau[tid] = 2.f",21),("    larft64(sX, sTau, sA, sG, tid);",22),("    if (rank == 0 && tid < 64) p.tau[mat * n + c0 + tid] = sTau[tid];",23),("    here = same_shape;",24)]
if __name__=='__main__':
    cu,name=sys.argv[1:3]; s=open(cu).read()
    open(f'/tmp/large4/{name}.py','w').write(wrap(s,name,False)); t=traced(s); open(f'/tmp/large4/{name}t.cu','w').write(t); open(f'/tmp/large4/{name}t.py','w').write(wrap(t,name+'t',True))
