a='    if (clock64() - t > 4000000000LL) __trap();\n}'; assert t.count(a)==1
t=t.replace('  while (load_acquire(p) < v)\n'+a,'  while (load_acquire(p) < v) {\n    __nanosleep(200);\n    if (clock64() - t > 4000000000LL) __trap();\n  }\n}')
