import sys,re
src,name=sys.argv[1:]
g=open('/tmp/large4/gen.py').read()
REC='solve_four' in open(src).read()
i=g.index('def traced(s):'); j=g.index('STAMPS=['); k=g.index(']\n',j)+2 if ']\n' in g[j:] else len(g)
body=g[i:k]
a=body.index("    # workers\n"); b=body.index('    ins("const char *run(const float *a"'); body=body[:a]+body[b:]
T7='cp4(smem_addr' in open(src).read()
if T7: body=body.replace('  if (tid < 64) {\\n    uint32_t b = __ldcg(p.colmax + mat * n + c0 + tid);','  float acc[2 * S][NTL][4];\\n  const uint32_t *maxima')
ONE='panel_step<8, 2' not in open(src).read()
if ONE:
    x=body.index("    i=s.index('panel_step<8, 2'"); y=body.index("    i=s.index('finish('",x); y=body.index('\n',y)+1; body=body[:x]+body[y:]
    body=body.replace('ins("  int k = 0;\\n#pragma unroll 1\\n",','ins("#pragma unroll 1\\n  for (int k = 0; k < p.n / 64; k++) {\\n    panel_step",')
exec(body)
def alt(i,new):
    for k,(a,b) in enumerate(STAMPS):
        if b==i and open(src).read().count(a)!=1: STAMPS[k]=(new,i)
alt(7,"  if (above && w >= 3) // the rows above leave"); alt(15,"  waiting = false;\n  auto ready"); alt(17,"    auto load_next = [&] {"); alt(19,"    if (7 - w < 32 / C) {"); alt(18,"    // ---- (4) V'V, T\n    if (tid == 192")
t=open(src).read(); a=t.index('LARGE_CUDA = r"""')+len('LARGE_CUDA = r"""'); b=t.index('"""',a)
s=t[a:b]
if 'extern __shared__ __align__(128) char sm_raw' in s:
    pass
if 'bulk_store' in s:
    STAMPS=[x for x in STAMPS]
s=traced(s)
if ONE: s=re.sub(r'(    if \(threadIdx.x == 0 && rank == 0\) trace_p\[p.mat0 \+ slot\]\[k\]\[2\] = gtime\(\);\n)',r'\1    dump(p.n - 64 * (k - (k > 0)) <= 128 * C);\n',s); assert 'dump(p.n' in s
def sub(o,n,c=1):
    global s
    assert s.count(o)==c,(s.count(o),o); s=s.replace(o,n)
import re as _r; SB=_r.search(r'      if \(w < 2\) solve_block(<false>)?\(',s).group(0); sub(SB,'      STAMP(13)\n'+SB)
i=s.index(SB); j=s.index('  waiting = false;',i); x=s[i:j]
x=x.replace('      block_sync<NT>();\n      if (b == 7)','      STAMP(9)\n      block_sync<NT>();\n      STAMP(10)\n      if (b == 7)').replace('      publish_block','      STAMP(11)\n      publish_block').replace('      block_sync<NT>();\n    }\n','      STAMP(12)\n      block_sync<NT>();\n    }\n')
s=s[:i]+x+s[j:]
NEW='static Model model(int n)' in s
if NEW:
    X='PANEL_TALL = a; PANEL_SHORT = b; RATE_ONE = c; RATE_TWO = d; URGENT = u; FORCE = ps; PART_ROWS = rows; kept.clear();'
    assert X in s
    s=s.replace(X,'OVER = Model{(float)a, (float)b, (float)c, u, rows'+(', (float)d' if 'float strip;' in s else '')+'}; kept.clear();').replace('static Model model(int n) { return ','static Model OVER;\nstatic Model model(int n) { if (OVER.part_rows) return OVER; return ')
else:
    X='PANEL_TALL = a; PANEL_SHORT = b; RATE_ONE = c; RATE_TWO = d; URGENT = u; FORCE = ps; PART_ROWS = rows; kept.clear();'
    assert X in s
    s=s.replace(X,'PANEL_TALL = a; PANEL_SHORT = b; RATE = c; URGENT = u; PART_ROWS = rows; LATES kept.clear();'.replace('LATES','LATEF = ps; FAR_ROWS = (int)d;' if 'late_columns' in s and 'part_rows(int n' in s else 'LATEF = ps;' if 'late_columns' in s else ''))
    if 'late_columns' in s: s=s.replace('static int late_columns(int n) { return ','static int LATEF = -1;\nstatic int late_columns(int n) { return LATEF >= 0 ? LATEF : ')
def sub(o,n,c=1):
    global s
    assert s.count(o)==c,(s.count(o),o); s=s.replace(o,n)
if not NEW:
    sub("constexpr float PANEL_TALL","static float PANEL_TALL"); sub("constexpr int PART_ROWS","static int URGENT = 0, PART_ROWS") if "constexpr int PART_ROWS" in s else sub("static int part_rows(int n, bool soon) { return ","static int URGENT = 0, PART_ROWS = 0, FAR_ROWS = 0;\nstatic int part_rows(int n, bool soon) { return soon && PART_ROWS ? PART_ROWS : !soon && FAR_ROWS ? FAR_ROWS : ")
    sub("static int urgent_panels(int n) { return ","static int urgent_panels(int n) { return URGENT ? URGENT : ")
