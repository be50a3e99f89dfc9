# mk.py NAME patch,patch
import sys; from lib import *
import importlib
b=B()
for p in sys.argv[2].split(','):
    m,f=p.split('.'); getattr(importlib.import_module(m),f)(b)
open(sys.argv[1]+'.cu','w').write(b.b)
