from lib import *
t0 = time.time()
print(torch.cuda.get_device_name(), flush=True)
f = {}; ALL = ('base', 'i5', 'k1', 'm7')
for x in ALL + ('t_v110', 't_n1', 't_k7', 't_m7'):
    g = load(x)
    try: check(g, x, ('dense:2', 'band', 'upper:2', 'mixed:2', 'rowscale'), 4, 1024); check(g, x, ('dense:2', 'band', 'upper:2'), 2, 1001); f[x] = g
    except Exception as e: print(x, 'FAILED', e, flush=True); break
def protocol(g, case, k):
    xs = [R.generate_input(60, 1024, k, 1029 + 42 * (i + 1), case) for i in range(1)]
    return timing(g, xs[0])
ins = {c: R.generate_input(60, 1024, k, 5, c) for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0))}
L = [x for x in ALL if x in f]
for rep in range(4):
    for c in ins: print('60x1024', c, {x: timing(f[x], ins[c]) for x in L}, flush=True)
a = R.generate_input(1, 1024, 2, 5); print('one matrix', {x: timing(f[x], a) for x in L}, flush=True)
a = R.generate_input(60, 1000, 2, 5); print('60x1000', {x: timing(f[x], a) for x in L}, flush=True)
a = R.generate_input(60, 1024, 2, 5, 'upper'); print('upper', {x: timing(f[x], a, 4) for x in L}, flush=True)
T = [x for x in f if x[:2] == 't_']
for n in (1024, 900):
    a = R.generate_input(60, n, 2, 5); print('two terms', n, {x: timing(f[x], a) for x in T}, flush=True)
a = R.generate_input(60, 1024, 2, 5, 'upper'); print('two terms upper', {x: timing(f[x], a, 4) for x in T}, flush=True)
print('t', round(time.time() - t0, 1), flush=True)
L = [x for x in ('base', 'k1', 'm7', 'i5') if x in f]
for n, c, k in ((1024, 'band', 0), (1024, 'mixed', 0), (1000, 'band', 0), (1024, 'band', 2), (1024, 'upper', 2), (1024, 'mixed', 2), (1023, 'rowscale', 0)):
    w = {x: 0 for x in L}; o = 0
    for seed in range(5):
        a = R.generate_input(48, n, k, 5000 + 17 * seed + n, c)
        for x in L: r = residuals(a, *f[x](a)).worst(); w[x] = max(w[x], round(r['factor'], 2)); o = max(o, r['orth'])
    print(n, c, k, w, 'orth', round(o, 2), 't', round(time.time() - t0, 1), flush=True)
    if time.time() - t0 > 16: break
for n, c, k in ((1024, 'band', 0), (1024, 'upper', 2), (700, 'band', 0), (1024, 'mixed', 2), (1000, 'nearcollinear', 0)):
    w = {x: (0, 0) for x in T}
    for seed in range(2):
        a = R.generate_input(24, n, k, 5000 + 17 * seed + n, c)
        for x in T: r = residuals(a, *f[x](a)).worst(); w[x] = (max(w[x][0], round(r['factor'], 3)), max(w[x][1], round(r['column'], 3)))
    print('two terms', n, c, k, 'factor, column', w, 't', round(time.time() - t0, 1), flush=True)
    if time.time() - t0 > 20: break
