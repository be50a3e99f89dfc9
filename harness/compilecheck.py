"""Where there is no GPU, CUDA sources are still compiled: nvcc for sm_90a and sm_100a, nothing is run.

A submission keeps its CUDA in string constants. A string that holds `__global__` is taken as a source of its own,
which is how load_inline compiles cuda_sources; one that uses torch's C++ headers is left to the GPU machine.
"""
from __future__ import annotations

import ast
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.cases import ROOT
from harness.signs import text_of

ARCHITECTURES = ("90a", "100a")
CACHE = ROOT / ".kit" / "compiled"


def cuda_sources(text: str) -> list[str]:
    """The string constants of a submission that hold a kernel and need no torch header, whole (f-strings excluded);
    `NAME = PRELUDE + r"..."` is one."""
    tree, known, inside, found = ast.parse(text), dict[str, str](), set[ast.AST](), list[str]()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = text_of(statement.value, known)
            if value is not None:
                known[statement.targets[0].id] = value
                if isinstance(statement.value, ast.BinOp):
                    inside |= set(ast.walk(statement.value))
                    found.append(value)
    found += [node.value for node in ast.walk(tree)
              if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside]
    return [s for s in found if "__global__" in s and "{" in s
            and not any(word in s for word in ("torch/", "ATen/", "at::", "torch::"))]


def compile_check(path: Path, progress: Callable[[str], None]) -> list[str]:
    """One line for each source and architecture: compiles, failed (nvcc's first error), or why it was not tried."""
    sources = cuda_sources(path.read_text(encoding="utf-8"))
    if not sources:
        return []
    nvcc = shutil.which("nvcc")
    if not nvcc:
        return [f"{path.name}: CUDA sources not compiled: nvcc is not on PATH"]
    lines = []
    for arch in ARCHITECTURES:
        for i, source in enumerate(sources):
            name = f"{path.name}: CUDA source {i + 1} of {len(sources)} for sm_{arch}"
            done = CACHE / (hashlib.sha256((arch + source).encode()).hexdigest()[:20] + ".ok")
            if done.exists():
                lines.append(f"{name}: compiles (nothing was run; result kept from an earlier call)")
                continue
            progress(f"{name}: nvcc")
            with tempfile.TemporaryDirectory() as scratch:
                cu = Path(scratch) / "source.cu"
                cu.write_text(source)
                r = subprocess.run([nvcc, "-O3", "-std=c++17", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-cubin",
                                    "-o", str(Path(scratch) / "out.cubin"), str(cu)], capture_output=True, text=True)
            if r.returncode == 0:
                CACHE.mkdir(parents=True, exist_ok=True)
                done.touch()
                lines.append(f"{name}: compiles (nothing was run)")
            else:
                errors = [line for line in r.stderr.splitlines() if "error" in line]
                lines.append(f"{name}: failed: {errors[0] if errors else r.stderr.strip()[:200]}")
    return lines
