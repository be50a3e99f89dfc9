import numpy as np,sys
z=np.load(sys.argv[1])
def ana(nm,x):
    B=x.shape[0]; x=x.astype(np.int64)
    sm=x[:,0,14]; g=(x[:,0,12]|(x[:,0,13]<<32)); st=x[:,0,11]; en=x[:,0,15]
    dur=(en-st)%(1<<32)
    ok=en!=0
    print('==',nm,'B',B,'dur mean %d min %d max %d'%(dur[ok].mean(),dur[ok].min(),dur[ok].max()),'no end mark',int((~ok).sum()))
    # order per SM
    bysm={}
    for i in np.argsort(g,kind='stable'): bysm.setdefault(sm[i],[]).append(i)
    waves=max(len(v) for v in bysm.values())
    t0=g.min()
    gaps=[];
    for w in range(waves):
        ids=[v[w] for v in bysm.values() if len(v)>w]
        d=[dur[i] for i in ids if ok[i]]; 
        gp=[(st[v[w]]-en[v[w-1]])%(1<<32) for v in bysm.values() if len(v)>w and w>0 and ok[v[w-1]]]
        sg=[g[i]-t0 for i in ids]
        print(' wave',w,'n',len(ids),'dur mean %d p10 %d p90 %d max %d'%(np.mean(d),np.percentile(d,10),np.percentile(d,90),max(d)),'start ns mean %d min %d max %d'%(np.mean(sg),min(sg),max(sg)),'gap cycles %s'%('%d'%np.mean(gp) if gp else '-'))
    # clock
    r=[]
    for v in bysm.values():
        if len(v)>1:
            a,b=v[0],v[-1]
            if g[b]>g[a]: r.append(((st[b]-st[a])%(1<<32))/(g[b]-g[a]))
    if r: print(' GHz %.4f %.4f'%(np.mean(r),np.std(r)))
    names={1:'apply',2:'stage',3:'gram',4:'rec',5:'form',6:'win_t',7:'panel0',8:'T',9:'panel1',10:'scale'}
    for w in range(waves):
        ids=np.array([v[w] for v in bysm.values() if len(v)>w])
        tot={}
        y=x[ids]
        wait=0
        for s in range(0,17):
            prev=y[:,s,0] if s>0 else y[:,0,11]
            for m in range(1,11):
                c=y[:,s,m]; has=c!=0
                if not has.any(): continue
                d=np.where(has,(c-prev)%(1<<32),0); d=np.where(d>3000000,0,d)
                tot.setdefault(names[m]+('0' if s==0 else ''),0); tot[names[m]+('0' if s==0 else '')]+=d.mean()
                prev=np.where(has,c,prev)
            for j in range(8):
                a=y[:,s,16+j]; b=y[:,s,24+j]; h=(a!=0)&(b!=0)
                if h.any(): wait+=np.where(h,(b-a)%(1<<32),0).mean()
        print('  wave',w,'waitV %d'%wait,' '.join('%s:%d'%(k,v) for k,v in tot.items()),'sum %d'%sum(tot.values()))
    ids=np.arange(B)
    pl=[]
    for k in range(8):
        a=x[:,2*k+1,0]; b=x[:,2*k+3,0] if k<7 else x[:,0,15]; h=(a!=0)&(b!=0); pl.append(int(((b-a)%(1<<32))[h].mean()) if h.any() else 0)
    print('  panels',pl)
    return dur,bysm
for k in z.files:
    if k=='labels': continue
    dur,bysm=ana(k,z[k])
    if k.startswith('mixed') and 'labels' in z.files and z[k].shape[0]==640:
        for l in range(7): print('   kind',l,'n',int((z['labels']==l).sum()),'dur %d'%dur[z['labels']==l].mean())
