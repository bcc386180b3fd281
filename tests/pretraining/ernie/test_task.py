"""The task's losses: those of the reference, from its raw records on; candidates, fresh heads, what is written."""

import json
import random

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_luke.checkpoint.ernie import read_ernie, write_ernie
from spacy_luke.pretraining.ernie.corruption import collate
from spacy_luke.pretraining.ernie.records import from_record
from spacy_luke.pretraining.ernie.task import load_pretraining, to_checkpoint
from spacy_luke.pretraining.measures import average

LOSSES = ("mlm", "nsp", "dea")


@pytest.fixture(scope="module")
def golden(shared, make_vectors, tmp_path_factory):
    """The case's checkpoint as a folder, its records, vectors, outputs and tolerance."""
    path = shared("golden/ernie_pretraining.safetensors")
    tensors, data = load_file(path), json.loads(path.with_suffix(".json").read_text("utf8"))
    folder = tmp_path_factory.mktemp("golden")
    (folder / "ernie_config.json").write_text(json.dumps(data["config"]), encoding="utf8")
    save_file(
        {k.removeprefix("weights/"): x.clone() for k, x in tensors.items() if k.startswith("weights/")},
        folder / "model.safetensors",
    )
    table = tensors["inputs/entity_table"][1:].numpy()
    return {
        "folder": folder,
        "vectors": make_vectors([f"Q{i}" for i in range(len(table))], matrix=table),
        "records": tensors["inputs/record"].numpy(),
        "seed": data["config"]["collate_random_seed"],
        "kinds": read_ernie(folder).config.layer_kinds,
        "outputs": {k.removeprefix("outputs/"): x for k, x in tensors.items() if k.startswith("outputs/")},
        "tolerance": max(1e-5, 10 * data["float32_vs_float64_max_abs_diff"]),
    }


def make_batch(golden, *, seed=None, **changes):
    instances = [from_record(record, name=f"record {i}") for i, record in enumerate(golden["records"])]
    rng = random.Random(golden["seed"] if seed is None else seed)
    return collate(instances, golden["vectors"], rng=rng, **changes)


def errors(golden, model, **changes):
    with torch.no_grad():
        loss, measured = model.eval()(make_batch(golden, **changes))
    found = {name: measured[name][0] for name in LOSSES} | {"total": loss}
    return {name: abs(float(value - golden["outputs"][f"{name}_loss"])) for name, value in found.items()}


@pytest.fixture
def model(golden):
    return load_pretraining(read_ernie(golden["folder"]), seed=0)


def test_golden_losses(golden, model):
    assert max(errors(golden, model).values()) < golden["tolerance"]


@pytest.mark.parametrize(
    "changes", [{"seed": "another"}, {"replaced": 0.0, "removed": 0.0}, {"candidates": "sequence"}]
)
def test_golden_losses_see_another_corruption(golden, model, changes):
    corrupted = make_batch(golden).knowledge.vectors_EH
    if changes.get("seed") == "another":
        batches = {seed: make_batch(golden, seed=seed).knowledge.vectors_EH for seed in range(50)}
        changes = {"seed": next(seed for seed, x in batches.items() if not torch.equal(x, corrupted))}
    elif "removed" in changes and torch.equal(make_batch(golden, **changes).knowledge.vectors_EH, corrupted):
        changes = {"removed": 1.0}  # these random numbers kept all
    assert errors(golden, model, **changes)["dea"] > 10 * golden["tolerance"]


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("heads.lm_head.norm.weight", "mlm"),
        ("heads.nsp_head.bias", "nsp"),
        ("heads.entity_head.dense.weight", "dea"),
        ("encoder.layers.{fused}.entity_up.weight", "dea"),
        ("encoder.pooler.weight", "nsp"),
    ],
)
def test_golden_losses_see_a_turned_tensor(golden, model, name, loss):
    parameter = dict(model.named_parameters())[name.format(fused=golden["kinds"].index("mix"))]
    with torch.no_grad():
        parameter.copy_(parameter.flip(-1))
    assert errors(golden, model)[loss] > 10 * golden["tolerance"]


def test_measures(golden, model):
    """Accuracies and chance from the reference's own logits."""
    batch = make_batch(golden)
    _, measured = model.eval()(batch)
    real = torch.tensor([len(x) for x in batch.windows.pieces_N.split(list(batch.windows.lengths))])
    dea = torch.cat([row[:n] for row, n in zip(golden["outputs"]["dea_logits"], real)])[batch.linked_A]
    hits = (dea.argmax(-1) == batch.gold_A).float()
    assert [float(x) for x in measured["dea_acc"]] == [float(hits.sum()), len(hits)]
    kinds = ("kept", "replaced", "removed")
    for kind, name in enumerate(kinds):
        assert float(measured[f"dea_acc_{name}"][0]) == float(hits[batch.kinds_A == kind].sum())
    assert sum(int(measured[f"dea_acc_{name}"][1]) for name in kinds) == len(hits)
    chance, count = measured["dea_chance"]
    assert float(chance / count) == pytest.approx(1 / (len(batch.candidates_CH) - 1))


