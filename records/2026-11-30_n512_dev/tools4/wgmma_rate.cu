#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#define D __device__ __forceinline__
D void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
D void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
D void wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
template<int T,int NS> D void mm32(float (&d)[16], const uint32_t (&a)[4], uint32_t b) {
  asm volatile("{.reg .b64 d; mov.b64 d,{%20,%21}; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19},d,1,1,1,%22;}" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15]) : "r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"r"(b),"n"(NS>>4),"n"(T)); }
template<int T,int NS> D void mm64(float (&d)[32], const uint32_t (&a)[4], uint32_t b) {
  asm volatile("{.reg .b64 d; mov.b64 d,{%36,%37}; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},{%32,%33,%34,%35},d,1,1,1,%38;}" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15]),"+f"(d[16]),"+f"(d[17]),"+f"(d[18]),"+f"(d[19]),"+f"(d[20]),"+f"(d[21]),"+f"(d[22]),"+f"(d[23]),"+f"(d[24]),"+f"(d[25]),"+f"(d[26]),"+f"(d[27]),"+f"(d[28]),"+f"(d[29]),"+f"(d[30]),"+f"(d[31]) : "r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"r"(b),"n"(NS>>4),"n"(T)); }
template<int T,int NS> D void mm128(float (&d)[64], const uint32_t (&a)[4], uint32_t b) {
  asm volatile("{.reg .b64 d; mov.b64 d,{%68,%69}; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},{%64,%65,%66,%67},d,1,1,1,%70;}" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15]),"+f"(d[16]),"+f"(d[17]),"+f"(d[18]),"+f"(d[19]),"+f"(d[20]),"+f"(d[21]),"+f"(d[22]),"+f"(d[23]),"+f"(d[24]),"+f"(d[25]),"+f"(d[26]),"+f"(d[27]),"+f"(d[28]),"+f"(d[29]),"+f"(d[30]),"+f"(d[31]),"+f"(d[32]),"+f"(d[33]),"+f"(d[34]),"+f"(d[35]),"+f"(d[36]),"+f"(d[37]),"+f"(d[38]),"+f"(d[39]),"+f"(d[40]),"+f"(d[41]),"+f"(d[42]),"+f"(d[43]),"+f"(d[44]),"+f"(d[45]),"+f"(d[46]),"+f"(d[47]),"+f"(d[48]),"+f"(d[49]),"+f"(d[50]),"+f"(d[51]),"+f"(d[52]),"+f"(d[53]),"+f"(d[54]),"+f"(d[55]),"+f"(d[56]),"+f"(d[57]),"+f"(d[58]),"+f"(d[59]),"+f"(d[60]),"+f"(d[61]),"+f"(d[62]),"+f"(d[63]) : "r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"r"(b),"n"(NS>>4),"n"(T)); }
template<int T,int NS> D void mm256(float (&d)[128], const uint32_t (&a)[4], uint32_t b) {
  asm volatile("{.reg .b64 d; mov.b64 d,{%132,%133}; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127},{%128,%129,%130,%131},d,1,1,1,%134;}" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]),"+f"(d[8]),"+f"(d[9]),"+f"(d[10]),"+f"(d[11]),"+f"(d[12]),"+f"(d[13]),"+f"(d[14]),"+f"(d[15]),"+f"(d[16]),"+f"(d[17]),"+f"(d[18]),"+f"(d[19]),"+f"(d[20]),"+f"(d[21]),"+f"(d[22]),"+f"(d[23]),"+f"(d[24]),"+f"(d[25]),"+f"(d[26]),"+f"(d[27]),"+f"(d[28]),"+f"(d[29]),"+f"(d[30]),"+f"(d[31]),"+f"(d[32]),"+f"(d[33]),"+f"(d[34]),"+f"(d[35]),"+f"(d[36]),"+f"(d[37]),"+f"(d[38]),"+f"(d[39]),"+f"(d[40]),"+f"(d[41]),"+f"(d[42]),"+f"(d[43]),"+f"(d[44]),"+f"(d[45]),"+f"(d[46]),"+f"(d[47]),"+f"(d[48]),"+f"(d[49]),"+f"(d[50]),"+f"(d[51]),"+f"(d[52]),"+f"(d[53]),"+f"(d[54]),"+f"(d[55]),"+f"(d[56]),"+f"(d[57]),"+f"(d[58]),"+f"(d[59]),"+f"(d[60]),"+f"(d[61]),"+f"(d[62]),"+f"(d[63]),"+f"(d[64]),"+f"(d[65]),"+f"(d[66]),"+f"(d[67]),"+f"(d[68]),"+f"(d[69]),"+f"(d[70]),"+f"(d[71]),"+f"(d[72]),"+f"(d[73]),"+f"(d[74]),"+f"(d[75]),"+f"(d[76]),"+f"(d[77]),"+f"(d[78]),"+f"(d[79]),"+f"(d[80]),"+f"(d[81]),"+f"(d[82]),"+f"(d[83]),"+f"(d[84]),"+f"(d[85]),"+f"(d[86]),"+f"(d[87]),"+f"(d[88]),"+f"(d[89]),"+f"(d[90]),"+f"(d[91]),"+f"(d[92]),"+f"(d[93]),"+f"(d[94]),"+f"(d[95]),"+f"(d[96]),"+f"(d[97]),"+f"(d[98]),"+f"(d[99]),"+f"(d[100]),"+f"(d[101]),"+f"(d[102]),"+f"(d[103]),"+f"(d[104]),"+f"(d[105]),"+f"(d[106]),"+f"(d[107]),"+f"(d[108]),"+f"(d[109]),"+f"(d[110]),"+f"(d[111]),"+f"(d[112]),"+f"(d[113]),"+f"(d[114]),"+f"(d[115]),"+f"(d[116]),"+f"(d[117]),"+f"(d[118]),"+f"(d[119]),"+f"(d[120]),"+f"(d[121]),"+f"(d[122]),"+f"(d[123]),"+f"(d[124]),"+f"(d[125]),"+f"(d[126]),"+f"(d[127]) : "r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"r"(b),"n"(NS>>4),"n"(T)); }

