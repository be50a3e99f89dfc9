"""The verbs as a user meets them: help, exit codes, what is saved, what a killed run leaves, the launcher."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import cli, timing
from harness.cases import ROOT
from harness.results import read_runs

VERBS = re.findall(r"^    (\w+) ", cli.parser().format_help(), re.MULTILINE)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Runs, noise and the lock in a place of their own."""
    from harness import bench, noise, pick
    folder = tmp_path / "runs"
    for module in (timing, pick):
        monkeypatch.setattr(module, "RUNS_DIR", folder, raising=False)
    monkeypatch.setattr(noise, "NOISE_DIR", tmp_path / "noise")
    monkeypatch.setattr(bench.tempfile, "gettempdir", lambda: str(tmp_path))
    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example_and_stands_in_the_readme(verb, capsys):
    assert cli.main([verb, "--help"]) == 0
    assert "example" in capsys.readouterr().out
    assert f"./kit {verb}" in (ROOT / "README.md").read_text() + (ROOT / "CHANGELOG.md").read_text() or re.search(
        rf"`{verb}`", (ROOT / "CHANGELOG.md").read_text())


def test_help_is_quick():
    start = time.process_time()
    p = subprocess.run([sys.executable, "-c", "import resource, runpy, sys\nsys.argv = ['kit', '--help']\n"
                        "try: runpy.run_module('harness', run_name='__main__')\n"
                        "except SystemExit: pass\n"
                        "print('torch' in sys.modules, resource.getrusage(resource.RUSAGE_SELF).ru_utime)"],
                       cwd=ROOT, capture_output=True, text=True, check=True)
    torch, seconds = p.stdout.splitlines()[-1].split()
    assert torch == "False" and float(seconds) < 0.5
    assert time.process_time() - start < 1


@pytest.mark.parametrize("args, code, says", [
    (["bench", "x.py", "--nope"], 2, "unrecognized arguments: --nope"),
    (["check", "nope.py"], 2, "nope.py: no such file"), (["bench"], 2, "required"), (["nope"], 2, "invalid choice"),
    (["bench", "{v00}", "--case", "nope"], 2, "names none of 12 cases"),
    (["check", "{v00}", "--case", "#99"], 2, "names none of 22 cases")])
def test_usage(args, code, says, capsys):
    assert cli.main([a.format(v00=timing.BASELINE) for a in args]) == code
    assert says in capsys.readouterr().err


def test_check_of_a_wrong_file(submission, tmp_path, capsys):
    path = submission("v90_wrong", "h, t = torch.geqrf(a)\nh[..., 0, 0] *= 1.01\nreturn h, t")
    dump = tmp_path / "bad.pt"
    assert cli.main(["check", str(path), "--case", "#0", "--dump", str(dump)]) == 1
    out = capsys.readouterr().out
    assert re.search(r"wrong: v90_wrong.py on b20 n32 dense: factor residual too large: matrix \d+ of 20", out)
    assert f"next: ./kit check {path} --case '#0' --dump bad.pt" in out
    assert "0 of 1 tests pass, 0 of 1 with secret seeds" in out
    import torch

    import reference
    saved = torch.load(dump)
    assert saved["case"].startswith("batch: 20; n: 32") and not reference.check_implementation(
        saved["A"], (saved["H"], saved["tau"]))[0]


def test_check_of_a_right_file(capsys):
    assert cli.main(["check", str(timing.BASELINE), "--case", "#0"]) == 0
    assert "1 of 1 tests pass, 1 of 1 with secret seeds, 8 of 8 probes" in capsys.readouterr().out


def test_triton_is_interpreted_where_there_is_no_gpu(submission, capsys):
    path = submission("v94_triton", """
        out = torch.empty(64)
        copy[(1,)](torch.arange(64.0), out, 64)
        if INTERPRETED:
            assert out[63] == 63
        return torch.geqrf(a)""", top="""
        import os
        import triton
        import triton.language as tl
        INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
        @triton.jit
        def kernel(x, y, n: tl.constexpr):
            i = tl.arange(0, n)
            tl.store(y + i, tl.load(x + i))
        class Nothing:
            def __getitem__(self, grid):
                return lambda *args: None
        copy = kernel if INTERPRETED else Nothing()
        """)
    assert cli.main(["check", str(path), "--case", "#0"]) == 0
    assert "v94_triton.py: 1 of 1 tests of n up to 176 pass in Triton's interpreter" in capsys.readouterr().out


