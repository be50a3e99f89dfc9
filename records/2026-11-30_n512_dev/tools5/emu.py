# emu.py NAME : NAME.cu (whole CUDA string) -> emulator .so
import sys,subprocess,re
n=sys.argv[1]; b=open(n+'.cu').read()
i=b.index('// ---------------------------------------------------------------- sizes'); j=b.index('template <bool EXACT>\n__global__')
body=b[i:j]
# prelude pieces that the emulator lacks
main=open('/tmp/n512d/emu/emu_main98.cpp').read().replace('#include "body98.cuh"','#include "%s_emu.cuh"'%n).replace('"emu90.h"','"emu5.h"')
if 'BLOCK_WORDS' in body: main=main.replace('job.t=t.data();','').replace('v(8*TILES*GROUPS*32,0xffffffffu)','v(8*BLOCK_WORDS,0xffffffffu)')
open(n+'_emu.cuh','w').write(body); open(n+'_emu.cpp','w').write(main)
sys.exit(subprocess.call(['g++','-O2','-std=c++17','-shared','-fPIC','-w','-o','emu_%s.so'%n,n+'_emu.cpp']))
