#define BOUNDED_SPIN 20000000
#include "hw.cuh"
#include "body.cuh"
#include "launch.cuh"
using namespace qr1024;
#ifdef PROFILE
static unsigned long long* clk_;
extern "C" void profile_get(unsigned long long* out){ cudaMemcpy(out,clk_,256,cudaMemcpyDeviceToHost); cudaMemset(clk_,0,256); }
#endif
extern "C" int geqrf(const float* a,float* h,float* tau,void* v,void* t,int n,int ld,int batch,int C,int G){ Args p{a,h,tau,(unsigned char*)v,decltype(Args::t)(t),n,ld};
#ifdef PROFILE
 if(!clk_){ cudaMalloc(&clk_,256); cudaMemset(clk_,0,256); } p.clk=clk_;
#endif

#ifdef ONLY_C
 return run<Config<ONLY_C,ONLY_R>>(p,batch);
#else
 return -1;
#endif
}
extern "C" long v_bytes(int n,int C,int G){ return (long)((n+63)/64)*8*4*2*CHUNK_BYTES; }
extern "C" long t_bytes(int n){ return (long)((n+63)/64)*2048*8*4; }
