exec(open('base.py').read())
for f in [x for x in sys.argv[2].split(',') if x]: globals()[f]()
open(sys.argv[1]+'.py','w').write(s)
