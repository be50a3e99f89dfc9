cd /tmp/n1024_6; v=$1
printf "%s\n" 2,4,1 2,4,2 4,3,1 2,3,2 4,3,2 | xargs -P2 -I{} sh -c "t=\$(echo {} | tr -d ,); x=\$(echo {} | cut -d, -f3); bash cc.sh $v.py $v\$t {} -DFP16_TERMS=\$x > ccF_$v\$t.log 2>&1; echo $v {} \$(grep -E 'spill|error' ccF_$v\$t.log | sed 's/.*: *//') \$(tail -1 ccF_$v\$t.log)"
