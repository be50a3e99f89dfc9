import ctypes, os, sys, torch, time
sys.path.insert(0, os.environ.get('REPO', '/work/main'))
import reference as R
from harness.residuals import residuals
def load(name): 
    lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), name)); lib.v_bytes.restype = ctypes.c_long; lib.t_bytes.restype = ctypes.c_long; return lib
def make(lib, C, G):
    ws = {}
    def f(a):
        b, n, _ = a.shape
        if (b, n) not in ws: ws[b, n] = (torch.full((b * lib.v_bytes(n, C, G),), 255, dtype=torch.uint8, device='cuda'), torch.full((b * lib.t_bytes(n),), 255, dtype=torch.uint8, device='cuda'))
        v, t = ws[b, n]
        ld = (n + 3) // 4 * 4; h = torch.empty(b, n, ld, device="cuda"); tau = torch.empty(b, n, device='cuda')
        r = lib.geqrf(*[ctypes.c_void_p(x.data_ptr()) for x in (a, h, tau, v, t)], n, h.shape[2], b, C, G)
        assert r == 0, r
        return h[:, :, :n].mT, tau
    return f
def timing(f, a, reps=20):
    fl = torch.empty(256 << 20, dtype=torch.uint8, device='cuda'); f(a); torch.cuda.synchronize(); ts = []
    for _ in range(reps):
        fl.fill_(1); e0, e1 = torch.cuda.Event(True), torch.cuda.Event(True); e0.record(); f(a); e1.record(); torch.cuda.synchronize(); ts.append(e0.elapsed_time(e1))
    ts.sort(); return ts[0], ts[len(ts) // 2]
def check(f, tag, cases, b=60, n=1024, seed=11):
    for c in cases:
        name, _, k = c.partition(':'); a = R.generate_input(b, n, int(k or 0), seed, name); h, tau = f(a); torch.cuda.synchronize()
        fin = bool(torch.isfinite(h).all() and torch.isfinite(tau).all()); w = residuals(a, h, tau).worst() if fin else {}
        print(tag, b, n, c, 'finite' if fin else 'NOT FINITE', {x: round(y, 3) for x, y in w.items()}, flush=True)
