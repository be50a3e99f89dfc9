cd /tmp/n512two_5; python3 emu.py $1 $2.cpp; o=$2; shift 2; g++ -O2 -std=c++17 -shared -fPIC -w "$@" -o $o.so $o.cpp
