"""Any coding agent as a command: prompt on standard input, a scratch folder with submission.py, idea.json back.

One attempt is one fresh call that knows nothing of the last but what the prompt says. The agent gets its own process
group, a wall clock, an environment of a few names, and a HOME without the user's popcorn id where it can do with that.
Of all that it leaves behind, two regular files are taken, by content.
"""
from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.cases import ROOT
from harness.errors import UserError

LOG_BYTES = 2_000_000
TAIL_BYTES = 256_000  # of standard output, where the usage stands: kept though the log is full
IDEA_BYTES = 64_000
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TERM", "USER")  # and the agent's own names
CACHE = {"TRITON_CACHE_DIR", "CUDA_VISIBLE_DEVICES"}  # ./try may compile

# stdin: a file, or nothing. keys: names that its own account needs. home: it keeps its login under HOME itself.
PRESETS: dict[str, dict[str, Any]] = {
    "codex": {"cmd": ["codex", "exec", "-C", "{work}", "--sandbox", "workspace-write", "--skip-git-repo-check",
                      "--ephemeral", "--json", "-o", "{log}/last_message.md", "-"],
              "stdin": "{prompt}", "usage": "codex-jsonl", "keys": ["CODEX_API_KEY", "OPENAI_API_KEY"],
              "folders": {"CODEX_HOME": "~/.codex"}},
    "claude": {"cmd": ["claude", "-p", "--output-format", "json", "--permission-mode", "acceptEdits", "--allowedTools",
                       "Read,Edit,Write,Grep,Glob,Bash(./try)", "--max-turns", "40", "--max-budget-usd", "{usd_left}",
                       "--no-session-persistence"],
               "stdin": "{prompt}", "usage": "claude-json", "keys": ["ANTHROPIC_API_KEY"],
               "folders": {"CLAUDE_CONFIG_DIR": "~/.claude"}},
    "gemini": {"cmd": ["gemini", "-p", "Do what standard input says.", "--output-format", "json", "--yolo"],
               "stdin": "{prompt}", "usage": "gemini-json", "keys": ["GEMINI_API_KEY", "GOOGLE_API_KEY"], "home": True},
    "opencode": {"shell": 'opencode run --format json "$(cat {prompt})"', "usage": "none",
                 "keys": ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], "home": True},
}


@dataclass
class Agent:
    name: str
    cmd: list[str]
    stdin: str = ""  # empty: /dev/null
    usage: str = "none"
    keys: list[str] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)
    home: bool = False
    steps: int | None = None  # of a plan: how many there are
    evaluator: str = ""  # of a plan: what its times are declared in


@dataclass
class Call:
    """What one call did. tokens: in, cached, out, where the agent says; usd None where it is unknown."""

    rc: int
    wall_s: float
    timed_out: bool
    tokens: dict[str, int]
    usd: float | None


def resolve(spec: str, config: dict[str, Any]) -> Agent:
    """A preset or a name of config.yml's `agents`, `replay:PLAN`, or a command in quotes.

    Raises UserError where it is none of these, or its program is not on PATH.
    """
    if spec.startswith("replay:"):
        return _replay(spec)
    known = PRESETS | config.get("agents", {})
    if spec in known:
        d = dict(known[spec])
    elif " " in spec or shutil.which(spec):
        d = {"shell": spec, "stdin": "{prompt}"}
    else:
        raise UserError(f"--agent {spec}: neither a preset, nor in config.yml, nor a command",
                        f"one of {', '.join(known)}, replay:PLAN.yml, or a command in quotes")
    shell = d.pop("shell", None)
    d.pop("cwd", None)  # always the scratch folder
    if shell is not None:
        d["cmd"] = ["/bin/sh", "-c", shell]
    elif not shutil.which(d["cmd"][0]):
        raise UserError(f"--agent {spec}: {d['cmd'][0]} is not on PATH", f"install {spec}, or --agent replay:PLAN.yml")
    try:
        return Agent(spec, **d)
    except TypeError as e:
        raise UserError(f"config.yml: agents: {spec}: {e}", "cmd or shell, stdin, usage, keys, folders, home") from None


