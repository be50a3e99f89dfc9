import sys,ctypes,time,torch
sys.path.insert(0,'/work/main'); import reference as R
import os; lib=ctypes.CDLL(os.environ.get('EMU','./emu.so'))
def run(a,C=4,G=2,seed=0):
    b,n,_=a.shape; ld=(n+3)//4*4; h=torch.full((b,n,ld),float('nan')); tau=torch.full((b,n),float('nan'))
    r=lib.geqrf_emu(ctypes.c_void_p(a.data_ptr()),ctypes.c_void_p(h.data_ptr()),ctypes.c_void_p(tau.data_ptr()),n,ld,b,C,G,seed); assert r>0,r
    return h[:,:,:n].mT,tau
if __name__=='__main__':
    C,G=int(sys.argv[1]),int(sys.argv[2]); n=int(sys.argv[3]); seed=int(sys.argv[4])
    for case in sys.argv[5:]:
        name,_,c=case.partition(':'); a=R.generate_input(1,n,int(c or 0),7,name); t=time.time(); h,tau=run(a,C,G,seed); ok,msg=R.check_implementation(a,(h,tau)); print(case,n,ok,msg,f'{time.time()-t:.1f}s',flush=True)
