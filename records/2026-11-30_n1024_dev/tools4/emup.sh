# emup.sh body amp: emulator that counts passes
n=$1; d=$(mktemp -d /tmp/n1024d/b.XXXX); cp emu.h $d; cp body$n.cuh $d/body.cuh; cd $d
sed 's/MARK([0-9]*);//; s/, unsigned& last_clock//; s/, last_clock//; s/unsigned last_clock = 0;//; s/constexpr float AMPLIFIED = 300.f/static float AMPLIFIED = 300.f/; s/  __syncthreads();\n}//' -i body.cuh
python3 - <<'P'
s=open('body.cuh').read()
a="template <class K>\nDEVICE void guard_and_top("; assert s.count(a)==1
s=s.replace(a,"static int n_pass=0; static float top_amp=0;\n"+a)
a="    if ((thread & 7) == 0) {\n      if (!(amplified <= AMPLIFIED))"; assert s.count(a)==1
s=s.replace(a,"    if(thread==0 && cluster_rank()==0) n_pass++; if((thread&7)==0 && i>=done && amplified>top_amp) top_amp=amplified;\n"+a)
open('body.cuh','w').write(s)
m=open('/tmp/n1024d/emu_main.cpp').read()
m+='\nextern "C" void set_amp(float x){ qr1024::AMPLIFIED=x; qr1024::n_pass=0; qr1024::top_amp=0; }\nextern "C" int passes(){ return qr1024::n_pass; }\nextern "C" float topamp(){ return qr1024::top_amp; }\n'
open('emu_main.cpp','w').write(m)
P
g++ -O2 -march=native -std=c++17 -shared -fPIC -fpermissive -w -o /tmp/n1024d/emup_$n.so emu_main.cpp 2>&1 | grep error | head; rm -r $d
