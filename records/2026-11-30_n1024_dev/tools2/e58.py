import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
i=s.index("  // the next panel's entries, over both stages: rows 4q .. 4q+3"); j=s.index("  static constexpr int O_INBOX = 2 * STAGE + 128;\n")
s=s[:i]+"""  // the next panel's entries, over both stages: [pair of 16-row pieces][half of the columns] as tensor copies lay them
  static constexpr int COPY = G * 16 * SUB * 4;
  static_assert(2 * CHUNKS * COPY == STAGE, "half of the pieces fill a stage");
"""+s[j:]
rep("  static constexpr int O_INBOX = 2 * STAGE + 128;\n","  static constexpr int O_INBOX = 2 * STAGE;\n")
i=s.index("// Half of the next panel (rows 4q.. of every 16,"); j=s.index("template <class K>\nDEVICE void load_t(")
s=s[:i]+"""// Half of the next panel into a stage: eight copies of 32 columns of this CTA's rows in one 16-row place of all
// warpgroups, from a warp each. The order of rows and the swizzle are those of panel_map: rows with bits
// [piece][x1][q][x0] for row 4q + 2 x1 + x0, so that the lanes' reads do not collide. The caller arrives on A_BAR once
// all have been issued.
template <class K>
DEVICE void load_panel(const Args& p, const CUtensorMap& map, uint32_t base, int stage, int top, uint32_t rank, int thread) {
  const uint32_t bar = barrier_at<K>(base, A_BAR);
  if (thread % 32 == 0 && thread < 256) {
    const int half = thread >> 5 & 1, pair = K::CHUNKS * stage + (thread >> 6);
    barrier_expect_more(bar, K::COPY);
    panel_copy(base + (pair * 2 + half) * K::COPY, map, top + SUB * half, (opaque(blockIdx.x) / K::C * (2 * K::CHUNKS) + pair) * K::UNITS + rank * K::G, bar);
  }
}
"""+s[j:]
rep("  int n, ld;\n","  int n, ld, staged;  // staged: panels come by load_panel\n")
i=s.index("  const bool staged = n == K::ROWS &&"); j=s.index("\n",i)
s=s[:i]+"  const bool staged = p.staged;"+s[j:]
rep("    load_panel<K>(p, base_address, 2, 0, rank, me.thread);\n    load_panel<K>(p, base_address, 0, 0, rank, me.thread);","    load_panel<K>(p, map, base_address, 1, 0, rank, me.thread);\n    load_panel<K>(p, map, base_address, 0, 0, rank, me.thread);")
rep("load_panel<K>(p, base_address, 2, top + PANEL,","load_panel<K>(p, map, base_address, 1, top + PANEL,")
rep("load_panel<K>(p, base_address, 0, top + PANEL,","load_panel<K>(p, map, base_address, 0, top + PANEL,")
rep("geqrf_kernel(const __grid_constant__ Args p) {","geqrf_kernel(const __grid_constant__ Args p, const __grid_constant__ CUtensorMap map) {")
i=s.index("        const float* from = reinterpret_cast<const float*>(sm + opaque(me.q * K::QUARTER"); j=s.index("      } else {\n        const int unit_",i)
s=s[:i]+"""        const int core = (2 * me.cg + (me.g >> 2)) ^ (2 * me.q);  // of 16 bytes, swizzled by the row's last three bits
        const unsigned char* even = sm + opaque(me.group * 2048 + me.q * 256 + core * 16 + (me.g & 3) * 4);
        const unsigned char* odd = sm + opaque(me.group * 2048 + me.q * 256 + 128 + (core ^ 1) * 16 + (me.g & 3) * 4);
#pragma unroll
        for (int pair = 0; pair < 2 * K::CHUNKS; pair++) {
#pragma unroll
          for (int r = 0; r < 4; r++) {
            const int i = (pair & 1) * 8 + (r >> 1) * 4 + (r & 1);
            const unsigned char* from = (r & 1 ? odd : even) + pair * 2 * K::COPY + (r >> 1) * 1024;
            acc[pair >> 1][i] = *reinterpret_cast<const float*>(from);
            acc[pair >> 1][i + 2] = *reinterpret_cast<const float*>(from + K::COPY);
          }
        }
"""+s[j:]
i=s.index("        else if (me.warp >= 4 && s == 0 && done == 0 && k + 1 < panels) {"); j=s.index("#pragma unroll 1\n",i)
s=s[:i]+"""        else if (me.warp >= 4 && s == 0 && done == 0 && k + 1 < panels) {  // the next panel's rows of this CTA into L2
          if (staged) {
            if (me.lane == 0) {
#pragma unroll 1
              for (int i = me.warp - 4; i < 4 * K::CHUNKS; i += 4 * K::G - 4)
                panel_prefetch(map, top + PANEL + SUB * (i & 1), (opaque(blockIdx.x) / K::C * (2 * K::CHUNKS) + (i >> 1)) * K::UNITS + rank * K::G);
            }
          } else
"""+s[j:]
open(dst,'w').write(s)
h=open('hw.cuh').read()
if 'panel_copy' not in h:
    h=h.replace("#include <cuda_runtime.h>\n","#include <cuda.h>\n#include <cuda_runtime.h>\n",1)
    i=h.index("DEVICE void bulk_store(")
    h=h[:i]+'''// 32 columns from `column` on of the rows that panel_map arranges, from 16-row piece `piece` on
DEVICE void panel_copy(uint32_t to, const CUtensorMap& map, int column, int piece, uint32_t bar) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3,%3,%3,%4}],[%5];" ::"r"(to),
               "l"(&map), "r"(column), "r"(0), "r"(piece), "r"(bar) : "memory");
}
DEVICE void panel_prefetch(const CUtensorMap& map, int column, int piece) {
  asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0,{%1,%2,%2,%2,%3}];" ::"l"(&map), "r"(column), "r"(0), "r"(piece) : "memory");
}
'''+h[i:]
    open('hw.cuh','w').write(h)