def _replay(spec: str) -> Agent:
    from harness.research import replay
    path = Path(spec.removeprefix("replay:")).resolve()
    plan = replay.load(path)
    evaluator = plan["evaluator"]
    if evaluator.startswith("fake:"):
        evaluator = f"fake:{path.parent / evaluator.removeprefix('fake:')}"
    return Agent(spec, [sys.executable, str(ROOT / "harness" / "research" / "replay.py"), str(path), "{step}"],
                 steps=len(plan["steps"]), evaluator=evaluator)


class _Drain(threading.Thread):
    """Writes what comes out of a pipe to a file, up to a cap, and remembers its end; never lets the pipe fill."""

    def __init__(self, pipe: IO[bytes], path: Path):
        super().__init__(daemon=True)
        self.pipe, self.path, self.tail = pipe, path, b""
        self.start()

    def run(self) -> None:
        written = 0
        with open(self.path, "wb") as f, contextlib.suppress(ValueError, OSError):
            while chunk := os.read(self.pipe.fileno(), 65536):
                f.write(chunk[:max(0, LOG_BYTES - written)])
                f.flush()
                written += len(chunk)
                self.tail = (self.tail + chunk)[-TAIL_BYTES:]


def environment(agent: Agent, log: Path) -> dict[str, str]:
    """PATH and the like, and the agent's own; never POPCORN_*, never what else lies about in the user's shell."""
    names = {*ENVIRONMENT, *CACHE, *agent.keys, *agent.folders}
    env = {k: v for k, v in os.environ.items() if k in names}
    real = os.environ.get("HOME", "/")
    for name, folder in agent.folders.items():
        env.setdefault(name, folder.replace("~", real, 1))
    if agent.home:
        return env | {"HOME": real}
    home = log / "home"
    home.mkdir(exist_ok=True)
    return env | {"HOME": str(home)}