template<int N,int T,int PER,int SETS> __global__ void __launch_bounds__(256,1) k(float* out, unsigned* cyc, int wgs) {
  extern __shared__ char sm[];
  for (int i = threadIdx.x; i < 65536; i += 256) sm[i] = 0;
  __syncthreads();
  if ((int)threadIdx.x >= 128 * wgs) return;
  float d[SETS][N / 2]; 
#pragma unroll
  for (int s = 0; s < SETS; s++)
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[s][i] = 0;
  uint32_t a[4] = {threadIdx.x, 1, 2, 3};
  uint32_t base = ((uint32_t)__cvta_generic_to_shared(sm) >> 4 & 0x3fff) | (T ? 128 >> 4 : 2048 >> 4) << 16;
  base = __shfl_sync(~0u, base, 0);
  unsigned t0 = clock();
#pragma unroll 1
  for (int it = 0; it < 32; it++) {
#pragma unroll
    for (int s = 0; s < SETS; s++) {
      fence();
#pragma unroll
      for (int u = 0; u < PER; u++) {
        const uint32_t b = base + (T ? u * 16 : u * 256);
        if constexpr (N == 32) mm32<T, T ? 2048 : 128>(d[s], a, b);
        if constexpr (N == 64) mm64<T, T ? 2048 : 128>(d[s], a, b);
        if constexpr (N == 128) mm128<T, T ? 2048 : 128>(d[s], a, b);
        if constexpr (N == 256) mm256<T, T ? 2048 : 128>(d[s], a, b);
      }
      commit();
      wait();
    }
  }
  unsigned t1 = clock();
  float z = 0;
#pragma unroll
  for (int s = 0; s < SETS; s++)
#pragma unroll
  for (int i = 0; i < N / 2; i++) z += d[s][i];
  out[threadIdx.x] = z;
  if (threadIdx.x == 0) cyc[0] = t1 - t0;
}
template<int N,int T,int PER,int SETS> void go(float* o, unsigned* c) {
  cudaFuncSetAttribute(k<N,T,PER,SETS>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  for (int w = 1; w <= 2; w++) { k<N,T,PER,SETS><<<1, 256, 65536>>>(o, c, w); k<N,T,PER,SETS><<<1, 256, 65536>>>(o, c, w); cudaError_t e = cudaDeviceSynchronize(); unsigned h; cudaMemcpy(&h, c, 4, cudaMemcpyDeviceToHost);
    printf("wgmma N %d trans %d per wait %d sets %d wgs %d: %.1f cycles a product (ideal %d a warpgroup)%s\n", N, T, PER, SETS, w, h / (32.0 * PER * SETS), N / 2, e ? cudaGetErrorString(e) : ""); }
}
int main() { float* o; unsigned* c; cudaMalloc(&o, 4096); cudaMalloc(&c, 64);
  go<64,0,2,1>(o,c); go<64,0,4,1>(o,c); go<64,0,8,1>(o,c); go<64,0,16,1>(o,c);
  go<32,1,4,1>(o,c); go<32,1,4,4>(o,c); go<32,1,8,1>(o,c); go<32,1,16,1>(o,c);
  go<64,1,4,1>(o,c); go<64,1,8,1>(o,c); go<64,1,16,1>(o,c);
  go<128,1,4,1>(o,c); go<128,1,8,1>(o,c); go<256,1,4,1>(o,c); go<256,1,8,1>(o,c); }
