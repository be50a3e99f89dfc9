"""Where blocks run: here, in one process a local GPU, or on a Dask cluster. All look like concurrent.futures.

A block is never split: whatever takes it times all its backends on one GPU.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

from harness.errors import UserError

RESUBMIT = 2  # times that a block whose machine was lost is handed to another


class Serial(Executor):
    """Runs a call at once, in this process: one GPU, or none."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class LocalGpus(Executor):
    """One process a GPU; each sees its own card only. A process that dies is replaced."""

    def __init__(self, count: int):
        self.pending: list[list[Future[Any]]] = [[] for _ in range(count)]
        self.pools = [self._pool(i) for i in range(count)]

    def _pool(self, gpu: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_see_only, initargs=(gpu,))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.pending = [[f for f in fs if not f.done()] for fs in self.pending]
        gpu = min(range(len(self.pools)), key=lambda i: len(self.pending[i]))
        try:
            future = self.pools[gpu].submit(fn, *args, **kwargs)
        except BrokenExecutor:
            self.pools[gpu] = self._pool(gpu)
            future = self.pools[gpu].submit(fn, *args, **kwargs)
        self.pending[gpu].append(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for pool in self.pools:
            pool.shutdown(wait, cancel_futures=cancel_futures)


def _see_only(gpu: int) -> None:
    visible = [x for x in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if x]
    os.environ["CUDA_VISIBLE_DEVICES"] = visible[gpu] if visible else str(gpu)


def cluster(address: str) -> tuple[Executor, int]:
    """A running Dask scheduler whose workers declare `--resources GPU=1`: an executor, and how many they are.

    Raises UserError (exit 3) where dask is not installed, nothing answers, or no worker declares a GPU.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--cluster needs dask and distributed, which are not installed",
                        "pip install dask distributed (2026.8.0 is tested), or leave --cluster out", 3) from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as e:
        raise UserError(f"--cluster {address}: no scheduler answers: {e}", "dask scheduler, then dask worker "
                        f"{address} --nthreads 1 --resources GPU=1 on each machine", 3) from None
    workers = client.scheduler_info(n_workers=-1)["workers"]
    gpus = int(sum(w.get("resources", {}).get("GPU", 0) for w in workers.values()))
    if not gpus:
        client.close()
        raise UserError(f"--cluster {address}: none of {len(workers)} workers declares a GPU",
                        f"dask worker {address} --nthreads 1 --resources GPU=1", 3)
    return _Cluster(client), gpus


class _Cluster(Executor):
    def __init__(self, client: Any):
        self.client = client
        self.inner = client.get_executor(resources={"GPU": 1}, pure=False, retries=RESUBMIT)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.inner.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.inner.shutdown(wait=wait)
        self.client.close()


def run_all(executor: Executor, width: int, fn: Callable[[Any], Any], jobs: Iterable[Any],
            lost: Callable[[Any, str], Any]) -> Iterator[Any]:
    """fn(job) of each job as they finish, at most `width` at a time. A job whose machine was lost goes to another;
    after RESUBMIT times lost(job, reason) stands for its result. Errors of fn itself are raised."""
    waiting = iter(jobs)
    running: dict[Future[Any], tuple[Any, int]] = {}
    more = True
    while True:
        while more and len(running) < width:
            job = next(waiting, None)
            more = job is not None
            if more:
                running[executor.submit(fn, job)] = (job, 0)
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            job, tries = running.pop(future)
            error = future.exception()
            if error is None:
                yield future.result()
            elif not (isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"):
                raise error
            elif tries < RESUBMIT:
                running[executor.submit(fn, job)] = (job, tries + 1)
            else:
                yield lost(job, f"its machine was lost {tries + 1} times: {error}")
