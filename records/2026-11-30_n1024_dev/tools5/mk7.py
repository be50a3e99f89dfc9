import sys
src=open('mk5.py').read().rsplit("if __name__",1)[0]
exec(src)
rep("          auto operand = [&](int c, int u, uint32_t (&a)[4]) {  // four registers at a time: more would spill\n","          auto operand = [&](int c, int u, uint32_t (&a)[4], float nil = 0.f) {  // four registers at a time: more would spill\n")
rep("a[(z & 1) + (z >> 1) * 2] = pack(acc[c][8 * u + 2 * z], acc[c][8 * u + 2 * z + 1]);\n          };\n          auto low","a[(z & 1) + (z >> 1) * 2] = pack(acc[c][8 * u + 2 * z] + nil, acc[c][8 * u + 2 * z + 1] + nil);\n          };\n          auto low")
rep("                    else operand(c, u, a);","                    else if (c == K::CHUNKS - 1) operand(c, u, a, __int_as_float(p.zero));  // else the compiler would keep these from above, and spill them\n                    else operand(c, u, a);")
if __name__=='__main__': open(sys.argv[1],'w').write(s)
