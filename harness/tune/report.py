"""results.json to report.md: a pure function, and every sentence that judges is chosen by a computed predicate."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

Results = dict[str, Any]


def render(r: Results) -> str:
    """The whole report. A key that an older results.json lacks leaves its section out."""
    parts = [_title(r), _answer(r), _routing(r), _threshold(r), _features(r), _heat(r), _rules(r), _refinements(r),
             _folds(r), _noise(r), _contest(r), _leverage(r), _trust(r), _footer(r)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


# ---- shared pieces --------------------------------------------------------------------------------------------------

def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Markdown; the first column left, the others right."""
    return ["| " + " | ".join(head) + " |", "| " + " | ".join([":--", *["--:"] * (len(head) - 1)]) + " |",
            *("| " + " | ".join(row) + " |" for row in rows)]


def threshold_name(t: float | None) -> str:
    return "never" if t is None or math.isinf(t) else f"{t:g}"


def duration(ms: float | None) -> str:
    """Microseconds below 1 ms; four digits."""
    if ms is None:
        return "-"
    return f"{ms * 1e3:.4g} µs" if ms < 1 else f"{ms:.4g} ms"


def percent(g: float) -> str:
    return f"{(g - 1) * 100:.2f} %"


def names(items: Sequence[str]) -> str:
    return ", ".join(items[:-1]) + (" and " if len(items) > 1 else "") + items[-1] if items else "none"


# ---- 1, 2 -----------------------------------------------------------------------------------------------------------

def _title(r: Results) -> list[str]:
    d = r["device"]
    lines = [f"# Which backend serves which shape: {d['name']}", ""]
    lines += [f"**{x}.** No row is exported." for x in r.get("blind", [])]
    lines += [f"**Not trustworthy**: {x}." for x in r.get("trust", {}).get("why", [])]
    lines += [f"Warning: {x}." for x in r.get("trust", {}).get("warnings", [])]
    if r.get("grid") == "quick":
        lines.append("**Smoke test**: one quick pass; nothing here may be pasted or combined.")
    if lines[-1]:
        lines.append("")
    lines += [f"{r['n_shapes']} shapes, {r['n_points']} points, {r['n_pairs']} pairs of point and backend measured "
              f"twice. "
              f"Statistics: {r['stats']}. The words are explained at the end.", ""]
    agree = r.get("runs_agree")
    if agree:
        lines += [f"{agree['runs']} runs combined; between-run variance dominates (I² above 75 %) at "
                  f"{agree['share_high_i2'] * 100:.0f} % of {agree['points']} points"
                  + (": **the runs disagree**." if agree["flagged"] else ": the runs agree."), ""]
    cover = ", ".join(f"{c} {n}" for c, n in sorted(r["coverage"].items()))
    rows = [("device", d["name"]), ("units", str(d["units"])), ("resident CTAs", str(d.get("resident_ctas", "?"))),
            ("driver, torch", f"{d.get('driver', '?')}, {d.get('torch', '?')}"), ("backends", ", ".join(r["backends"])),
            ("grid", str(r["grid"])), ("coverage", cover)]
    lines += table(("", ""), rows)
    if r.get("dropped"):
        lines += ["", f"{len(r['dropped'])} points have no time at all and are left out: "
                      f"{', '.join(r['dropped'][:8])}."]
    return lines


