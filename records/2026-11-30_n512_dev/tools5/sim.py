# sim.py LST start end [skip-branch addresses taken]: static timing of a straight path of one warp
import re,sys
def run(lst,a,b,taken=(),lat=None,verbose=False):
    L={}; order=[]
    for l in open(lst):
        m=re.match(r'([0-9a-f]+) s ?(\d+) w(.) r(.) q(\d*) +(.*)',l)
        if m: ad=int(m.group(1),16); L[ad]=(int(m.group(2)),m.group(3),m.group(4),m.group(5),m.group(6)); order.append(ad)
    LAT={'LDS':29,'LDS.64':30,'LDS.128':33,'LDSM':33,'MUFU':24,'SHFL':25,'S2R':25,'LDC':30,'REDUX':25,'S2UR':25}
    if lat: LAT.update(lat)
    t=0; sb=[0]*6; ad=a; n=0; out=[]
    while True:
        st,w,r,q,op=L[ad]
        for c in q: t=max(t,sb[int(c)])
        o=op.split()[0] if not op.startswith('@') else op.split()[1]
        base=o.split('.')[0]; la=LAT.get(o,LAT.get(base,20))
        if base=='LDS' and '.128' in o: la=LAT['LDS.128']
        if w!='-': sb[int(w)]=max(sb[int(w)],t+la)
        if r!='-': sb[int(r)]=max(sb[int(r)],t+12)
        out.append((t,'%x'%ad,op)); n+=1
        t+=max(st,1)
        if ad==b: break
        if base=='BRA':
            if ad in taken:
                t+=12; ad=int(re.search(r'0x([0-9a-f]+)',op).group(1),16); continue
        ad+=16
    if verbose:
        for x in out: print(*x)
    return t,n
if __name__=='__main__':
    print(run(sys.argv[1],int(sys.argv[2],16),int(sys.argv[3],16),[int(x,16) for x in sys.argv[4:]],verbose='v' in sys.argv[0:0]))
