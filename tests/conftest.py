"""What several test files share: submissions written on the spot, and no GPU unless a test asks for it."""
import textwrap

import pytest


@pytest.fixture
def submission(tmp_path):
    """submission("name", body) writes a file whose custom_kernel(a) has this body."""
    def write(name, body, top=""):
        path = tmp_path / f"{name}.py"
        path.write_text("#!POPCORN leaderboard qr_v2\n#!POPCORN gpu B200\nimport torch\n" + textwrap.dedent(top)
                        + "def custom_kernel(a):\n" + textwrap.indent(textwrap.dedent(body), "    "))
        return path
    return write


def pytest_collection_modifyitems(config, items):
    import torch
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)
