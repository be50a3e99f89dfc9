import re,sys
t=open(sys.argv[1]).read()
t=t[:t.index('// ---------------------------------------------------------------- 5. larfb')]
# remove asm functions
def rm(name):
    global t
    pat=re.compile(r'(template <[^>]*>\s*)?__device__ (__forceinline__|__noinline__) [\w:]+ (\*)?'+name+r'\(')
    while True:
        m=pat.search(t)
        if not m: break
        i=m.start(); j=t.index('{',m.end()); d=0; k=j
        while True:
            if t[k]=='{': d+=1
            if t[k]=='}':
                d-=1
                if d==0: break
            k+=1
        t=t[:i]+t[k+1:]
for f in ('cp4','tensor_store','bulk_wait_read','bulk_store','bulk_commit','bulk_wait','st_async2','put_remote','fast_rcp','fast_rsqrt','smem_addr','fence_shared','mbar_arrive','fence_global','warpgroup_sync','mbar_wait_cta','tensor_load','mma','mma_tf32','cluster_meet','transpose8','ldsm4','ldsm4t','cp16','cp16z','cp_commit','cp_wait','map_rank','cluster_sync','cluster_arrive','cluster_wait','mbar_init','mbar_expect','mbar_wait','st_async','put2','bar_solvers','mbar_arrive_remote','mbar_wait_acquire','put1','get','block_sync','bar_arrive','bar_join','load4','load_acquire','add_release','wait_for','poll'): rm(f)
i=t.index('// colmax[mat][j] = bits'); j=t.index('// ---------------------------------------------------------------- 3.'); t=t[:i]+t[j:]
t=re.sub(r'#include <[^>]*>\n','',t)
t=re.sub(r'asm volatile\("rsqrt.approx.ftz.f32 %0,%1;" : "=f"\(r\) : "f"\(gd\)\);','r=1.f/sqrtf(gd);',t)
t=re.sub(r'asm volatile\("rcp.approx.ftz.f32 %0,%1;" : "=f"\(iv\) : "f"\((.*?)\)\);\n',r'iv=1.f/(\1);\n',t)
t=re.sub(r'asm volatile\("(griddep|fence)[^;]*;"[^;]*\);','',t)
t=t.replace('asm volatile("" ::: "memory");','')
t=t.replace('extern __shared__ __align__(128) char sm[];','char *sm = (char*)ctas[cur->cta].smem;')
t=t.replace('__launch_bounds__(256, 1)','').replace('__global__','').replace('__device__','').replace('__host__','').replace('__forceinline__','inline').replace('__noinline__','').replace('const __grid_constant__ PanelArgs p','const PanelArgs &p')
assert 'asm' not in t, t[t.index('asm')-300:t.index('asm')+200]
# words transport is not emulated
pre=open('/tmp/large6/emu/shim.h').read()
i=t.index('namespace large {')+len('namespace large {')
open('/tmp/large6/emu/gen.h','w').write(t[:i]+pre+t[i:]+'}\n')
