"""Small SVG charts from results.json, written by hand: no plotting library, the same bytes everywhere."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, TOP = 720, 420, 64, 34
COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#e0a100", "#7b4fa6", "#5c6770", "#00a0a0", "#a0522d")
XY = tuple[float, float]


class Chart:
    """Axes and marks in data coordinates; log scales where asked."""

    def __init__(self, title: str, x: tuple[float, float], y: tuple[float, float], labels: tuple[str, str],
                 log: tuple[bool, bool] = (False, False)):
        self.scale = [math.log10 if on else float for on in log]
        self.log = log
        self.box = [self._span(self.scale[0], x), self._span(self.scale[1], y)]
        self.marks = [f'<text x="{LEFT}" y="18" font-weight="bold">{escape(title)}</text>',
                      f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(labels[0])}</text>',
                      f'<text x="12" y="{HEIGHT / 2:.0f}" transform="rotate(-90 12 {HEIGHT / 2:.0f})" '
                      f'text-anchor="middle">{escape(labels[1])}</text>']
        self.legend: list[tuple[str, str]] = []
        for axis in (0, 1):
            for v in self._ticks(axis):
                p, q = self.place(v, v)
                left, top, anchor = (p, HEIGHT - 24.0, "middle") if axis == 0 else (LEFT - 6.0, q + 4, "end")
                self.marks.append(f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" fill="#666">{v:g}</text>')
                if axis:
                    self.marks.append(f'<path d="M{LEFT} {q:.1f}H{WIDTH - 12}" stroke="#eee"/>')

    @staticmethod
    def _span(scale: Callable[[float], float], ends: tuple[float, float]) -> XY:
        low, high = scale(ends[0]), scale(ends[1])
        return (low, high) if high > low else (low - 0.5, low + 0.5)

    def _ticks(self, axis: int) -> list[float]:
        low, high = self.box[axis]
        if self.log[axis]:
            powers = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
            return [10.0 ** e for e in powers] or [10 ** low, 10 ** high]
        step = 10 ** math.floor(math.log10((high - low) / 4))
        step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= 6)
        return [round(i * step, 10) for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]

    def place(self, x: float, y: float) -> XY:
        out = []
        for axis, v in enumerate((x, y)):
            low, high = self.box[axis]
            at = (self.scale[axis](v) - low) / (high - low) if v > 0 or not self.log[axis] else 0.0
            out.append(LEFT + at * (WIDTH - 12 - LEFT) if axis == 0 else HEIGHT - 40 - at * (HEIGHT - 40 - TOP))
        return out[0], out[1]

    def _path(self, points: Sequence[XY]) -> str:
        return "M" + "L".join(f"{p:.1f} {q:.1f}" for p, q in (self.place(*xy) for xy in points))

    def line(self, points: Sequence[XY], name: str = "", colour: str = COLOURS[0]) -> None:
        if points:
            self.marks.append(f'<path d="{self._path(points)}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
            self.legend += [(name, colour)] * bool(name)

    def area(self, lower: Sequence[XY], upper: Sequence[XY], colour: str) -> None:
        if lower:
            self.marks.append(f'<path d="{self._path([*lower, *reversed(upper)])}Z" fill="{colour}" opacity="0.15"/>')

    def dots(self, points: Sequence[XY], name: str = "", colour: str = COLOURS[0]) -> None:
        self.marks += [f'<circle cx="{p:.1f}" cy="{q:.1f}" r="2.2" fill="{colour}" opacity="0.55"/>'
                       for p, q in (self.place(*xy) for xy in points)]
        self.legend += [(name, colour)] * bool(name)

    def bar(self, x: float, width: float, y: float, colour: str) -> None:
        (p, q), (right, base) = self.place(x, y), self.place(x + width, self.box[1][0])
        self.marks.append(f'<rect x="{p:.1f}" y="{min(q, base):.1f}" width="{right - p:.1f}" '
                          f'height="{abs(base - q):.1f}" fill="{colour}"/>')

    def svg(self) -> str:
        key = [f'<text x="{WIDTH - 16}" y="{TOP + 6 + 15 * i}" text-anchor="end" fill="{c}">{escape(n)}</text>'
               for i, (n, c) in enumerate(self.legend)]
        return _svg(WIDTH, HEIGHT, [*self.marks, *key])


def _svg(width: float, height: float, marks: Sequence[str]) -> str:
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" '
            f'font-size="12"><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(marks) + "\n</svg>\n")


def colour_of(i: int) -> str:
    return COLOURS[i % len(COLOURS)]


# ---- the charts -----------------------------------------------------------------------------------------------------

def regret(r: dict[str, Any]) -> str | None:
    c = r.get("threshold_curves")
    if not c:
        return None
    from harness.tune.report import opposed_classes
    keep = [i for i, t in enumerate(c["thresholds"]) if t is not None]
    ts = [c["thresholds"][i] for i in keep]
    series = {"pooled": c["pooled"]} | {k: c["classes"][k] for k in opposed_classes(c)}
    top = max(max(v[i] for i in keep) for v in series.values())
    chart = Chart("Regret by threshold", (ts[0], ts[-1]), (1.0, top), ("T", "geometric mean regret"), (True, False))
    inside = [t for t in r["band"]["inside"] if t is not None]
    if inside:
        chart.area([(inside[0], 1.0), (inside[-1], 1.0)], [(inside[0], top), (inside[-1], top)], "#e0a100")
    if "pooled_ci" in c:
        chart.area([(t, c["pooled_ci"][i][0]) for t, i in zip(ts, keep, strict=True)],
                   [(t, min(top, c["pooled_ci"][i][1])) for t, i in zip(ts, keep, strict=True)], COLOURS[0])
    for k, (name, v) in enumerate(series.items()):
        chart.line([(t, v[i]) for t, i in zip(ts, keep, strict=True)], name, colour_of(k))
    return chart.svg()


def heat(r: dict[str, Any]) -> str | None:
    """A diverging logarithmic scale, centred on 1: blue where Z is quicker, red where A is."""
    cells = r.get("surface")
    if not cells:
        return None
    square = all(c["m"] == c["n"] for c in cells)
    dense = [c for c in cells if not square or (c["case"] == "dense" and c["cond"] <= 2)]
    panels = [None] if square else sorted({c["b"] for c in dense})
    title = escape(f"{r['pair']['z']} / {r['pair']['a']}")
    marks, y, widest = [f'<text x="10" y="18" font-weight="bold">{title}</text>'], 34, 0
    for b in panels:
        part = [c for c in dense if b is None or c["b"] == b]
        rows = sorted({c["n"] if square else c["m"] for c in part})
        columns = sorted({c["b"] if square else c["n"] for c in part})
        widest = max(widest, len(columns))
        caption = "rows n, columns batch" if b is None else f"batch {b}, rows m, columns n"
        marks.append(f'<text x="10" y="{y}">{caption}</text>')
        marks += [f'<text x="{84 + 48 * j}" y="{y + 16}" text-anchor="middle" fill="#666">{v}</text>'
                  for j, v in enumerate(columns)]
        for c in part:
            i, j = rows.index(c["n"] if square else c["m"]), columns.index(c["b"] if square else c["n"])
            depth = max(-1.0, min(1.0, math.log2(max(c["ratio"], 1e-3))))
            red, blue = 255 + min(0, int(170 * depth)), 255 - max(0, int(170 * depth))
            shade = f"rgb({red},{255 - int(130 * abs(depth))},{blue})"
            marks.append(f'<rect x="{60 + 48 * j}" y="{y + 22 + 22 * i}" width="47" height="21" fill="{shade}"/>'
                         f'<text x="{84 + 48 * j}" y="{y + 37 + 22 * i}" text-anchor="middle">{c["ratio"]:.2f}'
                         f'{"?" if c["tie"] else ""}</text>')
        marks += [f'<text x="54" y="{y + 37 + 22 * i}" text-anchor="end" fill="#666">{v}</text>'
                  for i, v in enumerate(rows)]
        y += 22 * len(rows) + 56
    return _svg(80 + 48 * widest, y, marks)


def _plain(r: dict[str, Any]) -> list[dict[str, Any]]:
    return [p for p in r.get("points", []) if p["case"] == "dense" and p["cond"] <= 2]


def _span(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (1.0, 10.0)


def times(r: dict[str, Any]) -> str | None:
    """ms against n for each backend at the batch with most sizes, with its quartiles."""
    points = _plain(r)
    if not points:
        return None
    batches = [p["b"] for p in points]
    b = max(sorted(set(batches)), key=batches.count)
    rows = sorted((p for p in points if p["b"] == b), key=lambda p: p["n"])
    every = [t for p in rows for t in p["ms"].values() if t]
    if not every:
        return None
    chart = Chart(f"Time at batch {b}, dense", _span([p["n"] for p in rows]), _span(every), ("n", "ms"), (True, True))
    for k, name in enumerate(r["backends"]):
        seen = [p for p in rows if p["ms"].get(name)]
        quarters = [(p["n"], *p["quartiles"][name]) for p in seen if name in p.get("quartiles", {})]
        chart.area([(n, low) for n, low, _ in quarters], [(n, high) for n, _, high in quarters], colour_of(k))
        chart.line([(p["n"], p["ms"][name]) for p in seen], name, colour_of(k))
    return chart.svg()


def speedup(r: dict[str, Any]) -> str | None:
    """Over geqrf, against the batch, at the n with most batches."""
    reference = next((b for b in r["backends"] if b in ("geqrf", "fake:geqrf")), None)
    points = [p for p in _plain(r) if reference and p["ms"].get(reference)]
    if not points or len(r["backends"]) < 2:
        return None
    sizes = [p["n"] for p in points]
    n = max(sorted(set(sizes)), key=sizes.count)
    rows = sorted((p for p in points if p["n"] == n), key=lambda p: p["b"])
    series = {b: [(p["b"], p["ms"][reference] / p["ms"][b]) for p in rows if p["ms"].get(b)]
              for b in r["backends"] if b != reference}
    every = [y for s in series.values() for _, y in s]
    if not every:
        return None
    chart = Chart(f"Speed-up over {reference} at n = {n}, dense", _span([p["b"] for p in rows]), _span(every),
                  ("batch", "times quicker"), (True, True))
    for k, (name, s) in enumerate(series.items()):
        chart.line(s, name, colour_of(k))
    return chart.svg()


def noise(r: dict[str, Any]) -> str | None:
    dots = [(p["ms"][b], q) for p in r.get("points", []) for b, q in p.get("pass_ratio", {}).items() if p["ms"].get(b)]
    if not dots:
        return None
    chart = Chart("Run-to-run ratio", _span([x for x, _ in dots]), (1.0, max(y for _, y in dots)),
                  ("ms", "slowest / quickest pass"), (True, False))
    chart.dots(dots)
    for row in r["noise"]["by_runtime"]:
        low, _, high = row["bucket"].strip("<>").partition("-")
        left, right = (10 ** chart.box[0][0], float(low)) if row["bucket"][0] == "<" else (
            (float(low), 10 ** chart.box[0][1]) if row["bucket"][0] == ">" else (float(low), float(high)))
        left, right = max(left, 10 ** chart.box[0][0]), min(right, 10 ** chart.box[0][1])
        if left < right:
            chart.line([(left, row["p90"]), (right, row["p90"])], "", COLOURS[1])
    chart.legend.append(("p90 of the bucket: below it, a tie", COLOURS[1]))
    return chart.svg()


def ecdf(r: dict[str, Any]) -> str | None:
    """How many points are within a regret, for the rule and for each backend throughout."""
    points = r.get("points", [])
    if not points:
        return None
    series = {"rule": sorted(p["regret"] for p in points)}
    for b in r["backends"]:
        best = [(p["ms"].get(b), min(t for t in p["ms"].values() if t)) for p in points]
        series[f"always {b}"] = sorted(t / low for t, low in best if t)
    chart = Chart("Share of points within a regret", (1.0, 3.0), (0.0, 1.0), ("regret", "share of points"),
                  (True, False))
    for k, (name, values) in enumerate(series.items()):
        chart.line([(max(1.0, v), (i + 1) / len(points)) for i, v in enumerate(values) if v <= 3.0], name, colour_of(k))
    return chart.svg()


def penalty(r: dict[str, Any]) -> str | None:
    cases = r.get("contest", {}).get("case_penalty")
    if not cases:
        return None
    every = [x for v in cases.values() for x in v.values()]
    chart = Chart("What a hard input costs", (0, len(cases)), (min(0.9, *every), max(1.1, *every)),
                  (", ".join(cases), "time over dense"))
    width = 0.8 / len(r["backends"])
    for i, v in enumerate(cases.values()):
        for k, name in enumerate(r["backends"]):
            if name in v:
                chart.bar(i + 0.1 + k * width, width * 0.9, v[name], colour_of(k))
    chart.legend = [(b, colour_of(k)) for k, b in enumerate(r["backends"])]
    chart.line([(0, 1), (len(cases), 1)], "", "#444")
    return chart.svg()


def drift(r: dict[str, Any]) -> str | None:
    probes = r.get("probes", [])
    if len(probes) < 2:
        return None
    chart = Chart("The anchor over time", (0, len(probes) - 1), _span([p[0] for p in probes]), ("probe", "ms"))
    chart.line([(i, p[0]) for i, p in enumerate(probes)])
    return chart.svg()


CHARTS = {"regret": regret, "heat": heat, "times": times, "speedup": speedup, "noise": noise, "ecdf": ecdf,
          "penalty": penalty, "drift": drift}


def write(r: dict[str, Any], folder: Path) -> list[str]:
    """The charts that the results allow, as SVG files; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in CHARTS.items():
        text = draw(r)
        if text:
            (folder / f"{name}.svg").write_text(text, encoding="utf-8")
            written.append(name)
    return written
