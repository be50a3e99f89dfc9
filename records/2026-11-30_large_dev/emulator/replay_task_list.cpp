#define TUNE
#include <vector>
#include <algorithm>
#include <cstdio>
struct int4{int x,y,z,w;}; inline int4 make_int4(int x,int y,int z,int w){return {x,y,z,w};}
constexpr int MOST_PARTS=8; constexpr int far_halves(int c) { return c < 4 ? 0 : 2 * (c / 2 - 1); }
#ifdef TUNE
static float PANEL_TALL = 26, PANEL_SHORT = 22, RATE_ONE = 44e3f, RATE_TWO = 54e3f, TASK_FIXED = 2.5f;
static int PART_ROWS = 1024, FORCE = 0, URGENT = 0;
#else
constexpr float PANEL_TALL = 26, PANEL_SHORT = 22, RATE_ONE = 44e3f, RATE_TWO = 54e3f, TASK_FIXED = 2.5f;
constexpr int PART_ROWS = 1024; // of a part of a near strip, about
constexpr int FORCE = 0, URGENT = 0;
#endif
/* columns due within URGENT panels go as two halves, which are done sooner */
static std::vector<int4> schedule(int n, int batch, int sms, int tall_rows, int per_sm, float &us) {
  const int panels = n / 64, urgent = URGENT ? URGENT : n > 2048 ? 2 : 1;
  struct Matrix {
    int made = 0, coupled = 0;
    float end = -1;
    std::vector<int> claimed, applied, near;
  };
  std::vector<Matrix> ms(batch);
  for (auto &x : ms) {
    x.claimed.assign(panels, 0);
    x.applied.assign(panels, 0);
    x.near.assign(panels, 0);
  }
  struct Running {
    int sm, mat, c, halves;
    float left, at;
  };
  std::vector<Running> running;
  std::vector<int> load(sms, 0);
  std::vector<int4> list;
  float now = 0;
  auto rate = [&](int sm) { return load[sm] == 1 ? RATE_ONE : RATE_TWO / 2; };
  auto settle = [&](int sm) {
    for (auto &r : running)
      if (r.sm == sm) {
        r.left -= (now - r.at) * rate(sm);
        r.at = now;
      }
  };
  auto place = [&](int mat, int c, int halves, float bytes) {
    const int sm = (int)(std::min_element(load.begin(), load.end()) - load.begin());
    settle(sm);
    load[sm]++;
    running.push_back({sm, mat, c, halves, bytes + TASK_FIXED * RATE_ONE, now});
  };
  for (int left = batch; left;) {
    for (auto &x : ms)
      if (x.end < 0 && x.made < panels && (x.made < 2 || x.applied[x.made] >= far_halves(x.made) + 2))
        x.end = now + (n - 64 * std::max(0, x.made - 1) > tall_rows ? PANEL_TALL : PANEL_SHORT);
    while ((int)running.size() < per_sm * sms) { // the earliest due task that is ready
      int top;
      int due = 1 << 30, mat = 0, column = 0;
      bool is_near = false;
      for (int b = 0; b < batch; b++) {
        const Matrix &x = ms[b];
        if (due >= 0 && x.coupled < x.made / 2 && 2 * x.coupled + 3 < panels) due = -1, mat = b;
        for (int c = std::max(2, x.made); c < panels && 2 * c < due; c++) {
          const int q = x.claimed[c];
          if (c <= x.made + 1 && x.near[c] < 2 && x.made >= c - 1 && x.applied[c] >= far_halves(c))
            due = 2 * c, mat = b, column = c, is_near = true;
          else if (q < far_halves(c) && 2 * c + 1 < due && ((q & 1) || (x.applied[c] >= q && x.made >= q + 2)))
            due = 2 * c + 1, mat = b, column = c, is_near = false;
        }
      }
      if (due == 1 << 30) break;
      Matrix &x = ms[mat];
      if (due < 0) { // S of a pair, before every task that applies the pair
        top = 2 * x.coupled++;
        list.push_back(make_int4(mat | 3 << 16, top << 16, top + 2, 0));
        place(mat, 0, 0, (n - 64.f * top) * 256);
        continue;
      }
      const int c = column, q = x.claimed[c];
      int half, k64 = 0, made, before;
      if (is_near) {
        half = x.near[c]++;
        k64 = !(c & 1);
        top = k64 ? c - 2 : c - 3;
        made = c - 1;
        before = far_halves(c);
      } else {
        half = (q & 1) ? 1 : c - x.made <= urgent ? 0 : 2;
        x.claimed[c] += half == 2 ? 2 : 1;
        top = q / 2 * 2;
        made = top + 2;
        before = q / 2 * 2;
      }
      const int parts = half < 2 ? std::min(MOST_PARTS, std::max(1, (n - 64 * top + PART_ROWS / 2) / PART_ROWS)) : 1;
      for (int part = 0; part < parts; part++) {
        list.push_back(make_int4(mat | half << 16 | part << 18 | (parts - 1) << 21 | k64 << 24, c | top << 16, made, before));
        place(mat, c, half == 2 ? 2 : part == parts - 1, (n - 64.f * top) * ((k64 ? 256 : 512) + 12 * (half == 2 ? 64 : 32)) / parts);
      }
    }
    float next = 1e30f;
    for (auto &x : ms)
      if (x.end >= 0) next = std::min(next, x.end);
    for (auto &r : running) next = std::min(next, r.at + r.left / rate(r.sm));
    now = next;
    for (auto &x : ms)
      if (x.end >= 0 && x.end <= now) {
        x.end = -1;
        if (++x.made == panels) left--;
      }
    for (size_t i = 0; i < running.size();)
      if (running[i].at + running[i].left / rate(running[i].sm) <= now + 1e-3f) {
        const Running r = running[i];
        running.erase(running.begin() + i);
        settle(r.sm);
        load[r.sm]--;
        ms[r.mat].applied[r.c] += r.halves;
      } else i++;
  }
  us = now;
  return list;
}


