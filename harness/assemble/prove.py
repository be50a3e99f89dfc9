"""Is every kernel of an assembled source one of its family's own file, instruction by instruction, names aside?

Compared for each kernel: cuobjdump's SASS with encodings, the bytes of .text, registers, barriers, shared memory, the
constant banks and attributes. Kernels that only the family's file has are listed: allowed where no route reaches them.
"""
from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.assemble import adapt, page, rules, spec
from harness.cases import ROOT
from harness.errors import EXIT_CANNOT_RUN, EXIT_WRONG, UserError

CACHE = ROOT / ".kit" / "assemble"
FLAGS = ("-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-D__CUDA_NO_HALF_OPERATORS__",
         "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__",
         "--expt-relaxed-constexpr")  # load_inline's


def prove(families: list[str]) -> bool:
    """Prints a line for each kernel; False where one differs."""
    same, done = True, set[tuple[Path, Path]]()
    for kind, file in spec.FILES.items():
        sources = page.build(kind).sources
        for family, x in file.families.items():
            if families and family not in families:
                continue
            own = adapt.read_source(family, x.file).cuda
            needed = tuple(e for e in rules.EDITS.get(family, ()) if e.needed)
            base = adapt.settle(family, adapt.edit(family, own, needed, []), kind, [])
            pair = cubin(family, base, x.flags), cubin(family, sources[x.of or family], x.flags)
            if pair not in done:
                print(f"{file.file} {family}:")
                same &= compare(*pair)
            done.add(pair)
    return same


def _program(name: str) -> str:
    found = shutil.which(name)
    spec_ = None if found else importlib.util.find_spec("triton")
    inside = Path(spec_.origin).parent / "backends" / "nvidia" / "bin" / name if spec_ and spec_.origin else None
    if not found and not (inside and inside.is_file()):
        raise UserError(f"--prove needs {name}", "the CUDA toolkit has it (and triton cuobjdump)", EXIT_CANNOT_RUN)
    return found or str(inside)


def cubin(family: str, text: str, flags: tuple[str, ...]) -> Path:
    """Compiled once for each text and its flags."""
    CACHE.mkdir(parents=True, exist_ok=True)
    key = CACHE / hashlib.sha256((text + " ".join(FLAGS + flags)).encode()).hexdigest()[:16]
    target, part = key.with_suffix(".cubin"), key.with_suffix(".part")
    if not target.exists():
        print(f"nvcc: {family} {' '.join(flags)}", file=sys.stderr)
        key.with_suffix(".cu").write_text(text, encoding="utf-8")
        r = subprocess.run(["nice", "-n", "10", _program("nvcc"), *FLAGS, *flags, "-cubin", "-o", str(part),
                            str(key.with_suffix(".cu"))], capture_output=True, text=True)
        if r.returncode:
            errors = [line for line in r.stderr.splitlines() if "error" in line]
            raise UserError(f"{family}: does not compile: {errors[0] if errors else r.stderr.strip()[-300:]}",
                            exit_code=EXIT_WRONG)
        part.rename(target)
    return target


@dataclass(frozen=True)
class Kernel:
    sass: str  # symbols replaced by their order of appearance
    size: int
    registers: int
    use: str
    sections: tuple[tuple[str, object], ...]


def compare(base: Path, new: Path) -> bool:
    left, same = dict(kernels(base)), True
    for name, kernel in kernels(new).items():
        twin = next((n for n in (name, *left) if left.get(n) == kernel), None)
        what = f"{kernel.size // 16} instructions, {kernel.registers} registers"
        if twin is None:
            was = left.pop(name, None)
            same = False
            before = f"was {was.size // 16}, {was.registers}" if was else "the family's file has no kernel of that name"
            print(f"  DIFFERENT {name[:70]}: {what}; {before}")
        else:
            del left[twin]
            print(f"  identical {name[:70]}: {what}")
    for name in left:
        print(f"  only in the family's file: {name[:70]}")
    return same


@functools.cache
def kernels(cubin: Path) -> dict[str, Kernel]:
    sections: dict[str, dict[str, object]] = {}
    sizes: dict[str, int] = {}
    for name, size, data in _sections(cubin.read_bytes()):
        m = re.match(r"\.(text|nv\.constant\d+|nv\.shared|nv\.info)\.(.+)", name)
        if m:
            what = _attributes(data) if m[1] == "nv.info" else hashlib.sha256(data).hexdigest()
            sections.setdefault(m[2], {})[m[1]] = (size, what)
            if m[1] == "text":
                sizes[m[2]] = size
    out = _dump("-res-usage", cubin)
    uses = dict(re.findall(r"Function (\S+?):?\n\s*(.*)", out))
    found = {}
    for part in re.split(r"\n\s*Function : ", _dump("-sass", cubin))[1:]:
        name, body = part.split("\n", 1)
        name = name.strip()
        symbols: dict[str, str] = {}
        body = re.sub(r" +", " ", body)  # their number depends on the file's longest line
        body = re.sub(r"\b_Z\w+|\$[\w$.]+", lambda m, s=symbols: s.setdefault(m.group(), f"sym{len(s)}"),  # type: ignore[misc]
                      body.split("\n\t\t..........")[0])
        registers = re.search(r"REG:(\d+)", uses[name])
        found[name] = Kernel(body, sizes[name], int(registers[1]) if registers else 0, uses[name],
                                     tuple(sorted(sections[name].items())))
    return found


def _dump(what: str, cubin: Path) -> str:
    return subprocess.run([_program("cuobjdump"), what, str(cubin)], capture_output=True, text=True, check=True).stdout


def _sections(b: bytes) -> list[tuple[str, int, bytes]]:
    """(name, size, data) of an ELF file's sections."""
    start, = struct.unpack_from("<Q", b, 0x28)
    size, count, names = struct.unpack_from("<HHH", b, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", b, start + i * size) for i in range(count)]
    place = heads[names][4]
    return [(b[place + h[0]:b.index(b"\0", place + h[0])].decode(), h[5], b"" if h[1] == 8 else b[h[4]:h[4] + h[5]])
            for h in heads]


def _attributes(b: bytes) -> tuple[tuple[int, int, bytes], ...]:
    """.nv.info of a kernel without the numbers of symbols, which count the other kernels of the file."""
    out, at = [], 0
    while at < len(b):
        form, attribute, value = b[at], b[at + 1], b[at + 2:at + 4]
        at += 4
        if form == 4:  # as many bytes as `value` says
            size, = struct.unpack("<H", value)
            value, at = b[at:at + size], at + size
            if attribute == 0x0A:  # the parameters' bank: symbol, place
                value = value[4:]
        out.append((form, attribute, value))
    return tuple(out)
