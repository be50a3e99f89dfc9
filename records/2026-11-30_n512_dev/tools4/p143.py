from lib import B as BB
import d143,d140,d136,d113
b=BB('body134.cuh'); x='constexpr int WARPS = 8;'; b.rep(x,'constexpr int SHARED_START = 1024;  // the system has the first kilobyte\n'+x)
b.save('body134s.cuh')
d143.apply(b); b.save('body143.cuh')
c=BB('body143.cuh'); d140.apply(c); c.save('body144.cuh')
c=BB('body143.cuh'); d136.w(c); d136.low(c); d136.u(c); c.save('body145.cuh')
c=BB('body144.cuh'); d136.w(c); d136.low(c); d136.u(c); c.save('body146.cuh')
