# ext.py FILE.py OUT.cu: the CUDA string
import sys
s=open(sys.argv[1]).read(); c=s[s.index('CUDA = r"""')+11:]; open(sys.argv[2],'w').write(c[:c.index('"""\n')])
