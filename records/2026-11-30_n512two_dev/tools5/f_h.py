# both halves of the next panel at once, one where P was, one where V was; block 0 comes after them
import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
def cut(a,b,y,incl=False):
    global t
    assert t.count(a)==1,(t.count(a),a); i=t.index(a); j=t.index(b,i)+(len(b) if incl else 0); t=t[:i]+y+t[j:]
rep(", FREE_CHUNK = 2;  // from here on Scratch has sums, and is free before its matrices are\nstatic_assert(sizeof(Scratch) - sizeof(Scratch::partial) == FREE_CHUNK * CHUNK, \"\");\n",";\n")
rep("  union { Window win; Triangle tri; uint32_t half[8192]; };\n","  union { Window win; Triangle tri; };\n")
rep("  unsigned long long panel;          // and of the next panel's halves\n","  unsigned long long panel[2];       // and of the next panel's halves\n")
cut("DEVICE void fetch_boxes(","template <int HALF>\nDEVICE void read_half",'''DEVICE uint32_t* half_at(Shared& s, int half) { return half == 0 ? s.half : &s.v[0][0][0][0]; }
DEVICE void fetch_boxes(Shared& s, const Job& job, int k, int half, int from, int end) {  // one thread
#pragma unroll 1
  for (int i = from; i < end; i++) {
    tensor_load(half_at(s, half) + i * (BOX * IB), job.map, k * NB + (i & 1) * IB, job.row + (2 * half + (i >> 1)) * BOX, &s.panel[half]);
  }
}
DEVICE void fetch_half(Shared& s, const Job& job, int k, int half) {
  barrier_expect(&s.panel[half], ROWS * NB * 2);
  fetch_boxes(s, job, k, half, 0, 4);
}
''')
cut("DEVICE void expect_chunk(","// A chunk of this block is not needed",'''DEVICE void fetch_chunk(Shared& s, const Job& job, int j, int chunk) {  // one thread
  const size_t at = (size_t)(j * CHUNKS + chunk) * (CHUNK / 4);
  barrier_expect(&s.full[chunk], 2 * CHUNK + (chunk == CHUNKS - 1 ? T_OPERANDS * 512 : 0));
  bulk_load(&s.v[0][16 * chunk][0][0], job.v + at, CHUNK, &s.full[chunk]);
  bulk_load(&s.v[1][16 * chunk][0][0], job.v_lo + at, CHUNK, &s.full[chunk]);
  if (chunk == CHUNKS - 1) bulk_load(&s.t[j & 1][0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, &s.full[chunk]);
}
''')
rep('''      expect_chunk(s, chunk, true);
      fetch_high_chunk(s, job, next, chunk);
      fetch_low_chunk(s, job, next, chunk);
''','''      fetch_chunk(s, job, next, chunk);
''')
cut("  if (TERMS == 2) {  // the low terms of the other chunks come later","  const int stage = j & 1;",'''  if (TERMS == 2) {
#pragma unroll 1
    for (int i = CHUNKS - 1; i >= 0; i--) fetch_chunk(s, job, j, i);
    return;
  }
''')
cut("  if (h == 1 && need_t && whole && (TERMS == 2 || job.k > 0)","  if (need_t) invert_diagonal",'''  if (EXACT && h == 1 && need_t && whole && me.tid == MOVER) {  // V's place is free once it has been read, P's one as well
    bulk_store_read();
    if (TERMS == 2) fetch_boxes(s, job, job.k + 1, 0, job.k >> 1, 4);
    fetch_half(s, job, job.k + 1, 1);
  }
''')
rep("    barrier_init(&s.panel);\n","    barrier_init(&s.panel[0]);\n    barrier_init(&s.panel[1]);\n")
rep("      if (EXACT && me.tid == MOVER) fetch_half(s, job, 0, 0, s.half);\n",'''      if (EXACT && me.tid == MOVER) {
        fetch_half(s, job, 0, 0);
        fetch_half(s, job, 0, 1);
      }
''')
rep('''      barrier_expect(&s.panel, ROWS * NB * 2);
      fetch_boxes(s, job, k + 1, 0, s.half, 0, k >> 1);
''','''      barrier_expect(&s.panel[0], ROWS * NB * 2);
      fetch_boxes(s, job, k + 1, 0, 0, k >> 1);
''')
rep("fetch_half(s, job, k + 1, 0, s.half);","fetch_half(s, job, k + 1, 0);")
cut('''      barrier_wait(&s.panel, 0);
''','''    if (next && !EXACT) load_panel''','''      barrier_wait(&s.panel[0], (k + 1) & 1);
      read_half<0>(c, half_at(s, 0), me);
    }
    sync_all();
''')
cut("      if (k == 0) {  // V is where the next panel wants it","    before = whole ? 0",'''    }
    }
    if (next) {
      if (EXACT) {
        barrier_wait(&s.panel[1], (k + 1) & 1);
        read_half<1>(c, half_at(s, 1), me);
        fence_async();
        sync_all();
      }
      if (step >= 0 && me.tid == MOVER) {
        if (k == 0) bulk_store_wait();  // block 0 is in memory
        prefetch_block(s, job, 0);
      }
      scale_panel(c, s, me);
    }
''')
open(sys.argv[2],'w').write(t)
