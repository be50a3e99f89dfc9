import sys, torch, time
sys.path.insert(0,'/work/main')
import reference as R
from harness.residuals import residuals
from model import f16,two,house,tmat
torch.set_num_threads(1)
def kpass(P,noise):  # as the kernel: noisy Gram -> R, V_top, W, M, V
    b,m,w=P.shape
    G=P.mT@P; d=G.diagonal(dim1=-2,dim2=-1).sqrt(); N=torch.randn_like(G); G=G+noise*d[:,:,None]*d[:,None,:]*(N+N.mT)/2**.5
    U,info=torch.linalg.cholesky_ex(G,upper=True); U=torch.nan_to_num(U)
    A=P[:,:w].clone(); V=torch.zeros_like(A); W=torch.zeros_like(A); Rr=torch.zeros_like(A)
    for i in range(w):
        s=-torch.sign(A[:,i,i]); s=torch.where(s==0,-torch.ones_like(s),s)
        Rr[:,i,i:]=U[:,i,i:]*s[:,None]; W[:,i,i:]=A[:,i,i:]-Rr[:,i,i:]
        V[:,i:,i]=A[:,i:,i]/W[:,i,i][:,None]; V[:,i,i]=1
        A[:,i+1:,i+1:]-=V[:,i+1:,i][:,:,None]*W[:,i,i+1:][:,None,:]
    M=torch.linalg.solve_triangular(W,torch.eye(w,dtype=P.dtype).expand_as(W),upper=True)
    VV=P@M; VV[:,:w]=V
    amp=(P.norm(dim=1)[:,None,:]@M.abs())[:,0]
    return VV,V,W,M,Rr,amp.amax(-1)
def run(a,mode,terms=1,noise=0.):
    a=a.double(); b,n,_=a.shape; H=torch.zeros_like(a); TAU=torch.zeros(b,n,dtype=a.dtype); blocks=[]; AMP=0
    rnd=f16 if terms==1 else two
    for k in range(n//64):
        C=a[:,:,64*k:64*k+64].clone(); e=torch.floor(torch.log2(C.abs().amax(1,keepdim=True).clamp(min=1e-30))); sc=2.**(6-e); C=C*sc
        for j,(V,T) in enumerate(blocks):
            r=C[:,64*j:]; W=V.mT@rnd(r); Wp=rnd(T.mT@W); C[:,64*j:]=(r-V@Wp)
        C=C.float().double()
        t=64*k; P1=two(C[:,t:,:32]); C2=C[:,t:,32:]
        ex=P1.shape[1]>64 
        V,vt,W,M,Rr,amp=kpass(P1,noise); Vh=rnd(V); T1,tau1=tmat(Vh)
        if ex: AMP=max(AMP,float(amp.max()))
        if mode=='base': Wc=Vh.mT@rnd(C2); C2=C2-Vh@(T1.mT@Wc)
        else:
            P2=rnd(C2) if mode!='z2' else two(C2)
            G12=P1.mT@P2; nn=(P1.norm(dim=1)[:,:,None]*P2.norm(dim=1)[:,None,:]); G12=G12+noise*nn*torch.randn_like(G12)
            R12=torch.linalg.solve_triangular(Rr.mT,G12,upper=False)
            Z=torch.linalg.solve_triangular(vt,P2[:,:32]-R12,upper=False,unitriangular=True)
            C2=C2-Vh@two(Z)
        H[:,t:,t:t+32]=torch.tril(Vh,-1); H[:,t:t+32,t:t+32]+=Rr/sc[:,:,:32]; H[:,:t,t:t+64]=C[:,:t]/sc; H[:,t:t+32,t+32:t+64]=C2[:,:32]/sc[:,:,32:]
        C2=C2.float().double(); P2=two(C2[:,32:])
        if k+1<n//64: V2,_,_,_,R2,amp=kpass(P2,noise); AMP=max(AMP,float(amp.max()))
        else: V2,_,R2=house(P2)
        V2h=rnd(V2); T2,tau2=tmat(V2h)
        H[:,t+32:,t+32:t+64]=torch.tril(V2h,-1); H[:,t+32:t+64,t+32:t+64]+=R2/sc[:,:,32:]
        TAU[:,t:t+32]=tau1; TAU[:,t+32:t+64]=tau2
        VV=torch.zeros(b,n-t,64,dtype=a.dtype); VV[:,:,:32]=Vh; VV[:,32:,32:]=V2h; T,_=tmat(VV); blocks.append((VV,T))
    return H,TAU,AMP
if __name__=='__main__':
    n=int(sys.argv[1]); b=int(sys.argv[2]); seed=int(sys.argv[3])
    for case in sys.argv[4:]:
        nm,_,c=case.partition(':'); a=R.generate_input(b,n,int(c or 0),seed,nm)
        for mode,terms,noise in (('base',1,2**-25),('z',1,2**-25),('z2',1,2**-25),('base',2,2**-25),('z',2,2**-25)):
            t0=time.time(); h,tau,amp=run(a,mode,terms,noise); r=residuals(a,h,tau); print(n,case,mode,terms,'factor max %.2f mean %.2f column %.2f orth %.2f amp %.0f'%(r.factor.max(),r.factor.mean(),r.column.max(),r.orth.max(),amp),'%.0fs'%(time.time()-t0),flush=True)
