import pytest

from tests.checkpoint.small import make_small_luke, write_small


@pytest.fixture
def luke_folder(tmp_path):
    data, tensors = make_small_luke()
    return write_small(tmp_path / "luke", data, tensors)
