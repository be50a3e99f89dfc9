# pass 1: the next chunk is read beside the product (on a)
i=t.index('  pass([&](uint32_t stage, int number) {\n    const char *c = sm + (stage - s);\n    uint32_t high[4][4]'); j=t.index('  block_sync<256>();\n',i)
t=t[:i]+'''  uint32_t free = 0; // barrier of the stage whose product may still run
  auto finish = [&] {
    wg_wait();
    fence_shared(); // C has been read
    __syncwarp();
    if (free && lane == 0) mbar_arrive(free);
  };
  uint32_t high[4][4], low[4][4];
  pass([&](uint32_t stage, int number) {
    const char *c = sm + (stage - s);
    float2 x[4][2], y[4][2]; // rows 2q, 2q + 1
    UNROLL for (int ks = 0; ks < 4; ks++)
      UNROLL for (int h = 0; h < 2; h++) {
        x[ks][h] = *(const float2 *)(c + even + (ks * 16 + 8 * h) * 128);
        y[ks][h] = *(const float2 *)(c + odd + (ks * 16 + 8 * h) * 128);
      }
    finish();
    UNROLL for (int ks = 0; ks < 4; ks++)
      UNROLL for (int h = 0; h < 2; h++) {
        split(x[ks][h].x * sc0, y[ks][h].x * sc0, high[ks][2 * h], low[ks][2 * h]);
        split(x[ks][h].y * sc1, y[ks][h].y * sc1, high[ks][2 * h + 1], low[ks][2 * h + 1]);
      }
    wg_fence();
    UNROLL for (int b = 0; b < KB; b++) multiply<true, TWO, TWO>(w[b], high, low, stage + b * 8192, stage + b * 8192 + 16384);
    wg_commit();
    free = s + L::FREE + 8 * number;
  });
  finish();
'''+t[j:]
k=t.index('  uint32_t high[KB][4][4], low[KB][4][4];\n'); 
t=t.replace('  uint32_t high[4][4], low[4][4];\n  pass([&]','  uint32_t ch[4][4], cl[4][4];\n  pass([&]')
i=t.index('  uint32_t ch[4][4]'); j=t.index('  finish();\n',i+1500 if False else i); j=t.index('  });\n  finish();',i)
t=t[:i]+t[i:j].replace('high[ks]','ch[ks]').replace('low[ks]','cl[ks]').replace('(w[b], high, low,','(w[b], ch, cl,')+t[j:]
