#include <cstdint>
#include <cuda_fp16.h>
#include <type_traits>
#include "tools.cuh"
namespace old { 
#include "old.cuh"
}
namespace neu {
#include "../rec.cuh"
}
namespace zwo {
constexpr int LB=12, BLOCK=64*12, LDM=68;
#include "../rec2.cuh"
}
// modes: bit 0 first part, bit 1 second, bit 2 third, bit 3 barriers
template <int MODE> __global__ void __launch_bounds__(256,1) k_old(const float *G, const float *A, float *out, long long *t, int reps) {
  extern __shared__ __align__(128) char sm[];
  old::Block64 z; z.g=(float*)sm; z.a=z.g+64*68; z.x=z.a+64*68; z.lt=z.x+64*68; z.diag=z.lt+8*68; z.threshold=z.diag+1024; z.scratch=z.threshold+64; z.flag=(int*)(z.scratch+256);
  const int tid=threadIdx.x, lane=tid&31, w=tid>>5;
  for(int rep=0;rep<reps;rep++){
    for(int i=tid;i<4096;i+=256){ int r=i>>6,c=i&63; z.g[r*68+c]=G[i]; z.a[r*68+c]=A[i]; z.x[r*68+c]=r==c; }
    if(tid<64) z.threshold[tid]=1e-4f*G[tid*65];
    __syncthreads();
    long long c0=clock64();
    _Pragma("unroll 1") for(int b=0;b<8;b++){
      if(w==0){ if(MODE&1) old::diagonal_block(z,b,lane);} else if(b&&(MODE&4)) old::apply_block(z,b-1,w-1,7,lane);
      if(MODE&8) block_sync<256>();
      if(MODE&2) old::solve_block(z,b,w,lane);
      if(MODE&8) block_sync<256>();
    }
    long long c1=clock64();
    if(tid==0) t[rep]=c1-c0;
    __syncthreads();
  }
  for(int i=tid;i<4096;i+=256){ int r=i>>6,c=i&63; out[i]=r<=c?z.g[r*68+c]:z.a[r*68+c]; out[4096+i]=z.x[r*68+c]; }
}
template <int MODE> __global__ void __launch_bounds__(256,1) k_new(const float *G, const float *A, float *out, long long *t, int reps) {
  extern __shared__ __align__(128) char sm[];
  neu::Block64 z; z.r=(float*)sm; z.lx=z.r+8*neu::BLOCK; z.u=z.lx+8*neu::BLOCK; z.gin=z.u+neu::BLOCK; z.ain=z.gin+neu::BLOCK; z.xin=z.ain+neu::BLOCK; float*thr=z.xin+neu::BLOCK; z.threshold=thr; z.flag=(int*)(thr+64);
  const int tid=threadIdx.x, lane=tid&31, w=__shfl_sync(~0u,tid>>5,0), gr=lane>>2, q=lane&3;
  for(int rep=0;rep<reps;rep++){
    for(int i=tid;i<4096;i+=256){ int r=i>>6,c=i&63; z.r[r*68+c]=G[i]; z.lx[r*68+c]=A[i]; }
    if(tid<64) thr[tid]=1e-4f*G[tid*65];
    __syncthreads();
    long long c0=clock64(), cs=0,cu=0;
    float g[4][4],a[4][4];
    UNROLL for(int i=0;i<4;i++) UNROLL for(int h=0;h<2;h++){ float2 x=*(float2*)&z.r[(16*i+8*h+gr)*68+8*w+2*q], y=*(float2*)&z.lx[(16*i+8*h+gr)*68+8*w+2*q]; g[i][2*h]=x.x; g[i][2*h+1]=x.y; a[i][2*h]=y.x; a[i][2*h+1]=y.y; }
    neu::publish_block(z,0,w,lane,g,a);
    block_sync<256>();
    long long x0=clock64(); long long init=x0-c0;
    _Pragma("unroll 1") for(int b=0;b<8;b++){
      if(MODE&1){ if(w<2) neu::solve_block(z,b,tid,lane); }
      if(MODE&8) block_sync<256>();
      long long x1=clock64(); cs+=x1-x0;
      if(b==7) break;
      if(MODE&2) neu::update_block(z,b,w,lane,g,a);
      if(MODE&4) neu::publish_block(z,b+1,w,lane,g,a);
      if(MODE&8) block_sync<256>();
      x0=clock64(); cu+=x0-x1;
    }
    long long c1=clock64();
    if(tid==0) {t[rep]=c1-c0; t[64+rep]=cs; t[128+rep]=cu; t[192+rep]=init;}
    if(!(MODE&2)) { float s=0; UNROLL for(int i=0;i<4;i++) UNROLL for(int h=0;h<4;h++) s+=g[i][h]+a[i][h]; if(s==1234.5f) out[0]=s; }
    __syncthreads();
  }
  for(int i=tid;i<4096;i+=256){ int r=i>>6,c=i&63; 
    out[i]=r<=c?neu::entry(z.r,r,c): (r>>3)==(c>>3)? z.r[(r>>3)*neu::BLOCK+c*12+(r&7)] : neu::entry(z.lx,c,r); out[4096+i]=c<=r?neu::entry(z.lx,r,c):0.f; }
}

