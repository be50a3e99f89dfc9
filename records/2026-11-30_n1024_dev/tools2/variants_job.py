from qr import *
import prof, time
t0 = time.time()
print(torch.cuda.get_device_name(), flush=True)
fs = {}
for x in sys.argv[1].split(','):
    fs[x] = make(load('t' + x + '.so'), 2, 4)
    try: check(fs[x], x, ['dense:2', 'upper'], b=4, n=1024)
    except Exception as e: print(x, 'FAILED', e, flush=True); raise
ins = {c: R.generate_input(60, 1024, k, 5, c) for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0))}
for c in ins:
    for x in fs: print(x, c, 'ms min/median', [round(v, 4) for v in timing(fs[x], ins[c], 12)], flush=True)
for x in list(fs)[-2:]: print(x, 'b=1 dense ms', timing(fs[x], ins['dense'][:1].contiguous(), 8), flush=True)
for x in ('62', '63'):
    if x in fs: prof.profile('p' + x + '.so', 2, 4, bs=(60, 1))
print('t', round(time.time() - t0, 1), flush=True)
for x in ('62', '63'):
  if x in fs:
    f = fs[x]
    check(f, x, ['dense:2', 'dense:0', 'mixed:2', 'rankdef', 'nearrank', 'clustered', 'band', 'rowscale', 'nearcollinear', 'upper', 'diagonal'], b=16)
    a = R.generate_input(60, 1024, 2, 77, 'dense'); h0, t0_ = f(a); h0 = h0.clone()
    same = all(bool((f(a)[0] == h0).all()) for _ in range(20)); print('20 runs the same bits', same, flush=True)
print('t', round(time.time() - t0, 1), flush=True)
