"""The Python of an assembled submission: header, sources, host."""
import ast
import os
import re
from pathlib import Path

HEADER = '''#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
"""@NAME@ all shapes: faster small, n512 and n1024 families, and what all families share in one place.

Algorithm  small (n <= 384): left-looking by groups of 16 columns, teams of four warps in one or two CTAs a matrix, blocks
                             applied as I - E K E' with E the panel itself; n <= 32: one warp a matrix
           n512   (.. 512):  left-looking, one CTA a matrix, panels of 64 columns in registers, two windows of 32
           mid    (.. 896):  n1024's kernel with two FP16 terms of every operand
           n1024  (.. 1536): left-looking, a cluster of two CTAs a matrix, panels of 64 columns by tensor copies
           large  (.. 8192): right-looking, two kernels side by side: panels of 64 columns over 8 or 16 CTAs, and workers
                             that take updates from a list, earliest due column first
Precision  FP32 in and out; reflectors are rounded to FP16 terms (small and mid: two; n512: one, two where a panel's
           norms ask for it; n1024 and large: one) and exact from then on: tau = 2/v'v of the rounded v. Products in
           FP16 terms, FP32 accumulation
Shapes     ROUTES below; everything else, and every machine without CUDA: torch.geqrf
Parent     v52_all_shapes
Result     see records/
Bound by   the chain of a panel (Gram matrix, recurrence of its columns, V, T) and, from n = 512 on, what its CTAs exchange

How it works, in one page. The names are LAPACK's in every family: geqr2 makes a panel, larft its T, larfb applies a block.

@PAGE@

The file: PRELUDE, what all families share (one function an instruction, the notation); PAIR, what mid and n1024 share; then
one string a family, with its own page in front; then ROUTES and the host. Every kernel has the machine code of its family's
own file (BACKENDS names it).
"""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.cpp_extension import load_inline

from task import input_t, output_t
'''