__global__ void __launch_bounds__(256,1) k_two(const float *G, const float *A, float *out, long long *t, int reps) {
  extern __shared__ __align__(128) char sm[];
  zwo::Block64 z; z.r=(float*)sm; z.lx=z.r+8*neu::BLOCK; z.u=z.lx+8*neu::BLOCK; z.gin=z.u+neu::BLOCK; z.ain=z.gin+neu::BLOCK; z.xin=z.ain+neu::BLOCK; float*thr=z.xin+neu::BLOCK; z.threshold=thr; z.sign=thr+64; z.flag=(int*)(thr+128);
  const int tid=threadIdx.x, lane=tid&31, w=__shfl_sync(~0u,tid>>5,0);
  for(int rep=0;rep<reps;rep++){
    for(int i=tid;i<4096;i+=256){ int r=i>>6,c=i&63; z.r[r*68+c]=G[i]; z.lx[r*68+c]=A[i]; }
    if(tid<64) thr[tid]=1e-4f*G[tid*65];
    __syncthreads();
    long long c0=clock64();
    zwo::recurrence(z,z.r,z.lx,w,lane,[](int){});
    long long c1=clock64();
    if(tid==0) t[rep]=c1-c0;
    __syncthreads();
  }
  for(int i=tid;i<4096;i+=256){ int r=i>>6,c=i&63; 
    out[i]=r<=c?zwo::entry(z.r,r,c)*z.sign[r]: zwo::lower(z,r,c); out[4096+i]=c<=r?zwo::entry(z.lx,r,c):0.f; }
}
extern "C" void run_two(const float*G,const float*A,float*o,long long*t,int reps){ cudaFuncSetAttribute(k_two,cudaFuncAttributeMaxDynamicSharedMemorySize,100000); k_two<<<1,256,100000>>>(G,A,o,t,reps); }
// throughput of one kind of instruction, N of them by W warps: cycles
template <int KIND> __global__ void __launch_bounds__(256,1) k_tp(long long *t, float *o, int warps) {
  __shared__ __align__(128) float s[4096];
  const int tid=threadIdx.x,lane=tid&31,w=tid>>5; for(int i=tid;i<4096;i+=256) s[i]=i; __syncthreads();
  float acc=0; uint32_t base=smem_addr(s); float d[4][4]={}; uint32_t a4[4]={1u*lane,2u,3u,4u};
  for(int rep=0;rep<4;rep++){
  __syncthreads(); long long c0=clock64();
  if(w<warps){
    UNROLL for(int i=0;i<64;i++){
      if(KIND==0){ float x; asm volatile("ld.shared.f32 %0,[%1];":"=f"(x):"r"(base+lane*4+i*128)); acc+=x; }
      if(KIND==1){ float x,y,z,v; asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];":"=f"(x),"=f"(y),"=f"(z),"=f"(v):"r"(base+lane*16+i*128)); acc+=x+y+z+v; }
      if(KIND==2){ float x,y,z,v; asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];":"=f"(x),"=f"(y),"=f"(z),"=f"(v):"r"(base+i*128)); acc+=x+y+z+v; }
      if(KIND==3){ float x,y,z,v; asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];":"=f"(x),"=f"(y),"=f"(z),"=f"(v):"r"(base+(lane>>3)*16+i*128)); acc+=x+y+z+v; }
      if(KIND==4){ float x,y,z,v; asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3},[%4];":"=f"(x),"=f"(y),"=f"(z),"=f"(v):"r"(base+(lane&7)*16+i*128)); acc+=x+y+z+v; }
      if(KIND==5){ uint32_t r[4]; ldsm4(r,base+lane*48%1536+i*64/64*128); acc+=__uint_as_float(r[0]^r[1]^r[2]^r[3]); }
      if(KIND==6){ asm volatile("st.shared.v4.f32 [%0],{%1,%1,%1,%1};"::"r"(base+lane*16+i*128),"f"(acc)); }
      if(KIND==7){ asm volatile("st.shared.f32 [%0],%1;"::"r"(base+lane*4+i*128),"f"(acc)); }
      if(KIND==8) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+f"(d[i&3][0]), "+f"(d[i&3][1]), "+f"(d[i&3][2]), "+f"(d[i&3][3]) : "r"(a4[0]), "r"(a4[1]), "r"(a4[2]), "r"(a4[3]), "r"(a4[1]), "r"(a4[2]));
      if(KIND==9) mma(d[i&3],a4,a4[1],a4[2]);
      if(KIND==10) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]) : "r"(a4[0]), "r"(a4[1]), "r"(a4[2]), "r"(a4[3]), "r"(a4[1]), "r"(a4[2]));
      if(KIND==12) acc=__shfl_sync(~0u,acc,i);
      if(KIND==13) mma(d[0],a4,a4[1],a4[2]);
      if(KIND==14){ float x,y; asm volatile("ld.shared.v2.f32 {%0,%1},[%2];":"=f"(x),"=f"(y):"r"(base+lane*8+i*128)); acc+=x+y; }
    }
  }
  if(KIND==11) { UNROLL for(int i=0;i<64;i++) block_sync<256>(); }
  if(KIND!=11 && KIND<8) __syncwarp();
  long long c1=clock64(); 
  if(tid==0) t[rep]=c1-c0;
  }
  o[tid]=acc+d[0][0]+d[1][1]+d[2][2]+d[3][3];
}
extern "C" void run_old(int mode,const float*G,const float*A,float*o,long long*t,int reps){
  auto go=[&](auto k){ cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,100000); k<<<1,256,100000>>>(G,A,o,t,reps); };
  if(mode==15) go(k_old<15>); if(mode==9) go(k_old<9>); if(mode==10) go(k_old<10>); if(mode==12) go(k_old<12>); if(mode==11) go(k_old<11>); if(mode==13) go(k_old<13>); if(mode==7) go(k_old<7>); if(mode==8) go(k_old<8>);
}
extern "C" void run_new(int mode,const float*G,const float*A,float*o,long long*t,int reps){
  auto go=[&](auto k){ cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,100000); k<<<1,256,100000>>>(G,A,o,t,reps); };
  if(mode==15) go(k_new<15>); if(mode==9) go(k_new<9>); if(mode==10) go(k_new<10>); if(mode==14) go(k_new<14>); if(mode==12) go(k_new<12>);
}
extern "C" void run_tp(int kind,long long*t,float*o,int warps){
#define K(i) if(kind==i) k_tp<i><<<1,256>>>(t,o,warps);
K(0)K(1)K(2)K(3)K(4)K(5)K(6)K(7)K(8)K(9)K(10)K(11)K(12)K(13)K(14)
}
