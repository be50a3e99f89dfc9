import re,sys
t=open(sys.argv[1]).read(); th=sys.argv[2]
cs=list(re.finditer(r'<<<<<<< \S+\n(.*?)\|\|\|\|\|\|\| v85.cu\n(.*?)=======\n(.*?)>>>>>>> \S+\n',t,re.S))
out='';pos=0
for m in cs:
    a,o,b=m.groups(); out+=t[pos:m.start()]; pos=m.end()
    if 'Norm gram(Shared& s, int first' in b: r=b.replace('  constexpr int LOW = TILES * 512;\n','')
    elif 'top[i] = make_float2' in b: r='''    const float2 hi = unpack_half2(p_tile(s, 0, first + tile, group)[word]), lo = unpack_half2(p_tile(s, 1, first + tile, group)[word]);
    top[i] = make_float2(hi.x + lo.x, hi.y + lo.y);
'''
    elif 'load_matrix(a_lo[z]' in b: r='''      const int at = p_offset(2 * u) + z * (2 * P_GROUP);
      load_matrix(a[z], left + at);
      load_matrix(hi[z], right + at);
      load_matrix(lo[z], right + at + P_LOW);
      load_matrix(a_lo[z], left + at + P_LOW);
'''
    elif 'Columns scaled by powers' in a: r=b
    elif 'clear_corner(Shared' in a: r=b
    elif 'DEVICE int low_row' in a: r=a[:a.index('DEVICE void store_products')]
    elif 'const Norm norm = gram' in b: r=b
    elif 'bool ready = TERMS' in a: r=b.replace('    if (s.two_terms) {\n','    if (TERMS == 1 && s.two_terms) {\n').replace('bool ready = !s','bool ready = TERMS == 2 || !s')
    else: r='@@@@\n'+m.group(0); print('LEFT',m.group(0)[:1500])
    out+=r
t=out+t[pos:]
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
# norms
i=t.index('DEVICE void window_norms'); j=t.index('\n}\n',i)+3
print(t[i:j])
rep('''  const float largest_norm = largest(own''','''  if constexpr (TERMS == 2) s.ratio[me.lane] = fmaxf(own == 0.f ? 0.f : reciprocal(TRUST * (float)job.n * own), 1.f / MOST_TRUST);
  const float largest_norm = largest(own''')
rep("    s.two_terms = first_pass ? two : two || s.two_terms;\n","    s.two_terms = TERMS == 2 || (first_pass ? two : two || s.two_terms);\n")
i=t.index("  } else if (me.warp > 0 && h == 0) {\n"); j=t.index("  if (me.warp == 1) recurrence_role<0>",i)
t=t[:i]+'''  } else if (me.warp > 0 && h == 0) {
#pragma unroll 1
    for (int tile = first + me.warp - 1; tile < TILES; tile += WARPS - 2) *reinterpret_cast<uint4*>(&s.v[0][tile][4][lane * 4]) = {0u, 0u, 0u, 0u};
  } else if (TERMS == 2 && me.warp > 0 && me.warp <= 4) {
    reinterpret_cast<uint4*>(p_tile(s, 1, first - me.warp, lane >> 3))[lane & 7] = {0u, 0u, 0u, 0u};  // nor do low terms have these rows
  }
'''+t[j:]
rep("win.out[row][j], y_top = win.out[row + 1][j];","win.out[row][4 + j], y_top = win.out[row + 1][4 + j];",t.count("win.out[row][j], y_top"))
assert '@@' not in t
open(sys.argv[3],'w').write(t)
