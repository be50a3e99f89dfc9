"""The main picture for a README: the ladder, and the best version's cases between v00_geqrf and the floor."""
from __future__ import annotations

import io
from typing import Any

from harness.errors import EXIT_CANNOT_RUN, UserError

BASE, OWN, FLOOR = "#b8bec6", "#1764b0", "#1d2126"


def draw(found: dict[str, Any]) -> bytes:
    """PNG of the newest environment in what data.collect returns.

    Raises UserError without matplotlib (exit 3), or where no file passed every case.
    """
    try:
        import matplotlib
    except ImportError:
        raise UserError("--png needs matplotlib", "pip install matplotlib", EXIT_CANNOT_RUN) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter

    e = found["environments"][0]
    scored = [f for f in e["files"] if f["geomean_ns"]]
    if not scored:
        raise UserError(f"--png: no file passed every case on {e['title']}", "./kit bench FILE on all cases")
    best = min(scored, key=lambda f: f["geomean_ns"])
    base = e["files"][e["base"]] if e["base"] is not None else None
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.6), width_ratios=(2, 3), layout="constrained")

    left.plot([f["name"] for f in scored], [f["geomean_ns"] / 1e6 for f in scored], "o-", color=OWN)
    for f in scored:
        left.annotate(f"{f['geomean_ns'] / 1e6:.3g}", (f["name"], f["geomean_ns"] / 1e6), (0, 7),
                      textcoords="offset points", ha="center", fontsize=8)
    left.set(yscale="log", ylabel="geometric mean, ms", title="Ladder")
    left.margins(0.1, 0.15)
    left.tick_params(axis="x", labelrotation=60 if len(scored) > 8 else 0)

    labels = [c["label"] for c in e["cases"]]
    rows = range(len(labels))
    if base and base is not best:
        right.barh(rows, [(c["ns"] or 0) / 1e6 if c else 0 for c in base["cells"]], 0.8, color=BASE, label="v00_geqrf")
    right.barh(rows, [c["ns"] / 1e6 for c in best["cells"]], 0.45, color=OWN, label=best["name"])
    for i, c in enumerate(e["cases"]):
        if c["floor_ns"]:
            right.vlines(c["floor_ns"] / 1e6, i - 0.4, i + 0.4, color=FLOOR, lw=2, label="" if i else "floor")
    right.set(xscale="log", xlabel="ms", yticks=list(rows), yticklabels=labels, title=f"{best['name']}, case by case")
    right.invert_yaxis()
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    left.yaxis.set_minor_formatter(NullFormatter())
    figure.suptitle(e["title"] + (" (batches cut)" if e["cut"] else ""), fontsize=10)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    pyplot.close(figure)
    return out.getvalue()
