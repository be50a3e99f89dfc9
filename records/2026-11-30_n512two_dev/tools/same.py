import sys,os,subprocess
exec(open('t.py').read().split("if __name__")[0].replace("lib=ctypes.CDLL(os.environ.get('EMU','./emu106.so'))",""))
out={}
for e in sys.argv[3:]:
    lib=ctypes.CDLL('./'+e+'.so')
    for case in ('dense','band','nearcollinear'):
        a=R.generate_input(1,int(sys.argv[1]),0,7,case); h,tau,f=qr(a)
        if case in out: print(e,case,'same bits',bool(torch.equal(out[case][0],h) and torch.equal(out[case][1],tau)))
        else: out[case]=(h,tau)
