#include "emu.h"
#include BODY
template<bool E> void run(int n,int batch,const float*A,float*H,float*tau,int*flags){
  int panels=(n+31)/32; std::vector<uint32_t> v(16*PANEL_WORDS,0xffffffffu),vl(16*PANEL_WORDS,0xffffffffu); std::vector<uint32_t> t(8*T_OPERANDS*128,0xffffffffu); std::vector<float> t11(1024,NAN);
  for(int b=0;b<batch;b++){ run_cta([&](int tid){ 
     Job job; job.a=A+(size_t)b*n*n; job.h=H+(size_t)b*n*n; job.tau=tau+(size_t)b*n; job.v=v.data(); job.v_lo=vl.data(); job.t=t.data(); job.t11=t11.data(); job.n=n; job.panels=panels; factor_matrix<E>(*(Shared*)smem_base,job); if(tid==0) flags[b]=((Shared*)smem_base)->job.flags; },sizeof(Shared)); } }
extern "C" void qr(int n,int batch,const float*A,float*H,float*tau,int*flags){ for(size_t i=0;i<(size_t)batch*n*n;i++) H[i]=NAN; if(n==512) run<true>(n,batch,A,H,tau,flags); else run<false>(n,batch,A,H,tau,flags); }
extern "C" int smem_size(){return sizeof(Shared);}
