s=open('body56.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("  g[SUB] = g[SUB + 1] = g[SUB + 2] = g[SUB + 3] = 0.f;\n","")
rep("  a[SUB] = a[SUB + 1] = a[SUB + 2] = a[SUB + 3] = 0.f;\n","")
rep("float (&a)[SUB + 4]","float (&a)[SUB]")
rep("  float g[SUB + 4];","  float g[SUB];")
rep("  float a[SUB + 4];","  float a[SUB];")
open('body57.cuh','w').write(s)
