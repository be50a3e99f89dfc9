import re
def apply(B):
    # rare functions take copies: what is passed by reference lives in memory for everybody
    b=B.b
    out=[];i=0
    for m in list(re.finditer(r'NOINLINE [a-z]+ \w+\([^)]*\)',b)):
        out.append(b[i:m.start()]); t=m.group(0).replace('const Job& job','Job job').replace('const Lane& me','Lane me'); out.append(t); i=m.end()
    out.append(b[i:]); B.b=''.join(out)
def tail(B):
    B.rep('''#pragma unroll 4
  for (int row = me.warp; row < job.n; row += WARPS) {
    for (int col = (job.k + 1) * NB + me.lane; col < job.n; col += 32) {
      x |= float_bits(load_once(job.a + (size_t)row * job.n + col)) << 1;
    }
  }
''','''  for (int col = (job.k + 1) * NB + me.lane; col < job.n; col += 32) {
#pragma unroll 16
    for (int row = me.warp; row < job.n; row += WARPS) x |= float_bits(load_once(job.a + (size_t)row * job.n + col)) << 1;
  }
''')
