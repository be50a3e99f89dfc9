# the report of a panel waits until its stores have had time
sub('int &nphase, bool &loaded, bool &waiting, bool &here) {','int &nphase, bool &loaded, bool &waiting, bool &here, bool &owed) {')
sub('''  if (k > 1 && !loaded) {
    if (tid == 0) wait_for''','''  auto report = [&] { // the panel before is in memory for the workers; every CTA reports
    if (owed && tid == 224) add_release(p.done + mat, 1);
    owed = false;
  };
  if (!loaded) report();
  if (k > 1 && !loaded) {
    if (tid == 0) wait_for''')
sub('''  if (tid < 64) sUnscale[tid] = column_unscale(maxima[tid]);
''','''  if (tid < 64) sUnscale[tid] = column_unscale(maxima[tid]);
  report(); // (the stores that it waits for have had time)
''')
sub('''  auto finish = [&](int k) { // the panel is in memory for its cluster and for the workers
''','''  bool owed = false;         // has the panel before not been reported yet?
  auto finish = [&] {        // the panel is in memory for its cluster and for the workers
''')
sub('''    if (here) cluster_arrive();
    if (threadIdx.x == 224) add_release(p.done + p.mat0 + slot, 1); // every CTA reports
    if (here) cluster_wait();
''','''    owed = true;
    if (here) cluster_meet();
''')
t=t.replace('nphase, loaded, waiting, here);\n    finish(k);','nphase, loaded, waiting, here, owed);\n    finish();')
sub('''__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
''','''__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory");
}
''')
