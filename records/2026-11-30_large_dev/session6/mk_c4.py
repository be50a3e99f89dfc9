sub('''__device__ __forceinline__ void cp16(uint32_t dst''','''__device__ __forceinline__ void cp4(uint32_t dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp16(uint32_t dst''')
sub('''  if (tid < 64) {
    uint32_t b = __ldcg(p.colmax + mat * n + c0 + tid);
    sScale[tid] = column_scale(b);
    sUnscale[tid] = column_unscale(b);
  }
  auto row_of''','''  auto row_of''')
sub('''  auto load_c = [&](const float *from, int rows) { // RP rows of 64 columns, zeros from `rows` on
''','''  const uint32_t *maxima = (uint32_t *)sScale;
  auto load_c = [&](const float *from, int rows, int column) { // RP rows of 64 columns, zeros from `rows` on; their maxima
    if (tid < 64) cp4(smem_addr(maxima + tid), p.colmax + mat * n + column + tid);
''')
sub('if (!loaded) load_c(src, m);','if (!loaded) load_c(src, m, c0);')
sub('      const float sc = sScale[col];\n      UNROLL for (int nt = 0; nt < NTL; nt++)\n        UNROLL for (int e = 0; e < 2; e++)\n          acc[mt]','      const float sc = column_scale(maxima[col]);\n      UNROLL for (int nt = 0; nt < NTL; nt++)\n        UNROLL for (int e = 0; e < 2; e++)\n          acc[mt]')
i=t.index('          acc[mt][nt][2 * h2 + e] = ((float *)(sm + P::CIN))'); j=t.index('  block_sync<NT>();\n',i); t=t[:j]+'  if (tid < 64) sUnscale[tid] = column_unscale(maxima[tid]);\n'+t[j:]
t=t.replace('(size_t)c0 * n + c0 + 64, n - c0);','(size_t)c0 * n + c0 + 64, n - c0, c0 + 64);')
