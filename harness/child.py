"""The worker process seen from the trusted parent: shared buffers, requests with a limit, and what its end looks like.

Shared memory is a mapped file on the CPU and CUDA IPC on a GPU. A worker that crashes, hangs or is killed costs the
case at hand: it can reach nothing of the parent's but the buffers of one case.
"""
from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import torch

from harness.cases import ROOT
from harness.machine import device_kind

BUILD_S = 240  # to import a submission, its compilation included: what the contest allows for all tests
ALIGN = 128  # floats: inputs start where cudaMalloc would put them, so that 16-byte loads work


class Pool:
    """Buffers for one case, owned here and mapped by the worker: `slots` inputs, `outs` outputs (H and tau)."""

    def __init__(self, batch: int, n: int, slots: int, outs: int):
        self.batch, self.n, self.slots, self.outs = batch, n, slots, outs
        size = batch * n * n
        self.stride = -(-size // ALIGN) * ALIGN
        sizes = {"in": slots * self.stride, "h": outs * size, "tau": outs * batch * n}
        self.files: list[str] = []
        self.handles: list[bytes] = []
        self.buffers: dict[str, torch.Tensor] = {}
        for name, count in sizes.items():
            if device_kind() == "cuda":
                from multiprocessing.reduction import ForkingPickler

                from torch.multiprocessing import reductions  # noqa: F401  registers the sharing of CUDA tensors
                self.buffers[name] = torch.empty(count, device="cuda")
                self.handles.append(bytes(ForkingPickler.dumps(self.buffers[name])))
            else:
                shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
                fd, path = tempfile.mkstemp(prefix="qrkit-", dir=shm)
                os.close(fd)
                self.files.append(path)
                self.handles.append(path.encode())
                self.buffers[name] = torch.from_file(path, shared=True, size=max(1, count), dtype=torch.float32)

    def unlink(self) -> None:
        """Once both sides have mapped a file its name is not needed: nothing is left behind whatever dies."""
        while self.files:
            Path(self.files.pop()).unlink(missing_ok=True)

    def input(self, slot: int) -> torch.Tensor:
        start = slot * self.stride
        return self.buffers["in"][start:start + self.batch * self.n ** 2].view(self.batch, self.n, self.n)

    def output(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        size, rows = self.batch * self.n ** 2, self.batch * self.n
        return (self.buffers["h"][i * size:(i + 1) * size].view(self.batch, self.n, self.n),
                self.buffers["tau"][i * rows:(i + 1) * rows].view(self.batch, self.n))

    def poison(self) -> None:
        """What is not written must not look right."""
        self.buffers["h"].fill_(float("nan"))
        self.buffers["tau"].fill_(float("nan"))


class Failure(Exception):
    """A case that got no output to check: status (results.STATUSES) and the text that explains it."""

    def __init__(self, status: str, text: str):
        super().__init__(text)
        self.status, self.text = status, text


@dataclass
class Reply:
    """One run of the worker: its own elapsed time, the parent's, and the hand-over's by the parent's clock,
    nanoseconds; and what it saw."""

    elapsed_ns: float
    wall_ns: float
    copy_ns: float
    problem: str = ""
    notes: list[str] = field(default_factory=list)


class Worker:
    """A worker process with one submission loaded. Use as a context manager.

    Raises Failure: import, raised, output, oom (the submission's doing, the process still lives), timeout, died (the
    process is gone; make a new Worker for the next case). With wait=False it loads beside others: loaded() before use.
    """

    def __init__(self, path: Path, limit_s: float, interpret: bool = False, wait: bool = True):
        self.path, self.limit_s = path.resolve(), limit_s
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        self.scratch = tempfile.TemporaryDirectory(prefix="qrkit-worker-")
        self.channel, theirs = Pipe()
        keep = {k: v for k, v in os.environ.items()
                if not k.startswith(("POPCORN", "QRKIT", "PYTHON")) or k == "PYTHONHASHSEED"}
        keep |= {"TMPDIR": self.scratch.name, "PYTHONUNBUFFERED": "1"}
        if interpret:
            keep["TRITON_INTERPRET"] = "1"
        if device_kind() == "cpu":
            keep["CUDA_VISIBLE_DEVICES"] = ""
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(ROOT / "harness" / "worker.py"), str(theirs.fileno()), str(ROOT / "task.py")],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=keep,
            cwd=self.scratch.name, start_new_session=True)
        theirs.close()
        self.busy = False  # between a request and its last answer: then there is nobody to talk to
        self.empty: list[Reply] = []  # runs without a call
        self.pool: Pool
        self.fresh = True
        self.loading = True
        try:
            self._send(op="load", path=str(self.path))
            if wait:
                self.loaded()
        except BaseException:
            self.close()
            raise

    def loaded(self) -> None:
        """Wait until the submission is imported. Raises Failure: import, timeout, died; the process is gone then."""
        if not self.loading:
            return
        try:
            self._receive(max(self.limit_s, BUILD_S))
            self.busy = self.loading = False
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let it release what it maps (else the parent's CUDA memory stays taken), then kill all that it started."""
        if not self.busy and self.alive:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self.channel.send_bytes(b'{"op": "quit"}')
                self.process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.channel.close()
        self.log.close()
        self.scratch.cleanup()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def _send(self, **request: Any) -> None:
        self.busy = True
        try:
            self.channel.send_bytes(json.dumps(request).encode())
        except OSError:
            raise self._dead() from None

    def _receive(self, limit_s: float | None = None) -> dict[str, Any]:
        limit_s = limit_s or self.limit_s
        try:
            if not self.channel.poll(limit_s):
                self.close()
                raise Failure("timeout", f"no answer within {limit_s:g} s; killed")
            reply = json.loads(self.channel.recv_bytes())
        except (EOFError, OSError):
            raise self._dead() from None
        except ValueError:
            self.close()
            raise Failure("infra", "the worker's answer is not JSON: its channel was written to") from None
        if not isinstance(reply, dict):
            raise Failure("infra", "the worker's answer is not an object")
        if "fail" in reply:
            self.busy = False
            raise Failure(str(reply["fail"]), str(reply.get("text", "")))
        return reply

    def _dead(self) -> Failure:
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            return Failure("died", "closed its channel")
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        tail = self._log_tail()
        return Failure("died", f"the process ended: {how}" + (f"\n{tail}" if tail else ""))

    def _log_tail(self) -> str:
        if self.log.closed:
            return ""
        self.log.seek(0)
        return "\n".join(self.log.read()[-4000:].decode(errors="replace").strip().splitlines()[-12:])

    def map(self, pool: Pool, fresh: bool = True) -> None:
        """Share this pool; fresh: each timed run will place its own inputs."""
        self._send(op="map", kind=device_kind(), batch=pool.batch, n=pool.n, slots=pool.slots, outs=pool.outs,
                   stride=pool.stride)
        try:
            for handle in pool.handles:
                self.channel.send_bytes(handle)
        except OSError:
            raise self._dead() from None
        self._receive()
        self.busy = False
        self.pool, self.fresh, self.empty = pool, fresh, []
        self.calibrate(1)
        self.empty.clear()  # the first run loads kernels and touches pages: no measure of what the others cost
        self.calibrate()

    def calibrate(self, runs: int = 5) -> None:
        """What a run costs that calls nothing: inputs placed, outputs handed over."""
        slots = list(range(self.pool.outs))
        inputs = [self.pool.output(i)[0] for i in slots] if self.fresh else None
        self.empty += [self.run(slots, inputs, call=False) for _ in range(runs)]

    def run(self, slots: list[int], inputs: list[torch.Tensor] | None = None, call: bool = True, flush: bool = True,
            ) -> Reply:
        """Call custom_kernel on these slots, with these inputs put into them (None: what stands there).

        The clock runs before the first input can be seen: who works ahead of the call is seen by it.
        """
        if device_kind() == "cuda":
            torch.cuda.synchronize()  # everything this process has queued before is finished
        start = time.perf_counter_ns()
        if inputs:
            for slot, a in zip(slots, inputs, strict=True):
                self.pool.input(slot).copy_(a)
            if device_kind() == "cuda":
                torch.cuda.synchronize()
        self._send(op="run", slots=slots, call=call, flush=flush)
        timed = self._receive()
        done = time.perf_counter_ns()
        seen = self._receive()
        copied = time.perf_counter_ns()
        self.busy = False
        try:
            elapsed = float(timed["elapsed_ns"])
            outputs, patched, threads = seen["outputs"], seen["patched"], int(seen["threads"])
            problem = next((f"call {i}: {o['problem']}" for i, o in enumerate(outputs) if o["problem"]), "")
            shares = sorted({str(o["shares"]) for o in outputs if not o["problem"] and o["shares"]})
            missing = len(outputs) != len(slots)
        except (KeyError, TypeError, ValueError):
            raise Failure("infra", "the worker's answer is malformed: its channel was written to") from None
        if missing:
            raise Failure("infra", "the worker handed over too few outputs")
        notes = [f"returns the buffer of its {s}" for s in shares]
        notes += [f"replaced {name}" for name in patched]
        notes += ["leaves threads running"] * (threads > 0)
        notes += ["leaves a process running"] * bool(self._children())
        return Reply(elapsed, done - start, copied - done, problem, notes)

    def _children(self) -> list[str]:
        """Processes that the submission started and that still live, torch's own compile helpers aside."""
        found = []
        for entry in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            try:
                pids = entry.read_text().split()
                found += [p for p in pids if b"torch/_inductor" not in Path(f"/proc/{p}/cmdline").read_bytes()]
            except OSError:
                continue
        return found

    def late(self, replies: list[Reply]) -> str:
        """Work that the worker's clock did not see: "" or where it was found, with the figures.

        Beside the call: the parent's wall time up to "timed" beyond the worker's, against what the harness itself
        costs (empty runs). After it: the same up to the end of the hand-over, which may take three times as long as
        the slowest honest copy (the two are told apart by when this process wakes up, so their sum is what counts).
        Both allow a tenth of the elapsed time, 50 us and three times the spread of the empty runs (the slowest one left
        out), and the quarter of the repeats with the least of it decides: a busy machine disturbs some, a false clock
        all.
        """
        self.calibrate()
        elapsed = statistics.median(r.elapsed_ns for r in replies)
        copy = sorted(r.copy_ns for r in self.empty)[-2]
        for text, hand_over in (("", 0), ("with the outputs handed over ", 1)):
            walls = [r.wall_ns + hand_over * r.copy_ns for r in replies]
            empty = sorted(r.wall_ns + hand_over * r.copy_ns for r in self.empty)
            own = statistics.median(empty)
            hidden = sorted(wall - r.elapsed_ns for wall, r in zip(walls, replies, strict=True))[len(replies) // 4]
            if hidden > own + 0.1 * elapsed + 50e3 + 3 * (empty[-2] - empty[0]) + hand_over * 2 * copy:
                return (f"the worker says {elapsed / 1e6:.3f} ms a repeat, {text}the parent's clock says "
                        f"{statistics.median(walls) / 1e6:.3f} ms, of which the harness needs {own / 1e6:.3f}")
        return ""
