import os,sys,ctypes,torch
sys.path.insert(0,'/work/main'); import reference as R
from harness.residuals import residuals
torch.set_num_threads(1)
lib=ctypes.CDLL(sys.argv[1])
def qr(a,cut=None):
    libc=ctypes.CDLL(None); libc.setenv(b'EMU_CUT',str(cut or 99).encode(),1)
    a=a.contiguous(); b,n=a.shape[0],a.shape[-1]; h=torch.empty(b,n,n); tau=torch.full((b,n),float('nan')); fl=(ctypes.c_int*b)()
    lib.qr(n,b,ctypes.c_void_p(a.data_ptr()),ctypes.c_void_p(h.data_ptr()),ctypes.c_void_p(tau.data_ptr()),fl); return h,tau
n=512; g=torch.Generator().manual_seed(3); d=torch.randn(1,n,n,generator=g)
if sys.argv[2]=='cut':
    z=d.clone(); z[:,:,300:]=0
    for name,a,c in (('dense',R.generate_input(1,n,2,5,'dense'),4),('rankdef',R.generate_input(1,n,0,5,'rankdef'),3),('rankdef',R.generate_input(1,n,0,5,'rankdef'),7),('zero tail',z,6),('band',R.generate_input(1,n,0,5,'band'),5)):
        x,y=qr(a),qr(a,c); r=residuals(a,*y).worst(); print(name,'cut',c,'same bits',torch.equal(x[0],y[0]) and torch.equal(x[1],y[1]),'%.3f'%r['factor'],flush=True)
else:
    m=d.clone(); m[:,:,100:300]=0; e=d.clone(); e[:,:,-1]=0
    r1=torch.outer(d[0,0],d[0,1])[None]; l=torch.zeros(1,n,n); l[:,-1]=d[:,0]
    for name,a in (('zero',torch.zeros(1,n,n)),('eye',torch.eye(n)[None]),('ones',torch.ones(1,n,n)),('mid zero',m),('last zero',e),('1e30',d*1e30),('1e-30',d*1e-30),('rank1',r1),('last row',l),('graded',d*torch.logspace(-30,30,n)[None,None])):
        h,t=qr(a); r=residuals(a,h,t).worst(); print(name,bool(torch.isfinite(h).all() and torch.isfinite(t).all()),'%.3f %.3f %.3f'%(r['factor'],r['orth'],r['column']),flush=True)
