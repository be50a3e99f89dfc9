from ek import *
n=512
for case,cond,seeds in [('upper',0,2),('nearrank',0,2),('rowscale',0,2),('dense',2,2)]:
    for sd in range(seeds):
        a=R.generate_input(1,n,cond,77+sd,case); o=[]
        for kw in (dict(MT=30.),dict(PT=1e-4,MT=100.),dict(PT=1e-4,MT=30.),dict(lg=8)):
            st={}; H,t=run(a[0].numpy(),stat=st,**kw)
            r=residuals(a,torch.from_numpy(H)[None],torch.from_numpy(t)[None]); o.append('%.2f/%.3f p%d t%d K%.0f M%.0f'%(float(r.factor.max()),float(r.orth.max()),st['passes'],st['twos'],st['maxK'],st['maxM']))
        print(case,cond,' | '.join(o),flush=True)
