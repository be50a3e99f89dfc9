#include "emu_l.h"
#include "body74.cuh"
} // namespace
using namespace large;
static void (*fiber_body)();
static void fiber_main(){ fiber_body(); cur->done=true; progress++; for(;;) yield_(); }
// run one cluster to its end
static void run_cluster(int C,int threads,int smem,int first_block,void (*body)(),unsigned seed){ fiber_body=body; Cluster cl; cl.cta.resize(C); clu=&cl; for(auto& c:cl.cta){ c.sm.assign(smem,0xff); c.warps.resize(threads/32); c.nthreads=threads; }
 fibers.clear(); fibers.resize(C*threads); std::vector<int> order; for(int r=0;r<C;r++) for(int t=0;t<threads;t++){ Fiber& f=fibers[r*threads+t]; f.tid=t; f.rank=r; f.block=first_block+r; f.cta=&cl.cta[r]; f.stack.resize(65536); void** sp=(void**)((((uintptr_t)f.stack.data()+65536)&~15ull)-16); *--sp=nullptr; *--sp=(void*)fiber_main; for(int i=0;i<6;i++) *--sp=nullptr; f.sp=sp; order.push_back(r*threads+t); }
 std::mt19937 rng(seed); long last=-1; int idle=0; 
 for(;;){ bool any=false; // warps in random order, sometimes skipped
  int nw=fibers.size()/32; std::vector<int> wo(nw); for(int i=0;i<nw;i++) wo[i]=i; std::shuffle(wo.begin(),wo.end(),rng);
  for(int w:wo){ if(seed&&(rng()&3)==0){ if(!fibers[w*32].done) any=true; continue; } for(int l=0;l<32;l++){ Fiber& f=fibers[w*32+l]; if(f.done) continue; any=true; cur=&f; ctx_switch(&main_sp,f.sp); } }
  if(!any) break; if(progress==last){ if(++idle>200){ printf("DEADLOCK\n"); for(int i=0;i<(int)fibers.size();i+=32) printf("warp %d of cta %d done %d sync %ld\n",i%threads/32,fibers[i].rank,fibers[i].done,fibers[i].cta->syncgen); exit(1);} } else idle=0; last=progress; } }

static PanelArgs pa; static LarfbArgs la;
template<int NTL,int C> static void gbody(){ geqr2<4,NTL,C>(pa); } template<int NS,bool S> static void lbody(){ larfb<NS,S>(la); }
extern "C" int qr(const float*a,float*h,float*tau,int n,int NTL,int R,unsigned seed){
  std::vector<__half> vt(2*(size_t)n*n),tt(2*32768); memset(vt.data(),0xff,vt.size()*2); memset(tt.data(),0xff,tt.size()*2); std::vector<uint32_t> cm(n); for(int j=0;j<n;j++){ float m=0; for(int i=0;i<n;i++) m=fmaxf(m,fabsf(a[(size_t)i*n+j])); cm[j]=__float_as_uint(m); }
  uint32_t epoch=1; std::vector<uint64_t> words(PanelShape<4,4,32>::Reduce::WORDS); uint32_t tag=0; int passes[64]; int tot=0; int tto=0;
  for(int r0=0;r0<n;r0+=128){ const float* src=r0?h:a; int m=n-r0,last=r0-128,right=n-r0-128;
    auto T=[&](int at){ return tt.data()+(at/128&1)*32768; }; if(r0==0) tt.resize(2*32768);
    auto L=[&](int at,int c0){ return LarfbArgs{at?h:a,h,vt.data(),vt.data()+(size_t)n*n,T(at),cm.data(),n,at,c0}; };
    if(r0){ la=L(last,r0); int ctas=R; while(ctas>1&&(n-la.r0)/64<2*ctas) ctas/=2; for(int b=0;b<4;b++) run_cluster(ctas,256,LarfbSmem<32>::BYTES,b*ctas,lbody<32,true>,seed); }
    pa=PanelArgs{src,h,tau,vt.data(),vt.data()+(size_t)n*n,T(r0),cm.data(),&epoch,(char*)words.data(),passes,words.size()*8,tag,n,r0,0};
    if(m>64*NTL*8){ printf("too large\n"); return 1; }
    if(NTL==2) run_cluster(8,256,PanelShape<4,2,8>::BYTES,0,gbody<2,8>,seed); else run_cluster(8,256,PanelShape<4,4,8>::BYTES,0,gbody<4,8>,seed);
    tag+=600; tot+=passes[r0/128];
    if(r0&&right){ la=L(last,r0+128); for(int b=0;b<right/64;b++) run_cluster(1,256,LarfbSmem<64>::BYTES,b,lbody<64,false>,seed); } }
  printf("passes %d of %d ",tot,n/32); fflush(stdout); return 0; }
