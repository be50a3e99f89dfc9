"""What Nsight Compute runs: one call of a submission on one case, after a call to compile and warm up.

    python harness/profiled.py FILE CASE_JSON

It imports the submission without the worker's guards: nothing here is timed for a comparison, and a profile of a
cheating file fools only its author. Only the second call lies between the profiler's start and stop.
"""
from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def main(path: str, case: dict[str, Any]) -> int:
    sys.path[0] = str(ROOT)  # for task and reference; harness/ itself must not shadow anything
    import torch

    import reference
    from harness.worker import load_module

    if not torch.cuda.is_available():
        print("==ERROR== no CUDA device is visible", file=sys.stderr)
        return 3
    a = reference.generate_input(case["batch"], case["n"], case["cond"], case["seed"], case["case"])  # (batch, n, n)
    try:
        kernel = load_module("submission", path).custom_kernel
        kernel(a.clone())
        fresh = a.clone()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        output = kernel(fresh)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
    except Exception as e:
        traceback.print_exc()
        print(f"wrong: {Path(path).name} on {case['label']}: {type(e).__name__}: {e}".splitlines()[0], file=sys.stderr)
        return 1
    ok, message = reference.check_implementation(a, output)
    if not ok:
        print(f"wrong: {Path(path).name} on {case['label']}: {message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
