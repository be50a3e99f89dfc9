"""report: what the page holds, and the page in a real browser."""
import argparse
import json
import random
import re
import shutil
import time

import pytest
from fake_runs import TASK, session

from harness import pick, render, report
from harness.compare import compare_sides
from harness.errors import UserError
from harness.report import data
from harness.results import append_runs

FILES = ["v00_geqrf.py", "v01_wy.py", "v02_panel.py", "v03_small.py"]
SPEED = {"v00_geqrf.py": 1.0, "v01_wy.py": 0.5, "v02_panel.py": 0.02, "v03_small.py": 0.3}
LABELS = [c.label for c in TASK.benchmarks]


def measured():
    """Four files on an H200, one of which fails a case; two of them on a CPU, newest."""
    runs = []
    for minute, file in enumerate(FILES):
        runs += session([file], rounds=4, seed=minute, drift=0, factor=lambda f, i: SPEED[f] * (1 + 0.1 * i),
                        t=f"2026-11-30T03:0{minute}:00Z")
    for r in runs:
        if r.file == "v03_small.py" and r.case == LABELS[6]:
            r.status, r.message, r.samples_ns = "wrong", "residual 31 </script><b>not markup</b>", []
    cpu = session(FILES[:2], rounds=1, cases=[0, 1], name="cpu", t="2026-11-29T00:00:00Z", cut=True,
                  device={"name": "CPU (2 threads)", "torch": "2.13.0"}, factor=lambda f, i: SPEED[f])
    return runs + cpu


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.results.RUNS_DIR", tmp_path / "runs")
    monkeypatch.setattr("harness.pick.RECORDS_DIR", tmp_path / "records")
    monkeypatch.setattr("harness.noise.NOISE_DIR", tmp_path / "noise")
    monkeypatch.setattr("harness.roofline.CEILINGS_FILE", tmp_path / "ceilings.json")
    monkeypatch.setattr("harness.report.PAGE", tmp_path / "report.html")
    return tmp_path


def kit(*argv):
    parser = argparse.ArgumentParser()
    report.register(parser.add_subparsers())
    args = parser.parse_args(["report", *map(str, argv)])
    return args.run(args)


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


# ---------------------------------------------------------------- what the page holds

def test_figures_are_those_of_compare(here):
    append_runs(here / "runs" / "a.jsonl", session(FILES, rounds=4))
    sides = pick.group(pick.all_runs())
    found = embedded(data.page(sides))["environments"][0]
    compared = json.loads(render.to_json(compare_sides(sides)))["comparisons"]
    for c in compared:
        file = next(f for f in found["files"] if f["file"] == c["new"]["file"])
        assert [x["ns"] for x in file["cells"]] == [r["new_ns"] for r in c["rows"]]
        assert file["geomean_ns"] == pytest.approx(c["total"]["new_ns"])
        assert [x["floor_ns"] for x in found["cases"]] == [r["floor_ns"] for r in c["rows"]]


def test_what_did_not_pass_everything_has_no_score():
    found = data.collect(pick.group(measured()))
    h200, cpu = found["environments"]
    files = {f["name"]: f for f in h200["files"]}
    assert h200["title"] == "NVIDIA H200, torch 2.11.0, driver 580.1, strict protocol" and cpu["cut"]
    assert files["v03"]["geomean_ns"] is None and (files["v03"]["passed"], files["v03"]["ran"]) == (11, 12)
    assert files["v03"]["cells"][6]["status"] == "wrong" and files["v03"]["cells"][6]["ns"] is None
    assert h200["files"][h200["base"]]["file"] == "v00_geqrf.py"
    assert len(cpu["cases"]) == 2 and cpu["cases"][0]["floor_ns"] is None


def test_only_the_newest_bytes_of_a_file_are_shown():
    old = session(["v01_wy.py"], rounds=2, shas={"v01_wy.py": "old"}, t="2026-11-28T00:00:00Z")
    new = session(["v01_wy.py"], rounds=2, shas={"v01_wy.py": "new"}, t="2026-11-30T00:00:00Z")
    (environment,) = data.collect(pick.group(new + old))["environments"]
    assert [f["sha"] for f in environment["files"]] == ["new"]