sub("  static std::map<std::tuple<int, int, int>, List> kept;\n",""); sub("static const List &task_list(","static std::map<std::tuple<int, int, int>, List> kept;\nstatic const List &task_list(")
sub('      mbar_wait(s + StripSmem::NEXT, i);\n','      const unsigned long long tw0 = gtime();\n      mbar_wait(s + StripSmem::NEXT, i);\n      const unsigned long long t1 = gtime();\n')
sub('      if (!no_copies) continue; // `drain` reports\n','''      if (tid == 0) { unsigned long long t2 = gtime(); int kind = no_copies ? 3 : task.single ? 1 : task.parts > 1 ? 2 : 0; trace_f[blockIdx.x][0] += t1 - tw0; trace_f[blockIdx.x][1 + kind] += t2 - t1; trace_f[blockIdx.x][5 + (kind > 2 ? 2 : kind)]++; }
      if (!no_copies) continue; // `drain` reports
''')
sub('__device__ unsigned long long trace_s[2][32];','__device__ unsigned long long trace_s[2][32], trace_w[16];\n#define WS(id) if (tid == 0 && blockIdx.x == 0) { long long t_ = clock64(); trace_w[id] += t_ - wlast_; wlast_ = t_; }')
CM='mine' if 'n + mine;' in s else 'cbase'
sub('  const uint32_t *cmax = p.colmax + mat * n + %s;\n  const uint32_t s'%CM,'  const uint32_t *cmax = p.colmax + mat * n + %s;\n  int wpass_'.replace('%s',CM)+' = 1;\n  long long wlast_ = clock64(); if (tid == 0 && blockIdx.x == 0) { trace_w[12] += CH; trace_w[13]++; }\n  const uint32_t s'.replace('CH','PAIR ? chunks : (chunks + 1) / 2' if 'PAIR' in s else '(chunks + 1) / 2'))
P_='ring.phase' if 'ring.phase' in s else 'phase'
sub('      %s ^= 1u << d;\n'%P_,'      %s ^= 1u << d;\n      WS(wpass_)\n'%P_)
i=s.index('  // ---- pass 1: W^T = C^T V'); j=s.index("  constexpr int H = "); x=s[i:j]
x=x.replace('    wg_fence();','    WS(2)\n    wg_fence();').replace('    wg_wait();\n    done();','    wg_wait();\n    WS(3)\n    done();\n    WS(4)').replace('    wg_wait();\n    fence_shared(); // C has been read\n    __syncwarp();\n    if (lane == 0) mbar_arrive(s + L::FREE + 8 * d);','    wg_wait();\n    WS(3)\n    fence_shared();\n    __syncwarp();\n    if (lane == 0) mbar_arrive(s + L::FREE + 8 * d);\n    WS(4)'); s=s[:i]+x+'  WS(0)\n'+s[j:]
sub("  // ---- -W'^T by blocks of 64: W0' = T0'W0, W1' = T1'(W1 - S'W0')\n  uint32_t high","  WS(5)\n  uint32_t high")
i=s.index("  // ---- pass 2: C^T += (-W'^T) V^T, from"); j=s.index('\n}\n',i); x=s[i:j]
x='  WS(10)\n  wpass_ = 6;\n'+x.replace('    wg_wait();\n    UNROLL for (int nt','    wg_wait();\n    WS(7)\n    UNROLL for (int nt').replace('    fence_shared(); // for the copy engine\n','    WS(8)\n    fence_shared(); // for the copy engine\n').replace('    wg_wait();\n    done();','    wg_wait();\n    WS(7)\n    done();\n    WS(8)').replace('  });','    WS(9)\n  });'); s=s[:i]+x+s[j:]
sub('cudaMemcpyFromSymbol(b, trace_f, sizeof(trace_f));','cudaMemcpyFromSymbol(b, trace_f, sizeof(trace_f)); cudaMemcpyFromSymbol((char *)a + 63 * 128 * 3 * 8, trace_w, sizeof(trace_w));')
sub('cudaGetSymbolAddress(&x, trace_s); cudaMemset(x, 0, sizeof(trace_s));','cudaGetSymbolAddress(&x, trace_s); cudaMemset(x, 0, sizeof(trace_s)); cudaGetSymbolAddress(&x, trace_w); cudaMemset(x, 0, sizeof(trace_w));')
# tracing symbols are used before panel_step: declare them early
i=s.index('__device__ unsigned long long trace_p[64]'); j=s.index('gtime() {',i); j=s.index('\n',j)+1
decl=s[i:j]; s=s[:i]+s[j:]
k=s.index('// ---------------------------------------------------------------- 2. column maxima'); s=s[:k]+decl+s[k:]
tail=t[b:]
tail=tail.replace('namespace large { struct Sizes','namespace large { void get_trace(void*, void*, bool); void tune(double, double, double, double, int, int, int); struct Sizes')
tail=tail.replace('functions=["geqrf_large", "side_by_side"]','functions=["geqrf_large", "side_by_side", "get_trace", "tune"]')
i=tail.index('bool side_by_side() { return')
tail=tail[:i]+'''std::vector<at::Tensor> get_trace(bool clear) { at::Tensor a = at::empty({64, 128, 3}, at::kLong), b = at::empty({512, 8}, at::kLong); large::get_trace(a.data_ptr(), b.data_ptr(), clear); return {a, b}; }
void tune(double a, double b, double c, double d, int u, int ps, int rows) { large::tune(a, b, c, d, u, ps, rows); }
'''+tail[i:]
tail=re.sub(r'"qrkit_large_\w+"','"qrkit_large_'+name+'"',tail)
open(name+'.py','w').write(t[:a]+s+tail)
