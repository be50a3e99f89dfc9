from common import *
T0=time.time()
def worst(mod,b,n,kind,cond,seeds):
    w={}; bad=0
    for s in seeds:
        a=R.generate_input(b,n,cond,s,kind); h,tau=mod.custom_kernel(a); bad+=not (torch.isfinite(h).all().item() and torch.isfinite(tau).all().item())
        for k,x in residuals(a,h,tau).worst().items(): w[k]=max(w.get(k,0),x) if x==x else float('nan')
    return f'b{b} n{n} {kind} c{cond} seeds {list(seeds)}: bad {bad} '+' '.join(f'{k} {x:.3g}' for k,x in w.items())
for item in sys.argv[1:]:
    v,what=item.split(':'); what=what.split(','); mod=importlib.import_module(v)
    print('==',v,'loaded',round(time.time()-T0,1),flush=True)
    if 'check' in what:
        check(mod,2,2048,'dense',1,224466)
        check(mod,8,2048,'dense',1,224466)
        check(mod,2,4096,'dense',1,32412)
        a=R.generate_input(8,2048,1,5); o1=mod.custom_kernel(a); o2=mod.custom_kernel(a); print('bitwise repeatable', torch.equal(o1[0],o2[0]) and torch.equal(o1[1],o2[1]),flush=True)
    if 'edge' in what:
        check(mod,2,2048,'dense',1,15,scale=2.0**50); check(mod,2,2048,'rowscale',0,15,scale=2.0**-50); check(mod,2,2048,'zero',a=torch.zeros(2,2048,2048,device='cuda')); check(mod,1,2048,'eye',a=torch.eye(2048,device='cuda')[None].contiguous())
        z=R.generate_input(2,2048,1,15,'dense'); z[:,:,100:300]=0; z[:,:,1500]=0; check(mod,2,2048,'zero columns',a=z)
        h,t=mod.custom_kernel(torch.empty(0,2048,2048,device='cuda')); x=R.generate_input(2,2048,0,3,'dense'); h,t=mod.custom_kernel(x.transpose(1,2)); print('transposed', residuals(x.transpose(1,2).contiguous(),h,t).worst()); y=torch.randn(1+2048*2048,device='cuda')[1:].view(1,2048,2048); h,t=mod.custom_kernel(y); print('unaligned', residuals(y,h,t).worst(),flush=True)
        for spec in ((2,2048,2,224466,'dense'),(2,2048,0,224467,'rankdef'),(1,4096,1,75342,'dense'),(1,4096,0,75343,'upper')):
            a=R.generate_input(*spec); print('contest', spec, R.check_implementation(a, mod.custom_kernel(a)), flush=True)
        for (b,n) in ((1,4096),(16,2048)): print(v,'time',b,n,timeit(mod.custom_kernel,b,n,reps=4),flush=True)
        for (b,n,k) in ((5,4096,'dense'),(16,2048,'band'),(2,4000,'band'),(1,2177,'upper'),(3,3333,'mixed')): check(mod,b,n,k,0,31)
    if 'more' in what:
        for (b,n) in ((1,1537),(3,2000),(20,1600),(1,3001),(2,1701)): check(mod,b,n,'dense',1,31)
    if 'time' in what:
        for (b,n) in ((8,2048),(2,4096)): print(v,'time',b,n, timeit(mod.custom_kernel,b,n,reps=6), flush=True)
    if 'trace' in what:
        tm=mod
        for (b,n) in ((8,2048),(2,4096)):
            a=R.generate_input(b,n,1,5); tm.custom_kernel(a); tm._large.get_trace(True); tm.custom_kernel(a); tp,tf=tm._large.get_trace(True)
            P=n//64; t=tp[:b,:P].double()/1e3; t0=t[:,0,0].min(); t=t-t0
            print('trace',v,b,n,'end %.0f'%t[:,-1,2].max(),'all stalls',[round(x) for x in (t[:,:,1]-t[:,:,0]).sum(1).tolist()],'stall sum %.0f'%(t[0,:,1]-t[0,:,0]).sum(), 'work sum %.0f'%(t[0,:,2]-t[0,:,1]).sum())
            print('  k: start wait work (matrix 0):',' '.join(f'{k}:{t[0,k,0]:.0f},{t[0,k,1]-t[0,k,0]:.0f},{t[0,k,2]-t[0,k,1]:.0f}' for k in range(0,P,1 if P<40 else 2)))
            st=tp[62].flatten()[:64].view(2,32).double(); nt=max(1,sum(1 for k in range(P) if n-64*max(0,k-1)>128*(8 if n<=2048 else 16)))
            print('  stages, cycles a panel: wide',' '.join(f'{i}:{st[0,i]/nt:.0f}' for i in range(26)),'sum %.0f'%(st[0].sum()/nt),'| narrow',' '.join(f'{i}:{st[1,i]/max(1,P-nt):.0f}' for i in range(26)),'sum %.0f'%(st[1].sum()/max(1,P-nt)))
            f=tf[tf[:,5:].sum(1)>0].double(); c=f.shape[0]
            print('  workers',c,'mean us: wait %.0f'%(f[:,0].mean()/1e3),'busy far %.0f k64 %.0f split %.0f S %.0f'%tuple(f[:,1:5].mean(0)/1e3),'us a task: far %.1f k64 %.1f split+S %.1f'%tuple((f[:,1+i].sum()/max(1,f[:,5+i].sum())/1e3).item() for i in range(3)),'tasks',f[:,5:8].sum(0).tolist())
            tw=tp[63].flatten()[:16].double(); c=max(1,tw[12].item()); st_=max(1,tw[13].item()); print('  strips of worker 0, cycles a chunk of a warpgroup: pass 1 wait %.0f split %.0f products %.0f next %.0f | pass 2 wait %.0f products+C %.0f next %.0f stores %.0f'%tuple(tw[i]/c for i in (1,2,3,4,6,7,8,9)),'| a strip: end of pass 1 %.0f sums %.0f W\' %.0f'%tuple(tw[i]/st_ for i in (0,5,10)),'strips %d chunks %.1f'%(st_,c/st_),flush=True)
    if 'guards' in what:
        for gr,pv in ((300,1e-4),(100,1e-4),(60,1e-4),(30,1e-4)):
            mod._large.guards(gr,pv)
            for k in ('dense','band','mixed','nearrank','nearcollinear'):
                a=R.generate_input(4,2048,0,9001,k); pas=torch.zeros(4,512,dtype=torch.int32,device='cuda'); h,tau=mod._large.geqrf_large(a,pas)[:2]; w=residuals(a,h,tau).worst()
                print('guards',gr,pv,k,'col %.3g factor %.3g'%(w['column'],w['factor']),'panels more than once %.1f'%(pas.flatten()[:4*32]>1).float().mean().mul(100).item(),'%',flush=True)
        mod._large.guards(60,1e-4)
    for x in what:
        if x.startswith('bits'):
            N=int(x[4:].split('s')[0]); K=int(x.split('s')[-1])
            S=[(2,4096,'dense'),(8,2048,'dense'),(2,4096,'mixed'),(8,2048,'mixed'),(1,4096,'dense'),(16,2048,'dense'),(3,3001,'dense'),(8,2048,'band'),(2,4096,'band'),(20,1600,'dense')][:K]
            for sp in S:
                a=R.generate_input(sp[0],sp[1],1,77,sp[2]); h0,t0_=mod.custom_kernel(a); r=residuals(a,h0,t0_).worst(); bad=0; wr=[]; tt=time.time()
                for _ in range(N):
                    h,tau=mod.custom_kernel(a)
                    if not (torch.equal(h,h0) and torch.equal(tau,t0_)):
                        bad+=1
                        if len(wr)<4:
                            d=(h!=h0).nonzero(); wr.append((round(residuals(a,h,tau).worst()['factor'],2),d[0].tolist() if len(d) else 'tau',len(d)))
                print('bits',v,sp,'calls',N,'different',bad,wr,'first',{k:round(x,3) for k,x in r.items()},'%.1f s'%(time.time()-tt),flush=True)
    if 'tune' in what:
        ins={}
        def quick(b,n,reps=3):
            if (b,n) not in ins: ins[b,n]=[R.generate_input(b,n,1,224466+42*(k+1)) for k in range(2)]
            mod.custom_kernel(ins[b,n][0]); torch.cuda.synchronize(); ts=[]
            for _ in range(reps):
                fl=torch.ones(32<<20,dtype=torch.int64,device='cuda'); e0=torch.cuda.Event(enable_timing=True); e1=torch.cuda.Event(enable_timing=True); torch.cuda.synchronize(); e0.record(); [mod.custom_kernel(x) for x in ins[b,n]]; e1.record(); torch.cuda.synchronize(); ts.append(e0.elapsed_time(e1)/2)
            return min(ts)
        best={2048:[],4096:[]}
        for rates in ((26,22,44e3),(26,22,80e3),(30,24,60e3),(30,24,100e3)):
            for n,F,Rr,U in ((4096,(1400,2048,3000,8192),(512,700,1024),(2,3)),(2048,(8192,),(512,1024),(1,2))):
                for far in F:
                    for rows in Rr:
                        for u in U:
                            mod._large.tune(rates[0],rates[1],rates[2],far,u,1000,rows); best[n].append((round(quick(8 if n==2048 else 2,n,2),3),rates,far,rows,u))
        for k in best: print('tune',k,sorted(best[k])[:14],'worst',max(best[k]),flush=True)
    if 'sweep' in what:
        for k in list(R.PROFILES): print('sweep',v,worst(mod,2,4096,k,0,(9004,9005)),flush=True)
        for k in list(R.PROFILES): print('sweep',v,worst(mod,8,2048,k,0,(9004,9005)),flush=True)
    print('==',v,what,'end',round(time.time()-T0,1),flush=True)
