"""A LUKE that is divided among processes (FSDP)."""

import pytest
import torch

from spacy_luke.pretraining.luke.job import pretrain_luke
from spacy_luke.pretraining.saving import read_model
from tests.pretraining.luke.small_runs import SHORT, read_config, torchrun
from tests.pretraining.runs import reports


@pytest.mark.slow
def test_parts_in_bfloat16(folder, tmp_path):
    """FSDP with mixed precision, where layers are computed once more, too: about what one process learns."""
    changes = {**SHORT, "paths.weights": str(folder / "tiny"), "training.precision": "bfloat16"}
    changes |= {"task.pages": True, "training.recompute": True}
    changes |= {f"stages.{stage}.optimizer.learn_rate": 0.001 for stage in ("new", "all")}
    pretrain_luke(read_config(folder, **changes, **{"training.batch_size": 8}), tmp_path / "one", progress=False)
    torchrun(folder, tmp_path / "two", **changes, **{"training.parallel": "fsdp"})
    for stage in ("new", "all"):
        for two, one in zip(*(reports(tmp_path / n / stage) for n in ("two", "one")), strict=True):
            for name in ("mlm", "entity", "page"):
                assert two[name] == pytest.approx(one[name], rel=0.05), (stage, name)
        assert {x.dtype for x in read_model(tmp_path / "two" / stage / "resume").values()} == {torch.float32}
