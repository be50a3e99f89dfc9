import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
i=t.index("  if (two_w) {\n#pragma unroll\n    for (int r = 0; r < GROUPS; r++) {\n      if (r < 6"); j=t.index("  } else {\n    uint4(*mine)",i)
b=t[i:j]
b=b.replace("  if (two_w) {\n","  // inside the panel one window's columns are left alone: the W' of those warps is zero\n  if (TERMS == 2 && inside && me.ws >> 1 != (part.window < 0 ? 1 : part.window)) {\n  } else if (two_w) {\n",1)
t=t[:i]+b+t[j:]
open(sys.argv[2],'w').write(t)
