import d123,d140
Z=open('d123.py').read()
i=Z.index("''','''// ---------------------------------------------------------------- geqrf\n")+len("''','''"); j=Z.index("''')",i)
ZT=Z[i:j]
def apply(B):
    rep=B.rep
    rep('''    if (me.q == 0 && x > 0.f) {''','''    if (me.q == 0 && x != 0.f) {''')
    rep('''          if (j == 0) {
            sync_all();
          } else if''','''          if (j == 0) {
            sync_all();
            if (RARE(first_lane(s.largest_column) == 0u)) {  // a panel of zeros
              if (zero_tail<EXACT>(s, job, phase, me)) return;
            }
          } else if''')
    rep('''// ---------------------------------------------------------------- geqrf
''',ZT)
    d140.tail(B)
    # here V_0 has already come and its phase has passed
    rep('''  if (job.k > 0) barrier_wait(&s.full[0], phase & 1);  // no copy may outlive the block
  if (me.tid == MOVER) bulk_store_wait();
''','''  if (me.tid == MOVER) bulk_store_wait();  // no copy may outlive the block
''')
    rep('''bool zero_tail(Shared& s, const Job& job, uint32_t phase, const Lane& me)''','''bool zero_tail(const Job& job, const Lane& me)''')
    rep('''zero_tail<EXACT>(s, job, phase, me)''','''zero_tail<EXACT>(job, me)''')
