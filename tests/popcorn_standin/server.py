"""The server on 127.0.0.1. `Scenario` holds the switches; `Server.asked` records what was sent to it, and by whom."""
from __future__ import annotations

import base64
import io
import json
import re
import threading
import time
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

from harness.cases import Case, load_task
from tests.popcorn_standin.text import benchmark_rows, test_rows

ID = "5f0c7a52-user-id-of-the-tests"  # the one id that the server knows
USER = "1234567890"  # its owner's number, which must not be stored either
SECRET_NS = 31337.0  # in every secret figure: finding it anywhere on disk is a failure


def _set() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass
class Scenario:
    """What the server does wrong. The default submission passes."""

    fails: tuple[int, ...] = ()  # indices of cases that fail
    crash: int | None = None  # the stage dies in this case; -1: before the first
    timeout: bool = False  # exit 114, empty result
    no_runs: bool = False  # the runner broke, the job "succeeded"
    secret_fails: bool = False
    job: tuple[str, str] | None = None  # final status and error, instead of the natural ones
    race: int = 0  # polls for which a submission is done while its job is still running
    polls: int = 2  # answered before the job is final
    hold: threading.Event = field(default_factory=_set)  # the job ends only once it is set
    old: bool = False  # no result, no diagnostics
    diagnostics: dict[str, Any] | None = None
    number_score: bool = False
    queue: str = "available"  # or unavailable, null
    refuse: list[tuple[int, str]] = field(default_factory=list)  # one for each POST, used up in order
    lose_post: str = ""  # "before" or "after" the submission is taken
    lose_polls: tuple[int, ...] = ()  # counted from 1 over all readers
    slow_s: float = 0.0  # added to the polls in lose_polls, which then answer
    redirect: str = ""  # every GET is sent there
    sse_error: str = ""
    sse_cut: bool = False
    micro: str = "µ"
    unordered: bool = False
    brev_status: str = "succeeded"
    details: str = ""  # ncu-details.csv of a profile
    evil_zip: bool = False


def mean_ns(case: Case) -> float:
    """A made-up time that differs for each case and has more digits than any text keeps."""
    return 41234.5678 * (case.index + 1) * case.n / 32


def seconds(ns: float) -> str:
    return repr(ns / 1e9)


