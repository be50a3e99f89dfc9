from qr import *
import prof, time
t0 = time.time()
print(torch.cuda.get_device_name(), flush=True)
fs = {}
for x in sys.argv[1].split(','):
    if not os.path.exists('s' + x + '.so'): continue
    f = make(load('s' + x + '.so'), 2, 4)
    try: check(f, x, ['dense:2', 'upper', 'rankdef', 'band'], b=4, n=1024); fs[x] = f
    except Exception as e: print(x, 'FAILED', e, flush=True)
ins = {c: R.generate_input(60, 1024, k, 5, c) for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0))}
for rep in range(2):
    for c in ins:
        for x in fs: print(x, c, 'ms min/median', [round(v, 4) for v in timing(fs[x], ins[c], 12)], flush=True)
for x in ('111h',):
    if x in fs: print(x, 'b=1 dense ms', timing(fs[x], ins['dense'][:1].contiguous(), 8), flush=True)
for x in ('111h',):
    try: prof.profile('p' + x + '.so', 2, 4, bs=(60, 1))
    except Exception as e: print('profile', x, e, flush=True)
g = torch.randn(512, 32, dtype=torch.float64); G = g.T @ g; top = g[:32]
gx = torch.zeros(32, 33); gx[:, :32] = (G / 2).float(); tp = torch.zeros(32, 36); tp[:, :32] = top.T.float()
gx, tp = gx.cuda(), tp.cuda(); ref = None
for v in (3, 4, 5):
    if not os.path.exists(f'm4_{v}.so'): continue
    lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), f'm4_{v}.so'))
    out = torch.zeros(4000, device='cuda'); clk = torch.zeros(8, dtype=torch.int32, device='cuda')
    for roles in (7, 1, 2):
        r = lib.run_micro(*[ctypes.c_void_p(t.data_ptr()) for t in (gx, tp, out, clk)], 20, 120, roles)
        print('recurrence', v, 'roles', roles, 'rc', r, 'cholesky, top, m (mean, best)', clk[:6].tolist(), flush=True)
        if roles == 7:
            if ref is None: ref = out.clone()
            m0, m1 = ref[:1280].view(32, 40)[:, :32], out[:1280].view(32, 40)[:, :32]
            print('   M differs by', float((m0 - m1).abs().max() / m0.abs().max()), flush=True)
print('t', round(time.time() - t0, 1), flush=True)
