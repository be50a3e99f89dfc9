import re,sys
SRC=open('/work/main/submissions/v85_n512_no_local_memory.py').read()
i=SRC.index("CUDA = r'''\n")+len("CUDA = r'''\n"); j=SRC.index("'''\n",i)
HEAD,BODY,TAIL=SRC[:i],SRC[i:j],SRC[j:]
class B:
    def __init__(s,b=BODY): s.b=b
    def rep(s,x,y,n=1):
        assert s.b.count(x)==n,(s.b.count(x),x)
        s.b=s.b.replace(x,y)
    def cut(s,x,y,new,incl=False):
        assert s.b.count(x)==1,(s.b.count(x),x)
        i=s.b.index(x); j=s.b.index(y,i)+(len(y) if incl else 0)
        s.b=s.b[:i]+new+s.b[j:]
