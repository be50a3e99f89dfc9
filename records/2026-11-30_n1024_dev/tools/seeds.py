import sys; name = sys.argv[1]; sys.argv = [sys.argv[0], name, 'build']
import sub_load
from qr import *
f = sub_load.load(name).custom_kernel
worst = {}
for seed in range(100, 110):
    for c in ('dense:2', 'dense:0', 'dense:1', 'dense:4', 'mixed:2', 'rankdef', 'nearrank', 'clustered', 'band', 'rowscale', 'nearcollinear', 'upper', 'diagonal'):
        nm, _, k = c.partition(':'); a = R.generate_input(8, 1024, int(k or 0), seed * 7919 + 13, nm); h, tau = f(a)
        assert torch.isfinite(h).all() and torch.isfinite(tau).all(), (c, seed)
        w = residuals(a, h, tau).worst(); worst[c] = tuple(max(x, y) for x, y in zip(worst.get(c, (0, 0)), (w['factor'], w['orth'])))
print(name, 'ten seeds x 8 matrices, worst factor/orth:', {c: (round(x, 2), round(y, 2)) for c, (x, y) in worst.items()}, flush=True)
z = torch.zeros(2, 1024, 1024, device='cuda'); h, tau = f(z); print('zero', bool((h == 0).all()), bool((tau == 0).all()))
e = torch.eye(1024, device='cuda').repeat(2, 1, 1); h, tau = f(e); print('identity', residuals(e, h, tau).worst())
for s in (1e-30, 1e30, 1e-20, 1e20): a = R.generate_input(2, 1024, 1, 5) * s; h, tau = f(a); print('scale', s, bool(torch.isfinite(h).all()), {k: round(v, 2) for k, v in residuals(a, h, tau).worst().items()})
a = R.generate_input(2, 1024, 0, 6); a[:, :, ::3] = 0; h, tau = f(a); print('zero columns', residuals(a, h, tau).worst())
a = R.generate_input(2, 700, 0, 6).mT; h, tau = f(a); print('transposed input', residuals(a.contiguous(), h, tau).worst())
for b in (1, 33, 133, 500): a = R.generate_input(b, 520, 1, b); h, tau = f(a); print('batch', b, 'n 520', {k: round(v, 2) for k, v in residuals(a, h, tau).worst().items()})
for n in (513, 640, 767, 900, 1023, 1025, 1280, 1535): 
    print(n, {c: round(residuals(a, *f(a)).worst()['factor'], 2) for c in ('dense', 'band', 'rowscale', 'nearrank') for a in [R.generate_input(4, n, 0, n, c)]}, flush=True)
