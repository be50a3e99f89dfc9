s=open('/tmp/large4/v102.cu').read()
def R(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a); s=s.replace(a,b)
R('''  const int4 *tasks;
  int *counter; // next task; next piece of the column maxima, pieces that are done
''','''  int *counter; // tasks asked for; next piece of the column maxima, pieces that are done; -; the tasks given out
''')
R("int n, batch, mat0, task_end, maxima_units, ctas; // CTAs of a cluster: each reports a panel","int n, batch, mat0, matrices, maxima_units, ctas; // CTAs of a cluster: each reports a panel")
i=s.index("// A task: x = matrix | half << 16"); j=s.index("__global__ void __launch_bounds__(256, 2) larfb(")
s=s[:i]+r'''// ---------------------------------------------------------------- 6. order of work
// Panels of 64 columns, numbered k; panels 2i and 2i+1 are pair i. Before geqr2 makes panel c, its columns must have got, one after the other,
//   far   the pairs 0 .. c/2 - 2                                     (128 reflectors each, 64 columns at once or, where it is urgent, 32)
//   near  panel c-2 (c even) or pair (c-3)/2 (c odd), two halves     (panel c-1 is applied by geqr2 itself)
// Two kernels run side by side for the whole factorization: geqr2 (one cluster a matrix) makes the panels, larfb's workers fill the other
// SMs, one or two on each. They tell each other by counters in memory what is done, so an update may take longer than the panel beside it,
// and no launch lies between panels. One warp of larfb gives out the tasks: a worker asks by a ticket and reads its task from the slot of
// that number; the warp looks at the counters and gives out what is ready, earliest due column first. What a task waits for while it runs
// (other parts of its strip, S of its pair) is given out before anything else, so every task ends.
constexpr int PART_ROWS = 1024; // of a part of a strip that is split, about
// us until a column is due less what its pairs will take one after the other, about: columns that are late go as two halves, and by parts,
// which are done sooner
constexpr int PANEL_US = 25, STRIP_US = 95;
__device__ __forceinline__ int slack(int c, int u, int far, int made) { return (c - made) * PANEL_US - (min(far, made / 2) - u) * STRIP_US; }
__host__ __device__ constexpr int strip_parts(int rows) {
  const int k = (rows + PART_ROWS / 2) / PART_ROWS;
  return k < 1 ? 1 : k > MOST_PARTS ? MOST_PARTS : k;
}
// A task: matrix | half << 6 (0, 1: 32 columns, 2: all 64, 3: S of a pair) | part << 8 | (parts - 1) << 11 | (K == 64) << 14 | panel whose
// columns it updates << 15 | first panel applied << 22 | given out << 31
constexpr int GIVEN = 1 << 31, NO_MORE = -1;
__device__ __forceinline__ int peek(const int *p) { return *(const volatile int *)p; }
__device__ __noinline__ void give_out(const LarfbArgs &p, int *unit, const int lane) { // by one warp; unit: steps of a column given out
  constexpr int MOST = 9;                                                              // entries a lane: columns, then pairs for S
  const int panels = p.n / 64, columns = p.matrices * panels, entries = columns + p.matrices;
  for (int i = lane; i < entries; i += 32) unit[i] = 0; // step << 5 | pieces of it given out
  __syncwarp();
  int given = 0, *slots = p.counter + 4;
  const long long start = clock64();
  while (true) {
    const int asked = peek(p.counter);
    int key[MOST], made[MOST];
    UNROLL for (int t = 0; t < MOST; t++) {
      const int e = lane + 32 * t, m = e < columns ? e / panels : e - columns;
      key[t] = made[t] = 0;
      if (e < entries) {
        made[t] = peek(p.done + p.mat0 + m);
        if (e < columns) key[t] = peek(p.applied + (p.mat0 + m) * panels + e % panels);
      }
    }
    __threadfence(); // what these counters tell has been written
    bool open = false;
    // key: smaller is sooner; 2^30: nothing ready
    auto rate = [&](int t, int applied) {
      const int e = lane + 32 * t;
      int k = 1 << 30;
      if (e < entries) {
        const int u = unit[e] >> 5, sub = unit[e] & 31;
        if (e >= columns) { // S of pair u, before every task that applies the pair
          if (2 * u + 3 < panels) {
            open = true;
            if (made[t] >= 2 * u + 2) k = 0;
          }
        } else {
          const int c = e % panels, far = far_halves(c) / 2;
          if (c >= 2 && u <= far) {
            open = true;
            if (applied >= 2 * u && made[t] >= (u < far ? 2 * u + 2 : c - 1)) k = sub ? 1 : 4096 + (u < far ? 8 + slack(c, u, far, made[t]) : c - made[t]);
          }
        }
      }
      return k;
    };
    int applied[MOST];
    UNROLL for (int t = 0; t < MOST; t++) {
      made[t] /= p.ctas;
      applied[t] = key[t];
      key[t] = rate(t, applied[t]);
    }
    while (given < asked) {
      int best = 1 << 30;
      UNROLL for (int t = 0; t < MOST; t++) best = min(best, key[t] >= 1 << 30 ? 1 << 30 : key[t] << 9 | (lane + 32 * t));
      best = __reduce_min_sync(~0u, best);
      if (best == 1 << 30) break;
      if ((best & 31) == lane)
        UNROLL for (int t = 0; t < MOST; t++)
          if ((best >> 5 & 15) == t) {
            const int e = lane + 32 * t, u = unit[e] >> 5, sub = unit[e] & 31;
            int task;
            if (e >= columns) {
              task = (e - columns) | 3 << 6 | (2 * u) << 22;
              unit[e] = (u + 1) << 5;
            } else {
              const int c = e % panels, far = far_halves(c) / 2;
              const bool near = u == far, k64 = near && !(c & 1), whole = !near && !sub && slack(c, u, far, made[t]) > -STRIP_US / 2;
              const int top = near ? (k64 ? c - 2 : c - 3) : 2 * u, parts = whole ? 1 : strip_parts(p.n - 64 * top);
              task = e / panels | (whole ? 2 : sub / parts) << 6 | (sub % parts) << 8 | (parts - 1) << 11 | k64 << 14 | c << 15 | top << 22;
              unit[e] = whole || sub + 1 == 2 * parts ? (u + 1) << 5 : unit[e] + 1;
            }
            *(volatile int *)(slots + given) = task | GIVEN;
            key[t] = rate(t, applied[t]);
          }
      given++;
    }
    if (!__any_sync(~0u, open)) break;
    if (clock64() - start > 4000000000LL) __trap(); // (seconds: what it waits for is not running)
  }
  for (int i = lane; i < (int)gridDim.x; i += 32) *(volatile int *)(slots + given + i) = NO_MORE;
}
'''+s[j:]
i=s.index("#pragma unroll 1\n  while (true) {\n    if (tid == 0) {\n      const int t = atomicAdd(p.counter, 1);"); j=s.index("    if (half == 2) strip<64, 128, false>")
s=s[:i]+'''  if (blockIdx.x == 0) {
    if (tid < 32) give_out(p, (int *)sm, tid);
  } else
#pragma unroll 1
  while (true) {
    __syncthreads();
    if (tid == 0) {
      const int *slot = p.counter + 4 + atomicAdd(p.counter, 1);
      wait_for_task(slot);
      next.x = load_acquire(slot);
    }
    __syncthreads();
    const int k = next.x;
    if (k == NO_MORE) break;
    const int half = k >> 6 & 3, part = k >> 8 & 7, parts = (k >> 11 & 7) + 1, k64 = k >> 14 & 1, panel = k >> 15 & 127,
              top = 64 * (k >> 22 & 127), column = 64 * panel + 32 * (half & 1);
    const size_t mat = p.mat0 + (k & 63);
'''+s[j:]
R("    else if (k.x >> 24 & 1) near_strip<64>","    else if (k64) near_strip<64>")
R("k.x >> 24 & 1 ? 64 : 128","k64 ? 64 : 128")
R('''__global__ void __launch_bounds__(256, 2) larfb(''','''__device__ __noinline__ void wait_for_task(const int *slot) {
  const long long t = clock64();
  while (!peek(slot))
    if (clock64() - t > 4000000000LL) __trap();
}
__global__ void __launch_bounds__(256, 2) larfb(''')
# host
i=s.index("// ---------------------------------------------------------------- 6. order of work and launches"); j=s.index("constexpr int LARFB_SMEM")
s=s[:i]+'''// ---------------------------------------------------------------- 7. launches, all on the default queue
// The second launch is a programmatic dependent one: it starts when geqr2 is in place. Where kernels do not run side by side (a profiler, a
// debugger), torch.geqrf serves.
'''+s[j:]
i=s.index("// a matrix m of the group, in units of the model"); j=s.index("__global__ void probe_wait")
s=s[:i]+s[j:]
i=s.index("struct List { // in device memory"); j=s.index("template <int C> static void panels(")
s=s[:i]+s[j:]
i=s.index("static long counters(int n, int batch) {"); j=s.index("static long partials(")
s=s[:i]+'''static long slots(int n, int matrices) { // more than all tasks of a launch
  return (long)matrices * (n / 64) * (n / 256 + 1) * 2 * strip_parts(n) + matrices * (n / 128) + 1024;
}
static long counters(int n, int batch) {
  const int group = std::min(batch, group_size(n));
  return (long)batch * (2 + 2 * (n / 64) + n / 32 * (n / 64)) + (batch + group - 1) / group * (4 + slots(n, group));
} // made, applied, coupled, joined; of every launch four and the slots
'''+s[j:]
R("for (int mat0 = 0; mat0 < batch; mat0 += group, next += 4) {","for (int mat0 = 0; mat0 < batch; mat0 += group) {")
R("    const List &list = task_list(n, matrices, sms);\n","")
i=s.index("    workers({a, h, vt, ts, colmax, list.tasks"); j=s.index("  const cudaError_t e = cudaGetLastError();\n  return e ?")
s=s[:i]+'''    workers({a, h, vt, ts, colmax, next, made, applied, coupled, joined, (float4 *)partial, n, batch, mat0, matrices,
             (n / 128 - 1) * 8 * matrices, C},
            workers_an_sm(n) * sms + 1);
    next += 4 + slots(n, group);
  }
'''+s[j:]
R("const int count = n / 64, C = cluster_ctas(n), group = group_size(n);","const int count = n / 64, C = cluster_ctas(n), group = std::min(batch, group_size(n));")
s=s.replace("#include <map>\n","").replace("#include <tuple>\n","").replace("#include <vector>\n","")
open('/tmp/large4/v103.cu','w').write(s)
