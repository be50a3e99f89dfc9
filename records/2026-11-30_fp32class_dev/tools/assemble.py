"""assemble32.py OUT small=FILE n512=FILE n1024=FILE large=FILE  (docstring from doc75.txt)"""
import ast, sys
out, *parts = sys.argv[1:]
parts = dict(p.split("=") for p in parts)
S = "/work/main/submissions/"
def consts(f):
    p = f if f.startswith('/') else S + f
    tree = ast.parse(open(p).read()); src = open(p).read().splitlines(); found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) and len(node.value.value) > 400:
            kind = "BINDING" if "torch/extension.h" in node.value.value else "CUDA"
            found[kind] = "\n".join(src[node.value.lineno-1:node.value.end_lineno]).split("=",1)[1].strip()
    return found
body = []
for fam, f in parts.items():
    c = consts(f); up = fam.upper(); name = f.split('/')[-1][:-3]
    body.append(f"# ---------------------------------------------------------------- {fam}: {name[:3]}\n")
    body.append(f"{up}_CUDA = {c['CUDA']}\n"); body.append(f"{up}_BINDING = {c['BINDING']}\n\n")
doc = open('/tmp/fp32class/doc75.txt').read()
head = f'''#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""{doc}"""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable

import torch
from torch.utils.cpp_extension import load_inline

from task import input_t, output_t

'''
tail = open(S + 'v50_all_shapes.py').read()
tail = tail[tail.index('SOURCES = {\n'):]
a, b = tail.index('# The file that each family comes from'), tail.index('@functools.cache')
n = {k: v.split('/')[-1][:-3] for k, v in parts.items()}
tail = tail[:a] + f'''# (n at most, family): the first row that fits serves; None is no limit.
ROUTES = ((384, "small"), (512, "n512"), (1536, "n1024"), (8192, "large"), (None, ""))


''' + tail[b:]
a, b = tail.index('def route('), tail.index('def custom_kernel')
tail = tail[:a] + '''def route(n: int) -> str:
    """The family that serves an order; "" is torch.geqrf."""
    return next(family for most, family in ROUTES if most is None or n <= most)


''' + tail[b:].replace('route(batch, n) if', 'route(n) if')
tail = tail.replace('_v50"', '_' + out.split('/')[-1][:3] + '"')
open(out if out.startswith('/') else S + out, 'w').write(head + "\n".join(body) + tail)