def call(agent: Agent, work: Path, log: Path, prompt: Path, *, iteration: int, step: int, seed: int,
         usd_left: float | None, timeout_s: float, config: dict[str, Any],
         stop: Callable[[], bool] = lambda: False) -> Call:
    """Run the agent once and wait for it; it and all that it started are gone afterwards. stop() breaks it off."""
    values = {"{prompt}": str(prompt), "{work}": str(work), "{log}": str(log), "{iter}": str(iteration),
              "{step}": str(step), "{seed}": str(seed), "{usd_left}": f"{1000 if usd_left is None else usd_left:.2f}"}
    filled = []
    for word in agent.cmd:
        for name, value in values.items():
            word = word.replace(name, shlex.quote(value) if agent.cmd[:2] == ["/bin/sh", "-c"] else value)
        filled.append(word)
    begin = time.monotonic()
    timed_out = False
    with open(prompt if agent.stdin else os.devnull, "rb") as stdin:
        process = subprocess.Popen(filled, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=work,
                                   env=environment(agent, log), start_new_session=True)
    (log / "agent.pid").write_text(str(process.pid))
    assert process.stdout and process.stderr
    out, err = _Drain(process.stdout, log / "agent.out"), _Drain(process.stderr, log / "agent.log")
    try:
        while process.poll() is None:
            timed_out = time.monotonic() - begin > timeout_s
            if timed_out or stop():
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(1.0, max(0.01, timeout_s - (time.monotonic() - begin))))
    finally:
        kill_group(process.pid)
        rc = process.wait()
    out.join(5)
    err.join(5)
    (log / "agent.pid").unlink()
    shutil.rmtree(log / "home", ignore_errors=True)
    tokens, usd = usage(agent.usage, out.tail.decode(errors="replace"))
    if usd is None and tokens and config["agent"].get("usd_per_million"):
        price = config["agent"]["usd_per_million"]
        fresh = tokens.get("in", 0) - tokens.get("cached", 0)
        usd = (fresh * price["in"] + tokens.get("cached", 0) * price.get("cached", price["in"])
               + tokens.get("out", 0) * price["out"]) / 1e6
    return Call(rc, time.monotonic() - begin, timed_out, tokens, usd)


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def end_orphan(log: Path, work: Path) -> None:
    """The agent of a supervisor that was killed may still be at work: it is recognised by its folder, and ended."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((log / "agent.pid").read_text())
        if Path(os.readlink(f"/proc/{pid}/cwd")) == work.resolve():
            kill_group(pid)


# ---------------------------------------------------------------- what it cost

def usage(parser: str, text: str) -> tuple[dict[str, int], float | None]:
    """(tokens, dollars or None) from an agent's standard output; empty where it says nothing."""
    tokens: dict[str, int] = {}
    if parser == "none":
        return tokens, None
    usd = None
    for d in _documents(text):
        if parser == "codex-jsonl" and d.get("type") == "turn.completed":
            _add(tokens, d.get("usage"), **{"in": "input_tokens", "cached": "cached_input_tokens",
                                            "out": "output_tokens"})
        elif parser == "claude-json" and "total_cost_usd" in d:
            usd = float(d["total_cost_usd"])
            u = d.get("usage") or {}
            cached, fresh = (sum(int(u.get(k) or 0) for k in names) for names in (
                ("cache_read_input_tokens",), ("input_tokens", "cache_creation_input_tokens")))
            tokens = {"in": cached + fresh, "cached": cached, "out": int(u.get("output_tokens") or 0)}
        elif parser == "gemini-json":
            for model in ((d.get("stats") or {}).get("models") or {}).values():
                _add(tokens, model.get("tokens"), **{"in": "prompt", "cached": "cached", "out": "candidates"})
    return tokens, usd


def _add(tokens: dict[str, int], given: dict[str, Any] | None, **names: str) -> None:
    for ours, theirs in names.items():
        tokens[ours] = tokens.get(ours, 0) + int((given or {}).get(theirs) or 0)


def _documents(text: str) -> list[dict[str, Any]]:
    """One object, a list of them, or an object a line."""
    start = min((i for i in (text.find("{"), text.find("[")) if i >= 0), default=0)
    candidates = [text[start:], *text.splitlines()]
    for i, part in enumerate(candidates):
        try:
            whole = json.loads(part)
        except ValueError:
            continue
        if i == 0:
            return [x for x in (whole if isinstance(whole, list) else [whole]) if isinstance(x, dict)]
        break
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            d = json.loads(line)
            found += [d] if isinstance(d, dict) else []
    return found


# ---------------------------------------------------------------- what it leaves behind

def take(path: Path, most: int) -> bytes:
    """The content of one regular file. Raises ValueError with the reason where it is none, or too large, or not
    UTF-8."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ValueError(f"{path.name} is missing") from None
    except OSError:
        raise ValueError(f"{path.name} is no regular file") from None
    with open(fd, "rb") as f:
        import stat
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(f"{path.name} is no regular file")
        content = f.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path.name} is larger than {most:,} bytes")
    try:
        content.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not UTF-8") from None
    return content


def idea_of(raw: bytes) -> dict[str, Any]:
    """title, family, hypothesis and so on; what is malformed is left out."""
    try:
        d = json.loads(raw)
    except ValueError:
        return {}
    if not isinstance(d, dict):
        return {}
    idea: dict[str, Any] = {k: re.sub(r"\s+", " ", v).strip()[:300] for k in (
        "title", "family", "hypothesis", "change") if isinstance(v := d.get(k), str)}
    if isinstance(p := d.get("expected_pct"), int | float):
        idea["expected_pct"] = p
    return idea
