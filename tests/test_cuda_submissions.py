"""What can be said of the CUDA submissions without a GPU: they import, fall back with a warning, and are right."""
import importlib.util
import warnings

import pytest
import torch

import reference
from harness import pick
from harness.cases import ROOT

FILES = [p for p in sorted((ROOT / "submissions").glob("v*.py")) if "__global__" in p.read_text()]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the kernels run")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_without_a_gpu_torch_serves_with_one_warning(path):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kernel = load(path).custom_kernel
        for n in (8, 300):
            a = reference.generate_input(2, n, 1, 7)
            before = a.clone()
            ok, message = reference.check_implementation(a, kernel(a))
            assert ok, message
            assert torch.equal(a, before)
        for shape in ((0, 4, 4), (3, 0, 0)):
            h, tau = kernel(torch.empty(shape))
            assert h.shape == shape and tau.shape == shape[:2]
    said = [w for w in seen if "geqrf" in str(w.message)]
    assert len(said) <= 1


ASSEMBLED = [p for p in FILES if "BACKENDS = " in p.read_text()]
SHARED_SOURCE = [p for p in ASSEMBLED if "\nfirst: " in p.read_text()]  # from v55 on: n1024's source serves mid too
FP32_CLASS = [p.stem for p in SHARED_SOURCE if p.stem.endswith("fp32_class")]
assembled = pytest.mark.parametrize("path", ASSEMBLED, ids=lambda p: p.stem)


@assembled
def test_an_assembled_file_routes_every_shape(path):
    module, fp32 = load(path), path.stem in FP32_CLASS
    if path in SHARED_SOURCE:
        two_terms_to = module.LIMITS.get("mid", (0, 999))[1]
    else:
        two_terms_to = 800 if path.stem in ("v50_all_shapes", "v51_all_shapes") else 896
    most = module.LIMITS["large"][1] if hasattr(module, "LIMITS") else 8192
    assert most in (4096, 8192)  # v69's panel and its children take no more rows
    ends = {"small": (1, 32, 176, 352, 384), "n512": (385, 512), "n1024": (two_terms_to + 1, 1024, 1536),
            "large": (1537, 2048, most), "": (most + 1, 8193)}
    for family, sizes in ends.items():
        assert [module.route(1, n) for n in sizes] == [family] * len(sizes)
    two_terms = "n1024" if fp32 else module.route(1, two_terms_to)
    assert two_terms_to >= 999 or path not in SHARED_SOURCE, "one term leaves more than half of the allowance"
    assert module.route(1, 513) == module.route(7, 800) == two_terms
    assert fp32 or two_terms != "n1024"
    assert {*module.BACKENDS.values(), two_terms} == {*module.SOURCES, ""}
    for name in module.BACKENDS:
        assert name == "geqrf" or (ROOT / "submissions" / f"{name}.py").is_file()


@assembled
def test_an_assembled_file_holds_its_families_sources_as_they_stand(path):
    """Up to v52; where shared pieces stand once, test_assemble.py puts the newest pair together again."""
    module = load(path)
    for name, family in module.BACKENDS.items() if not hasattr(module, "PRELUDE") else ():
        if family:
            cuda = module.SOURCES[family][0]
            assert cuda in (ROOT / "submissions" / f"{name}.py").read_text()


class Built:
    """Stands in for an extension: remembers what it was compiled with and what it was called for."""

    def __init__(self, serves):
        self.flags, self.calls, self.serves = {}, [], serves

    def load_inline(self, name, *, cuda_sources, extra_cuda_cflags, **_):
        family = name.split("_")[1]
        self.flags[family] = extra_cuda_cflags
        return type("Module", (), {f"geqrf_{family}": staticmethod(lambda a: self.serve(family, a))})

    def serve(self, family, a):
        self.calls.append(family)
        return family if self.serves(family, a.shape[-1]) else None


@pytest.mark.parametrize("path", SHARED_SOURCE, ids=lambda p: p.stem)
def test_an_assembled_file_is_built_with_its_terms_and_asks_small_first(path, monkeypatch):
    built = Built(lambda family, n: family != "large" and (family != "small" or n <= 384))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr("torch.utils.cpp_extension.load_inline", built.load_inline)
    module = load(path)
    fp32 = path.stem in FP32_CLASS
    if hasattr(module, "FP32_CLASS"):  # else the sources say it
        assert all(f"-DFP32={int(fp32)}" in flags for flags in built.flags.values())
    two_terms = {family for family, flags in built.flags.items() if "-DFP16_TERMS=2" in flags}
    assert two_terms == ({"n1024"} if fp32 else {"mid"})
    assert module.custom_kernel(torch.eye(32)[None]) == "small" and built.calls == ["small"]
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    built.calls.clear()
    assert module.custom_kernel(torch.eye(600)[None]) == ("n1024" if fp32 else "mid")
    assert built.calls[0] == "small", "who asks first gets None for what it does not take"
    a = torch.eye(1600)[None]
    h, _ = module.custom_kernel(a)  # large says None where kernels do not run side by side
    assert built.calls[-1] == "large" and torch.equal(h, torch.geqrf(a)[0])


@pytest.mark.parametrize("path", SHARED_SOURCE, ids=lambda p: p.stem)
def test_small_is_not_asked_first_where_the_table_gives_its_shapes_to_another(path, monkeypatch, tmp_path):
    built = Built(lambda family, n: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr("torch.utils.cpp_extension.load_inline", built.load_inline)
    changed, text = tmp_path / path.name, path.read_text()
    row = next(line for line in text.splitlines() if line.startswith("    (512, None, 1, "))
    assert text.count('"n512": (385, 512)') == 1 and row
    changed.write_text(text.replace('"n512": (385, 512)', '"n512": (1, 512)')
                       .replace("ROUTES = (\n", f"ROUTES = (\n{row.replace('512', '300', 1)}\n"))
    module = load(changed)
    assert module.route(1, 200) == "n512" and module.first is module.nothing


NEWEST = [max((p for p in ASSEMBLED if p.stem.endswith(kind)), key=lambda p: pick.number(p.name))
          for kind in ("all_shapes", "fp32_class")]


@pytest.mark.gpu
@pytest.mark.parametrize("path", NEWEST, ids=lambda p: p.stem)
@pytest.mark.parametrize("n", [1, 31, 33, 177, 351, 385, 500, 513, 640, 801, 900, 1537])
@pytest.mark.parametrize("case", ["mixed", "nearcollinear", "upper", "rankdef", "band", "rowscale"])
def test_the_newest_assembled_files_on_the_gpu(path, n, case):
    kernel = load(path).custom_kernel
    a = reference.generate_input(5, n, 1, n, case)
    ok, message = reference.check_implementation(a, kernel(a))
    assert ok, message
    from harness.residuals import residuals
    worst = residuals(a, *kernel(a)).worst()
    assert worst["factor"] <= 10 and worst["orth"] <= 50, worst  # our own rule: half of what the contest allows
    if path.stem in FP32_CLASS:
        assert worst["column"] <= 1, worst
