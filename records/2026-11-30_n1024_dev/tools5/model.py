import sys, torch, time
sys.path.insert(0,'/work/main')
import reference as R
from harness.residuals import residuals
torch.set_num_threads(1)
def f16(x): return x.to(torch.float16).double()
def two(x): h=f16(x); return h+f16(x-h)
def split(x): h=f16(x); return h,f16(x-h)
def house(P):  # exact in fp64: V, tau, R
    h,tau=torch.geqrf(P); w=P.shape[-1]
    V=torch.tril(h,-1); V.diagonal(dim1=-2,dim2=-1).fill_(1); V=V*(tau!=0)[:,None,:]
    return V,tau,torch.triu(h[:,:w])
def tmat(V):
    S=V.mT@V; d=S.diagonal(dim1=-2,dim2=-1); tau=torch.where(d>.5,2/d.clamp(min=.5),torch.zeros_like(d))
    inv=torch.triu(S,1); inv.diagonal(dim1=-2,dim2=-1).copy_(1/torch.where(tau>0,tau,torch.ones_like(tau)))
    return torch.linalg.inv(inv),tau
def run(a,mode,terms=1,noise=0.):
    a=a.double(); b,n,_=a.shape; H=torch.zeros_like(a); TAU=torch.zeros(b,n,dtype=a.dtype); blocks=[]
    rnd=f16 if terms==1 else two
    def rv(V): return rnd(V)
    for k in range(n//64):
        C=a[:,:,64*k:64*k+64].clone(); e=torch.floor(torch.log2(C.abs().amax(1,keepdim=True).clamp(min=1e-30))); sc=2.**(6-e); C=C*sc
        for j,(V,T) in enumerate(blocks):
            r=C[:,64*j:]; W=V.mT@rnd(r); Wp=rnd(T.mT@W); C[:,64*j:]=(r-V@Wp)
        if terms==1: C=C.float().double()
        t=64*k; P1=two(C[:,t:,:32]); C2=C[:,t:,32:]
        V,tau,Rr=house(P1); Vh=rv(V); 
        T1,tau1=tmat(Vh)
        if mode=='base':
            W=Vh.mT@rnd(C2); C2=C2-Vh@(T1.mT@W)
        else:
            # Z form: consistent with the rounded P2
            P2=rnd(C2)
            Qt=torch.triu(Rr)
            if mode=='zn': # R12 = R^-T G12 with noise
                G12=P1.mT@P2; G11=P1.mT@P1
                nn=(P1.norm(dim=1)[:,:,None]*P2.norm(dim=1)[:,None,:]); G12=G12+noise*nn*torch.randn_like(G12)
                mm=(P1.norm(dim=1)[:,:,None]*P1.norm(dim=1)[:,None,:]); NO=torch.randn_like(G11); NO=(NO+NO.mT)/2**.5; G11=G11+noise*mm*NO
                U,info=torch.linalg.cholesky_ex(G11,upper=True); s=torch.sign(Rr.diagonal(dim1=-2,dim2=-1)); U=U*s[:,:,None]
                R12=torch.linalg.solve_triangular(U.mT,G12,upper=False)
                # consistent: elimination of A - U
                Z=torch.linalg.solve_triangular(V[:,:32],P2[:,:32]-R12,upper=False,unitriangular=True)
            else:
                T0,_=tmat(V); Z=T0.mT@(V.mT@P2)
            C2=C2-Vh@two(Z) if mode!='zx' else C2-V@two(Z)
        H[:,t:,t:t+32]=torch.tril(Vh,-1); H[:,t:t+32,t:t+32]+=Rr/sc[:,:,:32]; H[:,:t,t:t+64]=C[:,:t]/sc; H[:,t:t+32,t+32:t+64]=C2[:,:32]/sc[:,:,32:]
        P2=two(C2[:,32:]); V2,_,R2=house(P2); V2h=rv(V2); T2,tau2=tmat(V2h)
        H[:,t+32:,t+32:t+64]=torch.tril(V2h,-1); H[:,t+32:t+64,t+32:t+64]+=R2/sc[:,:,32:]
        TAU[:,t:t+32]=tau1; TAU[:,t+32:t+64]=tau2
        VV=torch.zeros(b,n-t,64,dtype=a.dtype); VV[:,:,:32]=Vh; VV[:,32:,32:]=V2h; T,_=tmat(VV); blocks.append((VV,T))
    return H,TAU
if __name__=='__main__':
    n=int(sys.argv[1]); b=int(sys.argv[2]); 
    for case in sys.argv[3:]:
        nm,_,c=case.partition(':'); a=R.generate_input(b,n,int(c or 0),77,nm)
        for mode,terms,noise in (('base',1,0),('z',1,0),('zx',1,0),('zn',1,2**-23),('base',2,0),('z',2,0),('zn',2,2**-23)):
            t0=time.time(); h,tau=run(a,mode,terms,noise); r=residuals(a,h,tau); print(n,case,mode,terms,'factor max %.2f mean %.2f column %.2f orth %.2f'%(r.factor.max(),r.factor.mean(),r.column.max(),r.orth.max()),'%.0fs'%(time.time()-t0),flush=True)
