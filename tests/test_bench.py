"""The trusted parent and its worker: every way to fail has a verdict of its own, and the other cases go on."""
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from harness import bench, child, evaluate
from harness.bench import check, measure
from harness.cases import KINDS, ROOT, Case
from harness.errors import UserError
from harness.evaluate import Schedule

SHORT = Schedule(max_inputs=3, max_repeats=3, min_repeats=2, settle_s=0, wall_s=5)


def case(batch=2, n=8, kind="dense", index=0):
    return Case("test", index, f"b{batch} n{n} {kind}", batch, n, 1, 77 + index, kind, kind != "dense")


def verdicts(path, *cases, **options):
    return [(r.status, r.message) for r in check(path, list(cases), on_run=lambda r: None, **options)]


# What custom_kernel does when n is 9; every other size is answered rightly.
FAILS = {
    "raises": ("raise ValueError('no odd sizes')", "raised", "ValueError: no odd sizes"),
    "returns nothing": ("return None", "output", "output must be a tuple (H, tau), got NoneType"),
    "returns three": ("return (a, a, a)", "output", "a tuple of 3"),
    "wrong shape": ("h, t = torch.geqrf(a); return h, t[..., None]", "output", "tau has shape (2, 9, 1)"),
    "wrong dtype": ("h, t = torch.geqrf(a); return h.double(), t", "output", "H has dtype torch.float64"),
    "wrong answer": ("h, t = torch.geqrf(a); return 2 * h, t", "wrong", "residual too large: matrix"),
    "NaN": ("h, t = torch.geqrf(a); return h * float('nan'), t", "wrong", "not finite"),
    "changes its input": ("h, t = torch.geqrf(a); a.zero_(); return h, t", "wrong", "changes its input"),
    "dies": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "died", "killed by SIGSEGV"),
    "exits": ("import os; os._exit(3)", "died", "exit status 3"),
    "hangs": ("import time; time.sleep(60)", "timeout", "no answer within 12 s"),
    "out of memory": ("raise MemoryError", "oom", "memory"),
    "writes to the channel": ("import os, sys; os.write(int(sys.argv[1]), b'\\0\\0\\0\\2{}'); return torch.geqrf(a)",
                              "infra", "channel was written to"),
}


@pytest.mark.parametrize("name", FAILS)
def test_a_failure_costs_its_case_alone(submission, name):
    body, status, text = FAILS[name]
    path = submission("bad", f"if a.shape[-1] == 9:\n    {body}\nreturn torch.geqrf(a)")
    limit = 12 if name == "hangs" else 60  # the right answers beside it have time on a busy machine
    first, bad, last = verdicts(path, case(), case(n=9, index=1), case(n=7, index=2), limit_s=limit)
    assert (first[0], last[0]) == ("pass", "pass"), (first, last)
    assert bad[0] == status and text in bad[1]


def test_a_traceback_starts_in_the_submission(submission):
    path = submission("bad", "return helper(a)", top="def helper(a):\n    raise ValueError('deep')\n")
    (_, message), = verdicts(path, case())
    lines = message.splitlines()
    assert lines[0].strip().startswith(f'File "{path}"') and lines[-1] == "ValueError: deep"
    assert "worker.py" not in message


def test_a_file_that_does_not_import(submission):
    path = submission("bad", "return a", top="import nonexistent_module\n")
    for status, message in verdicts(path, case(), case(n=9, index=1)):
        assert status == "import" and "No module named 'nonexistent_module'" in message


def test_the_harness_cannot_be_imported_from_a_submission(submission):
    path = submission("nosy", "return torch.geqrf(a)", top="import task\nimport reference\n")
    assert verdicts(path, case())[0][0] == "import"
    path = submission("fine", "return torch.geqrf(a)", top="from task import input_t, output_t\n")
    assert verdicts(path, case())[0][0] == "pass"


def test_the_profile_of_a_wrong_matrix_in_a_mixed_batch(submission):
    path = submission("bad", "h, t = torch.geqrf(a)\nzero = (a == 0).all(1).any(1)\nh[zero] *= 2\nreturn h, t")
    c = case(24, 16, "mixed")
    (status, message), = verdicts(path, c)
    assert status == "wrong" and message.endswith("(profile rankdef)")


