import sys,re; from fn import fns; from collections import Counter
for f in sys.argv[1:]:
    d=fns(f)['exact']; print(f,len(d),Counter(re.sub(r'^@!?U?P\d+ ','',x) for x in d if 'S2R' in x or 'S2UR' in x).most_common(8)); print('  ',Counter(re.sub(r'^@!?U?P\d+ ','',x).split()[0].split('.')[0] for x in d).most_common(40))
