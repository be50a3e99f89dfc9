import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
rep("auto turn = [&]() { return (blocks * (blocks - 1) / 2 + j) & 1; };","auto turn = [&]() {\n    const int b = opaque(blocks);\n    return (b * (b - 1) / 2 + j) & 1;\n  };")
rep("((j & 1 ? (blocks - 1) * (blocks - 1) / 4 : blocks * blocks / 4) + j / 2) & 1);","stage_turn());")
rep("  auto turn = [&]() {","  auto stage_turn = [&]() {\n    const int b = opaque(blocks) - (j & 1);\n    return (b * b / 4 + j / 2) & 1;\n  };\n  auto turn = [&]() {")
i=s.index("  const uint4* wop = reinterpret_cast<const uint4*>(sm + K::O_WOP);\n  switch (first) {")
s=s[:i]+s[i:].replace("  switch (first) {","  locate();\n  switch (opaque(j) * PANEL / (K::CHUNK_ROWS * K::STEP)) {",1)
open(dst,'w').write(s)
