cd /tmp/n512a; nice nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -lineinfo -cubin -o $1.li.cubin $1.cu 2>/dev/null; /tmp/v0/lib/python3.11/site-packages/triton/backends/nvidia/bin/nvdisasm -gi -c $1.li.cubin > $1.li.txt 2>/dev/null
python3 lines.py $1.li.txt $1.cu
