cd /tmp/n512two_5; git merge-file -p --diff3 $1.cu v85.cu th_a6.cu > mm.cu; python3 rs.py mm.cu a6 $2.cu > /dev/null
