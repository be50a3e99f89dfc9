import sys,ctypes,time,torch,os
sys.path.insert(0,'/work/main'); import reference as R
from harness.residuals import residuals
torch.set_num_threads(1)
lib=ctypes.CDLL(os.environ.get('EMU','./emu.so'))
n,NTL,NS,seed=map(int,sys.argv[1:5])
for case in sys.argv[5:]:
    name,_,c=case.partition(':'); a=R.generate_input(1,n,int(c or 0),7,name); h=torch.full((1,n,n),float('nan')); tau=torch.full((1,n),float('nan')); t=time.time(); p=ctypes.c_void_p
    assert lib.qr(p(a.data_ptr()),p(h.data_ptr()),p(tau.data_ptr()),n,NTL,NS,seed)==0
    print(case,n,bool(torch.isfinite(h).all()),{k:round(v,4) for k,v in residuals(a,h,tau).worst().items()},f'{time.time()-t:.1f}s',flush=True)
