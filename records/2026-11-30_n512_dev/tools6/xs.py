# inside the panel only the first 32 reflectors: half of W's and the update's products are left out, by branches in the assembler's text
W64='''// The first 32 columns only, or all.
template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_64(float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], float (&d4)[4], float (&d5)[4],
                     float (&d6)[4], float (&d7)[4], const uint32_t (&a)[4], uint32_t b, bool all) {
  asm volatile(
      "{.reg .b64 d; .reg .pred p; mov.b64 d,{%36,%37}; setp.ne.u32 p,%39,0; @!p bra HALF;\\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31},{%32,%33,%34,%35},d,1,1,1,%38; bra DONE;\\n"
      "HALF: wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%32,%33,%34,%35},d,1,1,1,%38;\\n DONE: }"
      : ACC4(d0), ACC4(d1), ACC4(d2), ACC4(d3), ACC4(d4), ACC4(d5), ACC4(d6), ACC4(d7)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(N_STRIDE >> 4), "n"(TRANSPOSED), "r"((int)all));
}
'''
W32='''// Two products, or none.
template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_32_if(bool on, float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], const uint32_t (&a)[4], const uint32_t (&a2)[4],
                        uint32_t b, uint32_t b2) {
  asm volatile(
      "{.reg .b64 d,e; .reg .pred p; setp.ne.u32 p,%28,0; @!p bra DONE;\\n mov.b64 d,{%24,%26}; mov.b64 e,{%25,%26};"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19},d,1,1,1,%27;"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15},{%20,%21,%22,%23},e,1,1,1,%27;\\n DONE: }"
      : ACC4(d0), ACC4(d1), ACC4(d2), ACC4(d3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a2[0]), "r"(a2[1]), "r"(a2[2]), "r"(a2[3]), "r"(b), "r"(b2),
        "n"(N_STRIDE >> 4), "n"(TRANSPOSED), "r"((int)on));
}
'''
def upd(b):
    i=b.b.index('template <int TRANSPOSED, int N_STRIDE>\nDEVICE void wgmma_32('); j=b.b.index('#endif',i)
    b.b=b.b[:j]+W32+b.b[j:]
    b.rep('''        for (int st = 0; st < 4; st++) {
          wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], v_rows + 8 * quad * 64 + st * 16);
        }
''','''        for (int st = 0; st < 2; st++) {
          wgmma_32<1, 2048>(c[i], c[i + 1], c[i + 2], c[i + 3], wh[st], v_rows + 8 * quad * 64 + st * 16);
        }
        wgmma_32_if<1, 2048>(full, c[i], c[i + 1], c[i + 2], c[i + 3], wh[2], wh[3], v_rows + 8 * quad * 64 + 32, v_rows + 8 * quad * 64 + 48);
''')
def wprod(b):
    i=b.b.index('template <int TRANSPOSED, int N_STRIDE>\nDEVICE void wgmma_32('); 
    b.b=b.b[:i]+W64+b.b[i:]
    b.rep('''w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64);''','''w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64, full);''')
def wait_asm():
    pass
def subtract_text(full=True):
    L=[]
    L.append('''// C^T -= W'^T V^T for all live groups of four own tiles, and one wait: C's registers are different ones, so nothing has to be waited for between.
// `all` false: only the first 32 reflectors. The branches are the assembler's: around products of the compiler's it would serialise them.
DEVICE void wgmma_update(Panel& c, const uint32_t (&a)[4][4], uint32_t v, int quad0, bool all) {
#define QUAD(q, next, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15) \\
  "setp.gt.s32 p,%145," #q "; @p bra " #next ";\\n" \\''')
    return L
