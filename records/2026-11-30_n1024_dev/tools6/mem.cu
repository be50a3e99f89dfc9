#include <cuda_runtime.h>
#include <cstdint>
// pattern 0: 8 columns x 64 B; 1: 4 columns x 128 B; 2: one column x 512 B; 3: bulk copies of 512 x 4 B columns out of shared memory; 4: as 0 with 4 warps only; 5: as 1, 4 warps
__global__ void __launch_bounds__(512,1) k(float* h, unsigned* out, int pattern){
  extern __shared__ __align__(1024) unsigned char sm[];
  int t=threadIdx.x, warp=t>>5, lane=t&31, rank=blockIdx.x&1; float* m=h+(size_t)(blockIdx.x>>1)*1024*1024;
  int cg=warp&3, group=warp>>2, g=lane>>2, q=lane&3, unit=rank*4+group;
  unsigned t0=0,issue=0,drain=0; float4 v=make_float4(t,1,2,3);
  for(int i=0;i<16;i++){
    float* p=m+(size_t)i*64*1024;
    __syncthreads(); t0=clock();
    if(pattern==0){ for(int c=0;c<8;c++) *reinterpret_cast<float4*>(p+(size_t)(8*cg+g)*1024+c*128+unit*16+4*q)=v; }
    else if(pattern==1){ for(int c=0;c<4;c++) for(int e=0;e<2;e++) *reinterpret_cast<float4*>(p+(size_t)(8*cg+4*e+(lane>>3))*1024+c*256+unit*32+4*(lane&7))=v; }
    else if(pattern==2){ for(int c=0;c<8;c++) *reinterpret_cast<float4*>(p+(size_t)(warp*2+(c>>2))*1024+rank*512+(c&3)*128+4*lane)=v; }
    else if(pattern==3){ if(t<32){ uint32_t from=(uint32_t)__cvta_generic_to_shared(sm)+t*2048; asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;\ncp.async.bulk.commit_group;"::"l"(p+(size_t)t*1024+rank*512),"r"(from),"r"(2048):"memory"); asm volatile("cp.async.bulk.wait_group.read 0;":::"memory"); } }
    else if(pattern==4){ if(warp<4) for(int c=0;c<8;c++) *reinterpret_cast<float4*>(p+(size_t)(8*cg+g)*1024+c*128+unit*16+4*q)=v; }
    else if(pattern==6){ for(int c=0;c<8;c++) *reinterpret_cast<float2*>(p+(size_t)(8*cg+g)*1024+c*128+unit*16+2*q)=make_float2(t,1); }
    __syncthreads(); issue+=clock()-t0;
    asm volatile("ld.volatile.shared.u32 %0,[%1];":"=r"(t0):"r"((uint32_t)__cvta_generic_to_shared(sm)));
    // a long pause, as between two stages
    unsigned s0=clock(); while(clock()-s0<6000); 
  }
  t0=clock(); asm volatile("membar.gl;":::"memory"); drain=clock()-t0;
  if(t==0){ out[blockIdx.x*2]=issue/16; out[blockIdx.x*2+1]=drain; }
}
extern "C" int mem(float* h, unsigned* out, int pattern, int ctas){ cudaFuncSetAttribute(k,cudaFuncAttributeMaxDynamicSharedMemorySize,200*1024); k<<<ctas,512,200*1024>>>(h,out,pattern); return cudaGetLastError(); }
