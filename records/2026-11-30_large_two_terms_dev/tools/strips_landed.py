TWO_STRIP = r'''
// ---------------------------------------------------------------- 5b. the same on Hopper's warpgroup products, in one term or two
// W^T = C^T V, W'^T = W^T T, C^T -= W'^T V^T: the left operands come from registers (C is split into two terms on its way from shared
// memory, W' stays there all pass long), the right ones, V^T and T^T, from shared memory as they were copied: rows of 64 numbers, 128
// bytes, whose 16-byte units are permuted by the row mod 8. A warpgroup takes every other chunk of 64 rows, all 64 columns: its warps hold
// 16 of them, number 2g and 2g + 1 of these as rows g and g + 8 of a product.
// The copies are the tensor copy engine's (cp.async, LDS and STS wait for each other in one queue): a warpgroup has stages of its own, which
// one of its threads fills again as soon as the warpgroup is done with what was there.
struct StripSmem {
  static constexpr int C = TERMS * 16384, STAGE = C + 16384; // V^T in blocks of 64 x 64, its second term, C as two blocks of 32 columns
  static constexpr int DEPTH = TWO ? 2 : 3;                  // stages of a warpgroup
  static constexpr int S = 0, SUMS = 16384;                  // between the passes: S^T in two terms, sums
  static constexpr int T = 2 * DEPTH * STAGE, BARS = T + 32768, BAR_T = BARS + 16 * DEPTH, BAR_S = BAR_T + 8, COUNT = 2 * DEPTH + 2; // T0^T, T1^T in two terms
  static constexpr int BYTES = BARS + 64 + 1024;
};
// all with rows of 128 bytes, swizzled: a and h in boxes of 64 x 32, V^T (and behind it the second terms), T^T and S^T in boxes of 64 x 64
struct StripMaps {
  CUtensorMap a, h, v, t;
};
__device__ __forceinline__ char *strip_base(char *sm) { return sm + (-smem_addr(sm) & 1023); }
__device__ __forceinline__ void tensor_load(uint32_t to, const CUtensorMap *map, int x, int y, uint32_t bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0],[%1,{%2,%3}],[%4];" ::"r"(to), "l"(map),
               "r"(x), "r"(y), "r"(bar)
               : "memory");
}
__device__ __forceinline__ void mbar_wait_cta(uint32_t b, uint32_t phase) {
  uint32_t ok;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p,[%1],%2;\nselp.u32 %0,1,0,p;\n}" : "=r"(ok) : "r"(b), "r"(phase) : "memory");
  } while (!ok);
}
__device__ __forceinline__ void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); } // for copies and products
__device__ __forceinline__ void fence_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
__device__ __forceinline__ void warpgroup_sync(int wg) { asm volatile("bar.sync %0,128;" ::"r"(1 + wg) : "memory"); }
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__device__ __forceinline__ void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wg_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
// d (64 x 64) += A (64 x 16, a warp 16 rows) B (16 x 64); B at `at`: rows of 128 bytes along its columns, if ALONG_K, or along its rows
template <bool ALONG_K> __device__ __forceinline__ void wgmma(float (&d)[32], const uint32_t (&a)[4], uint32_t at) {
  const uint64_t b = (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | 1ull << 62;
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},{%"
               "32,%33,%34,%35},%36,1,1,1,%37;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
                 "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
                 "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
                 "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ALONG_K ? 0 : 1));
}
#else // the same tile by tile
__device__ __forceinline__ void wg_fence() {}
__device__ __forceinline__ void wg_commit() {}
__device__ __forceinline__ void wg_wait() {}
template <bool ALONG_K> __device__ __forceinline__ void wgmma(float (&d)[32], const uint32_t (&a)[4], uint32_t at) {
  const int lane = threadIdx.x & 31;
  UNROLL for (int nt = 0; nt < 8; nt += 2) {
    uint32_t b[4], x = at + (ALONG_K ? (nt * 8 + (lane & 7) + (lane >> 4) * 8) * 128 + (lane >> 3 & 1) * 16 : (lane & 15) * 128 + (nt + (lane >> 4)) * 16);
    x ^= x >> 3 & 112;
    if (ALONG_K) ldsm4(b, x);
    else ldsm4t(b, x);
    mma(*(float(*)[4]) & d[4 * nt], a, b[0], b[1]);
    mma(*(float(*)[4]) & d[4 * nt + 4], a, b[2], b[3]);
  }
}
#endif
// d += A B, 64 deep; two terms of A, of B
template <bool ALONG_K, bool TWO_A, bool TWO_B> __device__ __forceinline__ void multiply(float (&d)[32], const uint32_t (&high)[4][4], const uint32_t (&low)[4][4], uint32_t b, uint32_t b_low) {
  UNROLL for (int ks = 0; ks < 4; ks++) {
    const uint32_t at = ks * (ALONG_K ? 32 : 2048);
    wgmma<ALONG_K>(d, high[ks], b + at);
    if (TWO_A) wgmma<ALONG_K>(d, low[ks], b + at);
    if (TWO_B) wgmma<ALONG_K>(d, high[ks], b_low + at);
  }
}
// a product as the left operand of the next
__device__ __forceinline__ void as_operand(const float (&d)[32], float sign, uint32_t (&high)[4][4], uint32_t (&low)[4][4]) {
  UNROLL for (int ks = 0; ks < 4; ks++)
    UNROLL for (int i = 0; i < 4; i++) split(sign * d[8 * ks + 2 * i], sign * d[8 * ks + 2 * i + 1], high[ks][i], low[ks][i]);
}
// K reflectors to 64 columns, rows `part` of `parts`. phase: of the barriers of this warpgroup's stages, a bit each
template <int K>
__device__ __forceinline__ void warpgroup_strip(const LarfbArgs &p, const StripMaps &maps, const size_t mat, int r0, int cbase, int part, int parts,
                                                uint32_t &phase) {
  extern __shared__ __align__(128) char sm_raw[];
  using L = StripSmem;
  char *sm = strip_base(sm_raw);
  constexpr int KB = K / 64;
  const int tid = threadIdx.x, lane = tid & 31, g = lane >> 2, q = lane & 3, wm = tid >> 5 & 3, wg = tid >> 7, t128 = tid & 127;
  const int n = p.n, all = (n - r0) / 64, first = all * part / parts, chunks = all * (part + 1) / parts - first;
  const int row0 = r0 + 64 * first;
  float *dst = p.h + mat * n * n + (size_t)row0 * n + cbase;
  const uint32_t *cmax = p.colmax + mat * n + cbase;
  const uint32_t s = smem_addr(sm), stages = s + wg * L::DEPTH * L::STAGE, bars = s + L::BARS + wg * L::DEPTH * 8;
  const int column = wm * 16 + 2 * g; // and the next
  const float sc0 = column_scale(__ldcg(cmax + column)), sc1 = column_scale(__ldcg(cmax + column + 1));
  auto load = [&](int t, int d) { // chunk t to stage d
    const uint32_t to = stages + d * L::STAGE, bar = bars + 8 * d;
    const int row = row0 + 64 * t, y = (int)mat * n + r0;
    mbar_expect(bar, TERMS * KB * 8192 + 16384);
    UNROLL for (int b = 0; b < KB; b++)
      UNROLL for (int low = 0; low < TERMS; low++)
        tensor_load(to + low * 16384 + b * 8192, &maps.v, row, low * p.batch * n + y + 64 * b, bar);
    UNROLL for (int h = 0; h < 2; h++) tensor_load(to + L::C + h * 8192, r0 ? &maps.h : &maps.a, cbase + 32 * h, (int)mat * n + row, bar);
  };
  // this thread's two columns of C in a stage, rows 2q and 2q + 1
  const int unit = ((wm & 1) * 4 + (g >> 1)) ^ (2 * q), even = L::C + (wm >> 1) * 8192 + 2 * q * 128 + unit * 16 + (g & 1) * 8,
            odd = L::C + (wm >> 1) * 8192 + (2 * q + 1) * 128 + (unit ^ 1) * 16 + (g & 1) * 8;
  // chunks wg, wg + 2, .. of this CTA's (the last first, if `up`); f(t, stage)
  auto pass = [&](bool up, auto &&f) {
    if (t128 == 0)
      UNROLL for (int d = 0; d < L::DEPTH; d++)
        if (const int v = wg + 2 * d; v < chunks) load(up ? chunks - 1 - v : v, d);
    int d = 0;
#pragma unroll 1
    for (int v = wg; v < chunks; v += 2) {
      mbar_wait_cta(bars + 8 * d, phase >> d & 1);
      phase ^= 1u << d;
      f(up ? chunks - 1 - v : v, stages + d * L::STAGE, [&] { // called when nobody reads the stage any more
        warpgroup_sync(wg);
        if (const int next = v + 2 * L::DEPTH; t128 == 0 && next < chunks) load(up ? chunks - 1 - next : next, d);
      });
      d = d + 1 == L::DEPTH ? 0 : d + 1;
    }
  };
  auto load_t = [&](uint32_t to, const __half *from, int blocks, uint32_t bar) { // blocks of T^T or S^T in two terms
    mbar_expect(bar, blocks * 16384);
    ROLL for (int i = 0; i < 2 * blocks; i++) tensor_load(to + i * 8192, &maps.t, 0, (int)((from - p.ts) / 64) + 64 * i, bar);
  };
  fence_global(); // what others stored to V^T, T^T and H, for the copies
  if (tid == 0) load_t(s + L::T, p.ts + (mat * (n / 64) + r0 / 64) * TS, KB, s + L::BAR_T);

  // ---- pass 1: W^T = C^T V
  float w[KB][32];
  UNROLL for (int b = 0; b < KB; b++)
    UNROLL for (int e = 0; e < 32; e++) w[b][e] = 0.f;
  pass(false, [&](int, uint32_t stage, auto &&done) {
    const char *c = sm + (stage - s);
    uint32_t high[4][4], low[4][4];
    UNROLL for (int ks = 0; ks < 4; ks++)
      UNROLL for (int h = 0; h < 2; h++) {
        const float2 x = *(const float2 *)(c + even + (ks * 16 + 8 * h) * 128), y = *(const float2 *)(c + odd + (ks * 16 + 8 * h) * 128);
        split(x.x * sc0, y.x * sc0, high[ks][2 * h], low[ks][2 * h]);
        split(x.y * sc1, y.y * sc1, high[ks][2 * h + 1], low[ks][2 * h + 1]);
      }
    wg_fence();
    UNROLL for (int b = 0; b < KB; b++) multiply<true, TWO, TWO>(w[b], high, low, stage + b * 8192, stage + b * 8192 + 16384);
    wg_commit();
    wg_wait();
    done();
  });
  __syncthreads();
  if (K == 128 && tid == 0) {
    poll(p.coupled + mat * (n / 128) + r0 / 128, 1);
    fence_global();
    load_t(s + L::S, pair_s(p, mat, r0 / 128), 1, s + L::BAR_S);
  }
  { // each warpgroup adds up half of W: first the other's part, then those of the other CTAs
    constexpr int H = KB * 4;
    float4 *buf = (float4 *)(sm + L::SUMS), half[H];
    auto piece = [&](int i) {
      const float *x = &w[i >> 3][(i & 7) * 4];
      return make_float4(x[0], x[1], x[2], x[3]);
    };
    UNROLL for (int i = 0; i < 2 * H; i++)
      if (i / H != wg) buf[i * 128 + t128] = piece(i);
    __syncthreads();
    UNROLL for (int i = 0; i < H; i++) {
      const float4 x = wg ? piece(H + i) : piece(i), y = buf[(wg * H + i) * 128 + t128];
      half[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
    if (parts > 1) {
      const int gang = ((int)mat - p.mat0) * (n / 64) + cbase / 64; // what updates these columns next waits until this has ended
      float4 *to = p.partial + (size_t)gang * (MOST_PARTS * 2048) + wg * H * 128 + t128;
      UNROLL for (int i = 0; i < H; i++) to[part * 2048 + i * 128] = half[i];
      __threadfence();
      __syncthreads();
      if (tid == 0) {
        add_release(p.joined + gang_of(p, mat, r0, cbase, K), 1);
        poll(p.joined + gang_of(p, mat, r0, cbase, K), parts);
      }
      __syncthreads();
      UNROLL for (int i = 0; i < H; i++) half[i] = make_float4(0, 0, 0, 0);
#pragma unroll 2
      for (int u = 0; u < parts; u++) // in the same order in each of them
        UNROLL for (int i = 0; i < H; i++) {
          const float4 x = __ldcg(to + u * 2048 + i * 128);
          half[i].x += x.x;
          half[i].y += x.y;
          half[i].z += x.z;
          half[i].w += x.w;
        }
    }
    UNROLL for (int i = 0; i < H; i++) buf[(2 * H + wg * H + i) * 128 + t128] = half[i];
    __syncthreads();
    UNROLL for (int i = 0; i < 2 * H; i++) {
      const float4 x = buf[(2 * H + i) * 128 + t128];
      float *to = &w[i >> 3][(i & 7) * 4];
      to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
    }
  }
  // ---- -W'^T by blocks of 64: W0' = T0'W0, W1' = T1'(W1 - S'W0')
  uint32_t high[KB][4][4], low[KB][4][4];
  auto times_t = [&](int b) {
    float d[32];
    UNROLL for (int e = 0; e < 32; e++) d[e] = 0.f;
    as_operand(w[b], 1.f, high[b], low[b]);
    wg_fence();
    multiply<true, TWO, true>(d, high[b], low[b], s + L::T + b * 16384, s + L::T + b * 16384 + 8192);
    wg_commit();
    wg_wait();
    as_operand(d, -1.f, high[b], low[b]);
  };
  mbar_wait_cta(s + L::BAR_T, phase >> 7 & 1);
  phase ^= 128;
  times_t(0);
  if constexpr (K == 128) {
    mbar_wait_cta(s + L::BAR_S, phase >> 6 & 1);
    phase ^= 64;
    wg_fence();
    multiply<true, TWO, true>(w[1], high[0], low[0], s + L::S, s + L::S + 8192);
    wg_commit();
    wg_wait();
    times_t(1);
  }
  fence_shared();
  __syncthreads();

  // ---- pass 2: C^T += (-W'^T) V^T, from the last rows up
  const float us0 = column_unscale(__ldcg(cmax + column)), us1 = column_unscale(__ldcg(cmax + column + 1));
  pass(true, [&](int t, uint32_t stage, auto &&done) {
    float d[32];
    UNROLL for (int e = 0; e < 32; e++) d[e] = 0.f;
    wg_fence();
    UNROLL for (int b = 0; b < KB; b++) multiply<false, TWO, TWO>(d, high[b], low[b], stage + b * 8192, stage + b * 8192 + 16384);
    wg_commit();
    const char *c = sm + (stage - s);
    float2 x[8][2];
    UNROLL for (int nt = 0; nt < 8; nt++) {
      x[nt][0] = *(const float2 *)(c + even + nt * 1024);
      x[nt][1] = *(const float2 *)(c + odd + nt * 1024);
    }
    wg_wait();
    done();
    float *to = dst + (size_t)(t * 64 + 2 * q) * n + column;
    UNROLL for (int nt = 0; nt < 8; nt++)
      UNROLL for (int e = 0; e < 2; e++)
        *(float2 *)(to + (size_t)(nt * 8 + e) * n) = make_float2(fmaf(us0, d[4 * nt + e], x[nt][e].x), fmaf(us1, d[4 * nt + 2 + e], x[nt][e].y));
  });
}
'''

