import re,sys,collections
def c(f):
    n=collections.Counter()
    for l in open(f):
        m=re.match(r'\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)',l)
        if m: n[m[1].split('.')[0]]+=1
    return n
a,b=c(sys.argv[1]),c(sys.argv[2])
for k in sorted(set(a)|set(b),key=lambda k:-abs(b[k]-a[k]))[:22]: print(k,a[k],b[k],b[k]-a[k])
