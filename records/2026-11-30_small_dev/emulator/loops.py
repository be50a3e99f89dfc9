import sys,re; sys.path.insert(0,__file__.rpartition('/')[0]); from sass import load
from sim import sim,span
so,F=sys.argv[1:3]; P=load(so,F)
L=[]
for a,x,c in P:
    m=re.match(r'(@\S+ )?BRA(?:\.U)?(?:\.ANY)? (?:\S+, )?0x([0-9a-f]+)',x) or re.match(r'(@\S+ )?BRA.*?(0x)?([0-9a-f]+)\)?$',x)
    if m:
        t=int(m.group(m.lastindex),16)
        if t<=a and a-t>16*10: 
            ins=span(P,t,a); s=sum(1 for i in ins if 'MUFU' in i[1]); h=sum(1 for i in ins if 'HMMA' in i[1]);
            print(hex(t),hex(a),len(ins),'mufu',s,'mma',h,'lds',sum(1 for i in ins if re.search(r'LDS|LDSM',i[1])),'sts',sum(1 for i in ins if 'STS' in i[1]),'cycles',sim(ins,3)[2]-sim(ins,3)[1])