def test_secret_seeds_differ_from_the_contest_s(submission):
    path = submission("sum", "print('sum', float(a.sum()))\nreturn torch.geqrf(a)")
    public = check(path, [case()], on_run=lambda r: None)[0]
    hidden = [check(path, [case()], seeds="secret", on_run=lambda r: None)[0] for _ in range(2)]
    assert public.spec == case().spec
    assert len({public.spec, *(r.spec for r in hidden)}) == 3


@pytest.fixture
def cpu_schedule(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "CPU", SHORT)
    monkeypatch.setattr(bench.tempfile, "gettempdir", lambda: str(tmp_path))  # a lock of its own


REMEMBERS = """
    key = a.data_ptr() if BY == "pointer" else float(a[0, 0, 0])
    seen = key in KNOWN
    KNOWN.add(key)
    if seen:
        raise RuntimeError("seen before")
    return torch.geqrf(a)
"""


def test_strict_never_shows_a_matrix_twice_and_contest_does(submission, cpu_schedule):
    path = submission("remembers", REMEMBERS, top="KNOWN, BY = set(), 'value'\n")
    assert measure([path], [case()], schedule=SHORT)[0].status == "pass"
    again = measure([path], [case()], protocol="contest", schedule=SHORT)[0]
    assert again.status == "raised" and "seen before" in again.message


def test_files_take_turns_and_every_run_is_handed_over_at_once(submission, cpu_schedule):
    a, b = (submission(name, f"return torch.geqrf(a)  # {name}") for name in "ab")
    seen = []
    runs = measure([a, b], [case(), case(n=9, index=1)], rounds=2, schedule=SHORT, on_run=seen.append)
    assert runs == seen
    order = [(r.round, r.case[3:5].strip(), r.file[0]) for r in runs]
    assert order == [(0, "n8", "a"), (0, "n8", "b"), (0, "n9", "a"), (0, "n9", "b"),
                     (1, "n8", "b"), (1, "n8", "a"), (1, "n9", "b"), (1, "n9", "a")]
    assert len({r.session for r in runs}) == 1 and len({r.sha for r in runs}) == 2


def test_nothing_is_timed_before_all_files_of_the_round_are_loaded(submission, cpu_schedule, tmp_path):
    log = tmp_path / "log"
    files = [submission(name, f"open({str(log)!r}, 'a').write('c')\nreturn torch.geqrf(a)  # {name}",
                        top=f"open({str(log)!r}, 'a').write('L')\n") for name in "ab"]
    measure(files, [case()], rounds=2, schedule=SHORT)
    said = log.read_text()
    second = said.index("L", 2)
    assert said[:2] == said[second:second + 2] == "LL" and set(said[2:second]) == set(said[second + 2:]) == {"c"}


def test_what_is_there_is_not_measured_again(submission, cpu_schedule):
    path = submission("a", "return torch.geqrf(a)")
    runs = measure([path], [case(), case(n=9, index=1)], schedule=SHORT, skip=lambda file, label, n: "n8" in label)
    assert [r.case for r in runs] == ["b2 n9 dense"]


def test_one_timing_at_a_time(cpu_schedule):
    says = f"another qrkit is timing on .*process {os.getpid()}"
    with bench.device_lock(), pytest.raises(UserError, match=says) as e, bench.device_lock():
        pass
    assert e.value.exit_code == 3
    with bench.device_lock():
        pass


def test_a_false_clock_is_caught(submission, cpu_schedule):
    path = submission("clock", """
        import sys
        frame = sys._getframe()
        while "self" not in frame.f_locals:
            frame = frame.f_back
        frame.f_locals["self"].clock = lambda: 0
        h, t = torch.geqrf(a)
        torch.linalg.svdvals(torch.randn(400, 400))
        return h, t""")
    run = measure([path], [case()], schedule=SHORT)[0]
    assert run.status == "clock" and "the parent's clock says" in run.message


@pytest.mark.parametrize(("says", "status"), [(["late", ""], "pass"), (["late", "late"], "clock")])
def test_a_host_that_stalls_for_a_whole_case_costs_one_more_try(submission, cpu_schedule, monkeypatch, says, status):
    """The try that is kept had a clock that agreed; it ran in another process, on other inputs under strict."""
    workers, answers = [], iter(says)
    monkeypatch.setattr(child.Worker, "late", lambda self, replies: workers.append(self) or next(answers))
    seen: list[int] = []
    make = evaluate.make_input
    monkeypatch.setattr(evaluate.run_case, "__defaults__", (*evaluate.run_case.__defaults__[:-1],
                                                            lambda c: seen.append(c.seed) or make(c)))
    run = measure([submission("any", "return torch.geqrf(a)")], [case()], schedule=SHORT)[0]
    assert run.status == status and ("first try was refused: late" in run.message) == (status == "pass")
    assert len(workers) == 2 and workers[0] is not workers[1] and len(run.samples_ns) > 0
    assert len(set(seen)) == len(seen)


