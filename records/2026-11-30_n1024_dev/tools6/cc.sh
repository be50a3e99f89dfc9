# cc.sh FILE.py OUT CONFIG [flags]: one config as .so, spills and instructions
cd /tmp/n1024_6; d=$(mktemp -d); python3 ext.py $1 $d/x.cu; cat >> $d/x.cu <<E
using namespace qr1024;
extern "C" int geqrf_c(const float* a,float* h,float* tau,void* v,void* t,int n,int ld,int batch){ Args p{a,h,tau,(unsigned char*)v,decltype(Args::t)(t),n,ld};
#ifdef PROFILE
 static unsigned long long* clk_; if(!clk_){ cudaMalloc(&clk_,512); } if(!a) { cudaMemcpy(h,clk_,512,cudaMemcpyDeviceToHost); return cudaMemset(clk_,0,512); } p.clk=clk_;
#endif
 return run<Config<$3>>(p,batch); }
E
sed -i 's/^long v_workspace/#if 0\nlong v_workspace/; s/^}  \/\/ namespace qr1024/#endif\n}  \/\/ namespace qr1024/' $d/x.cu
nice -n 3 nvcc -O3 -std=c++17 ${4:-} -gencode=arch=compute_90a,code=sm_90a -Xptxas -v -shared -Xcompiler -fPIC -o $2.so $d/x.cu 2>&1 | grep -i "spill\|error\|registers\|C75" | cut -c1-200 | sed "s/^/$2: /"
/tmp/v0/lib/python3.11/site-packages/triton/backends/nvidia/bin/cuobjdump -sass $2.so | grep -E "^\s+/\*[0-9a-f]{4,5}\*/" | sed 's#/\* 0x[0-9a-f]* \*/##; s#^ *##' > $2.lst; wc -l $2.lst
