"""Schedules: the tests of one file, and interleaved rounds of timing of several.

measure() is what `bench`, `tune` and `research` call. A round is a fresh process for each file; within a round the
files take turns case by case, in alternating order, on the same inputs. Every Run is handed over the moment it exists.
"""
from __future__ import annotations

import contextlib
import fcntl
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.cases import Case, load_task, secret_seed
from harness.child import Failure, Worker
from harness.errors import EXIT_CANNOT_RUN, UserError
from harness.evaluate import (
    BASELINE,
    CONTEST,
    CPU,
    ROUND,
    STRICT,
    Outcome,
    Schedule,
    Seeds,
    contest_seeds,
    probes,
    run_case,
)
from harness.machine import device_id, device_kind, fingerprint, sm_clock
from harness.results import Run, file_sha, new_session, utc_now

CPU_FLOPS = 6e9  # of geqrf work in one cut batch: with the checks a case stays within seconds on two cores
Progress = Callable[[str], None]
Sink = Callable[[Run], None]


def on_this_device(case: Case) -> Case:
    """The case, its batch cut on a CPU to what a run of a minute or two allows."""
    if device_kind() == "cuda":
        return case
    return case.cut(max(1, int(CPU_FLOPS / (4 / 3 * case.n ** 3))))


@contextlib.contextmanager
def device_lock() -> Iterator[None]:
    """One timing at a time on a device. Raises UserError (exit 3) where another process holds it."""
    name = "".join(c if c.isalnum() else "-" for c in device_id())
    path = Path(tempfile.gettempdir()) / f"qrkit-{name}.lock"
    with open(path, "a+") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            f.seek(0)
            holder = f.read().strip() or "unknown"
            raise UserError(f"another qrkit is timing on {fingerprint()['name']} (process {holder})",
                            "wait for it, or stop it", EXIT_CANNOT_RUN) from None
        f.truncate(0)
        f.write(str(os.getpid()))
        f.flush()
        yield


class Bench:
    """One file's worker, restarted when a case has taken it down."""

    def __init__(self, path: Path, limit_s: float, interpret: bool = False):
        self.path, self.limit_s, self.interpret = path, limit_s, interpret
        self.worker: Worker | None = None
        self.broken: Failure | None = None  # what every further case would meet: it does not import

    def start(self) -> None:
        """Begin to load the file; run() waits for it."""
        if self.worker is None or not self.worker.alive:
            self.close()
            self.worker = Worker(self.path, self.limit_s, self.interpret, wait=False)

    def loaded(self) -> Failure | None:
        """Wait for it; what stands in the way, if anything does."""
        if not self.broken:
            try:
                self.start()
                assert self.worker is not None
                self.worker.loaded()
            except Failure as e:
                self.close()
                if e.status != "import":  # another try may go better
                    return e
                self.broken = e
        return self.broken

    def run(self, case: Case, *args: object, **options: object) -> Outcome:
        if failure := self.loaded():
            return Outcome(failure.status, failure.text)
        assert self.worker is not None
        outcome = run_case(self.worker, case, *args, **options)  # type: ignore[arg-type]
        if outcome.status in ("raised", "oom", "died", "timeout", "infra"):  # its CUDA context may be beyond use
            self.close()
        return outcome

    def run_timed(self, case: Case, draws: Sequence[Callable[[int, int], int]], schedule: Schedule,
                  **options: object) -> Outcome:
        """run, and once more where the two clocks did not agree: a host that stalls for a whole case is late as well, a
        false clock is late again. The second try has a process that has not seen the inputs, and seeds of its own."""
        outcome = self.run(case, draws[0], schedule, **options)
        if outcome.status != "clock":
            return outcome
        self.close()
        again = self.run(case, draws[1], schedule, **options)
        if again.status == "pass":
            again.message = f"a first try was refused: {outcome.message}"
        return again

    def close(self) -> None:
        if self.worker:
            self.worker.close()
            self.worker = None


def _seeds() -> Seeds:
    return Seeds(random.Random(random.SystemRandom().getrandbits(128)))


def _record(path: Path, sha: str, case: Case, asked: Case, outcome: Outcome, **fields: object) -> Run:
    return Run(file=path.name, sha=sha, case=asked.label, spec=case.spec, status=outcome.status,
               message=outcome.message, samples_ns=outcome.samples_ns, inputs=outcome.inputs,
               cut=case.batch != asked.batch, margin=outcome.margin, flags=outcome.flags, device=fingerprint(),
               task=load_task().sha, t=utc_now(), **fields)  # type: ignore[arg-type]


