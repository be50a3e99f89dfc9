"""scripts/assemble: the newest pair of assembled submissions is what it writes; what it takes out of a family's file is
what the prelude says."""
import dataclasses
import re

import pytest

from harness import cli
from harness.assemble import adapt, cxx, page, rules, spec
from harness.cases import ROOT
from harness.compilecheck import cuda_sources
from harness.errors import UserError
from harness.header import read_header

SUBMISSIONS = ROOT / "submissions"
PRELUDE = cxx.parts(adapt.PRELUDE.read_text())
kinds = pytest.mark.parametrize("kind", spec.FILES)


@kinds
def test_the_newest_file_is_what_its_families_give(kind):
    """Byte for byte, but for Result, which a record gives. A family or a rule that moves on leaves the file behind."""
    path = SUBMISSIONS / f"{spec.FILES[kind].file}.py"
    assert path.is_file() and page.same(page.build(kind).text, path.read_text()), "next: scripts/assemble"


@kinds
def test_what_is_proved_is_what_the_file_compiles(kind):
    text = (SUBMISSIONS / f"{spec.FILES[kind].file}.py").read_text()
    assert cuda_sources(text) == list(page.build(kind).sources.values())


@kinds
def test_the_contents_name_what_is_there(kind):
    for family, cuda in page.build(kind).families.items():
        top = cuda.split("\n//\n")[0]
        assert top.startswith("// CONTENTS\n")
        assert all(f"//   {name}: " in top for name in ("geqrf", "geqr2", "larft", "larfb"))
        with pytest.raises(UserError, match=rf"{family}: contents.txt names `\w+`, which its source does not define"):
            page.contents(family, "int main() { return 0; }")


@kinds
def test_the_header_is_filled_in(kind):
    text = page.build(kind).text
    assert not re.search(r"@[a-z][\w.]*@", text)
    header = read_header(SUBMISSIONS / f"{spec.FILES[kind].file}.py")
    assert header.parent == spec.FILES[kind].parent and (SUBMISSIONS / f"{header.parent}.py").is_file()
    assert list(header.fields) == ["Algorithm", "Precision", "Shapes", "Parent", "Result", "Bound by"]


def test_check_says_what_is_stale(tmp_path, capsys):
    assert cli.main(["_assemble", "--out", str(tmp_path)]) == 0
    assert cli.main(["_assemble", "--out", str(tmp_path), "--check"]) == 0
    stale = tmp_path / f"{spec.ALL_SHAPES.file}.py"
    before = stale.read_text()
    stale.write_text(before.replace("ROUTES", "ROADS"))
    capsys.readouterr()
    assert cli.main(["_assemble", "--out", str(tmp_path), "--check"]) == 1
    said = capsys.readouterr()
    assert f"stale: {stale.name}" in said.err and "as it is" in said.out
    assert cli.main(["_assemble", "--out", str(tmp_path)]) == 0 and stale.read_text() == before


def test_a_record_s_result_stays(tmp_path):
    assert cli.main(["_assemble", "--out", str(tmp_path)]) == 0
    path = tmp_path / f"{spec.ALL_SHAPES.file}.py"
    path.write_text(path.read_text().replace("Result     see records/", "Result     geomean 1 µs"))
    assert cli.main(["_assemble", "--out", str(tmp_path)]) == 0
    assert "Result     geomean 1 µs\n" in path.read_text()


# ---------------------------------------------------------------- a family's file that lacks something

def family(cuda, binding="int geqrf_small(int a);"):
    return adapt.Source(cuda, binding)


def test_what_the_prelude_says_goes_and_what_says_something_else_is_reported():
    a = adapt.adapt("small", family("""
namespace qr_small {
__device__ __forceinline__ float rcp(float value) {
  float r; asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(value)); return r; }
__device__ __forceinline__ uint32_t bits(__half2 h) { return 7; }
__device__ __forceinline__ int never() { return 1; }
__global__ void kernel(float* x) { x[0] = rcp(x[1]) + bits(__half2()); }
int geqrf_small(int a) { kernel<<<1, 1>>>(0); return a; }
}  // namespace qr_small
"""), PRELUDE)
    assert "x[0] = reciprocal(x[1])" in a.cuda and "rcp" not in a.cuda and "never" not in a.cuda
    assert "DEVICE uint32_t bits" in a.cuda, "says something else"
    assert any("bits is not the prelude's" in note for note in a.notes) and any("unused: never" in n for n in a.notes)
    assert a.cuda.startswith("namespace qr_small {\nusing namespace qr;\n")


@pytest.mark.parametrize("source, says", [
    (family("int x;", "int launch();"), "small: the binding of its file defines no geqrf_small"),
    (family("int remote(); int map_address();"), "small: remote becomes map_address, a name that its file uses"),
    (family("namespace a {\nint f( {\n"), "small: its CUDA cannot be taken apart")])
def test_a_family_s_fault_is_named(source, says):
    with pytest.raises(UserError, match=re.escape(says)):
        adapt.adapt("small", source, PRELUDE)


def test_an_edit_that_is_needed_is_missed(monkeypatch):
    monkeypatch.setitem(rules.EDITS, "small", (rules.Edit("TERMS = 2;", "TERMS = FP32 + 1;", "the class"),))

    def made(terms):
        cuda = f"const int TERMS = {terms};\nint geqrf_small() {{ return TERMS; }}"
        return adapt.adapt("small", family(cuda), PRELUDE)
    assert "FP32 + 1;" in made("2").cuda
    assert "FP32 + 1;" in made("FP32 + 1").cuda, "the file says so itself"
    with pytest.raises(UserError, match=r"small: its file has neither 'TERMS = 2;' nor what replaces it: the class"):
        made("3")


