"""scripts/submit, benchmark and profile end to end: a real process, a stand-in popcorn on PATH, a stand-in server.

Every run is also searched for what must never show: the user's id and number, and any secret figure, on stdout, on
stderr and in every file that is left.
"""
from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import cli
from harness.cases import ROOT, load_task
from harness.popcorn import verdict
from harness.popcorn.verdict import Verdict
from harness.results import Run, append_runs, file_sha, geomean, read_runs
from tests.popcorn_standin.server import ID, SECRET_NS, USER, Scenario, Server, mean_ns

TASK = load_task()
DRIVE = ROOT / "tests/popcorn_standin/drive.py"
CODE = """#!POPCORN leaderboard qr_v2
#!POPCORN gpu B200
import torch


def custom_kernel(data):
    return torch.geqrf(data)
"""


@functools.cache
def forks() -> socket.socket:
    """The other end of a process that runs what it is sent: drive.py. It ends when this process does."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    subprocess.Popen([sys.executable, str(DRIVE), "--fork", str(its.fileno())], pass_fds=[its.fileno()],
                     env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"})
    its.close()
    mine.settimeout(60)
    return mine


@dataclass
class Said:
    code: int
    out: str
    err: str


class Kit:
    """One checkout's .kit folder, one home, one PATH."""

    def __init__(self, tmp: Path, scenario: Scenario):
        self.tmp, self.scenario, self.server = tmp, scenario, Server(scenario)
        self.folder, self.home, self.bin = tmp / "kit", tmp / "home", tmp / "bin"
        for path in (self.home, self.bin):
            path.mkdir()
        self.file = tmp / "v07_test.py"
        self.file.write_text(CODE)
        (self.home / ".popcorn.yaml").write_text(f"cli_id: {ID}\n")
        self.install("popcorn")

    def install(self, name: str) -> None:
        """--version and --help are answered by the shell: most of the stand-in's time would go into starting Python."""
        program = self.bin / name
        program.write_text(f"""#!/bin/sh
case $STANDIN_GENERATION in A) v=1.3.10;; B) v=1.3.23;; C) v=1.3.27;; D) v=1.4.2; new="--local --profile";; esac
case "$1 $2" in
  "--version ") echo "popcorn-cli ${{STANDIN_VERSION:-$v}}";;
  "submit --help") printf '      %s\\n' "--gpu <GPU>" --profile-brev --no-tui $new;;
  *) exec "{sys.executable}" -S "{ROOT}/tests/popcorn_standin/popcorn" "$@"
esac
""")
        program.chmod(0o755)

    def environment(self, generation: str, env: dict[str, str]) -> dict[str, str]:
        return {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.home), "POPCORN_API_URL": self.server.url,
                "NO_PROXY": "127.0.0.1,localhost", "PYTHONPATH": str(ROOT), "STANDIN_GENERATION": generation,
                "POPCORN_PATIENCE_S": "1", "LANG": "C.UTF-8", **env}

    def start(self, *words: str, generation: str = "B", **env: str) -> subprocess.Popen[str]:
        """A run from a fresh interpreter, not waited for; Ctrl-C reaches it also where this suite runs under nohup."""
        return subprocess.Popen([sys.executable, str(DRIVE), str(self.folder), *words], cwd=self.tmp, text=True,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                                env=self.environment(generation, env), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words: str, generation: str = "B", **env: str) -> Said:
        out, err = self.tmp / "stdout", self.tmp / "stderr"
        request = {"words": [str(self.folder), *words], "cwd": str(self.tmp), "env": self.environment(generation, env)}
        with open(out, "w") as o, open(err, "w") as e:
            socket.send_fds(forks(), [json.dumps(request).encode()], [o.fileno(), e.fileno()])
        said = Said(int(forks().recv(16)), out.read_text(), err.read_text())
        self.search(said.out + said.err)
        assert "Traceback" not in said.err.split("stderr of the")[0], said.err
        return said

    def search(self, printed: str) -> None:
        files = [p for p in self.folder.rglob("*") if p.is_file()] if self.folder.exists() else []
        for text in [printed, *(p.read_text(errors="replace") for p in files)]:
            for word in (ID, USER, str(SECRET_NS), repr(SECRET_NS / 1e9)):
                assert word not in text

    def submit(self, mode: str, *words: str, generation: str = "B", **env: str) -> Said:
        return self.run("_submit", str(self.file), "--mode", mode, *words, generation=generation, **env)

    def runs(self) -> list[Run]:
        files = sorted((self.folder / "runs").glob("*.jsonl"))
        return [r for f in files for r in read_runs(f)]

    def states(self) -> list[dict[str, object]]:
        return [json.loads(p.read_text()) for p in sorted(self.folder.glob("popcorn/*/state.json"))]

    def result(self) -> dict[str, object]:
        (path,) = self.folder.glob("popcorn/*/result.json")
        return json.loads(path.read_text())