def _answer(r: Results) -> list[str]:
    if "rule" not in r:
        return []
    lines = ["## Answer", "", "```", *r["rule"]["describe"], "```", ""]
    c = r["chosen"]
    text = (f"On the {c['n']} points measured the rule costs {percent(c['geomean'])} over the quickest backend of "
            "each point")
    if "ci" in c:
        text += f" (95 % interval {percent(c['ci'][0])} to {percent(c['ci'][1])})"
    text += f"; worst {c['worst']:.2f} at {c['worst_shape']}; {c['over10']} points are more than 10 % off"
    text += f", {c['over10_real']} of them beyond noise." if "over10_real" in c else "."
    lines.append(text)
    if "crossfit" in c:
        g, low, high = c["crossfit"]
        lines.append(f"With the oracle chosen on one pass and timed on another: {percent(g)} ({percent(low)} to "
                     f"{percent(high)}), " + ("so the loss is real." if low > 1 else
                                              "which cannot be told from an ideal choice."))
    single = min(r["always"], key=lambda b: r["always"][b]["geomean"])
    s = r["always"][single]
    lines.append(f"The best single backend, {single}, costs {percent(s['geomean'])} (worst {s['worst']:.2f})" + (
        "; the rule gains nothing over it." if s["geomean"] <= c["geomean"] * 1.0005 else "."))
    if r["rule"].get("kept_incumbent"):
        lines.append(f"The incumbent row stays: {r['rule']['kept_incumbent']}.")
    if r["rule"].get("adopted"):
        lines.append(f"The refinement \"{r['rule']['adopted']}\" was adopted.")
    if c.get("failed"):
        lines.append(f"**{c['failed']} picks failed where they were measured.**")
    entry = r.get("ktuned_entry")
    if entry:
        rows = ",\n  ".join(str(tuple(x)) for x in entry["rows"])
        lines += ["", "The row (n at most, batch at most, n a multiple of, backend):", "", "```", f"({rows})", "```"]
        lines.append(f"Indicative only, do not paste: {'; '.join(entry['indicative_only'])}."
                     if entry["indicative_only"] else "`./kit tune --apply SUBMISSION` writes it into a submission.")
    return lines


def _band(r: Results) -> list[str]:
    b, p = r["band"], r["pair"]
    inside = [threshold_name(t) for t in b["inside"]]
    lines = [f"O = {{{p['a']}, {p['z']}}} on {p['points']} points. Rule: {p['z']} iff {p['feature']} >= T, else "
             f"{p['a']}."]
    same = [g for g in r.get("equivalence_classes", []) if len(g) > 1]
    if same:
        lines.append("No measured value separates " + "; ".join(names([threshold_name(t) for t in g]) for g in same)
                     + ": each of these is one rule.")
    distinct = {tuple(g) for g in r.get("equivalence_classes", []) if set(g) & set(b["inside"])}
    if r["stats"] == "compat":
        lines.append(f"Within {b['tolerance']} of the best ({b['best_geomean']:.4f}): {names(inside)}"
                     + (", which is one rule listed more than once" if len(distinct) == 1 < len(inside) else "")
                     + f". Chosen: {threshold_name(b['chosen'])}.")
    else:
        fit = r["fit"]
        why = {x["why"] for x in fit["rules"] if x["in_band"]} - {"best"}
        lines.append(f"In band: {names(inside)}" + (f" ({names(sorted(why))} to the best on the points that "
                                                    f"differ)" if why
                                                    else ", no other rule is") + "."
                     + ("" if fit["contiguous"] else " The band has a gap: the curve has two minima.")
                     + f" Chosen: {threshold_name(b['chosen'])}, anywhere in ({threshold_name(b['lo'])}, "
                       f"{threshold_name(b['hi'])}] is as good by these data.")
    lines += _sides(r)
    return lines


def _sides(r: Results) -> list[str]:
    """What one step too low and one too high cost, as measured."""
    classes = r.get("equivalence_classes", [])
    cost = {row["threshold"]: row["excess_pct"] for row in r["cost_of_missing"]}
    at = next((i for i, g in enumerate(classes) if r["fit"]["best"] in g), None) if "fit" in r else next(
        (i for i, g in enumerate(classes) if r["band"]["chosen"] in g), None)
    if at is None:
        return []
    low = cost.get(classes[at - 1][0]) if at else None
    high = cost.get(classes[at + 1][0]) if at + 1 < len(classes) else None
    if low is None or high is None:
        return []
    text = f"One distinct rule too low costs {low:.2f} %, one too high {high:.2f} %: "
    return [text + ("erring low is the cheaper side." if low < high else "erring high is the cheaper side."
                    if high < low else "both sides cost the same.")]


