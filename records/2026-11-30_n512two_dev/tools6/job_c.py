from lib import *
import importlib, random
T0=time.time()
for f in ('v133','v133f','v116','v116f','v120'): print('##',f,open(f+'.txt').read()[-200:] if os.path.exists(f+'.txt') else '',flush=True)
fn={f:importlib.import_module(f).custom_kernel for f in ('v120','v116','v133','v116f','v133f')}
P={}
R0=[max(1,min(7,round(8*(1+i//20)/7))) for i in range(112)]
PL=R0+[6]*99+[7]*99
var={}
for v in ('m3','m6_v1','m6_v4','w1m','w3m'):
    if os.path.exists(v+'_d.so'): var[v]=K(v+'_d.so',PL)
ks=(('dense',2),('mixed',2),('rankdef',0),('clustered',0))
X={c:R.generate_input(640,512,k,1029,c) for c,k in ks}
for c,a in X.items():
    x=fn['v133'](a); o=[]
    for v,q in var.items():
        y=q(a); o.append(v+(' same' if torch.equal(x[0],y[0]) and torch.equal(x[1],y[1]) else ' DIFF'))
        if v[0]=='w':
            w=residuals(a[:64],y[0][:64],y[1][:64]).worst(); o.append('%.3g/%.3g'%(w['factor'],w['orth']))
    del y
    o.append('same bits in 6 calls: %s'%all(torch.equal(x[0],z[0]) and torch.equal(x[1],z[1]) for z in (fn['v133'](a) for _ in range(6))))
    del x
    print(c,*o,race({**fn,**var},a,2,6),flush=True)
print('t',time.time()-T0,flush=True)
CASES=[('dense',2),('dense',0),('dense',1),('dense',4),('rankdef',0),('nearrank',0),('nearrank',2),('clustered',0),('band',0),('rowscale',0),('nearcollinear',0),('nearcollinear',2),('upper',0),('diagonal',0),('mixed',2)]
for nm in ('v133','v133f'):
    q=fn[nm]; bad=[]
    for n in (512,385):
        for case,cond in CASES:
            a=R.generate_input(6,n,cond,random.randrange(10**6),case); a0=a.clone(); r=q(a)
            if not R.check_implementation(a,r)[0] or not torch.equal(a,a0): bad.append((n,case))
    print(nm,'contest checks',bad or 'all right',flush=True)
    worst={}
    for seed in range(6):
        for case,cond in CASES:
            a=R.generate_input(16,512,cond,seed*7919+random.randrange(1000),case); w=residuals(a,*q(a)).worst(); k=case+str(cond); worst[k]=[max(x,w[y]) for x,y in zip(worst.get(k,(0,0,0)),('factor','orth','column'))]
    print(nm,'6 seeds x 16:','; '.join('%s %.2g/%.2g/%.3g'%(k,*x) for k,x in worst.items()),flush=True)
    for n in (257,320,384,385,416,448,449,480,500,511):
        o=[]
        for case,cond in (('dense',2),('dense',0),('band',0),('upper',0),('rowscale',0),('rankdef',0),('nearcollinear',0),('mixed',2)):
            a=R.generate_input(12,n,cond,random.randrange(10**6),case); w=residuals(a,*q(a)).worst(); o.append('%s%d %.2g/%.2g/%.2g'%(case,cond,w['factor'],w['orth'],w['column']))
        print(nm,n,'; '.join(o),flush=True)
    # cuts at other n, and batches of every remainder
    for n,b in ((448,140),(385,300),(512,133),(512,263),(512,265),(512,395),(512,650)):
        a=R.generate_input(b,n,2,b,'mixed'); x=q(a); y=[q(a[i:i+100]) for i in range(0,b,100)]; print(nm,n,'batch',b,'same as uncut' if torch.equal(x[0],torch.cat([z[0] for z in y])) and torch.equal(x[1],torch.cat([z[1] for z in y])) else 'DIFF',flush=True)
    n=512; z=torch.randn(n,n); i=torch.arange(n).double(); o=[]; zc=z.clone(); zc[:,-1]=0; mid=z.clone(); mid[:,128:256]=0; tail=z.clone(); tail[:,300:]=0
    for k,a in (('zero',torch.zeros(n,n)),('eye',torch.eye(n)),('ones',torch.ones(n,n)),('zerolast',zc),('midzero',mid),('tail',tail),('1e30',z*1e30),('1e-30',z*1e-30),('hilbert',1/(i[:,None]+i[None]+1)),('rank1',z[:,:1]*z[:1]),('lastrow',torch.cat([torch.zeros(n-1,n),z[:1]])),('graded',z*torch.logspace(-30,30,n)[None].double())):
        a=a.float().contiguous()[None].cuda(); h,tau=q(a); w=residuals(a,h,tau).worst(); o.append('%s %.2f/%.2f%s'%(k,w['factor'],w['orth'],'' if torch.isfinite(h).all() and torch.isfinite(tau).all() else ' BAD'))
    e=torch.stack([torch.zeros(n,n),tail,mid,zc]*160).cuda(); h,tau=q(e); w=residuals(e[:8],h[:8],tau[:8]).worst(); same=all(torch.equal(h[i],h[i+4]) for i in range(636))
    print(nm,'edges',' '.join(o),'640 of zero, tail, mid, last: %.2f %.2f all alike %s'%(w['factor'],w['orth'],same),flush=True)
    a=R.generate_input(3,400,0,5,'dense'); print(nm,'not contiguous',R.check_implementation(a.mT.contiguous(),q(a.mT.contiguous().clone()))[0],q(torch.empty(0,512,512,device='cuda'))[0].shape,q(torch.randn(2,600,600,device='cuda'))[0].shape,q(torch.randn(2,1,1,device='cuda'))[0].shape,flush=True)
print('t',time.time()-T0,flush=True)
for b in (1,4,16,64,132,133,264,300,528,2000):
    a=R.generate_input(b,512,2,7,'dense'); print('batch',b,race({k:fn[k] for k in ('v116','v133')},a,1,4),flush=True)
print('t',time.time()-T0,flush=True)
