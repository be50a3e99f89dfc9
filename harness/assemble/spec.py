"""What the assembled submissions are made of. For new ones: edit the two entries below, run `scripts/assemble`.

A family's file holds one CUDA string and one binding. Ranges do not overlap; they become LIMITS and, in this order,
ROUTES.
header.txt has the docstrings' words, host.txt the Python around the sources; both fill in what stands here.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    file: str  # the submission that it comes from
    least: int
    most: int  # n from and to
    flags: tuple[str, ...] = ()  # for nvcc
    of: str = ""  # built from this other family's source


@dataclass(frozen=True)
class Assembled:
    file: str
    parent: str
    families: dict[str, Family]  # in the order of the file
    first: str = "small"  # is asked before the table: at n = 32 the host is the clock

    @property
    def name(self) -> str:
        return self.file.split("_")[0]


ALL_SHAPES = Assembled("v150_all_shapes", parent="v57_all_shapes", families={
    "small": Family("v114_small_window_by_bytes", 1, 384),
    "n512": Family("v117_n512_warpgroup_products", 385, 512),
    "mid": Family("v122_n1024_gram_from_shared", 513, 999, flags=("-DFP16_TERMS=2",), of="n1024"),
    "n1024": Family("v122_n1024_gram_from_shared", 1000, 1536),
    "large": Family("v137_large_by_columns", 1537, 4096),
})
FP32_CLASS = Assembled("v151_fp32_class", parent="v150_all_shapes", families={
    "small": Family("v114_small_window_by_bytes", 1, 384),
    "n512": Family("v117_n512_warpgroup_products", 385, 512),
    "n1024": Family("v122_n1024_gram_from_shared", 513, 1536, flags=("-DFP16_TERMS=2",)),
    "large": Family("v137_large_by_columns", 1537, 4096),
})
FILES = {"all_shapes": ALL_SHAPES, "fp32_class": FP32_CLASS}
