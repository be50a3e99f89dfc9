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
s+=cut('// The model: us of a panel','__global__ void probe_wait').replace('constexpr float','static float').replace('constexpr int PART_ROWS','static int PART_ROWS').replace('static int late_columns(int n) { return','static int LATEF=-1;\nstatic int late_columns(int n) { return LATEF>=0?LATEF:').replace('static int urgent_panels(int n) { return','static int URG=0;\nstatic int urgent_panels(int n) { return URG?URG:')
s+=r'''
// replay: workers take tasks in order; real costs; returns end time, checks order
struct Cost { double tall, shortp, fix128, per128, fix64, per64, split_wait, maxima, S; };
static double replay(const std::vector<int4>&l,int n,int batch,int W,int tall,const Cost&k,double*stall){
  const int P=n/64, late=late_columns(n); std::vector<std::vector<int>> got(batch,std::vector<int>(P,0)), applied(batch,std::vector<int>(P,0)); std::vector<int> made(batch,0), coupled(batch,0); std::vector<double> pend(batch,-1);
  struct Wk{int t=-1; double end=-1; int st=0;}; std::vector<Wk> w(W); size_t nx=0; double now=0; std::vector<double> wait0(batch,0); double st=0;
  auto ready=[&](const int4&q){int m=q.x&0xffff; return made[m]>=q.z && applied[m][q.y&0xffff]>=q.w;};
  std::vector<int> joined(l.size(),0);
  int left=batch; 
  while(left){
    for(int m=0;m<batch;m++) if(pend[m]<0&&made[m]<P&&applied[m][made[m]]>=all_updates(made[m],late)){ st+=now-wait0[m]; pend[m]=now+(n-64*std::max(0,made[m]-1)>tall?k.tall:k.shortp);}
    for(auto&x:w){ if(x.t<0&&nx<l.size()) x.t=nx++, x.end=-1; 
      if(x.t>=0&&x.end<0&&ready(l[x.t])){ const int4&q=l[x.t]; bool mx=q.x>>17&1,cp=!mx&&(q.x>>16&1),sg=q.x>>24&1; int parts=(q.x>>21&7)+1; int rows=n-64*(q.y>>16); double c=mx?k.maxima*n/2048:cp?k.S*rows/2048+2:(sg?k.fix64+k.per64*rows/parts/2048:k.fix128+k.per128*rows/parts/2048)+(parts>1?k.split_wait:0); x.end=now+c; } }
    double t=1e30; for(int m=0;m<batch;m++) if(pend[m]>=0) t=std::min(t,pend[m]); for(auto&x:w) if(x.t>=0&&x.end>=0) t=std::min(t,x.end);
    if(t>1e29){ printf("DEADLOCK at %.0f next %zu of %zu\n",now,nx,l.size()); return -1; }
    now=t; for(int m=0;m<batch;m++) if(pend[m]>=0&&pend[m]<=now){ pend[m]=-1; wait0[m]=now; if(++made[m]==P) left--; }
    for(auto&x:w) if(x.t>=0&&x.end>=0&&x.end<=now){ const int4&q=l[x.t]; int m=q.x&0xffff,c=q.y&0xffff; bool mx=q.x>>17&1,cp=!mx&&(q.x>>16&1),sg=q.x>>24&1; int parts=(q.x>>21&7)+1,part=q.x>>18&7,top=q.y>>16;
      if(mx){applied[m][c]++;applied[m][c+1]++;} else if(cp) coupled[m]++; else { size_t first=x.t-part; if(++joined[first]==parts){ applied[m][c]++; if(got[m][c]!=top){printf("ORDER m%d c%d got %d top %d\n",m,c,got[m][c],top);exit(1);} got[m][c]+=sg?1:2; } }
      x.t=-1; }
  }
  for(int m=0;m<batch;m++) for(int c=2;c<P;c++) if(got[m][c]!=c-1){printf("MISSING m%d c%d %d\n",m,c,got[m][c]);exit(1);}
  *stall=st/batch; return now; }
int main(int ac,char**av){
  for(int z=0;z<2;z++){ int n=z?4096:2048,b=z?2:8,C=z?16:8,W=132-b*C; 
   for(double pt: {33.,27.,23.}){ Cost k=z?Cost{pt,pt-5,4,36.5,5,24,2,4.7,5}:Cost{pt,pt-6.5,4,36.5,5,24,2,4.7,5};
    struct R{double e,s;float a,c;int u,rows,late;}; std::vector<R> rs;
    for(float a:{22.f,26.f,30.f,36.f}) for(float rate:{44e3f,60e3f,80e3f,100e3f}) for(int u:{1,2,3}) for(int rows:{512,1024}) for(int late: {1000, n/64-8, n/64-14, n/64-20, 4}){ PANEL_TALL=a; PANEL_SHORT=a-4; RATE=rate; URG=u; PART_ROWS=rows; LATEF=late; auto l=schedule(n,b,W,128*C); double s; double e=replay(l,n,b,W,128*C,k,&s); rs.push_back({e,s,a,rate,u,rows,late}); }
    std::sort(rs.begin(),rs.end(),[](const R&x,const R&y){return x.e<y.e;});
    printf("n %d panel %.0f: ",n,pt); for(int i=0;i<6;i++) printf("[%.0f stall %.0f a%.0f r%.0f u%d rows%d late%d] ",rs[i].e,rs[i].s,rs[i].a,rs[i].c/1e3,rs[i].u,rs[i].rows,rs[i].late);
    for(int late:{1000,4}){ for(auto&r:rs) if(r.late==late){ printf(" best late%d %.0f stall %.0f (u%d rows%d)",late,r.e,r.s,r.u,r.rows); break; } } printf(" worst %.0f\n",rs.back().e); } }
  for(int n=1664;n<=4096;n+=128) for(int b:{1,2,3,8}) for(int late:{1000,4,n/64-12}){ int C=n>2048?16:8, g=std::max(1,66/C); if(b>g) continue; LATEF=late; URG=0; PART_ROWS=1024; PANEL_TALL=26;PANEL_SHORT=22;RATE=44e3; int W=132-b*C; auto l=schedule(n,b,W,128*C); double s; for(int w:{W,8}) { Cost k{25,20,10,50,8,20,5,4,5}; if(replay(l,n,b,w,128*C,k,&s)<0) printf("n %d b %d w %d\n",n,b,w);} }
}
'''
open('sim.cpp','w').write(s)
