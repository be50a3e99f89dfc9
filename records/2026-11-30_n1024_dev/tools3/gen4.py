# python3 gen2.py: writes the submissions v35..v38 from the development bodies
import re, sys
exec(open('/work/main/records/2026-11-30_n1024_dev/tools/gen.py').read().split("disp = ")[0].split("hw = open")[0]) if False else None
D = '/tmp/n1024c/'
def strip_dev(text):
    lines = []; skip = 0
    for l in text.split('\n'):
        t = l.strip()
        if t in ('#ifdef PROFILE', '#ifdef QR_EMU', '#ifdef BOUNDED_SPIN', '#ifdef PH1_2', '#ifdef TESTWAIT'): skip = 1; continue
        if skip == 1 and t == '#else': skip = 2; continue
        if skip and t == '#endif': skip = 0; continue
        if skip == 1: continue
        if re.match(r'^\s*MARK\(\d+\);$', l) or t in ('#define MARK(i)',): continue
        lines.append(l)
    src = '\n'.join(lines)
    src = re.sub(r'MARK\(\d+\);\n?', '', src).replace(', unsigned& last_clock', '').replace(', last_clock', '').replace('  unsigned last_clock = 0;\n', '')
    return src.replace('#define WAIT_WORD "mbarrier.try_wait"\n', '').replace('" WAIT_WORD ".parity', 'mbarrier.try_wait.parity')
def cut(s, a, b):
    i = s.index(a); j = s.index(b, i); return s[:i] + s[j:]
old = open('/work/main/submissions/v34_n1024_split_once.py').read()
def make(num, name, body, doc, page, launch=None, unused=()):
    hw = open(D + 'hw.cuh').read(); bd = open(D + body).read()
    if 'mma_fp16' not in bd: hw = cut(hw, '// d += A B: A 16 x 16, B 16 x 8', "// d += A B in 3xTF32's single term")
    else: hw = cut(hw, "// d += A B in 3xTF32's single term", '// A value that is the same in all lanes')
    for a, b in unused: hw = cut(hw, a, b)
    src = strip_dev(hw + '\n' + bd + '\n')
    cuda = old[old.index('CUDA = r"""') + 11:]; cuda = cuda[:cuda.index('"""\n')]
    head = cuda[:cuda.index('#include <cuda_runtime.h>')]
    for a, b in page: 
        assert head.count(a) == 1, a
        head = head.replace(a, b)
    tail = cuda[cuda.index('template <class K>\nstatic int run('):]
    if launch:
        i = tail.index('// Bytes of the two workspaces'); l = open(D + launch).read().replace('}  // namespace qr1024\n', ''); tail = l.rstrip() + '\n\n' + tail[i:]
    tail = re.sub(r'long t_workspace\(int n, int batch\) \{.*\n', 'long t_workspace(int n, int batch) { return (long)batch * 4 * ((n + PANEL - 1) / PANEL) * T_BYTES; }  // at most four CTAs\n', tail)
    tail = tail.replace('static_cast<float2*>(t)', 'static_cast<decltype(Args::t)>(t)')
    py = old.replace(cuda, head + src.rstrip() + '\n\n' + tail)
    d0 = old[old.index('"""') + 3:]; d0 = d0[:d0.index('\n"""\n')]
    py = py.replace(d0, doc.strip()).replace('n1024_v34', f'n1024_v{num}')
    assert 'stream' not in py.lower(), [l for l in py.split('\n') if 'stream' in l.lower()]
    for l in py.split('\n'):
        if len(l) > 200: print('long line', num, l[:100])
    out = f'/work/main/submissions/v{num}_n1024_{name}.py'
    open(out, 'w').write(py); compile(py, out, 'exec'); print(out, len(py))
