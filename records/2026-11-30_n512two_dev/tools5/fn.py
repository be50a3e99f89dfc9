import sys,re
def fns(f):
    d={};cur=None
    for l in open(f):
        m=re.search(r'Function : (\S+)',l)
        if m: cur='exact' if 'ILb1' in m[1] else 'any'; d[cur]=[]
        else:
            m=re.match(r'\s+/\*[0-9a-f]{4,}\*/\s+(.*?);',l)
            if m: d[cur].append(m[1])
    return d
if __name__=='__main__':
    a,b=fns(sys.argv[1]),fns(sys.argv[2])
    from collections import Counter
    for k in a:
        print(k,'identical' if a[k]==b[k] else 'differs')
        op=lambda x: Counter(re.sub(r'^@!?U?P\d+ ','',i).split()[0].split('.')[0] for i in x)
        x,y=op(a[k]),op(b[k]); print({o:(x[o],y[o]) for o in set(x)|set(y) if x[o]!=y[o]})
