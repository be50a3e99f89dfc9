"""assemble.py: one submission from the families' files, with what they share in it once.

    python assemble.py OUT.py [small=FILE] [n512=FILE] [mid=FILE] [n1024=FILE] [large=FILE] [--name v53] [--fp32] [--prove]
                       [--check]

`mid=` (empty): n1024's source holds two terms as well and serves 513 to 896 with them. --fp32: the file of the FP32 class,
every family built with FP32_CLASS 1 (two terms wherever one spends accuracy).

Each FILE is a submission that holds one family (default: FAMILIES below); `v52:small` takes the family out of an assembled
file. What happens to a family's CUDA string, in this order:

  1 EDITS     exact replacements, by family: signatures that differ, code that no route reaches
  2 RENAMES   its names for what the prelude calls otherwise, token by token
  3 style     `#pragma unroll` before a loop -> UNROLL, `#pragma unroll 1` -> ROLL, DEVICE, INLINE asm -> its helper
  4 duplicates  a definition that says what a definition of prelude.cuh says (canonical form: layout, comments, names of
              locals, kinds of integers aside) goes; one of the same name that says something else stays, hides the
              prelude's, and is reported with the key that EQUIVALENT needs once --prove has shown it to be the same
  5 pair      what n1024 and mid then still define alike goes to a second shared string
  6 unused    what nothing calls any more goes

--prove compiles each family before and after (v52's flags) and compares every kernel's machine code.
"""
from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import cxx
from tables import BINDING_EDITS, EDITS, EQUIVALENT, FACTS, FAMILIES, INLINE, OWN, RENAMES

HERE = Path(__file__).parent
SUBMISSIONS = Path(__file__).resolve().parents[2] / "submissions"


# ---------------------------------------------------------------- reading

def strings(path: str) -> dict[str, str]:
    """CUDA and BINDING of a family's file, as Python values; path may be FILE:family for a file that holds several."""
    path, _, family = path.partition(":")
    file = Path(path) if "/" in path else next(iter(SUBMISSIONS.glob(f"{path.removesuffix('.py')}*.py")))
    found: dict[str, str] = {}
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) \
                and len(node.value.value) > 400:
            if family and not node.targets[0].id.startswith(family.upper() + "_"):
                continue
            kind = "BINDING" if "torch/extension.h" in node.value.value else "CUDA"
            assert kind not in found, (path, kind)
            found[kind] = node.value.value
    assert set(found) == {"CUDA", "BINDING"}, (path, set(found))
    return found


# ---------------------------------------------------------------- definitions

KEYWORDS = set("""alignas asm auto bool break case char class const constexpr continue decltype default do double else enum
extern false float for goto if inline int long namespace nullptr operator return short signed sizeof static static_assert
struct switch template this true typedef typename union unsigned using void volatile while float2 float4 int4 uint2 uint4
uint32_t uint64_t uint8_t size_t __half __half2 half threadIdx blockIdx blockDim gridDim fmaf fmaxf fminf fabsf min max
DEVICE NOINLINE UNROLL ROLL""".split())


def canonical(text: str, known: set[str] = frozenset()) -> str:
    """Equal for definitions that say the same: locals by order of appearance, integers of 32 bits and places alike."""
    text = re.sub(r"template <class Place(, class Barrier)?>\n", "", text).replace(", class Place>", ">")
    text = re.sub(r"\b(?:shared_)?address\((\w+)\)", r"\1", text)
    text = re.sub(r"\bconst void ?\*|\bvoid ?\*(?= ?\w+[,)])|\buint64_t ?\*|\bunsigned long long ?\*|\bPlace\b|\bBarrier\b|\bunsigned\b|\bint\b", "uint32_t ", text)
    out: list[str] = []
    locals_: dict[str, str] = {}
    for kind, t, _ in cxx.tokens(text):
        if kind == "string":
            s = t[1:-1].replace("\\n", " ").replace("shared::cta", "shared").replace("st.async.weak", "st.async")
            s = re.sub(r"\s+", " ", re.sub(r"\s*([;{},\[\]])\s*", r"\1", s)).strip()
            if out and out[-1].startswith('"'):
                out[-1] += s
            else:
                out.append('"' + s)
            continue
        if kind == "id" and not (t in KEYWORDS or t in known or t.startswith("__") or (out and out[-1] in (".", "->", "::"))
                                 or (t.isupper() and len(t) > 3)):
            t = locals_.setdefault(t, f"${len(locals_)}")
        out.append(t)
    return " ".join(out)


