// CPU emulation of one CTA: fibers, collectives by rendezvous.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <cmath>
#include <cstring>
#include <vector>
#include <functional>
#include <algorithm>
#include <ucontext.h>
using std::max; using std::min;
#define DEVICE inline
#define NOINLINE inline
#define __align__(x) alignas(x)
struct float2{float x,y;}; struct uint2{uint32_t x,y;}; inline uint2 make_uint2(uint32_t a,uint32_t b){return {a,b};} struct float4{float x,y,z,w;}; struct alignas(16) uint4{uint32_t x,y,z,w;};
inline float2 make_float2(float a,float b){return {a,b};}
inline float4 make_float4(float a,float b,float c,float d){return {a,b,c,d};}
static const int NT=256;
struct Fiber{ucontext_t ctx; char* stack; bool done; volatile long* gen; long want;};
static Fiber fib[NT]; static ucontext_t mainctx; static int cur;
static char* smem_base;
inline void yield_(){ swapcontext(&fib[cur].ctx,&mainctx); }
inline void wait_gen(volatile long* g,long old){ while(*g==old){ fib[cur].gen=g; fib[cur].want=old; yield_(); } fib[cur].gen=nullptr; }
struct WarpSlot{ int count=0; volatile long gen=0; const void* in[32]; void* out[32]; const char* op=nullptr; };
static WarpSlot wslot[NT/32];
template<class F> inline void collective(const char* op,const void* in,void* out,F f){
  WarpSlot&s=wslot[cur/32]; int l=cur%32; if(s.count==0) s.op=op; else if(strcmp(s.op,op)){printf("DIVERGED %s vs %s thread %d\n",s.op,op,cur); abort();}
  s.in[l]=in; s.out[l]=out; long old=s.gen; if(++s.count==32){ f(s); s.count=0; s.gen=old+1; } else wait_gen(&s.gen,old); }
inline void sync_warp(){ collective("syncwarp",nullptr,nullptr,[](WarpSlot&){}); }
struct Bar{int count=0; volatile long gen=0; int need=0;}; static Bar bars[16];
inline void bar_sync(int id,int n){ Bar&b=bars[id]; if(b.count==0)b.need=n; if(b.need!=n){printf("bar mismatch %d\n",id);abort();} long old=b.gen; if(++b.count==n){b.count=0;b.gen=old+1;} else wait_gen(&b.gen,old); }
inline void bar_arrive(int id,int n){ Bar&b=bars[id]; if(b.count==0)b.need=n; if(b.need!=n){printf("bar mismatch %d\n",id);abort();} if(++b.count==n){b.count=0;b.gen=b.gen+1;} }
inline void sync_all(){ bar_sync(0,NT); }
inline bool any_thread(bool p){ static int any[2]; static int which=0; static int n=0; int w=which; if(p) any[w]=1; if(++n==NT){ n=0; which=1-w; any[1-w]=0; } sync_all(); return any[w]; }
inline float shfl(float x,int src){ float r; int s_=src; struct A{float x;int s;} a{x,s_}; collective("shfl",&a,&r,[](WarpSlot&s){ float t[32]; for(int l=0;l<32;l++) t[l]=((A*)s.in[((A*)s.in[l])->s])->x; for(int l=0;l<32;l++) *(float*)s.out[l]=t[l];}); return r; }
inline float shfl_xor(float x,int m){ return shfl(x,(cur%32)^m); }
inline uint32_t ballot(bool p){ uint32_t r; collective("ballot",&p,&r,[](WarpSlot&s){uint32_t m=0; for(int l=0;l<32;l++) m|=(uint32_t)(*(bool*)s.in[l])<<l; for(int l=0;l<32;l++)*(uint32_t*)s.out[l]=m;}); return r; }
inline uint32_t float_bits(float x){uint32_t u;memcpy(&u,&x,4);return u;} inline float bits_float(uint32_t u){float x;memcpy(&x,&u,4);return x;}
inline uint16_t f2h(float x){_Float16 h=(_Float16)x; uint16_t u; memcpy(&u,&h,2); return u;} inline float h2f(uint16_t u){_Float16 h; memcpy(&h,&u,2); return (float)h;}
inline uint32_t pack_half2(float x,float y){ return f2h(x)|((uint32_t)f2h(y)<<16); }
inline float2 unpack_half2(uint32_t u){ return {h2f(u&0xffff),h2f(u>>16)}; }
inline uint32_t halve(uint32_t u){ float2 f=unpack_half2(u); return pack_half2(f.x*.5f,f.y*.5f); }
inline uint32_t twice(uint32_t u){ float2 f=unpack_half2(u); return pack_half2(f.x*2.f,f.y*2.f); }
inline float reciprocal(float x){return 1.f/x;} inline float reciprocal_sqrt(float x){return 1.f/sqrtf(x);}
inline uint32_t shared_address(const void* p){ return (uint32_t)((char*)p-smem_base); }
inline void mma_fp16(float (&d)[4],const uint32_t (&a)[4],uint32_t b0,uint32_t b1){ struct A{float*d;const uint32_t*a;uint32_t b0,b1;} arg{d,a,b0,b1};
  collective("mma",&arg,nullptr,[](WarpSlot&s){ static float Am[16][16],Bm[16][8]; 
   for(int l=0;l<32;l++){ A*x=(A*)s.in[l]; int g=l>>2,q=l&3; for(int z=0;z<4;z++){ float2 f=unpack_half2(x->a[z]); int r=g+8*(z&1),k=2*q+8*(z>>1); Am[r][k]=f.x; Am[r][k+1]=f.y; } float2 f=unpack_half2(x->b0); Bm[2*q][g]=f.x;Bm[2*q+1][g]=f.y; f=unpack_half2(x->b1); Bm[2*q+8][g]=f.x;Bm[2*q+9][g]=f.y; }
   for(int l=0;l<32;l++){ A*x=(A*)s.in[l]; int g=l>>2,q=l&3; for(int z=0;z<4;z++){ int r=g+8*(z>>1),c=2*q+(z&1); float t=0; for(int k=0;k<16;k++) t+=Am[r][k]*Bm[k][c]; x->d[z]+=t; } } }); }
