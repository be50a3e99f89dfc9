import sys
exec(open('t.py').read().split('if __name__')[0])
n=int(sys.argv[1]); case=sys.argv[2]; out=[]; f=0
for seed in range(int(sys.argv[3])):
    a=R.generate_input(1,n,0,100+seed,case); h,tau=qr(a); out.append(round(residuals(a,h,tau).worst()['column'],3)); f+=lib.fell()
print(n,case,sys.argv[4:],'fallbacks',f,out,flush=True)