def _threshold(r: Results) -> list[str]:
    if "threshold_curves" not in r:
        return []
    c = r["threshold_curves"]
    lines = ["## Regret by threshold", "", *_band(r), "",
             *table(("T", "regret", "excess", "in band"), (
                 (threshold_name(x["threshold"]), f"{x['geomean']:.4f}", f"{x['excess_pct']:.2f} %", "*" * x["in_band"])
                 for x in r["cost_of_missing"])), ""]
    opposed = opposed_classes(c)
    shown = {"pooled": c["pooled"]} | {k: c["classes"][k] for k in opposed}
    top = math.ceil(round(100 * max(max(v) for v in shown.values()), 6)) / 100 + 0.01
    lines += ["```mermaid", "xychart-beta", f'    title "Regret by threshold: {", ".join(shown)}"',
              f"    x-axis \"T\" [{', '.join(threshold_name(t) for t in c['thresholds'])}]",
              f'    y-axis "geometric mean regret" 1.0 --> {top:.2f}',
              *(f"    line [{', '.join(f'{x:.4f}' for x in v)}]" for v in shown.values()), "```",
              "![regret curves](plots/regret.svg)", ""]
    lines += class_table(c)
    power = r.get("power", {})
    blunt = [k for k, x in power.items() if x["no_power"]]
    if power:
        lines += ["", f"No power to choose T (the curve spans less than two standard errors): {names(blunt)}." if blunt
                  else "Every class has the power to choose T."]
    least = min(range(len(c["pooled"])), key=c["pooled"].__getitem__)
    apart = {k: c["thresholds"][min(range(len(v)), key=v.__getitem__)] for k, v in c["classes"].items()
             if k not in blunt and v[least] > 1.005 * min(v)}
    if apart:
        lines += ["Classes that the pooled best costs more than 0.5 %, and what they want: " + ", ".join(
            f"{k} {threshold_name(t)}" for k, t in apart.items()) + "."]
    return lines


def opposed_classes(c: Results) -> list[str]:
    """The two classes whose curves differ most: tall and square in the published report."""
    classes = c["classes"]
    if "tall" in classes and "square" in classes:
        return ["tall", "square"]
    pairs = [(sum(abs(math.log(x / y)) for x, y in zip(classes[a], classes[b], strict=True)), a, b)
             for a in classes for b in classes if a < b]
    return list(max(pairs)[1:]) if pairs else list(classes)


def class_table(c: Results) -> list[str]:
    worst = c.get("pooled_worst")
    return table(("T", "pooled", *c["classes"], *["worst"] * bool(worst)), (
        (threshold_name(t), f"{g:.4f}", *(f"{v[i]:.4f}" for v in c["classes"].values()),
         *([f"{worst[i]:.2f}"] if worst else []))
        for i, (t, g) in enumerate(zip(c["thresholds"], c["pooled"], strict=True))))


# ---- 3 --------------------------------------------------------------------------------------------------------------

def routing_rows(x: Results) -> list[tuple[str, ...]]:
    label = {"chosen": "chosen", "without_large": "without the large clause",
             "gpu_always": "always the heavy side", "cpu_always": "always the CPU"}
    return [(name, f"{x[k]['geomean']:.4f}", f"{x[k]['worst']:.2f}", f"{x[k]['over10']}/{x[k]['n']}")
            for k, name in label.items() if k in x]