class Part:
    """A piece of a source: kind item, comment, heading, blank or namespace; an item with the comment in front of it."""

    def __init__(self, kind: str, text: str, comment: str = ""):
        self.kind, self.text, self.comment = kind, text, comment
        if kind == "item":
            tokens = list(cxx.tokens(text))
            self.ids = {t for k, t, _ in tokens if k == "id"}
            self.name = cxx.Item(text, "").name
            self.function = not text.startswith("#") and bool(re.match(r"(template\s*<[^{;]*?>\s*)?[\w\s:*&<>,]*\b" + re.escape(self.name) + r"\s*\(", text)) \
                and not text.startswith(("struct", "constexpr", "enum", "using", "typedef", "static_assert"))

    def __str__(self) -> str:
        return (self.comment + "\n" if self.comment else "") + self.text


def parts(text: str) -> list[Part]:
    out = []
    for kind, body, comment in cxx.split(text):
        lines = comment.split("\n") if comment else []
        if kind == "comment":
            lines, body = body.split("\n"), ""
        heads = [i for i, line in enumerate(lines) if re.match(r"// ?-{4,}", line)]
        if heads:
            last = heads[-1]
            if lines[:last]:
                out.append(Part("comment", "\n".join(lines[:last])))
            out.append(Part("heading", lines[last]))
            lines = lines[last + 1:]
        if kind == "comment":
            if lines:
                out.append(Part("comment", "\n".join(lines)))
        else:
            out.append(Part(kind, body, "\n".join(lines)))
    return out


def join(pieces: list[Part]) -> str:
    """Text again: headings with nothing under them go, and empty lines at most one at a time."""
    kept: list[Part] = []
    for i, p in enumerate(pieces):
        if p.kind == "heading":
            rest = [q for q in pieces[i + 1:] if q.kind != "blank"]
            if not rest or rest[0].kind == "heading" or (rest[0].kind == "namespace" and rest[0].text.startswith("}")):
                continue
        if p.kind == "blank" and kept and kept[-1].kind == "blank":
            continue
        kept.append(p)
    return "\n".join(str(p) for p in kept)


def rename(text: str, names: dict[str, str]) -> str:
    """Names token by token: not in strings, not behind . or ->; in comments too."""
    out, pos, before = [], 0, ""
    for m in cxx.TOKEN.finditer(text):
        t = m.group()
        if m.lastgroup == "id" and before not in (".", "->"):
            out.append(names.get(t, t))
        elif m.lastgroup == "comment":
            out.append(re.sub(r"\b[A-Za-z_]\w*\b", lambda w: names.get(w.group(), w.group()).split("<")[0], t))
        else:
            out.append(t)
        if m.lastgroup not in ("space", "comment"):
            before = t
        pos = m.end()
    assert pos == len(text)
    return "".join(out)


def style(text: str) -> str:
    text = text.replace("__device__ __forceinline__", "DEVICE").replace("__device__ __noinline__", "NOINLINE")
    text = re.sub(r"(?m)^[ \t]*#pragma unroll[ \t]*\n([ \t]*)(?=(for|while|do)\b)", r"\1UNROLL ", text)
    return re.sub(r"(?m)^[ \t]*#pragma unroll 1[ \t]*\n([ \t]*)(?=(for|while|do)\b)", r"\1ROLL ", text)


# ---------------------------------------------------------------- branches that are decided

def closing(text: str, at: int) -> int:
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for m in cxx.TOKEN.finditer(text, at):
        if m.lastgroup == "op":
            depth += (m.group() in "({[") - (m.group() in ")}]")
            if depth == 0:
                return m.end()
    raise ValueError(text[at:at + 80])


def statement(text: str, at: int) -> int:
    """Behind the statement at `at`, without the empty line's end."""
    at += len(text[at:]) - len(text[at:].lstrip())
    if text[at] == "{":
        return closing(text, at)
    if re.match(r"(if|for|while|switch)\b", text[at:]):
        end = statement(text, closing(text, text.index("(", at)))
        more = re.match(r"\s*else\b", text[end:])
        return statement(text, end + more.end()) if more else end
    depth = 0
    for m in cxx.TOKEN.finditer(text, at):
        if m.lastgroup == "op":
            depth += (m.group() in "({[") - (m.group() in ")}]")
            if m.group() == ";" and depth == 0:
                return m.end()
    raise ValueError(text[at:at + 80])


