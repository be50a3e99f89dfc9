"""Nsight Compute's table to a summary; ./kit profile with a stand-in ncu; scripts/profile against a stand-in server."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness import profiling
from harness.cases import load_task
from harness.errors import UserError
from harness.profiling import summarise
from tests.popcorn_standin.details import GEMM, PANEL, SETUP_ONLY, SOLVER, launch, table
from tests.popcorn_standin.server import Scenario
from tests.test_popcorn import CODE, Kit


def test_kernels_are_summed_by_name_and_sorted_by_time():
    panel, gemm, fill = summarise(SOLVER).kernels
    assert (panel.name, panel.launches, panel.total_ns) == ("geqr2_panel<(int)512>", 2, 2e6)  # ms and us added up
    assert panel.share == pytest.approx(2e6 / (2e6 + 9e5 + 2048))
    assert (gemm.name, gemm.launches, gemm.total_ns) == (GEMM, 1, 9e5)
    assert fill.setup and not panel.setup and not gemm.setup


def test_bound_occupancy_registers_spills_and_stall_are_read():
    panel, gemm, fill = summarise(SOLVER).kernels
    assert (panel.bound, gemm.bound, fill.bound) == ("latency", "compute", "memory")
    assert panel.memory_pct == pytest.approx(35.5)  # the percentage, not the 2.10 Tbyte/s of the same name
    assert (panel.occupancy_pct, panel.occupancy_limit_pct) == (41.5, 50)
    assert (panel.registers, panel.spills, panel.stall) == (255, 2048, "long scoreboard 7.2 cycles")
    assert (gemm.registers, gemm.spills, gemm.stall) == (168, 0, "barrier 3.0 cycles")
    assert summarise(SOLVER).warnings == []


def test_averages_are_weighted_by_time():
    text = table(launch(0, PANEL, ("1", "us"), "10", "10"), launch(1, PANEL, ("3", "us"), "90", "50"))
    (kernel,) = summarise(text).kernels
    assert kernel.compute_pct == pytest.approx(70) and kernel.memory_pct == pytest.approx(40)


def test_a_capture_of_set_up_kernels_is_warned_about():
    (warning,) = summarise(SETUP_ONLY).warnings
    assert "only set-up kernels (10 launches" in warning and "--ncu-launch-count" in warning


@pytest.mark.parametrize("value", ["nan", "n/a", ""])
def test_counters_that_are_no_numbers_give_unknown_and_a_warning(value):
    summary = summarise(table(launch(0, PANEL, ("1", "us"), value, value)))
    assert summary.kernels[0].bound == "unknown" and "no throughput was counted" in summary.warnings[0]


def test_the_top_stall_comes_from_single_states_where_no_rule_speaks():
    rows = launch(0, PANEL, ("1", "us"), "1", "1")
    front, back = rows[0][:11], ("", "", "", "", "")
    rows += [(*front, "WarpStateStats", f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio", "", cycles,
              *back) for state, cycles in (("math_pipe_throttle", "0.5"), ("wait", "2.5"))]
    assert summarise(table(rows)).kernels[0].stall == "wait"


@pytest.mark.parametrize("text", ["", "==PROF== nothing\n", '"ID","Kernel Name"\n'])
def test_an_empty_capture_is_an_error_that_says_so(text):
    with pytest.raises(UserError, match="captured nothing") as e:
        summarise(text)
    assert e.value.exit_code == 3


def test_a_table_that_was_cut_short_keeps_its_whole_rows():
    cut = SOLVER[:SOLVER.index(GEMM) + 5]
    assert summarise(cut).kernels[0].name == "geqr2_panel<(int)512>"


def test_the_printed_table_has_every_kernel_and_aligned_columns():
    lines = profiling.table(summarise(SOLVER)).splitlines()
    assert len(lines) == 4 and lines[1].startswith("geqr2_panel<(int)512>")
    assert "latency" in lines[1] and "42 % of 50 %" in lines[1] and lines[1].endswith("long scoreboard 7.2 cycles")
    assert len({line.index(w) for line, w in zip(lines[1:], ("latency", "compute", "memory"), strict=True)}) == 1


# ------------------------------------------------------------ ./kit profile, with an ncu that is a script


NCU = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *--import*) cat {details};;
  *) {body}
     while [ $# -gt 0 ]; do [ "$1" = --export ] && : > "$2"; shift; done;;
esac
"""


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path, Scenario())