COMMON = '''Algorithm  panels of 64 columns, held in registers from load to store, rows dealt 16 at a time to 8 warpgroups of 2 CTAs;
           larfb of the earlier blocks (W summed and W' = T'W distributed over the cluster's shared memory), then twice
           geqr2 of 32 columns: Gram matrix (wgmma) -> recurrence (%s) -> V = P M (wgmma), then larft
Precision  V rounded to fp16 and then exact: tau = 2/v'v of the rounded v, so H is orthogonal to fp32. larfb: C and W'
           one fp16 term, fp32 accumulation; T' W in %s; inside the panel two terms throughout
Shapes     513 <= n <= 1536, any batch; everything else: torch.geqrf
Parent     %s
Result     see records/
Bound by   %s

%s

Guard. A pass over 32 columns stops before column j where its pivot cancelled (pivot < 1e-5 |p_j|^2) or where
sum_k |p_k| |M_kj| > 300, both exact in every CTA; the columns before j are applied and a new pass starts with a new
Gram matrix. The first column always passes, so at worst a pass is one column (zero column: tau = 0, v = 0).'''
BOUND = "the two exchanges of each of the 120 block applications and the panel's chain: Gram matrix, recurrence, V, W"
page35 = [("    C -= V (W T)        by substitution, without T", "    C -= V (W T)        T of the pass by block inversion"), ("larft: T, beside the loads of the next panel; V to the workspace", "larft: T by block inversion, beside the loads of the next panel; V to the workspace")]
page36 = page35 + [("->  R, top of V, M        three warps, the same in every CTA", "->  R, top of V, M        eight warps, the same in every CTA")]
page37 = page35 + [("A, global -> load, scale columns", "A, shared memory -> load (bulk copies while the last panel ends), scale columns")]
what = {
35: '''What is new against v34: T is no longer made by substitution, one reflector after the other, but by inverting the
16 x 16 diagonal blocks of diag(1/tau) + striu(V'V) (a lane a column) and joining them by small products over many warps;
the columns still open get W' = W T by such a product too. T of the block at work comes into shared memory by a bulk copy
one block ahead, the next panel's first V is fetched before T is made, and a warpgroup keeps its own share of the sums.''',
36: '''What is new against v35: the recurrence takes eight rows a step instead of four: every lane factorises the 8 x 8 diagonal
block from shared memory, so that eight roots (reciprocals) follow each other without an exchange; helper warps keep the
rows further down up to date; M = W^-1 is inverted by blocks like T.''',
37: '''What is new against v35: the next panel comes into shared memory by bulk copies, a row of 256 bytes each, as soon as the
last pass has spent the tiles of H and L (half of it) and V has gone to the workspace (the other half), while the last W
is exchanged; v35's loads into registers took 21k cycles a panel, limited by the requests an SM can have under way. T is
made while the columns' largest entries are exchanged. Other n than 1024 and 1536, or unaligned A: loads as in v35.''',
}
names = {34: 'v34_n1024_split_once', 35: 'v35_n1024_block_inverse', 36: 'v36_n1024_eight_rows', 37: 'v37_n1024_staged_loads'}
title = {35: 'block inverse', 36: 'eight rows', 37: 'staged loads'}
def doc(num): return f'v{num} n1024 {title[num]}: left-looking Householder QR, one cluster of two CTAs a matrix, wgmma.\n\n' + COMMON % ('eight warps' if num == 36 else 'three warps', 'two fp16 terms' if num >= 38 else '3xTF32', names[35 if num == 37 else num - 1], BOUND, what[num])
what[38] = '''What is new against v37: (1) the panel comes by tensor copies (five dimensions, 16 copies a panel instead of 512), which
also lay the rows so that reads do not collide; the same descriptor prefetches it into L2 from idle warps. (2) Fewer
spills: 512 threads' stack does not fit the 28 KB of L1 that are left, so a reload may go to L2. Barrier parities follow
from the loop counters, positions are computed anew after the long stages, k, s and done wait in shared memory. (3) T'W
with two fp16 terms of both (m16n8k16) instead of 3xTF32: half the instructions, T is split where it is made. |T_ij| <= 4
and |W| < 2^13 by construction, so the terms neither overflow nor lose bits that matter. (4) The guard is computed beside
the top of V.'''
names[38] = 'v38_n1024_tensor_copies'; title[38] = 'tensor copies'
page38 = page37 + [("W'   = T_j' W       3xTF32, by the owner, rounded to fp16, sent to all CTAs", "W'   = T_j' W       two fp16 terms each, by the owner, rounded to fp16, sent to all CTAs")]
UNUSED = (("DEVICE void bulk_prefetch(", "// 32 columns from `column`"), ("// Four 8 x 8 matrices of halves", "// Makes this thread's ordinary stores"))

