import re
t=open('m.py').read()
cs=list(re.finditer(r'<<<<<<< a.py\n(.*?)\|\|\|\|\|\|\| o.py\n(.*?)=======\n(.*?)>>>>>>> b.py\n',t,re.S))
out=''; pos=0
for n,m in enumerate(cs):
    a,o,b=m.groups(); out+=t[pos:m.start()]; pos=m.end()
    if n<3 or n>=11: out+=a if n!=11 else a
    elif n==4:  # pass loop
        out+=b.split('#pragma unroll 1\n  for (int term')[0]+'#pragma unroll 1\n'+a
    elif n in (3,): out+=b+a
    else: out+=f'@@A{n}\n'+a+f'@@B{n}\n'+b+f'@@E{n}\n'
out+=t[pos:]
open('r.py','w').write(out)