def with_ncu(kit: Kit, body: str = "true", details: str = SOLVER) -> Path:
    log, csv, ncu = kit.tmp / "ncu.log", kit.tmp / "details.csv", kit.bin / "ncu"
    csv.write_text(details)
    ncu.write_text(NCU.format(log=log, details=csv, body=body))
    ncu.chmod(0o755)
    return log


def test_a_local_profile_leaves_clocks_alone_and_keeps_a_folder_of_its_own(kit):
    log = with_ncu(kit)
    said = kit.run("profile", str(kit.file), "--case", "#7", "--case", "#0")
    assert said.code == 0 and "v07_test.py on b640 n512 mixed" in said.out and "geqr2_panel" in said.out
    assert "--clock-control none" in log.read_text() and "--profile-from-start off" in log.read_text()
    folders = {p.parent.name for p in kit.folder.glob("profiles/*/*/summary.json")}
    assert folders == {"b640-n512-mixed", "b20-n32-dense"}
    (first, *_) = kit.folder.glob("profiles/*/*/summary.json")
    assert json.loads(first.read_text())["kernels"][0]["registers"] == 255


def test_no_ncu_is_one_message(kit):
    said = kit.run("profile", str(kit.file), "--case", "#7")
    assert said.code == 3 and "ncu (Nsight Compute) is not on PATH" in said.err and "scripts/profile" in said.err


@pytest.mark.parametrize(("message", "words"), [
    ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters",
     "nvidia.com/ERR_NVGPUCTRPERM"),
    ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "container")])
def test_closed_counters_are_explained(kit, message, words):
    with_ncu(kit, f'echo "{message}"; exit 1')
    said = kit.run("profile", str(kit.file), "--case", "#7")
    assert said.code == 3 and words in said.err and message.removeprefix("==ERROR== ") in said.err


def test_a_submission_that_is_wrong_under_the_profiler_is_wrong(kit):
    with_ncu(kit, 'echo "wrong: v07_test.py on b640 n512 mixed: factor residual" >&2; exit 1')
    assert kit.run("profile", str(kit.file), "--case", "#7").code == 1


def test_a_capture_without_kernels_is_said(kit):
    with_ncu(kit, "exit 0")
    said = kit.run("profile", str(kit.file), "--case", "#7")
    assert said.code == 3 and "captured no kernel" in said.err


def test_an_unknown_case_and_a_missing_file_are_usage(kit):
    assert kit.run("profile", str(kit.file), "--case", "n7").code == 2
    assert kit.run("profile", "nowhere.py", "--case", "#7").code == 2


def test_the_profiled_program_runs_the_submission_and_checks_it(tmp_path, monkeypatch, capsys):
    """On the CPU: the profiler's switches are stand-ins, the rest is real."""
    torch = pytest.importorskip("torch")
    from harness import profiled

    calls = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    for name in ("start", "stop"):
        monkeypatch.setattr(torch.cuda.profiler, name, lambda name=name: calls.append(name))
    import reference
    a = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(reference, "generate_input", lambda *_: a)
    monkeypatch.setattr(sys, "path", list(sys.path))
    case = {"batch": 2, "n": 8, "cond": 1, "seed": 3, "case": "dense", "label": "b2 n8 dense"}
    good, bad, broken = (tmp_path / f"{n}.py" for n in ("good", "bad", "broken"))
    good.write_text(CODE)
    bad.write_text(CODE.replace("return torch.geqrf(data)", "h, t = torch.geqrf(data); return h + 1, t"))
    broken.write_text("def custom_kernel(data):\n    raise RuntimeError('boom')\n")
    assert profiled.main(str(good), case) == 0 and calls == ["start", "stop"]
    assert profiled.main(str(bad), case) == 1 and profiled.main(str(broken), case) == 1
    said = capsys.readouterr().err
    assert "wrong: bad.py on b2 n8 dense: " in said and "wrong: broken.py on b2 n8 dense: RuntimeError" in said


