"""scripts/assemble: the all-shapes submission and the one of the FP32 class, put together from the families' own files.

spec.py says of what (edit that); header.txt and host.txt hold the words, prelude.cuh what all families share, rules.py
where a family says the same in other words. adapt.py takes that out of a family's source, page.py writes the file;
prove.py compares machine code, duplicates.py finds what else could stand once, cxx.py reads CUDA.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from harness.errors import EXIT_OK, EXIT_WRONG, UserError

ABOUT = """\
Write the all-shapes submission and the one of the FP32 class from the families' files.
Of what: harness/assemble/spec.py."""
END = """\
example: scripts/assemble --prove small

exit codes: 0 fine, 1 stale (--check), a kernel differs (--prove) or a family's file lacks something, 2 usage,
            3 no nvcc or no cuobjdump"""


def register(verbs: Any) -> None:
    """The verb behind scripts/assemble; with an underscore, as popcorn's, so that ./kit --help does not list it."""
    p = verbs.add_parser("_assemble", prog="scripts/assemble", description=ABOUT, epilog=END,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file is stale")
    p.add_argument("--out", type=Path, metavar="DIR", help="instead of submissions/")
    p.add_argument("--notes", action="store_true",
                   help="rules with nothing to do, what is unused, what hides the prelude's")
    p.add_argument("--prove", nargs="*", metavar="FAMILY",
                   help="compile these families (none named: all) before and after, compare machine code (minutes)")
    p.add_argument("--duplicates", action="store_true", help="only say what two families define alike")
    p.set_defaults(run=_assemble)


def _assemble(args: argparse.Namespace) -> int:
    from harness.assemble import page, spec
    from harness.cases import ROOT

    unknown = set(args.prove or ()) - {family for file in spec.FILES.values() for family in file.families}
    if unknown:
        raise UserError(f"--prove: no family is called {', '.join(sorted(unknown))}", "scripts/assemble --help")
    if args.duplicates:
        from harness.assemble.duplicates import duplicates
        print("\n".join(duplicates()))
        return EXIT_OK
    folder = args.out or ROOT / "submissions"
    folder.mkdir(parents=True, exist_ok=True)
    built = {kind: page.build(kind) for kind in spec.FILES}
    if args.notes:
        print("\n".join(dict.fromkeys(note for b in built.values() for note in b.notes)))
    bad = False
    for kind, b in built.items():
        path = folder / f"{spec.FILES[kind].file}.py"
        old = path.read_text(encoding="utf-8") if path.is_file() else ""
        if page.same(b.text, old):
            print(f"{path.name}: as it is, {old.count(chr(10))} lines")
        elif args.check:
            print(f"stale: {path.name} is not what its families give\n  next: scripts/assemble", file=sys.stderr)
            bad = True
        else:
            path.write_text(b.text, encoding="utf-8")
            print(f"{path.name}: {b.text.count(chr(10))} lines, {old.count(chr(10))} before")
    if args.prove is not None:
        from harness.assemble import prove
        bad |= not prove.prove(args.prove)
    return EXIT_WRONG if bad else EXIT_OK
