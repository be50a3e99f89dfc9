"""Which kernels one call launches, by torch's own profiler: where Nsight Compute is missing or its counters are closed.

    python harness/research/kernels.py FILE CASE_JSON

The last line of its output is a JSON list, longest first: kernel, calls, time_pct; and in the first entry gap_pct, the
share of the call in which none of them ran. On a CPU torch's operators stand for kernels. Like harness/profiled.py it
imports the file without the worker's guards: nothing here is ever a time to be compared.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
MOST = 8


def main(path: str, case: dict[str, Any]) -> None:
    sys.path[0] = str(ROOT)  # for task and reference; harness/research/ itself must not shadow anything
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    import reference
    from harness.worker import load_module
    on_gpu = torch.cuda.is_available()
    a = reference.generate_input(case["batch"], case["n"], case["cond"], case["seed"], case["case"])  # (batch, n, n)
    kernel = load_module("submission", path).custom_kernel
    kernel(a.clone())  # compiles
    fresh = a.clone()
    with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as p:
        kernel(fresh)
        if on_gpu:
            torch.cuda.synchronize()
    events = [e for e in p.events() if e.device_type == (DeviceType.CUDA if on_gpu else DeviceType.CPU)]
    own_us: dict[str, list[float]] = {}
    for e in events:
        own_us.setdefault(e.name, []).append(e.time_range.elapsed_us() if on_gpu else e.self_cpu_time_total)
    total = sum(map(sum, own_us.values())) or 1.0
    span = max((e.time_range.end for e in events), default=0) - min((e.time_range.start for e in events), default=0)
    rows: list[dict[str, Any]] = [
        {"kernel": name[:80], "calls": len(us), "time_pct": round(100 * sum(us) / total, 1)}
        for name, us in sorted(own_us.items(), key=lambda x: -sum(x[1]))[:MOST]]
    if rows and span > 0:
        rows[0]["gap_pct"] = round(max(0.0, 100 * (1 - total / span)), 1)
    print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