# ------------------------------------------------------------ scripts/profile


@pytest.fixture
def remote(tmp_path: Path):
    kit = Kit(tmp_path, Scenario(details=SOLVER, evil_zip=True))
    with kit.server:
        yield kit


def brev(kit: Kit) -> dict[str, str]:
    return {"POPCORN_BREV_PROFILER_URL": kit.server.url}


def captures(kit: Kit) -> list[str]:
    return sorted(str(p.parent.relative_to(kit.folder / "popcorn")).split("/", 1)[1]
                  for p in kit.folder.glob("popcorn/**/summary.json"))


def test_brev_profiles_the_case_that_was_asked_for_in_a_folder_of_its_own(remote):
    said = remote.run("_profile", str(remote.file), "--case", "#3", **brev(remote))
    assert said.code == 0 and "v07_test.py on b640 n512 dense" in said.out and "geqr2_panel" in said.out
    assert captures(remote) == ["b640-n512-dense/profile.3-batch-640-n-512-cond-2-seed-1029"]
    assert list(remote.folder.glob("popcorn/**/*.ncu-rep")) and not list(remote.tmp.glob("*.zip"))
    assert "\x1b" not in said.out + (next(remote.folder.glob("popcorn/**/output.txt"))).read_text()


def test_brev_profiles_two_cases_in_two_runs(remote):
    said = remote.run("_profile", str(remote.file), "--case", "#0", "--case", "mixed", **brev(remote))
    assert said.code == 0 and [c.split("/")[0] for c in captures(remote)] == [
        "b20-n32-dense", "b60-n1024-mixed", "b640-n512-mixed"]


@pytest.mark.parametrize("words", [(), ("--all",)])
def test_all_cases_are_profiled_in_the_contests_order(remote, words):
    said = remote.run("_profile", str(remote.file), *words, **brev(remote))
    titles = [x.removeprefix("v07_test.py on ") for x in said.out.splitlines() if x.startswith("v07_test.py on")]
    assert said.code == 0 and titles == [c.label for c in load_task().benchmarks]
    assert remote.server.posts() == 1


@pytest.mark.parametrize("generation", "AC")
def test_without_brev_the_servers_profile_mode_is_used_and_narrowed_here(remote, generation):
    said = remote.run("_profile", str(remote.file), "--case", "#7", generation=generation)
    assert said.code == 0 and said.out.count("geqr2_panel") == 1 and "v07_test.py on b640 n512 mixed" in said.out
    assert not list(remote.tmp.glob("**/escaped/*")) and not list(remote.folder.glob("**/readme.md"))


def test_the_hosted_profiler_is_used_where_the_program_has_it(remote):
    said = remote.run("_profile", str(remote.file), "--case", "#7", generation="D")
    assert said.code == 0 and captures(remote) == ["b640-n512-mixed/popcorn-profile-a1b2c3/result-0/profile-0"]
    assert ("POST", "/profile/qr_v2/B200") in [(m, p) for m, p, _ in remote.server.asked]


def test_set_up_kernels_only_is_a_warning_on_stderr(remote):
    remote.scenario.details = SETUP_ONLY
    said = remote.run("_profile", str(remote.file), "--case", "#3", **brev(remote))
    assert said.code == 0 and "warning: the capture holds only set-up kernels" in said.err


def test_a_failed_profile_job_is_not_a_pass(remote):
    remote.scenario.brev_status = "failed"
    said = remote.run("_profile", str(remote.file), "--case", "#3", "--case", "#4", **brev(remote))
    assert said.code == 10 and "ncu failed" in said.out and remote.server.posts() == 1


def test_artifacts_without_details_are_infrastructure(remote):
    remote.scenario.details = ""
    assert remote.run("_profile", str(remote.file), "--case", "#3", **brev(remote)).code == 12


def test_a_closed_board_refuses_profiles_too(remote):
    remote.scenario.refuse = [(400, "The deadline to submit to qr_v2 has passed.")]
    assert remote.run("_profile", str(remote.file), "--case", "#3").code == 15