HOST = '''# ---------------------------------------------------------------- host

@CLASS@# family: (CUDA source, binding@FLAGS@). Each binding defines geqrf_<family>(a) -> (H, tau); small's also makes its
# module: for n = 32 the host is the clock.
SOURCES = {
    "small": (SMALL_CUDA, SMALL_BINDING),
    "n512": (N512_CUDA, N512_BINDING),
    "mid": (MID_CUDA, MID_BINDING),
    "n1024": (N1024_CUDA, N1024_BINDING),
    "large": (LARGE_CUDA, LARGE_BINDING),
}
# The file that each family comes from: ./kit tune times those and writes the table below from what it found.
BACKENDS = {@BACKENDS@, "geqrf": ""}
# What a family can take, n from and to. From 513 to 896 one term spends more than half of the allowance on band (14.7 of 20
# at 513, 10.35 at 800; 8.5 at 900: measured), so n1024 leaves these to mid.
LIMITS = {"small": (1, 384), "n512": (257, 512), "mid": (513, 1024), "n1024": (897, 1536), "large": (1537, 8192)}
# (n at most, batch at most, n a multiple of, backend): the first row that fits and whose family can take n serves; None is
# no limit. Where no row is left, any family that can; else torch.geqrf.
# BEGIN GENERATED
ROUTES = (
    (384, None, 1, "@small@"),
    (512, None, 1, "@n512@"),
    (896, None, 1, "@mid@"),
    (1536, None, 1, "@n1024@"),
    (None, None, 1, "@large@"),
)
# END GENERATED


def build(family: str) -> Callable[[torch.Tensor], output_t] | None:
    """geqrf_<family>; None, with a warning, where it cannot be built."""
    major, minor = torch.cuda.get_device_capability()
    cuda, binding = SOURCES[family]
    name = f"geqrf_{family}"
    # the CUDA sources need no torch header: a third of the compile time
    extra = {"no_implicit_headers": True} if "no_implicit_headers" in inspect.signature(load_inline).parameters else {}
    try:
        module = load_inline(f"qrkit_{family}_@NAME@", cpp_sources=binding, cuda_sources=cuda,
                             functions=None if "PYBIND11_MODULE" in binding else [name],
                             extra_cflags=["-O2"], extra_cuda_cflags=[
                                 "-O3", "-std=c++17", f"-gencode=arch=compute_{major}{minor}a,code=sm_{major}{minor}a"],
                             **extra)
    except Exception as error:  # a build that fails must not fail the answers
        warnings.warn(f"{family}: not built, torch.geqrf serves its shapes: {error}", stacklevel=2)
        return None
    return getattr(module, name)


@functools.cache
def extensions() -> dict[str, Callable[[torch.Tensor], output_t] | None]:
    """Every family, compiled side by side (as long as the slowest takes, half a minute); none, with one warning, where
    they cannot run."""
    if not torch.cuda.is_available():
        warnings.warn("no CUDA device: torch.geqrf serves every shape", stacklevel=2)
        return {}
    major, minor = torch.cuda.get_device_capability()
    if major < 9:
        warnings.warn(f"compute capability {major}.{minor}: torch.geqrf serves every shape", stacklevel=2)
        return {}
    with ThreadPoolExecutor(len(SOURCES)) as pool:
        return dict(zip(SOURCES, pool.map(build, SOURCES), strict=True))


def route(batch: int, n: int) -> str:
    """The family that serves a shape; "" is torch.geqrf."""
    able = [family for family, (least, most) in LIMITS.items() if least <= n <= most] if batch else []
    rows = (BACKENDS[name] for n_max, batch_max, multiple, name in ROUTES if (n_max is None or n <= n_max)
            and (batch_max is None or batch <= batch_max) and n % multiple == 0)
    return next((family for family in (*rows, *able) if family in able or not family), "")


@functools.cache
def serving(shape: torch.Size, cuda: bool) -> Callable[[torch.Tensor], output_t] | None:
    """The function for a shape, None for torch.geqrf; looked up once a shape, since for n = 32 the host is the clock."""
    family = route(shape[0], shape[-1]) if cuda else ""
    return extensions().get(family) if family else None


def custom_kernel(data: input_t) -> output_t:
    function = serving(data.shape, data.is_cuda)
    out = function(data.contiguous()) if function else None
    if out is None:
        h, tau = torch.geqrf(data)
        return h, tau
    return out


if torch.cuda.is_available():
    extensions()  # on import, not in the first call
'''


def page() -> str:
    """v52's explanation: what stands between its "How it works" and the end of its docstring."""
    doc = ast.get_docstring(ast.parse((Path(__file__).resolve().parents[2] / "submissions" / "v52_all_shapes.py").read_text()), clean=False)
    return doc.split("applies a block.\n\n", 1)[1].strip("\n")


RAW = set(filter(None, os.environ.get("RAW", "").split(",")))  # families taken as they stand


def raw(path, family):
    path = Path(path) if str(path).endswith(".py") else Path(__file__).resolve().parents[2] / "submissions" / f"{path}.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id.endswith(("CUDA", "SOURCE", "CUDA_SRC")) and isinstance(node.value, ast.Constant):
            return node.value.value.strip("\n") + "\n"
    raise SystemExit(f"{path}: no CUDA string")


CLASS = """# What every family is compiled with: 1 in the file of the FP32 class (two terms wherever one spends accuracy).
FP32_CLASS = @FP32@
"""


FIRST = """def nothing(data: input_t) -> None:
    return None


first: Callable[[input_t], output_t | None] = nothing
if torch.cuda.is_available():
    # On import, not in the first call. small is asked before the table where the table gives it all that it takes, and says
    # None to everything else: at n = 32 the host is the clock, and its 0.6 us in Python are an eighth of a call.
    kernel = extensions().get("small")
    if kernel and all(route(batch, n) == "small" for batch in (1, 10**6) for n in range(1, LIMITS["small"][1] + 1)):
        first = kernel
"""


