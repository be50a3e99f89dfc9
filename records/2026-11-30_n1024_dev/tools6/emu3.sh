# emu.sh FILE.py NAME [flags]: emulator emu_NAME.so of the CUDA source's body
cd /tmp/n1024_6; d=$(mktemp -d); cp emu3.h $d/emu.h; cp emu_main3.cpp $d/emu_main.cpp
python3 - $1 $d/body.cuh <<'P'
import sys
s=open(sys.argv[1]).read(); a=s.index('// ------------------------------------------------------------------ sizes'); b=s.index('// The batch as a tensor of five dimensions')
t=s[a:b]
t=t.replace('extern __shared__ __align__(1024) unsigned char sm[];','unsigned char* sm = smem_base();'); i=t.index('(1) Gram:'); j=t.rindex('\n',0,i); t=t[:j]+'\n#ifdef QR_EMU\nif(me.thread==0 && rank==0) passes++;\n#endif'+t[j:]
open(sys.argv[2],'w').write(t)
P
cd $d; g++ -O2 -march=native -std=c++17 -shared -fPIC -fpermissive -w ${3:-} -o /tmp/n1024_6/emu_$2.so emu_main.cpp 2>&1 | grep -iE "error" | head -20
