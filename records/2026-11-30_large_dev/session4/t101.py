import sys,ctypes,torch,time; sys.path[:0]=['/work/main','/work/main/harness']
import reference; from residuals import residuals
lib=ctypes.CDLL('/tmp/large4/emu/emu101.so'); P=ctypes.c_void_p
for arg in sys.argv[1:]:
    n,case,cond,seed=arg.split(','); n=int(n); a=reference.generate_input(1,n,int(cond),int(seed),case)
    h=torch.full_like(a,float('nan')); tau=torch.full((1,n),float('nan')); vt=torch.full((n,n),float('nan'),dtype=torch.half); ts=torch.full((n//64*8192,),float('nan'),dtype=torch.half)
    cm=a[0].abs().amax(0).view(torch.int32).contiguous(); ps=torch.zeros(n//64,dtype=torch.int32)
    t0=time.time(); r=lib.emu(P(a.data_ptr()),P(h.data_ptr()),P(tau.data_ptr()),P(vt.data_ptr()),P(ts.data_ptr()),P(cm.data_ptr()),P(ps.data_ptr()),n,n//64,int(seed)); assert r==0
    print(arg,'%.0f s'%(time.time()-t0),{k:round(v,3) for k,v in residuals(a,h,tau).worst().items()},'passes',ps.tolist(),'nan',int(h.isnan().sum()),flush=True)
