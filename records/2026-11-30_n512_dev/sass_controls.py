import re,sys
# annotated listing of the EXACT kernel: index, stall, wr, rd, wait
L=open(sys.argv[1]).read().split('\n'); want=sys.argv[2]
f=None; out=[]; pend=None
for l in L:
    m=re.search(r'Function : (\S+)',l)
    if m: f=m.group(1)
    if f is None or want not in f: continue
    m=re.match(r'\s+/\*([0-9a-f]+)\*/\s+(.*?);?\s+/\* 0x([0-9a-f]+) \*/',l)
    if m: pend=(m.group(1),m.group(2)); continue
    m=re.match(r'\s+/\* 0x([0-9a-f]+) \*/',l)
    if m and pend:
        hi=int(m.group(1),16); st=(hi>>41)&15; wr=(hi>>46)&7; rd=(hi>>49)&7; w=(hi>>52)&63
        out.append(f"{pend[0]} s{st:2d} w{wr if wr!=7 else '-'} r{rd if rd!=7 else '-'} q{''.join(str(i) for i in range(6) if w>>i&1):6s} {pend[1]}"); pend=None
print(len(out)); open(sys.argv[3],'w').write('\n'.join(out))
