import sys
src,out=sys.argv[1:3]
s=open(src).read()
def rep(a,b,n=1):
    global s
    assert s.count(a)==n,(s.count(a),a); s=s.replace(a,b)
i=s.index('"""v110'); j=s.index('Algorithm  panels')
s=s[:i]+'"""v129 n1024 a seventh less code: v110 whose panel stays where it is when a pass is a part of a sub-panel only.\n\n'+s[j:]
rep("Parent     v99_n1024_sums_in_registers; two terms as in v104_n1024_one_or_two_terms","Parent     v110_n1024_terms_of_v99")
i=s.index("One source, compiled for one term and for two"); j=s.index("  V     its low term takes L's place")
s=s[:i]+"""What is new: 6,208 instead of 7,352 instructions (two terms: 7,152 instead of 8,512).
  restart  a pass over a part of a sub-panel leaves the other columns in their registers, in fp32. v110 cleared them and brought
           them back from H, L and memory (830 instructions, run once a matrix); the three warps of the recurrence, which need
           the registers, put both halves away while the Gram matrix is exchanged
  load     input that cannot come by tensor copies (n other than 768, 1024 and 1536) goes to the same places word by word
  Gram     X and X' both to shared memory, so that Cholesky begins with 16 wide loads instead of 64
  top      the sum that waits for y_0 last takes y_0 last
  W        what warpgroups hand to one another lies by the difference of their numbers: an address is the thread's own, two bits flipped

One source, compiled for one term and for two (FP16_TERMS), side by side. TWO_TERMS_TO = 1536 makes the file one of the FP32
class. What two terms add:
"""+s[j:]
s=s.replace("n1024_v110","n1024_v129")
open(out,'w').write(s)
