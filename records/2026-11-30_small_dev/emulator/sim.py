import sys,re; sys.path.insert(0,__file__.rpartition('/')[0]); from sass import load
# in-order lone warp: stall counts, 6 scoreboards, one shared-memory queue
def lat(t):
    op=re.sub(r'^@!?U?P\d+ ','',t).split()[0]
    if op.startswith('LDS'): return 30,(4 if '128' in op else 2)
    if op.startswith('SHFL'): return 24,2
    if op.startswith('MUFU'): return 20,0
    if op.startswith('STS'): return 12,(4 if '128' in op else 2)
    if op.startswith('LDSM'): return 32,4
    if op.startswith('VOTE'): return 10,0
    return None
def sim(ins,reps=4,verbose=False):
    t=0;sb=[0]*6;q=0;out=[];mark=[]
    for r in range(reps):
        for (a,x,c) in ins:
            for i in range(6):
                if c['wait']>>i&1: t=max(t,sb[i])
            l=lat(x)
            if l:
                L,occ=l
                st=max(t,q) if occ else t
                if occ: q=st+occ
                done=st+L
                if c['w']<6: sb[c['w']]=max(sb[c['w']],done)
                if c['r']<6: sb[c['r']]=max(sb[c['r']],st+8)
            if verbose and r==1: print(t,hex(a),x)
            t+=max(1,c['stall'])
            if re.match(r'(@\S+ )?BRA ',x) and (a,x,c)==ins[-1]: t+=10
        mark.append(t)
    return mark
def span(P,a,b): return [i for i in P if a<=i[0]<=b]
if __name__=='__main__':
    P=load(sys.argv[1],sys.argv[2]); ins=span(P,int(sys.argv[3],16),int(sys.argv[4],16)); skip=sys.argv[5].split(',') if len(sys.argv)>5 and sys.argv[5] else []
    sk=[tuple(int(y,16) for y in s.split('-')) for s in skip]
    ins=[i for i in ins if not any(lo<=i[0]<=hi for lo,hi in sk)]
    m=sim(ins,4,len(sys.argv)>6); print(len(ins),m,[m[i+1]-m[i] for i in range(3)])
