from lib import B as BB
import d136,d113
def ex(b):
    b.rep('''#pragma unroll
  for (int pair = 0; pair < 2; pair++) {  // refl''','''  uint32_t wh[GROUPS / 2][4], wl[GROUPS / 2][4];
#pragma unroll
  for (int pair = 0; pair < 2; pair++) {  // refl''')
    d113.apply(b)
b=BB('body144.cuh'); ex(b); b.save('body147.cuh')
b=BB('body146.cuh'); ex(b); b.save('body148.cuh')
b=BB('body144.cuh'); d136.w(b); d136.low(b); b.save('body149.cuh')
b=BB('body144.cuh'); d136.u(b); b.save('body150.cuh')
