import os
def load(path):
    src=open(path).read(); i=src.index("CUDA = r'''\n")+len("CUDA = r'''\n"); j=src.index("'''\n",i)
    return src[:i],src[i:j],src[j:]
PARENT=os.environ.get('PARENT','/work/main/records/2026-11-30_n512two_dev/tools5/candidate_p1.py')
HEAD,BODY,TAIL=load(PARENT)
class B:
    def __init__(s,b=None): s.b=BODY if b is None else b
    def rep(s,x,y,n=1):
        assert s.b.count(x)==n,(s.b.count(x),x)
        s.b=s.b.replace(x,y)
    def cut(s,x,y,new,incl=False):
        assert s.b.count(x)==1,(s.b.count(x),x)
        i=s.b.index(x); j=s.b.index(y,i)+(len(y) if incl else 0)
        s.b=s.b[:i]+new+s.b[j:]
