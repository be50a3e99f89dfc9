"""`./kit report`: everything that was measured, as one HTML page that works from the file system, and as a picture.

data.py     saved runs -> what the page shows
page.html   the page; page.css and page.js are put into it, with the data as JSON: one file, no network
picture.py  the ladder and the best version's cases as a PNG, for a README
"""
from __future__ import annotations

import argparse
from pathlib import Path

from harness.cases import ROOT
from harness.errors import EXIT_OK, UserError

PAGE = ROOT / ".kit" / "report.html"


def run_report(args: argparse.Namespace) -> int:
    from harness import pick
    from harness.report import data

    sides = pick.pick(args.runs) if args.runs else pick.group(pick.all_runs())
    if not sides:
        raise UserError("nothing to report: no saved run", "./kit bench submissions/v00_geqrf.py")
    # a picture alone needs no page, a page no matplotlib
    if args.png is None or args.output is not None:
        out = args.output or PAGE
        _write(out, data.page(sides).encode())
        print(out)
    if args.png is not None:
        from harness.report import picture
        _write(args.png, picture.draw(data.collect(sides)))
        print(args.png)
    return EXIT_OK


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as e:
        raise UserError(f"{path}: could not write: {e.strerror}", "name another file with -o or --png", 3) from None


def register(verbs: argparse._SubParsersAction) -> None:
    p = verbs.add_parser(
        "report", help="one self-contained HTML page of all that was measured; --png for a README",
        description="Write the page to .kit/report.html: ladder, speed-ups of files by cases, times against geqrf\n"
                    "and the floor, margins, raw samples. Without a RUN: every saved run and record.",
        epilog="example: ./kit report -o report.html", formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("runs", metavar="RUN", nargs="*", help="as for ./kit compare")
    p.add_argument("-o", dest="output", type=Path, metavar="FILE", help="the page (default .kit/report.html)")
    p.add_argument("--png", type=Path, metavar="FILE", help="draw the main picture there (needs matplotlib)")
    p.set_defaults(run=run_report)
