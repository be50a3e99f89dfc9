"""A CUDA source as a list of top-level pieces (functions, structs, constants, preprocessor blocks): no more C++ than
that needs. `canonical` says when two definitions say the same."""
from __future__ import annotations

import functools
import re
from collections.abc import Iterator

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\])*")|(?P<char>'(?:\\.|[^'\\])')|(?P<id>[A-Za-z_]\w*)"""
    r"""|(?P<num>\.?\d(?:[\w.]|[eE][+-])*)|(?P<space>\s+)|(?P<op>::|->|<<|>>|.)""", re.DOTALL)

# Names that `canonical` keeps: the language, CUDA's, the prelude's macros
KEYWORDS = frozenset(re.findall(r"\w+", """
alignas asm auto bool break case char class const constexpr continue decltype default do double
else enum extern false float for goto if inline int long namespace nullptr operator return short signed sizeof static
static_assert struct switch template this true typedef typename union unsigned using void volatile while float2 float4
int4 uint2 uint4 uint32_t uint64_t uint8_t size_t __half __half2 half threadIdx blockIdx blockDim gridDim fmaf fmaxf
fminf fabsf min max DEVICE NOINLINE UNROLL ROLL"""))


@functools.cache
def tokens(text: str) -> tuple[tuple[str, str], ...]:
    """(kind, text) of every token but space and comments."""
    return tuple((str(m.lastgroup), m.group()) for m in TOKEN.finditer(text) if m.lastgroup not in ("comment", "space"))


def identifiers(text: str) -> set[str]:
    return {t for kind, t in tokens(text) if kind == "id"}


class Part:
    """A piece of a source. kind: item (a definition, a directive), comment, heading, blank, namespace; an item has the
    comment in front of it."""

    def __init__(self, kind: str, text: str, comment: str = ""):
        self.kind, self.text, self.comment = kind, text, comment
        self.ids = identifiers(text) if kind == "item" else set()
        self.name = name_of(text) if kind == "item" else ""

    @property
    def directive(self) -> bool:
        return self.text.startswith("#")

    def __str__(self) -> str:
        return (self.comment + "\n" if self.comment else "") + self.text


def name_of(text: str) -> str:
    """What a definition defines; of a directive its first line."""
    if text.startswith("#"):
        return text.split("\n")[0]
    words = [t for _, t in tokens(text)]
    if words[0] == "template":  # past its parameters
        depth, i = 0, 1
        while i == 1 or depth:
            depth += (words[i] == "<") - (words[i] == ">") - 2 * (words[i] == ">>")
            i += 1
        words = words[i:]
    while words[0] == "extern" or words[0].startswith('"'):
        words = words[1:]
    if words[0] in ("struct", "enum", "union", "using"):
        k = 1
        while words[k] in ("__align__", "alignas"):
            k += 4
        return words[k] if words[k] != "{" else "enum " + words[k + 1]
    if words[0] == "typedef":
        return words[2]
    k = 0
    while k < len(words):  # a function's name stands before its (, a constant's before =
        if words[k] in ("__launch_bounds__", "__align__", "__cluster_dims__", "decltype"):
            depth = 0
            while True:
                k += 1
                depth += (words[k] == "(") - (words[k] == ")")
                if depth == 0:
                    break
        elif words[k] in ("(", "=", ";", "["):
            return words[k - 1]
        k += 1
    raise ValueError(f"no name in: {text[:200]}")


def bodies(text: str) -> set[str]:
    """Names of functions that have a body here, members too, and of structs."""
    words = [t for _, t in tokens(text)]
    out, open_ = set(), list[int]()
    for i, word in enumerate(words):
        if word == "struct":
            out.add(words[i + 1])
        elif word == "(":
            open_.append(i)
        elif word == ")" and open_:
            start = open_.pop()
            if words[i + 1:i + 2] == ["{"] or words[i + 1:i + 3] == ["const", "{"]:
                out.add(words[start - 1])
    return out


