import sys,re
src,num,name,doc=sys.argv[1:5]
s=open(src).read()
d0=s[s.index('"""')+3:]; d0=d0[:d0.index('\n"""\n')]
s=s.replace(d0,open(doc).read().strip())
s=s.replace('n1024_v110',f'n1024_v{num}')
# indent the loop
i=s.index("        for (;;) {\n")+len("        for (;;) {\n"); j=s.index("        stop = guarded;  // again, with fewer columns\n        }\n")
body=s[i:j].split('\n')
body=['  '+l if l and not l.startswith('#') else l for l in body]
s=s[:i]+'\n'.join(body)+"          stop = guarded;  // again, with fewer columns\n        }\n"+s[j+len("        stop = guarded;  // again, with fewer columns\n        }\n"):]
s=s.replace("          uint32_t m_hi[2][4], m_lo[2][4];\n            float2 x","            uint32_t m_hi[2][4], m_lo[2][4];\n            float2 x")
s=s.replace("              uint32_t m_hi[2][4], m_lo[2][4];\n            float2 x[2][2];","            uint32_t m_hi[2][4], m_lo[2][4];\n            float2 x[2][2];")
s=s.replace("// tau[32] of a pass, stop, barriers, norms[32]","// tau[32] of a pass, stop, barriers, norms[64]")
s=s.replace("(sm + K::O_MISC + 384);  // of P's columns","(sm + K::O_MISC + 384);  // of P's columns, then 1 / the scales of M's")
assert 'stream' not in s.lower()
for l in s.split('\n'):
    if len(l)>210 and '"+f"' not in l: print('long',len(l),l[:90])
out=f'/work/main/submissions/v{num}_n1024_{name}.py'
open(out,'w').write(s); compile(s,out,'exec'); print(out,len(s),s.count('\n'))
