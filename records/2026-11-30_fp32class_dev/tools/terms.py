import sys,numpy as np,torch,itertools
sys.path.insert(0,'/work/main'); sys.path.insert(0,'/work/main/harness')
import reference, inspect
from harness.residuals import residuals
torch.set_num_threads(1)
f16=lambda x: x.astype(np.float16).astype(np.float64)
def terms(x,t):
    h=f16(x)
    return (h, f16(x-h) if t==2 else np.zeros_like(h))
def prod(a,b,ta,tb):   # a' b
    ah,al=terms(a,ta); bh,bl=terms(b,tb)
    return ah.T@bh+ah.T@bl+al.T@bh
def qr(A,PV,PC,PW,nb=64,sub=32,tf=False):
    A=A.astype(np.float64); n=A.shape[0]; H=np.zeros_like(A); tau=np.zeros(n)
    blocks=[]
    for k in range(0,n,nb):
        e=min(n,k+nb); C=A[:,k:e].copy()
        mx=np.abs(C).max(0); sc=np.where(mx>0,2.0**(6-np.floor(np.log2(np.where(mx>0,mx,1)))),1); C*=sc
        for lo,V,T in blocks:
            W=prod(V,C[lo:],PV,PC); Wp=T.T@W
            C[lo:]-=prod(V.T,Wp,PV,PW)
        Vp=np.zeros((n-k,e-k)); tp=np.zeros(e-k)
        for s in range(0,e-k,sub):
            t=min(e-k,s+sub)
            P=C[k+s:,s:t].copy(); m=t-s; V=np.zeros_like(P); R=P.copy()
            for j in range(m):
                x=R[j:,j].copy(); nr=np.linalg.norm(x)
                if nr==0 or len(x)==1: continue
                beta=-np.copysign(nr,x[0]); v=x.copy(); v[0]-=beta; v/=v[0]
                R[j:,j:]-=np.outer(v*(2/(v@v)),v@R[j:,j:]); V[j:,j]=v
            h,l=terms(V,PV); V=h+l
            tt=np.array([2/(v@v) if v@v>0.5 else 0 for v in V.T])
            C[k+s:,s:t]=R
            Vp[s:,s:t]=V; tp[s:t]=tt
            if t<e-k:
                S=np.triu(V.T@V,1); T=np.linalg.inv(np.diag(1/np.where(tt==0,1,tt))+S); T[:,tt==0]=0;T[tt==0]=0
                W=prod(V,C[k+s:,t:],PV,2); C[k+s:,t:]-=prod(V.T,T.T@W,PV,2)
            # R rows
        S=np.triu(Vp.T@Vp,1); T=np.linalg.inv(np.diag(1/np.where(tp==0,1,tp))+S); T[:,tp==0]=0;T[tp==0]=0
        blocks.append((k,Vp,T)); tau[k:e]=tp
        U=np.triu(C[k:e])  # upper
        C/=sc
        H[:k,k:e]=C[:k]; H[k:,k:e]=np.tril(Vp,-1)
        H[k:e,k:e]+=np.triu(C[k:e])
    return H.astype(np.float32),tau.astype(np.float32)
if __name__=='__main__':
    n=int(sys.argv[1]); cases=sys.argv[2].split(',')
    for c in cases:
        prof,*rest=c.split(':'); cond=int(rest[0]) if rest else 2
        a=reference.generate_input(batch=1,n=n,seed=5,cond=cond,case=prof) if 'case' in inspect.signature(reference.generate_input).parameters else None
        A=a[0].numpy()
        for o in [(1,1,1),(1,2,2),(2,1,1),(2,2,1),(2,1,2),(2,2,2)]:
            H,t=qr(A,*o); r=residuals(a,torch.tensor(H)[None],torch.tensor(t)[None])
            print(n,c,'V,C,W',o,'factor %.3f orth %.3f col %.3f'%(r.factor.max(),r.orth.max(),r.column.max()),flush=True)
        h,t=torch.geqrf(a); r=residuals(a,h,t); print(n,c,'geqrf factor %.3f col %.3f'%(r.factor.max(),r.column.max()),flush=True)
