# a pair of panels to 128 columns at once: V once for both warpgroups
i=t.index('struct StripSmem {'); j=t.index('// all with rows of 128 bytes, swizzled: a and h')
t=t[:i]+'''struct StripSmem {
  // V^T in blocks of 64 x 64, its second term, C in blocks of 32 columns (two where there is one panel)
  static constexpr int C = TERMS * 16384, STAGE = C + 32768, DEPTH = TWO ? 3 : 4;
  static constexpr int S = 0, SUMS = STAGE; // between the passes: S^T in two terms, sums
  // T0^T, T1^T in two terms; barriers: a stage is full, is free; T, S have come; a task is there; W' is in registers, so that all stages are
  // free; a task without copies has been done
  static constexpr int T = DEPTH * STAGE, BARS = T + 32768, FREE = BARS + 8 * DEPTH, BAR_T = FREE + 8 * DEPTH, BAR_S = BAR_T + 8,
                       NEXT = BAR_S + 8, READY = NEXT + 8, DONE = READY + 8, BYTES = DONE + 8 + 1024;
};
'''+t[j:]
sub('''      poll(p.applied + mat * (n / 64) + (k.y & 0xffff), k.w);
    }
    if (working)''','''      poll(p.applied + mat * (n / 64) + (k.y & 0xffff), k.w); // (a pair goes to two panels, whose numbers go up together)
    }
    if (working)''')
sub('''  uint32_t used = 0, ready = 0, done = 0; // phases of the barriers
''','''  uint32_t used = 0, ready = 0, done = 0; // phases of the barriers
  int stage = 0;
''')
i=t.index('        const int stage = (v & 1) * L::DEPTH'); j=t.index('      if (pass) break;\n      if (blocks == 2) {',i)
t=t[:i]+'''        const int row = r0 + 64 * (first + (pass ? chunks - 1 - v : v));
        const uint32_t to = s + stage * L::STAGE, bar = s + L::BARS + 8 * stage;
        mbar_wait_cta(s + L::FREE + 8 * stage, ~(used >> stage) & 1);
        used ^= 1u << stage;
        stage = stage + 1 == L::DEPTH ? 0 : stage + 1;
        mbar_expect(bar, blocks * (TERMS * 8192 + 16384));
        ROLL for (int b = 0; b < blocks; b++) {
          UNROLL for (int low = 0; low < TERMS; low++)
            tensor_load(to + low * 16384 + b * 8192, &maps.v, row, low * p.batch * n + y + 64 * b, bar);
          UNROLL for (int h = 0; h < 2; h++)
            tensor_load(to + L::C + b * 16384 + h * 8192, r0 ? &maps.h : &maps.a, task.column + 64 * b + 32 * h, (int)task.mat * n + row, bar);
        }
      }
'''+t[j:]
i=t.index('// K reflectors to 64 columns, rows `part` of `parts`. phase'); j=t.index('  extern __shared__',i)
t=t[:i]+'''// K reflectors, rows `part` of `parts`. One panel: to 64 columns, the warpgroups take turns. A pair: to 128 columns, 64 for each warpgroup.
struct Ring { // next stage; phases of its barriers and of those of T and S, a bit each
  int stage;
  uint32_t phase;
};
template <int K>
__device__ __forceinline__ void warpgroup_strip(const LarfbArgs &p, const StripMaps &maps, const size_t mat, int r0, int cbase, int part, int parts, Ring &ring) {
'''+t[j:]
sub('''  constexpr int KB = K / 64;
  const int tid = threadIdx.x, lane = tid & 31, g = lane >> 2, q = lane & 3, wm = tid >> 5 & 3, wg = tid >> 7, t128 = tid & 127;
  const int n = p.n, all''','''  constexpr int KB = K / 64;
  constexpr bool PAIR = K == 128;
  const int tid = threadIdx.x, lane = tid & 31, g = lane >> 2, q = lane & 3, wm = tid >> 5 & 3, wg = tid >> 7, t128 = tid & 127;
  const int n = p.n, mine = cbase + (PAIR ? 64 * wg : 0), c_mine = L::C + (PAIR ? 16384 * wg : 0), all''')
