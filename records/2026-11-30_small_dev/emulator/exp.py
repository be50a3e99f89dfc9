"""exp.py IN OUT: CUDA with lag and first helped group set at run time (set_help)"""
import sys
s=open(sys.argv[1]).read()
def rep(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a); s=s.replace(a,b)
rep('batch, early, helped; };','batch, early, helped, lag; };')
rep('return k - LAG;','return k - p.lag;')
rep('args.helped = min(LAG + 3, r.steps);','{ args.lag = g_lag; args.helped = g_helped < r.steps ? g_helped : r.steps; }')
i=s.index('constexpr int LAG = '); j=s.index('\n',i); s=s[:j]+'\nstatic int g_lag = 8, g_helped = 11;'+s[j:]
rep('batch, 0, 0}','batch, 0, 0, 8}')
i=s.index('"""\n\nSMALL_BINDING')
s=s[:i]+'extern "C" void set_help(int lag, int helped) { qr_small::g_lag = lag; qr_small::g_helped = helped; }\n'+s[i:]
s=s[s.index('SMALL_CUDA = r"""')+17:]; s=s[:s.index('"""')]
open(sys.argv[2],'w').write(s)
