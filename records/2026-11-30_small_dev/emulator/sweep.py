import sys,random,time,torch
from t import *
lib_=lib
random.seed(int(time.time())); torch.set_num_threads(1); T=float(sys.argv[2]); nb=0; wm={}
def test(a,label,t,w=0,mode=0,scale=None):
    global nb
    print("TRY",label,t,w,mode,flush=True)
    h,tau=team(a,t,w,mode,random.randrange(1,10**6))
    if scale: hd=h.double(); r=residuals(a.double()/scale,torch.tril(hd,-1)+torch.triu(hd)/scale,tau.double()).worst()
    else: r=residuals(a,h,tau).worst()
    bad=not(r['factor']<1 and r['orth']<3 and r['column']<1.5); nb+=bad
    for k,v in r.items(): wm[k]=max(wm.get(k,0),v)
    print(label,t,w,mode,{k:round(v,3) for k,v in r.items()},'BAD' if bad else '',flush=True)
for z in (torch.zeros(1,40,40),torch.eye(40)[None]*3,torch.ones(1,50,50)): test(z,'zero/eye/ones',13)
x=torch.randn(1,70,70)
for s in (1e-37,1e-30,1e30,1e36): test(x*s,f'scale {s}',13,0,0,s)
t0=time.time(); N=0
while time.time()-t0<T:
    n=random.choice([33,34,40,47,48,49,64,65,80,100,128,131,176,200,224,250,300,352]); case=random.choice(list(reference.PROFILES)); cond=random.choice([0,1,2,4]) if case=='dense' else random.choice([0,2])
    if case=='mixed': continue
    t=random.choice([4,113,113,13]); w=random.choice([0,0,2,3]); N+=1
    a=reference.generate_input(1,n,cond,random.randrange(10**6),case)
    test(a,(n,case,cond),t,w,random.choice([0,0,0,1,2]))
print('done',N,'bad',nb,wm)