inline void mma_fp16_k8(float (&d)[4],uint32_t a0,uint32_t a1,uint32_t b){ uint32_t a[4]={a0,a1,0,0}; mma_fp16(d,a,b,0); }
template<bool T> inline void ldm(uint32_t (&r)[4],uint32_t addr){ struct A{uint32_t*r;uint32_t a;} arg{r,addr}; collective(T?"ldmT":"ldm",&arg,nullptr,[](WarpSlot&s){ for(int m=0;m<4;m++){ uint16_t M[8][8]; for(int i=0;i<8;i++){ A*x=(A*)s.in[8*m+i]; if(x->a&15){printf("misaligned ldm\n");abort();} memcpy(M[i],smem_base+x->a,16);} for(int l=0;l<32;l++){int g=l>>2,q=l&3; uint32_t v=T?(M[2*q][g]|((uint32_t)M[2*q+1][g]<<16)):(M[g][2*q]|((uint32_t)M[g][2*q+1]<<16)); ((A*)s.in[l])->r[m]=v;} } }); }
inline void load_matrix(uint32_t (&r)[4],uint32_t a){ldm<false>(r,a);} inline void load_matrix_transposed(uint32_t (&r)[4],uint32_t a){ldm<true>(r,a);}
inline uint32_t transpose_8x8(uint32_t x){ uint32_t y; collective("movm",&x,&y,[](WarpSlot&s){ uint16_t M[8][8]; for(int l=0;l<32;l++){uint32_t v=*(uint32_t*)s.in[l]; M[l>>2][2*(l&3)]=v&0xffff; M[l>>2][2*(l&3)+1]=v>>16;} for(int l=0;l<32;l++){int g=l>>2,q=l&3; *(uint32_t*)s.out[l]=M[2*q][g]|((uint32_t)M[2*q+1][g]<<16);} }); return y; }
inline float2 load_once2(const float*p){return {p[0],p[1]};} inline float load_once(const float*p){return *p;} inline uint32_t load_word(const uint32_t*p){return *p;}
inline void store_once2(float*p,float2 x){p[0]=x.x;p[1]=x.y;}
struct BarM{int bytes; int phase;}; inline void barrier_init(void*p){ BarM*b=(BarM*)p; b->bytes=0; b->phase=0; } inline void barrier_expect(void*p,int n){ ((BarM*)p)->bytes+=n; } inline void barrier_got(void*p,int n){ BarM*b=(BarM*)p; b->bytes-=n; if(b->bytes==0) b->phase++; } inline void barrier_wait(void*p,int parity){ volatile BarM*b=(BarM*)p; while((b->phase&1)==parity) yield_(); } inline void fence_async(){} inline void bulk_store_commit(){} inline void bulk_store_wait(){} inline void bulk_store_read(){} inline void bulk_store_read_older(){}
inline void bulk_load(void*d,const void*s,int n,void*b){memcpy(d,s,n); barrier_got(b,n);} inline void bulk_store(void*d,const void*s,int n){memcpy(d,s,n);}
struct TensorMap{const float* a; int n;};
inline void barrier_got(void*p,int n);
inline void tensor_load(void* to,const TensorMap* m,int col,int row,void*b){ barrier_got(b,16384); for(int r=0;r<128;r++) for(int u=0;u<8;u++) memcpy((char*)to+r*128+((u^(r&7))<<4), m->a+(size_t)(row+r)*m->n+col+4*u,16); }
inline void tensor_load_low(void*to,const TensorMap*m,int tile,int group,void*b){ barrier_got(b,8192); for(int g=0;g<4;g++) memcpy((char*)to+g*2048,(const char*)m->a+((size_t)(group+g)*64+tile)*128,2048); }
inline void tensor_store_low(const TensorMap*m,const void*from,int tile,int group){ for(int g=0;g<4;g++) memcpy((char*)m->a+((size_t)(group+g)*64+tile)*128,(const char*)from+g*2048,2048); }
inline void tensor_prefetch(const TensorMap*,int,int){}
#ifndef WGMMA_V
#define WGMMA_V 1
#endif
#define WARPGROUP_MMA WGMMA_V
#define EMULATED 1
inline void wgmma_fence(){} inline void wgmma_commit(){} inline void wgmma_wait(){}
static uint16_t ld16(uint32_t a){ uint16_t u; memcpy(&u,smem_base+a,2); return u; }
struct Desc{uint32_t a,kb,nb; Desc(uint64_t d){a=(d&0x3fff)<<4; kb=((d>>16)&0x3fff)<<4; nb=((d>>32)&0x3fff)<<4;}};
inline uint32_t first_lane(uint32_t x){ return x; }
template<int T> inline void wgmma_registers(float (&w)[8][4],const uint32_t (&a)[4],uint64_t b){ struct A{float(*w)[4];const uint32_t*a;uint64_t b;} arg{w,a,b};
  collective("wgr",&arg,nullptr,[](WarpSlot&s){ static float Am[16][16],Bm[16][64]; Desc d(((A*)s.in[0])->b);
   for(int l=0;l<32;l++){ A*x=(A*)s.in[l]; int g=l>>2,q=l&3; for(int z=0;z<4;z++){ float2 f=unpack_half2(x->a[z]); int r=g+8*(z&1),k=2*q+8*(z>>1); Am[r][k]=f.x; Am[r][k+1]=f.y; } }
   for(int k=0;k<16;k++) for(int n=0;n<64;n++) Bm[k][n]=h2f(ld16(d.a+(k>>3)*d.kb+(n>>3)*d.nb+(T?(k&7)*16+(n&7)*2:(n&7)*16+(k&7)*2)));
   for(int l=0;l<32;l++){ A*x=(A*)s.in[l]; int g=l>>2,q=l&3; for(int i=0;i<8;i++) for(int z=0;z<4;z++){ int r=g+8*(z>>1),c=8*i+2*q+(z&1); float t=0; for(int k=0;k<16;k++) t+=Am[r][k]*Bm[k][c]; x->w[i][z]+=t; } } }); }