def test_candidates_of_the_sequence(golden, model):
    """A window with one entity always finds it; chance follows the windows."""
    batch = make_batch(golden, candidates="sequence")
    loss, measured = model.eval()(batch)
    assert torch.isfinite(loss)
    assert float(measured["dea_chance"][0]) == pytest.approx(float((1 / batch.allowed_AC.sum(-1)).sum()))
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_which_parameters_have_no_gradient(golden, model):
    """The entity outputs of the last layer alone, which nothing reads: the original leaves them out of its optimizer.

    A "sim" layer writes none: it is the last of the others."""
    loss, _ = model.train()(make_batch(golden))
    loss.backward()
    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    last = max(i for i, kind in enumerate(golden["kinds"]) if kind != "sim")
    assert without == {
        f"encoder.layers.{last}.{name}" for name in ("entity_down.weight", "entity_down.bias", "entity_output_norm.weight", "entity_output_norm.bias")  # noqa: E501
    }  # fmt: skip


def test_no_entity_in_the_batch(golden, model):
    golden = {**golden, "records": golden["records"].copy()}
    size = (golden["records"].shape[1] - 1) // 6
    golden["records"][:, 4 * size : 5 * size] = -1
    golden["records"][:, 5 * size : 6 * size] = 0
    loss, measured = model.train()(make_batch(golden))
    loss.backward()
    assert float(measured["dea"][0]) == 0
    assert float(measured["dea_acc"][1]) == 0


def test_written_and_read(golden, model, tmp_path):
    """The original's layout, and the same losses."""
    started = read_ernie(golden["folder"])
    write_ernie(to_checkpoint(model.state_dict(), started), tmp_path / "model")
    again = read_ernie(tmp_path / "model")
    assert again.task == "pretraining"
    assert {name: x.tolist() for name, x in again.tensors.items()} == {
        name: x.tolist() for name, x in started.tensors.items()
    }
    assert max(errors(golden, load_pretraining(again, seed=1)).values()) < golden["tolerance"]


def test_fresh_heads(golden):
    """What a checkpoint lacks is fresh, by the seed, and said."""
    checkpoint = read_ernie(golden["folder"])
    for name in [name for name in checkpoint.tensors if name.startswith(("entity_head.", "nsp_head."))]:
        del checkpoint.tensors[name]
    first, second, other = (load_pretraining(checkpoint, seed=seed) for seed in (0, 0, 1))
    weights = [model.heads.entity_head.dense.weight for model in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert float(weights[0].detach().std()) == pytest.approx(0.02, rel=0.1)
    assert "initialised ['entity_head.dense.bias'" in checkpoint.report[-1]
    paper = load_pretraining(checkpoint, seed=0, transform=False)
    assert not any(name.startswith("heads.entity_head.norm") for name in paper.state_dict())


def test_an_encoder_that_is_not_whole(golden):
    checkpoint = read_ernie(golden["folder"])
    del checkpoint.tensors["encoder.pooler.bias"]
    with pytest.raises(ValueError, match=r"lacks \['encoder.pooler.bias'\] of the encoder"):
        load_pretraining(checkpoint, seed=0)


def test_averages_over_batches(golden, model):
    model.eval()
    batches = [make_batch(golden, seed=seed) for seed in (1, 2)]
    averages = average(model, batches=batches)
    parts = [model(batch)[1]["dea_acc"] for batch in batches]
    assert averages["dea_acc"] == pytest.approx(float(sum(p[0] for p in parts) / sum(p[1] for p in parts)))


def test_without_dea(golden):
    """The ablation learns from the other two losses, and measures dEA all the same."""
    model = load_pretraining(read_ernie(golden["folder"]), seed=0, dea=False)
    loss, measured = model.eval()(make_batch(golden))
    wanted = golden["outputs"]["mlm_loss"] + golden["outputs"]["nsp_loss"]
    assert abs(float(loss.detach() - wanted)) < golden["tolerance"]
    assert abs(float(measured["dea"][0] - golden["outputs"]["dea_loss"])) < golden["tolerance"]
    loss.backward()
    assert model.heads.entity_head.dense.weight.grad is None
