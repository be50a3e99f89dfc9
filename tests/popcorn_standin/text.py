"""Per-case text as the server and generation C print it (section 1.7 of the contract)."""
from __future__ import annotations


def format_ns(ns: float, micro: str = "µ") -> tuple[str, float, str]:
    scale, unit = (1e6, "ms") if ns > 2e6 else (1e3, micro + "s") if ns > 2e3 else (1.0, "ns")
    return digits(ns / scale, 2), scale, unit


def digits(v: float, most: int) -> str:
    return repr(v) if v < 1 else f"{v:.{most - (v >= 10) - (v >= 100)}f}"


def benchmark_rows(result: dict[str, str], micro: str = "µ", gap: str = "") -> str:
    """gap: the server leaves a line free between a failure and its error; generation C does not."""
    blocks = []
    for i in range(int(result.get("benchmark-count", 0))):
        d = {k: result.get(f"benchmark.{i}.{k}") for k in ("spec", "mean", "err", "best", "worst", "error")}
        if d["error"]:
            blocks.append(f"❌ {d['spec']} failed testing:\n{gap}{d['error']}")
            continue
        mean, scale, unit = format_ns(float(d["mean"]), micro)
        value = float(d["mean"]) / scale
        err = f"{float(d['err']) / scale:.{3 - (value >= 10) - (value >= 100)}f}"
        best, _, best_unit = format_ns(float(d["best"]), micro)
        worst, _, worst_unit = format_ns(float(d["worst"]), micro)
        blocks.append(f"{d['spec']}\n ⏱ {mean} ± {err} {unit}\n ⚡ {best} {best_unit} 🐌 {worst} {worst_unit}")
    return "\n\n".join(blocks)


def test_rows(result: dict[str, str]) -> str:
    rows = []
    for i in range(int(result["test-count"])):
        good = result[f"test.{i}.status"] == "pass"
        rows.append(f"{'✅' if good else '❌'} {result[f'test.{i}.spec']}\n> "
                    + result[f"test.{i}.{'message' if good else 'error'}"])
    return "\n\n".join(rows)
