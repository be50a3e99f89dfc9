import sys,re
# mk.py OUT NAME opts
t=open('/work/main/submissions/v127_large_moving_tiles.py').read()
for o in sys.argv[3:]:
    if o=='two': assert t.count('constexpr int TERMS = 1;')==1; t=t.replace('constexpr int TERMS = 1;','constexpr int TERMS = 2;')
    else: exec(open('mk_%s.py'%o).read())
t=re.sub(r'"qrkit_large_\w+"','"qrkit_large_'+sys.argv[2]+'"',t)
open(sys.argv[1],'w').write(t)
