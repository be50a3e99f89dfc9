# maxima as tasks of the list; the last columns get their last panels one by one
sub('''// far tasks that the columns of panel c need (pairs of panels before c - 2), and all: then panel c - 3 (c odd), panel c - 2
__host__ __device__ constexpr int far_updates(int c) { return c < 4 ? 0 : c / 2 - 1; }
__host__ __device__ constexpr int all_updates(int c) { return c < 2 ? 0 : far_updates(c) + 1 + (c & 1); }
''','''// What the columns of panel c need: their maxima, in so many tasks (but for c < 2); pairs of panels; the last panels one by one, one or two,
// or two more where c >= late; panel c - 1 is left to geqr2.
constexpr int MAXIMA = 8;
__host__ __device__ constexpr int pairs(int c, int late) { return c < 4 ? 0 : c / 2 - 1 - (c >= late); }
__host__ __device__ constexpr int all_updates(int c, int late) { return c < 2 ? 0 : MAXIMA + c - 1 - pairs(c, late); }
''')
sub('''  int n, mat0;
};
__device__ __forceinline__ int load_acquire''','''  int n, mat0, late;
};
__device__ __forceinline__ int load_acquire''')
sub('wait_for(p.applied + mat * (n / 64) + k, all_updates(k));','wait_for(p.applied + mat * (n / 64) + k, all_updates(k, p.late));')
sub('>= all_updates(k + 1));','>= all_updates(k + 1, p.late));')
i=t.index('  int *counter; // next task'); j=t.index('\n',i); t=t[:i]+'  int *counter; // next task'+t[j:]
sub('mat0, task_end, maxima_units, ctas;','mat0, task_end, ctas;')
i=t.index('  bool coupling, single; // S of a pair'); j=t.index('};\n',i)
t=t[:i]+'''  bool maxima, coupling, single; // of 128 columns, so many rows; S of a pair; one panel, not a pair
  size_t mat;
  __device__ __forceinline__ Task(const int4 &k, int mat0) :
      panel(k.y & 0xffff), top(64 * (k.y >> 16)), column(64 * panel), part(k.x >> 18 & 7), parts((k.x >> 21 & 7) + 1),
      maxima(k.x >> 17 & 1), coupling(k.x >> 16 & 1), single(k.x >> 24 & 1), mat(mat0 + (k.x & 0xffff)) {}
'''+t[j:]
sub('''  uint32_t used = 0, ready = 0, done = 0; // phases of the barriers
''','''  uint32_t used = 0, ready = 0, done = 0; // phases of the barriers
  bool working = false;                   // on a task without copies
''')
sub('''    next[i] = k;
    mbar_arrive(s + L::NEXT);
    if (k.x < 0) break;
    const Task task(k, p.mat0);
    if (task.coupling) {
      mbar_wait_cta(s + L::DONE, done);
      done ^= 1;
      continue;
    }
''','''    if (working) {
      mbar_wait_cta(s + L::DONE, done);
      done ^= 1;
    }
    next[i] = k;
    mbar_arrive(s + L::NEXT);
    if (k.x < 0) break;
    const Task task(k, p.mat0);
    working = task.coupling || task.maxima;
    if (working) continue;
''')
i=t.index('  if (p.maxima_units && tid < 256) {'); j=t.index('  fence_shared();\n  asm volatile("bar.sync 1,',i)
t=t[:i]+t[j:]
sub('''      if (task.coupling) coupling(p, task.mat, task.top);
''','''      const bool no_copies = task.coupling || task.maxima;
      if (task.maxima) column_max(p.a, p.colmax, p.n, task.mat, task.panel / 2, task.part * (p.n / MAXIMA), p.n / MAXIMA, (float4(*)[32])sm);
      else if (task.coupling) coupling(p, task.mat, task.top);
''')
i=t.index('      if (task.coupling) fence_shared();'); j=t.index('  asm volatile("griddepcontrol.wait;" ::\n',i)
t=t[:i]+'''      if (no_copies) fence_shared();
      WRITER
      block_sync<256>();
      if (tid == 0) {
        if (no_copies) mbar_arrive(s + StripSmem::DONE);
        if (task.parts > 1) __threadfence(); // the last part reports for all
        int *applied = p.applied + task.mat * (p.n / 64) + task.panel;
        if (task.maxima) {
          __threadfence();
          atomicAdd(applied, 1);
          atomicAdd(applied + 1, 1);
        } else if (task.parts == 1 || atomicAdd(p.joined + gang_of(p, task.mat, task.top, task.column, task.single), 1) == 2 * task.parts - 1)
          add_release(task.coupling ? p.coupled + task.mat * (p.n / 128) + task.top / 128 : applied, 1);
      }
    }
'''.replace('      WRITER\n','      fence_global(); // H and S^T, for the copies of others\n' if 'writer' in OPT else '')+t[j:]
sub('// A task: x = matrix | (S of a pair) << 16 | part','// A task: x = matrix | (S of a pair) << 16 | (maxima) << 17 | part')
sub('//   near  panel c-3 (c odd), then panel c-2              (one by one: no need to wait for S; panel c-1 is applied by geqr2 itself)\n',
    '//   near  the panels from there to c-2                   (one by one: no need to wait for S; panel c-1 is applied by geqr2 itself)\n// and before all that their maxima, which give the powers of two.\n')
