# P1: recurrence with three roles (from the n512 helper's e2); P3: T's operands asked for before the barrier
import sys
t=open(sys.argv[1]).read(); e=open('th_e2.cu').read()
def rep(x,y,n=1):
    global t
    assert t.count(x)==n,(t.count(x),x); t=t.replace(x,y)
def sec(t,x,y): i=t.index(x); return t[i:t.index(y,i)]
# P1
a="// From G and the top 32 x 32 of P: R, the top of V,"; b="// Nothing to do in the first step but Cholesky's"
new=sec(e,a,b).replace("DEVICE void recurrence_columns(Window& win, int& trip, int lane) {","DEVICE void recurrence_columns(Window& win, int lane) {")
i=new.index("    // their largest entry, for the sum"); j=new.index("\n",new.index("trip = 1;",i))+1
new=new[:i]+new[j:]
t=t.replace(sec(t,a,b),new)
rep('''  if (me.warp == 1) recurrence_role<0>(win, lane);
  else if (me.warp == 2) recurrence_role<1>(win, lane);
  else if (me.warp == 3) recurrence_role<2>(win, lane);
  else if (me.warp > 3) recurrence_rest(win, me.warp - 4, lane);
''','''  if (me.warp == 1) recurrence_rows(win, lane);
  else if (me.warp == 2) recurrence_columns(win, lane);
  else if (me.warp > 2) recurrence_rest(win, me.warp - 3, lane);
''')
rep("constexpr int THREADS = WARPS * 32;\n","constexpr int THREADS = WARPS * 32;\nconstexpr int REST = WARPS - 3;   // warps without a role in the recurrence\n")
if len(sys.argv)>3:
    x=sec(t,"// W'^T = W^T T as d + rest;","struct Part {")
    t=t.replace(x,'''// W'^T = W^T T as d + rest; the accumulators w are the A operand of it. Each warpgroup does the half of it that costs half: groups
// 0, 1, 6, 7 of reflectors (1 + 1 + 4 + 4 operands of T) and 2 to 5. Operands 0, 1: of the lower groups; 2 .. 7: of the upper ones,
// from three pairs of groups; 8, 9: the fourth one's, or the second one's of the lower groups.
DEVICE void load_t(uint4 (&t)[10], const uint4 (*operands)[32], const Lane& me) {
  const int low = me.wg == 0 ? 0 : 2, high = me.wg == 0 ? 6 : 4;
  const int at[5] = {low, high, 6 + high, 10 + high, me.wg == 0 ? 12 + 6 : 6 + 2};  // st (9 - st) - 2 st + r
#pragma unroll
  for (int i = 0; i < 10; i++) t[i] = operands[at[i >> 1] + (i & 1)][me.lane];
}
template <bool TWO>
DEVICE void apply_t(float (&d)[4][4], float (&rest)[4][4], const uint32_t (&hi)[4][4], const uint32_t (&lo)[4][4],
                    const uint4 (&t)[10], const Lane& me) {
#pragma unroll
  for (int i = 0; i < 10; i += 2) {
#pragma unroll
    for (int own = 0; own < 2; own++) {
      if (i < 8 ? own == 1 : own == me.wg) continue;
      const int st = i < 4 ? 0 : i < 8 ? i / 2 - 1 : own == 0 ? 1 : 3, u = i == 0 || (i == 8 && own == 0) ? 0 : 2;
#pragma unroll
      for (int z = 0; z < 2; z++) mma_fp16(d[u + z], hi[st], t[i + z].x, t[i + z].y);
#pragma unroll
      for (int z = 0; z < 2; z++) mma_fp16(rest[u + z], hi[st], t[i + z].z, t[i + z].w);
#pragma unroll
      for (int z = 0; z < 2; z++) {
        if (TWO) mma_fp16(rest[u + z], lo[st], t[i + z].x, t[i + z].y);
      }
    }
  }
}

''')
    k=t.index("  // The two halves of W meet."); h,b=t[:k],t[k:]
    b=b.replace('''    bar_sync(1 + me.ws, 64);
''','''    load_t(t, s.t[t_stage], me);  // on its way meanwhile
    bar_sync(1 + me.ws, 64);
''',2)
    b=b.replace("  uint32_t hi[GROUPS / 2][4], lo[GROUPS / 2][4];\n","  uint32_t hi[GROUPS / 2][4], lo[GROUPS / 2][4];\n  uint4 t[10];\n",1)
    b=b.replace("apply_t<true>(d, rest, hi, lo, s.t[t_stage], me);","apply_t<true>(d, rest, hi, lo, t, me);",1).replace("apply_t<false>(d, rest, hi, hi, s.t[t_stage], me);","apply_t<false>(d, rest, hi, hi, t, me);",1)
    t=h+b
open(sys.argv[2],'w').write(t)
