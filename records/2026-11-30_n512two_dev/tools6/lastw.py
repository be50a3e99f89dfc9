import numpy as np
rng=np.random.default_rng(3)
def window(P0):
    """the recurrence in float32 on G of P's two fp16 terms; returns R, V(top), M sums, pivot ratios, residual"""
    n=P0.shape[1]
    P=P0.astype(np.float32)
    hi=P.astype(np.float16).astype(np.float32); lo=(P-hi).astype(np.float16).astype(np.float32); Pt=hi+lo
    G=(hi.T@hi+hi.T@lo+lo.T@hi).astype(np.float32)
    nrm=np.diag(G); e=((127-(nrm.view(np.int32)>>23))>>1); own=np.ldexp(np.float32(1),e).astype(np.float32)
    G=G*own[:,None]*own[None]; top=Pt[:n]*own
    R=np.zeros((n,n),np.float32); g=G.copy(); piv=np.zeros(n,np.float32)
    for i in range(n):
        piv[i]=g[i,i]; r=1/np.sqrt(max(g[i,i],np.float32(1e-37))); R[i,i:]=g[i,i:]*r
        g[i+1:,i+1:]-=np.outer(R[i,i+1:],R[i,i+1:])
    ratio=piv/np.diag(G)
    T=top.copy(); V=np.zeros((n,n),np.float32); U=np.zeros((n,n),np.float32); Ro=np.zeros((n,n),np.float32)
    for i in range(n):
        s=-1.0 if T[i,i]>=0 else 1.0
        beta=s*R[i,i]; row=s*R[i]  # row i of R with sign
        w=T[i]-row; w[:i]=0
        inv=1/(T[i,i]-beta); V[i,i]=1; V[i+1:,i]=T[i+1:,i]*inv
        U[i,i]=T[i,i]-beta; U[i,i+1:]=w[i+1:]
        T[i+1:,i+1:]-=np.outer(V[i+1:,i],w[i+1:]); Ro[i,i:]=row[i:]
    M=np.linalg.inv(U.astype(np.float64)); ms=np.abs(M).sum(0)
    # residual: apply stored reflectors exactly to P0 (scaled)
    A=(P0*own).astype(np.float64); V16=V.astype(np.float16).astype(np.float64)
    for i in range(n):
        v=V16[:,i]; A-=np.outer(v,(2/(v@v))*(v@A))
    res=np.abs(A-np.triu(Ro.astype(np.float64)))
    # only V's rounding: same with exact R
    return ms,ratio,res.sum(0)/1.0,np.linalg.norm(P0*own,axis=0)
cnt=0; last=0; rows=[]
N=4000
for t in range(N):
    P=rng.standard_normal((32,32))
    ms,ra,res,nm=window(P)
    trig=np.where(ms>=1000)[0]; pt=np.where(ra<=1e-5)[0]
    rows.append((ms.max(),ra.min(),(res/nm).max(),trig,pt))
tr=[r for r in rows if len(r[3])]; pv=[r for r in rows if len(r[4])]
print('M triggers',len(tr)/N,'pivot triggers',len(pv)/N,'either',sum(1 for r in rows if len(r[3]) or len(r[4]))/N)
print('M only the last column',sum(1 for r in tr if list(r[3])==[31])/N,'columns',np.bincount(np.concatenate([r[3] for r in tr]),minlength=32)[20:])
print('1-norm residual/|p| typical median %.2e p99 %.2e'%(np.median([r[2] for r in rows if not len(r[3])]),np.percentile([r[2] for r in rows if not len(r[3])],99)))
print('in M-triggered (no restart): median %.2e max %.2e'%(np.median([r[2] for r in tr]),max(r[2] for r in tr)), 'pivot-triggered: %.2e max %.2e'%(np.median([r[2] for r in pv]),max(r[2] for r in pv)))
for lim in (2000,3000,5000,10000,30000): print(lim,'P %.4f'%(sum(1 for r in rows if r[0]>=lim)/N),'worst residual among those below',max(r[2] for r in rows if r[0]<lim and not len(r[4])))
