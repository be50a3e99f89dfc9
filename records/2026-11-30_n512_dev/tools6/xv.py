def v1(b): # mover apart
    b.rep('''  } else if (EXACT && cross && whole && me.tid == MOVER) {  // V's place is free once it has been read, P's one as well
    bulk_store_read();
    if (FP32_CLASS) fetch_boxes(s, job, job.k + 1, 0, job.k >> 1, 4);
    fetch_half(s, job, job.k + 1, 1);
  }
}''','''  }
}''')
    b.rep('''  if (!need_t) return;
''','''  if (EXACT && cross && whole && me.tid == MOVER) {  // V's place is free once it has been read, P's one as well
    bulk_store_read();
    if (FP32_CLASS) fetch_boxes(s, job, job.k + 1, 0, job.k >> 1, 4);
    fetch_half(s, job, job.k + 1, 1);
  }
  if (!need_t) return;
''')
def v2(b): # the wgmma products off
    b.rep("      wgmma_tiles<128, 128>(x[0], x[1], x[2], x[3], at + 32, at);\n","")
def v3(b):
    b.rep('''      if (!FP32_CLASS && RARE(s.two_terms)) {
        x.x += sc.tri.n21[2][j][m];
        x.y += sc.tri.n21[2][j][m + 1];
      }
''','')
    i=b.b.index("  if (!FP32_CLASS && h == 1 && s.two_terms) {"); j=b.b.index("  store_products(scratch(s).partial[me.warp], x, me.lane);",i); b.b=b.b[:i]+b.b[j:]
def v4(b):
    b.rep("  if (RARE(!ready)) {\n    products_again","  if (!ready) {\n    products_again")
def v5(b):
    b.rep("bool ready = FP32_CLASS || !s.two_terms;","bool ready = FP32_CLASS || first_lane(s.two_terms) == 0u;")
def v6(b):
    b.rep("  if (!FP32_CLASS && s.two_terms) {\n      low","  if (!FP32_CLASS && s.two_terms) {\n      low")
