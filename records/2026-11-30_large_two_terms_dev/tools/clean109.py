import sys
t=open(sys.argv[1]).read()
def sub(o,n,c=1):
    global t
    assert t.count(o)==c,(t.count(o),o[:160]); t=t.replace(o,n)
def cut(a,b,to=''):
    global t
    i=t.index(a); j=t.index(b,i); t=t[:i]+to+t[j:]
sub("constexpr bool WARPGROUPS = true; // strips of 64 columns by section 5b, one worker an SM\n","")
# section 5
cut("// ---------------------------------------------------------------- 5. larfb: C <- (I - V T' V') C on a strip of columns\n","struct LarfbArgs {",'''// ---------------------------------------------------------------- 5. larfb: C <- (I - V T' V') C on a strip of 64 columns
// A worker (one CTA on an SM) owns 64 columns of one matrix, or some of their rows, and applies K = 64 or 128 reflectors (one panel or two):
// W = V'C, W' = T'W, C -= V W'. S = V0'V1, which couples the two panels of a pair, comes from a task of its own (`coupling`). Pass 1 goes
// down the rows, pass 2 back up again (the last rows read are still in L2). C stays fp32 in memory, unscaled; it enters the products as
// fp16 terms of the column times its power of two. Columns that are due soon are split by rows between workers, which add up their W.
''')
sub("  float4 *partial;                                  // W of the parts of split strips\n","  float4 *partial; // W of the parts of split strips\n")
cut("// number of a strip of 32 columns that may be split","// S^T = V1'V0 of the pair of panels",'''// number of a strip that may be split: its matrix and columns, and which reflectors it applies (even first panel: a pair, or alone)
__device__ __forceinline__ int gang_of(const LarfbArgs &p, size_t mat, int r0, int cbase, bool single) {
  return ((int)mat * (p.n / 64) + cbase / 64) * (p.n / 64) + r0 / 64 + single;
}
''')
sub("gang_of(p, mat, r0, cbase, K)","gang_of(p, mat, r0, cbase, K == 64)",2)
sub("gang_of(p, task.mat, task.top, task.column, task.single ? 64 : 128)","gang_of(p, task.mat, task.top, task.column, task.single)")
sub("// ---------------------------------------------------------------- 5b. the same on Hopper's warpgroup products, in one term or two\n","// The products are Hopper's warpgroup products, in one term or two:\n")
sub('''  int half, panel, top, column, part, parts;
  bool single; // one panel, not a pair
  size_t mat;''','''  int panel, top, column, part, parts;
  bool coupling, single; // S of a pair; one panel, not a pair
  size_t mat;''')
