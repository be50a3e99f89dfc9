# mkfile2.py BODY VERSION DOC OUT HEAD TAIL
import sys, re
body, ver, doc, out, head, tail = sys.argv[1:7]
exec(open('mkfile.py').read().split("assert 'str'")[0].replace("body, ver, doc, out = sys.argv[1:5]", ""))
h = open(head).read()
i = h.index("// Low terms of V: 16 tiles"); j = h.index('DEVICE void bulk_store_commit()')
assert src.count('DEVICE void bulk_store_commit()') == 1
src = src.replace('DEVICE void bulk_store_commit()', h[i:j] + 'DEVICE void bulk_store_commit()')
for l in re.findall('DEVICE void bulk_store_read_older.*\n', h): src = src.replace('DEVICE void bulk_store_wait()', l + 'DEVICE void bulk_store_wait()')
t = open(tail).read()
a, b_ = t.index('  #ifdef ONLY_EXACT') if '  #ifdef ONLY_EXACT' in t else t.index('#ifdef ONLY_EXACT'), t.index('#else\n', t.index('ONLY_EXACT'))
e = t.index('#endif\n', b_)
t = t[:a] + t[b_ + 6:e] + t[e + 7:]
i = src.index('template <bool EXACT>\n__global__'); j = src.index('}  // namespace n512')
src = src[:i] + t.strip() + '\n\n' + src[j:]
assert 'str' + 'eam' not in src.lower()
open(out, 'w').write(src)