sub('  const uint32_t *cmax = p.colmax + mat * n + cbase;\n  const uint32_t s = smem_addr(sm), stages = s + wg * L::DEPTH * L::STAGE, bars = s + L::BARS + wg * L::DEPTH * 8;\n','  const uint32_t *cmax = p.colmax + mat * n + mine;\n  const uint32_t s = smem_addr(sm);\n')
sub("even = L::C + (wm >> 1)","even = c_mine + (wm >> 1)"); sub("odd = L::C + (wm >> 1)","odd = c_mine + (wm >> 1)")
i=t.index("  // chunks wg, wg + 2, .. (the last first"); j=t.index("  // ---- pass 1: W^T = C^T V")
t=t[:i]+'''  // all chunks (the last first, if `up`), or every other one: f(chunk, stage, barrier that gives it back). The other warpgroup's chunks are
  // waited for and given back as well: nobody is ever two phases behind.
  auto pass = [&](bool up, auto &&f) {
#pragma unroll 1
    for (int v = 0; v < chunks; v++) {
      const int d = ring.stage;
      const uint32_t free = s + L::FREE + 8 * d;
      mbar_wait_cta(s + L::BARS + 8 * d, ring.phase >> d & 1);
      ring.phase ^= 1u << d;
      ring.stage = d + 1 == L::DEPTH ? 0 : d + 1;
      if (PAIR || (v & 1) == wg) f(up ? chunks - 1 - v : v, s + d * L::STAGE, free);
      else {
        __syncwarp();
        if (lane == 0) mbar_arrive(free);
      }
    }
  };

'''+t[j:]
i=t.index('  { // each warpgroup adds up half of W: first'); j=t.index("  // ---- -W'^T by blocks of 64")
t=t[:i]+'''  constexpr int H = PAIR ? 8 * KB : 4 * KB; // float4 of W that this thread adds up over the parts
  float4 half[H], *buf = (float4 *)(sm + L::SUMS);
  auto piece = [&](int i) {
    const float *x = &w[i >> 3][(i & 7) * 4];
    return make_float4(x[0], x[1], x[2], x[3]);
  };
  auto set_piece = [&](int i, float4 x) {
    float *to = &w[i >> 3][(i & 7) * 4];
    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
  };
  if (!PAIR) { // each warpgroup adds up half of W
    UNROLL for (int i = 0; i < 2 * H; i++)
      if (i / H != wg) buf[i * 128 + t128] = piece(i);
    block_sync<256>();
    UNROLL for (int i = 0; i < H; i++) {
      const float4 x = wg ? piece(H + i) : piece(i), y = buf[(wg * H + i) * 128 + t128];
      half[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
  }
  if (parts > 1) {
    const int gang = ((int)mat - p.mat0) * (n / 64) + mine / 64; // what updates these columns next waits until this has ended
    float4 *to = p.partial + (size_t)gang * (MOST_PARTS * 2048) + (PAIR ? 0 : wg * H * 128) + t128;
    UNROLL for (int i = 0; i < H; i++) to[part * 2048 + i * 128] = PAIR ? piece(i) : half[i];
    __threadfence();
    block_sync<256>();
    if (tid == 0) {
      add_release(p.joined + gang_of(p, mat, r0, cbase, K == 64), 1);
      poll(p.joined + gang_of(p, mat, r0, cbase, K == 64), parts);
    }
    block_sync<256>();
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
    if (PAIR)
      UNROLL for (int i = 0; i < H; i++) set_piece(i, half[i]);
  }
  if (!PAIR) {
    UNROLL for (int i = 0; i < H; i++) buf[(2 * H + wg * H + i) * 128 + t128] = half[i];
    block_sync<256>();
    UNROLL for (int i = 0; i < 2 * H; i++) set_piece(i, buf[(2 * H + i) * 128 + t128]);
  }
'''+t[j:]
t=t.replace('mbar_wait_cta(s + L::BAR_T, phase >> 7 & 1);\n  phase ^= 128;','mbar_wait_cta(s + L::BAR_T, ring.phase >> 7 & 1);\n  ring.phase ^= 128;').replace('mbar_wait_cta(s + L::BAR_S, phase >> 6 & 1);\n    phase ^= 64;','mbar_wait_cta(s + L::BAR_S, ring.phase >> 6 & 1);\n    ring.phase ^= 64;')
sub('''tensor_store(&maps.h, cbase + 32 * h, (int)mat * n + row0 + 64 * t, stage + L::C + h * 8192);''','''tensor_store(&maps.h, mine + 32 * h, (int)mat * n + row0 + 64 * t, stage + c_mine + h * 8192);''')
sub('''    for (int i = 0; i < 2 * StripSmem::DEPTH; i++) {
      mbar_init(s + StripSmem::BARS + 8 * i);
      mbar_init(s + StripSmem::FREE + 8 * i, 4); // the warps of a warpgroup
''','''    for (int i = 0; i < StripSmem::DEPTH; i++) {
      mbar_init(s + StripSmem::BARS + 8 * i);
      mbar_init(s + StripSmem::FREE + 8 * i, 8); // all warps
''')
sub('  uint32_t phase = 0;\n  if (tid >= 256) {','  Ring ring = {0, 0};\n  if (tid >= 256) {')
t=t.replace('task.part, task.parts, phase);','task.part, task.parts, ring);')
i=t.index('        int *applied = p.applied + task.mat'); j=t.index('      }\n    }\n  asm volatile("griddepcontrol.wait;"',i)
t=t[:i]+'''        int *made = task.coupling ? p.coupled + task.mat * (p.n / 128) + task.top / 128 : p.applied + task.mat * (p.n / 64) + task.panel;
        if (task.parts == 1 || atomicAdd(p.joined + gang_of(p, task.mat, task.top, task.column, task.single), 1) == 2 * task.parts - 1) {
          add_release(made, 1);
          if (!task.coupling && !task.single) add_release(made + 1, 1); // 128 columns
        }
'''+t[j:]
# the schedule
sub('''          else if (u < far && 2 * i + 1 < due''','''          else if (u < far && !(i & 1) && 2 * i + 1 < due''')
sub('''  struct Running {
    int mat, c, updates;
    float end;
  };''','''  struct Running {
    int mat, c, panels; // whose columns have got one more task
    float end;
  };''')