sub("      : half(k.x >> 16 & 3), panel(k.y & 0xffff), top(64 * (k.y >> 16)), column(64 * panel), part(k.x >> 18 & 7), parts((k.x >> 21 & 7) + 1),\n        single(k.x >> 24 & 1), mat(","      : panel(k.y & 0xffff), top(64 * (k.y >> 16)), column(64 * panel), part(k.x >> 18 & 7), parts((k.x >> 21 & 7) + 1),\n        coupling(k.x >> 16 & 1), single(k.x >> 24 & 1), mat(")
t=t.replace("task.half == 3","task.coupling")
sub("add_release(task.coupling ? p.coupled + task.mat * (p.n / 128) + task.top / 128 : p.applied + task.mat * (p.n / 64) + task.panel, 2);","add_release(task.coupling ? p.coupled + task.mat * (p.n / 128) + task.top / 128 : p.applied + task.mat * (p.n / 64) + task.panel, 1);")
cut("// A task: x = matrix | half << 16","constexpr int LARFB_THREADS",'''// A task: x = matrix | (S of a pair) << 16 | part << 18 | (parts - 1) << 21 | (one panel, not a pair) << 24; y = panel whose columns it
// updates | first panel applied << 16; z = panels that must be made before; w = updates that must have been applied to these columns
// before. Workers take the tasks in the order of the list (section 6), the next one when the last copies of the one before have been asked
// for. Everything that a task waits for stands before it in the list or is a panel that waits for nothing behind it, and nobody takes a
// task while the one before may still wait for its other parts: any number of workers (no fewer than parts) makes progress.
''')
# panels
sub("applied[mat][panel]: halves (32 columns) of larfb tasks done on its columns","applied[mat][panel]: larfb tasks done on its columns")
cut("// halves of far tasks that the columns of panel c need","\n// sum of N float4",'''// far tasks that the columns of panel c need (pairs of panels before c - 2); its near task is one more
__host__ __device__ constexpr int far_updates(int c) { return c < 4 ? 0 : c / 2 - 1; }
''')
sub("far_halves(k) + 2);","far_updates(k) + 1);")
sub(">= far_halves(k + 1) + 2);",">= far_updates(k + 1) + 1);")
# section 6
sub("//   far   the pairs 0 .. c/2 - 2                                     (128 reflectors each, 64 columns at once or, where it is urgent, 32)\n//   near  panel c-2 (c even) or pair (c-3)/2 (c odd), two halves     (panel c-1 is applied by geqr2 itself)\n","//   far   the pairs 0 .. c/2 - 2                         (128 reflectors each)\n//   near  panel c-2 (c even) or pair (c-3)/2 (c odd)     (panel c-1 is applied by geqr2 itself)\n")
sub("// SMs, one or two on each, and take tasks","// SMs, one on each, and take tasks")
sub("constexpr int LARFB_SMEM = WARPGROUPS ? StripSmem::BYTES : std::max(LarfbSmem<64>::BYTES, LarfbSmem<32>::BYTES);\n","")
t=t.replace("LARFB_SMEM","StripSmem::BYTES")
cut("// a matrix m of the group, in units of the model","__global__ void probe_wait",'''// The model: us of a panel (256 or 128 rows a CTA), bytes a us of a worker, us of a task; any value gives a right order
constexpr float PANEL_TALL = 26, PANEL_SHORT = 22, RATE = 44e3f, TASK_FIXED = 2.5f;
constexpr int PART_ROWS = 1024; // of a part of a strip that is split, about
// columns due within so many panels are split by rows: done sooner
static int urgent_panels(int n) { return n > 2048 ? 2 : 1; } // measured
static std::vector<int4> schedule(int n, int batch, int workers, int tall_rows) {
  const int panels = n / 64, urgent = urgent_panels(n);
  struct Matrix {
    int made = 0, coupled = 0;
    float end = -1;
    std::vector<int> claimed, applied, near; // far tasks taken; tasks done; is the near task taken?
  };
  std::vector<Matrix> ms(batch);
  for (auto &x : ms) {
    x.claimed.assign(panels, 0);
    x.applied.assign(panels, 0);
    x.near.assign(panels, 0);
  }
  struct Running {
    int mat, c, updates;
    float end;
  };
  std::vector<Running> running;
  std::vector<int4> list;
  float now = 0;
  auto place = [&](int mat, int c, int updates, float bytes) { running.push_back({mat, c, updates, now + bytes / RATE + TASK_FIXED}); };
  for (int left = batch; left;) {
    for (auto &x : ms)
      if (x.end < 0 && x.made < panels && (x.made < 2 || x.applied[x.made] > far_updates(x.made)))
        x.end = now + (n - 64 * std::max(0, x.made - 1) > tall_rows ? PANEL_TALL : PANEL_SHORT);
    while ((int)running.size() < workers) { // the earliest due task that is ready
      int due = 1 << 30, mat = 0, c = 0;
      bool near = false;
      for (int b = 0; b < batch; b++) {
        const Matrix &x = ms[b];
        if (due >= 0 && x.coupled < x.made / 2 && 2 * x.coupled + 3 < panels) due = -1, mat = b;
        for (int i = std::max(2, x.made); i < panels && 2 * i < due; i++) {
          const int q = x.claimed[i];
          if (i <= x.made + 1 && !x.near[i] && x.made >= i - 1 && x.applied[i] >= far_updates(i)) due = 2 * i, mat = b, c = i, near = true;
          else if (q < far_updates(i) && 2 * i + 1 < due && x.applied[i] >= q && x.made >= 2 * q + 2)
            due = 2 * i + 1, mat = b, c = i, near = false;
        }
      }
      if (due == 1 << 30) break;
      Matrix &x = ms[mat];
      if (due < 0) { // S of a pair, before every task that applies the pair
        const int top = 2 * x.coupled++;
        list.push_back(make_int4(mat | 1 << 16, top << 16, top + 2, 0));
        place(mat, 0, 0, (n - 64.f * top) * 256);
        continue;
      }
      const bool single = near && !(c & 1);
      const int before = near ? far_updates(c) : x.claimed[c]++, top = single ? c - 2 : near ? c - 3 : 2 * before, made = near ? c - 1 : top + 2;
      if (near) x.near[c] = 1;
      const int parts = near || c - x.made <= urgent ? std::min(MOST_PARTS, std::max(1, (n - 64 * top + PART_ROWS / 2) / PART_ROWS)) : 1;
      for (int part = 0; part < parts; part++) {
        list.push_back(make_int4(mat | part << 18 | (parts - 1) << 21 | single << 24, c | top << 16, made, before));
        place(mat, c, part == parts - 1, (n - 64.f * top) * (TERMS * (single ? 256 : 512) + 768) / parts);
      }
    }
    now = 1e30f;
    for (auto &x : ms)
      if (x.end >= 0) now = std::min(now, x.end);
    for (auto &r : running) now = std::min(now, r.end);
    for (auto &x : ms)
      if (x.end >= 0 && x.end <= now) {
        x.end = -1;
        if (++x.made == panels) left--;
      }
    for (size_t i = 0; i < running.size();)
      if (running[i].end <= now + 1e-3f) {
        ms[running[i].mat].applied[running[i].c] += running[i].updates;
        running.erase(running.begin() + i);
      } else i++;
  }
  return list;
}
''')
cut("static int workers_an_sm(int n)","struct List {")
sub("schedule(n, batch, sms, 128 * cluster_ctas(n), workers_an_sm(n));","schedule(n, batch, workers, 128 * cluster_ctas(n));")
sub("static const List &task_list(int n, int batch, int sms) {","static const List &task_list(int n, int batch, int workers) {")
sub("  return (long)batch * (6 * (n / 64) + 8 + n / 32 * (n / 64));\n","  return (long)batch * (6 * (n / 64) + 8 + n / 64 * (n / 64));\n")
sub("* (n / 32) * MOST_PARTS * 4096; } // floats","* (n / 64) * MOST_PARTS * 8192; } // floats")
sub("*next = joined + batch * count * count * 2;","*next = joined + batch * count * count;")
sub("            maps, workers_an_sm(n) * sms);","            maps, sms);")
open(sys.argv[2],'w').write(t)
