"""scripts/submit and its like on a .kit folder of the test's own: python drive.py KIT_FOLDER VERB ARGUMENTS..."""
import sys
from pathlib import Path

from harness import cli, results

if __name__ == "__main__":
    results.RUNS_DIR = Path(sys.argv[1]) / "runs"
    cli.MODULES = ("popcorn", "history", "profiling")
    sys.exit(cli.main(sys.argv[2:]))
