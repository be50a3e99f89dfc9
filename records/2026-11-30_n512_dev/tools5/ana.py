import numpy as np,sys
x=np.load(sys.argv[1]).astype(np.int64).reshape(8,20,128)
def d(a,b): # b-a mod 2^32
    return (b-a)%(1<<32)
S=range(1,17)  # slot = step+1, steps 0..15
names={0:'top',1:'applied',2:'sync',3:'staged',4:'sync',5:'gram products',6:'sum sync',7:'gram end',20:'recurrence',21:'sync',22:'form',23:'fence sync',24:'cross',25:'sums',26:'sync',27:'invert diag',28:'panel0',29:'read fence',30:'sync',31:'invert window',32:'small product',33:'operands',34:'sync',35:'panel1',36:'read',37:'scale'}
seq=[0,1,2,3,4,5,6,7,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37]
tot={}
for w in (0,5,7):
    print('warp',w)
    for h in (0,1):
        acc={}
        for sl in S:
            if (sl-1)%2!=h: continue
            t=[ (i,x[w,sl,i]) for i in seq if x[w,sl,i]]
            for (i,a),(j,b) in zip(t,t[1:]):
                v=d(a,b)
                if v<200000: acc.setdefault((i,j),[]).append(v)
        print(' h',h,' '.join('%s>%s:%d'%(i,j,sum(v)) for (i,j),v in acc.items()), 'sum', sum(sum(v) for v in acc.values()))
# slot to slot
print('slot lengths',[int(d(x[0,s,0],x[0,s+1,0])) for s in range(0,16)])
# apply
for w in (0,3,4,7):
    acc=np.zeros(7);n=0
    for sl in S:
        for j in range(8):
            t=x[w,sl,40+8*j:47+8*j]
            if (t!=0).all() and (sl-1)%2==0 and j<(sl-1)//2 or (j==7 and (sl-1)%2==1):
                acc[:6]+=[d(t[i],t[i+1]) for i in range(6)]; n+=1
    print('applies warp',w,n,'wait,prefetch %d  W %d  pack+STS %d  bar+T %d pack,bar %d update %d'%tuple(acc[:6]))
for sl in (7,8,13,14): 
    for j in range(8):
        for w in (0,4,7):
            t=x[w,sl,40+8*j:47+8*j]
            if (t!=0).any(): print('slot',sl,'j',j,'w',w,[int(d(x[0,sl,0],v)) for v in t])
# recurrence steps of one window
for sl in (5,):
    base=x[0,sl,7]
    for w in range(8): print('rec slot',sl,'warp',w,[int(d(base,v)) for v in x[w,sl,8:18] if v],'20:',int(d(base,x[w,sl,20])),'21',int(d(base,x[w,sl,21])))
for sl in (1,2,9):
    base=x[0,sl,21]
    for w in range(8): print('form slot',sl,'warp',w,[int(d(base,v)) for v in x[w,sl,104:113] if v],'22:',int(d(base,x[w,sl,22])),'23',int(d(base,x[w,sl,23])),'24',int(d(base,x[w,sl,24])),'25',int(d(base,x[w,sl,25])),'26',int(d(base,x[w,sl,26])),'27',int(d(base,x[w,sl,27])),'28-37',[int(d(base,v)) if v else None for v in x[w,sl,28:38]])