def test_a_wrong_answer_stays_one_whatever_the_clock_says(submission, cpu_schedule):
    path = submission("both", """
        import sys
        frame = sys._getframe()
        while "self" not in frame.f_locals:
            frame = frame.f_back
        frame.f_locals["self"].clock = lambda: 0
        torch.linalg.svdvals(torch.randn(400, 400))
        CALLS.append(1)
        h, t = torch.geqrf(a)
        return (h, t) if len(CALLS) <= 6 else (2 * h, t)""", top="CALLS = []\n")
    run = measure([path], [case()], schedule=SHORT)[0]  # the third run of three calls: one repeat is in the book
    assert run.status == "wrong" and "residual" in run.message


def test_replaced_functions_are_seen(submission, cpu_schedule):
    path = submission("patch", "torch.Tensor.copy_ = torch.Tensor.copy_.__get__\nreturn torch.geqrf(a)")
    run = check(path, [case()], on_run=lambda r: None)[0]
    assert run.status == "raised" or "replaced Tensor.copy_" in run.flags


def test_a_kept_output_is_seen_also_between_runs_and_its_watch_cannot_be_silenced(submission, cpu_schedule):
    keep = """
    KEPT.setdefault(0, torch.geqrf(a))
    for kept, fresh in zip(KEPT[0], torch.geqrf(a)):
        kept.copy_(fresh)
    return KEPT[0]
    """
    for top, flag in (("KEPT = {}\n", "returns the buffer of its earlier output"),
                      ("KEPT = {}\nfrom torch.multiprocessing import reductions\n"
                       "reductions.StorageWeakRef.expired = lambda self: True\n", "replaced StorageWeakRef.expired")):
        run = measure([submission("keeps", keep, top=top)], [case()], schedule=replace(SHORT, max_inputs=1))[0]
        assert run.status == "flagged" and flag in run.flags
    fresh = measure([submission("fresh", "return torch.geqrf(a)")], [case()], schedule=SHORT)[0]
    assert fresh.status == "pass" and not fresh.flags


def test_a_truncated_factorization_is_flagged_with_its_columns(submission):
    path = submission("lazy", """
        h, t = torch.geqrf(a)
        half = a.shape[-1] // 2 + 2
        h[..., half:] = 0
        t[..., half:] = 0
        return h, t""")
    run = check(path, [case(2, 64, "clustered")], on_run=lambda r: None)[0]
    assert run.status == "flagged", run
    assert "columnwise: 30 of 64 columns" in run.message and "reflectors of matrix" in run.message


def test_honest_files_are_not_flagged():
    cases = [case(9, 40, kind, i) for i, kind in enumerate(KINDS)]
    runs = check(ROOT / "submissions" / "v00_geqrf.py", cases, probe=True, on_run=lambda r: None)
    assert [r.status for r in runs] == ["pass"] * (len(KINDS) + 8)


def test_nothing_is_left_in_shared_memory_and_no_process(submission):
    before = set(Path("/dev/shm").glob("qrkit-*"))
    path = submission("forks", "import os\nif os.fork() == 0:\n    import time; time.sleep(300)\nreturn torch.geqrf(a)")
    run = check(path, [case()], on_run=lambda r: None)[0]
    assert run.status == "flagged" and "leaves a process running" in run.message
    assert set(Path("/dev/shm").glob("qrkit-*")) <= before
    mine = subprocess.run(["pgrep", "-f", f"worker.py.*{path}"], capture_output=True, text=True).stdout
    assert not mine


