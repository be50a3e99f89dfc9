# many.sh CONFIG FLAGS NAMES... : compile, two at a time
cd /tmp/n1024_6; c=$1; f=$2; shift 2
printf "%s\n" "$@" | xargs -P2 -I{} sh -c "bash cc.sh {}.py s_{} $c '$f' > cc_{}.log 2>&1; echo {} \$(grep -E 'spill|error' cc_{}.log | sed 's/.*: *//') \$(tail -1 cc_{}.log) MOV \$(grep -cE 'IMAD.MOV.U32 R[0-9]+, RZ, RZ, R|MOV R[0-9]+, R[0-9]+' s_{}.lst)"
