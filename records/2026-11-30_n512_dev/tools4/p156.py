from lib import B as BB
def tone(b):
    b.rep('''        mma_fp16(rest[u], hi[st], t.z, t.w);
        if (TWO) mma_fp16(rest[u], lo[st], t.x, t.y);''','''        if (TWO) mma_fp16(rest[u], hi[st], t.z, t.w);
        if (TWO) mma_fp16(rest[u], lo[st], t.x, t.y);''')
    b.rep('two_w = again || 2.f * error > allowed','two_w = again || 2.25f * error > allowed')
for a,o in ((147,156),(154,157)):
    b=BB('body%d.cuh'%a); tone(b); b.save('body%d.cuh'%o)