sub('auto place = [&](int mat, int c, int updates, float bytes) { running.push_back({mat, c, updates, now','auto place = [&](int mat, int c, int panels, float bytes) { running.push_back({mat, c, panels, now')
sub('running.push_back({mat, panel, -1, now + n * 64 / MAXIMA_RATE});','running.push_back({mat, panel, 2, now + n * 64 / MAXIMA_RATE});')
sub('''      const int before = x.claimed[c]++, u = before - MAXIMA,''','''      if (!near) x.claimed[c + 1]++;
      const int before = x.claimed[c]++, u = before - MAXIMA,''')
sub('''place(mat, c, part == parts - 1, (n - 64.f * top) * (TERMS * (near ? 256 : 512) + 768) / parts);''','''place(mat, c, part < parts - 1 ? 0 : near ? 1 : 2, (n - 64.f * top) * (near ? TERMS * 256 + 768 : TERMS * 512 + 1536) / parts);''')
sub('''        std::vector<int> &applied = ms[running[i].mat].applied;
        if (running[i].updates < 0) { // maxima of two panels' columns
          applied[running[i].c]++;
          applied[running[i].c + 1]++;
        } else applied[running[i].c] += running[i].updates;
''','''        for (int c = 0; c < running[i].panels; c++) ms[running[i].mat].applied[running[i].c + c]++;
''')
sub('c >= late)','c >= late)') if False else None