sub('//   far   the pairs 0 .. c/2 - 2                         (128 reflectors each)\n','//   far   the pairs 0 .. c/2 - 2, the last one aside where c >= late  (128 reflectors each)\n')
# schedule
sub('constexpr int PART_ROWS = 1024; // of a part of a strip that is split, about\n','''constexpr float MAXIMA_RATE = 28e3f; // bytes a us of the column maxima
constexpr int PART_ROWS = 1024;      // of a part of a strip that is split, about
static int late_columns(int n) { return LATE; }
'''.replace('LATE','1000' if 'late' not in OPT else '(n > 2048 ? 4 : n / 64 - 12)'))
sub('''  const int panels = n / 64, urgent = urgent_panels(n);
  struct Matrix {
    int made = 0, coupled = 0;
    float end = -1;
    std::vector<int> claimed, applied; // tasks taken; tasks done
  };''','''  const int panels = n / 64, urgent = urgent_panels(n), late = late_columns(n);
  struct Matrix {
    int made = 0, coupled = 0, scanned = 0; // panels, S of pairs, tasks of column maxima
    float end = -1;
    std::vector<int> claimed, applied; // tasks taken; tasks done
  };''')
sub('''    x.applied.assign(panels, 0);
  }''','''    x.applied.assign(panels, 0);
    x.applied[0] = x.applied[1] = x.claimed[0] = x.claimed[1] = 0;
    for (int c = 2; c < panels; c++) x.claimed[c] = MAXIMA;
  }''')
sub('''    x.applied[0] = x.applied[1] = x.claimed[0] = x.claimed[1] = 0;
''','')
sub('''        if (due >= 0 && x.coupled < x.made / 2''','''        const int next = 2 + x.scanned / MAXIMA * 2; // columns whose maxima come next
        if (next < panels && 2 * next - 1 < due) due = 2 * next - 1, mat = b, c = -1;
        if (due >= 0 && x.coupled < x.made / 2''')
sub('x.applied[x.made] >= all_updates(x.made))','x.applied[x.made] >= all_updates(x.made, late))')
sub('''          if (x.applied[i] < q || q == all_updates(i)) continue;
          if (q >= far_updates(i) && x.made >= i - all_updates(i) + q) due = 2 * i, mat = b, c = i, near = true;
          else if (q < far_updates(i) && 2 * i + 1 < due && x.made >= 2 * q + 2) due = 2 * i + 1, mat = b, c = i, near = false;
''','''          if (x.applied[i] < q || q == all_updates(i, late)) continue;
          const int far = pairs(i, late), u = q - MAXIMA; // pairs 0..far - 1, then panels far + u
          if (u >= far && x.made > far + u) due = 2 * i, mat = b, c = i, near = true;
          else if (u < far && 2 * i + 1 < due && x.made >= 2 * u + 2) due = 2 * i + 1, mat = b, c = i, near = false;
''')
sub('''      const int before = x.claimed[c]++, top = near ? c - 1 - all_updates(c) + before : 2 * before, made = top + (near ? 1 : 2);
''','''      if (c < 0) {
        const int part = x.scanned % MAXIMA, panel = 2 + x.scanned++ / MAXIMA * 2;
        list.push_back(make_int4(mat | 1 << 17 | part << 18, panel, 0, 0));
        running.push_back({mat, panel, -1, now + n * 64 / MAXIMA_RATE});
        continue;
      }
      const int before = x.claimed[c]++, u = before - MAXIMA, top = near ? pairs(c, late) + u : 2 * u, made = top + (near ? 1 : 2);
''')
sub('''        ms[running[i].mat].applied[running[i].c] += running[i].updates;
''','''        std::vector<int> &applied = ms[running[i].mat].applied;
        if (running[i].updates < 0) { // maxima of two panels' columns
          applied[running[i].c]++;
          applied[running[i].c + 1]++;
        } else applied[running[i].c] += running[i].updates;
''')
sub('const PanelArgs p{a, h, tau, vt, low, ts, colmax, passes, made, applied, n, mat0};','const PanelArgs p{a, h, tau, vt, low, ts, colmax, passes, made, applied, n, mat0, late_columns(n)};')
sub('''partial, n, batch, mat0, list.count,
             (n / 128 - 1) * 8 * matrices, C},''','''partial, n, batch, mat0, list.count, C},''')
