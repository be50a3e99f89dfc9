# emu.py SRC.cu OUT.cpp : the kernel's text between 'sizes' and the kernel, after emu.h
import sys
s=open(sys.argv[1]).read(); i=s.index('// ---------------------------------------------------------------- sizes'); j=s.index('template <bool EXACT>\n__global__')
b=s[i:j].replace('before = whole ? 0 : done;','if (me.tid == 0) emu_passes++; before = whole ? 0 : done;')
open(sys.argv[2],'w').write('#include "emu.h"\nstatic int emu_passes;\n'+b+'''
template<bool E> void run(int n,int batch,const float*A,float*H,float*tau,int*flags){
  int panels=(n+63)/64; std::vector<uint32_t> v(8*TILES*GROUPS*32,0xffffffffu),vl(8*TILES*GROUPS*32,0xffffffffu); std::vector<uint32_t> t(8*4096);
  const int cut=getenv("EMU_CUT")?atoi(getenv("EMU_CUT")):panels; for(int b=0;b<batch;b++) for(int part=0;part<(cut<panels?2:1);part++){ if(!part){ memset(&v[(size_t)(panels-1)*TILES*GROUPS*32],0,8);} run_cta([&](int tid){ Lane me; me.tid=tid; me.lane=tid&31; me.warp=tid>>5; me.wg=me.warp>>2; me.ws=me.warp&3; me.g=me.lane>>2; me.q=me.lane&3;
     Job job; job.a=A+(size_t)b*n*n; job.h=H+(size_t)b*n*n; job.tau=tau+(size_t)b*n; job.v=v.data(); job.v_lo=vl.data(); job.t=t.data(); job.n=n; job.panels=panels; TensorMap map{A+(size_t)b*n*n,n}; job.map=&map; job.row=0; job.from=part?cut:0; job.to=part?panels:cut; emu_passes=0; factor_matrix<E>(*(Shared*)smem_base,job,me); if(tid==0) flags[b]=emu_passes; },sizeof(Shared)); } }
extern "C" void qr(int n,int batch,const float*A,float*H,float*tau,int*flags){ for(size_t i=0;i<(size_t)batch*n*n;i++) H[i]=NAN; if(n==512) run<true>(n,batch,A,H,tau,flags); else run<false>(n,batch,A,H,tau,flags); }
''')
