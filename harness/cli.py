"""The verbs. Each is registered with argparse by the module that does the work; user errors are caught once, here."""
from __future__ import annotations

import argparse
import importlib
import sys

from harness.errors import EXIT_CANNOT_RUN, EXIT_USAGE, UserError

# In the order of --help. Importing one of these must not import torch: --help and lint answer at once.
MODULES = ("check", "timing", "compare", "report", "profiling", "record", "history", "roofline", "popcorn", "assemble",
           "tune", "research", "selftest")


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="./kit", description="Check, time and compare submissions for the leaderboard qr_v2.",
        epilog="example: ./kit bench submissions/v00_geqrf.py submissions/v01_compact_wy.py")
    verbs = p.add_subparsers(metavar="VERB", required=True)
    for name in MODULES:
        importlib.import_module(f"harness.{name}").register(verbs)
    return p


def main(argv: list[str] | None = None) -> int:
    """Run one verb; 0 fine, 1 wrong answer or asked-for regression, 2 usage, 3 could not run."""
    try:
        try:
            p = parser()
            args, rest = p.parse_known_args(argv)
            if rest and not hasattr(args, "rest"):  # selftest hands on to pytest what it does not know
                p.error(f"unrecognized arguments: {' '.join(rest)}")
            args.rest = rest
        except SystemExit as e:  # argparse has said what was wrong
            return int(e.code or 0) and EXIT_USAGE
        return int(args.run(args))
    except UserError as e:
        print(f"error: {e}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:
        print("stopped; what was measured is saved", file=sys.stderr)
        return EXIT_CANNOT_RUN
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        return 0
