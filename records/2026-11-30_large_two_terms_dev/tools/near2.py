import sys
t=open(sys.argv[1]).read()
def sub(o,n,c=1):
    global t
    assert t.count(o)==c,(t.count(o),o[:160]); t=t.replace(o,n)
sub('''// far tasks that the columns of panel c need (pairs of panels before c - 2); its near task is one more
__host__ __device__ constexpr int far_updates(int c) { return c < 4 ? 0 : c / 2 - 1; }
''','''// far tasks that the columns of panel c need (pairs of panels before c - 2), and all: then panel c - 3 (c odd), panel c - 2
__host__ __device__ constexpr int far_updates(int c) { return c < 4 ? 0 : c / 2 - 1; }
__host__ __device__ constexpr int all_updates(int c) { return c < 2 ? 0 : far_updates(c) + 1 + (c & 1); }
''')
sub("far_updates(k) + 1);","all_updates(k));")
sub(">= far_updates(k + 1) + 1);",">= all_updates(k + 1));")
sub("//   near  panel c-2 (c even) or pair (c-3)/2 (c odd)     (panel c-1 is applied by geqr2 itself)\n","//   near  panel c-3 (c odd), then panel c-2              (one by one: no need to wait for S; panel c-1 is applied by geqr2 itself)\n")
sub("    std::vector<int> claimed, applied, near; // far tasks taken; tasks done; is the near task taken?\n","    std::vector<int> claimed, applied; // tasks taken; tasks done\n")
sub("    x.near.assign(panels, 0);\n","")
sub("(x.made < 2 || x.applied[x.made] > far_updates(x.made))","x.applied[x.made] >= all_updates(x.made)")
sub('''          const int q = x.claimed[i];
          if (i <= x.made + 1 && !x.near[i] && x.made >= i - 1 && x.applied[i] >= far_updates(i)) due = 2 * i, mat = b, c = i, near = true;
          else if (q < far_updates(i) && 2 * i + 1 < due && x.applied[i] >= q && x.made >= 2 * q + 2)
            due = 2 * i + 1, mat = b, c = i, near = false;
''','''          const int q = x.claimed[i];
          if (x.applied[i] < q || q == all_updates(i)) continue;
          if (q >= far_updates(i) && x.made >= i - all_updates(i) + q) due = 2 * i, mat = b, c = i, near = true;
          else if (q < far_updates(i) && 2 * i + 1 < due && x.made >= 2 * q + 2) due = 2 * i + 1, mat = b, c = i, near = false;
''')
sub('''      const bool single = near && !(c & 1);
      const int before = near ? far_updates(c) : x.claimed[c]++, top = single ? c - 2 : near ? c - 3 : 2 * before, made = near ? c - 1 : top + 2;
      if (near) x.near[c] = 1;
''','''      const int before = x.claimed[c]++, top = near ? c - 1 - all_updates(c) + before : 2 * before, made = top + (near ? 1 : 2);
''')
t=t.replace("single << 24, c | top","near << 24, c | top").replace("(TERMS * (single ? 256 : 512) + 768)","(TERMS * (near ? 256 : 512) + 768)")
open(sys.argv[2],'w').write(t)
