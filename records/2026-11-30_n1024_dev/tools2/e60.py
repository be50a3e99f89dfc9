import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("  const int panels = (p.n + PANEL - 1) / PANEL;\n  return p.v + ((size_t)(block / K::C * panels + j) * K::C + block % K::C) * K::STAGE;","  const int panels = (opaque(p.n) + PANEL - 1) / PANEL;\n  return p.v + (size_t)(uint32_t)((block / K::C * panels + j) * K::C + block % K::C) * K::STAGE;")
rep("  return p.t + ((size_t)block * ((p.n + PANEL - 1) / PANEL) + j) *","  return p.t + (size_t)(uint32_t)(block * ((opaque(p.n) + PANEL - 1) / PANEL) + j) *")
open(dst,'w').write(s)