def strips(one):
    i = one.index("// S^T = V1'V0 of the pair of panels")
    text, coupling = one[:i], one[i:]
    def s(old, new):
        nonlocal coupling
        assert coupling.count(old) == 1, old
        coupling = coupling.replace(old, new)
    s('''        cp16(sV + t % 4 * 16384 + r * 128 + ((u ^ (r & 7)) << 4), vt + (size_t)r * n + t * 64 + u * 8);
''', '''        cp16(sV + t % 4 * 16384 + r * 128 + ((u ^ (r & 7)) << 4), vt + (size_t)r * n + t * 64 + u * 8);
        if (TWO) cp16(sV + 65536 + t % 4 * 16384 + r * 128 + ((u ^ (r & 7)) << 4), vt + p.low + (size_t)r * n + t * 64 + u * 8);
''')
    s('''      uint32_t a[4];
      {
        int r = 64''', '''      uint32_t a[4], al[4];
      {
        int r = 64''')
    s('''        ldsm4(a, v + r * 128 + ((u ^ (r & 7)) << 4));
''', '''        ldsm4(a, v + r * 128 + ((u ^ (r & 7)) << 4));
        if (TWO) ldsm4(al, v + 65536 + r * 128 + ((u ^ (r & 7)) << 4));
''')
    s('''        uint32_t b[4];
''', '''        uint32_t b[4], bl[4];
''')
    s('''        ldsm4(b, v + r * 128 + ((u ^ (r & 7)) << 4));
''', '''        ldsm4(b, v + r * 128 + ((u ^ (r & 7)) << 4));
        if (TWO) {
          ldsm4(bl, v + 65536 + r * 128 + ((u ^ (r & 7)) << 4));
          mma(st[nt], al, b[0], b[1]);
          mma(st[nt + 1], al, b[2], b[3]);
          mma(st[nt], a, bl[0], bl[1]);
          mma(st[nt + 1], a, bl[2], bl[3]);
        }
''')
    return text + coupling + TWO_STRIP.lstrip('\n')