def test_a_thousand_runs_make_a_small_page_in_less_than_five_seconds(here, capsys):
    rng = random.Random(1)
    files = ["v00_geqrf.py", *(f"v{i:02}_x.py" for i in range(1, 21))]
    runs = session(files, rounds=4)  # 21 files x 12 cases x 4 rounds = 1008
    for r in runs:
        r.samples_ns = [r.samples_ns[1] * rng.lognormvariate(0, 0.01) for _ in range(200)]
    append_runs(here / "runs" / "a.jsonl", runs)
    start = time.process_time()
    assert kit() == 0
    assert time.process_time() - start < 5
    page = (here / "report.html").read_text()
    assert len(page.encode()) < 1_000_000
    found = embedded(page)
    assert "thinned" in found["note"] and len(found["environments"][0]["files"]) == 21
    assert found["environments"][0]["files"][3]["cells"][3]["rounds"][0]["n"] == 200
    assert str(here / "report.html") in capsys.readouterr().out


def test_a_page_of_very_many_files_drops_the_oldest_and_says_so():
    sides = pick.group([r for i in range(700) for r in session(
        [f"v{i:03}_file_{i}.py"], rounds=2, t=f"2026-{1 + i // 100:02}-{1 + i % 100 // 10:02}T{i % 10:02}:00:00Z")])
    page = data.page(sides)
    found = embedded(page)
    assert len(page.encode()) < 1_000_000 and "oldest files are left out" in found["note"]
    assert "v699" in [f["name"] for f in found["environments"][0]["files"]]


def test_the_page_asks_for_nothing_from_outside(here):
    page = data.page(pick.group(measured()))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", page)
    assert "</script><b>" not in page.replace("</script>\n", "")


def test_nothing_saved_is_said(here):
    with pytest.raises(UserError, match="no saved run"):
        kit()


def test_png_is_a_picture(here, capsys):
    pytest.importorskip("matplotlib")
    append_runs(here / "runs" / "a.jsonl", measured())
    assert kit("--png", here / "picture.png") == 0
    assert (here / "picture.png").read_bytes().startswith(b"\x89PNG") and not (here / "report.html").exists()
    append_runs(here / "runs2" / "b.jsonl", [r for r in measured() if r.file == "v03_small.py"])
    with pytest.raises(UserError, match="no file passed every case"):
        kit(here / "runs2" / "b.jsonl", "--png", here / "none.png")


# ---------------------------------------------------------------- in a browser

