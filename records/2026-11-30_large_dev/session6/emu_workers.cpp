#define STRIPS
#include <cuda_fp16.h>
#include "/tmp/large6/emu/emu_c.h"
#include <map>
#include <tuple>
Fiber* cur; void* sched_sp; std::vector<Cta> ctas; int CTASZ; Bar clusterbar; int nthreads; long progress;
asm(".globl sw\nsw:\npush %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp,(%rdi)\nmov %rsi,%rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
struct CUtensorMap { const char *p; long pitch; int elem, rows; };
inline int atomicAdd(int*p,int v){ int x=*p; *p+=v; progress++; return x; }
#include "gen2.h"
using namespace large;
static LarfbArgs A_; static StripMaps M_;
static void fiber_entry(){ larfb(A_,M_); cur->done=true; progress++; yield_(); abort(); }
extern "C" int strip(const float*a,float*h,void*vt,void*ts,uint32_t*colmax,int n,const int4*tasks,int count,int workers,unsigned seed){
  std::vector<int> done(4,1000000),applied(n,1000000),coupled(n,0),joined(n*n,0),counter(8,0); std::vector<float4> part((size_t)n*8*4096/4);
  M_.a={(const char*)a,n*4L,4,64}; M_.h={(const char*)h,n*4L,4,64}; M_.v={(const char*)vt,n*2L,2,64}; M_.vv={(const char*)vt,n*2L,2,128}; M_.t={(const char*)ts,128,2,128};
  A_=LarfbArgs{a,h,(__half*)vt,(size_t)n*n,(__half*)ts,colmax,tasks,counter.data(),done.data(),applied.data(),coupled.data(),joined.data(),part.data(),n,1,0,count,8};
  const int C=workers,NT=320,WN=10; CTASZ=C; nthreads=NT; srand(seed);
  ctas.assign(C,Cta()); for(auto&c:ctas){ c.smem=(unsigned char*)aligned_alloc(1024,232448); for(int i=0;i<232448;i++) c.smem[i]=0xff; }
  clusterbar=Bar(); std::vector<Warp> warps(C*WN); std::vector<Fiber> f(C*NT);
  for(int c=0;c<C;c++) for(int t=0;t<NT;t++){ Fiber&x=f[c*NT+t]; x.tid=t;x.cta=c;x.block=c;x.done=false;x.w=&warps[c*WN+t/32]; const size_t SZ=131072; x.stack=(char*)aligned_alloc(64,SZ); void** sp=(void**)(x.stack+SZ-64); *--sp=nullptr; *--sp=(void*)fiber_entry; for(int i=0;i<6;i++)*--sp=nullptr; x.sp=sp; }
  size_t left=f.size(); int idle=0; std::vector<int> order(C*WN); for(size_t i=0;i<order.size();i++)order[i]=i;
  while(left){ long before=progress; std::random_shuffle(order.begin(),order.end());
    for(int w:order){ if(seed&&rand()%4==0) continue; for(int l=0;l<32;l++){ Fiber&x=f[w*32+l]; if(x.done)continue; cur=&x; sw(&sched_sp,x.sp); if(x.done)left--; } }
    if(progress==before){ if(++idle>3000){ printf("DEADLOCK left %zu\n",left); return 1; } } else idle=0; }
  for(auto&x:f)free(x.stack); for(auto&c:ctas)free(c.smem);
  return 0; }
