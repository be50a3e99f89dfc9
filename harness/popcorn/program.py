"""The `popcorn` program: which one is installed, of which generation, and one run of it without a terminal."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EXIT_CANNOT_RUN, UserError

INSTALL = """\
install it, then register once:
    curl -fsSL https://raw.githubusercontent.com/gpu-mode/popcorn-cli/main/install.sh | bash
    popcorn register discord        (or: popcorn register github)
  Windows: powershell -ExecutionPolicy Bypass -Command \
"iwr -UseBasicParsing https://raw.githubusercontent.com/gpu-mode/popcorn-cli/main/install.ps1 | iex"
  everything local works without it: ./kit check FILE, ./kit bench FILE, ./kit compare"""


@dataclass(frozen=True)
class Program:
    """generation: A reports in text, B prints a bare summary, C adds rows and exits 1 on failure, D adds --local and
    --profile. It is recorded and decides which flags exist; verdicts never depend on it."""

    path: str
    version: str
    generation: str
    local: bool = False
    profile: bool = False

    @property
    def old(self) -> bool:
        """Before 1.3.20, the first to print full scores."""
        return (_numbers(self.version) or (9,)) < (1, 3, 20)

    def __str__(self) -> str:
        return f"popcorn-cli {self.version}, generation {self.generation}"


@dataclass(frozen=True)
class Finished:
    code: int  # exit status; negative: the signal
    stdout: str
    stderr: str


def find() -> Program:
    """The first of `popcorn`, `popcorn-cli` on PATH that says it is popcorn-cli. Raises UserError (exit 3)."""
    others = []
    for name in ("popcorn", "popcorn-cli"):
        path = shutil.which(name)
        if not path:
            continue
        said = _ask(path, "--version")
        if not said.startswith("popcorn-cli "):
            others.append(f"{path} is another program")
            continue
        version = said.split()[1]
        options = _ask(path, "submit", "--help")
        local, profile = "--local" in options, bool(re.search(r"--profile(?!-)", options))
        return Program(path, version, "D" if local or profile else generation(version), local, profile)
    what = "popcorn is not installed" + (f" ({'; '.join(others)})" if others else "")
    raise UserError(what, INSTALL, EXIT_CANNOT_RUN)


def generation(version: str) -> str:
    """A, B or C by version; a source build ("dev") counts as the newest that a version can tell, C."""
    v = _numbers(version)
    return "C" if not v else "A" if v <= (1, 3, 15) else "B" if v <= (1, 3, 23) else "C"


def _numbers(version: str) -> tuple[int, ...] | None:
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return tuple(map(int, match.groups())) if match else None


def _ask(*command: str) -> str:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                              errors="replace", timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def run(program: Program, arguments: list[str], cwd: Path, api: str, on_line: Callable[[str], None]) -> Finished:
    """Run it to its end, with cwd for the files that it drops; on_line gets each line of stderr as it comes.

    The program decodes its network chunk by chunk, so damaged UTF-8 is replaced, not fatal.
    """
    try:
        process = subprocess.Popen([program.path, *arguments], cwd=cwd, env={**os.environ, "POPCORN_API_URL": api},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   encoding="utf-8", errors="replace")
    except OSError as e:
        raise UserError(f"{program.path}: {e.strerror}", INSTALL, EXIT_CANNOT_RUN) from None
    assert process.stdout and process.stderr
    printed: list[str] = []
    reader = threading.Thread(target=lambda out=process.stdout: printed.append(out.read()), daemon=True)
    reader.start()
    errors = []
    try:
        for line in process.stderr:
            errors.append(line)
            on_line(line.rstrip("\n"))
        code = process.wait()
    finally:
        process.kill()  # does nothing to one that has ended; an interrupted script leaves no program behind
        process.wait()
    reader.join()
    return Finished(code, "".join(printed), "".join(errors))
