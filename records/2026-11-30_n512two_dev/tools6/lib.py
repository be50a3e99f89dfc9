import sys
class B:
    def __init__(s,f): s.b=open(f).read()
    def rep(s,x,y,n=1):
        assert s.b.count(x)==n,(s.b.count(x),x); s.b=s.b.replace(x,y)
    def save(s,f): open(f,'w').write(s.b)
