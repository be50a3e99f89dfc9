import re,collections,sys
src=[''] + open(sys.argv[2]).read().split('\n')
fn={}; cur=None
for i,l in enumerate(src):
    m=re.match(r'(?:template.*|DEVICE|NOINLINE|__global__|static)\s.*?(\w+)\(',l) or re.match(r'\s+(geqrf_kernel)\(',l)
    if m and not l.startswith('  ') : cur=m[1]
    fn[i]=cur
outer=collections.Counter(); leaf=collections.Counter(); stack=[]; infn=False; want='ILb1'
new=True
for l in open(sys.argv[1]):
    if l.startswith('.text.') or '.section' in l: infn=want in l
    m=re.search(r'//## File "([^"]*)", line (\d+)(.*)',l)
    if m:
        if new: stack=[]; new=False
        stack.append((m[1],int(m[2]))); continue
    if re.match(r'\s+/\*[0-9a-f]{4,}\*/',l):
        new=True
        if infn and stack:
            own=[x for x in stack if x[0].endswith('.cu')]
            names=[fn.get(x[1]) for x in own]
            # outermost frame inside factor_matrix
            o=None
            for (f,n),nm in zip(own,names):
                if nm=='factor_matrix': o=n
            outer[(o,src[o].strip()[:90] if o else names[-1] if names else '?')]+=1
            leaf[names[0] if names else '?']+=1
print(sum(outer.values()))
for k,v in leaf.most_common(30): print(v,k)
