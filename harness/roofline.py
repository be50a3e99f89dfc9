"""The least time in which a card could do a case: floor = max(bytes / bandwidth, flops / rate, serial chain).

bytes   A read once, H and tau written once: 4 (2 n^2 + n) a matrix
flops   4/3 n^3 a matrix: LAPACK's count for geqrf with m = n (Golub and Van Loan, 5.2.1)
chain   n columns one after the other; column j+1 has no norm before column j is applied to it

The floor flatters nobody: products at the card's fastest FP16 rate with FP32 accumulation, every matrix's chain hidden
behind the others'. spec/kernels.md's "floor (model)" is another figure: it takes 0.2 us a column and one matrix a SM
at a time, which good kernels beat.
"""
from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from harness.cases import ROOT
from harness.errors import EXIT_CANNOT_RUN, EXIT_OK, UserError

CEILINGS_FILE = ROOT / ".kit" / "ceilings.json"
VERSION = 1

# Cycles a column. Measured on an H200: the Cholesky recurrence of a 32-column Gram block, alone, takes 4.8k cycles for
# 32 columns (spec/feasibility-large.md 2.1). Its whole panel takes four times that; no shorter chain is known.
COLUMN_CYCLES = 150


@dataclass(frozen=True)
class Ceilings:
    """What a card can do. `mark` says how the figure is known: measured or datasheet."""

    bandwidth: float  # bytes a second
    product: float  # FP16 products with FP32 accumulation, dense, flop a second
    clock: float  # SM clock, Hz
    mark: str
    source: str

    @property
    def column_ns(self) -> float:
        return COLUMN_CYCLES / self.clock * 1e9


# By a pattern of the device's name; the first that matches. Clocks are the maximum boost clock.
KNOWN = (
    ("H200", Ceilings(4.2e12, 630e12, 1.98e9, "measured",
                      "this project: copy; batched torch.bmm at n = 2048, nb = 256, FP16, torch 2.11, CUDA 13.0")),
    ("B200", Ceilings(8.0e12, 2250e12, 1.965e9, "datasheet", "NVIDIA HGX B200, one GPU, dense")),
    ("H100 NVL", Ceilings(3.9e12, 835e12, 1.785e9, "datasheet", "NVIDIA H100 NVL, dense")),
    ("H100.*PCIe", Ceilings(2.0e12, 756e12, 1.755e9, "datasheet", "NVIDIA H100 PCIe, dense")),
    ("H100", Ceilings(3.35e12, 989e12, 1.98e9, "datasheet", "NVIDIA H100 SXM5, dense")),
    ("A100", Ceilings(2.039e12, 312e12, 1.41e9, "datasheet", "NVIDIA A100 SXM4 80 GB, dense")),
    ("RTX 4090", Ceilings(1.008e12, 165.2e12, 2.52e9, "datasheet",
                          "NVIDIA Ada architecture paper, FP16 with FP32 accumulation, dense")),
)


def known(device: str) -> Ceilings | None:
    """Those in KNOWN, by the device's name: the same on every checkout."""
    return next((c for pattern, c in KNOWN if re.search(pattern, device)), None)


def ceilings(device: str, path: Path | None = None) -> Ceilings | None:
    """Those of a device by its name: measured here, else known, else None (a CPU, an unknown card)."""
    try:
        saved = json.loads((path or CEILINGS_FILE).read_text(encoding="utf-8"))
        if saved["v"] == VERSION and device in saved["devices"]:
            d = saved["devices"][device]
            return Ceilings(*(d[k] for k in ("bandwidth", "product", "clock", "mark", "source")))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return known(device)


def flops(batch: int, n: int) -> float:
    return batch * 4 / 3 * n**3


def traffic(batch: int, n: int) -> int:
    """Bytes."""
    return batch * 4 * (2 * n * n + n)


def floor_ns(batch: int, n: int, c: Ceilings) -> tuple[float, str]:
    """(nanoseconds, what sets it: "memory", "products" or "chain")."""
    return max((traffic(batch, n) / c.bandwidth * 1e9, "memory"), (flops(batch, n) / c.product * 1e9, "products"),
               (n * c.column_ns, "chain"))


