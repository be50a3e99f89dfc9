# mk.py NAME patch,patch -> NAME.cu
import sys; from lib import *
import importlib
b=B()
for p in (sys.argv[2].split(',') if len(sys.argv)>2 else []):
    m,f=p.split('.'); getattr(importlib.import_module(m),f)(b)
open(sys.argv[1]+'.cu','w').write(b.b)