def declared(body: str) -> set[str]:
    """Names that a block's own statements may declare (those of blocks inside it are not)."""
    words, out, depth, comma = tokens(body), set[str](), 0, False
    for i, (kind, word) in enumerate(words[:-1]):
        depth += (word in "({[") - (word in ")}]")
        if depth == 0 and kind == "id" and i and (comma or words[i - 1][0] == "id" or words[i - 1][1] in "*&>") and (
                words[i + 1][1] in "=[;,({"):
            out.add(word)
        comma = depth == 0 and word == ","
    return out


# ---------------------------------------------------------------- splitting and joining

def parts(text: str) -> list[Part]:
    out: list[Part] = []
    for kind, body, comment in _pieces(text):
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
        if kind != "comment":
            out.append(Part(kind, body, "\n".join(lines)))
        elif lines:
            out.append(Part("comment", "\n".join(lines)))
    return out


def inside(block: str) -> list[Part]:
    """The pieces of an #if block, of all its branches."""
    return parts("\n".join(line for line in block.split("\n") if not line.startswith("#")) + "\n")


def join(pieces: list[Part]) -> str:
    """Text again: headings with nothing under them go, and empty lines at most one at a time."""
    kept: list[Part] = []
    for i, p in enumerate(pieces):
        if p.kind == "heading":
            behind = next((q for q in pieces[i + 1:] if q.kind != "blank"), None)
            if behind is None or behind.kind == "heading" or (behind.kind == "namespace" and behind.text[0] == "}"):
                continue
        if p.kind == "blank" and kept and kept[-1].kind == "blank":
            continue
        kept.append(p)
    return "\n".join(str(p) for p in kept)


def _pieces(text: str) -> Iterator[tuple[str, str, str]]:
    """(kind, text, comment in front); a namespace's opening and closing are pieces of their own."""
    blank, line_comment = re.compile(r"[ \t]*\n"), re.compile(r"[ \t]*//[^\n]*\n?")
    opening = re.compile(r"\s*namespace\s+\w+\s*\{[ \t]*\n")
    closing = re.compile(r"\}[ \t]*//[^\n]*namespace[^\n]*\n?")
    pos, start = 0, -1  # start: of the comment that is being read
    while pos < len(text):
        if m := blank.match(text, pos):  # an empty line ends a loose comment
            if start >= 0:
                yield "comment", text[start:pos].rstrip("\n"), ""
                start = -1
            yield "blank", "", ""
            pos = m.end()
        elif m := line_comment.match(text, pos):
            start = pos if start < 0 else start
            pos = m.end()
        else:
            comment = text[start:pos].rstrip("\n") if start >= 0 else ""
            start = -1
            if m := opening.match(text, pos) or closing.match(text, pos):
                yield "namespace", m.group().strip("\n"), comment
                pos = m.end()
            else:
                end = _directive(text, pos) if text[pos] == "#" else _declaration(text, pos)
                yield "item", text[pos:end].rstrip("\n"), comment
                pos = end
    if start >= 0:
        yield "comment", text[start:].rstrip("\n"), ""


def _line_end(text: str, pos: int) -> int:
    return text.find("\n", pos) + 1 or len(text)


def _directive(text: str, pos: int) -> int:
    """Behind a directive; #if with all up to its #endif."""
    depth = 0
    while True:
        line = text[pos:_line_end(text, pos)]
        depth += bool(re.match(r"#\s*if", line)) - bool(re.match(r"#\s*endif", line))
        while line.rstrip("\n").endswith("\\"):
            pos = _line_end(text, pos)
            line = text[pos:_line_end(text, pos)]
        pos = _line_end(text, pos)
        if depth == 0:
            return pos
        if pos == len(text):
            raise ValueError("an #if without #endif")