inline void wgmma_tiles(float (&c)[4][4],uint64_t a,uint64_t b){ struct A{float(*w)[4];uint64_t a,b;} arg{c,a,b};
  collective("wgt",&arg,nullptr,[](WarpSlot&s){ static float Am[16][16],Bm[16][32]; Desc d(((A*)s.in[0])->b),e(((A*)s.in[0])->a); const int NN=32; int ws=(cur/32)&3;
   for(int m=0;m<16;m++) for(int k=0;k<16;k++){ int M=16*ws+m; Am[m][k]=h2f(ld16(e.a+(M>>3)*e.nb+(k>>3)*e.kb+(M&7)*16+(k&7)*2)); }
   for(int k=0;k<16;k++) for(int n=0;n<NN;n++) Bm[k][n]=h2f(ld16(d.a+(k>>3)*d.kb+(n>>3)*d.nb+(n&7)*16+(k&7)*2));
   for(int l=0;l<32;l++){ A*x=(A*)s.in[l]; int g=l>>2,q=l&3; for(int i=0;i<NN/8;i++) for(int z=0;z<4;z++){ int r=g+8*(z>>1),cc=8*i+2*q+(z&1); float t=0; for(int k=0;k<16;k++) t+=Am[r][k]*Bm[k][cc]; x->w[i][z]+=t; } } }); }
