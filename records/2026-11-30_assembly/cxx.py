"""cxx.py: a CUDA source as a list of top-level items (functions, structs, constants, preprocessor blocks), no more C++ than that needs."""
import hashlib, re

TOKEN = re.compile(r'''(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\])*")|(?P<char>'(?:\\.|[^'\\])')|(?P<id>[A-Za-z_]\w*)|(?P<num>\.?\d(?:[\w.]|[eE][+-])*)|(?P<space>\s+)|(?P<op>::|->|<<|>>|.)''', re.S)


def tokens(text):
    """(kind, text, start) of every token but space and comments."""
    for m in TOKEN.finditer(text):
        if m.lastgroup not in ("comment", "space"):
            yield m.lastgroup, m.group(), m.start()


class Item:
    def __init__(self, text, comment):
        self.text, self.comment = text, comment      # comment: the lines in front that belong to it
        toks = [t for t in tokens(self.body())]
        self.ids = {t[1] for t in toks if t[0] == "id"}
        self.name = self._name(toks)

    def body(self):
        return self.text

    def _name(self, toks):
        words = [t[1] for t in toks]
        if self.text.startswith("#"):
            return self.text.split("\n")[0]
        if words[:2] == ["namespace", words[1] if len(words) > 1 else ""]:
            return "namespace " + words[1]
        i = 0
        if words[0] == "template":                   # past its parameters
            depth, i = 0, 1
            while True:
                depth += (words[i] == "<") - (words[i] == ">") - 2 * (words[i] == ">>")
                i += 1
                if depth == 0:
                    break
        rest = words[i:]
        while rest and rest[0] in ("extern",) or rest[0].startswith('"'):
            rest = rest[1:]
        if rest[0] in ("struct", "enum", "union", "using"):
            k = 1
            while k < len(rest) and rest[k] in ("__align__", "alignas"):
                k += 4
            return rest[k] if rest[k] != "{" else "enum " + rest[k + 1]
        if rest[0] == "typedef":
            return rest[2]
        k = 0
        while k < len(rest):                         # function: name before its (; constant: before =
            w = rest[k]
            if w in ("__launch_bounds__", "__align__", "__cluster_dims__", "decltype"):
                depth = 0
                while True:
                    k += 1
                    depth += (rest[k] == "(") - (rest[k] == ")")
                    if depth == 0:
                        break
            elif w in ("(", "=", ";", "["):
                return rest[k - 1]
            k += 1
        raise ValueError(self.text[:200])


def split(text):
    """Top-level items. A namespace's opening and closing are items of their own."""
    items, pos, n = [], 0, len(text)
    comment_start = None
    while pos < n:
        m = re.compile(r"[ \t]*\n").match(text, pos)
        if m:                                         # an empty line ends a loose comment
            if comment_start is not None:
                items.append(("comment", text[comment_start:pos].rstrip("\n"), ""))
                comment_start = None
            items.append(("blank", "", ""))
            pos = m.end()
            continue
        m = re.compile(r"[ \t]*//[^\n]*\n?").match(text, pos)
        if m:
            if comment_start is None:
                comment_start = pos
            pos = m.end()
            continue
        comment = text[comment_start:pos].rstrip("\n") if comment_start is not None else ""
        comment_start = None
        if text[pos] == "#":
            end = _directive(text, pos)
            items.append(("item", text[pos:end].rstrip("\n"), comment))
            pos = end
            continue
        m = re.compile(r"\s*namespace\s+\w+\s*\{[ \t]*\n").match(text, pos) or re.compile(r"\}[ \t]*//[^\n]*namespace[^\n]*\n?").match(text, pos)
        if m:
            items.append(("namespace", m.group().strip("\n"), comment))
            pos = m.end()
            continue
        end = _declaration(text, pos)
        items.append(("item", text[pos:end].rstrip("\n"), comment))
        pos = end
    if comment_start is not None:
        items.append(("comment", text[comment_start:].rstrip("\n"), ""))
    return items


def _line_end(text, pos):
    e = text.find("\n", pos)
    return len(text) if e < 0 else e + 1


def _directive(text, pos):
    """A directive; #if with all up to its #endif."""
    depth = 0
    while True:
        line = text[pos:_line_end(text, pos)]
        if re.match(r"#\s*if", line):
            depth += 1
        if re.match(r"#\s*endif", line):
            depth -= 1
        while line.rstrip("\n").endswith("\\"):
            pos = _line_end(text, pos)
            line = text[pos:_line_end(text, pos)]
        pos = _line_end(text, pos)
        if depth == 0:
            return pos


def _declaration(text, pos):
    """To the end of the line that holds the ; or the closing } of the declaration at pos."""
    m = re.compile(r"\s*template\s*<").match(text, pos)
    start = pos
    if m:                                             # past the template's parameters
        depth, start = 1, m.end()
        while depth:
            depth += (text[start] == "<") - (text[start] == ">")
            start += 1
    depth, first = 0, []
    for m in TOKEN.finditer(text, start):
        if m.lastgroup in ("comment", "space"):
            continue
        w = m.group()
        if depth == 0:
            first.append(w)                           # what stands outside of all parentheses
        if w in ("(", "{", "["):
            depth += 1
        elif w in (")", "}", "]"):
            depth -= 1
            if depth == 0 and w == "}" and "=" not in first and not (first[0] in ("struct", "enum", "union") and "(" not in first[:first.index("{") if "{" in first else 0]):
                return _line_end(text, m.end())
        elif w == ";" and depth == 0:
            return _line_end(text, m.end())
    return len(text)
