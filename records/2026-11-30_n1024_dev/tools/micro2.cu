#include <cstdio>
#include <cstdint>
#include <vector>
#define D __device__ __forceinline__
D uint32_t mapa(uint32_t a,uint32_t r){ uint32_t x; asm volatile("mapa.shared::cluster.u32 %0,%1,%2;":"=r"(x):"r"(a),"r"(r)); return x; }
D void mbw(uint32_t b,uint32_t ph){ uint32_t ok=0; int n=0; while(!ok){ asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}":"=r"(ok):"r"(b),"r"(ph):"memory"); if(++n>1000000) asm volatile("trap;"); } }
// W warps a CTA (W = 8); warp w sends K*512 bytes to CTA w % C; MODE 0 st.async, 1 bulk (stage, fence, one thread a warp), 2 plain stores + remote arrive with release
template<int MODE,int K,int C> __global__ void __launch_bounds__(256,1) hop(float* out,long long* clk,int iters){ extern __shared__ __align__(1024) char sm[]; uint32_t s=(uint32_t)__cvta_generic_to_shared(sm); uint32_t bar=s+98304+8192; uint32_t rank; asm volatile("mov.u32 %0,%%cluster_ctarank;":"=r"(rank)); int tid=threadIdx.x,lane=tid&31,w=tid>>5;
 if(tid==0){ for(int i=0;i<2;i++) asm volatile("mbarrier.init.shared.b64 [%0],%1;"::"r"(bar+8*i),"r"(MODE==2?8:1)); asm volatile("fence.mbarrier_init.release.cluster;":::"memory"); } asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;":::"memory");
 float x=tid; long long t=clock64();
 for(int it=0;it<iters;it++){ uint32_t b=bar+8*(it&1); if(MODE!=2&&tid==0) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;"::"r"(b),"r"(K*16*256):"memory");
  uint32_t own=w%C, slot=((rank*(8/C)+w/C)*K*32)*16+(it&1)*32768; uint32_t dst=mapa(s+slot,own),db=mapa(b,own);
  if(MODE==0){
#pragma unroll
   for(int k=0;k<K;k++) asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0],{%1,%1,%1,%1},[%2];"::"r"(dst+k*512+lane*16),"f"(x),"r"(db):"memory"); }
  if(MODE==1){ uint32_t st=s+65536+w*K*512; 
#pragma unroll
   for(int k=0;k<K;k++) asm volatile("st.shared.v4.f32 [%0],{%1,%1,%1,%1};"::"r"(st+k*512+lane*16),"f"(x):"memory");
   asm volatile("fence.proxy.async;":::"memory"); __syncwarp(); if(lane==0) asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];"::"r"(dst),"r"(st),"r"(K*512),"r"(db):"memory"); }
  if(MODE==2){
#pragma unroll
   for(int k=0;k<K;k++) asm volatile("st.shared::cluster.v4.f32 [%0],{%1,%1,%1,%1};"::"r"(dst+k*512+lane*16),"f"(x):"memory");
   asm volatile("fence.acq_rel.cluster;":::"memory"); __syncwarp(); if(lane==0) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _,[%0];"::"r"(db):"memory"); }
  mbw(b,(it>>1)&1); x+=*(volatile float*)(sm+(it&1)*32768+tid*16);
  if(MODE==1) __syncthreads(); }
 t=clock64()-t; out[blockIdx.x*256+tid]=x; if(tid==0) clk[blockIdx.x]=t; asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;":::"memory"); }
#define CK(x) do{cudaError_t e_=(x); if(e_){printf("ERR %s %s\n",#x,cudaGetErrorString(e_)); fflush(stdout);} }while(0)
static float* dout; static long long* dc;
template<int MODE,int K,int C> void go(int grid,int sm){ auto f=hop<MODE,K,C>; cudaLaunchConfig_t cf={}; cf.gridDim=dim3(grid); cf.blockDim=dim3(256); cf.dynamicSmemBytes=sm; cudaLaunchAttribute at[1]; at[0].id=cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x=C; at[0].val.clusterDim.y=1; at[0].val.clusterDim.z=1; cf.attrs=at; cf.numAttrs=1; CK(cudaFuncSetAttribute(f,cudaFuncAttributeMaxDynamicSharedMemorySize,sm)); for(int r=0;r<2;r++) CK(cudaLaunchKernelEx(&cf,f,dout,dc,200)); CK(cudaDeviceSynchronize()); std::vector<long long> c(grid); CK(cudaMemcpy(c.data(),dc,grid*8,cudaMemcpyDeviceToHost)); printf("hop mode %d (0 st.async 1 bulk 2 plain) K=%d (%d KB into a CTA) C=%d grid %d %s: %.0f cycles\n",MODE,K,K*4,C,grid,sm>116000?"1 CTA/SM":"2 CTA/SM",c[0]/200.0); fflush(stdout); }
int main(){ CK(cudaMalloc(&dout,1<<20)); CK(cudaMalloc(&dc,1<<16));
 go<0,2,2>(2,110000); go<1,2,2>(2,110000); go<2,2,2>(2,110000); go<0,8,4>(4,110000); go<1,8,4>(4,110000); go<2,8,4>(4,110000);
 go<0,1,2>(120,200000); go<1,1,2>(120,200000); go<2,1,2>(120,200000); go<0,2,2>(120,200000); go<1,2,2>(120,200000); go<2,2,2>(120,200000); go<0,4,2>(120,200000); go<1,4,2>(120,200000); go<2,4,2>(120,200000); go<1,8,2>(120,200000); go<2,8,2>(120,200000);
 go<1,1,4>(240,110000); go<2,1,4>(240,110000); go<1,2,4>(240,110000); go<2,2,4>(240,110000); go<1,4,4>(240,110000); go<2,4,4>(240,110000); go<1,8,4>(240,110000); go<2,8,4>(240,110000);
 return 0; }
