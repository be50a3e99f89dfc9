# mkf.py OUT VERSION DOC PLAN patches: submission from v116
import sys
from lib import B
out,ver,doc,plan=sys.argv[1:5]
src=open('/work/main/submissions/v116_n512_larft_on_tensor_cores.py').read()
i=src.index("CUDA = r'''")+len("CUDA = r'''\n"); j=src.index("'''",i)
b=B.__new__(B); b.b=src[i:j]
for p in sys.argv[5:]: getattr(__import__('p'+p),p)(b)
b.rep('PLAN\n',open(plan).read())
t=src[:i]+b.b+src[j:]
a=t.index('"""'); e=t.index('"""',a+3); t=t[:a]+'"""'+open(doc).read().rstrip()+'\n'+t[e:]
assert t.count('name="qr_v116"')==1; t=t.replace('name="qr_v116"','name="qr_%s"'%ver)
assert 'str'+'eam' not in t.lower()
open(out,'w').write(t)
