import sys,ctypes,torch,time; sys.path[:0]=['/work/main','/work/main/harness']
import reference; from residuals import residuals
lib=ctypes.CDLL(sys.argv[1]); P=ctypes.c_void_p
def team(a,teams,window=0,mode=0,seed=1):
    b,n,_=a.shape; h=torch.full_like(a,float('nan')); t=torch.full((b,n),float('nan')); s=(n+15)//16
    ws=torch.full((b*(s*(s+1)//2)*512+b*(s*288+24*(s*256+256)),),-1,dtype=torch.int32)
    t0=time.time(); r=lib.run_team(P(a.data_ptr()),P(h.data_ptr()),P(t.data_ptr()),P(ws.data_ptr()),n,b,teams,window,mode,seed); assert r==0,r
    print('%.1f s'%(time.time()-t0),end=' '); return h.mT,t
if __name__=='__main__':
  for arg in sys.argv[2:]:
    n,teams,window,case,mode,seed=arg.split(','); a=reference.generate_input(1,int(n),0,int(seed),case)
    w=residuals(a,*team(a,int(teams),int(window),int(mode),int(seed))).worst(); print(arg,{k:round(v,3) for k,v in w.items()},flush=True)
