import re
def one_copy(b):
    b.b=re.sub(r's\.v\[([^\[\]]+)\]',r's.stage[\1].v',b.b)
    b.b=re.sub(r's\.t\[([^\[\]]+)\]',r's.stage[\1].t',b.b)
    b.rep('''  uint32_t v[2][TILES][GROUPS][32];  // two stages of V; [0] is where a panel's V is formed, [1] also holds Scratch
''','''  struct {
    uint32_t v[TILES][GROUPS][32];
    uint4 t[T_OPERANDS][32];         // T as mma operands: hi b0, hi b1, lo b0, lo b1
  } stage[2];                        // [0] is where a panel's V is formed; V of [1] also holds Scratch, T of it the panel's
''')
    b.rep('''  uint4 t[2][T_OPERANDS][32];        // T as mma operands: hi b0, hi b1, lo b0, lo b1
''','')
    b.rep('''constexpr int PAD = 36; ''','''constexpr int V_WORDS = TILES * GROUPS * 32, BLOCK_WORDS = V_WORDS + T_OPERANDS * 128;  // a block in global memory: V, then T
constexpr int PAD = 36; ''')
    b.rep('uint32_t* v; uint32_t* v_lo; uint32_t* t; int n;','uint32_t* v; uint32_t* v_lo; int n;')
    b.cut('''  const int bytes = (TILES - 8 * j) * 1024;
  barrier_expect(&s.full[stage], bytes + T_OPERANDS * 512);
''','''}
''','''  const int bytes = (TILES - 8 * j) * 1024 + T_OPERANDS * 512;
  barrier_expect(&s.full[stage], bytes);
  bulk_load(&s.stage[stage].v[8 * j][0][0], job.v + (size_t)j * BLOCK_WORDS + 8 * j * GROUPS * 32, bytes, &s.full[stage]);
''')
    b.rep('''bulk_store(job.v + (size_t)(k * TILES + 8 * k) * GROUPS * 32, ''','''bulk_store(job.v + (size_t)k * BLOCK_WORDS + 8 * k * GROUPS * 32, ''')
    b.rep('''bulk_store(job.t + (size_t)k * T_OPERANDS * 128, ''','''bulk_store(job.v + (size_t)k * BLOCK_WORDS + V_WORDS, ''')
    b.rep(''', job.t, T_OPERANDS * 512, &s.full[0]);''',''', job.v + V_WORDS, T_OPERANDS * 512, &s.full[0]);''')
    b.rep('''  job.v = v + matrix * panels * (TILES * GROUPS * 32);
  job.v_lo = v_lo + matrix * panels * (TILES * GROUPS * 32);
  job.t = t + matrix * panels * (T_OPERANDS * 128);
''','''  job.v = v + matrix * panels * BLOCK_WORDS;
  job.v_lo = v_lo + matrix * panels * V_WORDS;
''')
    b.rep('uint32_t* v, uint32_t* v_lo, uint32_t* t, int n, int panels,','uint32_t* v, uint32_t* v_lo, int n, int panels,')
    b.rep('void* v, void* v_lo, void* t, int batch, int n) {','void* v, void* v_lo, int batch, int n) {',2)
    b.rep('''(uint32_t*)v_lo,
                                             (uint32_t*)t, n,''','''(uint32_t*)v_lo, n,''')
    b.rep('launch(a, h, tau, v, v_lo, t, batch, n);','launch(a, h, tau, v, v_lo, batch, n);')
    b.rep('// Launches on the default queue; returns a CUDA error code. v, v_lo: batch * panels * 65536 bytes; t: batch * panels * 10240.','// Launches on the default queue; returns a CUDA error code. v: batch * panels * 75776 bytes, v_lo: batch * panels * 65536.')
