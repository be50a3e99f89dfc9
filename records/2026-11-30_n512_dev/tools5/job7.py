import time; T0=time.time()
exec(open('job.py').read())
import importlib, math
flush=torch.empty(32<<20,dtype=torch.int64,device='cuda')
def tm(q,xs,reps):
    ts=[]
    for r in range(reps+2):
        torch.cuda.synchronize(); flush.fill_(r)
        e0=torch.cuda.Event(enable_timing=True); e1=torch.cuda.Event(enable_timing=True)
        e0.record()
        for x in xs: q(x)
        e1.record(); torch.cuda.synchronize(); ts.append(e0.elapsed_time(e1)/len(xs))
    ts=ts[2:]; return sum(ts)/len(ts),min(ts)
fn={}
for f in ('f85','fa','fb','fc','fd','f119'):
    try:
        t=time.time(); m=importlib.import_module(f); fn[f]=m.custom_kernel; print(f,'import %.1f'%(time.time()-t),m._module is not None,flush=True)
        if m._module is None: del fn[f]
    except Exception as e: print(f,'FAILED',repr(e)[:300],flush=True)
print('t',time.time()-T0,flush=True)
score={f:0. for f in fn}
order=list(fn)+list(fn)[::-1]
bad=set()
for case,cond in (('dense',2),('mixed',2),('rankdef',0),('clustered',0)):
    a=R.generate_input(640,512,cond,1029,case)
    for f in order:
        q=fn[f]
        h,tau=q(a); w=residuals(a[:64],h[:64],tau[:64]).worst()
        x=tm(q,[a],6); score[f]+=math.log(x[0])/8
        print('%s 640x512 %s mean %.4f min %.4f ms factor %.2f orth %.2f'%((f,case)+x+(w['factor'],w['orth'])),flush=True)
        if not (w['factor']<10 and w['orth']<50): bad.add(f)
print('SCORE',' '.join('%s %.4f%s'%(k,math.exp(v),' BAD' if k in bad else '') for k,v in score.items()),flush=True)
print('t',time.time()-T0,flush=True)
mine=sorted((f for f in fn if f not in ('f85','f119')),key=lambda f:(f in bad,score[f]))
print('order',mine,flush=True)
# the same bits every time, and right: all of 640
for f in mine:
    q=fn[f]; out=[]
    for case,cond in (('mixed',2),('mixed',0),('dense',2),('clustered',0)):
        a=R.generate_input(640,512,cond,4242+len(out),case); h0,t0=q(a); h0=h0.clone(); t0=t0.clone(); diff=0
        for _ in range(12):
            h,tau=q(a); diff+=int(((h!=h0).flatten(1).any(1)|(tau!=t0).any(1)).sum())
        w=residuals(a[:320],h0[:320],t0[:320]).worst()
        out.append('%s%d diff %d factor %.2f orth %.2f'%(case,cond,diff,w['factor'],w['orth']))
    print(f,'bits',' | '.join(out),flush=True)
print('t',time.time()-T0,flush=True)
src=open('final.py').read().split("exec(open('job.py').read())\n",1)[1]
for f in mine[:3]:
    if time.time()-T0>24: break
    sys.argv=['x',f]; exec(src)
    print('t',time.time()-T0,flush=True)
