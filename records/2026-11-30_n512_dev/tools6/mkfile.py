# mkfile.py NAME.cu OUT MODNAME CLASS(0/1) : development text -> file
import sys
from lib import *
cu,out,name,cls=sys.argv[1:5]
t=TAIL; b=open(cu).read()
def rep(x,y):
    global t
    assert t.count(x)==1,(t.count(x),x); t=t.replace(x,y)
rep('qr_p1',name)
rep('\nFP32_CLASS = False','\nFP32_CLASS = %s'%(cls=='1'))
if 'T_WORDS' in b: rep('10240','12288')
s=HEAD+b+t
assert 'str'+'eam' not in s.lower()
open(out,'w').write(s)