def _routing(r: Results) -> list[str]:
    x = r.get("routing")
    if not x:
        return []
    lines = ["## Heavy or CPU", ""]
    if "share_curve" in x:
        c = x["share_min_batch"]
        lines += [f"Sharing a batch between two engines pays from batch {c}." if c else "Sharing a batch never "
                                                                                        "pays.", "",
                  *table(("share from batch", "regret", "worst"),
                         ((f"{b:g}" if b else "never", f"{g:.4f}", f"{w:.2f}") for b, g, w in x["share_curve"])), ""]
    if "cpu_fastest" in x:
        lines.append(f"The CPU is the quickest at {x['cpu_fastest']} of {x['cpu_points']} points"
                     + (f": {', '.join(x['first_cpu'])}." if x.get("first_cpu") else "."))
    if "constants" in x:
        k = x["constants"]
        limit = "no limit" if k["s_max"] is None else f"{k['s_max']:g}"
        lines += ["", "```", f"HEAVY iff (m*k >= {k['L']}^2 and batch <= {k['C'] or 'any'})" if k["L"] else
                  "HEAVY iff", f"       {'or' if k['L'] else '  '} ({k['s_min']:g} <= s <= {limit} and b*s >= "
                               f"{k['P']:g} "
                  f"and b >= {k['b_min']})", "else CPU", "```", "",
                  "O = everything timed; the rule without the large clause is refitted without it.", "",
                  *table(("rule", "regret", "worst", ">10 %"), routing_rows(x)), ""]
        h = x["held_out"]
        rival = min(("gpu_always", "cpu_always"), key=lambda k: h[k]["geomean"])
        lines.append(f"Held out (odd points): {h['fitted']['geomean']:.4f} (worst {h['fitted']['worst']:.2f}); its "
                     f"best "
                     f"rival, always {'the heavy side' if rival == 'gpu_always' else 'the CPU'}, "
                     f"{h[rival]['geomean']:.4f} (worst {h[rival]['worst']:.2f})"
                     + ("." if h["fitted"]["geomean"] < h[rival]["geomean"] else ": the boundary is not worth its "
                                                                                 "code."))
    return lines


# ---- 5, 6, 7, 8, 9 --------------------------------------------------------------------------------------------------

def _features(r: Results) -> list[str]:
    if not r.get("features"):
        return []
    own = next(x for x in r["features"] if x["dispatcher"])
    lines = ["## Which feature decides", "",
             *table(("feature", "best T", "regret", "worst", "better than the dispatcher's in"), (
                 (x["feature"] + " (dispatcher)" * x["dispatcher"], threshold_name(x["threshold"]),
                  f"{x['geomean']:.4f}", f"{x['worst']:.2f}",
                  f"{x['beats_dispatcher'] * 100:.0f} % of resamples" if "beats_dispatcher" in x else "")
                 for x in r["features"])), ""]
    first = r["features"][0]
    if first is own:
        lines.append(f"The dispatcher's feature, {own['feature']}, decides best.")
    elif first.get("beats_dispatcher", 1.0) >= 0.95:
        lines.append(f"**STRUCTURAL WARNING: {first['feature']} decides better than {own['feature']}, the dispatcher's "
                     "feature: the rule has the wrong form.**")
    else:
        lines.append(f"{first['feature']} is ahead of {own['feature']}, but in "
                     f"{first['beats_dispatcher'] * 100:.0f} % of "
                     "resamples only: not structural.")
    return lines


def symbol(rho: float) -> str:
    """By the stored three decimals, not by the two printed."""
    if rho < 0.95:
        return "###" if rho < 0.60 else "##" if rho < 0.85 else "#"
    return "~" if rho <= 1.05 else "." if rho <= 1.30 else ""


def cell(rho: float | None, tie: bool = False) -> str:
    if rho is None:
        return f"{'.':<3}     "
    return f"{symbol(rho):<3}{rho:5.2f}" + ("?" if tie else "")


def heat_panel(cells: dict[tuple[int, int], tuple[float, bool]], chosen: float | None, row_name: str) -> list[str]:
    """cells: (row, column) -> (ratio, tied)."""
    rows, columns = sorted({a for a, _ in cells}), sorted({b for _, b in cells})
    lines = [f"{row_name:>6} " + "".join(f"{c:>10}" for c in columns)]
    marked = False
    for a in rows:
        line = f"{a:>6} " + "".join(f"{cell(*cells[a, c]) if (a, c) in cells else cell(None):>10}" for c in columns)
        if chosen is not None and a >= chosen and not marked:
            line, marked = f"{line}  <- {row_name} >= {chosen:g}", True
        lines.append(line.rstrip())
    return lines