@pytest.fixture
def make(tmp_path: Path) -> Iterator[object]:
    """make(Scenario(...)) -> Kit with a running server."""
    with contextlib.ExitStack() as stack:
        def start(scenario: Scenario | None = None) -> Kit:
            kit = Kit(tmp_path, scenario or Scenario())
            stack.enter_context(kit.server)
            return kit
        yield start


# ------------------------------------------------------------ what passes


@pytest.mark.parametrize("generation", "ABCD")
def test_benchmark_brings_twelve_shapes_back_in_nanoseconds(make, generation):
    kit = make()
    said = kit.run("_benchmark", str(kit.file), generation=generation)
    assert said.code == 0 and said.out.startswith("passed: v07_test.py on qr_v2, benchmark, B200, submission 71234")
    runs = kit.runs()
    assert [r.case for r in runs] == [c.label for c in TASK.benchmarks]
    assert [r.mean_ns for r in runs] == [mean_ns(c) for c in TASK.benchmarks]  # no digit lost
    assert {(r.where, r.protocol, r.mode, r.sha, r.task) for r in runs} == \
        {("popcorn", "contest", "benchmark", file_sha(kit.file), TASK.sha)}
    assert all(c.label in said.out for c in TASK.benchmarks)
    assert f"geomean over 12 of 12 shapes: {geomean(r.mean_ns for r in runs) / 1e6:#.4g} ms" in said.out
    assert kit.server.posts() == 1
    assert kit.states()[0]["generation"] == generation and kit.states()[0]["verdict"] == "passed"


@pytest.mark.parametrize("generation", "ABC")
def test_tests_pass_with_messages_and_margins(make, generation):
    kit = make()
    said = kit.submit("test", generation=generation)
    assert said.code == 0 and "22 of 22 tests passed" in said.out
    assert all(r.mode == "test" and r.margin == {"factor": 0.9, "orth": 1.5} for r in kit.runs())


@pytest.mark.parametrize("generation", "ABC")
def test_leaderboard_gives_the_public_score_and_no_secret_figure(make, generation):
    kit = make(Scenario(unordered=True))
    said = kit.submit("leaderboard", generation=generation)
    assert said.code == 0 and f"score (ranked stage, public): {mean_ns(TASK.benchmarks[0]) / 1e3:#.4g} µs" in said.out
    assert {r.mode for r in kit.runs()} == {"test", "benchmark"} and len(kit.runs()) == 34
    assert kit.result()["score_s"] == pytest.approx(mean_ns(TASK.benchmarks[0]) / 1e9, rel=1e-15)


def test_a_score_that_is_a_number_is_read_like_one_that_is_a_string(make):
    kit = make(Scenario(number_score=True))
    assert kit.submit("leaderboard").code == 0
    assert kit.result()["score_s"] == pytest.approx(mean_ns(TASK.benchmarks[0]) / 1e9)


def test_progress_shows_queue_state_and_seconds_on_stderr_only(make):
    kit = make()
    said = kit.submit("benchmark")
    assert "Submission 71234 accepted. Modal B200 queue: 3 queued jobs." in said.err
    assert "submission 71234: running, Modal B200 queue: 3 queued jobs (5 s)" in said.err
    assert "running" not in said.out


@pytest.mark.parametrize("queue", ["null", "unavailable"])
def test_a_queue_that_is_not_known_is_not_shown(make, queue):
    said = make(Scenario(queue=queue)).submit("benchmark")
    assert said.code == 0 and " queue" not in said.err and "submission 71234: running (5 s)" in said.err


def test_popcorn_cli_is_found_under_its_long_name_and_an_impostor_passed_over(make):
    kit = make()
    (kit.bin / "popcorn").write_text("#!/bin/sh\necho popcorn time 0.4\n")
    kit.install("popcorn-cli")
    assert kit.submit("test").code == 0


