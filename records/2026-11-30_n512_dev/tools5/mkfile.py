# mkfile.py VERSION OUT DOCFILE patches
import sys,importlib
from lib import *
ver,out,doc,patches=sys.argv[1:5]
b=B()
for p in patches.split(','):
    m,f=p.split('.'); getattr(importlib.import_module(m),f)(b)
h=HEAD; i=h.index('"""'); j=h.index('"""',i+3)+3
h=h[:i]+'"""'+open(doc).read().rstrip()+'\n"""'+h[j:]
t=TAIL
def rep(x,y):
    global t
    assert t.count(x)==1,(t.count(x),x); t=t.replace(x,y)
rep('void* v, void* v_lo, void* t, int batch, int n);','void* v, void* v_lo, int batch, int n);')
rep('''Workspace: V in fp16 (half of A's bytes), its
// low term (as much, written only where a panel asks for it), T.''','''Workspace: V in fp16 (half of A's bytes) and T, and
// V's low term (as much, written only where a panel asks for it).''')
rep('blocks * (2 * 65536 + 10240)','blocks * (75776 + 65536)')
rep('''w, w + blocks * 65536, w + blocks * 131072,
                                (int)batch, (int)n);''','''w, w + blocks * 75776, (int)batch,
                                (int)n);''')
rep('qr_v85','qr_'+ver)
s=h+b.b+t
assert 'str'+'eam' not in s.lower()
open(out,'w').write(s)
