// CPU emulation of the hardware layer: one fiber a thread
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <vector>
#include <map>
#include <algorithm>
#include <type_traits>
#include <random>
using std::min; using std::max;
#define DEVICE static inline
#define __global__ static
#define __launch_bounds__(...)
#define __shared__
#define __align__(x)
#define __grid_constant__
#define __restrict__ __restrict
struct float2{float x,y;}; struct __attribute__((aligned(16))) float4{float x,y,z,w;}; struct uint2{uint32_t x,y;}; struct __attribute__((aligned(16))) uint4{uint32_t x,y,z,w;};
static float2 make_float2(float a,float b){return {a,b};} static float4 make_float4(float a,float b,float c,float d){return {a,b,c,d};} static uint4 make_uint4(uint32_t a,uint32_t b,uint32_t c,uint32_t d){return {a,b,c,d};} static uint2 make_uint2(uint32_t a,uint32_t b){return {a,b};}
struct __half{ _Float16 v; }; struct __half2{ _Float16 x,y; };
static __half2 __floats2half2_rn(float a,float b){ return {(_Float16)a,(_Float16)b}; } static float2 __half22float2(__half2 h){ return {(float)h.x,(float)h.y}; } static __half __float2half_rn(float a){ return {(_Float16)a}; } static float __half2float(__half h){ return (float)h.v; }
static float __uint_as_float(uint32_t u){ float f; memcpy(&f,&u,4); return f; } static uint32_t __float_as_uint(float f){ uint32_t u; memcpy(&u,&f,4); return u; } static int __float_as_int(float f){ int u; memcpy(&u,&f,4); return u; } static float __int_as_float(int i){ float f; memcpy(&f,&i,4); return f; }
extern "C" void ctx_switch(void** save,void* load);
asm(".text\n.globl ctx_switch\nctx_switch:\npush %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp,(%rdi)\nmov %rsi,%rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
struct Mbar{ int pending=0,tx=0,phase=0,count=0; };
struct Warp{ int count=0; long gen=0; alignas(16) unsigned char buf[2][32][64]; };
struct Named{ int count=0; long gen=0; };
struct Cta{ std::vector<unsigned char> sm; std::map<uint32_t,Mbar> bars; std::vector<Warp> warps; Named named[16]; int synccount=0; long syncgen=0; int nthreads; };
struct Cluster{ std::vector<Cta> cta; int arrived=0; long gen=0; };
struct Fiber{ void* sp; std::vector<unsigned char> stack; int tid,rank,block; bool done=false; long cwait=0; Cta* cta; };
static Fiber* cur; static void* main_sp; static Cluster* clu; static std::vector<Fiber> fibers; static bool (*dummy)();
struct CUtensorMap{ const float* a; int n,units; }; struct Dim{ int x; }; 
static Dim get_tid(){ return {cur->tid}; } static Dim get_bid(){ return {cur->block}; }
#define threadIdx get_tid()
#define blockIdx get_bid()
static long progress=0;
static void yield_(){ Fiber* f=cur; ctx_switch(&f->sp,main_sp); }
template<class F> static void wait_until(F f){ while(!f()) yield_(); progress++; }
static Warp& mywarp(){ return cur->cta->warps[cur->tid/32]; }
// deposit up to 64 bytes, wait for the 32 lanes, return the buffer
static unsigned char (*collect(const void* p,int bytes))[64]{ Warp& w=mywarp(); long g=w.gen; int b=g&1; memcpy(w.buf[b][cur->tid&31],p,bytes); if(++w.count==32){ w.count=0; w.gen++; progress++; } else wait_until([&]{ return w.gen!=g; }); return w.buf[b]; }
template<class T> static T shfl_(T v,int src){ auto b=collect(&v,sizeof(T)); T r; memcpy(&r,b[src&31],sizeof(T)); return r; }
#define __shfl_sync(m,v,s) shfl_(v,s)
#define __shfl_xor_sync(m,v,s) shfl_(v,(cur->tid&31)^(s))
static unsigned __ballot_sync(unsigned,int p){ auto b=collect(&p,4); unsigned r=0; for(int i=0;i<32;i++){ int x; memcpy(&x,b[i],4); if(x) r|=1u<<i; } return r; }
static void __syncwarp(){ int x=0; collect(&x,4); }
static void __syncthreads(){ Cta& c=*cur->cta; long g=c.syncgen; if(++c.synccount==c.nthreads){ c.synccount=0; c.syncgen++; progress++; } else wait_until([&]{ return c.syncgen!=g; }); }
static int atomicMin(int* p,int v){ int o=*p; if(v<o)*p=v; return o; } static int atomicMax(int* p,int v){ int o=*p; if(v>o)*p=v; return o; }
static unsigned char* smem_base(){ return cur->cta->sm.data(); }
namespace qr1024 {
static int opaque(int x){ return x; }
static float reciprocal(float x){ return 1.f/x; } static float reciprocal_if_positive(float r,float x){ return r>0.f?1.f/x:0.f; } static float reciprocal_sqrt(float x){ return 1.f/sqrtf(x); }
static uint32_t shared_address(const void* p){ return (uint32_t)((const unsigned char*)p-smem_base())|((uint32_t)cur->rank<<24); }
static uint32_t pack_anew(float x,float y){ __half2 h=__floats2half2_rn(x,y); uint32_t u; memcpy(&u,&h,4); return u; }
static uint32_t bits(__half2 h){ uint32_t u; memcpy(&u,&h,4); return u; }
static float tf(uint32_t u){ return __uint_as_float(u&0xffffe000u); }
static void mma_tf32(float (&d)[4],const uint32_t (&a)[4],uint32_t b0,uint32_t b1){ uint32_t v[6]={a[0],a[1],a[2],a[3],b0,b1}; auto B=collect(v,24); int l=cur->tid&31,g=l/4,q=l%4; for(int z=0;z<4;z++){ int r=g+8*(z>>1),n=2*q+(z&1); float s=d[z]; for(int k=0;k<8;k++){ uint32_t x[6]; memcpy(x,B[(r%8)*4+k%4],24); float av=tf(x[(r/8)+2*(k/4)]); memcpy(x,B[n*4+k%4],24); float bv=tf(x[4+k/4]); s+=av*bv; } d[z]=s; } }
static void mma_fp16(float (&d)[4],const uint32_t (&a)[4],uint32_t b0,uint32_t b1){ uint32_t v[6]={a[0],a[1],a[2],a[3],b0,b1}; auto B=collect(v,24); int l=cur->tid&31,g=l/4,q=l%4; auto hf=[](uint32_t u,int e){ __half2 h; memcpy(&h,&u,4); return (float)(e?h.y:h.x); }; for(int z=0;z<4;z++){ int r=g+8*(z>>1),n=2*q+(z&1); float s=d[z]; for(int k=0;k<16;k++){ uint32_t x[6]; memcpy(x,B[(r%8)*4+(k%8)/2],24); float av=hf(x[(r/8)+2*(k/8)],k&1); memcpy(x,B[n*4+(k%8)/2],24); float bv=hf(x[4+k/8],k&1); s+=av*bv; } d[z]=s; } }
static uint32_t operand_address(uint32_t a){ return (a&0x3ffff)>>4; }
static uint32_t uniform(uint32_t x){ return shfl_(x,0); }
static uint64_t descriptor(uint32_t at16,uint32_t offset,uint32_t lead,uint32_t stride){ return (uint64_t)(stride>>4)<<32|(at16+(offset>>4)+(lead>>4<<16)); }
static void wgmma_fence(){} static void wgmma_commit(){} template<int P=0> static void wgmma_wait(){}
template<bool K_MAJOR,int SIZE> static void wgmma(float (&d)[SIZE],const uint32_t (&a)[4],uint64_t b){ auto B=collect(a,16); float A[2][16]; int l=cur->tid&31,g=l/4,q=l%4; for(int h=0;h<2;h++) for(int k=0;k<16;k++){ uint32_t x[4]; memcpy(x,B[g*4+(k%8)/2],16); uint32_t u=x[h+2*(k/8)]; __half2 hh; memcpy(&hh,&u,4); A[h][k]=(float)((k&1)?hh.y:hh.x); }
 uint32_t at=(uint32_t)(b&0x3fff)<<4,lead=(uint32_t)(b>>16&0x3fff)<<4,stride=(uint32_t)(b>>32&0x3fff)<<4; unsigned char* sm=smem_base();
 for(int t=0;t<SIZE/4;t++) for(int e=0;e<2;e++){ int n=2*q+e; float bv[16]; for(int k=0;k<16;k++){ uint32_t ad=at+(k/8)*lead+t*stride+(K_MAJOR?n*16+(k%8)*2:(k%8)*16+n*2); _Float16 h; memcpy(&h,sm+ad,2); bv[k]=(float)h; } for(int h=0;h<2;h++){ float s=d[t*4+h*2+e]; for(int k=0;k<16;k++) s+=A[h][k]*bv[k]; d[t*4+h*2+e]=s; } } }
static void load_matrices(uint32_t at,uint32_t (&x)[4]);
static void wgmma_shared(float (&d)[16],uint64_t a,uint64_t b){ int lane=cur->tid&31; uint32_t x[4]; load_matrices(((uint32_t)(a&0x3fff)<<4)+((cur->tid>>5&3)*2+(lane>>3&1))*((uint32_t)(a>>32&0x3fff)<<4)+(lane>>4)*((uint32_t)(a>>16&0x3fff)<<4)+(lane&7)*16,x); wgmma<true>(d,x,b); }
template <class... X> static void wgmma_rows(const uint32_t (&a)[4], uint64_t b, X&... x) { ((wgmma<false>(x, a, b), b += (4 * (b >> 32 & 0x3fff))), ...); }
static void store_matrices(uint32_t at,const uint32_t (&x)[4]){ int l=cur->tid&31; for(int i=0;i<4;i++){ uint32_t a=shfl_(at,i*8+l/4); memcpy(smem_base()+(a&0xffffff)+(l%4)*4,&x[i],4); } int z=0; collect(&z,4); }
static void store_transposed(uint32_t at,uint32_t x,uint32_t y){ int l=cur->tid&31; uint32_t v[2]={x,y}; auto B=collect(v,8); (void)B; uint32_t m[2][32]; for(int i=0;i<32;i++){ m[0][i]=0; } for(int i=0;i<32;i++){ uint32_t t[2]; memcpy(t,B[i],8); m[0][i]=t[0]; m[1][i]=t[1]; } auto A=collect(&at,4); uint32_t ad[32]; for(int i=0;i<32;i++) memcpy(&ad[i],A[i],4); if(l==0) for(int k=0;k<2;k++) for(int r=0;r<8;r++) for(int c=0;c<8;c++){ uint32_t w=m[k][r*4+c/2]; uint16_t h=(c&1)?w>>16:w&0xffff; uint32_t d=ad[k*8+c]&0xffffff; if(d%16){ printf("stmatrix misaligned\n"); exit(1);} memcpy(smem_base()+d+r*2,&h,2); } int z=0; collect(&z,4); }
static void load_matrices(uint32_t at,uint32_t (&x)[4]){ int l=cur->tid&31; auto A=collect(&at,4); for(int i=0;i<4;i++){ uint32_t a; memcpy(&a,A[i*8+l/4],4); memcpy(&x[i],smem_base()+(a&0xffffff)+(l%4)*4,4); } int z=0; collect(&z,4); }
static void load_if(bool on,uint32_t at,uint32_t (&x)[4]){ if(on) memcpy(x,smem_base()+(at&0xffffff),16); else memset(x,0xff,16); }
static void store_h(float* to,float a,float b,float c,float d){ if((uintptr_t)to%16){ printf("store_h misaligned\n"); exit(1);} to[0]=a;to[1]=b;to[2]=c;to[3]=d; }
static void count_release(int* p){ ++*p; } static int load_acquire(const int* p){ return *p; } static uint32_t load_shared_by_gpu(const void* p){ uint32_t x; memcpy(&x,p,4); return x; }
static float4 load_float4(uint32_t at){ float4 x; memcpy(&x,smem_base()+(at&0xffffff),16); return x; }
static int block_index(){ return cur->block; } static int thread_index(){ return cur->tid; } static void save_words(uint32_t at,int a,int b,int c,int d){ int v[4]={a,b,c,d}; memcpy(smem_base()+(at&0xffffff),v,16); } static void load_words(uint32_t at,int& a,int& b,int& c,int& d){ int v[4]; memcpy(v,smem_base()+(at&0xffffff),16); a=v[0]; b=v[1]; c=v[2]; d=v[3]; }
static void save_floats(uint32_t at,float a,float b,float c,float d){ float v[4]={a,b,c,d}; memcpy(smem_base()+(at&0xffffff),v,16); } static void load_floats(uint32_t at,float& a,float& b,float& c,float& d){ float v[4]; memcpy(v,smem_base()+(at&0xffffff),16); a=v[0]; b=v[1]; c=v[2]; d=v[3]; }
static void fence_async(){} static void fence_async_all(){} static void bulk_store_wait_read(){}
static void prefetch_l2(const void*){} static void bulk_prefetch(const void*,uint32_t){}
static float square_root(float x){ return sqrtf(x); }
static void named_arrive(int id,int nt=64){ Named& n=cur->cta->named[id]; if(++n.count==nt){ n.count=0; n.gen++; progress++; } }
static void named_join(int id,int nt=64){ Named& n=cur->cta->named[id]; long g=n.gen; if(++n.count==nt){ n.count=0; n.gen++; progress++; } else wait_until([&]{ return n.gen!=g; }); }
static uint32_t cluster_rank(){ return cur->rank; }
static void cluster_arrive(){ cur->cwait=clu->gen; if(++clu->arrived==(int)fibers.size()){ clu->arrived=0; clu->gen++; progress++; } }
static void cluster_wait(){ wait_until([&]{ return clu->gen>cur->cwait; }); }
static uint32_t map_address(uint32_t a,uint32_t rank){ return (a&0xffffff)|(rank<<24); }
static void chk(Mbar& m){ if(m.pending==0&&m.tx==0){ m.phase++; m.pending=m.count; progress++; } }
static void complete(uint32_t bar,int bytes){ Cta& c=clu->cta[bar>>24]; if(!c.bars.count(bar&0xffffff)){ printf("no barrier at %x\n",bar); exit(1);} Mbar& m=c.bars[bar&0xffffff]; m.tx-=bytes; chk(m); }
template<class T> static void send(uint32_t to,T v,uint32_t bar){ if((to>>24)!=(bar>>24)){ printf("send: data and barrier in different CTAs\n"); exit(1);} if((to&0xffffff)%sizeof(T)){ printf("misaligned send\n"); exit(1);} memcpy(clu->cta[to>>24].sm.data()+(to&0xffffff),&v,sizeof(T)); complete(bar,sizeof(T)); }
static void barrier_init(uint32_t bar,int count=1){ Mbar m; m.count=count; m.pending=count; clu->cta[bar>>24].bars[bar&0xffffff]=m; }
static void barrier_init_fence(){}
static void barrier_expect(uint32_t bar,uint32_t bytes){ Mbar& m=clu->cta[bar>>24].bars[bar&0xffffff]; if(m.pending<=0){ printf("double arm\n"); exit(1);} m.tx+=bytes; m.pending--; chk(m); }
static void barrier_expect_more(uint32_t bar,uint32_t bytes){ Mbar& m=clu->cta[bar>>24].bars[bar&0xffffff]; if(m.pending<=0){ printf("expect on a finished phase\n"); exit(1);} m.tx+=bytes; }
static void barrier_arrive(uint32_t bar){ Mbar& m=clu->cta[bar>>24].bars[bar&0xffffff]; if(m.pending<=0){ printf("double arrive\n"); exit(1);} m.pending--; chk(m); }
static void barrier_wait(uint32_t bar,uint32_t phase){ Mbar& m=clu->cta[bar>>24].bars[bar&0xffffff]; wait_until([&]{ return (uint32_t)(m.phase&1)!=phase; }); }
static void bulk_load(uint32_t to,const void* from,uint32_t bytes,uint32_t bar){ memcpy(clu->cta[to>>24].sm.data()+(to&0xffffff),from,bytes); complete(bar,bytes); }
static void panel_copy(uint32_t to,const CUtensorMap& m,int column,int piece,uint32_t bar){ unsigned char* d=clu->cta[to>>24].sm.data(); uint32_t at=to&0xffffff; if(at%1024){ printf("panel_copy misaligned\n"); exit(1);} for(int u=0;u<m.units;u++) for(int x1=0;x1<2;x1++) for(int q=0;q<4;q++) for(int x0=0;x0<2;x0++) for(int c=0;c<8;c++){ int i=((u*2+x1)*4+q)*2+x0; size_t row=(size_t)(piece+u)*16+4*q+2*x1+x0; memcpy(d+at+i*128+((c^(i&7))*16),m.a+row*m.n+column+4*c,16); } complete(bar,m.units*2048); }
static void load_two(uint32_t at,float& a,float& b){ float v[2]; memcpy(v,smem_base()+(at&0xffffff),8); a=v[0]; b=v[1]; }
static void copy_word(uint32_t to,const float* from,bool on){ float v=on?*from:0.f; memcpy(smem_base()+(to&0xffffff),&v,4); } static void copies_wait(){}
static float load_once(const float* p){ return *p; }
static void panel_prefetch(const CUtensorMap&,int,int){}
static void bulk_store(void* to,uint32_t from,uint32_t bytes){ memcpy(to,smem_base()+(from&0xffffff),bytes); }
static void bulk_store_wait(){}
}
static void (*fiber_body)();
static void fiber_main(){ fiber_body(); cur->done=true; progress++; for(;;) yield_(); }
// run one cluster to its end
static void run_cluster(int C,int threads,int smem,int first_block,void (*body)(),unsigned seed){ fiber_body=body; Cluster cl; cl.cta.resize(C); clu=&cl; for(auto& c:cl.cta){ c.sm.assign(smem,0xff); c.warps.resize(threads/32); c.nthreads=threads; }
 fibers.clear(); fibers.resize(C*threads); std::vector<int> order; for(int r=0;r<C;r++) for(int t=0;t<threads;t++){ Fiber& f=fibers[r*threads+t]; f.tid=t; f.rank=r; f.block=first_block+r; f.cta=&cl.cta[r]; f.stack.resize(65536); void** sp=(void**)((((uintptr_t)f.stack.data()+65536)&~15ull)-16); *--sp=nullptr; *--sp=(void*)fiber_main; for(int i=0;i<6;i++) *--sp=nullptr; f.sp=sp; order.push_back(r*threads+t); }
 std::mt19937 rng(seed); long last=-1; int idle=0; 
 for(;;){ bool any=false; // warps in random order, sometimes skipped
  int nw=fibers.size()/32; std::vector<int> wo(nw); for(int i=0;i<nw;i++) wo[i]=i; std::shuffle(wo.begin(),wo.end(),rng);
  for(int w:wo){ if(seed&&(rng()&3)==0){ if(!fibers[w*32].done) any=true; continue; } for(int l=0;l<32;l++){ Fiber& f=fibers[w*32+l]; if(f.done) continue; any=true; cur=&f; ctx_switch(&main_sp,f.sp); } }
  if(!any) break; if(progress==last){ if(++idle>200){ printf("DEADLOCK\n"); for(int i=0;i<(int)fibers.size();i+=32) printf("warp %d of cta %d done %d sync %ld\n",i%threads/32,fibers[i].rank,fibers[i].done,fibers[i].cta->syncgen); exit(1);} } else idle=0; last=progress; } }
