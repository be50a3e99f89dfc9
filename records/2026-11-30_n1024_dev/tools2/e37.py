s=open('body36.cuh').read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
i=s.index("      // T = [T1, -T1 S12 T2; 0, T2] of the last block, while"); j=s.index("      const int* all_max = reinterpret_cast")
s=s[:i]+"""      // T = [T1, -T1 S12 T2; 0, T2] of the last block, while the loads and then the columns' largest entries are under
      // way; pw holds [V1'V2; V2'V2]
      float *t1 = pwp, *t2 = pwp + SUB * LD_SHIFT, *t12 = z.r1, *y = z.w;
      if (k > 0 && me.thread < 128) {
        const int half = me.warp >> 1;
        form_t_32(half ? t2 : t1, half ? pw + SUB * LD_SHIFT : s1, tau + SUB * half, half ? t12 : y, me.thread & 63, 1 + half);
      }
MARK(21);
      __syncthreads();
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float biggest = 0.f;
#pragma unroll
        for (int c = 0; c < K::CHUNKS; c++) {
#pragma unroll
          for (int i = 0; i < 16; i++)
            if ((i >> 1 & 1) == half) biggest = fmaxf(biggest, fabsf(acc[c][i]));
        }
        biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, 1));
        biggest = fmaxf(biggest, __shfl_xor_sync(ALL, biggest, 2));
        if (me.q == 0) atomicMax(&column_max[me.cg * 8 + me.g + SUB * half], __float_as_int(biggest));
      }
      __syncthreads();
      cluster_wait();
      if (me.thread == 0) barrier_expect(barrier_at<K>(base_address, PANEL_BAR), K::C * 256);
      if (me.thread < PANEL) {
        const uint32_t at = base_address + K::O_TOP + 256 + (rank * PANEL + me.thread) * 4;
#pragma unroll
        for (int r = 0; r < K::C; r++) send(map_address(at, r), column_max[me.thread], map_address(barrier_at<K>(base_address, PANEL_BAR), r));
      }
      if (k > 0) {
        if (me.thread >= K::THREADS - 256) small_product<SUB>(y, pw, t2, 1.f, me.thread - (K::THREADS - 256));
        __syncthreads();
        if (me.thread < 256) small_product<SUB>(t12, t1, y, -1.f, me.thread);
        __syncthreads();
        float2* t_to = t_block(p, opaque(blockIdx.x), k - 1) + me.lane;
#pragma unroll 1
        for (int tile = me.warp; tile < 64; tile += 4 * K::G) {
          const int gt = tile >> 3, ct = tile & 7;
          if (ct <= gt) {
            const int i = (ct & 3) * 8 + 2 * me.q, j = (gt & 3) * 8 + me.g;
            const float* from = (ct < 4 ? (gt < 4 ? t1 : t12) : t2) + i * LD_SHIFT + j;
            t_to[t_tile(ct, gt)] = make_float2(from[0], from[LD_SHIFT]);
          }
        }
        fence_async();
      }
      wait_for<K>(base_address, PANEL_BAR, phase);
"""+s[j:]
# after the scale: __syncthreads; cluster_arrive -> load T there
i=s.index("acc[c][i] *= scale;"); j=s.index("      __syncthreads();\n",i)
s=s[:j]+"""      __syncthreads();
      if (k > 0 && me.thread == 0) {
        bulk_store_wait();
        load_t<K>(p, base_address, 0);
      }
"""+s[j+len("      __syncthreads();\n"):]
open('body37.cuh','w').write(s)
