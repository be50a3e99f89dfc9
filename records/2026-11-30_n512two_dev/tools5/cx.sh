# cx.sh SRC TAG flags: cubin of both instances, ptxas' words and the number of instructions
cd /tmp/n512two_5; s=$1; o=$2; shift 2
nice nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -Xptxas -v -cubin "$@" -o $o.cubin $s 2>&1 | grep -E 'error|C75|spill|registers|warning' | cut -c1-160 > $o.log
/tmp/v0/lib/python3.11/site-packages/triton/backends/nvidia/bin/cuobjdump -sass $o.cubin > $o.sass; python3 cnt.py $o.sass >> $o.log
echo == $o; cat $o.log
