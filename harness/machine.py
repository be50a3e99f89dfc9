"""The machine at hand: which device, its fingerprint, its clock."""
from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import torch


@cache
def device_kind() -> str:
    """"cuda" where there is a GPU and QRKIT_DEVICE does not say "cpu"."""
    return "cuda" if torch.cuda.is_available() and os.environ.get("QRKIT_DEVICE") != "cpu" else "cpu"


@cache
def fingerprint() -> dict[str, str]:
    """What must agree before two times are compared: device, driver, and the versions that generate code."""
    print_ = {"name": "", "torch": torch.__version__, "python": platform.python_version()}
    if device_kind() == "cuda":
        print_ |= {"name": torch.cuda.get_device_name(), "driver": _driver(), "cuda": str(torch.version.cuda)}
        try:
            import triton
            print_["triton"] = triton.__version__
        except ImportError:
            print_["triton"] = "none"
    else:
        print_ |= {"name": f"CPU ({_cpu_model()}, {torch.get_num_threads()} threads)"}
    return print_


def device_id() -> str:
    """What tells this device from another of the same kind in the same machine."""
    if device_kind() == "cuda":
        return f"{fingerprint()['name']} {torch.cuda.get_device_properties().uuid}"
    return fingerprint()["name"]


def _driver() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
        return next(word for word in text.split() if word.count(".") >= 1 and word[0].isdigit())
    except (OSError, StopIteration):
        return "unknown"


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.split(":")[1].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


def sm_clock() -> int | None:
    """The SM clock in MHz now, where NVML (nvidia-ml-py) is installed; None elsewhere."""
    if device_kind() != "cuda":
        return None
    try:
        return torch.cuda.clock_rate()
    except Exception:  # no NVML, or a driver that does not answer: a figure less, no reason to stop
        return None