# ------------------------------------------------------------ what fails in the submission


@pytest.mark.parametrize("generation", "ABC")
def test_a_failed_test_is_exit_1_whatever_the_program_exits_with(make, generation):
    kit = make(Scenario(fails=(8,)))
    said = kit.submit("test", generation=generation)
    assert said.code == 1 and said.out.startswith("failed tests: ")
    assert f"wrong: v07_test.py on {TASK.tests[8].label}: R - Q.T @ A is too large: matrix=1" in said.out
    assert "21 of 22 tests passed" in said.out and "next: ./kit check" in said.err
    assert [r.status for r in kit.runs()].count("wrong") == 1


@pytest.mark.parametrize("generation", "ABC")
def test_a_failed_shape_leaves_the_other_eleven(make, generation):
    kit = make(Scenario(fails=(7,)))
    said = kit.submit("benchmark", generation=generation)
    assert said.code == 1 and "geomean over 11 of 12 shapes" in said.out and "not a score: 1 without a time" in said.out
    assert [r.case for r in kit.runs() if not r.ok] == ["b640 n512 mixed"]


@pytest.mark.parametrize("generation", "ABC")
def test_a_crash_is_told_from_a_failed_test(make, generation):
    kit = make(Scenario(crash=3))
    said = kit.submit("benchmark", generation=generation)
    assert said.code == 10 and said.out.startswith("crashed: ")
    assert [r.status for r in kit.runs()] == ["pass", "pass", "pass", "raised"]


def test_a_crash_shows_the_submissions_own_frames(make):
    stderr = ('Traceback (most recent call last):\n  File "/tmp/x/eval.py", line 9, in run\n'
              '  File "/tmp/x/submission.py", line 7, in custom_kernel\n    boom()\nRuntimeError: CUDA error: boom')
    kit = make(Scenario(crash=-1, diagnostics={"exit_code": 1, "stderr": stderr, "stdout": "", "success": False}))
    said = kit.submit("test", generation="C")
    assert said.code == 10 and "the test stage ended with status 1" in said.out
    assert "RuntimeError: CUDA error: boom" in said.err and "eval.py" not in said.err


@pytest.mark.parametrize("generation", "ABC")
def test_a_stage_timeout_has_a_verdict_of_its_own(make, generation):
    said = make(Scenario(timeout=True)).submit("test", generation=generation)
    assert said.code == 11 and said.out.startswith("timeout: ")


def test_a_timeout_that_the_server_names_is_one_even_where_the_stage_was_short(make):
    kit = make(Scenario(crash=-1, diagnostics={"exit_code": 114, "stderr": "", "stdout": "", "success": False}))
    assert kit.submit("test", generation="C").code == 11


@pytest.mark.parametrize("generation", "BC")
def test_secret_validation_that_fails_is_a_failure(make, generation):
    said = make(Scenario(secret_fails=True)).submit("leaderboard", generation=generation)
    assert said.code == 1 and "secret validation failed" in said.out


@pytest.mark.parametrize("generation", "BC")
def test_public_validation_that_fails_names_the_case(make, generation):
    said = make(Scenario(fails=(2,))).submit("leaderboard", generation=generation)
    assert said.code == 1 and f"wrong: v07_test.py on {TASK.tests[2].label}" in said.out


# ------------------------------------------------------------ what fails in the server


@pytest.mark.parametrize("generation", "ABC")
def test_no_runs_is_the_runners_failure_though_the_program_exits_0(make, generation):
    said = make(Scenario(no_runs=True)).submit("benchmark", generation=generation)
    assert said.code == 12 and said.out.startswith("infrastructure: ")
    assert "next: scripts/submit --resume 71234" in said.err


@pytest.mark.parametrize(("job", "code", "words"), [
    (("hacked", "Submission rejected by KernelGuard pre-check (high_critical). Matched rules: TIMER_MONKEYPATCH."), 13,
     "TIMER_MONKEYPATCH"),
    (("timed_out", "hard timeout reached"), 11, "hard timeout"),
    (("failed", "job interrupted while kernelbot was shutting down; please resubmit"), 12, "shutting down"),
    (("failed", "worker crashed while processing submission"), 12, "worker crashed"),
    (("failed", "KernelGuard pre-check is unavailable right now. Please try again later."), 12, "unavailable"),
    (("failed", "ranked validation did not complete all public and secret runs"), 12, "did not complete"),
    (("failed", "'NoneType' object has no attribute '__dict__'"), 10, "NoneType"),
])
def test_what_the_job_ended_with_decides(make, job, code, words):
    said = make(Scenario(job=job)).submit("leaderboard")
    assert said.code == code and words in said.out


