#define QR_EMU
#include "emu.h"
static int passes;
namespace qr1024 {
#include "body.cuh"
}
using namespace qr1024;
static Args g_args;
template<class K> void body(){ geqrf_kernel<K>(g_args); }
extern "C" int get_passes(){ int p=passes; passes=0; return p; }
extern "C" int geqrf_emu(const float* a,float* h,float* tau,int n,int ld,int batch,int C,int G,unsigned seed){
  int panels=(n+63)/64; 
  auto run=[&](auto k){ using K=decltype(k); if(n>K::ROWS) return -1; std::vector<unsigned char> v((size_t)batch*panels*K::C*K::V_BYTES+16,0xff); std::vector<float2> t((size_t)batch*K::C*panels*2048,float2{NAN,NAN}); unsigned char* vp=(unsigned char*)(((uintptr_t)v.data()+15)&~15ull); g_args=Args{a,h,tau,vp,t.data(),n,ld}; for(int b=0;b<batch;b++) run_cluster(K::C,K::THREADS,K::BYTES,b*K::C,body<K>,seed); return K::BYTES; };
  if(C==2) return run(Config<2,4,4,2>()); if(C==4) return run(Config<4,3,4,2>()); if(C==1) return run(Config<2,4,4,1>()); return -2; }
