"""What two families define alike and the prelude does not have: it could stand once."""
from __future__ import annotations

import difflib
from itertools import combinations

from harness.assemble import cxx, page, spec

ALIKE, LEAST = 0.85, 20  # share of the tokens; fewer than so many tokens are an instruction's wrapper


def duplicates() -> list[str]:
    """One line for each pair, the largest first; of a family in both files the all-shapes file's."""
    found: dict[str, list[tuple[cxx.Part, list[str]]]] = {}
    for kind in spec.FILES:
        for family, cuda in page.build(kind).families.items():
            if family not in found:
                items = [p for p in cxx.parts(cuda) if p.kind == "item" and not p.directive]
                found[family] = [(p, cxx.canonical(p.text).split()) for p in items]
    rows = []
    for a, b in combinations(found, 2):
        for p, x in found[a]:
            for q, y in found[b]:
                if min(len(x), len(y)) < LEAST or p.text.startswith(("constexpr", "static_assert")):
                    continue
                match = difflib.SequenceMatcher(None, x, y, autojunk=False)
                if min(match.real_quick_ratio(), match.quick_ratio()) > ALIKE and (share := match.ratio()) > ALIKE:
                    lines = p.text.count("\n") + 1
                    rows.append((len(x), f"{share:4.0%} of {lines} lines: {a} {p.name}, {b} {q.name}"))
    return [text for _, text in sorted(rows, reverse=True)]
