import sys
t=open(sys.argv[1]).read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
def cut(a,b,y,incl=False):
    global t
    assert t.count(a)==1,(t.count(a),a); i=t.index(a); j=t.index(b,i)+(len(b) if incl else 0); t=t[:i]+y+t[j:]
cut("// TERMS = 2: blocks in place, high terms in v[0]","// A chunk of this block is not needed",'''// TERMS = 2: blocks in place, high terms in v[0], low ones in v[1]; by chunks of 16 tiles, from the last, with which T comes (into its
// two stages in turn), to the first. What a chunk has of rows above its block is anything.
DEVICE void expect_chunk(Shared& s, int chunk, bool high) {  // one thread
  barrier_expect(&s.full[chunk], (high ? 2 : 1) * CHUNK + (chunk == CHUNKS - 1 ? T_OPERANDS * 512 : 0));
}
DEVICE void fetch_high_chunk(Shared& s, const Job& job, int j, int chunk) {
  bulk_load(&s.v[0][16 * chunk][0][0], job.v + (size_t)(j * CHUNKS + chunk) * (CHUNK / 4), CHUNK, &s.full[chunk]);
  if (chunk == CHUNKS - 1) bulk_load(&s.t[j & 1][0][0], job.t + (size_t)j * T_OPERANDS * 128, T_OPERANDS * 512, &s.full[chunk]);
}
DEVICE void fetch_low_chunk(Shared& s, const Job& job, int j, int chunk) {
  bulk_load(&s.v[1][16 * chunk][0][0], job.v_lo + (size_t)(j * CHUNKS + chunk) * (CHUNK / 4), CHUNK, &s.full[chunk]);
}
''')
rep("      expect_chunk(s, next, chunk, true);","      expect_chunk(s, chunk, true);")
rep("      expect_chunk(s, j, i, true);","      expect_chunk(s, i, true);")
rep("expect_chunk(s, 0, i, false);","expect_chunk(s, i, false);")
rep("bulk_load(&s.t[0][0][0], job.t, T_OPERANDS * 512, &s.full[0]);","bulk_load(&s.t[0][0][0], job.t, T_OPERANDS * 512, &s.full[TERMS == 2 ? CHUNKS - 1 : 0]);")
rep("  const uint32_t v_lo = tile_descriptor(low.tiles, P_GROUP);\n","  const uint32_t v_lo[2] = {tile_descriptor(low.tiles, P_GROUP), tile_descriptor(low.tiles + low.other(), P_GROUP)};\n")
rep('''        const uint32_t y = v_lo + quad / 2 * 1024 + quad % 2 * 64 + (st & 1) * (2 * P_GROUP / 16) + (st < 2 ? 0u : low.other() / 16);
''','''        const uint32_t y = v_lo[st >> 1] + quad / 2 * 1024 + quad % 2 * 64 + (st & 1) * (2 * P_GROUP / 16);
''')
open(sys.argv[2],'w').write(t)