#include <map>
#include <tuple>
#include <cmath>
int main(){ for(int cfg=0;cfg<2;cfg++) for(double pan: {30.,250.}){ int n=cfg?2048:4096,b=cfg?8:2,C=cfg?8:16; float us; int ps=cfg?2:1; auto l=schedule(n,b,132-b*C,128*C,ps,us); int W=(132-b*C)*ps,P=n/64;
  // time-stepped replay, 1 us
  struct Wk{int task=-1; double end=-1; bool run=false;}; std::vector<Wk> w(W); size_t next=0; std::vector<int> made(b,0); std::vector<double> pend(b,-1); std::vector<std::vector<int>> ap(b,std::vector<int>(P,0));
  std::map<std::tuple<int,int,int,int>,int> joined,ended; std::map<std::tuple<int,int,int>,std::tuple<int,int>> ring; std::map<std::tuple<int,int,int>,int> ringcount; long coll=0; double now=0; int done=0; 
  while(done<(int)l.size()&&now<200000){ now+=1; 
    for(int m=0;m<b;m++){ if(pend[m]<0&&made[m]<P&&(made[m]<2||ap[m][made[m]]>=far_halves(made[m])+2)) pend[m]=now+pan; if(pend[m]>=0&&now>=pend[m]){made[m]++;pend[m]=-1;} }
    for(auto&x:w){ if(x.task<0&&next<l.size()){x.task=next++;x.run=false;x.end=-1;} if(x.task<0) continue; auto&t=l[x.task]; int m=t.x&0xffff,half=t.x>>16&3,c=t.y&0xffff,top=t.y>>16,parts=(t.x>>21&7)+1,k64=t.x>>24&1; auto key=std::make_tuple(m,c,half,top*2+k64); auto rk=std::make_tuple(m,c&3,half);
      if(!x.run){ if(made[m]>=t.z&&(half==3||ap[m][c]>=t.w)){ x.run=true; x.end= now+ (half==2?75:half==3?15:parts>1?12:25); if(parts>1){ auto id=std::make_tuple(c,top*2+k64); if(ringcount[rk]>0&&ring[rk]!=id) coll++; ring[rk]=id; ringcount[rk]++; joined[key]++; x.end=1e18; } } }
      if(x.run&&parts>1&&x.end>1e17&&joined[key]>=parts) x.end=now+10;
      if(x.run&&now>=x.end){ if(parts>1){ ringcount[rk]--; if(++ended[key]==parts) ap[m][c]+=1; } else if(half==2) ap[m][c]+=2; else if(half<2) ap[m][c]+=1; done++; x.task=-1; } } }
  printf("n %d panel %.0f us: end %.0f us, tasks done %d of %zu, ring collisions %ld\n",n,pan,now,done,l.size(),coll); } }