def check(path: Path, cases: list[Case], *, seeds: str = "contest", on_run: Sink, limit_s: float | None = None,
          secret: int | None = None, probe: bool = False, at_most: int | None = None,
          interpret: bool = False, keep_failing: Callable[[Run, Outcome], None] | None = None,
          progress: Progress = lambda text: None) -> list[Run]:
    """Run the cases of mode test with the contest's seeds or, seeds="secret", paired with a secret one; with
    probe=True the batches of evaluate.probes as well, at the n of the cases; at_most cuts the
    batches; interpret=True has Triton interpret its kernels."""
    if secret is None:
        secret = random.SystemRandom().getrandbits(31)
    session, sha, runs = new_session(), file_sha(path), []
    todo = [(c, c.with_seed(secret_seed(c.seed, secret)) if seeds == "secret" else c, None) for c in cases]
    if at_most:
        todo = [(asked, case.cut(at_most), make) for asked, case, make in todo]
    if probe:
        sizes = [48] if device_kind() == "cpu" else sorted({c.n for c in cases if c.n <= 2048})
        todo += [(c, c.with_seed(secret), make) for n in sizes for c, make in probes(n)]  # type: ignore[misc]
    bench = Bench(path, limit_s or load_task().test_timeout, interpret)
    try:
        for asked, case, make in todo:
            progress(f"{path.name}  {asked.label}")
            options: dict[str, object] = {"make": make} if make else {}
            outcome = bench.run(case, lambda repeat, i, s=case.seed: s, None, **options)
            run = _record(path, sha, case, asked, outcome, mode="test", protocol=seeds, session=session)
            runs.append(run)
            on_run(run)
            if outcome.failing and keep_failing:
                keep_failing(run, outcome)
    finally:
        bench.close()
    return runs


def _start(benches: list[Bench]) -> None:
    """Load the files of a round side by side, as many at a time as there are processors, and wait: to import torch and
    a submission takes seconds, and nothing may be timed beside it."""
    at_once = os.cpu_count() or 1
    for i in range(0, len(benches), at_once):
        some = benches[i:i + at_once]
        for b in some:
            with contextlib.suppress(Failure):
                b.start()
        for b in some:
            b.loaded()


def measure(files: list[Path], cases: list[Case], *, protocol: str = "strict", rounds: int = 1,
            on_run: Sink = lambda run: None, first_round: int = 0, budget_s: float | None = None,
            session: str | None = None, skip: Callable[[Path, str, int], bool] = lambda file, case, round_: False,
            schedule: Schedule | None = None, short: Path | None = None, limit_s: float | None = None,
            stop: Callable[[], bool] = lambda: False, progress: Progress = lambda text: None) -> list[Run]:
    """Time files on cases. protocol "strict": every timed call sees new data; "contest": inputs are reused.

    Rounds are numbered from first_round. skip(file, case label, round) leaves out what is there already; stop() ends
    it between rounds, budget_s (seconds) between cases. short: a file that gets three repeats on a GPU. Raises
    UserError where the device is taken.
    """
    session, begin = session or new_session(), time.monotonic()
    runs: list[Run] = []
    if schedule is None:
        alone = STRICT if protocol == "strict" else CONTEST
        schedule = CPU if device_kind() == "cpu" else ROUND if rounds > 1 else alone
    shas = {f: file_sha(f) for f in files}
    with device_lock():
        for number in range(first_round, first_round + rounds):
            order = files if number % 2 == 0 else files[::-1]
            benches = {f: Bench(f, limit_s or load_task().benchmark_timeout) for f in files}
            try:
                _start([benches[f] for f in order if any(not skip(f, c.label, number) for c in cases)])
                for asked in cases:
                    case = on_this_device(asked)
                    fresh = _seeds()
                    for f in order:
                        if budget_s is not None and time.monotonic() - begin > budget_s:
                            return runs
                        if skip(f, asked.label, number):
                            continue
                        tell = f"{f.name}  {asked.label}" + (f"  round {number + 1}" if rounds > 1 or number else "")
                        progress(tell)
                        clock = sm_clock()
                        draws = [contest_seeds(case)] * 2 if protocol == "contest" else [fresh, _seeds()]
                        outcome = benches[f].run_timed(
                            case, draws, BASELINE if f == short and device_kind() == "cuda" else schedule,
                            reuse=protocol == "contest", progress=lambda text, tell=tell: progress(f"{tell}  {text}"))
                        clocks = [c for c in (clock, sm_clock()) if c is not None]
                        run = _record(f, shas[f], case, asked, outcome, mode="benchmark", protocol=protocol,
                                      session=session, round=number, clock_mhz=clocks)
                        runs.append(run)
                        on_run(run)
            finally:
                for b in benches.values():
                    b.close()
            if stop():
                break
    return runs