@pytest.mark.parametrize("generation", "BC")
def test_done_before_the_last_status_is_not_believed(make, generation):
    """The program sees done, prints its summary and exits 0; we see it twice more; the job then fails."""
    kit = make(Scenario(race=3, job=("failed", "worker crashed while processing submission")))
    assert kit.submit("leaderboard", generation=generation).code == 12
    assert kit.states()[0]["verdict"] == "infrastructure"


# ------------------------------------------------------------ refusals: nothing is taken, nothing is sent twice

DEADLINE = (400, "The deadline to submit to qr_v2 has passed.\nIt was 2026-06-30 and today is 2026-11-30.")
LIMIT = (429, "Rate limit exceeded: 5/5 test submissions per hour. Try again in 1s.")


@pytest.mark.parametrize(("refusal", "code"), [
    (DEADLINE, 15), (LIMIT, 14), (((403, "You do not have access to this leaderboard")), 15),
    ((400, "The bot is currently not accepting any new submissions, please try again later."), 15),
    ((400, "You are banned from making submissions."), 15), ((500, "Internal Server Error"), 12),
    ((400, "Please provide a non-rude filename"), 2),
    ((400, "failed to prepare submission request: 500: Your code contains work on another stream. ..."), 2),
])
@pytest.mark.parametrize("generation", "AB")
def test_each_refusal_has_its_verdict(make, refusal, code, generation):
    if generation == "A" and refusal[0] == 500:
        pytest.skip("generation A's endpoint wraps it differently")
    kit = make(Scenario(refuse=[refusal]))
    said = kit.submit("test", generation=generation)
    assert said.code == code and not kit.runs()
    assert kit.server.posts() == 1


def test_a_closed_board_says_what_still_works(make):
    assert "next: ./kit bench" in (said := make(Scenario(refuse=[DEADLINE])).submit("test")).err
    assert said.out.startswith("closed: ") and "--local" not in said.err


def test_a_closed_board_names_local_where_the_program_has_it(make):
    assert "--local" in make(Scenario(refuse=[DEADLINE])).submit("test", generation="D").err


def test_a_rate_limit_is_said_without_wait_and_waited_for_with_it(make):
    kit = make(Scenario(refuse=[LIMIT, LIMIT, LIMIT]))
    assert "again in 1 s, or --wait" in kit.submit("test").err
    said = kit.submit("test", "--wait")
    assert said.code == 0 and said.err.count("sending again in") == 2
    assert kit.server.posts() == 4 and len(kit.server.rows) == 1


def test_an_unknown_id_is_authentication(make):
    kit = make()
    (kit.home / ".popcorn.yaml").write_text("cli_id: someone-else-entirely\n")
    said = kit.submit("test")
    assert said.code == 16 and "someone-else-entirely" not in said.out + said.err and "reregister" in said.err


def test_an_id_that_the_server_repeats_is_taken_out(make):
    """Kit.search finds it wherever it would be left."""
    kit = make(Scenario(refuse=[(400, f"Please provide a name, {ID}")]))
    assert "<your id>" in kit.submit("test").out
    kit.scenario.fails, kit.scenario.diagnostics = (0,), {"exit_code": 112, "stderr": f"env: {ID}", "stdout": ID}
    assert "env: <your id>" in kit.submit("benchmark", generation="C").err


@pytest.mark.parametrize("config", [None, "token: 1\n", "cli_id: [\n", ""])
def test_no_registration_is_said_before_anything_is_sent(make, config):
    kit = make()
    (kit.home / ".popcorn.yaml").unlink()
    if config is not None:
        (kit.home / ".popcorn.yaml").write_text(config)
    said = kit.submit("test")
    assert said.code == 16 and "popcorn register" in said.err and not kit.server.asked


def test_a_gpu_that_the_board_does_not_offer_is_usage(make):
    said = make().submit("test", "--gpu", "b200")
    assert said.code == 2 and "GPU type 'b200' is not supported" in said.out


def test_an_unknown_leaderboard_is_usage(make):
    assert make().submit("test", "--leaderboard", "nowhere").code == 2


