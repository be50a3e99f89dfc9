from lib import *
from fload import fload
t0 = time.time(); import glob
for f in glob.glob('build_*.log'): print(f, open(f).read()[-400:])
fast, full = fload('v105'), fload('v105f'); print('imported', round(time.time() - t0, 1), flush=True)
ALL = ('dense:0', 'dense:1', 'dense:2', 'dense:4', 'mixed:2', 'rankdef', 'nearrank', 'clustered', 'band', 'rowscale', 'nearcollinear', 'upper', 'diagonal')
def contest(g, n, b, c, k):
    x = R.generate_input(b, n, k, 100, c); f = torch.empty(256 << 20, dtype=torch.uint8, device='cuda'); g(x); ts = []
    for _ in range(15):
        f.fill_(1); e0, e1 = torch.cuda.Event(True), torch.cuda.Event(True); e0.record(); g(x); e1.record(); torch.cuda.synchronize(); ts.append(e0.elapsed_time(e1))
    return round(sum(ts) / len(ts), 4)
for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0)): print('60x1024', c, 'mean ms: fast', contest(fast, 1024, 60, c, k), 'FP32 class', contest(full, 1024, 60, c, k), flush=True)
for n in (513, 640, 768, 896, 897): print(n, 'x 60 mean ms: fast', contest(fast, n, 60, 'dense', 2), 'FP32 class', contest(full, n, 60, 'dense', 2), flush=True)
for g, c, k, n in ((fast, 'dense', 2, 1024), (full, 'dense', 2, 1024), (full, 'mixed', 2, 1024), (full, 'nearrank', 0, 1024), (fast, 'band', 0, 640), (fast, 'rowscale', 0, 515)):
    a = R.generate_input(2, n, k, 3, c); a0 = a.clone(); out = g(a); print(c, n, R.check_implementation(a0, out), 'input kept', bool((a == a0).all()), flush=True)
for n in (640, 1024):
    z = torch.zeros(2, n, n, device='cuda'); h, tau = full(z); print('zero', bool((h == 0).all()), bool((tau == 0).all()))
    e = torch.eye(n, device='cuda').repeat(2, 1, 1); print('identity', residuals(e, *full(e)).worst())
    for s in (1e-30, 1e30, 1e-20, 1e20): a = R.generate_input(2, n, 1, 5) * s; h, tau = full(a); print('scale', s, bool(torch.isfinite(h).all()), {k: round(v, 2) for k, v in residuals(a, h, tau).worst().items()})
    a = R.generate_input(2, n, 0, 6); a[:, :, ::3] = 0; h, tau = full(a); print('zero columns', residuals(a, h, tau).worst())
    a = R.generate_input(2, n, 0, 6).mT; h, tau = full(a); print('transposed input', residuals(a.contiguous(), h, tau).worst())
    a = R.generate_input(4, n, 2, 77); big = torch.empty(4 * n * n + 1, device='cuda')[1:].view(4, n, n); big.copy_(a); print('unaligned: same as aligned', bool((full(big)[0] == full(a)[0]).all()), flush=True)
for b, n in ((1, 1024), (33, 640), (133, 1024), (500, 520)): a = R.generate_input(b, n, 1, b); h, tau = full(a); print('batch', b, n, {k: round(v, 3) for k, v in residuals(a, h, tau).worst().items()}, flush=True)
print('t', round(time.time() - t0, 1), flush=True)
for n in (897, 1024, 1536): check(fast, 'one term', ('dense:0', 'band', 'rowscale', 'upper:2', 'mixed:2', 'nearrank'), 4, n)
for n in (513, 640, 768, 1024, 896):
    w = [0.] * 3
    for k in range(25):
        a = R.generate_input(16, n, 2 * (k % 2), 2000 + k, 'upper'); r = residuals(a, *full(a)).worst(); w = [max(p, q) for p, q in zip(w, (r['factor'], r['orth'], r['column']))]
    print('upper', n, '400 matrices, factor/orth/column', [round(v, 3) for v in w], flush=True)
for n in (1024, 513, 640, 768): 
    if time.time() - t0 < 16: check(full, 'FP32 class', ALL, 8, n, tuple(range(100, 104)))
for n in (514, 577, 700, 767, 769, 831, 896, 1023, 1025, 1280, 1536):
    if time.time() - t0 < 18: check(full, 'FP32 class', ('dense:0', 'dense:2', 'band', 'upper', 'rowscale', 'mixed:0'), 3, n, (n,))
print('t', round(time.time() - t0, 1), flush=True)
