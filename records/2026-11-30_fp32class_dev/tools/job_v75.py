from shapes import *
t0 = time.time(); f75 = load('v75_fp32_class')
cols(f75, 'v75', 2048, 2, cases=['dense:2']); cols(f75, 'v75', 4096, 1, cases=['dense:2', 'band', 'upper', 'rowscale', 'mixed:2'])
for b, n, c, k in SHAPES:
    a = R.generate_input(b, n, k, 5, c); print('v75', f'{b}x{n}', c, ms(f75, a, 6 if n >= 512 else 20), flush=True); del a
cs = ['dense:2', 'dense:0', 'band', 'rowscale', 'nearcollinear', 'upper', 'mixed:2', 'rankdef', 'clustered', 'nearrank']
for n in (16, 32, 33, 34, 36, 40, 44, 48, 56, 64, 80, 100, 128, 176, 256, 352, 384):
    worst = (0, '')
    for seed in (1, 2, 3):
        for c in cs:
            nm, _, k = c.partition(':'); a = R.generate_input(200 if n <= 64 else 32, n, int(k or 0), n * 31 + seed, nm)
            worst = max(worst, (round(residuals(a, *f75(a)).worst()['column'], 3), c))
    print('small', n, worst, flush=True)
print('batch 1000 n 40 mixed', [round(residuals(a, *f75(a)).worst()['column'], 3) for a in [R.generate_input(1000, 40, 2, 77, 'mixed')]])
for b, n in ((4, 2048), (16, 2048), (1, 4096), (4, 4096), (1, 1537)): cols(f75, 'v75', n, b, cases=['dense:2'])
for n in (1, 2, 5, 32, 176, 352, 512, 1024, 2048): a = R.generate_input(2, n, 1, 3); print(n, R.check_implementation(a, f75(a)), flush=True)
print(round(time.time() - t0, 1), 's', flush=True)
