import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
rep('''DEVICE void fetch_half(Shared& s, const Job& job, int k, int half, uint32_t* to) {  // one thread
  barrier_expect(&s.panel, ROWS * NB * 2);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    tensor_load(''','''DEVICE void fetch_boxes(Shared& s, const Job& job, int k, int half, uint32_t* to, int from, int end) {  // one thread
#pragma unroll TERMS == 2 ? 1 : 4
  for (int i = from; i < end; i++) {
    tensor_load(''')
i=t.index("DEVICE void fetch_boxes"); j=t.index("}\n}\n",i)+4
t=t[:j]+'''DEVICE void fetch_half(Shared& s, const Job& job, int k, int half, uint32_t* to) {
  barrier_expect(&s.panel, ROWS * NB * 2);
  fetch_boxes(s, job, k, half, to, 0, 4);
}
'''+t[j:]
rep('''    if (TERMS == 2 && EXACT) fetch_half(s, job, job.k + 1, 0, s.half);
''','''    if (TERMS == 2 && EXACT) fetch_boxes(s, job, job.k + 1, 0, s.half, job.k >> 1, 4);
''')
rep('''    if (h == 1 && whole && !last && me.tid == MOVER) {
      s.largest_column = 0u;''','''    if (TERMS == 2 && EXACT && h == 0 && whole && !last && me.tid == MOVER) {  // of the next panel what P leaves room for
      barrier_expect(&s.panel, ROWS * NB * 2);
      fetch_boxes(s, job, k + 1, 0, s.half, 0, k >> 1);
    }
    if (h == 1 && whole && !last && me.tid == MOVER) {
      s.largest_column = 0u;''')
open(sys.argv[2],'w').write(t)
