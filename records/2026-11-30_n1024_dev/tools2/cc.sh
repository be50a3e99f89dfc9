# cc.sh body out [flags]: compile one body
d=$(mktemp -d); cp hw.cuh launch.cuh lib.cu $d; cp $1 $d/body.cuh; cd $d; shift_out=$2; nice nvcc -O3 -std=c++17 ${3:-} -DONLY_C=2 -DONLY_G=4 -DONLY_R=4 -gencode=arch=compute_90a,code=sm_90a -Xptxas -v -shared -Xcompiler -fPIC -o /tmp/n1024/s2/$shift_out lib.cu 2>&1 | grep -i "spill\|error\|C75" | cut -c1-140 | sed "s/^/$shift_out: /"