def test_bench_saves_and_prints(runs, capsys):
    assert cli.main(["bench", str(timing.BASELINE), "--case", "n32", "--no-check"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"b20 n32 dense +[\d.]+ [µm]s .* 1\.00x", out) and "geometric mean over 1 of 1 cases" in out
    (file,) = runs.glob("*.jsonl")
    (run,) = read_runs(file)
    assert run.ok and run.samples_ns and run.protocol == "strict" and run.device["torch"]


def test_a_case_that_fails_is_no_reason_to_stop(submission, runs, capsys):
    path = submission("v91_half", "if a.shape[-1] == 32:\n    raise ValueError('no')\nreturn torch.geqrf(a)")
    assert cli.main(["bench", str(path), "--case", "n32", "--case", "n176", "--no-check", "--no-baseline"]) == 1
    out = capsys.readouterr().out
    assert "raised: v91_half.py on b20 n32 dense" in out and "not a score: some cases are missing" in out
    assert [r.status for r in read_runs(next(runs.glob("*.jsonl")))] == ["raised", "pass"]


BENCH = """import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from harness import bench, cli, timing
bench.tempfile.gettempdir = lambda: sys.argv[2]
timing.RUNS_DIR = Path(sys.argv[2]) / "runs"
sys.exit(cli.main(["bench", sys.argv[3], "--case", "n32", "--case", "n176", "--no-check", "--no-baseline", "--resume"]))
"""


def test_a_killed_bench_resumes_where_it_was(submission, tmp_path):
    """Killed (-9) in its second case; the next call measures that one alone."""
    flag = tmp_path / "slow"
    flag.touch()
    path = submission("v92_slow", f"""
        import os, time
        if a.shape[-1] == 176 and os.path.exists({str(flag)!r}):
            time.sleep(60)
        return torch.geqrf(a)""")
    command = [sys.executable, "-c", BENCH, str(ROOT), str(tmp_path), str(path)]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 90
    while time.time() < deadline and not list(tmp_path.glob("runs/*.jsonl")):
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    (file,) = tmp_path.glob("runs/*.jsonl")
    (kept,) = read_runs(file)
    (file.parent / "99990101-000000-torn.jsonl").write_text('{"v": 1, "fi')  # another one, killed in its first line
    flag.unlink()
    p = subprocess.run(command, capture_output=True, text=True)
    assert p.returncode == 0 and "1 measurements are there" in p.stderr, p.stderr
    runs = read_runs(file)
    assert runs[0] == kept and [r.case for r in runs] == ["b20 n32 dense", "b40 n176 dense"]
    assert "geometric mean over 2 of 2 cases" in p.stdout


def test_reused_inputs_are_named():
    from harness.results import Run

    def run(protocol, times, file="v93.py"):
        return Run(file, file, "b640 n512 dense", "batch: 640; n: 512; cond: 2; seed: 1", "pass", protocol=protocol,
                   samples_ns=times)
    lives = [run("contest", [1e6, 1.01e6]), run("strict", [2e6, 2.02e6])]
    assert "v93.py lives on reused inputs on b640 n512 dense: 1.005 ms on the same data" in timing.reuse(lives)
    honest = [run("contest", [1e6, 1.2e6]), run("strict", [1.05e6, 1.25e6])]
    assert timing.reuse(honest) == "strict and contest agree on every case within the noise"
    assert timing.reuse(honest[:1]).startswith("no case passed under both protocols")


def test_a_file_against_itself_is_kept_also_when_broken_off(runs, tmp_path, monkeypatch, capsys):
    """Two rounds of the copy were there when somebody pressed Ctrl-C: the raw runs and the floor stay."""
    from fake_runs import session

    from harness import bench, noise
    from harness.machine import fingerprint
    from harness.results import file_sha

    def broken_off(arms, cases, on_run, **options):
        shas = {f.name: file_sha(f) for f in arms}
        for r in session(tuple(shas), rounds=2, noise=0.01, shas=shas, device=fingerprint(), protocol="strict"):
            on_run(r)
        raise KeyboardInterrupt
    monkeypatch.setattr(bench, "measure", broken_off)
    assert cli.main(["bench", str(timing.BASELINE), "--no-check", "--rounds", "4"]) != 0
    assert "noise floor of this machine, itself.py against itself" in capsys.readouterr().err
    (raw,) = (tmp_path / "noise").glob("*-itself.jsonl")
    assert {(r.file, r.round) for r in read_runs(raw)} == {("itself.py", 0), ("itself.py", 1)}
    floor = noise.read(fingerprint(), "strict", read_runs(raw)[0].task)
    assert floor is not None and floor.typical > 0
    (saved,) = runs.glob("*.jsonl")
    assert {r.file for r in read_runs(saved)} == {"v00_geqrf.py"}


# ---------------------------------------------------------------- the launcher

@pytest.fixture
def fresh(tmp_path):
    """A checkout of the launcher alone, and a PATH on which only what a test puts there is a Python."""
    tree, bin_ = tmp_path / "tree", tmp_path / "bin"
    for folder in (tree, bin_):
        folder.mkdir()
    shutil.copy(ROOT / "kit", tree)
    (tree / "requirements.txt").write_text("nonexistent-package-of-qrkit==1\n")
    (tree / "harness").mkdir()
    (tree / "harness" / "__main__.py").write_text("import sys; print('ran', sys.argv[1:])")
    for tool in ("sh", "dirname", "cksum", "mkdir", "grep", "tail", "cat"):
        (bin_ / tool).symlink_to(shutil.which(tool))

    def kit(*args, python=None):
        if python is not None:
            (bin_ / "python3").write_text(python)
            (bin_ / "python3").chmod(0o755)
        env = {"PATH": str(bin_), "HOME": str(tmp_path)}
        return subprocess.run([str(tree / "kit"), *args], capture_output=True, text=True, env=env)
    return kit


BARE = f"#!/bin/sh\nexec {sys.executable} -S -s \"$@\"\n"  # without site-packages: a Python that has no torch


def test_launcher_without_python(fresh):
    p = fresh("check", "x.py")
    assert p.returncode == 3 and "next:" in p.stderr
    assert "no Python 3.11 or newer found (python3 is missing)" in p.stderr


def test_launcher_with_an_old_python(fresh):
    p = fresh("check", "x.py", python='#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 && exit\nexit 1\n')
    assert p.returncode == 3 and "no Python 3.11 or newer found (python3 is Python 3.9.2)" in p.stderr


def test_launcher_uses_the_python_that_has_torch(fresh, tmp_path):
    p = fresh("check", "x.py", python=f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
    assert p.returncode == 0 and "ran ['check', 'x.py']" in p.stdout and "which has torch" in p.stderr
    p = fresh("check", "x.py")
    assert p.returncode == 0 and not p.stderr  # said once
    assert not (tmp_path / "tree" / ".venv").exists()


def test_launcher_says_why_the_install_failed(fresh, tmp_path):
    p = fresh("check", "x.py", python=BARE)
    assert p.returncode == 3 and "the install failed" in p.stderr and "install.log" in p.stderr
    assert len(p.stderr.splitlines()) <= 4
    assert not (tmp_path / "tree" / ".kit" / "python").exists()  # the next call tries again


def test_launcher_helps_before_anything_is_installed(fresh):
    p = fresh("--help", python=BARE)
    assert p.returncode == 0 and "ran ['--help']" in p.stdout


def test_launcher_is_quick(tmp_path):
    """What it adds to a later start: well under 0.3 s of processor time."""
    before = os.times()
    for _ in range(3):
        subprocess.run([ROOT / "kit", "compare", "--help"], capture_output=True, check=True)
    bare = os.times()
    for _ in range(3):
        command = [sys.executable, "-m", "harness", "compare", "--help"]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    after = os.times()
    cost = [(y.children_user + y.children_system) - (x.children_user + x.children_system)
            for x, y in ((before, bare), (bare, after))]
    assert cost[0] - cost[1] < 3 * 0.3


def test_the_map_names_what_is_there():
    named = set(re.findall(r"`([\w/.]+)`", (ROOT / "README.md").read_text().split("## The map")[1]))
    modules = {p.name for p in Path(ROOT / "harness").glob("*.py")} - {"__init__.py", "__main__.py"}
    folders = {p.parent.name + "/" for p in Path(ROOT / "harness").glob("*/__init__.py")}
    names = {n.removeprefix("harness/") for n in named}
    assert modules <= names, modules - names
    assert folders <= names, folders - names
