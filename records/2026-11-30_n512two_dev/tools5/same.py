import os,sys,ctypes,torch
sys.path.insert(0,'/work/main'); import reference as R
torch.set_num_threads(1)
def mk(p):
    lib=ctypes.CDLL(p)
    def qr(a):
        b,n=a.shape[0],a.shape[-1]; h=torch.empty(b,n,n); tau=torch.full((b,n),float('nan')); fl=(ctypes.c_int*b)()
        lib.qr(n,b,ctypes.c_void_p(a.data_ptr()),ctypes.c_void_p(h.data_ptr()),ctypes.c_void_p(tau.data_ptr()),fl); return h,tau
    return qr
p,q=mk(sys.argv[1]),mk(sys.argv[2])
for c in sys.argv[4:]:
    name,_,cond=c.partition(':'); a=R.generate_input(1,int(sys.argv[3]),int(cond or 0),11,name); x,y=p(a),q(a); print(sys.argv[3],c,'same bits',torch.equal(x[0],y[0]) and torch.equal(x[1],y[1]),flush=True)
