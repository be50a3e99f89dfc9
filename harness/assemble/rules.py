"""Where the families' files and the prelude say the same in different words, and what no route reaches. See adapt.py.

A rule that finds nothing to do is reported by `scripts/assemble --notes` and can go; a `needed` one is an error.
"""
from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """An exact replacement. needed: why the file would be wrong without it."""
    old: str
    new: str
    needed: str = ""


# a family's name for what the prelude calls otherwise
RENAMES: dict[str, dict[str, str]] = {
    "small": {"send": "send_step", "store_async": "send", "expect_bytes": "barrier_expect", "barrier_wait": "barrier_wait_once", "remote": "map_address"},
    "n512": {"pack_half2": "pack", "bits_float": "__uint_as_float", "float_bits": "__float_as_uint", "mma_fp16": "mma",
             "bar_sync": "named_join", "bar_arrive": "named_arrive", "fence_all": "fence_async_all",
             "prefetch_line": "prefetch_l2", "first_lane": "uniform", "barrier_init": "barrier_init_for_copies",
             "bulk_store": "bulk_store_part", "sync_warp": "__syncwarp", "sync_all": "__syncthreads",
             "any_thread": "__syncthreads_or", "atomic_min": "atomicMin", "atomic_max": "atomicMax", "TensorMap": "CUtensorMap"},
    "n1024": {"split_fp16": "split", "mma_fp16": "mma", "save_floats": "store_float4"},
    "large": {"fast_rcp": "reciprocal", "fast_rsqrt": "reciprocal_sqrt", "smem_addr": "shared_address",
              "transpose8": "transpose_8x8", "ldsm4": "load_matrix", "ldsm4t": "load_matrix_transposed",
              "map_rank": "map_address", "mbar_init": "barrier_init", "mbar_expect": "barrier_expect",
              "mbar_wait": "barrier_wait", "mbar_wait_cta": "barrier_wait", "st_async": "send",
              "bar_arrive": "named_arrive", "bar_join": "named_join", "load4": "load_float4",
              "wg_fence": "wgmma_fence", "wg_commit": "wgmma_commit", "wg_wait": "wgmma_wait"},
}

EDITS: dict[str, tuple[Edit, ...]] = {
    "n512": (
        # a development argument
        Edit("#ifndef TWO_TERM_AT\n#define TWO_TERM_AT 5.5f\n#endif\n", "constexpr float TWO_TERM_AT = 5.5f;\n"),
    ),
}

# Which class a source serves: `constexpr T NAME = ...;` gets this value. NAME? may be missing: the file serves that class alone.
SETTINGS: dict[str, dict[str, dict[str, str]]] = {
    "all_shapes": {"large": {"TERMS": "1"}, "n512": {"FP32_CLASS?": "false"}},
    "fp32_class": {"large": {"TERMS": "2"}, "n512": {"FP32_CLASS": "true"}},
}

# What is always so in a file's routes: what depends on it is folded (adapt.fold). The machine code may come out otherwise
# for it (--prove): where that costs time, take the fact out.
FACTS: dict[str, dict[str, dict[str, bool]]] = {
    "all_shapes": {"large": {"TWO": False}, "n512": {"FP32_CLASS": False, "FUSED": False}},
    "fp32_class": {"large": {"TWO": True}, "n512": {"FP32_CLASS": True},
                   "n1024": {"K::TERMS == 2": True, "K::TERMS == 1": False}},
}

# host: every family's binding defines geqrf_<family>(a) -> (H, tau)
BINDING_EDITS: dict[str, tuple[Edit, ...]] = {
    "n512": (
        Edit("std::vector<torch::Tensor> n512_geqrf(", "std::tuple<torch::Tensor, torch::Tensor> geqrf_n512("),
        Edit("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"geqrf\", &n512_geqrf); }\n", ""),
    ),
    "large": (
        Edit("std::vector<at::Tensor> geqrf_large(", "static std::tuple<at::Tensor, at::Tensor> factor("),
        Edit("bool side_by_side() { return large::side_by_side(); }\n",
             "std::optional<std::tuple<at::Tensor, at::Tensor>> geqrf_large(at::Tensor a) {\n  if (large::side_by_side()) return factor(a);\n"
             "  TORCH_WARN_ONCE(\"large: two kernels do not run side by side here (some profilers see to that): torch.geqrf serves its shapes\");\n"
             "  return {};\n}\n", "the question also gives larfb its shared memory, and where the answer is no torch.geqrf serves"),
    ),
}

# asm statements that are calls of the prelude
FORMS = (
    (r'asm volatile\("fence\.mbarrier_init\.release\.cluster;" ::: "memory"\);', "barrier_init_fence();"),
    (r'asm volatile\("griddepcontrol\.wait;"\s*:\s*:\s*:\s*"memory"\);', "grid_wait();"),
    (r'asm volatile\("griddepcontrol\.launch_dependents;"(?:\s*:::\s*"memory")?\);', "grid_release_next();"),
    (r'asm volatile\("griddepcontrol\.wait;\\ngriddepcontrol\.launch_dependents;" ::: "memory"\);', "grid_wait(); grid_release_next();"),
    (r"(?s)  using Encode = decltype\(&cuTensorMapEncodeTiled\);\n  static const Encode encode = \[\] \{.*?\n  \}\(\);\n",
     "  const auto encode = tensor_map_encoder();\n"),
    (r'(?s)asm volatile\("wgmma\.mma_async\.sync\.aligned\.m64n64k16\.f32\.f16\.f16 "\s*(?:"[^"]*"\s*)+:(?: "\+f"\(d\[\d+\]\),?\s*){32}'
     r': "r"\(a\[0\]\), "r"\(a\[1\]\), "r"\(a\[2\]\), "r"\(a\[3\]\), "l"\(b\), "n"\((\w+) \? 0 : 1\)\);', r"qr::wgmma<\1>(d, a, b);"),
    (r'asm volatile\("prefetch\.global\.L2 \[%0\];" ::"l"\((.+?)\)\);', r"prefetch_l2(\1);"),
)

# definitions that read differently from the prelude's but whose kernels came out the same (--prove)
EQUIVALENT = frozenset("""
#if 4d147776
barrier_init 36b2c354
barrier_init 8be5050c
barrier_init f20aa813
barrier_init_for_copies df15e967
barrier_wait 2036456f
barrier_wait a6d616b7
bulk_store 73da003b
cluster_wait 6af426a1
load_float4 4dd92df8
load_float4 fceec352
load_matrix ae24765d
load_matrix_transposed 3d4ed02e
map_address 27e9091e
map_address 915470b7
mma 5cfb7b1c
mma eb8b5494
named_arrive 143705d1
named_arrive f2090e13
named_join 05dc6f63
named_join c7f3bdab
pack 36fe9981
prefetch_l2 7066a329
split 42ea7dbf
split 6440ebd8
store_matrix 920c9986
wgmma_wait 829e026a
wgmma_wait ff82d0d1
""".strip().splitlines())
