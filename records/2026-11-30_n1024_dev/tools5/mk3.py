import sys,re
exec(open('mk1.py').read().rsplit("open(sys.argv[1]",1)[0])
rep("O_H = STAGE, O_L = STAGE + STAGE / 2;","O_H = STAGE, O_L = O_H + 512;  // a tile of H's 32 columns, then of L's: together as a tile of V")
s=s.replace("c * 2048 + u * 1024, 512, 128","c * CHUNK_BYTES + u * 2 * TILE_BYTES, TILE_BYTES, 128").replace("c * 2048 + u * 1024 + (K::O_L - K::O_H), 512, 128","c * CHUNK_BYTES + u * 2 * TILE_BYTES + (K::O_L - K::O_H), TILE_BYTES, 128")
s=s.replace("c * 2048 + kk * 256, 128, 512","c * CHUNK_BYTES + kk * 256, 128, TILE_BYTES").replace("c * 2048 + kk * 256 + (K::O_L - K::O_H), 128, 512","c * CHUNK_BYTES + kk * 256 + (K::O_L - K::O_H), 128, TILE_BYTES")
s=s.replace("me.group * (K::SLAB / 2) + (me.lane >> 3) * 512 +","me.group * K::SLAB + (me.lane >> 3) * TILE_BYTES +")
s=s.replace("tiles_to + c * 2048","tiles_to + c * CHUNK_BYTES").replace("low_to + c * 2048","low_to + c * CHUNK_BYTES").replace("tile_at + c * 2048 + tile * 512","tile_at + c * CHUNK_BYTES + tile * TILE_BYTES")
rep("h16 = uniform(operand_address(base_address + K::O_H + me.group * (K::SLAB / 2)));","h16 = uniform(operand_address(base_address + K::O_H + me.group * K::SLAB));")
rep("tile_at = me.group * (K::SLAB / 2) +","tile_at = me.group * K::SLAB +")
rep("owner % K::G * (K::SLAB / 2) + pair * 1024 +","owner % K::G * K::SLAB + pair * 2 * TILE_BYTES +")
rep("two_rows(K::O_H + 512)","two_rows(K::O_H + TILE_BYTES)"); rep("two_rows(K::O_L + 512)","two_rows(K::O_L + TILE_BYTES)")
rep("K::O_L + me.group * (K::SLAB / 2) + me.lane * 512, 512)","K::O_L + me.group * K::SLAB + me.lane * TILE_BYTES, 512)")
rep("          if (staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, (5 - K::TERMS) * K::CHUNKS, top + PANEL, rank, me.thread);","          if (K::TERMS == 1 && staged && top + PANEL < n) load_panel<K>(p, map, base_address, 2 * K::CHUNKS, 4 * K::CHUNKS, top + PANEL, rank, me.thread);")
rep("            load_panel<K>(p, map, base_address, 0, 2 * K::CHUNKS, top + PANEL, rank, me.thread);\n            if (K::TERMS == 2) load_panel<K>(p, map, base_address, 3 * K::CHUNKS, 4 * K::CHUNKS, top + PANEL, rank, me.thread);","            load_panel<K>(p, map, base_address, 0, 2 * K::TERMS * K::CHUNKS, top + PANEL, rank, me.thread);")
rep("          float x[16], y[16];  // [P, other]'H and [P, other]'L\n#pragma unroll\n          for (int i = 0; i < 16; i++) x[i] = y[i] = 0.f;","          float w[32], x[16], y[16];  // [P, other]'[H, L]\n#pragma unroll\n          for (int i = 0; i < 32; i++) w[i] = 0.f;")
rep("                wgmma<true>(x, a, b);\n                wgmma<true>(y, a, b + (K::O_L - K::O_H >> 4));","                wgmma<true>(w, a, b);")
rep("                  wgmma<true>(y, a, b);\n","                  wgmma<true>(y, a, b);  // y\n") if 0 else None
rep("fmaf(i & 2 || K::TERMS == 2 ? 1.f : 2.f, y[i], x[i]);","fmaf(i & 2 || K::TERMS == 2 ? 1.f : 2.f, w[16 + i], w[i]);")
if "K::TERMS == 2) {\n                  low_operand" in s:
    rep("                  wgmma<true>(y, a, b);\n                  wgmma_commit();","                  wgmma<true>(w, a, b);  // low low comes along\n                  wgmma_commit();")
rest=[l for l in s.split('\n') if 'SLAB / 2' in l or ', 512, 128' in l or '128, 512' in l or 'c * 2048' in l]
assert not rest,rest
if __name__=='__main__': open(sys.argv[1],'w').write(s)
