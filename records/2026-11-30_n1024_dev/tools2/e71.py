s=open('b71c.cuh').read()
i=s.index("    float4 own[(8 + K::G - 1) / K::G];\n#pragma unroll\n    for (int ct = 0; ct < 8; ct++) {\n      const int adder"); j=s.index("  }\n  locate();\n",i)
def core(group, ind):
    t=f"""    constexpr int SHARE = (8 + K::G - 1) / K::G;
    float4 sum[SHARE];
#pragma unroll
    for (int ct = 0; ct < 8; ct++) {{
      const int adder = ct % K::G;  // its own share a warp keeps
      const float4 x = make_float4(w[4 * ct], w[4 * ct + 1], w[4 * ct + 2], w[4 * ct + 3]);
      if ({group} == adder) sum[ct / K::G] = x;
      else partial[(ct * (K::G - 1) + ({group} < adder ? {group} : {group} - 1)) * 32] = x;
    }}
    named_join(1 + me.cg, 32 * K::G);
#pragma unroll
    for (int i = 0; i < SHARE; i++) {{
      const int ct = {group} + i * K::G;
      if (ct < 8) {{
#pragma unroll
        for (int u = 0; u < K::G - 1; u++) add4(sum[i], partial[(ct * (K::G - 1) + u) * 32]);
        if (owner != (int)rank) {{
          const int slot = column * (K::C - 1) + (rank < owner ? rank : rank - 1);
          send(map_address(base + K::O_INBOX + slot * 4096 + ct * 512 + me.lane * 16, owner), sum[i], map_address(barrier_at<K>(base, INBOX_BAR), owner));
        }}
      }}
    }}
    if (owner == (int)rank) {{
      wait_for<K>(base, INBOX_BAR, turn());
#pragma unroll
      for (int i = 0; i < SHARE; i++) {{
        const int ct = {group} + i * K::G;
        if (ct < 8) {{
          const float4* in = reinterpret_cast<const float4*>(sm + K::O_INBOX) + column * (K::C - 1) * 256 + ct * 32 + me.lane;
#pragma unroll
          for (int r = 0; r < K::C - 1; r++) add4(sum[i], in[r * 256]);
          // split for T's eight warps once
          uint2 hi, lo;
          split_fp16(sum[i].x, sum[i].y, hi.x, lo.x);
          split_fp16(sum[i].z, sum[i].w, hi.y, lo.y);
          uint2* to = reinterpret_cast<uint2*>(sm + K::O_W) + ((column * 8 + (ct >> 1)) * 32 + me.lane) * 2 + (ct & 1);
          to[0] = hi;
          to[256] = lo;
        }}
      }}
    }}
"""
    return t
open('body71.cuh','w').write(s[:i]+core('me.group',0)+s[j:])
v=core('GROUP',0)
v="    // one variant a warpgroup: which registers are its share is then known to the compiler\n    auto sum_and_send = [&](auto G_) {\n    constexpr int GROUP = decltype(G_)::value;\n"+v+"    };\n    switch (me.group) {\n      case 0: sum_and_send(std::integral_constant<int, 0>()); break;\n      case 1: sum_and_send(std::integral_constant<int, 1>()); break;\n      case 2: sum_and_send(std::integral_constant<int, 2>()); break;\n      default: sum_and_send(std::integral_constant<int, K::G - 1>());\n    }\n"
open('body71x.cuh','w').write(s[:i]+v+s[j:])