def test_a_file_that_is_not_there_or_holds_no_family(monkeypatch):
    with pytest.raises(UserError, match=r"small: submissions/v999_no\.py: no such file"):
        adapt.read_source("small", "v999_no")
    with pytest.raises(UserError, match=r"small: v01_compact_wy.py has 0 long string constants .*\(CUDA\)"):
        adapt.read_source("small", "v01_compact_wy")


def test_a_source_is_told_which_class_it_serves(monkeypatch):
    monkeypatch.setattr(rules, "SETTINGS", {"all_shapes": {"small": {"TERMS?": "1"}},
                                            "fp32_class": {"small": {"TERMS": "2"}}})
    source = family("constexpr int TERMS = 7;\nint geqrf_small() { return TERMS; }")
    for kind, terms in ("all_shapes", 1), ("fp32_class", 2):
        assert f"constexpr int TERMS = {terms};" in adapt.adapt("small", source, PRELUDE, kind).cuda
    other = family("int geqrf_small() { return 7; }")
    assert any("has no TERMS to set" in note for note in adapt.adapt("small", other, PRELUDE).notes)
    with pytest.raises(UserError, match=r"small: its file has `constexpr ... TERMS = ...;` 0 times, .* fp32_class"):
        adapt.adapt("small", other, PRELUDE, "fp32_class")


@pytest.mark.parametrize("family, change, says", [
    ("mid", {"file": "v999_no"}, "v999_no is not n1024's file"), ("n512", {"least": 384}, "does not lie behind 384"),
    ("large", {"most": 1000}, "n from 1537 to 1000")])
def test_a_spec_that_contradicts_itself(family, change, says):
    families = spec.ALL_SHAPES.families
    wrong = {**families, family: dataclasses.replace(families[family], **change)}
    with pytest.raises(UserError, match=says):
        page.check(dataclasses.replace(spec.ALL_SHAPES, families=wrong))


# ---------------------------------------------------------------- reading C++

def test_canonical_looks_through_names_and_layout():
    one = cxx.canonical("DEVICE int f(int a, int b) { return a + 2 * b; }")
    assert one == cxx.canonical("DEVICE int f(unsigned x,\n  int y) {  // twice\n  return x + 2 * y;\n}")
    assert one != cxx.canonical("DEVICE int f(int a, int b) { return b + 2 * a; }")
    assert one != cxx.canonical("DEVICE int f(int a, int b) { return a + 3 * b; }")


@pytest.mark.parametrize("text, facts, left", [
    ("if (A) {\n  f();\n}\ng();\n", {"A": True}, "f();\ng();\n"),
    ("if (A) f();\nelse g();\n", {"A": False}, "g();\n"),
    ("if (A && b) f();\n", {"A": True}, "if (b) f();\n"),
    ("if (A && b) f();\ng();\n", {"A": False}, "g();\n"),
    ("if (!A) f();\ng();\n", {"A": True}, "g();\n"),
    ("if (x && (A || b) && c) f();\n", {"A": True}, "if (x && c) f();\n"),
    ("if (x && !A) f();\nelse if (y) g();\n", {"A": True}, "if (y) g();\n"),
    ("x = A ? f(1, 2) : g;\n", {"A": True}, "x = f(1, 2);\n"),
    ("f(A ? b ? 1 : 2 : 3, 4);\n", {"A": False}, "f(3, 4);\n"),
    ("x = 2 * (A ? y : 1);\n", {"A": True}, "x = 2 * y;\n"),
    ("x = B == A ? 1 : 2;\n", {"A": True}, "x = B == A ? 1 : 2;\n"),
    ("x = A && y;\n", {"A": True}, "x = y;\n"), ("x = A || y;\n", {"A": False}, "x = y;\n"),
    ("{ int h; if (A) { int x; f(x); } }\n", {"A": True}, "{ int h; int x; f(x); }\n"),
    ("{ int x; if (A) { int x; f(x); } }\n", {"A": True}, "{ int x; { int x; f(x); } }\n"),
    ("if (x) {\n  f();\n} else if (A) {\n  g();\n}\nh();\n", {"A": False}, "if (x) {\n  f();\n}\nh();\n"),
    ("if (x) f();\nelse if (A) { g(); h(); }\n", {"A": True}, "if (x) f();\nelse { g(); h(); }\n"),
    ("for (;;)\n  if (A) { g(); h(); }\n", {"A": True}, "for (;;)\n  { g(); h(); }\n"),
    ("for (;;) if (A) g();\nh();\n", {"A": False}, "for (;;) ;\nh();\n"),
    ("if (x) f();\nelse if (A) g();\nelse h();\n", {"A": False}, "if (x) f();\nelse h();\n"),
    ("x = y < A && z; // if (A) so\n", {"A": True}, "x = y < A && z; // if (A) so\n")])
def test_fold(text, facts, left):
    assert adapt.fold(text, facts) == left


def test_unused_definitions_go_one_after_the_other():
    pieces = cxx.parts("int a() { return 1; }\nint b() { return a(); }\nint c() { return 2; }\n"
                       "constexpr int D = 1, E = 2;\n")
    kept, gone = adapt.used_only(pieces, {"c", "E"})
    assert [p.name for p in kept if p.kind == "item"] == ["c", "D"] and sorted(gone) == ["a", "b"]
