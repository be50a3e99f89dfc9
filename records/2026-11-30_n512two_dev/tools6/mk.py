# mk.py OUT FLAGS(d/m/s, 1 for FP32) patches...
import sys
from lib import B
import tr
import os
b=B(os.environ.get('BASE','base.cu')); out=sys.argv[1]; fl=sys.argv[2]
for p in sys.argv[3:]:
    m=__import__('p'+p); getattr(m,p)(b)
if 'PLAN\n' in b.b:
    import pcut, ppers
    b.rep('PLAN\n',ppers.PLAN_FREE if 'pers' in sys.argv else pcut.PLAN_FREE)
    b.rep('& PART_DONE)) short_sleep();','& PART_DONE)) { static int spin = 0; if (spin++ > 100) __trap(); short_sleep(); }' if 0 else '& PART_DONE)) short_sleep();')
    b.b+='''
extern "C" void n512_plan(int cuts, const unsigned char* at) { n512::test_plan.cuts = cuts; for (int i = 0; i < cuts; i++) n512::test_plan.at[i] = at[i]; }
'''
tr.dev(b)
if 'm' in fl: tr.marks(b)
if 's' in fl: tr.stagger(b)
if '1' in fl: b.rep('constexpr bool FP32_CLASS = false','constexpr bool FP32_CLASS = true')
b.save(out)