class Server:
    """`with Server(Scenario(...)) as server:` then `server.url`."""

    def __init__(self, scenario: Scenario):
        self.scenario, self.task = scenario, load_task()
        self.asked: list[tuple[str, str, str]] = []  # method, path, id
        self.rows: dict[int, dict[str, Any]] = {}
        self.polls = 0
        self.next_id = 71234
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("H", (Handler,), {"server_": self}))
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self) -> Server:
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.scenario.hold.set()
        self.http.shutdown()
        self.http.server_close()

    def posts(self) -> int:
        return sum(method == "POST" for method, _, _ in self.asked)

    # ------------------------------------------------------------ what the evaluator would give

    def result(self, mode: str, secret: bool = False) -> dict[str, str]:
        s, cases = self.scenario, self.task.tests if mode == "test" else self.task.benchmarks
        if s.timeout:
            return {}
        if s.crash == -1:
            return {f"{mode}-count": str(len(cases))} if mode == "test" else {}
        out = {f"{mode}-count": str(len(cases))}
        for case in cases:
            key = f"{mode}.{case.index}."
            out[key + "spec"] = case.spec
            if case.index == s.crash:
                return out
            if case.index in s.fails:
                out |= {key + "status": "fail", key + "error": "R - Q.T @ A is too large: matrix=1, residual=3.1e-02, "
                        "allowed=1.2e-03, scaled=508"}
            elif mode == "test":
                out |= {key + "status": "pass", key + "message":
                        "factor_rtol=7.6e-05; orth_rtol=0.0004; scaled_factor_residual=0.9; "
                        f"scaled_orthogonality_residual=1.5; batch={case.batch}; n={case.n}"}
            else:
                mean = SECRET_NS if secret else mean_ns(case)
                out |= {key + "runs": "200", key + "mean": repr(mean), key + "std": repr(mean / 100),
                        key + "err": repr(mean / 1414), key + "best": repr(0.97 * mean),
                        key + "worst": repr(1.1 * mean)}
        return {**out, "check": "fail" if s.fails else "pass"}

    def run(self, mode: str, secret: bool = False) -> dict[str, Any]:
        s = self.scenario
        passed = not (s.fails or s.timeout or s.crash is not None or (secret and s.secret_fails))
        score = None
        if mode == "leaderboard" and passed:
            score = seconds(SECRET_NS) if secret else seconds(mean_ns(self.task.benchmarks[0]))
            score = float(score) if s.number_score else score
        took = 240 if s.timeout else 29
        run = {"start_time": "2026-11-30T10:00:00.250000Z",
               "end_time": f"2026-11-30T10:{took // 60:02}:{took % 60:02}.5Z",
               "mode": mode, "secret": secret, "runner": "B200", "score": score, "passed": passed}
        if mode in ("test", "benchmark") and not secret and not s.old:
            run["result"] = self.result(mode)
            if s.diagnostics:
                run["diagnostics"] = s.diagnostics
        return run

    def stages(self, mode: str) -> list[dict[str, Any]]:
        if self.scenario.no_runs:
            return []
        if mode != "leaderboard":
            return [self.run(mode)]
        public, secret = [], []
        for stage in ("test", "benchmark", "leaderboard"):
            public.append(self.run(stage))
            if not public[-1]["passed"]:
                break
        for stage in ("test", "benchmark", "leaderboard"):
            secret.append(self.run(stage, secret=True))
            if not secret[-1]["passed"]:
                break
        runs = public + secret
        return runs[::-1] if self.scenario.unordered else runs

    def verdict(self, mode: str, runs: list[dict[str, Any]]) -> tuple[str, str | None]:
        if self.scenario.job:
            return self.scenario.job
        broken = [r for r in runs if not r["passed"]]
        if mode != "leaderboard" or not broken:
            return "succeeded", None
        which = "ranked" if any(not r["secret"] for r in broken) else "secret"
        return "failed", f"{which} validation failed on B200; submission will not appear on the leaderboard"

    def take(self, name: str, code: str, leaderboard: str, mode: str, background: bool) -> dict[str, Any]:
        row = {"id": self.next_id, "leaderboard_id": 590, "leaderboard_name": leaderboard, "file_name": name,
               "user_id": USER, "code": code, "mode": mode, "polls": 0, "background": background,
               "submission_time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        self.rows[self.next_id] = row
        self.next_id += 6
        return row

    def document(self, row: dict[str, Any]) -> dict[str, Any]:
        s = self.scenario
        row["polls"] += 1
        doc = {k: v for k, v in row.items() if k not in ("mode", "polls", "background", "raced")}
        if not row["background"]:
            return doc | {"done": not s.sse_cut, "runs": [] if s.sse_cut else self.stages(row["mode"]), "job": None,
                          "runner_queue": None}
        over = row["polls"] > s.polls and s.hold.is_set()
        row["raced"] = row.get("raced", 0) + over
        racing = over and row["raced"] <= s.race
        words = ["pending", "running", "running"]
        status, error = words[min(row["polls"], 3) - 1], None
        runs = self.stages(row["mode"]) if over else []
        if over and not racing:
            status, error = self.verdict(row["mode"], runs)
        return doc | {"done": over, "runs": runs, "runner_queue": self.queue() if row["polls"] > 1 else None,
                      "job": {"status": status, "error": error, "last_heartbeat": "2026-11-30T10:00:20Z"}}

    def queue(self) -> dict[str, Any] | None:
        if self.scenario.queue == "null":
            return None
        up = self.scenario.queue == "available"
        return {"runner": "Modal", "gpu": "B200", "queued_jobs": 3 if up else None, "running_jobs": None,
                "available_runners": 2 if up else None, "status": self.scenario.queue, "error": None}

    # ------------------------------------------------------------ generation A's text

    def report(self, mode: str, secret: bool = False) -> str:
        s = self.scenario
        state = "failure" if s.no_runs else "success"
        title = f"**B200 on Modal{' (secret)' if secret else ''} {'❌' if s.no_runs else '✅'} {state}**"
        verb = {"test": "Testing", "benchmark": "Benchmarking", "leaderboard": "Leaderboard run"}[mode]
        head = f"{title}\n> ✅ Waiting for modal run to finish... Done\n"
        if s.no_runs:
            return head + "Function timed out"
        result = self.result("benchmark" if mode == "leaderboard" else mode)
        if s.timeout:
            return head + (f"> ❌ Running {mode} failed (timeout)\n\n# Running failed\n"
                           "**timed out** after 240.00 seconds.")
        if "check" not in result:
            return head + (f"> ❌ Running {mode} failed (internal error 1)\n\n# Running failed\nexited with error code "
                           "**1** after 12.35 seconds.\n## Program stderr:\n```\nRuntimeError: \"boom\"```")
        head += f"> {'❌' if s.fails else '✅'} {verb} {'failed' if s.fails else 'successful'}\n"
        if secret:
            return head + f"score {SECRET_NS}"
        title = {"test": "# Testing failed" if s.fails else "## ✅ Passed 22/22 tests:", "benchmark": "## Benchmarks:",
                 "leaderboard": "## Ranked Benchmark:"}[mode]
        rows = test_rows(result) if mode == "test" else benchmark_rows(result, s.micro, gap="\n")
        return f"{head}\nRunning on:\n* GPU: `NVIDIA B200`\n\n\n{title}\n```\n{rows}```"


def capture(details: str, evil: bool = False) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("ncu-details.csv", details)
        z.writestr("ncu-details.txt", "text")
        z.writestr("deep/profile.ncu-rep", b"report")
        z.writestr("readme.md", "not wanted")
        if evil:
            z.writestr("../../../escaped/ncu-details.txt", "out of the folder")
    return out.getvalue()


class Handler(BaseHTTPRequestHandler):
    server_: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def send(self, status: int, body: Any, **headers: str) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for k, v in {"Content-Type": "application/json", **headers, "Content-Length": str(len(raw))}.items():
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(raw)

    def refuse(self, status: int, detail: str) -> None:
        self.send(status, {"detail": detail})

    def drop(self) -> None:
        self.close_connection = True
        self.connection.close()

    def begin(self) -> tuple[list[str], dict[str, list[str]]]:
        url = urlparse(self.path)
        self.id = self.headers.get("X-Popcorn-Cli-Id") or ""
        self.server_.asked.append((self.command, url.path, self.id))
        return [p for p in url.path.split("/") if p], parse_qs(url.query)

    # ------------------------------------------------------------ reading

    def do_GET(self) -> None:
        path, query = self.begin()
        server, s = self.server_, self.server_.scenario
        if s.redirect:
            return self.send(307, b"", Location=s.redirect + self.path)
        if path == ["health"]:
            return self.send(200, {"status": "ok"})
        if path == ["auth", "init"]:
            return self.send(200, {"state": ID})
        if path[:1] == ["gpus"]:
            return self.send(200, ["B200"])
        if path == ["leaderboards"]:
            return self.send(200, [{"id": 590, "name": "qr_v2", "gpu_types": ["B200"], "secret_seed": SECRET_NS}])
        if path[:1] in (["jobs"], ["artifact"]):
            return self.brev(path)
        if not self.known():
            return None
        if path == ["user", "submissions"]:
            limit = int(query.get("limit", ["50"])[0])
            rows = sorted(server.rows.values(), key=lambda r: -r["id"])
            wanted = query.get("leaderboard", [""])[0]
            shown = ("id", "leaderboard_name", "file_name", "submission_time")
            return self.send(200, [{**{k: r[k] for k in shown}, "done": True, "runs": []}
                                   for r in rows if wanted in ("", r["leaderboard_name"])][:limit])
        row = server.rows.get(int(path[2])) if path[:2] == ["user", "submissions"] and len(path) == 3 else None
        if row is None:
            return self.refuse(404, "Submission not found")
        if row["user_id"] != USER:
            return self.refuse(403, "Not authorized to view this submission")
        server.polls += 1
        if server.polls in s.lose_polls:
            if not s.slow_s:
                return self.drop()
            time.sleep(s.slow_s)
        return self.send(200, server.document(row))

    def known(self) -> bool:
        if not self.id:
            self.refuse(400, "Missing X-Web-Auth-Id or X-Popcorn-Cli-Id header")
        elif self.id != ID:
            self.refuse(401, "Invalid or unauthorized auth header")
        return self.id == ID

    # ------------------------------------------------------------ sending

    def do_POST(self) -> None:
        path, _ = self.begin()
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if path == ["profile"]:
            return self.brev_start(raw)
        if path[:1] == ["submission"]:
            return self.submission(path[1:], raw)
        return self.sse(path, raw)

    def checks(self, lb: str, gpu: str, mode: str, raw: bytes) -> tuple[int, str] | tuple[str, str]:
        """The first refusal as (status, detail), or (name, code)."""
        wrap = "failed to prepare submission request: "
        if mode not in ("test", "benchmark", "leaderboard", "profile"):
            return 400, f"{wrap}400: Invalid submission mode value: '{mode}'"
        if lb not in ("qr_v2", "scratch"):
            return 400, (f"{wrap}500: Internal server error while validating leaderboard/GPU: Leaderboard `{lb}` does "
                         "not exist.")
        if gpu != "B200":
            return 400, f"{wrap}400: GPU type '{gpu}' is not supported for leaderboard '{lb}'. Supported GPUs: B200"
        found = re.search(rb'filename="([^"]*)"\r\n\r\n(.*)\r\n--', raw, re.S)
        if not found:
            return 422, "field required"
        name, body = found[1].decode(), found[2]
        if not body:
            return 400, f"{wrap}400: Empty file submitted. Please provide a file with code."
        if len(body) > 1_000_000:
            return 400, f"{wrap}413: Submission file is too large (limit: 1MB)."
        try:
            code = body.decode()
        except UnicodeDecodeError:
            return 400, f"{wrap}400: Failed to decode submission file content as UTF-8."
        if "stream" in code.lower():
            return 400, f"{wrap}500: Your code contains work on another stream. Not allowed."
        if not name.endswith((".py", ".cu", ".cuh", ".cpp")):
            return 400, "Please provide a Python (.py) or CUDA (.cu / .cuh / .cpp) file"
        for line in code.splitlines():
            if not line.startswith(("#", "//")):
                break
            words = line.split()
            if words[0].endswith("!POPCORN") and words[1] == "leaderboard" and words[2] != lb:
                return 400, (f"Leaderboard name `{lb}` specified in the command doesn't match the one in the "
                             f"submission script header `{words[2]}`.")
        if self.server_.scenario.refuse:
            return self.server_.scenario.refuse.pop(0)
        return name, code

    def submission(self, path: list[str], raw: bytes) -> None:
        s = self.server_.scenario
        if not self.known():
            return None
        if s.lose_post == "before":
            return self.drop()
        first, second = self.checks(*path, raw)
        if isinstance(first, int):
            return self.refuse(first, second)
        row = self.server_.take(first, second, path[0], path[2], background=True)
        if s.lose_post == "after":
            return self.drop()
        return self.send(202, {"details": {"id": row["id"], "job_status_id": 55001}, "status": "accepted",
                               "runner_queue": self.server_.queue()})

    def sse(self, path: list[str], raw: bytes) -> None:
        server, s = self.server_, self.server_.scenario
        if not self.id:
            return self.refuse(400, "Missing X-Popcorn-Cli-Id header")
        if self.id != ID:
            return self.refuse(401, "Invalid or unauthorized X-Popcorn-Cli-Id")
        lb, gpu, mode = (*path[1:], "profile") if path[0] == "profile" else path  # POST /profile/{lb}/{gpu} first
        first, second = self.checks(lb, gpu, mode, raw)
        if isinstance(first, int) and second.startswith("failed to prepare"):
            return self.refuse(first, second)
        if isinstance(first, str):
            server.take(first, second, lb, mode, background=False)
        out = [("status", {"status": "processing", "elapsed_time": 0.0})]
        if isinstance(first, int):
            out.append(("error", {"status": "error", "detail": second, "status_code": 400}))
        elif s.sse_error:
            out.append(("error", {"status": "error", "detail": f"An unexpected error occurred: {s.sse_error}",
                                  "raw_error": s.sse_error}))
        elif not s.sse_cut:
            reports = [server.report(mode)] if mode != "profile" else ["profiled"]
            if mode == "leaderboard":
                reports.append(server.report(mode, secret=True))
            results = [{"success": True, "error": "", "runs": self.traces() if mode == "profile" else {}}]
            out.append(("result", {"status": "success", "results": results, "reports": reports}))
        body = "".join(f"event: {e}\ndata: {json.dumps(d, ensure_ascii=False)}\n\n" for e, d in out).encode()
        return self.send(200, body, **{"Content-Type": "text/event-stream; charset=utf-8"})

    def traces(self) -> dict[str, Any]:
        s = self.server_.scenario
        trace = base64.b64encode(capture(s.details, s.evil_zip)).decode()
        return {f"profile.{c.index}": {"profile": {"profiler": "Nsight-Compute", "trace": trace, "download_url": None},
                                       "spec": c.spec} for c in self.server_.task.benchmarks}

    # ------------------------------------------------------------ the Brev profiler

    def brev_start(self, raw: bytes) -> None:
        if self.id != ID:
            return self.refuse(401, "Invalid or unauthorized X-Popcorn-Cli-Id")
        index = re.search(rb'name="benchmark_index"\r\n\r\n(\d+)', raw)
        self.server_.brev_index = int(index[1]) if index else None  # type: ignore[attr-defined]
        return self.send(200, {"job_id": "job-1"})

    def brev(self, path: list[str]) -> None:
        s, cases = self.server_.scenario, self.server_.task.benchmarks
        if path[0] == "artifact":
            return self.send(200, capture(s.details, s.evil_zip), **{"Content-Type": "application/zip"})
        only = self.server_.brev_index  # type: ignore[attr-defined]
        names = [f"profile.{c.index}-{c.spec.replace(': ', '-').replace('; ', '-')}.zip"
                 for c in cases if only in (None, c.index)]
        job = {"status": s.brev_status, "artifacts": [{"name": n, "url": f"/artifact/{n}"} for n in names]}
        return self.send(200, job | ({} if s.brev_status == "succeeded" else {"error": "ncu failed"}))
