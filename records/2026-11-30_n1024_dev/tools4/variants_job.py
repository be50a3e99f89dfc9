from qr import *
import prof, time
t0 = time.time()
print(torch.cuda.get_device_name(), flush=True)
fs = {}
for x in '101 141c 142c 151b 152a 152b'.split():
    if not os.path.exists('s' + x + '.so'): continue
    f = make(load('s' + x + '.so'), 2, 4)
    try: check(f, x, ['dense:2', 'band'], b=4, n=1024); fs[x] = f
    except Exception as e: print(x, 'FAILED', e, flush=True); break
ins = {c: R.generate_input(60, 1024, k, 5, c) for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0))}
for rep in range(2):
    for c in ins:
        for x in fs: print(x, c, 'ms min/median', [round(v, 4) for v in timing(fs[x], ins[c], 12)], flush=True)
for x in ('152a',):
    try: prof.profile('p' + x + '.so', 2, 4, bs=(60, 1))
    except Exception as e: print('profile', x, e, flush=True)
print('t', round(time.time() - t0, 1), flush=True)
L = [x for x in ('101', '142c', '152a') if x in fs]
for n, c, k in ((1024, 'band', 0), (1024, 'band', 2), (1024, 'mixed', 0), (1000, 'band', 0)):
    w = {x: 0 for x in L}
    for seed in range(5):
        a = R.generate_input(48, n, k, 5000 + 17 * seed + n, c)
        for x in L: w[x] = max(w[x], round(residuals(a, *fs[x](a)).worst()['factor'], 2))
    print(n, c, k, w, 't', round(time.time() - t0, 1), flush=True)
    if time.time() - t0 > 6: break
