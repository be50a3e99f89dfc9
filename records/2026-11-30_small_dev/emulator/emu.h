#include <cuda_fp16.h>
#include <vector_types.h>
#include <vector_functions.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <algorithm>
#include <vector>
#include <type_traits>
using std::min; using std::max;
#undef __launch_bounds__
struct Warp { int gen=0,count=0; uint32_t slot[32][16]; uint32_t out[32][16]; };
struct Fiber { void* sp; char* stack; int tid, cta, block; bool done; Warp* w; int cgen; };
struct Bar { int gen=0,count=0; };
struct Cta { unsigned char* smem; Bar bars[16]; };
extern Fiber* cur; extern void* sched_sp; extern std::vector<Cta> ctas; extern int CTASZ,CLUSTER; extern Bar clusterbar; extern int nthreads; extern long progress;
extern "C" void sw(void** from, void* to);
inline void yield_() { sw(&cur->sp, sched_sp); }
inline void warp_bar() { Warp* w=cur->w; int g=w->gen; if(++w->count==32){w->count=0;w->gen++;progress++;} else while(w->gen==g) yield_(); }
inline void bar_(Bar& b,int n){int g=b.gen; if(++b.count==n){b.count=0;b.gen++;progress++;} else while(b.gen==g) yield_();}
inline void bar_arrive_(Bar& b,int n){ if(++b.count==n){b.count=0;b.gen++;} progress++; }
struct Idx{ int x; };
#define threadIdx (Idx{cur->tid})
#define blockIdx (Idx{cur->block})
inline void __syncwarp(){ warp_bar(); }
inline void __syncthreads(){ bar_(ctas[cur->cta].bars[0],nthreads); }
template<class T> T shfl_(T x,int src){ Warp*w=cur->w; int l=cur->tid&31; memcpy(w->slot[l],&x,4); warp_bar(); T y; memcpy(&y,w->slot[src&31],4); warp_bar(); return y; }
template<class T> T __shfl_sync(unsigned,T x,int s){return shfl_(x,s);}
template<class T> T __shfl_xor_sync(unsigned,T x,int m){return shfl_(x,(cur->tid&31)^m);}
inline bool __all_sync(unsigned,bool b){ Warp*w=cur->w; int l=cur->tid&31; w->slot[l][0]=b; warp_bar(); bool r=true; for(int i=0;i<32;i++) r=r&&w->slot[i][0]; warp_bar(); return r; }
inline float __uint_as_float_(uint32_t u){float f; memcpy(&f,&u,4); return f;}
inline uint32_t __float_as_uint_(float f){uint32_t u; memcpy(&u,&f,4); return u;}
#define __uint_as_float __uint_as_float_
#define __float_as_uint __float_as_uint_
template<class T> T ldg_(const T*p){return *p;}
#define __ldg ldg_
#define __ldcg ldg_
inline unsigned char* sptr(uint32_t a){ int c=(a>>20)-1; if(c<0||c>=CTASZ||(a&0xfffff)>=232448){ printf("bad shared address %x\n",a); abort(); } return ctas[c].smem+(a&0xfffff); }
#define DEVICE inline
inline float rcp(float x){return 1.f/x;} inline float rsq(float x){return 1.f/sqrtf(x);}
inline uint32_t shared_address(const void*p){ long o=(unsigned char*)p-ctas[cur->cta].smem; if(o<0||o>=232448){printf("bad shared pointer %ld\n",o);abort();} return (uint32_t)o+((cur->cta+1)<<20); }
inline float hf(uint32_t u,int i){ uint16_t x=i?u>>16:u&0xffff; __half h; memcpy(&h,&x,2); return __half2float(h); }
inline void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1){
  Warp*w=cur->w; int l=cur->tid&31,g=l>>2,q=l&3; for(int i=0;i<4;i++)w->slot[l][i]=a[i]; w->slot[l][4]=b0;w->slot[l][5]=b1; warp_bar();
  for(int r=0;r<4;r++){ int row=g+8*(r>>1), col=2*q+(r&1); float s=0; for(int k=0;k<16;k++){ int kk=k&7; 
     float av=hf(w->slot[(row&7)*4+(kk>>1)][(row>>3)+2*(k>>3)],kk&1), bv=hf(w->slot[col*4+(kk>>1)][4+(k>>3)],kk&1); s+=av*bv; } d[r]+=s; }
  warp_bar(); }
