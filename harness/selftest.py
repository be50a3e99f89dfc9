"""`./kit selftest`: the test suite, and how much of it this machine could not run."""
from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from typing import Any

from harness.cases import ROOT
from harness.errors import EXIT_CANNOT_RUN, EXIT_OK, EXIT_WRONG, UserError


def register(verbs: Any) -> None:
    p = verbs.add_parser("selftest", help="run the kit's own tests", epilog="example: ./kit selftest -k lint",
                         description="Run pytest on tests/; what follows goes to pytest.")
    p.add_argument("what", nargs="*", metavar="...", help="files, and options for pytest")
    p.set_defaults(run=run, rest=[])


def run(args: argparse.Namespace) -> int:
    if not importlib.util.find_spec("pytest"):
        raise UserError("pytest is not installed", "python -m pip install -r requirements.txt", EXIT_CANNOT_RUN)
    parallel = ["-n", str(min(8, os.cpu_count() or 1))] if importlib.util.find_spec("xdist") else []
    env = os.environ | {"OMP_NUM_THREADS": "1"}  # the processes are the parallelism
    command = [sys.executable, "-m", "pytest", *parallel, "-rs", *args.what, *args.rest]
    code = subprocess.run(command, cwd=ROOT, env=env).returncode
    return EXIT_OK if code == 0 else EXIT_WRONG if code == 1 else EXIT_CANNOT_RUN