def test_another_board_gets_a_copy_with_its_directive_rewritten(make):
    kit = make()
    said = kit.submit("test", "--leaderboard", "Scratch")
    assert said.code == 0 and kit.file.read_text() == CODE
    assert kit.server.rows[71234]["code"] == CODE.replace("qr_v2", "scratch")


def test_a_directive_in_capitals_is_sent_as_the_server_wants_it(make):
    kit = make()
    kit.file.write_text(CODE.replace("qr_v2", "QR_V2", 1))
    said = kit.submit("test")
    assert said.code in (0, 2)  # 2: the lint refuses it first
    assert said.code == 2 or kit.server.rows[71234]["code"] == CODE


def test_what_the_server_must_refuse_is_not_sent(make):
    kit = make()
    kit.file.write_text(CODE + "# upstream\n")
    said = kit.submit("test")
    assert said.code == 2 and "nothing was sent" in said.err and "v07_test.py:8:" in said.err
    assert not kit.server.asked and not kit.folder.exists()


def test_a_missing_file_and_a_missing_mode_are_usage(make):
    kit = make()
    assert kit.run("_submit", "nowhere.py", "--mode", "test").code == 2
    assert "needs --mode" in kit.run("_submit", str(kit.file)).err
    assert "needs FILE" in kit.run("_submit", "--mode", "test").err
    assert kit.run("_submit", str(kit.file), "--resume", "3").code == 2
    assert kit.run("_submit", str(kit.file), "--mode", "private").code == 2


def test_no_popcorn_is_one_message_with_the_install_commands(make):
    kit = make()
    (kit.bin / "popcorn").unlink()
    said = kit.submit("test")
    assert said.code == 3 and said.out == "" and said.err.count("error:") == 1
    assert "popcorn is not installed" in said.err and "install.sh | bash" in said.err and "./kit bench" in said.err
    assert not kit.server.asked


# ------------------------------------------------------------ the network, and recovery


@pytest.mark.parametrize("lost", [(1,), (2, 3, 4)])
def test_a_lost_poll_kills_the_program_but_not_the_submission(make, lost):
    kit = make(Scenario(lose_polls=lost))
    said = kit.submit("benchmark")
    assert said.code == 0 and len(kit.runs()) == 12 and kit.server.posts() == 1


def test_a_program_that_is_killed_does_not_lose_the_submission(make):
    kit = make()
    said = kit.submit("benchmark", STANDIN_DIE="accepted")
    assert said.code == 0 and len(kit.runs()) == 12 and kit.server.posts() == 1


def test_a_program_that_panics_before_sending_is_infrastructure(make):
    said = make().submit("test", STANDIN_DIE="panic")
    assert said.code == 12 and "status 101" in said.out


def test_a_slow_poll_is_waited_for(make):
    assert make(Scenario(lose_polls=(1, 2), slow_s=0.5)).submit("test").code == 0


def test_a_submission_that_was_taken_unheard_is_found_by_its_code(make):
    kit = make(Scenario(lose_post="after"))
    said = kit.submit("benchmark")
    assert said.code == 0 and len(kit.runs()) == 12 and kit.server.posts() == 1 and kit.states()[0]["id"] == 71234


def test_a_submission_that_was_not_taken_may_be_sent_again(make):
    kit = make(Scenario(lose_post="before"))
    said = kit.submit("test")
    assert said.code == 17 and "the server took nothing" in said.out
    kit.scenario.lose_post = ""
    assert kit.submit("test").code == 0 and len(kit.server.rows) == 1


def test_another_submission_of_the_same_name_is_not_mistaken_for_it(make):
    kit = make(Scenario(lose_post="before"))
    kit.server.take(kit.file.name, CODE + "# other\n", "qr_v2", "test", background=True)
    kit.server.take(kit.file.name, CODE, "qr_v2", "test", background=True)["submission_time"] = "2026-01-01T00:00:00Z"
    assert kit.submit("test").code == 17 and kit.states()[0]["id"] is None


def test_a_server_that_is_away_is_network_and_the_next_call_looks_first(make):
    kit = make(Scenario(lose_post="after"))
    away = {"POPCORN_API_URL": "http://127.0.0.1:9"}
    said = kit.submit("test", **away)
    assert said.code == 17 and "not known whether the server took it" in said.out
    kit.server.take(kit.file.name, CODE, "qr_v2", "test", background=True)  # it had taken it
    said = kit.submit("test")
    assert said.code == 2 and "on their way as submission 71234" in said.err and kit.server.posts() == 0
    assert kit.run("_submit", "--resume", "71234").code == 0


