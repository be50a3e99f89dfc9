# p109.py IN OUT: on top of 108c: inside a panel only the 32 reflectors that exist; V_0'V_1 in two loops; cut in T and W'
import sys, re
b = open(sys.argv[1]).read()
def rep(x, y, n=1):
    global b
    parts = x.split('\n')
    m = list(re.finditer('\n(?://@.*\n)*'.join(re.escape(p) for p in parts), b))
    assert len(m) == n, (len(m), x)
    for q in reversed(m): b = b[:q.start()] + y + b[q.end():]
rep('''        wgmma_fence();
#pragma unroll
        for (int u = 0; u < 2; u++) {
          const uint32_t x = high + (8 * quad + 4 * u) * 64, y = low + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;
          wgmma_64<0, 2048>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], y);
          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], lo[u], x);
          wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], x);
        }
        wgmma_commit();
        wgmma_wait();
''', '''        if (full) {
          wgmma_fence();
#pragma unroll
          for (int u = 0; u < 2; u++) {
            const uint32_t x = high + (8 * quad + 4 * u) * 64, y = low + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;
            wgmma_64<0, 2048>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], y);
            wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], lo[u], x);
            wgmma_64<0, 128>(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], hi[u], x);
          }
          wgmma_commit();
          wgmma_wait();
        } else {
          wgmma_fence();
#pragma unroll
          for (int u = 0; u < 2; u++) {
            const uint32_t x = high + (8 * quad + 4 * u) * 64, y = low + quad / 2 * 1024 + (quad % 2 * 8 + 4 * u) * 8;
            wgmma_32<0, 2048>(w[0], w[1], w[2], w[3], hi[u], y);
            wgmma_32<0, 128>(w[0], w[1], w[2], w[3], lo[u], x);
            wgmma_32<0, 128>(w[0], w[1], w[2], w[3], hi[u], x);
          }
          wgmma_commit();
          wgmma_wait();
        }
''')
i = b.index('    const uint32_t high = tile_descriptor(shared_address(&s.v[0][me.wg][0][0]), 128);')
j = b.index('        wgmma_fence();\n', i); k = b.index('        wgmma_wait();\n', j) + len('        wgmma_wait();\n')
whole = b[j:k]
half = whole.replace('st < 4; st++', 'st < 2; st++').replace('z < 8; z++', 'z < 4; z++').replace('z & 3', 'z & 1').replace('z < 4 ? wl', 'z < 2 ? wl').replace('(st & 1) *', 'st *').replace(' + (st < 2 ? 0u : other)', '')
ind = lambda t: ''.join(l if l.startswith('#') else '  ' + l for l in t.splitlines(True))
b = b[:j] + '        if (full) {\n' + ind(whole) + '        } else {\n' + ind(half) + '        }\n' + b[k:]
# V_0'V_1: what needs V_0's low term last
rep('''      load_matrix(a0, low0 + p_offset(first + tile));
      load_matrix(a1, low0 + p_offset(first + tile + 2));
      mma_fp16(x[0], a0, b[0], b[1]);
      mma_fp16(x[1], a1, b[2], b[3]);
    }
  }
''', '''    }
  }
  if (FP32_CLASS) {
    barrier_wait(&s.low, low_phase);
#pragma unroll 2
    for (int tile = 0; tile < TILES - first; tile += 4) {
      uint32_t a0[4], a1[4], b[4];
      load_matrix(a0, low0 + p_offset(first + tile));
      load_matrix(a1, low0 + p_offset(first + tile + 2));
      load_matrix(b, at1 + tile * 1024);
      mma_fp16(x[0], a0, b[0], b[1]);
      mma_fp16(x[1], a1, b[2], b[3]);
    }
  }
''')
rep('''    barrier_wait(&s.low, low_phase);
    cross_products(s, job, first, sc.tri.n12t, me);
''', '''    cross_products(s, job, first, low_phase, sc.tri.n12t, me);
''')
rep('''cross_products(s, job, first, sc.tri.n12t, me);''', '''cross_products(s, job, first, low_phase, sc.tri.n12t, me);''')
rep('''DEVICE void cross_products(Shared& s, const Job& job, int first, float''', '''DEVICE void cross_products(Shared& s, const Job& job, int first, uint32_t low_phase, float''')
rep('''        split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z], lo[z]);
      } else {
        hi[z] = pack''', '''        FP32_CLASS ? cut(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z], lo[z]) : split(x[(z & 1) * 2], x[(z & 1) * 2 + 1], hi[z], lo[z]);
      } else {
        hi[z] = pack''')
open(sys.argv[2], 'w').write(b)
