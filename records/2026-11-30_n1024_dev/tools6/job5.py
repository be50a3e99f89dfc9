from lib import *
t0 = time.time()
f = {x: load(x) for x in ('base', 'v122_241', 's_v130b')}
from fload import fload
try: f['file'] = f['v130'] = fload('v130')
except Exception as e: print('FILE FAILED', e, flush=True)
print('t', round(time.time() - t0, 1), flush=True)
ins = {c: R.generate_input(60, 1024, k, 5, c) for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0))}
y = {c: f['base'](ins[c]) for c in ins}
for x in f: print(x, 'same bits as base', [sum(torch.equal(y[c][0], z[0]) and torch.equal(y[c][1], z[1]) for z in [f[x](ins[c]) for _ in range(10)]) for c in ins], flush=True)
for rep in range(4):
    for c in ins: print('60x1024', c, {x: timing(f[x], ins[c]) for x in f}, flush=True)
CASES = [('dense', 0), ('dense', 1), ('dense', 2), ('dense', 4), ('upper', 0), ('upper', 2), ('diagonal', 0), ('rankdef', 0), ('nearrank', 0), ('clustered', 0), ('band', 0), ('rowscale', 0), ('nearcollinear', 0), ('mixed', 0), ('mixed', 2)]
for n in (513, 700, 768, 900, 1000, 1023, 1024, 1025, 1200, 1536):
    w = {}
    for c, k in CASES:
        a = R.generate_input(8, n, k, n + 7, c); h, tau = f['file'](a); r = residuals(a, h, tau).worst(); assert torch.isfinite(h).all() and torch.isfinite(tau).all(), (n, c)
        w[c + str(k)] = round(r['factor'], 2), round(r['orth'], 2), round(r['column'], 3)
    print('file', n, 'max factor', max(w.values())[0], 'orth', max(v[1] for v in w.values()), 'column', max(v[2] for v in w.values()), w if n == 1024 else '', 't', round(time.time() - t0, 1), flush=True)
for b in (64, 66, 30): a = R.generate_input(b, 1024, 2, 5); print('batch', b, {x: timing(f[x], a, 6) for x in f}, flush=True)
for n in (513, 700, 768, 900): a = R.generate_input(60, n, 2, 5); print('two terms', n, timing(f['file'], a, 6), flush=True)
for c, k, n in (('dense', 2, 1024), ('mixed', 2, 1024), ('nearrank', 0, 1024), ('dense', 1, 1536), ('dense', 2, 700)):
    a = R.generate_input(2, n, k, 3, c); a0 = a.clone(); out = f['file'](a); print(c, n, R.check_implementation(a0, out), 'input kept', bool((a == a0).all()), flush=True)
z = torch.zeros(2, 1024, 1024, device='cuda'); h, tau = f['file'](z); print('zero', bool((h == 0).all()), bool((tau == 0).all()), 't', round(time.time() - t0, 1), flush=True)
g = load('v122_431'); o = load('F3431')
for n in (1025, 1200, 1536):
    for c, k in (('dense', 2), ('band', 0), ('upper', 2), ('mixed', 0)):
        a = R.generate_input(4, n, k, n, c); x, y = o(a), g(a); assert torch.equal(x[0], y[0]) and torch.equal(x[1], y[1]), (n, c)
    a = R.generate_input(24, n, 2, 5); print('v122', n, 'same bits', timing(o, a, 5), timing(g, a, 5), 'v130', timing(f['file'], a, 5), flush=True)
print('t', round(time.time() - t0, 1), flush=True)
