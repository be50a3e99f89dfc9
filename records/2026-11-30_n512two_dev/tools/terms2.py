# which panels need the second term: column-wise residual by panel when one operand has one term, everywhere or at one block j only
import sys; sys.path.insert(0,'/work/main/records/2026-11-30_fp32class_dev/tools')
import numpy as np, torch, terms as T
import reference as R
from terms import f16, prod
import terms
def colres(A,H,t):
    n=A.shape[0]; H=H.astype(np.float64); t=t.astype(np.float64); P=A.astype(np.float64).copy()
    for k in range(0,n,64):
        V=np.tril(H[:,k:k+64],-k-1); V=np.tril(H,-1)[:,k:k+64].copy(); V[range(k,min(n,k+64)),range(V.shape[1])]=1
        tt=t[k:k+64]; S=np.triu(V.T@V,1); Tm=np.linalg.inv(np.diag(1/np.where(tt==0,1,tt))+S); Tm[:,tt==0]=0; Tm[tt==0]=0
        P-=V@(Tm.T@(V.T@P))
    r=np.abs(np.triu(H)-P).sum(0)/(np.abs(A.astype(np.float64)).sum(0)+1e-300)/(n*2.0**-23)
    return r
n=512
for case,cond in (('dense',0),('band',0),('rowscale',0)):
    A=R.generate_input(1,n,cond,5,case)[0].numpy()
    for o in ((1,2,2),(2,1,2),(2,2,1)):
        H,t=terms.qr(A,*o); r=colres(A,H,t)
        print(case,'V,C,W',o,'worst by panel',' '.join('%.2f'%r[k:k+64].max() for k in range(0,n,64)),flush=True)
    # V one term by windows of 16: only the columns' own residue
    H,t=terms.qr(A,1,2,2); r=colres(A,H,t); print(case,'V one term, by 32 columns',' '.join('%.2f'%r[k:k+32].max() for k in range(0,n,32)),flush=True)
