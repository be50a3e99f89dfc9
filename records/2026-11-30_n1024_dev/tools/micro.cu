#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <cuda_fp16.h>
#include <vector>
#include <cmath>
#define D __device__ __forceinline__
D uint64_t mkdesc(uint32_t a,uint32_t lbo,uint32_t sbo){ return (uint64_t)((a&0x3ffff)>>4)|((uint64_t)(lbo>>4)<<16)|((uint64_t)(sbo>>4)<<32); }
D void wfence(){ asm volatile("wgmma.fence.sync.aligned;":::"memory"); }
D void wcommit(){ asm volatile("wgmma.commit_group.sync.aligned;":::"memory"); }
D void wwait(){ asm volatile("wgmma.wait_group.sync.aligned 0;":::"memory"); }
template<int TB> D void w32(float (&d)[16],const uint32_t (&a)[4],uint64_t desc){
 asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19},%20,1,1,1,%21;"
 :"+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15])
 :"r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"l"(desc),"n"(TB)); }
template<int TB> D void w64(float (&d)[32],const uint32_t (&a)[4],uint64_t desc){
 asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},{%32,%33,%34,%35},%36,1,1,1,%37;"
 :"+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15]),"+f"(d[16]),"+f"(d[17]),"+f"(d[18]),"+f"(d[19]),"+f"(d[20]),"+f"(d[21]),"+f"(d[22]),"+f"(d[23]),"+f"(d[24]),"+f"(d[25]),"+f"(d[26]),"+f"(d[27]),"+f"(d[28]),"+f"(d[29]),"+f"(d[30]),"+f"(d[31])
 :"r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"l"(desc),"n"(TB)); }
D void w64z(float (&d)[32],const uint32_t (&a)[4],uint64_t desc){ w64<0>(d,a,desc); }
// smem image: tile t, group g (8 groups): 8 refl x 8 rows halves, [t*1024 + g*128 + r*16 + row*2]
// mode 0: n32 phase1 K-major (K=rows of tiles 0,1; N=refl groups 0..3) ; 1: n32 phase 2 MN-major (K=refl groups 0,1, N=tiles 0..3); 2: n64 phase 1
__global__ void test(const __half* img,const uint32_t* afrag,float* out,int mode,int swap){ extern __shared__ __align__(1024) char sm[]; for(int i=threadIdx.x;i<8192/4*2;i+=128) ((uint32_t*)sm)[i]=((const uint32_t*)img)[i]; asm volatile("fence.proxy.async;":::"memory"); __syncthreads();
 uint32_t a[4]; for(int i=0;i<4;i++) a[i]=afrag[threadIdx.x*4+i]; float d[32]; for(int i=0;i<32;i++) d[i]=0; float e[16]; for(int i=0;i<16;i++) e[i]=0; uint32_t s=(uint32_t)__cvta_generic_to_shared(sm);
 if(mode==0){ uint64_t de=swap?mkdesc(s,128,1024):mkdesc(s,1024,128); wfence(); w32<0>(e,a,de); wcommit(); wwait(); }
 if(mode==1){ uint64_t de=swap?mkdesc(s,1024,128):mkdesc(s,128,1024); wfence(); w32<1>(e,a,de); wcommit(); wwait(); }
 if(mode==2){ uint64_t de=swap?mkdesc(s,128,1024):mkdesc(s,1024,128); wfence(); w64<0>(d,a,de); wcommit(); wwait(); }
 if(mode<2) for(int i=0;i<16;i++) out[threadIdx.x*32+i]=e[i]; else for(int i=0;i<32;i++) out[threadIdx.x*32+i]=d[i]; }
// throughput: 2 WG/CTA, KIND 0: n64 K-major 8 steps ; 1: n32 MN-major, 4 chunks x 4 k
template<int KIND> __global__ void __launch_bounds__(256,2) thr(float* out,long long* clk,int iters){ extern __shared__ __align__(1024) char sm[]; for(int i=threadIdx.x;i<65536/4;i+=256) ((uint32_t*)sm)[i]=0; asm volatile("fence.proxy.async;":::"memory"); __syncthreads(); uint32_t s=(uint32_t)__cvta_generic_to_shared(sm); int wg=threadIdx.x>>7;
 uint32_t a[4]; for(int i=0;i<4;i++) a[i]=((const uint32_t*)out)[threadIdx.x*4+i]; float c[4][16]; float c2[2][32]; for(int k=0;k<2;k++) for(int i=0;i<32;i++) c2[k][i]=0; float w[32]; for(int i=0;i<32;i++) w[i]=0; for(int k=0;k<4;k++) for(int i=0;i<16;i++) c[k][i]=0;
 long long t=clock64();
 for(int it=0;it<iters;it++){ wfence();
  if(KIND==0){
#pragma unroll
   for(int p=0;p<8;p++) w64<0>(w,a,mkdesc(s+((p>>1)*2+wg)*4096+(p&1)*2048,1024,128)); }
  else if(KIND==1){
#pragma unroll
   for(int ch=0;ch<4;ch++)
#pragma unroll
   for(int kk=0;kk<4;kk++) w32<1>(c[ch],a,mkdesc(s+(ch*2+wg)*4096+kk*256,128,1024)); }
  else {
#pragma unroll
   for(int ch=0;ch<2;ch++)
#pragma unroll
   for(int kk=0;kk<4;kk++) w64<1>(c2[ch],a,mkdesc(s+(ch*2+wg)*8192+kk*256,128,1024)); }
  wcommit(); wwait(); }
 t=clock64()-t; float x=0; for(int i=0;i<32;i++) x+=w[i]+c2[0][i]+c2[1][i]; for(int k=0;k<4;k++) for(int i=0;i<16;i++) x+=c[k][i]; out[blockIdx.x*256+threadIdx.x]=x; if(threadIdx.x==0) clk[blockIdx.x]=t; }