def fold(text: str, facts: dict[str, bool]) -> str:
    """`if` on a fact, alone or with && behind it, replaced by what is left of it."""
    for fact, value in facts.items():
        while m := re.search(r"if (?:constexpr )?\(" + re.escape(fact) + r"(?: && |\))", text):
            inside = text.index("(", m.start())
            end = closing(text, inside)
            rest = text[m.end():end - 1].strip() if text[m.end() - 1] != ")" else ""
            if value and rest:
                rest = rest[1:-1] if rest.startswith("(") and closing(rest, 0) == len(rest) else rest
                text = text[:m.start()] + f"if ({rest})" + text[end:]
                continue
            then = statement(text, end)
            more = re.match(r"\s*else\b", text[then:])
            stop = statement(text, then + more.end()) if more else then
            body = text[end:then] if value else text[then + more.end():stop] if more else ""
            body = body.strip()
            indent = re.search(r"[ \t]*\Z", text[:m.start()]).group()
            if body.startswith("{"):                  # its lines, out of the braces
                lines = body[1:-1].strip("\n").rstrip().split("\n")
                cut = min((len(x) - len(x.lstrip()) for x in lines if x.strip() and not x.startswith("#")), default=0)
                body = "\n".join(x if x.startswith("#") else indent + x[min(cut, len(x)):] for x in lines).removeprefix(indent)
            if not body:                              # the whole line goes, with what is said about it
                start = m.start() - len(indent)
                stop += len(re.match(r"[ \t]*(//[^\n]*)?\n?", text[stop:]).group())
                text = text[:start] + text[stop:]
            else:
                text = text[:m.start()] + body + text[stop:]
    return text


# ---------------------------------------------------------------- one family

def report(*words: object) -> None:
    print(*words, file=sys.stderr)


def edit(family: str, text: str, edits: list[tuple[str, str]]) -> str:
    for old, new in edits:
        if old not in text:
            report(f"  {family}: an edit no longer applies: {old.strip().splitlines()[0][:100]!r}")
        text = text.replace(old, new)
    return text


def adapt(family: str, source: str, prelude: list[Part], paired: bool = True) -> list[Part]:
    """A family's pieces without what the prelude defines."""
    text = edit(family, source.strip("\n") + "\n", EDITS.get(family, []) if paired or family != "n1024" else [])
    text = fold(text, FACTS.get(family, {}))
    names = RENAMES.get(family, {})
    present = {t for k, t, _ in cxx.tokens(text) if k == "id"}
    for old, new in names.items():
        if old not in present:
            report(f"  {family}: nothing is called {old} any more")
        if new in present and new not in names and new.split("<")[0] != old and not new.startswith("__"):
            report(f"  {family}: {old} becomes {new}, a name that it has: look")
    text = style(rename(text, names))
    text = re.sub(r"(?m)^(DEVICE [\w ]*?)(\w+)<\w+>\(", r"\1\2(", text)  # `barrier_wait<false>` is for calls
    pieces = parts(text)
    keep = set(os.environ.get("KEEP", "").split(","))  # to find out which replacement changes the machine code
    known = {p.name for p in prelude if p.kind == "item"} | {p.name for p in pieces if p.kind == "item" and not p.text.startswith("#")}
    have: dict[str, list[str]] = {}
    for p in prelude:
        if p.kind == "item":
            have.setdefault(p.name, []).append(canonical(p.text, known))
    inside = inner_names(prelude)
    out = []
    for p in pieces:
        if p.kind == "item":
            if p.name.startswith("__") and p.name in names.values():
                continue  # a wrapper of an intrinsic that RENAMES calls directly: it would now call itself
            if p.text.startswith("#include"):
                if p.text in {q.text for q in prelude if q.kind == "item"}:
                    continue
            elif p.text.startswith("#define"):
                if p.text.split()[1] in ("DEVICE", "NOINLINE", "UNROLL", "ROLL"):
                    continue
            elif p.text.startswith("#if"):
                defined = inner_names(parts_of_block(p.text))
                if defined and defined <= inside:
                    key = fingerprint(family, "#if", p.text)
                    if "#if" in keep:
                        out.append(p)
                        continue
                    if canonical(p.text, known) in {canonical(q.text, known) for q in prelude if q.kind == "item" and q.text.startswith("#if")} or key in EQUIVALENT:
                        continue
                    report(f"  {family}: a block {sorted(defined)} is not the prelude's; {key!r} in EQUIVALENT drops it")
            elif p.name in have or p.name.split("<")[0] in have:
                name = p.name.split("<")[0]
                plain = re.sub(r"\b" + name + r"<\w+>(?=\s*\()", name, p.text, count=1)
                key = fingerprint(family, name, p.text)
                if name in keep:
                    out.append(p)
                    continue
                if canonical(plain, known) in have[name] or key in EQUIVALENT:
                    continue
                if f"{family} {name}" in OWN:
                    out.append(p)
                    continue
                report(f"  {family}: {name} is not the prelude's and hides it; {key!r} in EQUIVALENT drops it")
            elif any(canonical(p.text, known - {p.name}) == canonical(q.text, known - {q.name}) for q in prelude if q.kind == "item" and q.text.startswith(("DEVICE", "template"))):
                twin = next(q.name for q in prelude if q.kind == "item" and canonical(p.text, known - {p.name}) == canonical(q.text, known - {q.name}))
                report(f"  {family}: {p.name} says what the prelude's {twin} says: RENAMES could take it")
        out.append(p)
    return out if "inline" in keep else inline(out)


