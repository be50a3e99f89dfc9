# chk.sh FILE.py TAG: compile both modes for sm_90a (counts) and sm_100a
cd /tmp/n512two_5; python3 ext.py $1 $2_0.cu; sed 's/constexpr bool FP32_CLASS = false/constexpr bool FP32_CLASS = true/' $2_0.cu > $2_1.cu
for m in 0 1; do (sh cx.sh $2_$m.cu $2_$m | grep -v ' 0 bytes spill st'); done
for m in 0 1; do nice nvcc -O3 -std=c++17 -gencode=arch=compute_100a,code=sm_100a -Xptxas -v -cubin -o $2_$m.100.cubin $2_$m.cu 2>&1 | grep -E 'error|registers|warning' | head -3; done
