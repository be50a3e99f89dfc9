
inline float fast_rcp(float x){return 1.f/x;} inline float fast_rsqrt(float x){return 1.f/sqrtf(x);}
inline uint32_t smem_addr(const void*p){return shared_address(p);}
inline void mma(float (&d)[4], uint32_t a0,uint32_t a1,uint32_t a2,uint32_t a3,uint32_t b0,uint32_t b1){ uint32_t a[4]={a0,a1,a2,a3}; ::mma(d,a,b0,b1);}
inline void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1){ ::mma(d,a,b0,b1);}
inline uint32_t transpose8(uint32_t x){return transpose_8x8(x);}
inline void ldsm4(uint32_t (&r)[4], uint32_t a){load_matrix(r,a);} inline void ldsm4t(uint32_t (&r)[4], uint32_t a){load_matrix_transposed(r,a);}
inline void cp16(uint32_t d,const void*s){ if((d&15)||((uintptr_t)s&15)){printf("cp16 misaligned\n");abort();} memcpy(sptr(d),s,16);}
inline void cp16z(uint32_t d,const void*s,bool on){ if(on) cp16(d,s); else memset(sptr(d),0,16);}
inline void cp4(uint32_t d,const void*s){ memcpy(sptr(d),s,4);} inline void cp_commit(){} template<int N> void cp_wait(){}
template<int C> uint32_t map_rank(uint32_t a,uint32_t r){ if((int)r>=CTASZ){printf("rank\n");abort();} return (a&0xfffff)|((r+1)<<20);}
inline void cluster_sync(){ ::cluster_sync(); }
struct MBar{uint8_t count,pending;uint16_t phase;int32_t tx;};
inline MBar*mb(uint32_t a){return (MBar*)sptr(a);}
inline void mb_done(MBar*m){ if(m->pending==0&&m->tx==0){m->pending=m->count;m->phase++;progress++;} }
inline void mbar_init(uint32_t a,uint32_t c=1){*mb(a)=MBar{(uint8_t)c,(uint8_t)c,0,0};}
inline void mbar_arrive(uint32_t a,uint32_t k=1){MBar*m=mb(a); if(m->pending<k){printf("arrive on full\n");abort();} m->pending-=k; progress++; mb_done(m);}
inline void mbar_expect(uint32_t a,uint32_t n){MBar*m=mb(a); if(m->pending!=1){printf("expect twice\n");abort();} m->tx+=n;m->pending=0;mb_done(m);progress++;}
inline void mbar_arrive_remote(uint32_t a){ mbar_arrive(a,1); }
inline void mbar_wait(uint32_t a,uint32_t ph){ while((uint32_t)(mb(a)->phase&1)==ph) yield_(); }
inline void mbar_wait_acquire(uint32_t a,uint32_t ph){ mbar_wait(a,ph); }
inline void st_async(uint32_t d,float4 v,uint32_t b){ if(d&15){printf("st_async misaligned\n");abort();} if((d>>20)!=(b>>20)){printf("st_async ranks\n");abort();} memcpy(sptr(d),&v,16); MBar*m=mb(b); m->tx-=16; mb_done(m); progress++; }
inline void put2(void*,float,float,uint32_t){} inline void put1(void*,float,uint32_t){}
template<int K> void get(const char*,size_t,uint32_t,float4(&)[K]){}
template<int NT> void block_sync(){ bar_(ctas[cur->cta].bars[0],NT);}
inline void bar_arrive(int id){bar_arrive_(ctas[cur->cta].bars[id],64);} inline void bar_join(int id){bar_(ctas[cur->cta].bars[id],64);}
inline float4 load4(const float*p){ if((uintptr_t)p&15){printf("load4 misaligned\n");abort();} float4 x; memcpy(&x,p,16); return x;}
int applied_hook(const int*p); 
#ifdef STRIPS
inline int load_acquire(const int*p){return *p;} inline void wait_for(const int*p,int v){ while(*p<v) yield_(); }
#else
inline int load_acquire(const int*p){ if(rand()%2) return 0; return applied_hook(p);} inline void wait_for(const int*p,int v){ int x=applied_hook(p); if(x<v){printf("hook %d < %d\n",x,v);abort();} }
#endif
inline void poll(const int*p,int v){ wait_for(p,v); }
inline void add_release(int*p,int v){*p+=v;progress++;}
inline void atomicMin(int*p,int v){if(v<*p)*p=v;}
inline unsigned __ballot_sync(unsigned,bool b){ Warp*w=cur->w; int l=cur->tid&31; w->slot[l][0]=b; warp_bar(); unsigned r=0; for(int i=0;i<32;i++) r|=(w->slot[i][0]?1u:0u)<<i; warp_bar(); return r; }
inline void __threadfence(){} inline long long clock64(){return 0;} inline void __trap(){abort();}
inline void put_remote(uint32_t d, float4 v){ if(d&15){printf("put_remote misaligned\n");abort();} memcpy(sptr(d),&v,16); progress++; } inline long clock(){return 0;}
inline void st_async2(uint32_t d,float x,float y,uint32_t b){ if(d&7){printf("st_async2 misaligned\n");abort();} if((d>>20)!=(b>>20)){printf("st_async ranks\n");abort();} float v[2]={x,y}; memcpy(sptr(d),v,8); MBar*m=mb(b); m->tx-=8; mb_done(m); progress++; }

