# words of the page and what is not used any more
def words(b):
    b.rep('''DEVICE uint32_t transpose_8x8(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(y) : "r"(x));
  return y;
}
''','')
    b.rep('''DEVICE uint32_t twice(uint32_t u) {
  __half2 h = __hadd2(*reinterpret_cast<__half2*>(&u), *reinterpret_cast<__half2*>(&u));
  return *reinterpret_cast<uint32_t*>(&h);
}
''','')
    b.rep('''//         | window_t:         V'V -> tau, T
''','''//         | window_t:         V'V -> tau, T (and T11 V_0'V_1 with the second window); store_t: T as operands
''')
    b.rep('''and rare paths outside. The loop is 100 KB; with 8 KB more the whole kernel was 4 % slower.
''','''and rare paths outside. What goes through shared memory has one queue, and a 16-byte load takes four of its turns even where all
// lanes want the same 16 bytes: small products go to the tensor cores, which need a fraction of the loads.
''')
