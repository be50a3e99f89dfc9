i=t.index('    if (loaded) { // the updates of the next panel are ready'); j=t.index('    if (lane < 8) { // V^T with the rows',i)
L_=t[i:j]
t=t[:i]+'''    auto load_next = [&] { // the updates of the next panel are ready: its columns come in while this one leaves
'''+L_[L_.index('\n')+1:].rstrip()[:-1].rstrip()+'\n    };\n    if (loaded) load_next();\n'+t[j:]
sub('''    // ---- (4) V'V, T
    {
''','''    // ---- (4) V'V, T
    if (tid == 192 && !loaded && same_shape) *sReady = ready(); // asked once more (by the warp that has no part of V'V)
    {
''')
sub('''  if (tid == 32) *sReady = same_shape && (k == 0 || load_acquire(p.applied + mat * (n / 64) + k + 1) >= all_updates(k + 1));
''','''  auto ready = [&] { return k == 0 || load_acquire(p.applied + mat * (n / 64) + k + 1) >= all_updates(k + 1); };
  if (tid == 32) *sReady = same_shape && ready();
''')
sub('''    sum_and_spread(smem_addr(sm + P::X), std::false_type());
''','''    sum_and_spread(smem_addr(sm + P::X), std::false_type());
    if (!loaded && *sReady) {
      loaded = true;
      load_next();
    }
''')
