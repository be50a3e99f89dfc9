import sys,re,subprocess
B='/tmp/v0/lib/python3.11/site-packages/triton/backends/nvidia/bin/'
def load(so,fn):
    t=subprocess.run([B+'cuobjdump','-sass','-fun',fn,so],capture_output=True,text=True).stdout if fn else subprocess.run([B+'cuobjdump','-sass',so],capture_output=True,text=True).stdout
    out=[];lines=t.split('\n');i=0
    while i<len(lines):
        m=re.match(r'\s+/\*([0-9a-f]{4,})\*/\s+(.*?);\s+/\* 0x([0-9a-f]{16}) \*/',lines[i])
        if m:
            m2=re.match(r'\s+/\* 0x([0-9a-f]{16}) \*/',lines[i+1]); hi=int(m2.group(1),16)
            c=hi>>41
            out.append((int(m.group(1),16),m.group(2),dict(stall=c&15,y=(c>>4)&1,w=(c>>5)&7,r=(c>>8)&7,wait=(c>>11)&63)))
            i+=2
        else: i+=1
    return out
if __name__=='__main__':
    P=load(sys.argv[1],sys.argv[2] if len(sys.argv)>2 and sys.argv[2]!='-' else None)
    a,b=int(sys.argv[3],16),int(sys.argv[4],16)
    for x,t,c in P:
        if a<=x<=b: print(f"{x:05x} s{c['stall']:2d} {'y' if not c['y'] else ' '} w{c['w'] if c['w']<7 else '-'} r{c['r'] if c['r']<7 else '-'} m{c['wait']:06b} {t}")