def _heat(r: Results) -> list[str]:
    if not r.get("surface"):
        return []
    p, chosen = r["pair"], r["band"]["chosen"]
    lines = ["## The ratio, point by point", "",
             f"ratio = {p['z']} / {p['a']}: `###` < 0.60, `##` < 0.85, `#` < 0.95, `~` 0.95 to 1.05, `.` <= 1.30, "
             f"blank "
             "above; `?` where neither is beaten beyond noise; a lone dot was not measured.", ""]
    square = all(c["m"] == c["n"] for c in r["surface"])
    panels: dict[str, dict[tuple[int, int], tuple[float, bool]]] = {}
    for c in r["surface"]:
        if square:
            name = "rows n, columns batch, " + ("dense" if c["case"] == "dense" and c["cond"] <= 2 else c["case"])
            panels.setdefault(name, {})[c["n"], c["b"]] = c["ratio"], c["tie"]
        else:
            panels.setdefault(f"batch {c['b']}, rows m, columns n", {})[c["m"], c["n"]] = c["ratio"], c["tie"]
    row = "n" if square else "m"
    for name, cells in panels.items():
        if len(cells) > 1:
            lines += [name, "```", *heat_panel(cells, chosen, row), "```"]
    lines += ["![heat map](plots/heat.svg)", *_letters(r, square)]
    return lines


def _letters(r: Results, square: bool) -> list[str]:
    """Best backend of each point as a letter, and the rule's beside it where they differ."""
    if not square or "points" not in r:
        return []
    letter = {b: chr(ord("A") + i) for i, b in enumerate(r["backends"])}
    dense = {(p["n"], p["b"]): p for p in r["points"] if p["case"] == "dense" and p["cond"] <= 2}
    rows, columns = sorted({n for n, _ in dense}), sorted({b for _, b in dense})
    lines = ["", "Quickest backend, dense points (`^` and the rule's letter where the rule picks another): "
             + ", ".join(f"{v} {k}" for k, v in letter.items()), "```", "     n " + "".join(f"{b:>6}" for b in columns)]
    for n in rows:
        text = ""
        for b in columns:
            p = dense.get((n, b))
            shown = "." if p is None else letter[p["best"]] + f"^{letter[p['pick']]}" * (p["pick"] != p["best"])
            text += f"{shown:>6}"
        lines.append(f"{n:>6} {text}")
    return [*lines, "```"]


def _rules(r: Results) -> list[str]:
    if not r.get("rules"):
        return []
    regions = list(r["rules"][0]["per_region"])
    lines = ["## Candidate rules", "", f"O = {{{', '.join(r['backends'])}}}.", "",
             *table(("rule", "regret", "worst", ">10 % off", "beyond noise", "failed picks", *regions), (
                 (x["label"], f"{x['geomean']:.4f}", f"{x['worst']:.2f}", f"{x['over_tie']}/{x['n']}",
                  str(x["over_real"]), str(x["failed"]), *(f"{x['per_region'][c]:.3f}" for c in regions))
                 for x in r["rules"]))]
    s = r.get("segments")
    if s:
        cv = ", ".join(f"{k}: {v:.4f}" for k, v in s["cross_validated"].items())
        lines += ["", f"Cross-validated regret by number of segments: {cv}. {s['count']} is the fewest within 0.5 % "
                      f"of the "
                  "best."]
    return lines


