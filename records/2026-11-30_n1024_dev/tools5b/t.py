import sys,ctypes,time,torch,os
sys.path.insert(0,'/work/main'); import reference as R
from harness.residuals import residuals
torch.set_num_threads(1)
lib=ctypes.CDLL(os.environ.get('EMU','./emu.so'))
def run(a,C=2,terms=2,seed=0):
    b,n,_=a.shape; ld=(n+3)//4*4; h=torch.full((b,n,ld),float('nan')); tau=torch.full((b,n),float('nan'))
    r=lib.geqrf_emu(ctypes.c_void_p(a.data_ptr()),ctypes.c_void_p(h.data_ptr()),ctypes.c_void_p(tau.data_ptr()),n,ld,b,C,terms,seed); assert r>0,r
    return h[:,:,:n].mT,tau
if __name__=='__main__':
    C,T,n,seed=map(int,sys.argv[1:5])
    for case in sys.argv[5:]:
        name,_,c=case.partition(':'); a=R.generate_input(1,n,int(c or 0),7,name); t=time.time(); h,tau=run(a,C,T,seed); print('passes',lib.get_passes(),'of',(n+31)//32,case,n,bool(torch.isfinite(h).all()),{k:round(v,4) for k,v in residuals(a,h,tau).worst().items()},f'{time.time()-t:.1f}s',flush=True)
