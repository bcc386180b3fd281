import pickle

import numpy as np
import pytest
import torch

from spacy_luke.kge.state_dicts import read_entity_table

ROWS = torch.arange(6.0).view(3, 2)


@pytest.mark.parametrize(
    "state",
    [
        {"ent_embeddings.weight": ROWS, "rel_embeddings.weight": ROWS[:1], "zero_const": torch.zeros(1)},
        {"model_state_dict": {"entity_representations.0._embeddings.weight": ROWS, "x": ROWS}, "epoch": 3},
        {"state_dict": {"table": ROWS.bfloat16()}},
        {"table": torch.nn.Parameter(ROWS)},
    ],
)
@pytest.mark.parametrize("new", [True, False])
def test_read(tmp_path, state, new):
    torch.save(state, tmp_path / "m.pt", _use_new_zipfile_serialization=new)
    assert np.array_equal(read_entity_table(tmp_path / "m.pt"), ROWS)


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit('run')",)


def test_nothing_is_run(tmp_path):
    torch.save({"x": Trap()}, tmp_path / "m.pt")
    (tmp_path / "n.pt").write_bytes(pickle.dumps(Trap()))
    (tmp_path / "o.pt").write_bytes(b"")
    for name in ("m.pt", "n.pt", "o.pt"):
        with pytest.raises(ValueError, match=r"holds more than tensors, which could run code"):
            read_entity_table(tmp_path / name)


def test_errors(tmp_path):
    with pytest.raises(ValueError, match=r"no such file"):
        read_entity_table(tmp_path / "absent.pt")
    for state, message in [
        ([ROWS], "holds a list"),
        ({"a": ROWS, "b": ROWS}, "or a single tensor of shape"),
        ({"a": ROWS[0]}, "or a single tensor of shape"),
    ]:
        torch.save(state, tmp_path / "m.pt")
        with pytest.raises(ValueError, match=message):
            read_entity_table(tmp_path / "m.pt")
