import re,collections,sys
src=open(sys.argv[2]).read().split('\n')
fn=[None]*(len(src)+2); cur=None
for i,l in enumerate(src,1):
    m=re.match(r'(?:DEVICE|NOINLINE|static|__global__).*?(\w+)\(',l)
    if m: cur=m[1]
    m=re.match(r'__global__.*geqrf_kernel',l)
    if m: cur='geqrf_kernel'
    fn[i]=cur
c=collections.Counter(); op=collections.defaultdict(collections.Counter); grp=[]; new=True; tot=0
big={'apply_block','warp_cholesky','warp_top','warp_m','guard_and_top','form_t_32','load_panel','product_32','geqrf_kernel','subtract_v_times_w','multiply_by_v','load_slab'}
for l in open(sys.argv[1]):
    m=re.search(r'//## File "[^"]*", line (\d+)( inlined at.*line (\d+))?',l)
    if m:
        if new: grp=[]; new=False
        grp.append(int(m[1])); continue
    m=re.match(r'\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d\s+)?(\S+)',l)
    if m and grp:
        new=True; tot+=1
        # outermost interesting
        ks=[(fn[x],x) for x in grp if x<len(fn)]
        o=[k for k in ks if k[0] in big]
        k=(o or ks)[0] if 0 else None
        outer=ks[-1]
        chain=[k for k in ks if k[0] in big and k[0]!='geqrf_kernel']
        key=(outer[1], chain[-1][0] if chain else '', chain[-1][1] if chain else 0)
        c[key]+=1; op[key][m[1].split('.')[0]]+=1
print(tot)
for k in sorted(c): print(c[k],k[1],k[2] or k[0],'|',src[(k[2] or k[0])-1].strip()[:90],'|',dict(op[k].most_common(4)) if c[k]>15 else '')
