# least slack first (on m)
sub('''// The model, as measured to give the best order (any values give a right one): us of a panel (256 or 128 rows a CTA), bytes a us of a worker;
// columns due within so many panels are split by rows, into parts of about so many, to be done sooner
struct Model {
  float tall, brief, rate;
  int urgent, part_rows;
};
static Model model(int n) { return n > 2048 ? Model{26, 22, 44e3f, 2, 700} : Model{30, 24, 100e3f, 2, 1024}; }
''','''// The model, as measured to give the best order (any values give a right one): us of a panel (256 or 128 rows a CTA), bytes a us of a worker;
// columns due within so many panels are split by rows, into parts of about so many, to be done sooner; us a row of a strip, for the slack
struct Model {
  float tall, brief, rate;
  int urgent, part_rows;
  float strip;
};
static Model model(int n) { return n > 2048 ? Model{26, 22, 44e3f, 2, 700, 0.01f} : Model{26, 22, 100e3f, 1, 1024, 0.016f}; }
''')
sub('''    while ((int)running.size() < workers) { // the earliest due task that is ready
      int due = 1 << 30, mat = 0, c = 0;
      bool near = false;
''','''    // us until panel i can begin, less what the tasks that its columns still need will take: they come one after the other
    auto slack = [&](const Matrix &x, int i) {
      const int far = pairs(i), q = x.claimed[i] - MAXIMA;
      float need = 0;
      for (int u = q; u < far; u++) need += m.strip * (n - 128 * u) + TASK_FIXED;
      need += (all_updates(i) - MAXIMA - std::max(q, far)) * (m.strip / 2 * (n - 128 * far) + TASK_FIXED);
      return (i - x.made) * (n - 64 * x.made > tall_rows ? m.tall : m.brief) - need;
    };
    constexpr float FIRST = -1e30f, NONE = 1e30f;
    while ((int)running.size() < workers) { // the task with the least slack that is ready
      float least = NONE;
      int mat = 0, c = 0;
      bool near = false;
''')
sub('''        if (next < panels && 2 * next - 1 < due) due = 2 * next - 1, mat = b, c = -1;
        if (due >= 0 && x.coupled < x.made / 2 && 2 * x.coupled + 3 < panels) due = -1, mat = b;
        for (int i = std::max(2, x.made); i < panels && 2 * i < due; i++) {
''','''        if (next < panels)
          if (const float k = slack(x, next) - n * 64 / MAXIMA_RATE; k < least) least = k, mat = b, c = -1;
        if (least > FIRST && x.coupled < x.made / 2 && 2 * x.coupled + 3 < panels) least = FIRST, mat = b;
        for (int i = std::max(2, x.made); i < panels && least > FIRST; i++) {
''')
sub('''          if (u >= far && x.made > far + u) due = 2 * i, mat = b, c = i, near = true;
          else if (u < far && 2 * i + 1 < due && x.made >= 2 * u + 2) due = 2 * i + 1, mat = b, c = i, near = false;
''','''          if (u < far ? x.made < 2 * u + 2 : x.made <= far + u) continue;
          if (const float k = slack(x, i); k < least) least = k, mat = b, c = i, near = u >= far;
''')
sub('''      if (due == 1 << 30) break;
''','''      if (least == NONE) break;
''')
sub('''      if (due < 0) { // S of a pair''','''      if (least == FIRST) { // S of a pair''')
