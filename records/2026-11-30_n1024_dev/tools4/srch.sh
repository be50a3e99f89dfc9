# srch.sh file-with-lines "NAME edits..."
while read n e; do python3 comp.py $n $e 2>/dev/null || { echo "$n: edits failed"; continue; }; echo $n; done < $1 > srch.tmp; grep failed srch.tmp; grep -v failed srch.tmp | xargs -P2 -n1 bash cc3.sh 2>/dev/null | awk '{k=$1; sub(":","",k); if(/stack/) st[k]=$2"/"$6"/"$10; else ins[k]=$2" MOV "$4} END{for(k in ins) print ins[k], st[k], k}' | sort -n
