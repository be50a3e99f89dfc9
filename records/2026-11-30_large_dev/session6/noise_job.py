from common import *
import q_noise as M
X=M._large
names={0:'no workers',1:'asleep',2:'small loop of FMA',3:'FMA, 256 KB of code',4:'FMA, 48 KB of code',5:'tensor loads',6:'tensor loads and stores',7:'mma.sync',8:'polls',12:'polls with nanosleep',9:'wgmma',10:'LDG + STG',11:'LDS + STS'}
def stages(tp,P,nt):
    st=tp[62].flatten()[:64].view(2,32).double()
    return ' '.join(f'{i}:{st[0,i]/nt:.0f}' for i in range(25) if i not in (14,22))+' sum %.0f'%(st[0].sum()/nt)+' | narrow '+' '.join(f'{i}:{st[1,i]/max(1,P-nt):.0f}' for i in range(25) if i not in (14,22))+' sum %.0f'%(st[1].sum()/max(1,P-nt))
for (b,n) in ((8,2048),(2,4096)):
    a=R.generate_input(b,n,1,5); scratch=torch.randn(b,n,n,device='cuda'); C=8 if n<=2048 else 16; rest=132-b*C; P=n//64; nt=sum(1 for k in range(P) if n-64*max(0,k-1)>128*C)
    for m in range(1,13): X.geqrf_noise(a,scratch,m,3,1,True)
    torch.cuda.synchronize(); X.geqrf_noise(a,scratch,1,3,1,False); torch.cuda.synchronize()
    if True:
        X.geqrf_noise(a,scratch,1,0,rest,False); w=X.get_where()
        print('smid: panel block (p) or noise block (w):',' '.join(f'{i}:'+(f'p{w[0,i]-1}' if w[0,i] else f'w{w[1,i]-1}' if w[1,i] else '-') for i in range(132)),flush=True)
    for sel in (0,1,2):
        for m in (0,1,2,4,3,5,6,7,9,8,12,10,11):
            if sel and m in (0,1,8,12): continue
            X.get_trace(True); best=None
            for rep in range(2):
                X.get_trace(True)
                X.geqrf_noise(a,scratch,m,sel if m else 3,rest,False); tp,_=X.get_trace(True); t=tp[:b,:P].double()/1e3
                us=(t[:,-1,2].max()-t[:,0,0].min()).item()
                if best is None or us<best[0]: best=(us,tp)
            print(f'noise {n} sel {sel} {m} {names[m]}: {best[0]:.0f} us; wide',stages(best[1],P,nt),flush=True)
