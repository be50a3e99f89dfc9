import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
# a copy a lane in half of the lanes of all warps
i=s.index("#pragma unroll 1\n  for (int i = thread; i < 2 * K::QUARTER_ROWS;"); j=s.index("}\ntemplate <class K>\nDEVICE void load_t(",i)
s=s[:i]+"""  static_assert(2 * K::QUARTER_ROWS == K::THREADS / 2, "half of the lanes of every warp");
  if (thread & 16) return;
  const int i = (thread >> 5) * 16 + (thread & 15), q = q0 + i / K::QUARTER_ROWS, at = i % K::QUARTER_ROWS, piece = at >> 2;  // a warpgroup's 16 rows
  const int row = (piece / K::G * K::UNITS + rank * K::G + piece % K::G) * 16 + 4 * q + (at & 3);
  barrier_expect_more(bar, PANEL * 4);
  bulk_load(base + q * K::QUARTER + at * (PANEL * 4), from + (size_t)row * p.n, PANEL * 4, bar);
"""+s[j:]
# W' straight from the warps that make it
i=s.index("      uint2* to = reinterpret_cast<uint2*>(sm + K::O_WOP)"); j=s.index("  const uint4* wop = reinterpret_cast<const uint4*>(sm + K::O_WOP);")
s=s[:i]+"""      const int at = K::O_WOP + (((rank * K::OWNED + own) * 4 + (gt >> 1)) * 32 + me.lane) * 16 + (gt & 1) * 8;
      const uint2 x = make_uint2(pack(-(d_main[0] + d_rest[0]), -(d_main[1] + d_rest[1])), pack(-(d_main[2] + d_rest[2]), -(d_main[3] + d_rest[3])));
      *reinterpret_cast<uint2*>(sm + at) = x;
#pragma unroll
      for (int r = 1; r < K::C; r++) {
        const uint32_t peer = (rank + r) % K::C;
        send(map_address(base + at, peer), make_float2(__uint_as_float(x.x), __uint_as_float(x.y)), map_address(barrier_at<K>(base, WOP_BAR), peer));
      }
    }
  }
  __syncwarp();
  if (me.lane == 0) barrier_arrive(barrier_at<K>(base, WOP_BAR));
MARK(5);
  wait_for<K>(base, WOP_BAR, phase);  // all of W' is here: from the peers, and from this CTA's warps
  if (me.thread == 0 && j + 1 < blocks) load_t<K>(p, base, j + 1);
MARK(6);
"""+s[j:]
rep("for (int i = 0; i < BARRIERS; i++) barrier_init(barrier_at<K>(base_address, i));","for (int i = 0; i < BARRIERS; i++) barrier_init(barrier_at<K>(base_address, i), i == WOP_BAR ? 1 + K::THREADS / 32 : 1);")
open(dst,'w').write(s)
h=open('hw.cuh').read()
if 'uint32_t count' not in h:
    i=h.index("DEVICE void barrier_init("); j=h.index("DEVICE void barrier_init_fence")
    h=h[:i]+'''DEVICE void barrier_init(uint32_t bar, uint32_t count = 1) {
  asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(bar), "r"(count) : "memory");
}
'''+h[j:]
    open('hw.cuh','w').write(h)
e=open('emu.h').read()
if 'int count' not in e or 'barrier_init(uint32_t bar,int count' not in e:
    e=e.replace("static void barrier_init(uint32_t bar){ Mbar m; m.count=1; m.pending=1;","static void barrier_init(uint32_t bar,int count=1){ Mbar m; m.count=count; m.pending=count;"); open('emu.h','w').write(e)