# without the last four Chromium looks up Google's hosts at every start
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("no chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with playwright.sync_playwright() as p:
        b = p.chromium.launch(executable_path=chromium, args=FLAGS)
        yield b
        b.close()


@pytest.fixture
def page(browser, tmp_path):
    """The page, opened from the file system; every message of its console and every request are kept."""
    path = tmp_path / "report.html"
    path.write_text(data.page(pick.group(measured())), encoding="utf-8")
    p = browser.new_page(viewport={"width": 1280, "height": 900})
    p.said, p.asked = [], []
    p.on("console", lambda m: p.said.append(m.text))
    p.on("pageerror", lambda e: p.said.append(str(e)))
    p.on("request", lambda r: p.asked.append(r.url))
    p.goto(path.as_uri())
    p.found = embedded(path.read_text(encoding="utf-8"))["environments"]
    yield p
    assert p.said == []
    assert all(url.startswith(("file:", "data:")) for url in p.asked)
    p.close()


def column(page, table, n):
    return page.locator(f"#{table} tbody tr td:nth-child({n})").all_inner_texts()


def test_every_value_is_the_data_s(page):
    for f in page.found[0]["files"]:
        for case, cell in zip(page.found[0]["cases"], f["cells"], strict=True):
            shown = page.locator(f'[data-cell="{f["name"]}|{case["label"]}"]')
            ns = shown.get_attribute("data-ns")
            assert (float(ns) if ns else None) == cell["ns"]
            if cell["ns"]:
                base = page.found[0]["files"][page.found[0]["base"]]["cells"][page.found[0]["cases"].index(case)]["ns"]
                assert float(shown.inner_text()[:-1]) == pytest.approx(base / cell["ns"], rel=6e-3)
            else:
                assert shown.inner_text() == cell["status"]
    page.select_option("#metric", "time")
    units = {"µs": 1e3, "ms": 1e6, "s": 1e9}
    for f in page.found[0]["files"]:
        for case, cell in zip(page.found[0]["cases"], f["cells"], strict=True):
            text = page.locator(f'[data-cell="{f["name"]}|{case["label"]}"]').inner_text()
            if cell["ns"]:
                value, unit = text.split()
                assert float(value) * units[unit] == pytest.approx(cell["ns"], rel=6e-4)


def test_the_ladder_sorts_both_ways_and_what_has_no_score_stands_last(page):
    assert column(page, "ladder", 1) == ["v00", "v01", "v02", "v03"]  # by first measurement
    page.click('#ladder [data-sort="geomean_ns"]')
    assert column(page, "ladder", 1) == ["v02", "v01", "v00", "v03"]
    assert page.get_attribute('#ladder th:has([data-sort="geomean_ns"])', "aria-sort") == "ascending"
    page.click('#ladder [data-sort="geomean_ns"]')
    assert column(page, "ladder", 1) == ["v00", "v01", "v02", "v03"]
    page.click('#heat [data-sort="case:6"]')  # v03 failed there
    assert column(page, "heat", 1)[-1] == "v03"


def test_it_filters(page):
    page.fill("#filter", "PANEL")
    assert column(page, "ladder", 1) == column(page, "heat", 1) == ["v02"]
    assert page.locator("#ladder-chart circle").count() == 1
    page.fill("#filter", "nothing has this name")
    assert page.locator("#ladder tbody tr").count() == 0
    page.fill("#filter", "")
    assert page.locator("#heat tbody tr").count() == 4


def test_a_click_on_a_case_shows_its_raw_samples(page):
    assert page.is_hidden("#samples")
    page.click(f'[data-cell="v01|{LABELS[3]}"]')
    assert page.inner_text("#h-samples") == f"Raw samples: v01, {LABELS[3]}"
    cell = next(f for f in page.found[0]["files"] if f["name"] == "v01")["cells"][3]
    assert page.locator("#samples-chart .sample").count() == sum(len(r["samples"]) for r in cell["rounds"]) == 12
    page.click("#samples summary")
    numbers = [float(x) for line in page.inner_text("#samples-list").splitlines() for x in line.split(": ")[1].split()]
    assert numbers == [x for r in cell["rounds"] for x in r["samples"]]
    page.click(f'[data-cell="v03|{LABELS[6]}"]')
    assert "wrong: residual 31 </script><b>not markup</b>" in page.inner_text("#samples-about")


def test_a_file_is_shown_case_by_case_with_geqrf_floor_and_margins(page):
    assert page.inner_text("#h-file") == "v02, case by case"  # the quickest that has a score
    page.click('#ladder [data-file="v01"]')
    rows = page.locator("#cases tbody tr")
    assert rows.count() == 12 and page.locator("#cases .floor").count() == page.locator("#cases .base").count() == 12
    f, base = (page.found[0]["files"][i] for i in (1, 0))
    widths = [float(x.get_attribute("width")) for x in page.locator("#cases rect.own").all()]
    other = [float(x.get_attribute("width")) for x in page.locator("#cases rect.base").all()]
    for cell, against, own, grey in zip(f["cells"], base["cells"], widths, other, strict=True):
        assert (own < grey) == (cell["ns"] < against["ns"])
    assert "3.1" in rows.nth(0).inner_text() and "12.0" in rows.nth(0).inner_text()


def test_environments_are_kept_apart(page):
    page.select_option("#environment", "1")
    assert column(page, "ladder", 1) == ["v00", "v01"]
    assert "cut for a CPU" in page.inner_text("#about") and page.locator("#cases .floor").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(page, scheme):
    page.emulate_media(color_scheme=scheme)
    for selector in ("body", ".hint", "#heat tbody button", "#ladder .bad"):
        ink, ground = page.evaluate("""selector => {
          const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          const node = document.querySelector(selector);
          const paint = (layers) => { layers.forEach((c) => { canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); });
            return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); };
          const grounds = [];
          for (let n = node; n; n = n.parentElement) grounds.unshift(getComputedStyle(n).backgroundColor);
          return [paint([getComputedStyle(node).color]), paint(grounds)];
        }""", selector)

        def luminance(rgb):  # WCAG 2, relative luminance
            r, g, b = (x / 3294.6 if x <= 10 else ((x / 255 + 0.055) / 1.055) ** 2.4 for x in rgb)
            return 0.2126 * r + 0.7152 * g + 0.0722 * b

        high, low = sorted((luminance(ink), luminance(ground)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, selector
    assert (luminance(ground) < 0.2) == (scheme == "dark")


def test_it_fits_a_narrow_window(page):
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


