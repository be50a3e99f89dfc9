# p107.py IN OUT: on top of p106
import sys, re
b = open(sys.argv[1]).read()
exec(open('/tmp/n512two/p106.py').read().split('import re\n')[1].split('\n# ---- constants')[0]) if False else None
def rep(x, y):
    global b
    assert b.count(x) == 1, (b.count(x), x)
    b = b.replace(x, y)
rep('''// ---------------------------------------------------------------- load and scale
''', '''// The same with the high term cut, not rounded: a shorter chain. The low term is rounded: 21 bits in all.
DEVICE void cut(float x, float y, uint32_t& hi, uint32_t& lo) {
  const float a = bits_float(float_bits(x) & 0xffffe000u), b = bits_float(float_bits(y) & 0xffffe000u);
  hi = pack_half2(a, b);
  lo = pack_half2(x - a, y - b);
}

// ---------------------------------------------------------------- load and scale
''')
x='''          float(&x)[4] = c[4 * quad + (z >> 1)];
          split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z >> 2][z & 3], lo[z >> 2][z & 3]);'''
assert x in b
b = b.replace(x, x.replace('split(','cut('), 1)
open(sys.argv[2], 'w').write(b)