// cluster hop latency: 4 CTAs, ping: st.async of K float4 a thread to all, wait, repeat
D uint32_t mapa(uint32_t a,uint32_t r){ uint32_t x; asm volatile("mapa.shared::cluster.u32 %0,%1,%2;":"=r"(x):"r"(a),"r"(r)); return x; }
D void mbw(uint32_t b,uint32_t ph){ uint32_t ok=0; int n=0; while(!ok){ asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}":"=r"(ok):"r"(b),"r"(ph):"memory"); if(++n>1000000) asm volatile("trap;"); } }
template<int K> __global__ void __launch_bounds__(256,2) hop(float* out,long long* clk,int iters,int C){ extern __shared__ __align__(1024) char sm[]; uint32_t s=(uint32_t)__cvta_generic_to_shared(sm); uint32_t bar=s+98304; uint32_t rank; asm volatile("mov.u32 %0,%%cluster_ctarank;":"=r"(rank)); int tid=threadIdx.x,lane=tid&31,w=tid>>5;
 if(tid==0){ for(int i=0;i<2;i++) asm volatile("mbarrier.init.shared.b64 [%0],1;"::"r"(bar+8*i)); asm volatile("fence.mbarrier_init.release.cluster;":::"memory"); } asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;":::"memory");
 float x=tid; long long t=clock64();
 for(int it=0;it<iters;it++){ uint32_t b=bar+8*(it&1); if(tid==0) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;"::"r"(b),"r"(K*16*256):"memory");
  // warp w sends its K float4 to owner w%C ; slot (rank, w/C)
  uint32_t dst=mapa(s+(it&1)*49152+((rank*(8/C)+w/C)*K*32+lane)*16,w%C),db=mapa(b,w%C);
#pragma unroll
  for(int k=0;k<K;k++) asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0],{%1,%1,%1,%1},[%2];"::"r"(dst+k*512),"f"(x),"r"(db):"memory");
  mbw(b,(it>>1)&1); x+=*(float*)(sm+(it&1)*49152+tid*16); }
 t=clock64()-t; out[blockIdx.x*256+tid]=x; if(tid==0) clk[blockIdx.x]=t; asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;":::"memory"); }
__global__ void csync(long long* clk,int iters){ long long t=clock64(); for(int i=0;i<iters;i++) asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;":::"memory"); t=clock64()-t; if(threadIdx.x==0) clk[blockIdx.x]=t; }
#define CK(x) do{cudaError_t e_=(x); if(e_){printf("ERR %s %s\n",#x,cudaGetErrorString(e_)); fflush(stdout);} }while(0)
template<class F,class... A> void launch(F f,int grid,int thr,int sm,int C,A... a){ cudaLaunchConfig_t cf={}; cf.gridDim=dim3(grid); cf.blockDim=dim3(thr); cf.dynamicSmemBytes=sm; cudaLaunchAttribute at[1]; at[0].id=cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x=C; at[0].val.clusterDim.y=1; at[0].val.clusterDim.z=1; cf.attrs=at; cf.numAttrs=1; CK(cudaFuncSetAttribute(f,cudaFuncAttributeMaxDynamicSharedMemorySize,sm)); int nc=-1; cudaOccupancyMaxActiveClusters(&nc,f,&cf); printf("[cluster %d thr %d smem %d: max active clusters %d] ",C,thr,sm,nc); CK(cudaLaunchKernelEx(&cf,f,a...)); CK(cudaDeviceSynchronize()); }
int main(){ std::vector<__half> img(8192); std::vector<uint32_t> af(512); std::vector<float> A(64*16); srand(1); for(auto&x:img) x=__float2half((rand()%17-8)/8.f); for(auto&x:A) x=(rand()%17-8)/8.f;
 for(int t=0;t<128;t++){ int w=t/32,l=t%32,g=l/4,q=l%4; for(int i=0;i<4;i++){ int r=w*16+g+8*(i&1),k=2*q+8*(i>>1); __half2 h=__floats2half2_rn(A[r*16+k],A[r*16+k+1]); af[t*4+i]=*(uint32_t*)&h; } }
 __half* di; uint32_t* da; float* dout; long long* dc; CK(cudaMalloc(&di,1<<20)); CK(cudaMalloc(&da,1<<20)); CK(cudaMalloc(&dout,1<<20)); CK(cudaMalloc(&dc,1<<16)); CK(cudaMemcpy(di,img.data(),16384,cudaMemcpyHostToDevice)); CK(cudaMemcpy(da,af.data(),2048,cudaMemcpyHostToDevice));
 auto at=[&](int tile,int refl,int row){ return __half2float(img[(tile*1024+(refl/8)*128+(refl%8)*16+row*2)/2]); };
 for(int mode=0;mode<3;mode++) for(int swap=0;swap<2;swap++){ test<<<1,128,65536>>>(di,da,dout,mode,swap); cudaError_t e=cudaFuncSetAttribute(test,cudaFuncAttributeMaxDynamicSharedMemorySize,65536); test<<<1,128,65536>>>(di,da,dout,mode,swap); CK(cudaDeviceSynchronize()); std::vector<float> o(4096); CK(cudaMemcpy(o.data(),dout,16384,cudaMemcpyDeviceToHost)); int N=mode==2?64:32; double err=0; for(int r=0;r<64;r++) for(int n=0;n<N;n++){ double s=0; for(int k=0;k<16;k++){ double b=mode==1?at(n/8,k,n%8):at(k/8,n,k%8); s+=A[r*16+k]*b; } int w=r/16,g=r%8,hi=(r%16)/8,l=g*4+(n%8)/2; double got=o[(w*32+l)*32+(n/8)*4+hi*2+(n&1)]; err=fmax(err,fabs(got-s)); } printf("desc mode %d swap %d: max err %g %s\n",mode,swap,err,err<1e-3?"OK":"WRONG"); }
 std::vector<long long> c(4096); cudaGetLastError();
 CK(cudaFuncSetAttribute(thr<0>,cudaFuncAttributeMaxDynamicSharedMemorySize,98304)); CK(cudaFuncSetAttribute(thr<1>,cudaFuncAttributeMaxDynamicSharedMemorySize,98304)); CK(cudaFuncSetAttribute(thr<2>,cudaFuncAttributeMaxDynamicSharedMemorySize,98304)); CK(cudaMemset(dout,0,1<<20));
 for(int kind=0;kind<3;kind++) for(int grid: {132,264}){ for(int r=0;r<2;r++){ if(kind==0) thr<0><<<grid,256,98304>>>(dout,dc,200); else if(kind==1) thr<1><<<grid,256,98304>>>(dout,dc,200); else thr<2><<<grid,256,98304>>>(dout,dc,200); } CK(cudaDeviceSynchronize()); CK(cudaMemcpy(c.data(),dc,grid*8,cudaMemcpyDeviceToHost)); printf("thr kind %d (0: phase 1 n64 8 steps, 1: phase 2 n32 16 wgmmas) grid %d: %.1f cycles an iteration (ideal 512 alone, 1024 with two CTAs)\n",kind,grid,c[0]/200.0); }
 for(int C: {2,4}){ 
  launch(hop<2>,240,256,100000,C,dout,dc,200,C); CK(cudaMemcpy(c.data(),dc,240*8,cudaMemcpyDeviceToHost)); printf("hop K=2 C=%d grid 240: %.1f cycles\n",C,c[0]/200.0);
  launch(hop<8>,C,256,100000,C,dout,dc,200,C); CK(cudaMemcpy(c.data(),dc,C*8,cudaMemcpyDeviceToHost)); printf("hop K=8 (32 KB in a CTA) C=%d grid %d: %.1f cycles\n",C,C,c[0]/200.0);
  launch(hop<8>,240,256,100000,C,dout,dc,200,C); CK(cudaMemcpy(c.data(),dc,240*8,cudaMemcpyDeviceToHost)); printf("hop K=8 C=%d grid 240: %.1f cycles\n",C,c[0]/200.0);
  launch(hop<1>,240,256,100000,C,dout,dc,200,C); CK(cudaMemcpy(c.data(),dc,240*8,cudaMemcpyDeviceToHost)); printf("hop K=1 C=%d grid 240: %.1f cycles\n",C,c[0]/200.0);
  launch(csync,240,256,100000,C,dc,200); CK(cudaMemcpy(c.data(),dc,240*8,cudaMemcpyDeviceToHost)); printf("cluster sync C=%d: %.1f cycles\n",C,c[0]/200.0);
  launch(hop<1>,240,256,115000,C,dout,dc,200,C); printf("\n"); launch(hop<1>,60,256,220000,C,dout,dc,200,C); printf("\n"); }
 return 0; }
