/tmp/v0/lib/python3.11/site-packages/triton/backends/nvidia/bin/cuobjdump -sass $1 | grep -E "^\s+/\*[0-9a-f]{4,5}\*/" | sed 's#/\* 0x[0-9a-f]* \*/##; s#^ *##' > ${1%.so}.lst
wc -l < ${1%.so}.lst
grep -nE "STL|LDL|HGMMA|BAR.SYNC|BAR.ARV|PHASECHK" ${1%.so}.lst | sed 's/;.*//; s#/\*[0-9a-f]*\*/##' | awk '{$1=$1; print}' | cut -c1-70 | sed -E 's/(HGMMA).*/\1/; s/(BAR.[A-Z]+).*/\1/; s/SYNCS.PHASECHK.*/PHASECHK/' | awk '{k=$0; sub(/^[0-9]+: */,"",k); if (k==last) {c++} else { if (c>0) print "   x" c+1; print; c=0}; last=k}'