def _declaration(text: str, pos: int) -> int:
    """Behind the line that holds the ; or the closing } of the declaration at pos."""
    start = pos
    if m := re.compile(r"\s*template\s*<").match(text, pos):  # past the template's parameters
        depth, start = 1, m.end()
        while depth:
            depth += (text[start] == "<") - (text[start] == ">")
            start += 1
    depth, first = 0, list[str]()  # first: what stands outside of all brackets
    for m in TOKEN.finditer(text, start):
        if m.lastgroup in ("comment", "space"):
            continue
        word = m.group()
        if depth == 0:
            first.append(word)
        if word in ("(", "{", "["):
            depth += 1
        elif word in (")", "}", "]"):
            depth -= 1
            if depth == 0 and word == "}" and "=" not in first:
                head = first[:first.index("{")] if "{" in first else []
                if not (first[0] in ("struct", "enum", "union") and "(" not in head):
                    return _line_end(text, m.end())
        elif word == ";" and depth == 0:
            return _line_end(text, m.end())
    if depth:
        raise ValueError(f"no closing bracket: {text[pos:pos + 80]!r}")
    return len(text)


def bracket_end(text: str, at: int) -> int:
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for m in TOKEN.finditer(text, at):
        if m.lastgroup == "op":
            depth += (m.group() in "({[") - (m.group() in ")}]")
            if depth == 0:
                return m.end()
    raise ValueError(f"no closing bracket: {text[at:at + 80]!r}")


def statement_end(text: str, at: int) -> int:
    """Behind the statement at `at`."""
    at += len(text[at:]) - len(text[at:].lstrip())
    if text[at] == "{":
        return bracket_end(text, at)
    if re.match(r"(UNROLL|ROLL)\b", text[at:]):
        return statement_end(text, at + text[at:].index(" "))
    if re.match(r"(if|for|while|switch)\b", text[at:]):
        end = statement_end(text, bracket_end(text, text.index("(", at)))
        more = re.match(r"\s*else\b", text[end:])
        return statement_end(text, end + more.end()) if more else end
    depth = 0
    for m in TOKEN.finditer(text, at):
        if m.lastgroup == "op":
            depth += (m.group() in "({[") - (m.group() in ")}]")
            if m.group() == ";" and depth == 0:
                return m.end()
    raise ValueError(f"no end of a statement: {text[at:at + 80]}")


# ---------------------------------------------------------------- saying the same

@functools.cache
def canonical(text: str, known: frozenset[str] = frozenset()) -> str:
    """Equal for definitions that say the same: layout, comments, names of locals (`known`: of others), kinds of 32-bit
    integers and of places in shared memory aside."""
    text = re.sub(r"template <class Place(, class Barrier)?>\n", "", text).replace(", class Place>", ">")
    text = re.sub(r"\b(?:shared_)?address\((\w+)\)", r"\1", text)
    text = re.sub(r"\bconst void ?\*|\bvoid ?\*(?= ?\w+[,)])|\buint64_t ?\*|\bunsigned long long ?\*|\bPlace\b"
                  r"|\bBarrier\b|\bunsigned\b|\bint\b", "uint32_t ", text)
    out: list[str] = []
    named: dict[str, str] = {}
    for kind, t in tokens(text):
        if kind == "string":
            s = t[1:-1].replace("\\n", " ").replace("shared::cta", "shared").replace("st.async.weak", "st.async")
            s = re.sub(r"\s+", " ", re.sub(r"\s*([;{},\[\]])\s*", r"\1", s)).strip()
            if out and out[-1].startswith('"'):
                out[-1] += s
            else:
                out.append('"' + s)
            continue
        if kind == "id" and not (t in KEYWORDS or t in known or t.startswith("__") or (t.isupper() and len(t) > 3)
                                 or (out and out[-1] in (".", "->", "::"))):
            t = named.setdefault(t, f"${len(named)}")
        out.append(t)
    return " ".join(out)


def rename(text: str, names: dict[str, str], comments: bool = True) -> str:
    """Names token by token: not in strings, not behind . or ->; in comments where it is no English word."""
    out, before = [], ""
    for m in TOKEN.finditer(text):
        t = m.group()
        if m.lastgroup == "id" and before not in (".", "->"):
            out.append(names.get(t, t))
        elif m.lastgroup == "comment" and comments:
            out.append(re.sub(r"\b([A-Za-z_]\w*[_\d]\w*\b|[A-Za-z]+\b(?=\())", lambda w: names.get(w[0], w[0]), t))
        else:
            out.append(t)
        if m.lastgroup not in ("space", "comment"):
            before = t
    return "".join(out)
