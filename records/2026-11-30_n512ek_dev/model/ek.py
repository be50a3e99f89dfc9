import sys; sys.path.insert(0,'/work/main')
import numpy as np, torch, reference as R
from harness.residuals import residuals
f=np.float32
def h(x): return x.astype(np.float16).astype(f)
def split(x): hi=h(x); return hi,h(x-hi)
def two(x): a,b=split(x); return a+b
def run(A,PT=1e-3,MT=100.,c2='cert',w2='cert',w1t=False,noise=2.0**-22,lg=5,stat=None,two_at=5.5):
    n=A.shape[0]; H=np.zeros((n,n),f); tau=np.zeros(n,f); blocks=[]; sums=0.
    eps=1.1920929e-7; rng=np.random.default_rng(1)
    passes=0; twos=0; maxK=0;maxM=0
    for k in range(n//64):
        C=A[:,64*k:64*k+64].astype(f); s=np.abs(C).sum(0); sums=max(sums,s.max())
        e=np.where(s>0,lg-1-np.floor(np.log2(np.maximum(s,1e-38))),0.); sc=np.exp2(e).astype(f); C=C*sc
        largest=(np.sqrt((C.astype(np.float64)**2).sum(0))/sc).max()
        err=2e-4*largest; allowed=two_at*eps*np.sqrt(n)*sums
        tc=err>allowed if c2=='cert' else c2; tw=1.5*err>allowed if w2=='cert' else w2
        def apply(C,E,K,tc,tw,one_w):
            Wt=E.T@(two(C) if tc else h(C)); Wt=h(Wt) if one_w else two(Wt)
            W=two(K).astype(f)@Wt; W=two(W) if tw else h(W)
            return C-E@W
        for (E,K) in blocks: C=apply(C,E,K,tc,tw,w1t and not tw)
        H[:64*k,64*k:64*k+64]=C[:64*k]/sc
        Es=[];K64=np.zeros((64,64),f);E64=np.zeros((n,64),f)
        for w in range(2):
            o=64*k+32*w; done=0
            first=True
            while done<32:
                passes+=1
                P=C[:,32*w:32*w+32].copy(); P[:o+done]=0; P[:,:done]=0
                nr=np.sqrt((P.astype(np.float64)**2).sum(0))/sc[32*w:32*w+32]
                t2=2e-4*nr.max()*np.sqrt(n-o)>two_at*eps*n*sums; twos+=t2
                Ph=two(P) if t2 else h(P)
                G=(Ph.T@Ph).astype(f); d=np.diag(G).copy()
                own=np.where(d<1e-30,0,np.exp2(-np.floor(np.log2(np.maximum(d,1e-38))/2))).astype(f)
                own=np.minimum(own,f(2.**22))
                G=G*own[:,None]*own; G=G+noise*rng.standard_normal(G.shape).astype(f)*np.sqrt(np.diag(G)[:,None]*np.diag(G)); G=((G+G.T)/2).astype(f)
                wh=np.diag(G).copy(); top=Ph[o:o+32]*own
                B=top.copy(); Rr=np.zeros((32,32),f); Y=np.zeros((32,32),f); gi=np.zeros((32,32),f); M=np.eye(32,dtype=f); V=np.zeros((32,32),f); piv=np.zeros(32,f); inv=np.zeros(32,f)
                U=np.zeros((32,32),f)
                gi=np.eye(32,dtype=f)  # I part
                for i in range(32):
                    p=G[i,i]; piv[i]=p; real=p>0
                    root=f(1)/np.sqrt(p) if real else f(0)
                    r=G[i]*root; ri=gi[i]*root
                    sg=f(0) if not real else (f(-1) if B[i,i]>=0 else f(1))
                    inv[i]=f(1)/(B[i,i]-sg*p*root) if real else 0
                    beta=np.where(np.arange(32)>=i,sg*r if real else B[i],0); Rr[i]=beta; 
                    u=np.where(np.arange(32)>=i,B[i]-beta,0) if real else np.zeros(32,f); U[i]=u
                    y=(Y[i]-sg*ri) if real else np.zeros(32,f); Y[i]=y
                    v=B[:,i]*inv[i]; v[:i+1]=0; V[:,i]=v
                    for kk in range(i+1,32):
                        G[kk]-=r[kk]*r; gi[kk]-=r[kk]*ri
                        B[kk]-=v[kk]*u; Y[kk]-=v[kk]*y
                # M = inv(U)
                Ui=U.copy(); 
                for i in range(32):
                    if inv[i]==0: Ui[i]=0; Ui[:,i]=0; Ui[i,i]=1
                M=np.linalg.inv(Ui.astype(np.float64)).astype(f)
                for i in range(32):
                    if inv[i]==0: M[i]=0;M[:,i]=0
                # trust
                nz=wh>0
                bad=np.nonzero(nz&~(piv>PT*wh))[0]; mn=np.abs(M).sum(0); badm=np.nonzero(~(mn<MT))[0]
                zer=np.nonzero((~nz)&(np.arange(32)>=done))[0]
                good=32
                if len(bad): good=min(good,bad[0])
                if len(badm): good=min(good,badm[0])
                if len(zer) and nz[zer[0]:].any(): good=min(good,zer[0]+1)
                good=max(good,done+1)
                sel=np.zeros(32,bool); sel[done:good]=True
                E=np.zeros((n,32),f); E[o:]=Ph[o:]*own; E[o:o+32]-=np.triu(Rr); E[:o+done]=0; E[:,~sel]=0
                E[:o+32]=two(E[:o+32]); 
                if not t2: E[o+32:]=h(E[o+32:])
                Ym=Y.copy(); Ym[~sel]=0; Mm=M.copy(); Mm[~sel]=0; Mm[:,~sel]=0; Ym[:,~sel]=0
                sy=1.; K=two(Mm)@two(Ym); maxK=max(maxK,np.abs(K).max()); maxM=max(maxM,mn[sel].max())
                # output
                Vf=(Ph*own)@two(M); Vf[:o]=0; Vf[o:o+32]=V; Vf[o+np.arange(32),np.arange(32)]=1; Vf[:,inv==0]=0; Vf=Vf.astype(f)
                vv=(Vf**2).sum(0); 
                back=np.where(own>0,1/(np.where(own>0,own,1)*sc[32*w:32*w+32]),0)
                for j in range(done,good):
                    tau[o+j]=2/vv[j] if vv[j]>0 else 0
                    H[o+j+1:,o+j]=Vf[o+j+1:,j]
                    H[o+j,o+j:o+32]=Rr[j,j:]*back[j:]
                    zc=own==0
                    H[o+j,o+j:o+32][zc[j:]]=0
                # combine
                X=E.T@E64; cs=32*w
                K64[cs:cs+32]+= -K@(X@K64); K64[cs:cs+32,cs:cs+32]+=K; E64[:,cs:cs+32]+=E
                # apply to rest of window
                if good<32: 
                    C2=apply(C,E,K,True,True,False); C[:,32*w+good:32*w+32]=C2[:,32*w+good:32*w+32]
                done=good
            if w==0:
                C2=apply(C,E64,K64,tc,tw,w1t and not tw); C[:,32:]=C2[:,32:]
                H[64*k:64*k+32,64*k+32:64*k+64]=C[64*k:64*k+32,32:]/sc[32:]
        blocks.append((E64,K64))
    if stat is not None: stat.update(passes=passes,twos=int(twos),maxK=float(maxK),maxM=float(maxM))
    return H,tau
if __name__=='__main__':
    n=512
    import time
    for case,cond in [('dense',2),('dense',0),('band',0),('rowscale',0),('nearcollinear',0),('rankdef',0),('nearrank',0),('clustered',0),('upper',0),('diagonal',0)]:
        a=R.generate_input(1,n,cond,1234,case); o=[]
        for kw in (dict(),dict(w1t=True),dict(c2=True,w2=True),dict(PT=1e-5,MT=1000.)):
            st={}; H,t=run(a[0].numpy(),stat=st,**kw)
            r=residuals(a,torch.from_numpy(H)[None],torch.from_numpy(t)[None]); o.append('%.2f/%.3f p%d t%d K%.0f M%.0f'%(float(r.factor.max()),float(r.orth.max()),st['passes'],st['twos'],st['maxK'],st['maxM']))
        print(case,cond,' | '.join(o),flush=True)
