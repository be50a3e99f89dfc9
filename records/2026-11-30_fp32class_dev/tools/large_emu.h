// CPU emulation of the hardware layer: one fiber a thread
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <vector>
#include <map>
#include <algorithm>
#include <type_traits>
#include <random>
using std::min; using std::max;
#define DEVICE static inline
#define __global__ static
#define __launch_bounds__(...)
#define __device__
#define __forceinline__ inline
#define UNROLL
#define __shared__
#define __align__(x)
#define __grid_constant__
#define __restrict__ __restrict
struct float2{float x,y;}; struct __attribute__((aligned(16))) float4{float x,y,z,w;}; struct uint2{uint32_t x,y;}; struct __attribute__((aligned(16))) uint4{uint32_t x,y,z,w;};
static float2 make_float2(float a,float b){return {a,b};} static float4 make_float4(float a,float b,float c,float d){return {a,b,c,d};} static uint4 make_uint4(uint32_t a,uint32_t b,uint32_t c,uint32_t d){return {a,b,c,d};} static uint2 make_uint2(uint32_t a,uint32_t b){return {a,b};}
struct __half{ _Float16 v; }; struct __half2{ _Float16 x,y; };
static __half2 __floats2half2_rn(float a,float b){ return {(_Float16)a,(_Float16)b}; } static float2 __half22float2(__half2 h){ return {(float)h.x,(float)h.y}; } static __half __float2half_rn(float a){ return {(_Float16)a}; } static float __half2float(__half h){ return (float)h.v; }
static float __uint_as_float(uint32_t u){ float f; memcpy(&f,&u,4); return f; } static uint32_t __float_as_uint(float f){ uint32_t u; memcpy(&u,&f,4); return u; } static int __float_as_int(float f){ int u; memcpy(&u,&f,4); return u; } static float __int_as_float(int i){ float f; memcpy(&f,&i,4); return f; }
extern "C" void ctx_switch(void** save,void* load);
asm(".text\n.globl ctx_switch\nctx_switch:\npush %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp,(%rdi)\nmov %rsi,%rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
struct Mbar{ int pending=0,tx=0,phase=0,count=0; };
struct Warp{ int count=0; long gen=0; alignas(16) unsigned char buf[2][32][64]; };
struct Named{ int count=0; long gen=0; };
struct Cta{ std::vector<unsigned char> sm; std::map<uint32_t,Mbar> bars; std::vector<Warp> warps; Named named[16]; int synccount=0; long syncgen=0; int nthreads; };
struct Cluster{ std::vector<Cta> cta; int arrived=0; long gen=0; };
struct Fiber{ void* sp; std::vector<unsigned char> stack; int tid,rank,block; bool done=false; long cwait=0; Cta* cta; };
static int clu_y; static Fiber* cur; static void* main_sp; static Cluster* clu; static std::vector<Fiber> fibers; static bool (*dummy)();
struct Dim{ int x,y,z; }; 
static Dim get_tid(){ return {cur->tid,0,0}; } static Dim get_bid(){ return {cur->block,clu_y,0}; }
#define threadIdx get_tid()
#define blockIdx get_bid()
static long progress=0;
static void yield_(){ Fiber* f=cur; ctx_switch(&f->sp,main_sp); }
template<class F> static void wait_until(F f){ while(!f()) yield_(); progress++; }
static Warp& mywarp(){ return cur->cta->warps[cur->tid/32]; }
// deposit up to 64 bytes, wait for the 32 lanes, return the buffer
static unsigned char (*collect(const void* p,int bytes))[64]{ Warp& w=mywarp(); long g=w.gen; int b=g&1; memcpy(w.buf[b][cur->tid&31],p,bytes); if(++w.count==32){ w.count=0; w.gen++; progress++; } else wait_until([&]{ return w.gen!=g; }); return w.buf[b]; }
template<class T> static T shfl_(T v,int src){ auto b=collect(&v,sizeof(T)); T r; memcpy(&r,b[src&31],sizeof(T)); return r; }
#define __shfl_sync(m,v,s) shfl_(v,s)
#define __shfl_xor_sync(m,v,s) shfl_(v,(cur->tid&31)^(s))
static unsigned __ballot_sync(unsigned,int p){ auto b=collect(&p,4); unsigned r=0; for(int i=0;i<32;i++){ int x; memcpy(&x,b[i],4); if(x) r|=1u<<i; } return r; }
static float __uint2f(uint32_t u){float f;memcpy(&f,&u,4);return f;}
static float __shfl_down_(float v,int d){return v;}
static void __syncwarp(){ int x=0; collect(&x,4); }
static void __syncthreads(){ Cta& c=*cur->cta; long g=c.syncgen; if(++c.synccount==c.nthreads){ c.synccount=0; c.syncgen++; progress++; } else wait_until([&]{ return c.syncgen!=g; }); }
static int atomicMin(int* p,int v){ int o=*p; if(v<o)*p=v; return o; } static int atomicMax(int* p,int v){ int o=*p; if(v>o)*p=v; return o; }
static unsigned char* smem_base(){ return cur->cta->sm.data(); }

static __half2 __float2half2_rn(float a){ return {(_Float16)a,(_Float16)a}; } static __half2 __hmul2(__half2 a,__half2 b){ return {(_Float16)(a.x*b.x),(_Float16)(a.y*b.y)}; }
namespace large {
static float fast_rcp(float x){return 1.f/x;} static float fast_rsqrt(float x){return 1.f/sqrtf(x);}
static uint32_t smem_addr(const void*p){ return (uint32_t)((const unsigned char*)p-smem_base()); }
static uint32_t bits(__half2 h){ uint32_t u; memcpy(&u,&h,4); return u; } static uint32_t pack(float x,float y){ return bits(__floats2half2_rn(x,y)); }
static void split(float x,float y,uint32_t&hi,uint32_t&lo){ __half2 h=__floats2half2_rn(x,y); float2 f=__half22float2(h); hi=bits(h); lo=pack(x-f.x,y-f.y); }
static float2 un(uint32_t u){ __half2 h; memcpy(&h,&u,4); return __half22float2(h); }
static void mma(float (&d)[4],uint32_t a0,uint32_t a1,uint32_t a2,uint32_t a3,uint32_t b0,uint32_t b1){ uint32_t v[6]={a0,a1,a2,a3,b0,b1}; auto B=collect(v,24); int l=cur->tid&31,g=l/4,q=l%4;
 for(int z=0;z<4;z++){ int r=g+8*(z>>1),n=2*q+(z&1); float s=0; for(int k=0;k<16;k++){ uint32_t x[6]; memcpy(x,B[(r%8)*4+(k%8)/2],24); float2 f=un(x[(r/8)+2*(k/8)]); float av=k&1?f.y:f.x; memcpy(x,B[n*4+(k%8)/2],24); f=un(x[4+k/8]); s+=av*(k&1?f.y:f.x); } d[z]+=s; } }
static void mma(float (&d)[4],const uint32_t (&a)[4],uint32_t b0,uint32_t b1){ mma(d,a[0],a[1],a[2],a[3],b0,b1); }
static uint32_t transpose8(uint32_t x){ auto B=collect(&x,4); int l=cur->tid&31,g=l/4,q=l%4; uint32_t u; float lo,hi; memcpy(&u,B[(2*q)*4+g/2],4); lo=(g&1)?un(u).y:un(u).x; memcpy(&u,B[(2*q+1)*4+g/2],4); hi=(g&1)?un(u).y:un(u).x; return pack(lo,hi); }
template<bool T> static void ldsm(uint32_t (&r)[4],uint32_t addr){ if(addr&15){printf("misaligned\n");exit(1);} auto B=collect(&addr,4); int l=cur->tid&31,g=l/4,q=l%4; for(int m=0;m<4;m++){ uint32_t a; uint16_t x,y; if(!T){ memcpy(&a,B[8*m+g],4); memcpy(&r[m],smem_base()+a+4*q,4); } else { memcpy(&a,B[8*m+2*q],4); memcpy(&x,smem_base()+a+2*g,2); memcpy(&a,B[8*m+2*q+1],4); memcpy(&y,smem_base()+a+2*g,2); r[m]=x|(uint32_t)y<<16; } } }
static void ldsm4(uint32_t (&r)[4],uint32_t a){ ldsm<false>(r,a); } static void ldsm4t(uint32_t (&r)[4],uint32_t a){ ldsm<true>(r,a); }
static void cp16(uint32_t d,const void*s){ memcpy(smem_base()+d,s,16); } static void cp_commit(){} template<int N> static void cp_wait(){}
static void put1(void*p,float x,uint32_t tag){ *(uint64_t*)p=(uint64_t)tag<<32|__float_as_uint(x); progress++; } static void put2(void*p,float x,float y,uint32_t tag){ put1(p,x,tag); put1((char*)p+8,y,tag); }
template<int K> static void get(const char*p,size_t step,uint32_t tag,float4 (&v)[K]){ for(;;){ bool ok=true; for(int i=0;i<K;i++){ uint64_t a[4]; memcpy(a,p+i*step,32); for(int z=0;z<4;z++) ok=ok&&(uint32_t)(a[z]>>32)==tag; v[i]=make_float4(__uint_as_float((uint32_t)a[0]),__uint_as_float((uint32_t)a[1]),__uint_as_float((uint32_t)a[2]),__uint_as_float((uint32_t)a[3])); } if(ok) break; yield_(); } }
static void nb(int id,bool wait){ Named& n=cur->cta->named[id]; long g=n.gen; if(++n.count==64){ n.count=0; n.gen++; progress++; } else if(wait) wait_until([&]{ return n.gen!=g; }); }
static void bar_arrive(int id){ nb(id,false); } static void bar_join(int id){ nb(id,true); }