def pages(extra): return page38 + [("rounded to fp16: from here on V is exact. R and V to H", "rounded to fp16: from here on V is exact. R to H"), ("exchange: tau = 2/v'v, V'V (for T), and W for the columns still open", "exchange (V to H meanwhile): tau = 2/v'v, V'V (for T), and W for the columns still open")] + extra
names[39] = 'v39_n1024_fill_waits'
what[86] = """What is new against v39: (1) no fence of the whole GPU on the chain. fence.proxy.async without a state space and a cluster
barrier's arrive.release compile to MEMBAR.GPU, which waits for all stores to H; acquire at cluster scope to CCTL.IVALL,
which empties L1. The fences are for shared memory, the arrivals relaxed (they guard reads that have returned), the waits
have CTA scope. (2) larfb: V in shared memory by warpgroup; copies issued by warps that would wait; T' waits in
registers; W' by tiles of 16 reflectors x 8 columns, sent by the warp that made it; C -= V W' as one product over all live
rows. (3) The pivot's test beside its root. (4) T goes to the workspace by way of shared memory. No spills are left."""
title[86] = 'no GPU fences'; names[86] = 'v86_n1024_no_gpu_fences'; names[85] = names[39]
what[87] = """What is new against v86: fewer instructions where all 16 warps run the same straight line (four of them share a
scheduler, so an instruction costs four cycles). -T' lies as A operands and W as B operands, so that T'W needs no moves;
simpler places for the sums of W; C -= V W' by 64 rows a product; the Gram matrix as [H; L]'H, one product instead of two;
T12 and the W' of a pass on the tensor cores in two fp16 terms instead of from shared memory in fp32; the recurrence's
loops in two halves without a branch inside."""
title[87] = 'fewer instructions'; names[87] = 'v87_n1024_fewer_instructions'
what[88] = """What is new against v87: the second warp of the recurrence (it takes longest) tests for a zero column by R's diagonal, which
it knows early, not by the pivot's reciprocal, fetches R's rows and V's entries before it needs them, and takes its first
pivot by shuffle; L = P - H, not twice that, and masks only where rows are finished; T of the last block is complete
before the new panel has come; in larfb the warps that send their sums of W go first, operand addresses are ready before
the waits, and half of the rows of C -= V W' are one product of 64 rows."""
title[88] = 'early operands'; names[88] = 'v88_n1024_early_operands'
what[89] = """What is new against v88: V = P M with the high and the low term of M as one operand of 64 rows (the other sub-panel's 32
were zero), two products instead of three; C -= V W' by 32 rows a product again (the compiler moves accumulators about
otherwise)."""
title[89] = 'stacked M'; names[89] = 'v89_n1024_stacked_m'
E86 = [("V_j by bulk copy, two stages, only this CTA's rows", "V_j by bulk copy, two stages, only this CTA's rows, by warpgroup")]
if __name__ == '__main__':
    import sys
    num = int(sys.argv[1]); make(num, names[num].split('n1024_')[1], sys.argv[2], doc(num), pages(E86 + ([("H, L = 2 (P - H)", "H, L = P - H"), ("larft: T by block inversion, beside the loads of the next panel; V to the workspace", "larft: T by block inversion, while the next panel is on its way; V to the workspace")] if num >= 88 else [])), 'launch_map.cuh', UNUSED[:1])
