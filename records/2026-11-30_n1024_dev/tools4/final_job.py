import sys, time
t0 = time.time()
import sub_load
from qr import *
def ticks(s): print(s, 't', round(time.time() - t0, 1), flush=True)
new = sys.argv[1]
f = {v: sub_load.load(v + '.py').custom_kernel for v in (new, 'v87_n1024_fewer_instructions')}
ticks('imported')
ins = {c: R.generate_input(60, 1024, k, 5, c) for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0))}
for c in ins:
    for v in f: print(v, '60x1024', c, 'ms min/median', [round(x, 4) for x in timing(f[v], ins[c], 15)], flush=True)
def contest(g, c, k):  # C inputs, flush, event, C calls, event
    xs = [R.generate_input(60, 1024, k, 100 + i, c) for i in range(1)]; fl = torch.empty(256 << 20, dtype=torch.uint8, device='cuda'); ts = []
    for _ in range(15):
        fl.fill_(1); e0, e1 = torch.cuda.Event(True), torch.cuda.Event(True); e0.record()
        for x in xs: g(x)
        e1.record(); torch.cuda.synchronize(); ts.append(e0.elapsed_time(e1) / len(xs))
    return sum(ts) / len(ts)
for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0)): print('contest protocol mean ms', c, {v: round(contest(f[v], c, k), 4) for v in f}, flush=True)
ticks('timed')
g = f[new]
for c, k, n in (('dense', 2, 1024), ('mixed', 2, 1024), ('nearrank', 0, 1024), ('upper', 2, 1024), ('dense', 1, 1536), ('mixed', 2, 1100)):
    a = R.generate_input(2, n, k, 3, c); a0 = a.clone(); out = g(a); print(c, n, R.check_implementation(a0, out), 'input kept', bool((a == a0).all()), flush=True)
ticks('checked')
a = R.generate_input(60, 1024, 2, 77, 'dense'); h0 = g(a)[0].clone(); print('20 runs the same bits', all(bool((g(a)[0] == h0).all()) for _ in range(20)), flush=True)
big = torch.empty(2 * 1024 * 1024 + 1, device='cuda')[1:].view(2, 1024, 1024); big.copy_(a[:2]); print('unaligned input', residuals(big, *g(big)).worst(), 'same as aligned', bool((g(big)[0] == h0[:2]).all()), flush=True)
worst = {}
for seed in range(100, 110):
    for c in ('dense:2', 'dense:0', 'dense:1', 'dense:4', 'mixed:2', 'rankdef', 'nearrank', 'clustered', 'band', 'rowscale', 'nearcollinear', 'upper', 'upper:2', 'upper:4', 'diagonal'):
        nm, _, k = c.partition(':'); a = R.generate_input(8, 1024, int(k or 0), seed * 7919 + 13, nm); h, tau = g(a)
        assert torch.isfinite(h).all() and torch.isfinite(tau).all(), (c, seed)
        w = residuals(a, h, tau).worst(); worst[c] = tuple(max(x, y) for x, y in zip(worst.get(c, (0, 0)), (w['factor'], w['orth'])))
    if time.time() - t0 > 7.5: break
print(new, seed - 99, 'seeds x 8 matrices, worst factor/orth:', {c: (round(x, 2), round(y, 2)) for c, (x, y) in worst.items()}, flush=True)
ticks('seeds')
z = torch.zeros(2, 1024, 1024, device='cuda'); h, tau = g(z); print('zero', bool((h == 0).all()), bool((tau == 0).all()))
e = torch.eye(1024, device='cuda').repeat(2, 1, 1); h, tau = g(e); print('identity', residuals(e, h, tau).worst())
for s in (1e-30, 1e30, 1e-20, 1e20): a = R.generate_input(2, 1024, 1, 5) * s; h, tau = g(a); print('scale', s, bool(torch.isfinite(h).all()), {k: round(v, 2) for k, v in residuals(a, h, tau).worst().items()})
a = R.generate_input(2, 1024, 0, 6); a[:, :, ::3] = 0; h, tau = g(a); print('zero columns', residuals(a, h, tau).worst())
a = R.generate_input(2, 1024, 0, 6).mT; h, tau = g(a); print('transposed input', residuals(a.contiguous(), h, tau).worst())
for b in (1, 33, 133): a = R.generate_input(b, 1024, 1, b); h, tau = g(a); print('batch', b, {k: round(v, 2) for k, v in residuals(a, h, tau).worst().items()})
a = R.generate_input(200, 900, 1, 4); h, tau = g(a); print('batch 500 n 900', {k: round(v, 2) for k, v in residuals(a, h, tau).worst().items()}, flush=True)
for n in (897, 930, 1000, 1023, 1025, 1100, 1280, 1400, 1536):
    print(n, {c: round(residuals(a, *g(a)).worst()['factor'], 2) for c in ('dense', 'band', 'rowscale', 'nearrank', 'mixed', 'upper', 'clustered', 'nearcollinear') for a in [R.generate_input(8, n, 0, n, c)]}, flush=True)
ticks('end')
