import sys, ctypes, time, torch, os
sys.path.insert(0,'/work/main'); import reference as R
from harness.residuals import residuals
torch.set_num_threads(1)
lib=ctypes.CDLL(os.environ.get('EMU','./emu106.so'))
def qr(a):
    b,n=a.shape[0],a.shape[-1]; h=torch.empty(b,n,n); tau=torch.full((b,n),float('nan')); fl=(ctypes.c_int*b)()
    lib.qr(n,b,ctypes.c_void_p(a.data_ptr()),ctypes.c_void_p(h.data_ptr()),ctypes.c_void_p(tau.data_ptr()),fl); return h,tau,list(fl)
if __name__=='__main__':
    n=int(sys.argv[1]); seed=int(os.environ.get('SEED','7'))
    for case in sys.argv[2:]:
        name,_,c=case.partition(':'); a=R.generate_input(1,n,int(c or 0),seed,name); t=time.time(); h,tau,fl=qr(a); r=residuals(a,h,tau).worst()
        print(n,case,'passes',fl,bool(torch.isfinite(h).all()),{k:round(v,4) for k,v in r.items()},f'{time.time()-t:.1f}s',flush=True)