def test_a_server_that_goes_away_while_it_works_can_be_resumed(make):
    kit = make(Scenario(lose_polls=tuple(range(2, 60))))
    said = kit.submit("benchmark")
    assert said.code == 17 and "next: scripts/submit --resume 71234" in said.err
    assert kit.states()[0]["verdict"] is None and not kit.runs()
    kit.scenario.lose_polls = ()
    said = kit.run("_submit", "--resume", "71234")
    assert said.code == 0 and len(kit.runs()) == 12 and kit.server.posts() == 1
    assert kit.states()[0]["verdict"] == "passed" and len(kit.states()) == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_script_resumes_and_never_sends_twice(make, how):
    kit = make()
    kit.scenario.hold.clear()
    process = kit.start("_submit", str(kit.file), "--mode", "benchmark")
    deadline = time.monotonic() + 30
    while not any(s["id"] for s in kit.states()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, how)
    _, err = process.communicate(timeout=30)
    if how == signal.SIGINT:
        assert process.returncode == 130 and "next: scripts/submit --resume 71234" in err
    again = kit.submit("benchmark")
    assert again.code == 2 and "scripts/submit --resume 71234" in again.err
    kit.scenario.hold.set()
    said = kit.run("_submit", "--resume", "71234")
    assert said.code == 0 and len(kit.runs()) == 12 and kit.server.posts() == 1
    assert kit.run("_submit", "--resume", "71234").code == 0 and len(kit.runs()) == 12  # once more adds nothing


def test_a_submission_from_elsewhere_is_adopted(make):
    kit = make()
    kit.server.take("../v08_else where.py", CODE, "qr_v2", "benchmark", background=True)
    said = kit.run("_submit", "--resume", "71234")
    assert said.code == 0 and len(kit.runs()) == 12 and kit.runs()[0].sha == file_sha(kit.file)


@pytest.mark.parametrize(("number", "code"), [("99", 2), ("71234", 16)])
def test_a_number_that_is_not_ones_own(make, number, code):
    kit = make()
    kit.server.take("x.py", CODE, "qr_v2", "test", background=True)["user_id"] = "other"
    assert kit.run("_submit", "--resume", number).code == code


def test_the_id_goes_to_the_configured_host_alone(make, tmp_path):
    kit = make()
    with Server(Scenario()) as other:
        kit.server.take(kit.file.name, CODE, "qr_v2", "test", background=True)
        kit.scenario.redirect = other.url
        said = kit.run("_submit", "--resume", "71234")
        assert said.code == 17 and "redirects elsewhere" in said.out
        assert other.asked == []
    assert {i for _, _, i in kit.server.asked} == {ID}


def test_a_trailing_slash_in_the_address_does_no_harm(make):
    kit = make()
    assert kit.submit("test", POPCORN_API_URL=kit.server.url + "/").code == 0


# ------------------------------------------------------------ old servers: the text is all there is


@pytest.mark.parametrize("micro", ["\u00b5", "\u03bc", "u"])
def test_an_old_servers_report_is_read_with_either_micro_sign(make, micro):
    kit = make(Scenario(old=True, micro=micro))
    said = kit.submit("benchmark", generation="A")
    assert said.code == 0 and "rounded to the digits" in said.err
    assert [r.case for r in kit.runs()] == [c.label for c in TASK.benchmarks]
    assert [r.mean_ns for r in kit.runs()] == pytest.approx([mean_ns(c) for c in TASK.benchmarks], rel=0.006)


@pytest.mark.parametrize("chunk", ["1", "3", "61"])
def test_broken_utf8_costs_no_shape(make, chunk):
    """Every multi-byte character is damaged at chunk 1."""
    kit = make(Scenario(old=True))
    assert kit.submit("benchmark", generation="A", STANDIN_CHUNK=chunk).code == 0
    assert [r.mean_ns for r in kit.runs()] == pytest.approx([mean_ns(c) for c in TASK.benchmarks], rel=0.006)


def test_an_old_server_and_a_bare_summary_still_give_a_verdict(make):
    kit = make(Scenario(old=True, fails=(1,)))
    said = kit.submit("benchmark", generation="B")
    assert said.code == 1 and "this server does not say on which case" in said.out and not kit.runs()


