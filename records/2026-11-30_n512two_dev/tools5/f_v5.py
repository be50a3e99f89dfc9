import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
def cut(a,b,y,incl=False):
    global t
    assert t.count(a)==1,(t.count(a),a); i=t.index(a); j=t.index(b,i)+(len(b) if incl else 0); t=t[:i]+y+t[j:]
cut("// A chunk of this block is not needed any more","// W'^T = W^T T",'''// A chunk of this block is not needed any more by this warp,
DEVICE void leave_chunk(int next, int chunk, const Lane& me) {
  if (chunk >= next >> 1 && next >= 0 && me.warp != WARPS - 1) bar_arrive(6 + chunk, THREADS);
}
// nor, a little later, by any other: the next block's into its place.
DEVICE void refill_chunk(Shared& s, const Job& job, int next, int chunk, const Lane& me) {
  if (next < 0 || chunk < next >> 1 || me.warp != WARPS - 1) return;
  bar_sync(6 + chunk, THREADS);
  if (me.tid == MOVER) {
    if (chunk == CHUNKS - 1) {  // the first one
      if (next == 1) bulk_store_read();           // T's stage is free
      if (next + 1 == job.k) bulk_store_wait();  // block k - 1 is in memory
    }
    fetch_chunk(s, job, next, chunk);
  }
}

''')
rep('''    if (quad % 2 == 0) release_chunk(s, job, next, quad / 2, me);
''','''    if (quad % 2 == 0) leave_chunk(next, quad / 2, me);
    if (quad % 2 == 1 && quad < OWN / 4 - 1) refill_chunk(s, job, next, (quad + 1) / 2, me);
    if (quad == 0) refill_chunk(s, job, next, 0, me);
''')
rep("    for (int i = CHUNKS - 1; i >= 0; i--) release_chunk(s, job, next, i, me);\n",'''    for (int i = CHUNKS - 1; i >= 0; i--) {
      leave_chunk(next, i, me);
      refill_chunk(s, job, next, i, me);
    }
''')
open(sys.argv[2],'w').write(t)
