#include "emu.h"
Fiber* cur; void* sched_sp; std::vector<Cta> ctas; int CTASZ,CLUSTER; Bar clusterbar; int nthreads; long progress;
asm(".globl sw\nsw:\npush %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp,(%rdi)\nmov %rsi,%rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
#include "team_emu.h"
using namespace qr_small;
template<int T,bool R,int C> void body(const Args& p){ geqrf_body<T,R,C>(p); }
static void (*g_body)(const Args&); static Args g_args;
static void entry(){ g_body(g_args); cur->done=true; progress++; yield_(); abort(); }
template<int T,int C> int go(Args args,Plan r,int batch,unsigned seed){ const int H=args.helped<args.steps; args.batch=batch;
  const bool ring=r.window<r.steps; g_body= ring? body<T,true,C>: body<T,false,C>; g_args=args; CTASZ=C+H; CLUSTER=C; nthreads=T*128;
  srand(seed);
  for(int m=0;m<batch;m++){
    ctas.assign(C+H,Cta()); for(auto&c:ctas){ c.smem=(unsigned char*)aligned_alloc(1024,232448); for(int i=0;i<232448;i++) c.smem[i]=0xff; }
    clusterbar=Bar(); std::vector<Warp> warps((C+H)*T*4); std::vector<Fiber> f((C+H)*T*128);
    for(int c=0;c<C+H;c++) for(int t=0;t<T*128;t++){ Fiber&x=f[c*T*128+t]; x.tid=t;x.cta=c;x.block=c==C?batch*C+m:m*C+c;x.done=false;x.w=&warps[c*T*4+t/32]; const size_t SZ=32768; x.stack=(char*)aligned_alloc(64,SZ); void** sp=(void**)(x.stack+SZ-64); *--sp=nullptr; *--sp=(void*)entry; for(int i=0;i<6;i++)*--sp=nullptr; x.sp=sp; }
    size_t left=f.size(); int idle=0; 
    std::vector<int> order((C+H)*T*4); for(size_t i=0;i<order.size();i++)order[i]=i;
    while(left){ long before=progress; std::random_shuffle(order.begin(),order.end());
      for(int w:order){ if(seed&&rand()%4==0) continue; for(int l=0;l<32;l++){ Fiber&x=f[w*32+l]; if(x.done)continue; cur=&x; sw(&sched_sp,x.sp); if(x.done)left--; } }
      if(progress==before){ if(++idle>2000){ printf("DEADLOCK matrix %d left %zu\n",m,left); return 1; } } else idle=0; }
    for(auto&x:f)free(x.stack); for(auto&c:ctas)free(c.smem);
  }
  return 0; }
extern "C" int run_team(const float* a, float* h, float* tau, void* vg, int n, int batch, int teams, int window, int mode, unsigned seed){
  Plan r=plan(n,teams%10,window); Args args{a,h,tau,(uint32_t*)vg,n,r.steps,r.window,mode,nullptr,batch,r.steps,0}; if(teams>=100){ teams-=100; if(r.window<r.steps) { args.lag=max(r.steps/2-1,r.window-1); args.helped=min(args.lag+2,r.steps); } } printf("n %d window %d of %d ",n,r.window,r.steps); fflush(stdout); if(r.window<1)return -2;
  switch(teams){ case 4: return go<4,1>(args,r,batch,seed); case 14: return go<4,2>(args,r,batch,seed); case 13: return go<3,2>(args,r,batch,seed); case 23: return go<3,3>(args,r,batch,seed); case 24: return go<4,3>(args,r,batch,seed);} return -1; }