def fingerprint(family: str, name: str, text: str) -> str:
    return f"{family} {name} {hashlib.sha256(canonical(text).encode()).hexdigest()[:8]}"


def parts_of_block(text: str) -> list[Part]:
    return parts("\n".join(line for line in text.split("\n") if not line.startswith("#")) + "\n")


def inner_names(pieces: list[Part]) -> set[str]:
    """Names that pieces define, those inside #if blocks included."""
    out = set()
    for p in pieces:
        if p.kind == "item":
            out |= inner_names(parts_of_block(p.text)) if p.text.startswith("#if") else set() if p.text.startswith("#") else {p.name}
    return out


def inline(pieces: list[Part]) -> list[Part]:
    """asm statements for which the prelude has a function"""
    for i, p in enumerate(pieces):
        if p.kind == "item":
            text = p.text
            for pattern, call in INLINE:
                text = re.sub(pattern, call, text)
            if text != p.text:
                pieces[i] = Part("item", text, p.comment)
    return pieces


def drop_unused(family: str, pieces: list[Part], roots: set[str], quiet: bool = False) -> list[Part]:
    """Definitions that neither the binding nor anything that is kept mentions."""
    while True:
        used = set(roots)
        for p in pieces:
            if p.kind == "item":
                own = {p.name} if not p.text.startswith("#") else set()
                used |= p.ids - own
                # an overload may call another one of its name
                if len([q for q in pieces if q.kind == "item" and q.name == p.name]) > 1 and p.text.count(p.name) > 1:
                    used |= own
        gone = [p for p in pieces if p.kind == "item" and not p.text.startswith(("#", "static_assert", "enum", "extern", "template <> "))
                and p.name not in used and not p.name.startswith("__")
                and not (p.text.startswith("constexpr") and declared(p.text) & used)]
        if not gone:
            return pieces
        if not quiet:
            report(f"  {family}: unused: {', '.join(p.name for p in gone)}")
        pieces = [p for p in pieces if p not in gone]


def declared(text: str) -> set[str]:
    """all names of `constexpr int A = 1, B = 2;`"""
    return set(re.findall(r"(\w+)\s*=(?!=)", text))


# ---------------------------------------------------------------- the pair

def hoist(first: list[Part], second: list[Part], prelude: list[Part]) -> tuple[list[Part], list[Part], list[Part]]:
    """What both define alike and what needs only such definitions: (shared, first's rest, second's rest)."""
    known = inner_names(prelude) | inner_names(first) | inner_names(second)
    def forms(pieces):
        return {(p.name, canonical(p.text, known)): p for p in pieces if p.kind == "item" and not p.text.startswith(("#", "static_assert"))}
    a, b = forms(first), forms(second)
    common = {k for k in a if k in b}
    own = inner_names(first) | inner_names(second) | {n for p in first + second if p.kind == "item" and p.text.startswith("constexpr") for n in declared(p.text)}
    while True:
        names = {k[0] for k in common} | {n for k in common for n in declared(a[k].text)}
        # all definitions of a name, or none (an overload may not stay behind)
        partial = {k[0] for k in list(a) + list(b) if k not in common}
        bad = {k for k in common if ((a[k].ids - local_names(a[k])) & own) - names or k[0] in partial}
        if not bad:
            break
        common -= bad
    texts = {id(a[k]) for k in common} | {id(b[k]) for k in common}
    for side in (first, second):                      # a loose comment goes where the definition behind it goes
        for i, p in enumerate(side):
            if p.kind == "comment":
                behind = next((q for q in side[i + 1:] if q.kind not in ("blank", "comment")), None)
                if behind is not None and id(behind) in texts:
                    texts.add(id(p))
    shared = [p for p in first if id(p) in texts or p.kind in ("heading", "blank")]
    return shared, [p for p in first if id(p) not in texts], [p for p in second if id(p) not in texts]


