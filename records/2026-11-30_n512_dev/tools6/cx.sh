# cx.sh NAME MODE(0/1): cubin of the 512 instance, ptxas' words and the number of instructions
cd /tmp/n512a; n=$1; m=$2; o=x_$n.$m
w=$([ $m = 1 ] && echo true || echo false)
sed "s/constexpr bool FP32_CLASS = false/constexpr bool FP32_CLASS = $w/; s/auto kernel = n == ROWS .*/auto kernel = geqrf_kernel<true>; panel_map(map, a, n, batch);/" $n.cu > $o.cu
nice nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -Xptxas -v -cubin -o $o.cubin $o.cu > $o.log 2>&1
/tmp/v0/lib/python3.11/site-packages/triton/backends/nvidia/bin/cuobjdump -sass $o.cubin > $o.sass; python3 cnt.py $o.sass >> $o.log
python3 - $o <<'P'
import re,sys
t=open(sys.argv[1]+'.log').read(); out=[]
for m in re.finditer(r'(?:Function properties for|Compiling entry function) (\S+).*?\n\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads',t):
    if m[2]!='0' or m[3]!='0':
        f=re.search(r'n512\d+([a-z_]+)',m[1]); out.append((f[1] if f else m[1])+' %s/%s/%s'%(m[2],m[3],m[4]))
w=open(sys.argv[1]+'.sass').read(); print('==',sys.argv[1],'WS',w.count('WARPSYNC'),'R2UR',w.count('R2UR'),set(re.findall(r'C75\d\d',t)),re.findall(r'.*error.*',t)[:2],out,t.split('\n')[-2])
P