template<int T,int NS> inline void wgmma_64(float(&a)[4],float(&b)[4],float(&c)[4],float(&d)[4],float(&e)[4],float(&f)[4],float(&g)[4],float(&h)[4],const uint32_t(&r)[4],uint32_t de){ wgmma_registers<T>(*(float(*)[8][4])&a,r,(uint64_t)(NS>>4)<<32|de); }
template<int T,int NS> inline void wgmma_32(float(&a)[4],float(&b)[4],float(&c)[4],float(&d)[4],const uint32_t(&ar)[4],uint32_t b0_){ uint64_t b_=(uint64_t)(NS>>4)<<32|b0_; struct A{float*w;const uint32_t*a;uint64_t b;} arg{a,ar,b_};
  collective("wg32",&arg,nullptr,[](WarpSlot&s){ static float Am[16][16],Bm[16][32]; Desc d(((A*)s.in[0])->b);
   for(int l=0;l<32;l++){ A*x=(A*)s.in[l]; int g=l>>2,q=l&3; for(int z=0;z<4;z++){ float2 f=unpack_half2(x->a[z]); int r=g+8*(z&1),k=2*q+8*(z>>1); Am[r][k]=f.x; Am[r][k+1]=f.y; } }
   for(int k=0;k<16;k++) for(int n=0;n<32;n++) Bm[k][n]=h2f(ld16(d.a+(k>>3)*d.kb+(n>>3)*d.nb+(T?(k&7)*16+(n&7)*2:(n&7)*16+(k&7)*2)));
   for(int l=0;l<32;l++){ A*x=(A*)s.in[l]; int g=l>>2,q=l&3; for(int i=0;i<4;i++) for(int z=0;z<4;z++){ int r=g+8*(z>>1),cc=8*i+2*q+(z&1); float t=0; for(int k=0;k<16;k++) t+=Am[r][k]*Bm[k][cc]; x->w[4*i+z]+=t; } } }); }
