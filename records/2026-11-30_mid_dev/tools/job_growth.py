from lib import *
t0 = time.time()
for x in ('psp', 'pi1'):
    try: profile(load(x), x)
    except Exception as e: print(x, e, flush=True)
f = {'growth 30, 1e-4': load('t104_2'), '20, 1e-4': load('a20'), '15, 1e-4': load('a15'), '30, 1e-3': load('a30')}
ins = {c: R.generate_input(60, 1024, k, 5, c) for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0), ('upper', 2))}
for c in ins: print('60x1024', c, {x: timing(f[x], ins[c]) for x in f}, flush=True)
def tail(fs, n, c, k, reps, b=16):
    w = {}
    for s in range(reps):
        a = R.generate_input(b, n, k, 1000 + s, c)
        for x in fs:
            r = residuals(a, *fs[x](a)).worst()
            w[x] = tuple(round(max(p, q), 3) for p, q in zip(w.get(x, (0, 0, 0)), (r['factor'], r['orth'], r['column'])))
    print(n, c, k, b * reps, 'matrices, factor/orth/column:', w, flush=True)
tail(f, 1024, 'upper', 2, 40)
g = {'growth 30': load('t104_3'), '20': load('a20_3')}
for n in (513, 640, 768): tail(g, n, 'upper', 2, 40 if n < 768 else 20)
h = {x: f[x] for x in ('growth 30, 1e-4', '20, 1e-4')}
for n in (800, 896): tail(h, n, 'upper', 2, 20)
for c, k in (('upper', 0), ('mixed', 2), ('band', 0), ('rowscale', 0)):
    if time.time() - t0 < 14: tail(h, 1024, c, k, 15); tail(g, 513, c, k, 30)
print('t', round(time.time() - t0, 1), flush=True)