def one_source(host, fp32):
    """The host where n1024's source serves 513 to 896 too, with two terms: flags go to the compiler with each source."""
    host = host.replace("@CLASS@", CLASS.replace("@FP32@", str(int(fp32)))).replace("@FLAGS@", ", flags for nvcc")
    host = re.sub(r'(?m)^(    "\w+": \(\w+_CUDA, \w+_BINDING)\)', r"\1, ())", host)
    if fp32:
        host = host.replace('N1024_BINDING, ())', 'N1024_BINDING, ("-DFP16_TERMS=2",))')
    mid = '    "mid": (N1024_CUDA, N1024_BINDING.replace("geqrf_n1024", "geqrf_mid"), ("-DFP16_TERMS=2",)),\n'
    host = re.sub(r'    "mid": \(.*\n', "" if fp32 else mid, host, count=1)
    host = host.replace("cuda, binding = SOURCES[family]", "cuda, binding, flags = SOURCES[family]")
    host = host.replace('code=sm_{major}{minor}a"],\n', 'code=sm_{major}{minor}a",\n'
                        '                                 f"-DFP32={FP32_CLASS}", *flags],\n')
    host = host.replace("so n1024 leaves these to mid.", "so n1024's two-term kernel, mid, serves these.")
    if fp32:
        host = host.replace('"mid": (513, 1024), "n1024": (897, 1536)', '"n1024": (513, 1536)')
        host = re.sub(r"(?m)^# What a family can take.*\n(#.*\n)*", "# What a family can take, n from and to.\n", host)
    host = host.replace("""def custom_kernel(data: input_t) -> output_t:
    function""", """def custom_kernel(data: input_t) -> output_t:
    out = first(data)
    if out is not None:
        return out
    function""").replace("""if torch.cuda.is_available():
    extensions()  # on import, not in the first call
""", FIRST)
    return re.sub(r'    \(896, None, 1, "@mid@"\),\n', "", host)  # where n1024 cannot, mid can


def render(out, files, name, fp32=False):
    stems = {f: re.sub(r"\.py$", "", Path(p).name).split(":")[0] for f, p in files.items()}
    s = HEADER.replace("@NAME@", name).replace("@PAGE@", page())
    line = "\n# " + "-" * 64 + " "
    s += f'{line}what all families share\n\nPRELUDE = r"""\n{out["prelude"]}"""\n'
    if "pair" in out:
        s += f'{line}what mid and n1024 share\n\nPAIR = r"""\n{out["pair"]}"""\n'
    bound = {}
    for f in (f for f in ("small", "n512", "n1024", "mid", "large") if f in files):
        shared = "PRELUDE + PAIR + " if f in ("n1024", "mid") and "pair" in out else "PRELUDE + " if f not in RAW else ""
        text = out[f] if f not in RAW else raw(files[f], f)
        s += f'{line}{f}: {stems[f].split("_")[0]}\n\n{f.upper()}_CUDA = {shared}r"""\n{text}"""\n\n'
        b = out[f + " binding"]
        twin = next((g for g, c in bound.items() if b.replace(f"geqrf_{f}", f"geqrf_{g}") == c), None)
        if twin:
            s += f'{f.upper()}_BINDING = {twin.upper()}_BINDING.replace("geqrf_{twin}", "geqrf_{f}")\n'
        else:
            s += f'{f.upper()}_BINDING = r"""\n{b}"""\n'
        bound[f] = b
    host = one_source(HOST, fp32) if "pair" not in out else HOST.replace("@CLASS@", "").replace("@FLAGS@", "")
    first = {f: stems[f] for f in ("small", "n512", "mid") if f in stems}
    host = host.replace("@NAME@", name).replace("@BACKENDS@", ", ".join(f'"{stem}": "{f}"' for f, stem in first.items()) + ",\n            "
                                                + ", ".join(f'"{stems[f]}": "{f}"' for f in ("n1024", "large")))
    for f, stem in stems.items():
        host = host.replace(f"@{f}@", stem)
    return s + "\n" + host


def source(path, family):
    """A family's CUDA as the file gives it to the compiler."""
    strings = {}
    for node in ast.parse(Path(path).read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id.endswith(("CUDA", "PRELUDE", "PAIR")):
            strings[node.targets[0].id] = eval(compile(ast.Expression(node.value), path, "eval"), {}, strings)
    return strings[f"{family.upper()}_CUDA"]
