import numpy as np,sys
z=np.load('r1/marks1.npz')
x=z['dense640'].astype(np.int64); sm=x[:,0,14]; g=(x[:,0,12]|(x[:,0,13]<<32)); dur=(x[:,0,15]-x[:,0,11])%(1<<32)
o=np.argsort(-dur)[:40]
print([(int(i),int(sm[i]),int(dur[i])) for i in o])
h,e=np.histogram(dur,bins=20); print(h,e.astype(int))
# sms with most total
end={}
for i in range(640): end.setdefault(int(sm[i]),[]).append(int(dur[i]))
tot={k:(sum(v),len(v)) for k,v in end.items()}
five=[(v[0],k) for k,v in tot.items() if v[1]==5]; five.sort(); print(len(five),five[:3],five[len(five)//2],five[-12:])
y=z['dense132'].astype(np.int64); d132=(y[:,0,15]-y[:,0,11])%(1<<32); print('same matrices in 132:',[(int(i),int(d132[i]),int(dur[i])) for i in np.argsort(-d132)[:12]])
i=int(o[0]); a=x[i]; typ=int(np.argsort(dur)[320])
def steps(a): return [int((a[s+1,0]-a[s,0])%(1<<32)) for s in range(1,16)]
print(i,steps(x[i])); print(typ,steps(x[typ]))
i=int(o[3]); print(i,steps(x[i]))
e=(g-g.min())+dur/1.7913; print('end us', np.sort(e)[-30:]/1000)
