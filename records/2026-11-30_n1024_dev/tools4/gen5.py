# gen5.py NUM name bodyfile: writes a submission from a development body; template v87
import re, sys
sys.path.insert(0, '/tmp/n1024d'); from gen4 import strip_dev, cut
num, name, body = sys.argv[1:4]
old = open('/work/main/submissions/v87_n1024_fewer_instructions.py').read()
bd = open(f'/tmp/n1024d/body{body}.cuh').read(); hw = open('/tmp/n1024d/hw.cuh').read()
hw = cut(hw, "// d += A B in 3xTF32's single term", '// A value that is the same in all lanes')
i = hw.index("DEVICE void wgmma_rows(const uint32_t (&a)[4], uint64_t b, float (&x0)[16], float (&x1)[16], float (&x2)[16]) {"); hw = hw[:i] + hw[hw.index('#else\n// Chips without wgmma', i):]
hw = hw.replace('// d += A B, B [k][n] with n = 32 .. 128 rows: one chunk of the accumulators for every 32', '// d += A B, B [k][n] with n = 32 or 64 rows: one chunk of the accumulators for every 32')
hw = cut(hw, 'DEVICE void bulk_prefetch(', '// 32 columns from `column`')
src0 = hw + bd
def drop(line_start):
    global hw
    lines = [l for l in hw.split('\n') if not l.startswith(line_start)]; hw = '\n'.join(lines)
if 'fence_async_all' not in bd:
    drop('DEVICE void fence_async_all'); hw = hw.replace(" Without the state space\n// it would wait for all stores of the thread to global memory (MEMBAR.GPU); `all` does.", " Without the state space\n// it would wait for all stores of the thread to global memory (MEMBAR.GPU).")
i = hw.index('DEVICE void send(uint32_t to, float2 v'); hw = hw[:i] + hw[hw.index('DEVICE void send(uint32_t to, int v', i):]
src = strip_dev(hw + '\n' + bd + '\n')
cuda = old[old.index('CUDA = r"""') + 11:]; cuda = cuda[:cuda.index('"""\n')]
head = cuda[:cuda.index('#include <cuda.h>')]
def rep(a, b):
    global head
    assert head.count(a) == 1, a
    head = head.replace(a, b)
rep("(H, L = 2 (P - H))", "(H, L = P - H)")
rep("T of the pass by block inversion\n", "T of the pass by blocks\n"); rep("larft: T by block inversion, beside the loads of the next panel", "larft: T by blocks, beside the loads of the next panel")
if 'panel_max' in bd: rep('load (bulk copies while the last panel ends), scale columns by powers of two (their largest entry: one exchange over the cluster)', 'load (bulk copies while the last panel ends), scale columns by powers of two (their largest entries: found and exchanged during the last panel)')
rep("One image serves both products.", "One image serves both products.\n// A warpgroup g's groups of eight reflectors lie in the order r ^ 2 g: W's two groups whose sums over the warpgroups it makes\n// are then the first in its accumulators (registers cannot be indexed by g).")
tail = cuda[cuda.index('// The batch as a tensor of five dimensions'):]
tail = tail.replace('Config<2, 4, 4>', 'Config<2, 4>').replace('Config<4, 3, 4>', 'Config<4, 3>')
py = old.replace(cuda, head + src.rstrip() + '\n\n' + tail)
d0 = old[old.index('"""') + 3:]; d0 = d0[:d0.index('\n"""\n')]
py = py.replace(d0, open(f'/tmp/n1024d/doc{num}.txt').read().strip()).replace('n1024_v87', f'n1024_v{num}')
py = py.replace("MIN_N, MAX_N = 513, 1536  # smaller n needs a second fp16 term of V; larger n more rows than a cluster holds", open('/tmp/n1024d/minn.txt').read().strip())
assert 'stream' not in py.lower()
for l in py.split('\n'):
    if len(l) > 210 and '"+f"' not in l: print('long line', num, len(l), l[:100])
out = f'/work/main/submissions/v{num}_n1024_{name}.py'
open(out, 'w').write(py); compile(py, out, 'exec'); print(out, len(py), py.count('\n'))
