"""The leaderboard: scripts around the `popcorn` program that bring the server's per-shape timings back.

    scripts/submit FILE --mode test|benchmark|leaderboard     scripts/submit --resume NUMBER
    scripts/benchmark FILE                                    scripts/profile FILE [--case C | --all]

program.py runs popcorn, server.py reads the server's own record of a submission, verdict.py judges it, rows.py turns
it into Runs, store.py keeps what is needed to resume, report.py prints; submit.py and profile.py put them in order.
"""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness.errors import EXIT_USAGE, UserError

EXITS = """\
exit codes: 0 passed, 1 failed tests, 2 usage, 3 popcorn is missing, 10 crashed, 11 timeout, 12 infrastructure,
            13 rejected by guard, 14 rate limited, 15 closed, 16 authentication, 17 network, 130 interrupted"""


def register(verbs: Any) -> None:
    """The verbs behind scripts/; named with an underscore, without help, so that ./kit --help does not list them."""
    p = _parser(verbs, "submit", "Submit a file to the leaderboard's server, wait, print its per-shape times.",
                "scripts/submit submissions/v00_geqrf.py --mode test")
    p.add_argument("file", type=Path, nargs="?", metavar="FILE")
    p.add_argument("--mode", choices=("test", "benchmark", "leaderboard"))
    _target(p)
    p.add_argument("--resume", type=int, metavar="NUMBER", help="follow a submission sent before; sends nothing")
    p.set_defaults(run=_submit)

    p = _parser(verbs, "benchmark", "scripts/submit with --mode benchmark.",
                "scripts/benchmark submissions/v00_geqrf.py")
    p.add_argument("file", type=Path, metavar="FILE")
    _target(p)
    p.set_defaults(run=_submit, mode="benchmark", resume=None)

    p = _parser(verbs, "profile", "Profile a file on the leaderboard's GPU and summarise its kernels.",
                "scripts/profile submissions/v00_geqrf.py --case '#7'")
    p.add_argument("file", type=Path, metavar="FILE")
    which = p.add_mutually_exclusive_group()
    which.add_argument("--case", action="append", default=[], metavar="C", help="a ranked case: '#7', b640-n512-mixed")
    which.add_argument("--all", action="store_true", help="all ranked cases; so without --case")
    p.add_argument("--leaderboard", metavar="NAME")
    p.add_argument("--gpu", metavar="NAME")
    p.set_defaults(run=_profile)


def _parser(verbs: Any, name: str, what: str, example: str) -> argparse.ArgumentParser:
    return verbs.add_parser(f"_{name}", prog=f"scripts/{name}", description=what,  # type: ignore[no-any-return]
                            epilog=f"{EXITS}\nexample: {example}", formatter_class=argparse.RawDescriptionHelpFormatter)


def _target(p: argparse.ArgumentParser) -> None:
    p.add_argument("--leaderboard", metavar="NAME", help="instead of the file's directive (qr_v2 where it has none)")
    p.add_argument("--gpu", metavar="NAME", help="instead of the file's directive (B200 where it has none)")
    p.add_argument("--wait", action="store_true", help="sit out a rate limit, then send")


def _submit(args: argparse.Namespace) -> int:
    from harness.popcorn import submit

    if args.resume is not None:
        if args.file or args.mode:
            raise UserError("--resume takes no FILE and no --mode: the submission has them", exit_code=EXIT_USAGE,
                            next_step=f"scripts/submit --resume {args.resume}")
        return submit.resume(args.resume)
    if not args.file or not args.mode:
        raise UserError(f"scripts/submit needs {'--mode' if args.file else 'FILE'}",
                        f"scripts/submit {args.file or 'FILE'} --mode test|benchmark|leaderboard", EXIT_USAGE)
    return submit.submit(args.file, args.mode, args.leaderboard, args.gpu, args.wait)


def _profile(args: argparse.Namespace) -> int:
    from harness.popcorn import profile

    return profile.profile(args.file, args.case, args.leaderboard, args.gpu)