def local_names(p: Part) -> set[str]:
    """Names that a definition declares for itself, as far as they are also names of the family's: members behind . or ->"""
    free = {t for (k, t, _), before in zip(list(cxx.tokens(p.text)), [("", "", 0)] + list(cxx.tokens(p.text))) if k == "id" and before[1] not in (".", "->", "::")}
    return p.ids - free | {p.name}


# ---------------------------------------------------------------- all

def roots(binding: str) -> set[str]:
    return {t for k, t, _ in cxx.tokens(re.sub(r"(?m)^#.*$", "", binding)) if k == "id"}


def build(files: dict[str, str]) -> dict[str, str]:
    prelude_text = (HERE / "prelude.cuh").read_text()
    prelude = parts(prelude_text)
    sources = {f: strings(path) for f, path in files.items()}
    bindings = {f: edit(f, s["BINDING"], BINDING_EDITS.get(f, [])) for f, s in sources.items()}
    pieces = {}
    for f, s in sources.items():
        report(f"{f}: {files[f]}")
        pieces[f] = drop_unused(f, adapt(f, s["CUDA"], prelude, "mid" in files), roots(bindings[f]))
    out = {"prelude": prelude_text.strip("\n") + "\n"}
    if "mid" in files:
        shared, pieces["n1024"], pieces["mid"] = hoist(pieces["n1024"], pieces["mid"], prelude)
        report(f"pair: {sum(p.kind == 'item' for p in shared)} definitions, {join(shared).count(chr(10))} lines")
        out["pair"] = PAIR_HEAD + join(shared).strip("\n") + "\n\n}  // namespace qr\n"
    for f, p in pieces.items():
        text = join(p).strip("\n") + "\n"
        text = re.sub(r"(?m)^(namespace (\w+) \{)\n", r"\1\nusing namespace qr;\n", text, count=1)
        out[f] = text
        out[f + " binding"] = bindings[f].strip("\n") + "\n"
    return out


PAIR = ("n1024", "mid")
PAIR_HEAD = """// What mid and n1024 share beyond the prelude: sizes, who holds what, and the recurrence of 32 columns.
namespace qr {

"""
FLAGS = ["-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__",
         "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__", "--expt-relaxed-constexpr"]


def full(out: dict[str, str], family: str) -> str:
    return out["prelude"] + (out["pair"] if family in PAIR and "pair" in out else "") + out[family]


def cubin(text: str, cache: Path) -> Path:
    """compiled once for each text"""
    cache.mkdir(exist_ok=True)
    key = cache / hashlib.sha256((text + " ".join(FLAGS)).encode()).hexdigest()[:16]
    target = key.with_suffix(".cubin")
    if not target.exists():
        key.with_suffix(".cu").write_text(text)
        run = subprocess.run(["nice", "-n", "10", "nvcc", *FLAGS, "-cubin", "-o", str(target), str(key.with_suffix(".cu"))], capture_output=True, text=True)
        if run.returncode:
            sys.exit("\n".join([line for line in run.stderr.splitlines() if "error" in line][:20]) or run.stderr[-2000:])
    return target


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out")
    ap.add_argument("family", nargs="*", help="family=FILE")
    ap.add_argument("--name", default="v53")
    ap.add_argument("--fp32", action="store_true")
    ap.add_argument("--check", action="store_true", help="write nothing: is OUT what the families give?")
    ap.add_argument("--prove", nargs="*", default=None, metavar="FAMILY", help="these (none given: all)")
    args = ap.parse_args()
    files = {f: path for f, path in (FAMILIES | dict(f.split("=", 1) for f in args.family)).items() if path}
    out = build(files)
    import submission
    text = submission.render(out, files, args.name, args.fp32)
    if args.check:
        sys.exit(0 if Path(args.out).read_text() == text else f"{args.out} is not what its families give")
    Path(args.out).write_text(text)
    for f in files:                                   # what is proved is what stands in the file
        given = full(out, f).replace(out["prelude"], out["prelude"] + "\n", 1)
        if f in PAIR and "pair" in out:
            given = given.replace(out["pair"], out["pair"] + "\n", 1)
        assert f in submission.RAW or submission.source(args.out, f) == "\n" + given, f
    lines = {k: v.count("\n") for k, v in out.items()}
    before = {f: sum(s.count("\n") for s in strings(files[f]).values()) for f in files}
    report("lines:", lines, "before:", before, "file:", Path(args.out).read_text().count("\n"))
    if args.prove is not None:
        import prove
        bad = 0
        for f in args.prove or files:
            report(f"{f}:")
            bad += prove.main(str(cubin(strings(files[f])["CUDA"], HERE / "cache")), str(cubin(full(out, f), HERE / "cache")))
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
