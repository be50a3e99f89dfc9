import os; os.environ['EMU']='/tmp/n1024d/emup_121rtma.so'
from t import *
lib.set_amp.argtypes=[ctypes.c_float]; lib.topamp.restype=ctypes.c_float
sys.path.insert(0,'/work/main/harness')
for case in sys.argv[1:]:
    nm,_,c=case.partition(':'); a=R.generate_input(1,1024,int(c or 0),int(time.time()*1000)%100000,nm); out=[]
    for amp in (300.,100.,60.):
        lib.set_amp(amp); h,tau=run(a,2,4,0); j=R.judge(a,(h,tau)); out.append((amp,lib.passes(),round(lib.topamp(),1),round(float(j.factor[0]/(1024*2.**-23*j.a1[0])),2)))
    print(case,out,flush=True)
