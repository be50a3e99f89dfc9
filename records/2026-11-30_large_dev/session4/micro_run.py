import torch, ctypes, sys
lib=ctypes.CDLL('./micro.so'); P=ctypes.c_void_p; dev='cuda'
torch.manual_seed(1)
p=torch.randn(2048,64,dtype=torch.double); p=p/p.abs().amax(0)*12
def case(p):
    G=(p.T@p); A=p[:64].clone()
    # reference
    R=torch.linalg.cholesky(G).T; a=A.clone(); X=torch.eye(64,dtype=torch.double); Rs=R.clone(); U=torch.zeros_like(R)
    for u in range(64):
        s=-1. if a[u,u]>=0 else 1.
        Rs[u]=s*R[u]; a[u,u:]-=Rs[u,u:]; U[u,u:]=a[u,u:]
        a[u+1:,u]/=a[u,u]; a[u+1:,u+1:]-=a[u+1:,u:u+1]*a[u:u+1,u+1:]
    L=torch.tril(a,-1); X=torch.linalg.inv(U).T
    return G,A,torch.triu(Rs)+L,X
G,A,RL,X=case(p)
g,a=G.float().cuda().contiguous(),A.float().cuda().contiguous(); o=torch.zeros(8192,device=dev); t=torch.zeros(256,dtype=torch.long,device=dev)
def err(o):
    o=o.double().cpu(); rl=o[:4096].view(64,64); x=o[4096:].view(64,64)
    return 'R %.2e L %.2e X %.2e'%(((rl-RL).triu().abs().max()/RL.triu().abs().max()).item(), (rl-RL).tril(-1).abs().max().item(), ((x-X).abs().max()/X.abs().max()).item())
for m in (15,11,13,9,10,12,7,8):
    t.zero_(); lib.run_old(m,P(g.data_ptr()),P(a.data_ptr()),P(o.data_ptr()),P(t.data_ptr()),16); torch.cuda.synchronize(); print('old mode',m,t[:6].tolist(),err(o),flush=True)
for m in (15,9,10,14,12):
    t.zero_(); lib.run_new(m,P(g.data_ptr()),P(a.data_ptr()),P(o.data_ptr()),P(t.data_ptr()),16); torch.cuda.synchronize(); print('new mode',m,t[:6].tolist(),'solve',t[66:69].tolist(),'update',t[130:133].tolist(),'init',t[194:196].tolist(),err(o),flush=True)
names={0:'LDS.32',1:'LDS.128',2:'LDS.128 uniform',3:'LDS.128 4 addr',4:'LDS.128 8 addr',5:'LDSM4 (48B rows)',6:'STS.128',7:'STS.32',8:'mma tf32 k8 4 chains',9:'mma f16 k16 4 chains',10:'mma tf32 1 chain',11:'bar.sync 256',12:'SHFL chain',13:'mma f16 1 chain',14:'LDS.64'}
for k in names:
    r=[]
    for w in (1,2,4,8):
        t.zero_(); lib.run_tp(k,P(t.data_ptr()),P(o.data_ptr()),w); torch.cuda.synchronize(); r.append(round(t[2].item()/64,2))
    print(names[k],'cycles each, by 1,2,4,8 warps',r,flush=True)
