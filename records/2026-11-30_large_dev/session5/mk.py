import sys,re
t=open('/tmp/large_5/base_e.py').read()
def sub(o,n,c=1):
    global t
    assert t.count(o)==c,(t.count(o),o); t=t.replace(o,n)
OPT=set(sys.argv[3:])  # consume fence writer panel rec terms1
TERMS=1
sub('constexpr int TERMS = 2;','constexpr int TERMS = %d;'%(2 if 'two' in OPT else 1))
# ---- the ninth warp
if 'consume' in OPT and 'store' not in OPT:
    sub('''    wg_wait();
    done();
    float *to = dst + (size_t)(t * 64 + 2 * q) * n + column;
    UNROLL for (int nt = 0; nt < 8; nt++)
      UNROLL for (int e = 0; e < 2; e++)
        *(float2 *)(to + (size_t)(nt * 8 + e) * n) = make_float2(fmaf(us0, d[4 * nt + e], x[nt][e].x), fmaf(us1, d[4 * nt + 2 + e], x[nt][e].y));
''','''    wg_wait();
    UNROLL for (int nt = 0; nt < 8; nt++) // before the stage goes back: what is not used yet may not have been read yet
      UNROLL for (int e = 0; e < 2; e++)
        x[nt][e] = make_float2(fmaf(us0, d[4 * nt + e], x[nt][e].x), fmaf(us1, d[4 * nt + 2 + e], x[nt][e].y));
    done();
    float *to = dst + (size_t)(t * 64 + 2 * q) * n + column;
    UNROLL for (int nt = 0; nt < 8; nt++)
      UNROLL for (int e = 0; e < 2; e++) *(float2 *)(to + (size_t)(nt * 8 + e) * n) = x[nt][e];
''')
if 'fence' in OPT and 'store' not in OPT:
    sub('''        __syncwarp();
        if (lane == 0) mbar_arrive(bars''','''        fence_shared(); // reads of C before the copies that will overwrite it
        __syncwarp();
        if (lane == 0) mbar_arrive(bars''')
if 'writer' in OPT:
    sub('''      if (task.coupling) fence_shared();
      block_sync<256>();
''','''      if (task.coupling) fence_shared();
      fence_global(); // H and S^T, for the copies of others
      block_sync<256>();
''')
if 'panel' in OPT:
    exec(open('/tmp/large_5/mk_panel.py').read())
if 'rec' in OPT:
    exec(open('/tmp/large_5/mk_rec.py').read())
if 'rec2' in OPT: exec(open('/tmp/large_5/mk_rec2.py').read())
if 'store' in OPT: exec(open('/tmp/large_5/mk_store.py').read())
if 'list' in OPT: exec(open('/tmp/large_5/mk_list.py').read())
if 'wide' in OPT: exec(open('/tmp/large_5/mk_wide.py').read())
if 'store' in OPT: t=t.replace('  // chunks wg, wg + 2, .. (the last first, if `up`); f(t, stage)\n','').replace("  // chunks wg, wg + 2, .. of this CTA's (the last first, if `up`); f(t, stage)\n",'')
if 'p7' in OPT: exec(open('/tmp/large_5/mk_p7.py').read())
if 'far0' in OPT: exec(open('/tmp/large_5/mk_far0.py').read())
if 'far' in OPT: exec(open('/tmp/large_5/mk_far.py').read())
if 'p9' in OPT: exec(open('/tmp/large_5/mk_p9.py').read())
if 'p9b' in OPT: exec(open('/tmp/large_5/mk_p9b.py').read())
if 'p10' in OPT: exec(open('/tmp/large_5/mk_p10.py').read())
if 'narrow' in OPT: exec(open('/tmp/large_5/mk_narrow.py').read())
if 'p11' in OPT: exec(open('/tmp/large_5/mk_p11.py').read())
if 'p12' in OPT: exec(open('/tmp/large_5/mk_p12.py').read())
if 'clean_a' in OPT: DOC=open('/tmp/large_5/doc125.txt').read().rstrip('\n'); exec(open('/tmp/large_5/mk_clean_a.py').read())
if 'cleann' in OPT: DOC=open('/tmp/large_5/doc126.txt').read().rstrip('\n'); exec(open('/tmp/large_5/mk_cleann.py').read())
if 'clean' in OPT: DOC=open('/tmp/large_5/doc126.txt').read().rstrip('\n'); exec(open('/tmp/large_5/mk_clean.py').read())
name=sys.argv[2]
t=re.sub(r'"qrkit_large_\w+"','"qrkit_large_'+name+'"',t)
open(sys.argv[1],'w').write(t)
