
template <bool EXACT>
__global__ void __launch_bounds__(THREADS, 1)
    geqrf_kernel(const float* a, float* h, float* tau, uint32_t* v, uint32_t* v_lo, uint32_t* t, int n, int panels,
                 const __grid_constant__ TensorMap map, const __grid_constant__ TensorMap low_map) {
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  Shared& s = *reinterpret_cast<Shared*>(shared_bytes);
  Lane me;
  me.tid = threadIdx.x;
  me.lane = me.tid & 31;
  me.warp = (int)first_lane((uint32_t)me.tid >> 5);  // so that the compiler knows it to be uniform
  me.wg = me.warp >> 2;
  me.ws = me.warp & 3;
  me.g = me.lane >> 2;
  me.q = me.lane & 3;
  const size_t matrix = blockIdx.x;
  Job job;
  job.a = a + matrix * n * n;
  job.h = h + matrix * n * n;
  job.tau = tau + matrix * n;
  job.v = v + matrix * panels * (TILES * GROUPS * 32);
  job.v_lo = v_lo + matrix * panels * (TILES * GROUPS * 32);
  job.t = t + matrix * panels * (T_OPERANDS * 128);
  job.n = n;
  job.panels = panels;
  job.map = &map;
  job.row = (int)matrix * n;
  job.low_map = &low_map;
  job.low_row = (int)matrix * panels * GROUPS;
  factor_matrix<EXACT>(s, job, me);
}

using Encode = decltype(&cuTensorMapEncodeTiled);
static Encode encoder() {
  static const Encode encode = [] {
    void* f = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &f, cudaEnableDefault, &found);
#endif
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(f) : nullptr;
  }();
  return encode;
}
// The batch as one tall matrix of which a copy takes BOX rows of IB columns, swizzled. False where the driver cannot.
static bool panel_map(TensorMap& map, const void* a, int n, int batch) {
  const Encode encode = encoder();
  if (!encode || reinterpret_cast<uintptr_t>(a) % 16) return false;
  const cuuint64_t sizes[2] = {(cuuint64_t)n, (cuuint64_t)batch * n}, strides[1] = {4 * (cuuint64_t)n};
  const cuuint32_t box[2] = {IB, BOX}, steps[2] = {1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<void*>(a), sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
// V's low terms: copies of 16 tiles (of 64) of 4 groups of reflectors (of 8 a block).
static bool low_map(TensorMap& map, const void* v_lo, int blocks) {
  const Encode encode = encoder();
  const cuuint64_t sizes[3] = {32, TILES, (cuuint64_t)blocks * GROUPS}, strides[2] = {128, TILES * 128};
  const cuuint32_t box[3] = {32, 16, 4}, steps[3] = {1, 1, 1};
  return encode && encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 3, const_cast<void*>(v_lo), sizes, strides, box, steps,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Launches on the default queue; returns a CUDA error code. v, v_lo: batch * panels * 65536 bytes; t: batch * panels * 10240.
static int launch(const void* a, void* h, void* tau, void* v, void* v_lo, void* t, int batch, int n) {
  TensorMap map{}, low{};
  const int panels = (n + NB - 1) / NB;
  if (FP32_CLASS && !low_map(low, v_lo, batch * panels)) return (int)cudaErrorNotSupported;
  #ifdef ONLY_EXACT
  panel_map(map, a, n, batch);
  auto kernel = geqrf_kernel<true>;
#else
  auto kernel = n == ROWS && panel_map(map, a, n, batch) ? geqrf_kernel<true> : geqrf_kernel<false>;
#endif
  cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  if (e != cudaSuccess) return (int)e;
  kernel<<<batch, THREADS, SHARED_BYTES>>>((const float*)a, (float*)h, (float*)tau, (uint32_t*)v, (uint32_t*)v_lo,
                                             (uint32_t*)t, n, panels, map, low);
  return (int)cudaGetLastError();
}
