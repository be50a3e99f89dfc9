# fewer, larger tensor copies (on a)
sub('''// all with rows of 128 bytes, swizzled: a and h in boxes of 64 x 32, V^T (and behind it the second terms), T^T and S^T in boxes of 64 x 64
struct StripMaps {
  CUtensorMap a, h, v, t;
};
''','''// all with rows of 128 bytes, swizzled: a and h as blocks of 32 columns, two blocks of 64 rows in a box; V^T (and behind it the second terms) of
// one panel and of two, T^T and S^T with their second terms. A copy costs the thread that asks for it 100 cycles, so there are as few as can be
struct StripMaps {
  CUtensorMap a, h, v, vv, t;
};
''')
sub('''__device__ __forceinline__ void fence_global()''','''__device__ __forceinline__ void tensor_load(uint32_t to, const CUtensorMap *map, int x, int y, int z, uint32_t bar) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3,%4}],[%5];" ::"r"(to), "l"(map),
               "r"(x), "r"(y), "r"(z), "r"(bar)
               : "memory");
}
__device__ __forceinline__ void fence_global()''')
sub('''__device__ __forceinline__ void tensor_store(const CUtensorMap *map, int x, int y, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0,{%1,%2}],[%3];" ::"l"(map), "r"(x), "r"(y), "r"(from) : "memory");
''','''__device__ __forceinline__ void tensor_store(const CUtensorMap *map, int x, int y, int z, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0,{%1,%2,%3}],[%4];" ::"l"(map), "r"(x), "r"(y), "r"(z), "r"(from) : "memory");
''')
sub('''      ROLL for (int u = 0; u < 2 * count; u++) tensor_load(to + u * 8192, &maps.t, 0, (int)((from - p.ts) / 64) + 64 * u, bar);
''','''      ROLL for (int u = 0; u < count; u++) tensor_load(to + u * 16384, &maps.t, 0, (int)((from - p.ts) / 64) + 128 * u, bar);
''')
sub('''        UNROLL for (int h = 0; h < 2; h++)
          tensor_load(to + L::C + h * 8192, r0 ? &maps.h : &maps.a, task.column + 32 * h, (int)task.mat * n + row, bar);
        ROLL for (int b = 0; b < blocks; b++)
          UNROLL for (int low = 0; low < TERMS; low++) tensor_load(to + low * 16384 + b * 8192, &maps.v, row, low * p.batch * n + y + 64 * b, bar);
''','''        tensor_load(to + L::C, r0 ? &maps.h : &maps.a, 0, (int)task.mat * n + row, task.column / 32, bar);
        UNROLL for (int low = 0; low < TERMS; low++) tensor_load(to + low * 16384, task.single ? &maps.v : &maps.vv, row, low * p.batch * n + y, bar);
''')
sub('''      UNROLL for (int h = 0; h < 2; h++)
        tensor_store(&maps.h, task.column + 32 * h, row, s + stage * L::STAGE + L::C + h * 8192);
''','''      tensor_store(&maps.h, 0, row, task.column / 32, s + stage * L::STAGE + L::C);
''')
i=t.index('// rows x columns as boxes of 64 rows, 128 bytes each; false'); j=t.index('// colmax: column maxima and, behind them',i)
t=t[:i]+'''// rows x columns as boxes of so many rows, 128 bytes each; or of so many blocks of 128 bytes of 64 rows; false where the driver cannot
static bool tensor_map(CUtensorMap &map, const void *at, CUtensorMapDataType type, int bytes, size_t rows, int columns, int box_rows, int blocks = 0) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {
    void *f = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &f, cudaEnableDefault, &found);
#endif
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(f) : nullptr;
  }();
  const cuuint32_t wide = 128u / bytes;
  const cuuint64_t sizes[3] = {blocks ? wide : (cuuint64_t)columns, (cuuint64_t)rows, (cuuint64_t)columns / wide}, strides[2] = {(cuuint64_t)bytes * columns, 128};
  const cuuint32_t box[3] = {wide, (cuuint32_t)box_rows, (cuuint32_t)blocks}, steps[3] = {1, 1, 1};
  return encode && encode(&map, type, blocks ? 3 : 2, const_cast<void *>(at), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                          CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
static bool strip_maps(StripMaps &maps, const float *a, float *h, __half *vt, __half *ts, int n, int batch) {
  const size_t rows = (size_t)batch * n;
  const auto single = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, half = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  return tensor_map(maps.a, a, single, 4, rows, n, 64, 2) && tensor_map(maps.h, h, single, 4, rows, n, 64, 2) &&
         tensor_map(maps.v, vt, half, 2, TERMS * rows, n, 64) && tensor_map(maps.vv, vt, half, 2, TERMS * rows, n, 128) &&
         tensor_map(maps.t, ts, half, 2, sizes(n, batch).tt / 64, 64, 128);
}
'''+t[j:]