inline void lm_(uint32_t (&r)[4], uint32_t a,bool tr){ Warp*w=cur->w; int l=cur->tid&31; if(a&15){printf("ldmatrix misaligned\n");abort();} w->slot[l][0]=a; warp_bar(); int g=l>>2,q=l&3;
  for(int m=0;m<4;m++){ uint16_t x[2]; for(int e=0;e<2;e++){ int row=tr?2*q+e:g, c=tr?g:2*q+e; memcpy(&x[e],sptr(w->slot[m*8+row][0])+2*c,2);} r[m]=x[0]|(uint32_t)x[1]<<16; } warp_bar(); }
inline void load_matrix(uint32_t (&r)[4], uint32_t a){lm_(r,a,false);} inline void load_matrix_transposed(uint32_t (&r)[4], uint32_t a){lm_(r,a,true);}
inline void store_matrix(uint32_t a,uint32_t r0,uint32_t r1,uint32_t r2,uint32_t r3){ Warp*w=cur->w; int l=cur->tid&31; if(a&15){printf("stmatrix misaligned\n");abort();} w->slot[l][0]=a; warp_bar(); uint32_t r[4]={r0,r1,r2,r3}; int g=l>>2,q=l&3; for(int m=0;m<4;m++) memcpy(sptr(w->slot[m*8+g][0])+4*q,&r[m],4); warp_bar(); }
inline uint32_t transpose_8x8(uint32_t x){ Warp*w=cur->w; int l=cur->tid&31,g=l>>2,q=l&3; w->slot[l][0]=x; warp_bar(); uint16_t y[2]; for(int e=0;e<2;e++){ uint32_t u=w->slot[(2*q+e)*4+(g>>1)][0]; y[e]=g&1?u>>16:u&0xffff; } warp_bar(); return y[0]|(uint32_t)y[1]<<16; }
struct MB{ uint8_t count,pending; uint16_t phase; int32_t tx; };
inline void done_(MB&m){ if(m.pending==0&&m.tx==0){ m.pending=m.count;m.phase++; if(m.phase>1){printf("barrier completed twice\n");abort();} } progress++; }
inline void barrier_init(uint64_t*b,int c){ MB m{(uint8_t)c,(uint8_t)c,0,0}; memcpy(b,&m,8);} 
inline void arrive_(void*b){ MB m; memcpy(&m,b,8); if(m.count==0||m.pending==0){printf("arrive on uninit or full\n");abort();} --m.pending; done_(m); memcpy(b,&m,8); }
inline void expect_bytes(uint64_t*b,int n){ MB m; memcpy(&m,b,8); m.tx+=n; memcpy(b,&m,8); arrive_(b); }
inline void tx_(uint32_t b,int n){ MB m; memcpy(&m,sptr(b),8); if(m.count==0){printf("tx on uninit\n");abort();} m.tx-=n; if(m.tx<0&&m.pending==0){printf("tx underflow\n");abort();} done_(m); memcpy(sptr(b),&m,8); }
inline void cluster_fence(){}
inline void barrier_arrive(uint64_t*b){arrive_(b);} inline void remote_arrive(uint32_t a){arrive_(sptr(a));}
inline uint32_t remote(const void*p,uint32_t rank){ return (shared_address(p)&0xfffff)|((rank+1)<<20); }
inline void remote_store(uint32_t at,uint32_t x){memcpy(sptr(at),&x,4);} inline void remote_store(uint32_t at,uint4 x){ if(at&15){printf("misaligned remote\n");abort();} memcpy(sptr(at),&x,16);} 
inline void store_async(uint32_t at,uint32_t x,uint32_t b){memcpy(sptr(at),&x,4);tx_(b,4);} inline void store_async(uint32_t at,uint4 x,uint32_t b){ if(at&15){printf("misaligned async\n");abort();} memcpy(sptr(at),&x,16);tx_(b,16);} inline void remote_arrive_relaxed(uint32_t a){arrive_(sptr(a));}
inline void cluster_arrive(){ if(cur->cta>=CLUSTER) return; cur->cgen=clusterbar.gen; if(++clusterbar.count==nthreads*CLUSTER){clusterbar.count=0;clusterbar.gen++;} progress++; }
inline void cluster_wait(){ if(cur->cta>=CLUSTER) return; while(clusterbar.gen==cur->cgen) yield_(); }
inline void cluster_sync(){ bar_(clusterbar,nthreads*CLUSTER); }
inline bool barrier_passed(uint64_t*b){ MB m; memcpy(&m,b,8); return m.phase>0; }
inline void barrier_wait(uint64_t*b){ while(!barrier_passed(b)) yield_(); }
inline void after_earlier_grids(){}
inline void st_(uint32_t a,float x){memcpy(sptr(a),&x,4);} 

inline void flag_set(uint32_t*p,uint32_t x){*p=x;progress++;} inline uint32_t flag_get(const uint32_t*p){uint32_t x=*p; yield_(); return x;}
inline void prefetch(const void*){}
