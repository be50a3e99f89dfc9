# strips of 64 columns for pairs as well
sub('static constexpr int C = TERMS * 16384, STAGE = C + 32768, DEPTH = TWO ? 3 : 4;','static constexpr int C = TERMS * 16384, STAGE = C + 16384, DEPTH = TWO ? 4 : 6;')
sub('  // V^T in blocks of 64 x 64, its second term, C in blocks of 32 columns (two where there is one panel)\n','  // V^T in blocks of 64 x 64, its second term, C in two blocks of 32 columns\n')
sub(' // (a pair goes to two panels, whose numbers go up together)','')
i=t.index('        mbar_expect(bar, blocks * (TERMS * 8192 + 16384));'); j=t.index('      if (pass) break;',i)
t=t[:i]+'''        mbar_expect(bar, blocks * TERMS * 8192 + 16384);
        ROLL for (int b = 0; b < blocks; b++)
          UNROLL for (int low = 0; low < TERMS; low++)
            tensor_load(to + low * 16384 + b * 8192, &maps.v, row, low * p.batch * n + y + 64 * b, bar);
        UNROLL for (int h = 0; h < 2; h++)
          tensor_load(to + L::C + h * 8192, r0 ? &maps.h : &maps.a, task.column + 32 * h, (int)task.mat * n + row, bar);
      }
'''+t[j:]
i=t.index('      if (blocks == 1) {\n        wait_free();'); j=t.index('      mbar_wait_cta(s + L::READY, ready);',i)
t=t[:i]+'''      wait_free();
      mbar_arrive(s + L::CLEAR);
      if (blocks == 2) {
        poll(p.coupled + task.mat * (n / 128) + r0 / 128, 1);
        fence_global();
        load_t(s + L::S, pair_s(p, task.mat, r0 / 128), 1, s + L::BAR_S); // where the first stage is
      }
'''+t[j:]
sub('      ROLL for (int h = 0; h < (task.single ? 2 : 4); h++)\n','      UNROLL for (int h = 0; h < 2; h++)\n')
sub('mbar_arrive(s + L::FREE + 8 * stage, task.single ? 4 : 8);','mbar_arrive(s + L::FREE + 8 * stage, 4);')
i=t.index('      int *made = p.applied + task.mat * (n / 64) + task.panel;\n      add_release(made, 1);'); j=t.index('    }\n',i)
t=t[:i]+'      add_release(p.applied + task.mat * (n / 64) + task.panel, 1);\n'+t[j:]
sub('== 2 * task.parts - 1) {\n      add_release(p.applied + task.mat * (n / 64) + task.panel, 1);\n    }\n','== 2 * task.parts - 1)\n      add_release(p.applied + task.mat * (n / 64) + task.panel, 1);\n')
sub('One panel: to 64 columns, the warpgroups take turns. A pair: to 128 columns, 64 for each warpgroup.','The warpgroups take turns at the chunks.')
sub('  constexpr bool PAIR = K == 128;\n','')
sub(', mine = cbase + (PAIR ? 64 * wg : 0), c_mine = L::C + (PAIR ? 16384 * wg : 0), all',', all')
t=t.replace('p.colmax + mat * n + mine;','p.colmax + mat * n + cbase;').replace('even = c_mine + ','even = L::C + ').replace('odd = c_mine + ','odd = L::C + ')
sub('  // all chunks (in pass 2 the last first), or every other one: f(stage, its number). The other','  // every other chunk (in pass 2 the last first): f(stage, its number). The other')
sub('      if (PAIR || (v & 1) == wg) f(','      if ((v & 1) == wg) f(')
sub('  constexpr int H = PAIR ? 8 * KB : 4 * KB; // float4 of W that this thread adds up over the parts\n','  constexpr int H = 4 * KB; // float4 of W that this thread adds up: half of the warpgroup\'s\n')
i=t.index('  if (!PAIR) { // each warpgroup adds up half of W\n'); j=t.index('  if (parts > 1) {\n    const int gang',i)
x=t[i:j]; x=x.replace('  if (!PAIR) { // each warpgroup adds up half of W\n','').rstrip(); assert x.endswith('}'); x=x[:-1].rstrip()+'\n'; x='\n'.join(l[2:] if l.startswith('    ') else l for l in x.split('\n'))
t=t[:i]+x+t[j:]
t=t.replace('+ mine / 64; // what updates','+ cbase / 64; // what updates')
sub('(PAIR ? 0 : wg * H * 128)','wg * H * 128'); sub('= PAIR ? piece(i) : half[i];','= half[i];')
sub('''    if (PAIR)
      UNROLL for (int i = 0; i < H; i++) set_piece(i, half[i]);
''','')
i=t.index('  if (!PAIR) {\n    UNROLL for (int i = 0; i < H; i++) buf[(2 * H'); j=t.index("  // ---- -W'^T by blocks of 64",i)
t=t[:i]+'''  UNROLL for (int i = 0; i < H; i++) buf[(2 * H + wg * H + i) * 128 + t128] = half[i];
  block_sync<256>();
  UNROLL for (int i = 0; i < 2 * H; i++) set_piece(i, buf[(2 * H + i) * 128 + t128]);
'''+t[j:]
sub('mbar_arrive(s + L::OUT + 8 * number, PAIR ? 1 : 2);','mbar_arrive(s + L::OUT + 8 * number);')
sub('      mbar_init(s + StripSmem::OUT + 8 * i, 8);','      mbar_init(s + StripSmem::OUT + 8 * i, 4); // those of a warpgroup')
sub('else if (u < far && !(i & 1) && 2 * i + 1 < due','else if (u < far && 2 * i + 1 < due')
sub('      if (!near) x.claimed[c + 1]++;\n','')
sub('part < parts - 1 ? 0 : near ? 1 : 2, (n - 64.f * top) * (near ? TERMS * 256 + 768 : TERMS * 512 + 1536) / parts);','part == parts - 1, (n - 64.f * top) * (TERMS * (near ? 256 : 512) + 768) / parts);')
assert 'PAIR' not in t, re.findall(r'.*PAIR.*',t)
