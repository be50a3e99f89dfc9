// The batch as a tensor of five dimensions, column | row bits x0 | q | x1 | piece of 16 rows (row 4q + 2 x1 + x0 of it), of
// which a copy takes 32 columns of `units` pieces, swizzled in units of 16 bytes. False where the driver cannot.
static bool panel_map(CUtensorMap& map, const float* a, int n, int batch, int units) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
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
  if (!encode || reinterpret_cast<uintptr_t>(a) % 16) return false;
  const cuuint64_t row = 4 * (cuuint64_t)n, sizes[5] = {(cuuint64_t)n, 2, 4, 2, (cuuint64_t)batch * n / 16}, strides[4] = {row, 4 * row, 2 * row, 16 * row};
  const cuuint32_t box[5] = {SUB, 2, 4, 2, (cuuint32_t)units}, steps[5] = {1, 1, 1, 1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 5, const_cast<float*>(a), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <class K>
static int run(Args args, int batch) {
  CUtensorMap map{};
  args.staged = args.n == K::ROWS && panel_map(map, args.a, args.n, batch, K::G);
  static bool ready = false;
  if (!ready) {
    if (cudaFuncSetAttribute(geqrf_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, K::BYTES)) return -1;
    ready = true;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(batch * K::C);
  config.blockDim = dim3(K::THREADS);
  config.dynamicSmemBytes = K::BYTES;
  cudaLaunchAttribute cluster[1];
  cluster[0].id = cudaLaunchAttributeClusterDimension;
  cluster[0].val.clusterDim.x = K::C;
  cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
  config.attrs = cluster;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, geqrf_kernel<K>, args, map);
}
}  // namespace qr1024