inline uint32_t tile_descriptor(uint32_t address, uint32_t k_stride) { return (address >> 4 & 0x3fff) | (k_stride >> 4) << 16; }
inline float largest(float x){ for(int d=16;d;d>>=1) x=fmaxf(x,shfl_xor(x,d)); return x; }
inline uint32_t times_half2(uint32_t u,uint32_t v){ float2 a=unpack_half2(u),b=unpack_half2(v); return pack_half2(a.x*b.x,a.y*b.y); }
inline void fence_all(){}
inline void store_matrix(uint32_t addr,const uint32_t (&r)[4]){ struct A{const uint32_t*r;uint32_t a;} arg{r,addr}; collective("stm",&arg,nullptr,[](WarpSlot&s){ for(int m=0;m<4;m++) for(int i=0;i<8;i++){ A*x=(A*)s.in[8*m+i]; uint32_t row[4]; for(int q=0;q<4;q++) row[q]=((A*)s.in[4*i+q])->r[m]; memcpy(smem_base+x->a,row,16);} }); }
inline float two_over(float x){return 2.f/x;}
inline void atomic_min(int*p,int x){ if(x<*p)*p=x; } inline int lowest_bit(uint32_t x){return __builtin_ctz(x);}
inline void atomic_max(uint32_t*p,uint32_t x){ if(x>*p)*p=x; } inline uint4 load_quad(const uint4*p){return *p;} inline void prefetch_line(const float*){}
static std::function<void(int)> kernel_fn;
static void entry(){ kernel_fn(cur); fib[cur].done=true; while(1) yield_(); }
inline void run_cta(std::function<void(int)> f,size_t smem){ kernel_fn=f; if(!smem_base) smem_base=(char*)aligned_alloc(1024,(smem+1023)/1024*1024); memset(smem_base,0xff,smem);
  for(auto&b:bars)b=Bar(); for(auto&w:wslot)w=WarpSlot();
  for(int i=0;i<NT;i++){ if(!fib[i].stack) fib[i].stack=(char*)malloc(1<<18); fib[i].done=false; fib[i].gen=nullptr; getcontext(&fib[i].ctx); fib[i].ctx.uc_stack.ss_sp=fib[i].stack; fib[i].ctx.uc_stack.ss_size=1<<18; fib[i].ctx.uc_link=nullptr; makecontext(&fib[i].ctx,entry,0);}
  int left=NT; unsigned seed=12345; while(left){ bool prog=false; seed=seed*1664525+1013904223; int w0=(seed>>16)%8; for(int ii=0;ii<NT;ii++){ int i=(ii+w0*32)%NT; if(fib[i].done) continue; if(fib[i].gen&&*fib[i].gen==fib[i].want) continue; cur=i; prog=true; swapcontext(&mainctx,&fib[i].ctx); if(fib[i].done) left--; } if(!prog){printf("DEADLOCK left=%d\n",left); for(int b=0;b<16;b++) printf("bar %d count %d need %d\n",b,bars[b].count,bars[b].need); abort();} } }
#define RARE(...) (__VA_ARGS__)
inline void fence_global(){}
inline uint32_t plus_half2(uint32_t u,uint32_t v){ float2 a=unpack_half2(u),b=unpack_half2(v); return pack_half2(a.x+b.x,a.y+b.y); }
template<int MS,int NS> inline void wgmma_tiles(float(&a)[4],float(&b)[4],float(&c)[4],float(&d)[4],uint32_t x,uint32_t y){ wgmma_tiles(*(float(*)[4][4])&a,(uint64_t)(MS>>4)<<32|x,(uint64_t)(NS>>4)<<32|y); }
inline void keep(uint32_t&){} inline void keep(float*&){}
inline uint32_t sum_lanes(uint32_t x){ uint32_t r; collective("sum",&x,&r,[](WarpSlot&s){uint32_t m=0; for(int l=0;l<32;l++) m+=*(uint32_t*)s.in[l]; for(int l=0;l<32;l++)*(uint32_t*)s.out[l]=m;}); return r; }
template<int MS,int NS> inline void multiply_tiles(float(&d)[4][4],uint32_t a,uint32_t b,int tile){ for(;tile<64;tile+=4){ uint32_t o=(tile&~15)<<6,c=tile&15; wgmma_tiles<MS,NS>(d[0],d[1],d[2],d[3],a+o+(c<<(MS==2048?3:6)),b+o+(c<<(NS==2048?3:6))); } }
template<int T,int NS> inline void wgmma_64(float(&a)[4],float(&b)[4],float(&c)[4],float(&d)[4],float(&e)[4],float(&f)[4],float(&g)[4],float(&h)[4],const uint32_t(&r)[4],uint32_t de,bool all){ if(all) wgmma_64<T,NS>(a,b,c,d,e,f,g,h,r,de); else wgmma_32<T,NS>(a,b,c,d,r,de); }
template<int T,int NS> inline void wgmma_32_if(bool on,float(&a)[4],float(&b)[4],float(&c)[4],float(&d)[4],const uint32_t(&r)[4],const uint32_t(&r2)[4],uint32_t x,uint32_t y){ if(on){ wgmma_32<T,NS>(a,b,c,d,r,x); wgmma_32<T,NS>(a,b,c,d,r2,y);} }
inline unsigned long long load_state(const unsigned long long* p){ return *p; } inline void store_state(unsigned long long* p,unsigned long long x){ *p=x; } inline void short_sleep(){ yield_(); }
