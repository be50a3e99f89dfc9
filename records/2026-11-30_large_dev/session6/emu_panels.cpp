#include <cuda_fp16.h>
#include "/tmp/small/emu/emu.h"
#include <map>
#include <tuple>
Fiber* cur; void* sched_sp; std::vector<Cta> ctas; int CTASZ; Bar clusterbar; int nthreads; long progress;
asm(".globl sw\nsw:\npush %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp,(%rdi)\nmov %rsi,%rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
#include "gen.h"
using namespace large;
static PanelArgs A_; static std::vector<int> seen; // panels applied to columns of panel c
static int P_;
int large::applied_hook(const int*p){
  const int c=p-A_.applied; const int n=A_.n; if(c<2||c>=P_) { if(c>=P_){printf("hook c\n");abort();} return 1000; }
  const int made=*A_.done;
  if(made<c-1) return 0;
  if(seen[c]<0){ for(int r=0;r<n;r++) memcpy(A_.h+(size_t)r*n+64*c,A_.a+(size_t)r*n+64*c,256); seen[c]=0; }
  for(;seen[c]<=c-2;seen[c]++){ const int j=seen[c],r0=64*j; std::vector<double> W(64*64),W2(64*64);
    for(int r=r0;r<n;r++) for(int k=0;k<64;k++){ double v=__half2float(A_.vt[(size_t)(r0+k)*n+r]); if(TWO) v+=__half2float(A_.vt[A_.low+(size_t)(r0+k)*n+r]); if(v!=0) for(int x=0;x<64;x++) W[k*64+x]+=v*A_.h[(size_t)r*n+64*c+x]; }
    const __half*T=A_.ts+(size_t)j*TS; // T^T [col][row]
    for(int i=0;i<64;i++) for(int k=0;k<64;k++){ double tt=(double)__half2float(T[i*64+k])+__half2float(T[TLOW+i*64+k]); for(int x=0;x<64;x++) W2[i*64+x]+=tt*W[k*64+x]; } // W'=T'W: (T')_{i k}=T_{k i}: T^T[col i][row k]
    for(int r=r0;r<n;r++) for(int x=0;x<64;x++){ double s=0; for(int k=0;k<64;k++) s+=((double)__half2float(A_.vt[(size_t)(r0+k)*n+r])+(TWO?__half2float(A_.vt[A_.low+(size_t)(r0+k)*n+r]):0.f))*W2[k*64+x]; A_.h[(size_t)r*n+64*c+x]-=s; } }
  return 1000; }
static void fiber_entry(){ geqr2<8>(A_); cur->done=true; progress++; yield_(); abort(); }
extern "C" int emu(const float*a,float*h,float*tau,void*vt,void*ts,const uint32_t*colmax,int*passes,int n,int npanels,unsigned seed){
  std::vector<int> done(1,0),applied(n/64,0); P_=n/64; seen.assign(P_,-1);
  A_=PanelArgs{a,h,tau,(__half*)vt,(size_t)n*n,(__half*)ts,colmax,passes,done.data(),applied.data(),n,0,1};
  const int C=8,NT=256; CTASZ=C; nthreads=NT; srand(seed);
  ctas.assign(C,Cta()); for(auto&c:ctas){ c.smem=(unsigned char*)aligned_alloc(1024,232448); for(int i=0;i<232448;i++) c.smem[i]=0xff; }
  clusterbar=Bar(); std::vector<Warp> warps(C*8); std::vector<Fiber> f(C*NT);
  for(int c=0;c<C;c++) for(int t=0;t<NT;t++){ Fiber&x=f[c*NT+t]; x.tid=t;x.cta=c;x.block=c;x.done=false;x.w=&warps[c*8+t/32]; const size_t SZ=131072; x.stack=(char*)aligned_alloc(64,SZ); void** sp=(void**)(x.stack+SZ-64); *--sp=nullptr; *--sp=(void*)fiber_entry; for(int i=0;i<6;i++)*--sp=nullptr; x.sp=sp; }
  size_t left=f.size(); int idle=0; std::vector<int> order(C*8); for(size_t i=0;i<order.size();i++)order[i]=i;
  while(left){ long before=progress; std::random_shuffle(order.begin(),order.end());
    for(int w:order){ if(seed&&rand()%4==0) continue; for(int l=0;l<32;l++){ Fiber&x=f[w*32+l]; if(x.done)continue; cur=&x; sw(&sched_sp,x.sp); if(x.done)left--; } }
    if(progress==before){ if(++idle>2000){ printf("DEADLOCK left %zu\n",left); return 1; } } else idle=0; }
  for(auto&x:f)free(x.stack); for(auto&c:ctas)free(c.smem);
  return 0; }
