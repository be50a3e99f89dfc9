import ctypes, os, sys, torch, time
sys.path.insert(0, os.environ.get('REPO', '/work/main'))
import reference as R
from harness.residuals import residuals
HERE = os.path.dirname(os.path.abspath(__file__))
WS = {}
def load(name):
    lib = ctypes.CDLL(os.path.join(HERE, name + '.so'))
    def f(a):
        b, n, _ = a.shape
        k = b * ((n + 63) // 64)
        if k not in WS: WS.clear(); WS[k] = (torch.full((k * 400 * 1024,), 255, dtype=torch.uint8, device='cuda'), torch.full((k * 65536,), 255, dtype=torch.uint8, device='cuda'))
        v, t = WS[k]
        ld = (n + 3) // 4 * 4; h = torch.empty(b, n, ld, device='cuda'); tau = torch.empty(b, n, device='cuda')
        r = lib.geqrf_c(*[ctypes.c_void_p(x.data_ptr()) for x in (a, h, tau, v, t)], n, ld, b)
        assert r == 0, r
        return h[:, :, :n].mT, tau
    f.lib = lib
    return f
fl = None
def timing(f, a, reps=12):
    global fl
    if fl is None: fl = torch.empty(256 << 20, dtype=torch.uint8, device='cuda')
    f(a); torch.cuda.synchronize(); ts = []
    for _ in range(reps):
        fl.fill_(1); e0, e1 = torch.cuda.Event(True), torch.cuda.Event(True); e0.record(); f(a); e1.record(); torch.cuda.synchronize(); ts.append(e0.elapsed_time(e1))
    ts.sort(); return round(ts[0], 4), round(ts[len(ts) // 2], 4)
def check(f, tag, cases, b, n, seeds=(11,)):
    out = {}
    for c in cases:
        name, _, k = c.partition(':'); w = {}
        for s in seeds:
            a = R.generate_input(b, n, int(k or 0), s, name); h, tau = f(a); torch.cuda.synchronize()
            fin = bool(torch.isfinite(h).all() and torch.isfinite(tau).all())
            r = residuals(a, h, tau).worst() if fin else {'factor': 1e9, 'orth': 1e9, 'column': 1e9}
            w = {x: max(w.get(x, 0), y) for x, y in r.items()}
        out[c] = (round(w['factor'], 3), round(w['orth'], 2), round(w['column'], 3))
    print(tag, b, n, 'factor/orth/column', out, flush=True)
NAMES = {0: 'load+scale', 1: 'wait V', 2: 'phase1', 3: 'sum, split', 4: 'sync', 26: 'STS+join', 27: 'inbox wait', 28: 'T wait', 5: 'T mult', 6: "wait W'", 7: 'phase2', 22: '(misc)', 8: 'R store, H L', 9: 'top, gram, send', 10: 'wait X', 11: 'sum X', 23: 'cholesky', 24: 'rest of recurrence', 25: 'guard and top', 12: 'clear', 13: 'V wgmma', 14: 'V epilogue', 15: 'W', 16: 'reduce, send', 17: 'wait W', 18: 'sum W', 19: 'subst', 20: 'update', 21: 'T part 1+loads', 29: 'max, T12', 31: '-'}
def profile(f, tag, n=1024, bs=(60, 1)):
    import numpy as np
    buf = np.zeros(32, dtype=np.uint64); z = ctypes.c_void_p(0)
    get = lambda: f.lib.geqrf_c(z, ctypes.c_void_p(buf.ctypes.data), z, z, z, 0, 0, 0)
    for b in bs:
        a = R.generate_input(b, n, 2, 5); f(a); torch.cuda.synchronize(); get(); f(a); torch.cuda.synchronize(); get()
        buf[31] = 0; tot = int(buf.sum())
        print(f'profile {tag} n={n} b={b}: total {tot} cycles; ' + '; '.join(f'{NAMES[i]} {int(buf[i]) // 1000}k' for i in NAMES if buf[i]), flush=True)
PN = {1: 'wait V', 2: 'phase1', 3: 'STS+join', 4: 'sums, exchange', 5: 'split', 6: 'sync', 7: "T'W", 8: "wait W'", 9: 'phase2', 35: 'after blocks', 10: 'H L', 11: 'sync, cluster wait, top sends', 12: 'gram', 13: 'send', 14: 'R store', 15: 'wait', 16: 'sum', 17: 'cholesky', 18: 'rest of recurrence', 19: 'guard', 20: 'clear', 21: 'V wgmma', 22: 'V tiles', 24: 'W (last)', 25: 'V to H', 26: 'wait W', 27: 'sum, tau', 28: 'Z update', 29: 'sync', 23: 'swap, end', 30: 'T1 T2', 31: 'read, max', 32: 'T12', 33: 'wait max', 34: 'scale'}
def profile2(f, tag, n=1024, bs=(60, 1)):
    import numpy as np
    buf = np.zeros(64, dtype=np.uint64); z = ctypes.c_void_p(0)
    get = lambda: f.lib.geqrf_c(z, ctypes.c_void_p(buf.ctypes.data), z, z, z, 0, 0, 0)
    for b in bs:
        a = R.generate_input(b, n, 2, 5); f(a); torch.cuda.synchronize(); get(); f(a); torch.cuda.synchronize(); get()
        tot = int(buf[:63].sum())
        print(f'profile {tag} n={n} b={b}: total {tot} cycles; ' + '; '.join(f'{PN.get(i, i)} {int(buf[i]) / 1000:.1f}k' for i in list(PN) + [j for j in range(63) if j not in PN] if buf[i]), flush=True)
MN = {1: 'wait V', 2: 'W product', 3: 'STS+join', 36: 'sums, sends', 4: 'T regs, wait inbox', 5: 'split', 6: 'sync', 7: "T'W, send, sync", 8: "wait W'", 9: 'update', 35: 'after blocks', 10: 'H L', 37: 'sync, cluster wait', 11: 'top sends', 12: 'gram', 13: 'sum WG, send', 14: 'R store', 38: 'save regs', 15: 'wait X', 16: 'X', 17: 'cholesky', 18: 'rest of recurrence', 19: 'guard', 20: 'clear', 21: 'V wgmma', 22: 'V tiles', 24: 'sync, W product', 39: 'partial, sync, cluster wait', 40: 'sums, send', 25: 'V to H', 26: 'wait W', 27: 'sum, sync, tau', 28: "T, W'", 29: 'update', 23: 'swap, end', 30: 'T1 T2', 41: 'wait panel', 31: 'read, max', 32: 'send max, T12', 33: 'wait max', 34: 'scale, sync'}
def profile3(f, tag, n=1024, bs=(60, 1)):
    import numpy as np
    buf = np.zeros(64, dtype=np.uint64); z = ctypes.c_void_p(0)
    get = lambda: f.lib.geqrf_c(z, ctypes.c_void_p(buf.ctypes.data), z, z, z, 0, 0, 0)
    for b in bs:
        a = R.generate_input(b, n, 2, 5); f(a); torch.cuda.synchronize(); get(); f(a); torch.cuda.synchronize(); get()
        tot = int(buf[:63].sum())
        print(f'profile {tag} n={n} b={b}: total {tot} cycles; ' + '; '.join(f'{MN[i]} {int(buf[i]) / 1000:.1f}k' for i in MN if buf[i]), flush=True)