def _refinements(r: Results) -> list[str]:
    if not r.get("refinements"):
        return []
    rows = []
    for x in r["refinements"]:
        form = "; ".join(x["form"]) if isinstance(x["form"], list) else x["form"]
        why = f" ({', '.join(x['reasons'])})" if x.get("reasons") else ""
        verdict = "adopt" if x["justified"] else f"reject{why}"
        rows.append((x["name"], form, f"{x['train_geomean']:.4f}", f"{x['base'][0]:.4f}", f"{x['test_geomean']:.4f}",
                     f"{x['test_worst']:.2f}", f"{x['p_better'] * 100:.0f} %" if "p_better" in x else "", verdict))
    lines = ["## Refinements", "", *table(("name", "fitted form", "train", "plain rule held out", "held out", "worst",
                                           "better in", "verdict"), rows), ""]
    lines.append("None is adopted: the plain rule ships." if not any(x["justified"] for x in r["refinements"])
                 else f"Adopted: {names([x['name'] for x in r['refinements'] if x['justified']])}.")
    return lines


def _folds(r: Results) -> list[str]:
    rows = r.get("folds")
    if not rows:
        h = r.get("baseline_held_out")
        return [] if not h else ["## Held out", "", f"Fitted on {h['train']} even points (T = {h['threshold']:g}), "
                                                    f"scored "
                                 f"on {h['test']} odd ones: {h['geomean']:.4f}, worst {h['worst']:.2f}."]
    lines = ["## Held out", "", "The whole fit repeated without the points that it is scored on.", ""]
    rivals = sorted(rows[0]["always"], key=lambda b: rows[0]["always"][b][0])[:3]
    head = ("folds", "points", "fitted", "worst", "best single backend", "worst", *(f"always {b}" for b in rivals))
    lines += table(head, (
        (x["name"], str(x["points"]), f"{x['fitted'][0]:.4f}", f"{x['fitted'][1]:.2f}", f"{x['best_single'][0]:.4f}",
         f"{x['best_single'][1]:.2f}", *(f"{x['always'][b][0]:.4f}" for b in rivals)) for x in rows))
    worst = max(rows, key=lambda x: x["fitted"][0])
    lines += ["", f"Headline, the worst of them: {worst['fitted'][0]:.4f} ({worst['name']})."]
    lost = [x["name"] for x in rows
            if x["fitted"][0] > min(x["best_single"][0], min(v[0] for v in x["always"].values()))]
    lines.append(f"A single backend throughout does better than the fit by: {names(lost)}." if lost
                 else "By none of them does a single backend do better than the fit.")
    return lines


def noise_rows(noise: Results) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (x["bucket"] + " ms", str(x["n"]), f"{x['median']:.3f}", f"{x['p90']:.3f}",
         f"{x['p90_upper']:.3f}" if "p90_upper" in x else "", f"{x['max']:.3f}") for x in noise["by_runtime"]]
    o = noise["overall"]
    if o["n"]:
        rows.append(("all", str(o["n"]), f"{o['median']:.3f}", f"{o['p90']:.3f}", "", f"{o['max']:.3f}"))
    return rows


def _noise(r: Results) -> list[str]:
    n = r.get("noise")
    if not n:
        return []
    if not n["overall"]["n"]:
        return ["## Noise", "", "Nothing was measured twice: no difference can be told from noise."]
    tied = sum(len(p["tied"]) > 1 for p in r.get("points", []))
    lines = ["## Noise", "", "Slowest over quickest pass of the same point and backend, by run time.", "",
             *table(("quickest pass", "pairs", "median", "p90", "p90 at most", "max"), noise_rows(n)), "",
             "Two backends whose ratio is below p90 of their bucket (its upper limit, where pairs are few) are tied"
             + ("; so are those whose paired interval holds 1, or whose p-value does not survive Benjamini-Hochberg at "
                "0.10" if r["stats"] == "robust" else "") + ". Ties count nowhere as a win.",
             f"At {tied} of {r['n_points']} points two or more backends are tied for the best."]
    return [*lines, "![noise](plots/noise.svg)"]


# ---- 10, 11, 12 -----------------------------------------------------------------------------------------------------

