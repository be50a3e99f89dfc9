"""roofline: counts against their definitions, floors against arithmetic done by hand."""
import argparse
import json

import pytest

from harness import roofline
from harness.cases import load_task
from harness.errors import UserError

H200 = roofline.known("NVIDIA H200")


def test_flops_are_those_of_the_algorithm():
    """4/3 n^3 is the leading term of what Householder QR does: for column j of m = n - j rows, a norm (2 m), a scaling
    (m) and for each of the m - 1 columns to its right a dot and an axpy (4 m), taken from the loop itself."""
    n = 400
    counted = sum(2 * m + m + 4 * m * (m - 1) for m in range(n, 0, -1))
    assert roofline.flops(3, n) == pytest.approx(3 * counted, rel=0.01)


def test_traffic_is_one_read_and_one_write():
    a, h, tau = 640 * 512 * 512 * 4, 640 * 512 * 512 * 4, 640 * 512 * 4
    assert roofline.traffic(640, 512) == a + h + tau


def test_the_floor_is_the_longest_of_three():
    ns, bound = roofline.floor_ns(640, 512, H200)
    assert bound == "memory" and ns == pytest.approx(1.3435e9 / 4.2e12 * 1e9, rel=1e-3)  # 0.32 ms
    assert roofline.floor_ns(2, 4096, H200)[1] == "chain"
    assert roofline.floor_ns(60, 1024, H200)[1] == "products"
    slow = roofline.Ceilings(4.2e12, 1e12, 1.98e9, "", "")
    assert roofline.floor_ns(640, 512, slow) == (pytest.approx(4 / 3 * 640 * 512**3 / 1e3), "products")


@pytest.mark.parametrize("case", load_task().benchmarks, ids=lambda c: c.ident)
def test_no_floor_lies_above_the_goals_of_the_project(case):
    """The moonshots of spec/kernels.md on the H200, in ms: a floor above what is aimed at would be none."""
    moonshot = {32: 0.006, 176: 0.050, 352: 0.12, 512: 1.0, 1024: 0.9, 2048: 1.0, 4096: 1.7}[case.n]
    assert roofline.floor_ns(case.batch, case.n, H200)[0] / 1e6 < moonshot


def test_a_spec_line_gives_the_batch_that_was_run():
    case = load_task().benchmarks[7]
    assert roofline.shape(case.spec) == (640, 512)
    assert roofline.shape(case.cut(33).spec) == (33, 512)


@pytest.mark.parametrize(("device", "bandwidth"), [
    ("NVIDIA H200", 4.2e12), ("NVIDIA B200", 8e12), ("NVIDIA H100 80GB HBM3", 3.35e12), ("NVIDIA H100 PCIe", 2.0e12),
    ("NVIDIA A100-SXM4-80GB", 2.039e12), ("NVIDIA GeForce RTX 4090", 1.008e12)])
def test_known_cards_say_how_their_figures_are_known(device, bandwidth):
    c = roofline.known(device)
    assert c.bandwidth == bandwidth and c.mark in ("measured", "datasheet") and c.source


def test_a_cpu_and_an_unknown_card_have_none(tmp_path):
    assert roofline.ceilings("CPU (Intel, 2 threads)", tmp_path / "none") is None
    assert roofline.ceilings("NVIDIA T4", tmp_path / "none") is None


def test_measured_ceilings_come_first_and_stay_beside_others(tmp_path):
    path = tmp_path / "c.json"
    mine = roofline.Ceilings(1e12, 2e12, 1e9, "measured", "here")
    roofline.save("NVIDIA H200", mine, path, fp32=3e12)
    roofline.save("NVIDIA T4", mine, path)
    assert roofline.ceilings("NVIDIA H200", path) == roofline.ceilings("NVIDIA T4", path) == mine
    assert json.loads(path.read_text())["devices"]["NVIDIA H200"]["fp32"] == 3e12
    path.write_text("torn")
    assert roofline.ceilings("NVIDIA H200", path) == H200


def test_ceilings_without_a_gpu_say_so_and_exit_3():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    parser = argparse.ArgumentParser()
    roofline.register(parser.add_subparsers())
    args = parser.parse_args(["ceilings"])
    with pytest.raises(UserError, match="no CUDA device") as e:
        args.run(args)
    assert e.value.exit_code == 3


@pytest.mark.gpu
def test_ceilings_of_this_card_are_of_the_order_of_the_known_ones(tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    monkeypatch.setattr("harness.roofline.CEILINGS_FILE", tmp_path / "c.json")
    assert roofline.run_ceilings(argparse.Namespace()) == 0
    name = torch.cuda.get_device_name()
    measured, known = roofline.ceilings(name), roofline.known(name)
    assert measured.mark == "measured" and "TB/s" in capsys.readouterr().out
    if known:
        assert 0.5 < measured.bandwidth / known.bandwidth < 1.3
