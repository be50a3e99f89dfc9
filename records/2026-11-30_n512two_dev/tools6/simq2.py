import heapq, numpy as np
D=np.array([53,54,57,59,61,63,65,58.])
K=dict(dense=1,rankdef=.80,nearrank=1.0,clustered=1.02,band=1.36,rowscale=1.42,nearcollinear=1.12)
names=list(K); w=np.array([6,1,1,1,1,1,1])/12
def prof(kind):
    f=D.copy()
    if kind=='rankdef': f=np.array([52.6,57.6,61.7,65.5,68.8,71.8,2,0])*470/378
    return K[kind]*f/f.sum()
def run(P,S,cuts,over=.012):
    B=len(P); units=[]
    for i in range(B):
        p=cuts[i] if i<len(cuts) else 8
        units.append(P[i][:p].sum()+over*(p<8))
    sec=sorted((cuts[i],i) for i in range(len(cuts)))
    units+=[P[i][p:].sum()+over for p,i in sec]
    h=[0.]*S; heapq.heapify(h)
    for u in units: heapq.heappush(h,heapq.heappop(h)+u)
    return max(h)
S=132;B=640;r=B%S;g=S-r
def lev(i,g,L): return min(7,max(1,round(8*(1+i//g)/(L+1))))
L=6
R=[lev(i,g,L) for i in range(r)]
sch={'none':[],'r':R,'r1':[min(7,1+i//g) for i in range(r)]}
for n in (r+S//2,r+S,r+S+S//2,r+2*S):
    m=n-r
    sch['r7_%d'%n]=R+[7]*m; sch['r67_%d'%n]=R+[6+i%2 for i in range(m)]; sch['r567_%d'%n]=R+[5+i%3 for i in range(m)]; sch['hi%d'%n]=[min(7,2+6*i//n) for i in range(n)]; sch['h3_%d'%n]=[min(7,3+5*i//n) for i in range(n)]
for nm,c in sch.items():
    c=sorted(c); o=[run([prof(k)]*B,S,c) for k in ('dense','rankdef')]
    rng=np.random.default_rng(1); m=[]
    for _ in range(16): m.append(run([prof(names[i]) for i in rng.choice(7,B,p=w)],S,c))
    print('%-9s dense %.3f rankdef %.3f mixed %.3f max %.3f'%(nm,*o,np.mean(m),max(m)))
