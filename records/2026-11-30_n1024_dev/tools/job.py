from qr import *
import prof
name, C, G = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]); tag = name
f = make(load('t' + name + '.so'), C, G)
check(f, tag, ['dense:2'], b=4, n=1024)
for b in (1, 60): print(tag, b, 'dense2 ms', timing(f, R.generate_input(b, 1024, 2, 5)), flush=True)
for c, k in (('mixed', 2), ('nearrank', 0), ('upper', 0)): print(tag, c, 'ms', timing(f, R.generate_input(60, 1024, k, 5, c)), flush=True)
prof.profile('p' + name + '.so', C, G)
for n in (513, 1000): check(f, tag, ['dense:2'], b=3, n=n)
check(f, tag, ['dense:2', 'dense:0', 'mixed:2', 'rankdef', 'nearrank', 'clustered', 'band', 'rowscale', 'nearcollinear', 'upper', 'diagonal'])
