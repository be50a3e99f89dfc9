#define QR_EMU
#include "emu.h"
static int passes;
namespace qr1024 {
#include "body.cuh"
}
using namespace qr1024;
static Args g_args; static CUtensorMap g_map;
template<class K> void body(){ geqrf_kernel<K>(g_args, g_map); }
extern "C" int get_passes(){ int p=passes; passes=0; return p; }
extern "C" int geqrf_emu(const float* a,float* h,float* tau,int n,int ld,int batch,int C,int terms,unsigned seed){
  int panels=(n+63)/64; 
  auto run=[&](auto k){ using K=decltype(k); if(n>K::ROWS) return -1; std::vector<unsigned char> v((size_t)batch*panels*K::C*K::V_BYTES+16,0xff); std::vector<uint4> t((size_t)batch*K::C*panels*640+1,uint4{~0u,~0u,~0u,~0u}); unsigned char* vp=(unsigned char*)(((uintptr_t)v.data()+15)&~15ull); g_args=Args{a,h,tau,vp,(decltype(Args::t))t.data(),n,ld,n==K::ROWS};
#ifdef EMU_WRITERS
 std::vector<int> rd(batch,0); g_args.workers=batch*K::C; g_args.writers=terms==1?K::C:0; g_args.ready=rd.data();
#endif
 g_map={a,n,K::G}; for(int b=0;b<batch;b++) run_cluster(K::C,K::THREADS,K::BYTES,b*K::C,body<K>,seed);
#ifdef EMU_WRITERS
 if(terms==1) run_cluster(K::C,K::THREADS,K::BYTES,batch*K::C,body<K>,seed);
#endif
 return K::BYTES; };
  if(C==2&&terms==2) return run(Config<2,4,2>()); if(C==2) return run(Config<2,4,1>()); if(C==4&&terms==2) return run(Config<4,3,2>()); if(C==4) return run(Config<4,3,1>()); if(C==3) return run(Config<2,3,2>());
  return -2; }
