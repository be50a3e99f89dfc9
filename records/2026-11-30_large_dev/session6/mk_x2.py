a='    if (pivots_here) // the pivot rows of H\n'; assert t.count(a)==1; t=t.replace(a,'    if (pivots_here && k < 0) // ablation\n')
