# Q: restarts' masks out of line; TRUST by n^2
import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
rep('''      if (r < 6 || me.wg == 1) x_change.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    bar_sync(1 + me.ws, 64);
''','''      x_change.partial[me.wg][me.ws][r][me.lane] = make_float4(w[r][0], w[r][1], w[r][2], w[r][3]);
    }
    if (RARE(part.window >= 0)) {
      select_part(x_change.partial[me.wg][me.ws], part, me);
#pragma unroll
      for (int r = 0; r < GROUPS; r++) *(float4*)&w[r][0] = x_change.partial[me.wg][me.ws][r][me.lane];
    }
    bar_sync(1 + me.ws, 64);
''')
i=t.index("    if (part.window >= 0) {\n#pragma unroll\n      for (int r = 0; r < GROUPS; r++) {\n#pragma unroll\n        for (int e"); j=t.index("#pragma unroll\n    for (int st = 0; st < GROUPS / 2; st++) {",i)
t=t[:i]+t[j:]
rep('''struct Part { int window, from, to; };
''','''struct Part { int window, from, to; };
// Of this lane's W only that: rare.
NOINLINE void select_part(float4 (*w)[32], Part part, Lane me) {
#pragma unroll 1
  for (int i = 0; i < 4 * GROUPS; i++) {
    const int reflector = 8 * (i >> 2) + 2 * me.q + (i & 1);
    if (reflector < part.from || reflector >= part.to || me.ws >> 1 != part.window) (&w[i >> 2][me.lane].x)[i & 3] = 0.f;
  }
}
''')
rep('''// ratio = |p| / (TRUST n), at least''','''// ratio = |p| / (TRUST n^2), at least''')
rep("constexpr float TRUST = 64.f,","constexpr float TRUST = 1.f / 8,")
rep("reciprocal(TRUST * (float)job.n * own)","reciprocal(TRUST * (float)job.n * (float)job.n * own)")
open(sys.argv[2],'w').write(t)
