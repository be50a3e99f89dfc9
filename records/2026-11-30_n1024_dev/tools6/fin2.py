import sys
src,out,num,title,parent=sys.argv[1:6]
s=open(src).read()
def rep(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a); s=s.replace(a,b)
i=s.index('"""v129'); j=s.index('Algorithm  panels')
s=s[:i]+'"""'+num+' n1024 '+title+'\n\n'+s[j:]
rep("Parent     v110_n1024_terms_of_v99","Parent     "+parent)
i=s.index("What is new: 6,208"); j=s.index("One source, compiled for one term and for two")
new="""What is new:
  Gram     cores of H and L by turns in one tile, so that [H; L]'H takes both operands from shared memory, without ldmatrix
  larfb    C -= V W' loads all of its operands before the first product
  two terms  the panel's products chunk by chunk through one function, H's address by CHUNKS: forms for which ptxas neither moves
           accumulators nor spills (n <= 768: 13 % faster)
"""
if num=='v130':
    new="""What is new:
  writers  CTAs that the matrices leave idle (12 of 132 SMs at 60 x 1024) put V into H under a block's panel, out of the workspace,
           when all warpgroups have counted its arrival there. The matrices' CTAs store R and a panel's own 64 rows only: the
           stores of V were 3 % of the time. One term only, and only where a writer has at most six matrices
"""
s=s[:i]+new+"\n"+s[j:]
rep("  V     its low term takes L's place in stage 1 once L is spent, and leaves","  V     its low term lies in stage 1 once H and L are spent, and leaves")
s=s.replace("n1024_v129","n1024_"+num)
open(out,'w').write(s)
