i=t.index('// The model: us of a panel'); j=t.index('  struct Matrix {\n',i)
t=t[:i]+'''// The model, as measured to give the best order (any values give a right one): us of a panel (256 or 128 rows a CTA), bytes a us of a worker;
// columns due within so many panels are split by rows, into parts of about so many, to be done sooner
struct Model {
  float tall, brief, rate;
  int urgent, part_rows;
};
static Model model(int n) { return n > 2048 ? Model{26, 22, 44e3f, 2, 700} : Model{30, 24, 100e3f, 2, 1024}; }
constexpr float TASK_FIXED = 2.5f, MAXIMA_RATE = 28e3f; // us of a task; bytes a us of the column maxima
static std::vector<int4> schedule(int n, int batch, int workers, int tall_rows) {
  const int panels = n / 64;
  const Model m = model(n);
'''+t[j:]
sub('bytes / RATE + TASK_FIXED','bytes / m.rate + TASK_FIXED')
sub('? PANEL_TALL : PANEL_SHORT','? m.tall : m.brief')
sub('c - x.made <= urgent ?','c - x.made <= m.urgent ?')
sub('(n - 64 * top + PART_ROWS / 2) / PART_ROWS','(n - 64 * top + m.part_rows / 2) / m.part_rows')
