import sys, ctypes, torch
sys.path.insert(0,'/work/main')
import reference as R
from harness.residuals import residuals
lib=ctypes.CDLL('./'+sys.argv[1]); n=int(sys.argv[2])
def run(name,a):
    h=torch.empty(1,n,n); tau=torch.full((1,n),float('nan')); fl=(ctypes.c_int*1)()
    lib.qr(n,1,ctypes.c_void_p(a.data_ptr()),ctypes.c_void_p(h.data_ptr()),ctypes.c_void_p(tau.data_ptr()),fl)
    r=residuals(a,h.mT,tau); print(name,'factor %.3f orth %.3f col %.3f nan %d %d'%(float(r.factor.max()),float(r.orth.max()),float(r.column.max()),int((~torch.isfinite(h)).sum()),int((~torch.isfinite(tau)).sum())),flush=True)
g=torch.Generator().manual_seed(5)
d=torch.randn(1,n,n,generator=g)
run('zero',torch.zeros(1,n,n)); run('eye',torch.eye(n)[None].contiguous())
run('1e30',d*1e30); run('1e-30',d*1e-30)
z=d.clone(); z[:,:,3]=0; z[:,:,40:50]=0; z[:,:,100]=z[:,:,99]; z[:,:,0]=0; run('zero cols',z)
z=d.clone(); z[:,5:]=0; run('rows zero',z)
z=torch.ones(1,n,n); run('ones',z)
z=d*torch.logspace(-30,30,n); run('graded',z.contiguous())