def shape(spec: str) -> tuple[int, int]:
    """(batch, n) of the contest's case line."""
    values = dict(part.split(": ", 1) for part in spec.split("; "))
    return int(values["batch"]), int(values["n"])


# ---------------------------------------------------------------- ./kit ceilings

def measure() -> tuple[str, dict[str, float]]:
    """The device's name and its ceilings: copy bandwidth (read + write) and product rates, best of the shapes tried.

    Raises UserError (exit 3) without torch or a CUDA device.
    """
    try:
        import torch
    except ImportError:
        raise UserError("ceilings need torch", "./kit check installs it", EXIT_CANNOT_RUN) from None
    if not torch.cuda.is_available():
        raise UserError("no CUDA device: ceilings are measured on the card",
                        "nothing to do: compare and report know " + ", ".join(p for p, _ in KNOWN if "." not in p),
                        EXIT_CANNOT_RUN)

    def best_seconds(call: Callable[[], object]) -> float:
        for _ in range(3):
            call()
        times = []
        for _ in range(10):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(5):  # hides the launch of one behind the work of another
                call()
            stop.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(stop) / 5e3)
        return min(times)

    a, b = torch.empty(2, 1 << 30, dtype=torch.uint8, device="cuda")  # each twenty times the L2 of an H200
    rates = {"bandwidth": 2 * a.numel() / best_seconds(lambda: b.copy_(a))}
    tf32 = torch.backends.cuda.matmul.allow_tf32
    try:
        for name, dtype, allow in (("fp32", torch.float32, False), ("tf32", torch.float32, True),
                                   ("product", torch.float16, False)):
            torch.backends.cuda.matmul.allow_tf32 = allow
            rates[name] = 0.0
            for m, k in ((8192, 8192), (8192, 1024)):  # cuBLAS is fastest on a large square; a thinner one as a check
                x = torch.randn(m, k, device="cuda").to(dtype)
                y = torch.randn(k, m, device="cuda").to(dtype)
                rates[name] = max(rates[name], 2 * m * m * k / best_seconds(partial(torch.matmul, x, y)))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = tf32
    return torch.cuda.get_device_name(), rates


def save(device: str, found: Ceilings, path: Path | None = None, **also: float) -> None:
    """Keep the ceilings of this device beside those of others."""
    path = path or CEILINGS_FILE
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        devices = saved["devices"] if saved["v"] == VERSION else {}
    except (OSError, ValueError, KeyError):
        devices = {}
    devices[device] = asdict(found) | also
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"v": VERSION, "devices": devices}, indent=1) + "\n", encoding="utf-8")


def run_ceilings(args: argparse.Namespace) -> int:
    from harness.results import utc_now

    device, rates = measure()
    card = known(device)
    clock = card.clock if card else 2e9  # of the chain only; a card that nobody knows gets a generous one
    save(device, Ceilings(rates["bandwidth"], rates["product"], clock, "measured", f"./kit ceilings, {utc_now()}"),
         fp32=rates["fp32"], tf32=rates["tf32"])
    print(device)
    print(f"  copy        {rates['bandwidth'] / 1e12:6.2f} TB/s (read + write)")
    for label, key in (("FP32", "fp32"), ("TF32", "tf32"), ("FP16", "product")):
        print(f"  {label} product{rates[key] / 1e12:7.1f} TFLOP/s")
    return EXIT_OK


def register(verbs: argparse._SubParsersAction) -> None:
    p = verbs.add_parser(
        "ceilings", help="measure what this card can do at most (copy, products)",
        description="Measure copy bandwidth and product rates once and keep them in .kit/ceilings.json; compare\n"
                    "and report state times as a share of the floor that follows from them.",
        epilog="example: ./kit ceilings", formatter_class=argparse.RawDescriptionHelpFormatter)
    p.set_defaults(run=run_ceilings)
