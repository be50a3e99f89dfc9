# chk.sh NUM: compile the CUDA part of a submission for sm_90a and sm_100a
n=$1; f=$(ls /work/main/submissions/v${n}_*.py); d=/tmp/n1024c/chk$n; mkdir -p $d; cd $d
python3 - $f <<'P'
import sys
s=open(sys.argv[1]).read(); c=s[s.index('CUDA = r"""')+11:]; open('x.cu','w').write(c[:c.index('"""\n')])
P
for a in 90a 100a; do nice -n 8 nvcc -O3 -std=c++17 -gencode=arch=compute_$a,code=sm_$a -Xptxas -v -c -o x$a.o x.cu 2>&1 | grep -iE "error|spill|registers" | cut -c1-120 | sed "s/^/v$n sm_$a: /"; done
cd /work/main && PYTHONPATH=/work/main /tmp/v0/bin/python - $f <<'P'
import sys, warnings
warnings.simplefilter('ignore'); import importlib.util
spec=importlib.util.spec_from_file_location('sub',sys.argv[1]); m=importlib.util.module_from_spec(spec); spec.loader.exec_module(m)
import torch; a=torch.randn(2,8,8); h,t=m.custom_kernel(a); print('no-CUDA fallback', h.shape)
P
