import sys
src=open('mk3.py').read().rsplit("if __name__",1)[0]
exec(src)
i=s.index("          if (s == 1) {  // in place of P'C"); 
rep("          if (s == 1) {  // in place of P'C: V1'V1, V1 the other sub-panel\n","          if (s == 0) {\n            put_sums<K>(x, sm, me);\n          } else {  // in place of P'C: V1'V1, V1 the other sub-panel\n            put_half_sums<K, 0>(x, sm, me);\n")
i=s.index("            product(false);\n#pragma unroll\n            for (int i = 0; i < 16; i++)\n              if (i & 2)"); j=s.index("        __syncthreads();\n        float4 own")
s=s[:i]+"""            product(false);
            put_half_sums<K, 1>(y, sm, me);
          }
        }
"""+s[j:]
rep("""template <class K>
DEVICE float4 send_sums(""","""template <class K, int HALF>
DEVICE void put_half_sums(const float (&w)[16], unsigned char* sm, const Lane& me) {
  float2* partial = reinterpret_cast<float2*>(sm + K::O_PARTIAL) + 2 * (me.group * 512 + me.cg * 128 + me.lane) + HALF;
#pragma unroll
  for (int ct = 0; ct < 4; ct++) partial[(ct & 1) * 64 + ((ct & 2) ^ (me.group & 1) * 2) * 64] = make_float2(w[4 * ct + 2 * HALF], w[4 * ct + 2 * HALF + 1]);
}
template <class K>
DEVICE float4 send_sums(""")
if __name__=='__main__': open(sys.argv[1],'w').write(s)
