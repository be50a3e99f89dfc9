import sys, ctypes, time, torch, numpy as np
sys.path.insert(0,'/work/main')
import reference as R
from harness.residuals import residuals
lib=ctypes.CDLL('./'+(sys.argv[3] if len(sys.argv)>3 else 'emu.so'))
def qr(a):
    b,n=a.shape[0],a.shape[-1]
    h=torch.empty(b,n,n); tau=torch.full((b,n),float('nan')); fl=(ctypes.c_int*b)()
    lib.qr(n,b,ctypes.c_void_p(a.data_ptr()),ctypes.c_void_p(h.data_ptr()),ctypes.c_void_p(tau.data_ptr()),fl)
    return h,tau,list(fl)
n=int(sys.argv[1]); cases=sys.argv[2].split(',')
print('smem',lib.smem_size())
for case in cases:
    cond=0
    name=case
    if ':' in case: name,cond=case.split(':'); cond=int(cond)
    a=R.generate_input(1,n,cond,int(sys.argv[4]) if len(sys.argv)>4 else int(time.time()),name)
    t=time.time(); h,tau,fl=qr(a); t=time.time()-t
    r=residuals(a,h,tau)
    print(f'{case:16s} factor {float(r.factor.max()):.3f} orth {float(r.orth.max()):.4f} column {float(r.column.max()):.3g} nan {int(torch.isnan(h).sum())} {int(torch.isnan(tau).sum())} flags {fl[0]:x} {t:.1f}s',flush=True)