#ifdef STRIPS
template<int N> void bar_start(){ bar_(ctas[cur->cta].bars[1],N); }
template<class... X> void column_max(X...){}
inline void fence_shared(){} inline void fence_global(){}
inline void warpgroup_sync(int wg){ bar_(ctas[cur->cta].bars[1+wg],128); }
inline void mbar_wait_cta(uint32_t a,uint32_t ph){ mbar_wait(a,ph); }
inline void tl_(uint32_t to,const CUtensorMap*m,long x,long y,int rows,bool store){ if(to&1023){printf("tensor misaligned\n");abort();}
  for(int r=0;r<rows;r++) for(int b=0;b<8;b++){ uint32_t at=to+r*128+((b^(r&7))<<4); char*g=(char*)m->p+(y+r)*m->pitch+x*m->elem+16*b; if(store) memcpy(g,sptr(at),16); else memcpy(sptr(at),g,16); } }
inline void tensor_load(uint32_t to,const CUtensorMap*m,int x,int y,uint32_t bar){ tl_(to,m,x,y,m->rows,false); MBar*mm=mb(bar); mm->tx-=m->rows*128; mb_done(mm); progress++; }
inline void tensor_load(uint32_t to,const CUtensorMap*m,int x,int y,int z,uint32_t bar){ for(int b=0;b<2;b++) tl_(to+8192*b,m,x+32*(z+b),y,64,false); MBar*mm=mb(bar); mm->tx-=16384; mb_done(mm); progress++; }
inline void tensor_store(const CUtensorMap*m,int x,int y,int z,uint32_t from){ for(int b=0;b<2;b++) tl_(from+8192*b,m,x+32*(z+b),y,64,true); progress++; }
inline void bulk_wait_read(){}
inline void wg_fence(){} inline void wg_commit(){} inline void wg_wait(){}
template <bool ALONG_K> void wgmma(float (&d)[32], const uint32_t (&a)[4], uint32_t at) {
  Warp*w=cur->w; int l=cur->tid&31,g=l>>2,q=l&3; for(int i=0;i<4;i++)w->slot[l][i]=a[i]; warp_bar();
  const uint32_t cta=at&~0xfffffu, base=at&0xfffff;
  for(int nt=0;nt<8;nt++) for(int r=0;r<4;r++){ int row=g+8*(r>>1), col=nt*8+2*q+(r&1); float s=0; for(int k=0;k<16;k++){ int kk=k&7;
     float av=hf(w->slot[(row&7)*4+(kk>>1)][(row>>3)+2*(k>>3)],kk&1);
     uint32_t x=base+(ALONG_K?col*128+k*2:k*128+col*2); x^=(x>>7&7)<<4; uint16_t u; memcpy(&u,sptr(cta|x),2); s+=av*hf(u,0); } d[nt*4+r]+=s; }
  warp_bar(); }
#endif

inline void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1){
  Warp*w=cur->w; int l=cur->tid&31,g=l>>2,q=l&3; for(int i=0;i<4;i++)w->slot[l][i]=a[i]&0xffffe000u; w->slot[l][4]=b0&0xffffe000u;w->slot[l][5]=b1&0xffffe000u; warp_bar();
  for(int r=0;r<4;r++){ int row=g+8*(r>>1), col=2*q+(r&1); float s=0; for(int k=0;k<8;k++){ float av=__uint_as_float(w->slot[(row&7)*4+(k&3)][(row>>3)+2*(k>>2)]), bv=__uint_as_float(w->slot[col*4+(k&3)][4+(k>>2)]); s+=av*bv; } d[r]+=s; }
  warp_bar(); }
inline void bar_solvers(){ bar_(ctas[cur->cta].bars[1],128);}
inline void cluster_meet(){ ::cluster_sync(); }
inline void cluster_arrive(){ ::cluster_sync(); } inline void cluster_wait(){}
inline void bulk_store(void*d,uint32_t s,uint32_t n){ if((n&15)||(s&15)||((uintptr_t)d&15)){printf("bulk misaligned\n");abort();} memcpy(d,sptr(s),n); progress++; } inline void bulk_commit(){} inline void bulk_wait(){}
#ifndef STRIPS
inline void fence_shared(){}
#endif
