import re,sys
exec(open('mk.py').read().split("t=open(sys.argv[1]).read()")[0])
t=open(sys.argv[1]).read()
i=t.index('// ---------------------------------------------------------------- 6.'); t=t[:i]
a=t.index('#if defined(__CUDA_ARCH_FEAT_SM90_ALL)'); b=t.index('#endif',a)+6; t=t[:a]+t[b:]
t=t.replace('asm volatile("bar.sync 1,%0;" ::"n"(LARFB_THREADS) : "memory");','bar_start<LARFB_THREADS>();').replace('asm volatile("griddepcontrol.wait;" ::\n                   : "memory");','')
body=open('mk.py').read(); i=body.index('# remove asm functions'); j=body.index("assert 'asm' not in t"); exec(body[i:j])
t=t.replace('__shared__ int4 next[2];','static int4 next_[64][2]; int4 *next = next_[cur->cta];').replace('__launch_bounds__(LARFB_THREADS, 1)','').replace('const __grid_constant__ LarfbArgs p, const __grid_constant__ StripMaps maps','const LarfbArgs &p, const StripMaps &maps')
t=t.replace('extern __shared__ __align__(128) char sm_raw[];','char *sm_raw=(char*)ctas[cur->cta].smem;'); t=re.sub(r'asm volatile\("fence.proxy[^;]*;"[^;]*\);','',t)
assert 'asm' not in t, t[t.index('asm')-300:t.index('asm')+200]
pre=open('/tmp/large6/emu/shim.h').read()
i=t.index('namespace large {')+len('namespace large {')
open('/tmp/large6/emu/gen2.h','w').write(t[:i]+pre+t[i:]+'}\n')