e=open('emu.h').read()
if 'panel_copy' not in e:
    e=e.replace("struct Dim{ int x; };","struct CUtensorMap{ const float* a; int n,units; }; struct Dim{ int x; };")
    i=e.index("static void bulk_store(")
    e=e[:i]+'''static void panel_copy(uint32_t to,const CUtensorMap& m,int column,int piece,uint32_t bar){ unsigned char* d=clu->cta[to>>24].sm.data(); uint32_t at=to&0xffffff; if(at%1024){ printf("panel_copy misaligned\\n"); exit(1);} for(int u=0;u<m.units;u++) for(int x1=0;x1<2;x1++) for(int q=0;q<4;q++) for(int x0=0;x0<2;x0++) for(int c=0;c<8;c++){ int i=((u*2+x1)*4+q)*2+x0; size_t row=(size_t)(piece+u)*16+4*q+2*x1+x0; memcpy(d+at+i*128+((c^(i&7))*16),m.a+row*m.n+column+4*c,16); } complete(bar,m.units*2048); }
static void panel_prefetch(const CUtensorMap&,int,int){}
'''+e[i:]
    open('emu.h','w').write(e)
m=open('emu_main.cpp').read()
if 'g_map' not in m:
    m=m.replace("static Args g_args;","static Args g_args; static CUtensorMap g_map;").replace("geqrf_kernel<K>(g_args);","geqrf_kernel<K>(g_args, g_map);").replace("t.data(),n,ld};","t.data(),n,ld,n==K::ROWS}; g_map={a,n,K::G};")
    open('emu_main.cpp','w').write(m)
l=open('launch.cuh').read()
if 'panel_map' not in l:
    l='''// The batch as a tensor of five dimensions, column | row bits x0 | q | x1 | piece of 16 rows (row 4q + 2 x1 + x0 of it), of
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

'''+l.replace("static int run(const Args& args, int batch) {","static int run(Args args, int batch) {\n  CUtensorMap map{};\n  args.staged = args.n == K::ROWS && panel_map(map, args.a, args.n, batch, K::G);").replace("return cudaLaunchKernelEx(&config, geqrf_kernel<K>, args);","return cudaLaunchKernelEx(&config, geqrf_kernel<K>, args, map);")
    open('launch_map.cuh','w').write(l)
