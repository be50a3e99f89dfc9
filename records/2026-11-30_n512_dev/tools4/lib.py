import sys
class B:
    def __init__(s,src): s.b=open(src).read()
    def rep(s,x,y,n=1):
        assert s.b.count(x)==n,(s.b.count(x),x)
        s.b=s.b.replace(x,y)
    def cut(s,x,y,new,incl=False):
        i=s.b.index(x); j=s.b.index(y,i)+(len(y) if incl else 0)
        s.b=s.b[:i]+new+s.b[j:]
    def save(s,dst): open(dst,'w').write(s.b)
