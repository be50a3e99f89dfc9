# mkfile.py BODY VERSION DOC OUT: v29's file with this body (hooks stripped) and the head and tail of v29 as changed
import sys, re
body, ver, doc, out = sys.argv[1:5]
src = open('/work/main/submissions/v29_n512_overlapped_stages.py').read()
b = re.sub(r'^//@.*\n', '', open(body).read(), flags=re.M)
for m in re.findall(r'#ifndef (\w+_V)\n#define \1 (\S+)\n#endif\n', b):
    b = b.replace('#ifndef %s\n#define %s %s\n#endif\n' % (m[0], m[0], m[1]), '')
    v = {'FP32_CLASS_V': 'true'}.get(m[0], m[1])
    b = re.sub(r'\b%s\b' % m[0], v, b)
i = src.index('// ---------------------------------------------------------------- sizes')
j = src.index('template <bool EXACT>\n__global__')
k = b.index('// ---------------------------------------------------------------- sizes')
src = src[:i] + b[k:].rstrip() + '\n\n' + src[j:]
src = src.replace('(int)sizeof(Shared)', 'SHARED_BYTES').replace('THREADS, sizeof(Shared)>>>', 'THREADS, SHARED_BYTES>>>')
d = open(doc).read().split('=====\n')
src = re.sub(r'"""v29.*?"""', lambda _: '"""' + d[0].rstrip() + '\n"""', src, count=1, flags=re.S)
p0 = src.index('// PRECISION.'); p1 = src.index('// FEW INSTRUCTIONS.')
src = src[:p0] + d[1].rstrip() + '\n//\n' + src[p1:]
src = src.replace('qr_v29', 'qr_' + ver).replace('low term (as much, written only where a panel asks for it), T.', 'low term (as much), T.')
assert 'str' + 'eam' not in src.lower()
open(out, 'w').write(src)
