import sys; sys.path.append("../../2026-11-30_n512two_dev/tools6")  # palone, pcut2, pconst stand there
import palone,pcut2,pconst
PLAN=open('/tmp/n512b/s6/plan.txt').read()
def alone(b): palone.alone(b)
def cut(b):
    pcut2.cut2(b); b.rep('PLAN\n',PLAN)
def const(b): pconst.const(b)
def uni(b):
    b.rep('''const int at = (int)matrix < plan.cuts ? plan.at[matrix] : panels;
''','''const int at = (int)first_lane((int)matrix < plan.cuts ? plan.at[matrix] : panels);  // so that the compiler knows it to be uniform
''')
    b.rep('low_blocks = s.good;','low_blocks = first_lane((uint32_t)s.good);')
def t1(b): # no hand_on in the zero tail
    b.rep('''                if (me.tid == MOVER && job.to < job.panels) hand_on(job, low_blocks, s.largest_sum);
                return;
''','''                return;
''')
def t2(b):
    b.rep('        if (begin > 0) take_over(s, job);\n','')
def t3(b):
    b.rep('''  if (me.tid == MOVER && job.to < job.panels) hand_on(job, low_blocks, s.largest_sum);
''','')
def tail(b):
    b.rep('''              if (zero_tail<EXACT>(job, me)) {
                if (me.tid == MOVER && job.to < job.panels) hand_on(job, low_blocks, s.largest_sum);
                return;
              }
''','''              if (zero_tail<EXACT>(s, job, low_blocks, me)) return;
''')
    b.rep('''NOINLINE bool zero_tail(Job job, Lane me) {''','''NOINLINE bool zero_tail(Shared& s, Job job, uint32_t low_blocks, Lane me) {''')
    b.rep('''  if (me.tid == MOVER) bulk_store_wait();  // no copy may outlive the block
''','''  if (me.tid == MOVER) {
    bulk_store_wait();  // no copy may outlive the block
    if (job.to < job.panels) hand_on(job, low_blocks, s.largest_sum);
  }
''')
    # hand_on before it
    i=b.b.index('// Zero until a first part has left'); j=b.b.index('// The start of a second part. One thread.')
    t=b.b[i:j]; b.b=b.b[:i]+b.b[j:]
    k=b.b.index('// A panel of zeros: if all columns from here'); b.b=b.b[:k]+t+b.b[k:]