def test_a_killed_parent_leaves_no_worker(tmp_path, submission):
    path = submission("slow", "import time; time.sleep(300)")
    code = ("import sys; sys.path.insert(0, sys.argv[1])\nfrom pathlib import Path\nfrom harness.bench import check\n"
            "from harness.cases import Case\n"
            "check(Path(sys.argv[2]), [Case('test', 0, 'x', 1, 4, 1, 1)], on_run=print)")
    parent = subprocess.Popen([sys.executable, "-c", code, str(ROOT), str(path)])
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    deadline = time.time() + 60
    while not children.read_text().split() and time.time() < deadline:
        time.sleep(0.05)
    child = int(children.read_text().split()[0])
    time.sleep(1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.time() + 30
    while Path(f"/proc/{child}").exists() and time.time() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()


def test_each_protocol_has_its_schedule_on_a_gpu(submission, cpu_schedule, monkeypatch):
    """Alone: the contest's stop rule, under strict half of its repeats; rounds are shorter; v00 beside gets three."""
    a, b = submission("a", "return torch.geqrf(a)"), submission("b", "return torch.geqrf(a)  # b")
    seen = {}

    def run(self, case, seeds, schedule, **options):
        seen[self.path.name] = schedule
        return evaluate.Outcome("pass", samples_ns=[1.0])
    monkeypatch.setattr(bench.Bench, "run", run)
    monkeypatch.setattr(bench.Bench, "start", lambda self: None)
    monkeypatch.setattr(bench.Bench, "loaded", lambda self: None)
    monkeypatch.setattr(bench, "device_kind", lambda: "cuda")
    for protocol, rounds, wanted in (("contest", 1, evaluate.CONTEST), ("strict", 1, evaluate.STRICT),
                                     ("contest", 2, evaluate.ROUND), ("strict", 2, evaluate.ROUND)):
        measure([a, b], [case()], protocol=protocol, rounds=rounds, short=a)
        assert seen == {"a.py": evaluate.BASELINE, "b.py": wanted}
    loose = [1e6, 2e6] * 50
    assert evaluate.STRICT.enough(loose, 1) and not evaluate.CONTEST.enough(loose, 1)


def test_the_stop_rule():
    s = Schedule()
    tight, loose = [1e6, 1e6 + 1, 1e6], [1e6, 2e6, 3e6]
    assert not s.enough(tight[:2], 1) and not s.enough(tight, 0.05) and s.enough(tight, 0.2)
    assert not s.enough(loose, 1) and s.enough(loose, 121) and s.enough([4e9, 4e9, 5e9], 13)
    assert s.enough(loose * 67, 1)
    shapes = ((20, 32), (40, 352), (640, 512), (8, 2048), (2, 4096))
    assert [s.inputs(case(b, n)) for b, n in shapes] == [50, 13, 1, 2, 2]


def test_labels_of_a_mixed_batch_are_those_of_the_input():
    c = case(30, 24, "mixed")
    a = evaluate.make_input(c)
    labels = evaluate.labels_of(c)
    assert labels is not None
    for matrix, label in zip(a, labels, strict=True):
        assert (label == "rankdef") == bool((matrix == 0).all(0).any())
    assert set(labels) - {"dense"}


@pytest.mark.gpu
def test_a_gpu_case_by_ipc():
    runs = measure([ROOT / "submissions" / "v00_geqrf.py"], [case(4, 64)], schedule=SHORT)
    assert runs[0].status == "pass" and not runs[0].cut and runs[0].device["driver"]
    torch.cuda.synchronize()


GPU_FAILS = {  # what custom_kernel does when n is 9, on a device
    "illegal access": ("scribble[(1,)](a, 1 << 50)\n    return torch.geqrf(a)", "raised", "illegal memory access"),
    "device memory": ("torch.empty(1 << 42, device=a.device)", "oom", "out of memory"),
    "a kernel that hangs": ("torch.cuda._sleep(1 << 50)\n    return torch.geqrf(a)", "timeout", "within 20 s"),
}
SCRIBBLE = """import triton
import triton.language as tl
@triton.jit
def scribble(a, far):
    tl.store(a + far, 1.0)
"""


@pytest.mark.gpu
@pytest.mark.parametrize("name", GPU_FAILS)
def test_a_failure_on_the_device_costs_its_case_alone(submission, name):
    body, status, text = GPU_FAILS[name]
    path = submission("bad", f"if a.shape[-1] == 9:\n    {body}\nreturn torch.geqrf(a)", top=SCRIBBLE)
    first, bad, last = verdicts(path, case(), case(n=9, index=1), case(n=7, index=2), limit_s=20)
    assert (first[0], last[0]) == ("pass", "pass"), (first, last)
    assert bad[0] == status and text in bad[1], bad
    assert not subprocess.run(["pgrep", "-f", f"worker.py.*{path}"], capture_output=True, text=True).stdout