def test_an_old_servers_failures_are_read_from_generation_as_report(make):
    kit = make(Scenario(old=True, fails=(1,)))
    assert kit.submit("test", generation="A").code == 1
    assert [r.case for r in kit.runs() if not r.ok] == [TASK.tests[1].label]


def test_a_stream_that_ends_in_an_error_is_infrastructure(make):
    assert make(Scenario(sse_error="TimeoutError", no_runs=True)).submit("test", generation="A").code == 12


def test_a_stream_that_is_cut_is_network_and_not_waited_for(make):
    said = make(Scenario(sse_cut=True)).submit("test", generation="A")
    assert said.code == 17 and "Stream ended unexpectedly" in said.out


def test_an_old_program_is_warned_about(make):
    assert "popcorn-cli 1.3.17, generation B is old" in make().submit("test", STANDIN_VERSION="1.3.17").err


@pytest.mark.parametrize(("scenario", "expected"), [
    (Scenario(), Verdict.PASSED), (Scenario(fails=(1,)), Verdict.FAILED), (Scenario(crash=2), Verdict.CRASHED),
    (Scenario(timeout=True), Verdict.TIMEOUT), (Scenario(no_runs=True), Verdict.INFRA)])
@pytest.mark.parametrize("mode", ["test", "benchmark"])
def test_the_printed_report_alone_gives_the_same_verdict(scenario, expected, mode):
    """What remains where the server's record cannot be had."""
    server = Server(scenario)
    printed = "\n" + json.dumps([server.report(mode)], ensure_ascii=False)[1:-1].replace("\\n", "\n") + "\n"
    server.http.server_close()
    assert verdict.from_text(0, printed, "").verdict is expected


# ------------------------------------------------------------ history, and the scripts themselves


def test_history_lists_local_and_remote_newest_first_with_the_change_of_each_shape(make):
    kit = make()
    assert kit.submit("benchmark").code == 0
    first = kit.runs()
    slower = [Run(**{**vars(r), "session": "20990101-000000-aaaa", "t": "", "sha": "feedfeedfeed", "samples_ns":
              [1.1 * r.mean_ns] if r.case == "b640 n512 mixed" else r.samples_ns}) for r in first]
    append_runs(kit.folder / "runs" / "20990101-000000-aaaa.jsonl", slower)
    local = [Run("v07_test.py", first[0].sha, c.label, c.spec, "pass", samples_ns=[5e5], device={"name": "H200"})
             for c in TASK.benchmarks]
    append_runs(kit.folder / "runs" / "20200101-000000-aaaa.jsonl", local)
    said = kit.run("history")
    lines = said.out.splitlines()
    assert said.code == 0 and [line[:4] for line in lines if line[0] != " "] == ["2099", first[0].session[:4], "2020"]
    assert "b640 n512 mixed +10.0%" in lines[1] and "+0.8%" in lines[1] and "n32" not in lines[1]
    assert "popcorn benchmark 71234" in said.out and "H200" in said.out
    assert "against" not in said.out.split("\n", 2)[2]  # local and remote are not compared with each other


def test_history_names_submissions_that_only_the_server_has(make):
    kit = make()
    assert kit.run("history").code == 2
    kit.server.take("v03.py", CODE, "qr_v2", "test", background=True)
    assert kit.submit("test").code == 0
    said = kit.run("history", "--server")
    assert "scripts/submit --resume 71234" in said.out and "--resume 71240" not in said.out


def test_local_times_of_the_same_bytes_are_offered_for_comparison(make):
    kit = make()
    path = kit.folder / "runs" / "20200101-000000-aaaa.jsonl"
    append_runs(path, [Run("v07_test.py", file_sha(kit.file), "b20 n32 dense", "", "pass", samples_ns=[4e4])])
    assert f"next: ./kit compare {path}" in kit.submit("benchmark").err


@pytest.mark.skipif("popcorn" not in cli.MODULES, reason="harness/cli.py does not list popcorn yet")
@pytest.mark.parametrize("name", ["submit", "benchmark", "profile"])
def test_scripts_go_through_the_launcher(name):
    script = ROOT / "scripts" / name
    said = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "QRKIT_PYTHON": sys.executable})
    assert said.returncode == 0, said.stderr
    assert f"usage: scripts/{name}" in said.stdout and "exit codes" in said.stdout and "example:" in said.stdout