def upd_all(b):
    t='''// C^T -= W'^T V^T for all live groups of four own tiles with one wait: each has registers of its own. `all` false: only the first 32 reflectors.
// The branches are the assembler's: ptxas serialises products with the compiler's between them.
DEVICE void wgmma_update(Panel& c, const uint32_t (&a)[4][4], uint32_t v, int quad0, bool all) {
  asm volatile(
      "{.reg .pred p,f; .reg .b64 d; .reg .b32 x; setp.ne.u32 f,%146,0; wgmma.fence.sync.aligned;\\n"
'''
    for q in range(8):
        acc=','.join('%%%d'%(16*q+i) for i in range(16))
        t+='      "setp.gt.s32 p,%%145,%d; @p bra Q%d;\\n"\n'%(q,q+1)
        for st in range(4):
            if st==2: t+='      "@!f bra Q%d;\\n"\n'%(q+1)
            t+='      "add.u32 x,%%144,%d; mov.b64 d,{x,128}; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "\n'%(512*q+16*st)
            t+='      "{%s},{%s},d,1,1,1,1;\\n"\n'%(acc,','.join('%%%d'%(128+4*st+z) for z in range(4)))
        t+='      "Q%d:\\n"\n'%(q+1)
    t+='      "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}"\n      : '
    t+=',\n        '.join(', '.join('ACC4(c[%d])'%(4*q+i) for i in range(4)) for q in range(8))
    t+='\n      : '+',\n        '.join(', '.join('"r"(a[%d][%d])'%(st,z) for z in range(4)) for st in range(4))+', "r"(v), "r"(quad0), "r"((int)all));\n}\n'
    i=b.b.index("struct Part { int window"); 
    b.b=b.b[:i]+'#if WARPGROUP_MMA\n'+t+'#endif\n\n'+b.b[i:]
    i=b.b.index('    const uint32_t v_rows = tile_descriptor(tiles, 128);'); j=b.b.index('#else',i)
    b.b=b.b[:i]+'''    wgmma_update(c, wh, tile_descriptor(tiles, 128), quad0, full);
'''+b.b[j:]
# W' low terms only where they are wanted
def lo(b):
    b.rep('''      const float x = on ? -d[u][e] : 0.f, y = on ? -d[u][e + 1] : 0.f;
      split(x, y, hi[pair][z], lo[pair][z]);
''','''      const float x = on ? -d[u][e] : 0.f, y = on ? -d[u][e + 1] : 0.f;
      hi[pair][z] = pack_half2(x, y);
      if (two_w) {
        const float2 f = unpack_half2(hi[pair][z]);
        lo[pair][z] = pack_half2(x - f.x, y - f.y);
      }
''')
def lo2(b):
    b.rep('''      const float x = on ? -d[u][e] : 0.f, y = on ? -d[u][e + 1] : 0.f;
      split(x, y, hi[pair][z], lo[pair][z]);
    }
''','''      d[u][e] = on ? -d[u][e] : 0.f;
      d[u][e + 1] = on ? -d[u][e + 1] : 0.f;
      hi[pair][z] = pack_half2(d[u][e], d[u][e + 1]);
    }
''')
    b.rep('''    if (two_w) x_change.operand[1][me.ws][st][me.lane] = {''','''    if (two_w) {
#pragma unroll
      for (int z = 0; z < 4; z++) {
        const float2 f = unpack_half2(hi[pair][z]);
        lo[pair][z] = pack_half2(d[2 * pair + (z >> 1)][2 * (z & 1)] - f.x, d[2 * pair + (z >> 1)][2 * (z & 1) + 1] - f.y);
      }
      x_change.operand[1][me.ws][st][me.lane] = {''')
    b.rep('''lo[pair][0], lo[pair][1], lo[pair][2], lo[pair][3]};
  }
''','''lo[pair][0], lo[pair][1], lo[pair][2], lo[pair][3]};
    }
  }
''')
def w_all(b, ahead=1, low=True):
    t='''// W^T += C^T V for all live groups of four own tiles: while one is multiplied the next one is rounded. `low`: the low terms of C instead.
// `all` false: only the first 32 reflectors.
DEVICE void wgmma_w(float (&w)[GROUPS][4], Panel& c, uint32_t v, int quad0, bool all, bool low) {
  asm volatile(
      "{.reg .pred p,f,l; .reg .b64 d; .reg .b32 x; .reg .b32 a<64>; .reg .b16 h<2>; .reg .f32 y<2>; setp.ne.u32 f,%162,0; setp.eq.u32 l,%163,0;\\n"
'''
    W='{'+','.join('%%%d'%i for i in range(32))+'}'; W2='{'+','.join('%%%d'%i for i in range(16))+'}'
    for q in range(8):
        t+='      "setp.gt.s32 p,%%161,%d; @p bra W%d;\\n"\n'%(q,q+1)
        def C(z,k): return 32+16*q+4*(z>>1)+2*(z&1)+k
        for z in range(8):
            t+='      "cvt.rn.f16x2.f32 a%d,%%%d,%%%d;"\n'%(8*q+z,C(z,1),C(z,0))
        t+='      "@l bra L%d;\\n"\n'%q
        for z in range(8):
            t+='      "mov.b32 {h0,h1},a%d; cvt.f32.f16 y0,h0; cvt.f32.f16 y1,h1; sub.f32 y0,%%%d,y0; sub.f32 y1,%%%d,y1; cvt.rn.f16x2.f32 a%d,y1,y0;"\n'%(8*q+z,C(z,0),C(z,1),8*q+z)
        t+='      "L%d: wgmma.fence.sync.aligned; @!f bra H%d;\\n"\n'%(q,q)
        for half,acc,n in ((0,W,64),(1,W2,32)):
            if half: t+='      "bra D%d;\\n H%d: "\n'%(q,q)
            for u in range(2):
                t+='      "add.u32 x,%%160,%d; mov.b64 d,{x,8}; wgmma.mma_async.sync.aligned.m64n%dk16.f32.f16.f16 "\n'%((8*q+4*u)*64,n)
                t+='      "%s,{%s},d,1,1,1,0;\\n"\n'%(acc,','.join('a%d'%(8*q+4*u+z) for z in range(4)))
        t+='      "D%d: wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned %d;\\n"\n'%(q,ahead)
        t+='      "W%d:\\n"\n'%(q+1)
    t+='      "wgmma.wait_group.sync.aligned 0;}"\n      : '
    t+=', '.join('ACC4(w[%d])'%i for i in range(8))+',\n        '
    t+=',\n        '.join(', '.join('ACC4(c[%d])'%(4*q+i) for i in range(4)) for q in range(8))
    t+='\n      : "r"(v), "r"(quad0), "r"((int)all), "r"((int)low));\n}\n'
    if not low:
        import re
    i=b.b.index("struct Part { int window"); 
    b.b=b.b[:i]+'#if WARPGROUP_MMA\n'+t+'#endif\n\n'+b.b[i:]
    i=b.b.index('    const uint32_t v_tiles = tile_descriptor(tiles, 2048);'); j=b.b.index('#else',i)
    b.b=b.b[:i]+'''    wgmma_w(w, c, tile_descriptor(tiles, 2048), quad0, full, pass == 1);
'''+b.b[j:]
def w_all0(b): w_all(b,0)
def w32(b, skip=False):
    t='''// The same as two products of N = 32, one behind the other.
template <int TRANSPOSED, int N_STRIDE>
DEVICE void wgmma_64_by_32(float (&d0)[4], float (&d1)[4], float (&d2)[4], float (&d3)[4], float (&d4)[4], float (&d5)[4],
                           float (&d6)[4], float (&d7)[4], const uint32_t (&a)[4], uint32_t b%s) {
  asm volatile(
      "{.reg .b64 d,e; %smov.b64 d,{%%36,%%38}; mov.b64 e,{%%37,%%38};"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%%0,%%1,%%2,%%3,%%4,%%5,%%6,%%7,%%8,%%9,%%10,%%11,%%12,%%13,%%14,%%15},{%%32,%%33,%%34,%%35},d,1,1,1,%%39;%s"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%%16,%%17,%%18,%%19,%%20,%%21,%%22,%%23,%%24,%%25,%%26,%%27,%%28,%%29,%%30,%%31},{%%32,%%33,%%34,%%35},e,1,1,1,%%39;%s}"
      : ACC4(d0), ACC4(d1), ACC4(d2), ACC4(d3), ACC4(d4), ACC4(d5), ACC4(d6), ACC4(d7)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(b + 4 * N_STRIDE / 16), "n"(N_STRIDE >> 4), "n"(TRANSPOSED)%s);
}
'''%((', bool all','.reg .pred p; setp.ne.u32 p,%40,0; ',' @!p bra DONE;\\n','\\n DONE: ',', "r"((int)all)') if skip else ('','','','',''))
    i=b.b.index('template <int TRANSPOSED, int N_STRIDE>\nDEVICE void wgmma_32('); b.b=b.b[:i]+t+b.b[i:]
    b.rep('''          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64''','''          wgmma_64_by_32<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], a[u], v_tiles + (8 * quad + 4 * u) * 64'''+(', full' if skip else ''))
def w32s(b): w32(b,True)
