# the order: what is due first, less a little for each task that a column still lacks (on m)
sub('static Model model(int n) { return n > 2048 ? Model{26, 22, 44e3f, 2, 700} : Model{30, 24, 100e3f, 2, 1024}; }','static Model model(int n) { return n > 2048 ? Model{26, 22, 44e3f, 2, 700} : Model{26, 22, 100e3f, 2, 1024}; }')
sub('''    while ((int)running.size() < workers) { // the earliest due task that is ready
      int due = 1 << 30, mat = 0, c = 0;
      bool near = false;
''','''    // us until panel i can begin, less a little for each task that its columns lack (they come one after the other)
    auto due_in = [&](const Matrix &x, int i) { return (i - x.made) * (n - 64 * x.made > tall_rows ? m.tall : m.brief) - TASK_FIXED * (all_updates(i) - x.claimed[i]); };
    constexpr float FIRST = -1e30f, NONE = 1e30f;
    while ((int)running.size() < workers) { // the earliest due task that is ready
      float due = NONE;
      int mat = 0, c = 0;
      bool near = false;
''')
sub('''        if (next < panels && 2 * next - 1 < due) due = 2 * next - 1, mat = b, c = -1;
        if (due >= 0 && x.coupled < x.made / 2 && 2 * x.coupled + 3 < panels) due = -1, mat = b;
        for (int i = std::max(2, x.made); i < panels && 2 * i < due; i++) {
''','''        if (next < panels && due_in(x, next) - TASK_FIXED < due) due = due_in(x, next) - TASK_FIXED, mat = b, c = -1;
        if (due > FIRST && x.coupled < x.made / 2 && 2 * x.coupled + 3 < panels) due = FIRST, mat = b;
        for (int i = std::max(2, x.made); i < panels && due > FIRST; i++) {
''')
sub('''          if (u >= far && x.made > far + u) due = 2 * i, mat = b, c = i, near = true;
          else if (u < far && 2 * i + 1 < due && x.made >= 2 * u + 2) due = 2 * i + 1, mat = b, c = i, near = false;
''','''          if ((u < far ? x.made >= 2 * u + 2 : x.made > far + u) && due_in(x, i) < due) due = due_in(x, i), mat = b, c = i, near = u >= far;
''')
sub('''      if (due == 1 << 30) break;
''','''      if (due == NONE) break;
''')
sub('''      if (due < 0) { // S of a pair''','''      if (due == FIRST) { // S of a pair''')
