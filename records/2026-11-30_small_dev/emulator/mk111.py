import re,sys
t=open(sys.argv[1]).read(); t=t[t.index('SMALL_CUDA = r"""')+17:]; t=t[:t.index('"""')]
i=t.index('DEVICE float rcp(float x)'); j=t.index('DEVICE uint32_t bits(__half2 h)'); t=t[:i]+t[j:]
i=t.index('// predicated, so that'); j=t.index('struct Args {'); t=t[:i]+t[j:]
t=t.replace('#define DEVICE __device__ __forceinline__\n','').replace('extern int g_pdl;\n','')
t=re.sub(r'#include <[^>]*>\n','',t)
t=t.replace('asm volatile("bar.sync %0,128;" ::"r"(team + 1) : "memory");','bar_(ctas[cur->cta].bars[team+1],128);')
t=t.replace('asm volatile("bar.sync %0,64;" ::"r"(team + 9) : "memory");','bar_(ctas[cur->cta].bars[team+9],64);').replace('asm volatile("bar.arrive %0,64;" ::"r"(team + 9) : "memory");','bar_arrive_(ctas[cur->cta].bars[team+9],64);')
t=t.replace('asm volatile("bar.sync %0,128;" ::"r"(team + 5) : "memory");','bar_(ctas[cur->cta].bars[team+5],128);').replace('asm volatile("bar.arrive %0,128;" ::"r"(team + 5) : "memory");','bar_arrive_(ctas[cur->cta].bars[team+5],128);')
t=t.replace('int n, steps, window, batch, early, helped, lag; };','int n, steps, window; int batch, helped, lag; };').replace('__device__ Flags all_flags','Flags all_flags')
t=re.sub(r'  if \(!helper && mat < p.early\).*?\n.*?\n','',t)
t=t.replace('asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");','cluster_arrive();')
t=re.sub(r'(if \(k < CTAS \* TEAMS\)[^\n]*\n\s*)?for \(int i = rank \* TEAMS \* 128.*?\n','',t)
t=t.replace('asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");','')
t=t.replace('extern __shared__ __align__(128) unsigned char shared[];','unsigned char* shared = ctas[cur->cta].smem;')
t=t.replace('inline Plan plan(int n, int teams) {','inline Plan plan(int n, int teams, int window = 0) {').replace('while (r.window < r.steps && used','while (r.window < r.steps && (window == 0 || r.window < window) && used')
t=t.replace('int n, steps, window;','int n, steps, window, mode; long long* clocks;').replace('if (lane == 0) *verdict() = fine;','if (lane == 0) *verdict() = fine && (p.mode == 0 || (p.mode == 2 && k % 3 != 1));')
t=t.replace('EMPTY) {}','EMPTY) yield_();')
i=t.index('template <int TEAMS, bool RING>\n__global__'); t=t[:i]+'}\n'
t=t.replace('__host__ __device__ ','').replace('__trap()','abort()')
t=t.replace('p = load4(in);','p = load4(in); warp_bar();')
t=t.replace('STEP_BYTES STEP_BYTES','STEP_BYTES')
assert 'asm' not in t, t[t.index('asm')-200:t.index('asm')+200]
pre='''
inline void __nanosleep(int){yield_();}
#define SPIN_LIMIT 0
#define SPIN yield_()
inline void al_(uint32_t a,int n){ if(a&(n-1)){printf("misaligned %x %d\\n",a,n);abort();} }
inline void store_if(bool on,uint32_t a,float x){if(on){st_(a,x);}}
inline void store_if(bool on,uint32_t a,float x,float y){if(on){al_(a,8);st_(a,x);st_(a+4,y);}}
inline void store_if(bool on,uint32_t a,float x,float y,float z,float w){if(on){al_(a,16);st_(a,x);st_(a+4,y);st_(a+8,z);st_(a+12,w);}}
inline int lane_id(){return cur->tid&31;}\ninline float4 load4(uint32_t a){al_(a,16);float4 x;memcpy(&x,sptr(a),16);return x;}
inline void store4(uint32_t a,float x,float y,float z,float w){al_(a,16);st_(a,x);st_(a+4,y);st_(a+8,z);st_(a+12,w);}
inline void store1(uint32_t a,float x){st_(a,x);}
inline bool __any_sync(unsigned m,bool b){return !__all_sync(m,!b);}
inline bool holds_empty(float4 x){return max(max(__float_as_uint(x.x),__float_as_uint(x.y)),max(__float_as_uint(x.z),__float_as_uint(x.w)))==0xffffffffu;}
inline void load_rows(float(&y)[16],uint32_t a,float(&x)[16],uint32_t b){al_(a,16);al_(b,16);memcpy(y,sptr(a),64);memcpy(x,sptr(b),64);}
'''
open('team_emu.h','w').write(pre+t)
