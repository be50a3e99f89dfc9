i=t.index('  auto write_rows = [&](int kk, int i) {\n'); j=i+len('  auto write_rows = [&](int kk, int i) {\n'); t=t[:j]+'    if (kk >= 0) return; // ablation\n'+t[j:]
