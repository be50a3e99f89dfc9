# mkemu.sh NAME MODE WGMMA -> e_NAME.MODE.WGMMA.so
cd /tmp/n512a; n=$1; m=$2; g=$3; o=e_$n.$m.$g; w=$([ $m = 1 ] && echo true || echo false)
sed "s/constexpr bool FP32_CLASS = false/constexpr bool FP32_CLASS = $w/" $n.cu > $o.cu; python3 emu.py $o.cu $o.cpp; g++ -O2 -std=c++17 -shared -fPIC -w -DWGMMA_V=$g -o $o.so $o.cpp