def _contest(r: Results) -> list[str]:
    c = r.get("contest")
    if not c or not c.get("rows"):
        return []
    shown = [b for b in r["backends"] if any(b in x["cells"] for x in c["rows"])]
    picks = {p["key"]: p["pick"] for p in r.get("points", [])}
    rows = []
    for x in c["rows"]:
        tied = [b for b, v in x["cells"].items() if v["tied"]]
        cells = [duration(x["cells"][b]["ms"]) + (" =" if b in tied and len(tied) > 1 else " *" if b in tied else "")
                 if b in x["cells"] else "-" for b in shown]
        rows.append((x["point"], *cells, picks.get(x["point"], "")))
    means = tuple(duration(c["geomean_ms"].get(b)) for b in shown)
    lines = [f"## The contest's shapes ({c['n']} of 12)", "", "`*` beats all others beyond noise, `=` is tied with "
                                                              "another.",
             "", *table(("point", *shown, "rule picks"), [*rows, ("geomean", *means, duration(c.get("rule_ms")))]), ""]
    whole = {b: g for b, g in c["geomean_ms"].items() if g}
    if whole and c.get("rule_ms"):
        best = min(whole, key=whole.__getitem__)
        gain = whole[best] / c["rule_ms"]
        lines.append(f"The rule's picks score {duration(c['rule_ms'])}, the oracle {duration(c['oracle_ms'])}, the "
                     f"best "
                     f"single backend ({best}) {duration(whole[best])}: " + (
                         f"routing gains {percent(gain)}." if gain > 1.0005 else "routing gains nothing."))
    if c.get("case_penalty"):
        lines += ["", "What a hard input costs: its time over that of a dense batch of the same shape.", "",
                  *table(("case", *shown), ((case, *(f"{v[b]:.3f}" if b in v else "-" for b in shown))
                                            for case, v in c["case_penalty"].items()))]
    return lines


def _leverage(r: Results) -> list[str]:
    rows = r.get("leverage")
    if not rows:
        return []
    idle = sorted({x["constant"] for x in rows if not any(y["points"] for y in rows if y["constant"] == x["constant"])})
    return ["## Leverage", "", "At how many points another backend is dispatched if a limit moves to the next measured "
            "value, and with what share of the contest's score.", "",
            *table(("limit", "moved to", "points", "contest weight"),
                   ((x["constant"], f"{x['moved_to']:g}", str(x["points"]), f"{x['weight']:.3f}") for x in rows)), "",
            f"No leverage: {names(idle)}; do not advertise a fit." if idle else "Every limit moves points."]


def _trust(r: Results) -> list[str]:
    t = r.get("trust")
    if not t:
        return []
    lines = ["## Trust", "", "The run is trustworthy." if t["trustworthy"] else f"The run is not: "
                                                                                f"{'; '.join(t['why'])}.",
             f"The anchor drifted by a factor of {t['drift']:.3f}."]
    bad = r.get("unusable", [])
    if bad:
        kinds: dict[tuple[str, str], int] = {}
        for x in bad:
            kinds[x["backend"], x["status"]] = kinds.get((x["backend"], x["status"]), 0) + 1
        lines += ["", "Without a time (counted as infinitely slow, never dropped):", "",
                  *table(("backend", "status", "points"), ((b, s, str(n)) for (b, s), n in sorted(kinds.items())))]
    return lines


def _footer(r: Results) -> list[str]:
    return ["## Words", "", "*Point*: batch, n and kind of input. *Regret*: the time of the backend that a rule "
                            "picks over "
            "the quickest of the set O, named above each table; 1 is ideal. *regret* in a table: its geometric mean "
            "over "
            "points. *worst*: its maximum. *Tie*: no difference beyond run-to-run noise. *Held out*: scored on points "
            "that the fit did not see.", "",
            *(["Plots: " + ", ".join(f"[{x}](plots/{x}.svg)" for x in r["plots"]) + ".", ""] if r.get("plots") else []),
            "Raw times: raw.csv and samples.jsonl.gz in this folder. This report again, without measuring: "
            "`./kit tune --from results.json`."]
