from lib import *
t0 = time.time()
def so(name):
    lib = ctypes.CDLL('./' + name + '.so'); g = lib._ZN6qr10245geqrfEPKfPfS2_PvS3_iii; vw = lib._ZN6qr102411v_workspaceEii; tw = lib._ZN6qr102411t_workspaceEii; vw.restype = tw.restype = ctypes.c_long; ws = {}
    def f(a):
        b, n, _ = a.shape; ld = (n + 3) // 4 * 4
        if (b, n) not in ws: ws.clear(); ws[b, n] = (torch.empty(vw(n, b), dtype=torch.uint8, device='cuda'), torch.empty(tw(n, b), dtype=torch.uint8, device='cuda'))
        v, t = ws[b, n]; h = torch.empty(b, n, ld, device='cuda'); tau = torch.empty(b, n, device='cuda')
        r = g(*[ctypes.c_void_p(x.data_ptr()) for x in (a, h, tau, v, t)], n, ld, b); assert r == 0, r
        return h[:, :, :n].mT, tau
    return f
fs = {k: so(k) for k in ('p1', 'q1', 'r1', 'p', 'q', 'r')}
for k, f in fs.items(): cols(f, k, 1024, 4, cases=['dense:2', 'band', 'rowscale', 'upper'])
for c, kk in (('dense', 2), ('mixed', 2), ('nearrank', 0)):
    a = R.generate_input(60, 1024, kk, 5, c)
    for rep in range(2):
        for k, f in fs.items(): print(k, '60x1024', c, ms(f, a, 10), flush=True)
for n in (513, 640, 1025, 1536):
    for k, f in fs.items(): cols(f, k, n, 4, cases=['dense:2', 'band', 'upper'])
cols(fs['r'], 'r', 1024, 8); cols(fs['r1'], 'r1', 1024, 8)
for n in (513, 640, 800): print('60x', n, {k: ms(f, R.generate_input(60, n, 2, 5), 6) for k, f in fs.items()}, flush=True)
print(round(time.time() - t0, 1), 's')
