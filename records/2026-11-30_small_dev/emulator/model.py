import sys; sys.path[:0]=['/work/main','/work/main/harness']
import numpy as np, torch, reference
from residuals import residuals
f=np.float32
def sp(x):
    with np.errstate(over='ignore'):
        h=x.astype(np.float16).astype(f); l=(x-h).astype(np.float16).astype(f)
    return h,l
def mm(a,b):  # a'b-like product of split operands: three terms
    ah,al=sp(a); bh,bl=sp(b); return (ah@bh+(al@bh+ah@bl)).astype(f)
def panel_col(P):
    m=P.shape[0]; x=P.astype(f).copy(); V=np.zeros_like(x); tau=np.zeros(16,f); beta=np.zeros(16,f)
    for c in range(16):
        if c>=m: break
        g=f((x[c:,c]**2).sum()); 
        if not g>1e-28: V[c,c]=0; beta[c]=x[c,c]; continue
        a=x[c,c]; b=-np.copysign(np.sqrt(g),a); d=a-b
        v=np.zeros(m,f); v[c:]=x[c:,c]/d; v[c]=1
        h,l=sp(v); v=h+l
        t=f(2/(v@v)); x[:,c+1:]-=np.outer(v,t*(v@x[:,c+1:])).astype(f); V[:,c]=v; tau[c]=t; beta[c]=b; x[c,c]=b
    return x,V,tau
def qr(A,MAXK=8.,MINP=1/64,MING=64.,st=None):
    n=A.shape[0]; S=(n+15)//16; N=S*16
    C=np.zeros((N,N),f); C[:n,:n]=A
    mx=np.abs(C).max(0); e=np.maximum(np.floor(np.log2(np.maximum(mx,1e-38))),-118); sc=(2.0**(4-e)).astype(f); C*=sc
    H=np.zeros((N,N),f); tau=np.zeros(N,f); info=[]
    for k in range(S):
        r=16*k; P=C[r:,r:r+16].copy(); last=k==S-1; ok=not last
        if ok:
            g=mm(P.T,P); g0=np.diag(g).copy(); a=np.concatenate([g,np.eye(16,dtype=f)],1).astype(f); R=np.zeros((16,32),f); piv=np.zeros(16,f)
            with np.errstate(all='ignore'):
                for i in range(16):
                    piv[i]=a[i,i]; R[i]=a[i]/np.sqrt(a[i,i]); R[i,:i]=0; a-=np.outer(R[i,:16],R[i]).astype(f)
                b=np.concatenate([P[:16],np.zeros((16,16),f)],1); U=np.zeros((16,16),f); V1=np.eye(16,dtype=f); B=P[:16].copy(); Rt=np.zeros((16,16),f)
                for l in range(16):
                    s=-np.copysign(f(1),b[l,l]); b[l]-=s*R[l]; U[l,l:]=b[l,l:16]; Rt[l]=s*R[l,:16]
                    V1[l+1:,l]=b[l+1:,l]/b[l,l]
                    y=b[l]/b[l,l]; col=b[:,l].copy(); col[l]=0; b-=np.outer(col,y).astype(f); b[l]=y
                K=b[:,16:]; B-=Rt
                t=2.0**np.floor(np.log2(np.maximum(g0,1e-38))/2); Kh=(K*t[:,None]*t[None,:]).astype(f)
                kk=(Kh**2).sum(0)
                M=np.linalg.inv(U.astype(np.float64)).astype(f) if np.isfinite(U).all() and abs(np.diag(U)).min()>0 else U*np.nan
                gr=np.sqrt(((M**2).sum(1)*g0).max())
            ok=bool((g0>=MING).all() and (piv>=MINP*g0).all() and (kk<=MAXK**2).all())
            info.append((ok,np.sqrt(kk.max()),(piv/g0).min(),gr))
        if ok:
            E=P.copy(); E[:16]=B
            V=np.zeros_like(P); V[:16]=V1; V[16:]=mm(P[16:],M*256)/f(256); V=sum(sp(V)) if False else V
            T=Rt; tau[r:r+16]=2/(V.astype(f)**2).sum(0)
            H[r:r+16,r:r+16]=np.triu(Rt)+np.tril(V1,-1); H[r+16:,r:r+16]=V[16:]
            if not last:
                X=mm(E.T,C[r:,r+16:]); Xs=(X/t[:,None]).astype(f); Y=mm(Kh,Xs); Y=(Y/t[:,None]).astype(f); C[r:,r+16:]-=mm(E,Y)
        else:
            x,V,tt=panel_col(P); tau[r:r+16]=tt; H[r:,r:r+16]=np.triu(x)+np.tril(V,-1)
            if not last:
                w=V.T@V; Ti=np.triu(w,1)+np.diag(np.where(tt>0,1/np.where(tt>0,tt,1),1)); T=np.linalg.inv(Ti); T[:,tt==0]=0; T[tt==0]=0
                X=mm(V.T,C[r:,r+16:]); Y=mm(T.T.astype(f),X); C[r:,r+16:]-=mm(V,Y)
        H[:r,r:r+16]=C[:r,r:r+16]
    for j in range(S*16):
        H[:j+1,j]/=sc[j]
    return H[:n,:n],tau[:n],info
if __name__=='__main__':
    mk=float(sys.argv[1]) if len(sys.argv)>1 else 8.; mp=float(sys.argv[2]) if len(sys.argv)>2 else 1/64
    for n in (33,40,64,176,352):
        for case in ('dense','upper','band','rowscale','nearcollinear','nearrank','rankdef','clustered'):
            w=[0,0,0];nf=0;np_=0;mkk=0;mg=0
            for seed in range(6 if n<100 else 2):
                a=reference.generate_input(1,n,[0,1,2,4][seed%4] if case=='dense' else 0,seed+n,case)
                with np.errstate(all='ignore'): h,t,info=qr(a[0].numpy(),mk,mp)
                r=residuals(a,torch.tensor(h)[None],torch.tensor(t)[None]).worst()
                for z,kx in enumerate(('factor','orth','column')): w[z]=r[kx] if not r[kx]<=w[z] else w[z]
                nf+=sum(not i[0] for i in info); np_+=len(info); oks=[i for i in info if i[0]]
                if oks: mkk=max(mkk,max(i[1] for i in oks)); mg=max(mg,max(i[3] for i in oks))
            print(n,case,'factor %.3g orth %.3g column %.3g'%tuple(w),'fallback %d of %d'%(nf,np_),'max K %.3g growth %.3g'%(mkk,mg),flush=True)
