import sys
t=open(sys.argv[1]).read()
def cut(a,b): i=t.index(a); return t[i:t.index(b,i)]
s='''#include <algorithm>
#include <vector>
#include <cstdio>
#include <cstdlib>
#define __host__
#define __device__
struct int4{int x,y,z,w;}; static int4 make_int4(int a,int b,int c,int d){return {a,b,c,d};}
constexpr int TERMS=1, MOST_PARTS=8;
'''+cut('constexpr int MAXIMA','\n\n')+'\n'
s+=cut('// The model, as measured','__global__ void probe_wait').replace('static Model model(int n) { return','static Model OVER;\nstatic Model model(int n) { if (OVER.part_rows) return OVER; return')
s+=r'''
struct Cost { double tall, shortp, fix128, per128, fix64, per64, split_wait, maxima, S, lat; };
static bool VERB=false;
static double replay(const std::vector<int4>&l,int n,int batch,int W,int tall,const Cost&k,double*stall){
  const int P=n/64; std::vector<std::vector<int>> got(batch,std::vector<int>(P,0)), applied(batch,std::vector<int>(P,0)); std::vector<int> made(batch,0); std::vector<std::vector<double>> coup(batch,std::vector<double>(P,-1)); std::vector<double> pend(batch,-1);
  struct Wk{int t=-1; double end=-1; double claim=0;}; std::vector<Wk> w(W); size_t nx=0; double now=0; std::vector<double> wait0(batch,0); double st=0, busy=0;
  auto ready=[&](const int4&q){int m=q.x&0xffff; return made[m]>=q.z && applied[m][q.y&0xffff]>=q.w;};
  std::vector<int> joined(l.size(),0); std::vector<double> latest(l.size(),0);
  struct Ev{double t; int i;}; std::vector<Ev> pendq;
  int left=batch; 
  while(left){
    for(int m=0;m<batch;m++) if(pend[m]<0&&made[m]<P&&applied[m][made[m]]>=all_updates(made[m])){ double x=now-wait0[m]; st+=x; if(VERB&&m==0) printf("panel %d start %.0f wait %.0f\n",made[m],wait0[m],x); pend[m]=now+(n-64*std::max(0,made[m]-1)>tall?k.tall:k.shortp);}
    for(int wi=0;wi<W;wi++){ auto&x=w[wi]; if(x.t<0&&nx<l.size()) x.t=nx++, x.end=-1, x.claim=now; 
      if(x.t>=0&&x.end<0&&ready(l[x.t])){ const int4&q=l[x.t]; bool mx=q.x>>17&1,cp=!mx&&(q.x>>16&1),sg=q.x>>24&1; int m=q.x&0xffff,parts=(q.x>>21&7)+1,part=q.x>>18&7,top=q.y>>16; int rows=n-64*top; 
        double c; if(mx) c=k.maxima*n/2048; else if(cp) c=k.S*rows/2048+2; else c=(sg?k.fix64+k.per64*rows/parts/2048:k.fix128+k.per128*rows/parts/2048)+(parts>1?k.split_wait:0);
        double e=now+c; if(!mx&&!cp&&!sg){ double sready=coup[m][top/2]; if(sready<0) { continue; } e=std::max(e,sready+c/2); }
        if(cp) coup[m][top/2]=e+k.lat;
        busy+=e-now; x.end=e; pendq.push_back({e+k.lat,x.t}); if(VERB&&m==0&&!mx&&(q.y&0xffff)>=26&&top>=20) printf("   task %d w%d %s c%d top%d part %d/%d claim %.0f ready %.0f end %.0f\n",x.t,wi,cp?"S":sg?"near":"far",q.y&0xffff,top,part,parts,x.claim,now,x.end); } }
    double t=1e30; for(int m=0;m<batch;m++) if(pend[m]>=0) t=std::min(t,pend[m]); for(auto&x:w) if(x.t>=0&&x.end>=0) t=std::min(t,x.end); for(auto&x:pendq) t=std::min(t,x.t);
    if(t>1e29){ printf("DEADLOCK at %.0f next %zu of %zu\n",now,nx,l.size()); return -1; }
    now=t; for(int m=0;m<batch;m++) if(pend[m]>=0&&pend[m]<=now){ pend[m]=-1; wait0[m]=now; if(++made[m]==P) left--; }
    for(auto&x:w) if(x.t>=0&&x.end>=0&&x.end<=now) x.t=-1;
    for(size_t i=0;i<pendq.size();) if(pendq[i].t<=now){ const int ti=pendq[i].i; const int4&q=l[ti]; int m=q.x&0xffff,c=q.y&0xffff; bool mx=q.x>>17&1,cp=!mx&&(q.x>>16&1),sg=q.x>>24&1; int parts=(q.x>>21&7)+1,part=q.x>>18&7,top=q.y>>16;
      if(mx){applied[m][c]++;applied[m][c+1]++;} else if(cp); else { size_t first=ti-part; if(++joined[first]==parts){ applied[m][c]++; if(got[m][c]!=top){printf("ORDER m%d c%d got %d top %d\n",m,c,got[m][c],top);exit(1);} got[m][c]+=sg?1:2; } }
      pendq[i]=pendq.back(); pendq.pop_back(); } else i++;
  }
  for(int m=0;m<batch;m++) for(int c=2;c<P;c++) if(got[m][c]!=c-1){printf("MISSING m%d c%d %d\n",m,c,got[m][c]);exit(1);}
  if(VERB) printf("busy %.0f a worker\n",busy/W);
  *stall=st/batch; return now; }
'''
s+=open('main.inc').read()
open('sim.cpp','w').write(s)
