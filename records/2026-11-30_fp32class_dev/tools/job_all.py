from shapes import *
import sys
part = sys.argv[1]; t0 = time.time()
f75, f50 = load('v75_fp32_class'), load('v50_all_shapes'); print('import', round(time.time() - t0, 1), flush=True)
if part == '1':
    for n in (40, 176, 512, 2048): cols(f75, 'v75', n, 2, cases=['dense:2'])
    for b, n, c, k in SHAPES:
        if n == 1024: continue
        a = R.generate_input(b, n, k, 5, c)
        for nm, f in (('v50', f50), ('v75', f75), ('v50', f50), ('v75', f75)): print(nm, f'{b}x{n}', c, ms(f, a, 6 if n >= 512 else 12), flush=True)
        del a
    cs = ['dense:2', 'dense:0', 'band', 'rowscale', 'nearcollinear', 'upper', 'mixed:2', 'rankdef', 'clustered', 'nearrank']
    for n, b in ((257, 16), (300, 8), (385, 8), (512, 16), (2048, 2), (2000, 1)): cols(f75, 'v75', n, b, cases=cs)
    cols(f75, 'v75', 4096, 1, cases=['dense:2', 'band', 'upper', 'rowscale'])
    for n in (16, 32, 33, 40, 48, 64, 100, 128, 176, 256, 352, 384):
        for c in cs:
            nm, _, k = c.partition(':'); a = R.generate_input(200 if n <= 64 else 32, n, int(k or 0), n * 31 + 5, nm)
            w, v = (residuals(a, *f(a)).worst()['column'] for f in (f75, f50))
            if max(w, v) > 0.25: print('small', n, c, 'v75', round(w, 3), 'v50', round(v, 3), 'geqrf', round(residuals(a[:16], *torch.geqrf(a[:16])).worst()['column'], 3), flush=True)
    print('batch 1000 n 40 mixed', [round(residuals(a, *f(a)).worst()['column'], 3) for a in [R.generate_input(1000, 40, 2, 77, 'mixed')] for f in (f75, f50)])
    for b, n in ((8, 1600), (1, 3001), (20, 1600)): cols(f75, 'v75', n, b, cases=['dense:2', 'band'])
    for n in (512, 2048):
        z = torch.zeros(2, n, n, device='cuda'); h, tau = f75(z); print('zero', bool((h == 0).all()), bool((tau == 0).all()))
        for s in (1e-15, 1e15): a = R.generate_input(2, n, 1, 5) * s; print('scale', s, {k: round(v, 3) for k, v in residuals(a, *f75(a)).worst().items()}, flush=True)
else:
    f70 = load('v70_n1024_two_terms')
    cols(f75, 'v75', 513, 2, cases=['dense:2']); cols(f75, 'v75', 1024, 4)
    for b, n, c, k in SHAPES:
        if n != 1024: continue
        a = R.generate_input(b, n, k, 5, c)
        for nm, f in (('v50', f50), ('v70', f70), ('v75', f75), ('v50', f50), ('v75', f75)): print(nm, f'{b}x{n}', c, ms(f, a, 10), flush=True)
    for n in (513, 640, 800): print('60x', n, 'v75', ms(f75, R.generate_input(60, n, 2, 5), 6), flush=True)
    for n in (513, 700, 1025, 1300, 1536): cols(f75, 'v75', n, 4, cases=['dense:2', 'mixed:2', 'band', 'rowscale', 'nearcollinear', 'upper', 'nearrank', 'rankdef'])
    for b in (1, 33, 133): cols(f75, 'v75', 1024, b, cases=['dense:2'])
    z = torch.zeros(2, 1024, 1024, device='cuda'); h, tau = f75(z); print('zero', bool((h == 0).all()), bool((tau == 0).all()))
    a = R.generate_input(60, 1024, 2, 5); h0, t0_ = f75(a); same = True
    for _ in range(20): h, t = f75(a); same = same and bool((h == h0).all()) and bool((t == t0_).all())
    print('20 calls bit for bit', same)
print(round(time.time() - t0, 1), 's', flush=True)
