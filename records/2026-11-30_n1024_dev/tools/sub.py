import os, sys, time
os.environ['TORCH_EXTENSIONS_DIR'] = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'ext')
sys.path.insert(0, os.environ.get('REPO', '/work/main'))
t = time.time(); import importlib.util
spec = importlib.util.spec_from_file_location('sub', os.path.join(os.environ.get('REPO', '/work/main'), 'submissions', sys.argv[1])); m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m)
print('import', round(time.time() - t, 1), 's', flush=True)
if len(sys.argv) > 2 and sys.argv[2] == 'build': sys.exit(0)
from qr import *
f = m.custom_kernel
for c in sys.argv[2:]:
    b, n, name, k, seed = c.split(','); a = R.generate_input(int(b), int(n), int(k), int(seed), name); a0 = a.clone(); out = f(a); print(c, R.check_implementation(a0, out), 'input kept', bool((a == a0).all()), flush=True)
for c, k in (('dense', 2), ('mixed', 2), ('nearrank', 0)): print(sys.argv[1], '60x1024', c, 'ms min/median', timing(f, R.generate_input(60, 1024, k, 5, c)), flush=True)
