import sys
src,dst=sys.argv[1:3]
s=open(src).read()
def rep(a,b,cnt=1):
    global s
    assert s.count(a)==cnt,(s.count(a),a)
    s=s.replace(a,b)
# first part of T before the panel is waited for
i=s.index("      // T = [T1, -T1 S12 T2; 0, T2] of the last block, while"); j=s.index("        __syncthreads();\n        if (me.thread < 256) small_product<SUB>(y, pw, t2",i)
part=s[i:j]
s=s[:i]+"""      if (k > 0) {
"""+s[j+len("        __syncthreads();\n"):]
rep("      if (staged) {  // on its way since the last pass\n","""      // T = [T1, -T1 S12 T2; 0, T2] of the last block: T1 and T2 while the new panel is on its way, T12 while the columns'
      // largest entries are; pw holds [V1'V2; V2'V2]
      float *t1 = pwp, *t2 = pwp + SUB * LD_SHIFT, *t12 = z.x, *y = z.m;  // not where peers may send W of the first block already
      if (k > 0 && me.thread < 128) {
        const int half = me.warp >> 1;
        form_t_32(half ? t2 : t1, half ? pw + SUB * LD_SHIFT : s1, tau + SUB * half, half ? t12 : y, me.thread & 63, 1 + half);
      }
      if (staged) {  // on its way since the last pass
""")
print(part)
open(dst,'w').write(s)
rep("        if (me.thread == 0) barrier_arrive(barrier_at<K>(base_address, A_BAR));\n        wait_for<K>(base_address, A_BAR","        wait_for<K>(base_address, A_BAR")
rep("      if (k > 0 && me.thread < 128) {\n        const int half","      if (staged && me.thread == 0) barrier_arrive(barrier_at<K>(base_address, A_BAR));\n      if (k > 0 && me.thread < 128) {\n        const int half")
open(dst,'w').write(s)
