# fin.py NAME.cu OUT.py VERSION DOC
import sys
from lib import *
cu,out,ver,doc=sys.argv[1:5]
h=HEAD; i=h.index('"""'); j=h.index('"""',i+3)+3
h=h[:i]+'"""'+open(doc).read().rstrip()+'\n"""'+h[j:]
t=TAIL
assert t.count('qr_p1')==1; t=t.replace('qr_p1','qr_'+ver)
b=open(cu).read()
if 'T_WORDS' in b:
    assert t.count('10240')==1; t=t.replace('10240','12288')
s=h+b+t
assert 'str'+'eam' not in s.lower()
open(out,'w').write(s)
