import heapq,random,sys
def far_halves(c): return 0 if c<4 else 2*(c//2-1)
def sim(n,M,W,panel_us,strip_us,seed=0,urgent=None,PART=1024,lat=1.5,cap=None,pu=None,du=95,thr=1.0):
    random.seed(seed); P=n//64; urgent=urgent if urgent is not None else (2 if n>2048 else 1)
    parts_of=lambda rows: max(1,min(8,(rows+PART//2)//PART))
    made=[0]*M; applied=[[0]*P for _ in range(M)]; coupled=[[0]*(P//2) for _ in range(M)]; joined={}; unit={}
    for m in range(M):
        for c in range(P): unit[m,c]=[0,0]
        unit[m,-1]=[0,0]
    ntasks=0; waiting=list(range(W)); ev=[]; t=0.; pstart=[None]*M; stall=[0.]*M; done_at=[0.]*M; free_since=[0.]*M; busy=0.
    gangs={}; whole_now=[0]
    cap=cap or 10**9
    def ready():
        best=None; op=False
        for m in range(M):
            u,_=unit[m,-1]
            if 2*u+3<P:
                op=True
                if made[m]>=2*u+2: 
                    k=(0,m,-1); best=min(best,k) if best else k
            for c in range(2,P):
                u,s=unit[m,c]; far=far_halves(c)//2
                if u<=far:
                    op=True
                    if applied[m][c]>=2*u and made[m]>=(2*u+2 if u<far else c-1):
                        if u<far and s==0 and c-made[m]>urgent and whole_now[0]>=cap: continue
                        if pu and s==0:
                            pend=min(far,made[m]//2)-u
                            k=(10+(c-made[m])*pu-pend*du if u<far else 2+c-made[m],m,c)
                        else: k=(1 if s else 2*c+(u<far),m,c)
                        best=min(best,k) if best else k
        return best,op
    def push(dt,f): heapq.heappush(ev,(t+dt,random.random(),f))
    def start_panels():
        for m in range(M):
            k=made[m]
            if pstart[m] is None and k<P and (k<2 or applied[m][k]>=far_halves(k)+2):
                stall[m]+=t-free_since[m]; pstart[m]=t; push(panel_us(n-64*k),('panel',m))
    nonlocal_=None
    start_panels(); op=True
    while ev or True:
        # dispatch
        while waiting:
            b,op=ready()
            if b is None: break
            w=waiting.pop(0); _,m,c=b
            if c==-1:
                q=unit[m,-1][0]; unit[m,-1][0]+=1; push(9+lat,('S',m,q,w)); busy+=9; ntasks+=1; continue
            u,s=unit[m,c]; far=far_halves(c)//2; near=u==far; k64=near and c%2==0; whole=(not near) and s==0 and ((c-made[m])*pu-(min(far,made[m]//2)-u)*du>thr*du if pu else c-made[m]>urgent)
            top=(c-2 if k64 else c-3) if near else 2*u; parts=1 if whole else parts_of(n-64*top)
            unit[m,c]=[u+1,0] if whole or s+1==2*parts else [u,s+1]
            assert 0<=top and made[m]>=(top+1 if k64 else top+2), (c,u,top,made[m])
            d=strip_us(n-64*top,whole,k64)/parts; ntasks+=1; busy+=d
            if whole: whole_now[0]+=1
            if parts==1: push(d+lat,('strip',m,c,2 if whole else 1,w))
            else:
                g=gangs.setdefault((m,c,u,s//parts),[]); g.append((w,d))
                if len(g)==parts:
                    for (w2,d2) in g: push(d2+lat,('part',m,c,(m,c,u,s//parts),parts,w2))
        if not ev: break
        t,_,f=heapq.heappop(ev)
        if f[0]=='panel':
            m=f[1]; made[m]+=1; pstart[m]=None; free_since[m]=t; done_at[m]=t
        elif f[0]=='S': coupled[f[1]][f[2]]=1; waiting.append(f[3])
        elif f[0]=='strip': applied[f[1]][f[2]]+=f[3]; whole_now[0]-=f[3]==2; waiting.append(f[4])
        else:
            _,m,c,g,parts,w=f; joined[g]=joined.get(g,0)+1
            if joined[g]==parts: applied[m][c]+=1
            waiting.append(w)
        start_panels()
    assert all(x==P for x in made),('stuck',made,len(waiting))
    for m in range(M):
        for c in range(2,P): assert applied[m][c]==far_halves(c)+2,(m,c,applied[m][c])
    return max(done_at),sum(stall)/M,busy/W,ntasks
if __name__=='__main__':
    s2=lambda rows,whole,k64: (58*rows/2048 if whole else (22 if not k64 else 21)*rows/2048)+4
    for p in (20,24,28,33):
        print('2048 panel',p,[round(x) for x in sim(2048,8,136,lambda r:p+(6 if r>1024 else 0),s2)])
    s4=lambda rows,whole,k64: (95*rows/4096 if whole else (60 if not k64 else 45)*rows/4096)+3
    for p in (20,24,28):
        print('4096 panel',p,[round(x) for x in sim(4096,2,100,lambda r:p+(4 if r>2048 else 0),s4)])
    for n,M,W in ((1536+64,8,100),(1664,3,136),(3072,4,68),(4096,1,116),(2048,8,16)): print(n,M,W,[round(x) for x in sim(n,M,W,lambda r:random.uniform(5,250),lambda a,b,c: random.uniform(5,100),seed=n)])
