#include "hw.cuh"
constexpr int SUB = 32; constexpr unsigned ALL = ~0u; constexpr float CANCELLED = 1e-5f, ZERO_PIVOT = 1e-20f; constexpr int LD_X = 33, LD_TOP = 36, LD_SHIFT = 36, LD_M = 40, LD_R = 33;
#include REC
__global__ void __launch_bounds__(512, 1) micro(const float* gx, const float* gtop, float* out, unsigned* clk, int reps, int roles, int stopper) {
  extern __shared__ __align__(1024) float sm[];
  Scratch z; z.x = sm; z.top = z.x + 32 * 36; z.v = z.top + 32 * 36; z.r1 = z.v + 32 * 36; z.w = z.r1 + 32 * 36; z.r = z.w + 32 * 36; z.m = z.r + 32 * 36; z.inverse = z.m + 32 * 40; z.threshold = z.inverse + 32; z.g_diagonal = z.inverse + 64; z.a_diagonal = z.inverse + 80; z.stop = (int*)(z.inverse + 96);
  for (int i = threadIdx.x; i < 32 * 33; i += 512) z.x[i] = gx[i];
  for (int i = threadIdx.x; i < 32 * 36; i += 512) z.top[i] = gtop[i];
  unsigned tot = 0; unsigned best = ~0u;
  for (int rep = 0; rep < reps; rep++) {
    __syncthreads();
    unsigned t0, t1; asm volatile("mov.u32 %0,%%clock;" : "=r"(t0)::"memory");
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int on = roles;
    if (warp == 0) { if (on & 1) warp_cholesky(z, lane, 0); else if (on & 2) for (int i = 1; i <= 8; i++) named_arrive(i); }
    else if (warp == 1) { if (on & 2) warp_top(z, lane); else if (on & 1) { for (int i = 1; i <= 8; i++) named_join(i); } if (!(on & 2) && (on & 4)) for (int i = 9; i <= 15; i++) named_arrive(i); }
    else if (warp == 2) { if (on & 4) warp_m(z, lane); else if (on & 2) for (int i = 9; i <= 15; i++) named_join(i); }
    asm volatile("mov.u32 %0,%%clock;" : "=r"(t1)::"memory");
    if (rep) { tot += t1 - t0; best = min(best, t1 - t0); }
  }
  if (blockIdx.x == 0 && threadIdx.x % 32 == 0 && threadIdx.x < 96) { clk[2 * (threadIdx.x / 32)] = tot / (reps - 1); clk[2 * (threadIdx.x / 32) + 1] = best; }
  __syncthreads();
  if (blockIdx.x == 0) for (int i = threadIdx.x; i < 32 * 40; i += 512) { out[i] = z.m[i]; if (i < 32 * 33) out[2000 + i] = z.r[i]; }
}
}
extern "C" int run_micro(const float* gx, const float* gtop, float* out, unsigned* clk, int reps, int blocks, int roles) { cudaFuncSetAttribute(qr1024::micro, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000); qr1024::micro<<<blocks, 512, 100000>>>(gx, gtop, out, clk, reps, roles, 0); return cudaDeviceSynchronize(); }
