from qr import *
import numpy as np
NAMES = {0: 'load+scale', 1: 'wait V', 2: 'phase1', 3: 'sum, split', 4: 'sync', 26: 'STS+join', 27: 'inbox wait', 28: 'T wait', 5: 'T mult', 6: "wait W'", 7: 'phase2', 22: '(misc)', 8: 'R store, H L', 9: 'top, gram, send', 10: 'wait X', 11: 'sum X', 23: 'cholesky', 24: 'rest of recurrence', 25: 'guard and top', 12: 'clear', 13: 'V wgmma', 14: 'V epilogue', 15: 'W', 16: 'reduce, send', 17: 'wait W', 18: 'sum W', 19: 'subst', 20: 'update', 21: 'T part 1+loads', 31: '-'}
def profile(name, C, G, bs=(1, 60)):
    lib = load(name); f = make(lib, C, G)
    for b in bs:
        a = R.generate_input(b, 1024, 2, 5); f(a); torch.cuda.synchronize(); buf = np.zeros(32, dtype=np.uint64); lib.profile_get(ctypes.c_void_p(buf.ctypes.data)); f(a); torch.cuda.synchronize(); lib.profile_get(ctypes.c_void_p(buf.ctypes.data))
        buf[31] = 0; tot = int(buf.sum())
        print(f'profile {name} b={b}: total {tot} cycles; ' + '; '.join(f'{NAMES[i]} {int(buf[i])} ({100 * int(buf[i]) // tot}%)' for i in NAMES if buf[i]), flush=True)
if __name__ == '__main__':
    profile(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
