# e4.py: w3.py -> w4.py: two terms go through the rows from the last to the first: the chunk that the next block needs first is free first
t=open('w3.py').read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
i=t.index("DEVICE void multiply_two_terms"); j=t.index("// C = (I - V T' V') C.")
b=t[i:j]
assert b.count("for (int quad = 0; quad < OWN / 4; quad++) {")==2
b=b.replace("for (int quad = 0; quad < OWN / 4; quad++) {","for (int quad = OWN / 4 - 1; quad >= 0; quad--) {")
b=b.replace("  if (!low.inside) barrier_wait(&s.full[quad0 >> 1], phase >> (quad0 >> 1) & 1);\n","  if (!low.inside) barrier_wait(&s.full[CHUNKS - 1], phase >> (CHUNKS - 1) & 1);\n")
b=b.replace("if (!low.inside && quad % 2 == 0) barrier_wait","if (!low.inside && quad % 2 == 1 && quad < OWN / 4 - 1) barrier_wait")
b=b.replace("    if (quad % 2 == 1) release_chunk","    if (quad % 2 == 0) release_chunk")
t=t[:i]+b+t[j:]
rep("      if (chunk == next >> 1) {\n        if (next == 1)","      if (chunk == CHUNKS - 1) {  // the first one\n        if (next == 1)")
rep('''    for (int i = 0; i < CHUNKS; i++) release_chunk(s, job, next, i, me);
''','''    for (int i = CHUNKS - 1; i >= 0; i--) release_chunk(s, job, next, i, me);
''')
rep('''struct Scratch {
  float4 partial[WARPS][8][32];
  union { Window win; Triangle tri; };
};
''','''struct Scratch {
  union { Window win; Triangle tri; uint32_t half[8192]; };
  float4 partial[WARPS][8][32];
};
''')
rep('''FREE_CHUNKS = 2;  // those under Scratch's sums, which are free before its matrices
static_assert(sizeof(Scratch::partial) >= FREE_CHUNKS * CHUNK, "");
''','''FREE_CHUNK = 2;  // from here on Scratch has sums, and is free before its matrices are
static_assert(sizeof(Scratch) - sizeof(Scratch::partial) == FREE_CHUNK * CHUNK, "");
''')
rep("      if (i < FREE_CHUNKS) fetch_low","      if (i >= FREE_CHUNK) fetch_low")
rep("""    for (int i = 0; i < CHUNKS; i++) {
      expect_chunk(s, j, i, true);
""","""    for (int i = CHUNKS - 1; i >= 0; i--) {
      expect_chunk(s, j, i, true);
""")
rep("for (int i = k == 0 ? 0 : FREE_CHUNKS; TERMS == 2 && i < CHUNKS; i++) fetch_low_chunk(s, job, 0, i);","for (int i = k == 0 ? CHUNKS - 1 : FREE_CHUNK - 1; TERMS == 2 && i >= 0; i--) fetch_low_chunk(s, job, 0, i);")
open('w4.py','w').write(t)
