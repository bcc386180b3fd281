"""What is read of a large entity table, measured in a process of its own."""

import json
import subprocess
import sys
import textwrap

import pytest
import torch

ROWS, WIDTH = 500_000, 256
MIB = 2**20

CODE = """
    import sys
    from pathlib import Path
    from spacy_luke.checkpoint import read_checkpoint
    from spacy_luke.entity_vocab import EntityVocab

    def resident(name):
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return int(fields[name].split()[0]) * 1024

    def peak(function):
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before = resident("VmRSS")
        result = function()
        return resident("VmHWM") - before, result

    vocabulary, _ = peak(lambda: EntityVocab.from_file(Path(sys.argv[1])))
    whole, checkpoint = peak(lambda: read_checkpoint(sys.argv[1], entities=sys.argv[2]))
    print(len(checkpoint.tensors["encoder.entities.table.weight"]), vocabulary, whole)
"""


def measure(folder, entities):
    """Rows of the table, and how far resident memory rises, mapped pages of files included: while the vocabulary is
    read on its own, and while the checkpoint is."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CODE), str(folder), entities],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@pytest.fixture(scope="module", params=["model.safetensors", "pytorch_model.bin"])
def large_folder(request, tmp_path_factory):
    from safetensors.torch import save_file

    from spacy_luke.checkpoint.configs import luke_config
    from spacy_luke.checkpoint.names import encoder_shapes, luke_names

    folder = tmp_path_factory.mktemp("large")
    data = {
        "model_type": "luke",
        "vocab_size": 9,
        "entity_vocab_size": ROWS,
        "hidden_size": 8,
        "entity_emb_size": WIDTH,
    }
    data.update(num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, max_position_embeddings=8)
    config = luke_config(data)
    names = {ours: theirs for theirs, ours in luke_names(config, root="luke.").items()}
    tensors = {names[ours]: torch.ones(shape) for ours, shape in encoder_shapes(config).items()}
    (folder / "config.json").write_text(json.dumps(data))
    titles = ["[PAD]", "[UNK]", "[MASK]", *(f"Entity {i}" for i in range(ROWS - 3))]
    (folder / "entity_vocab.json").write_text(json.dumps({title: i for i, title in enumerate(titles)}))
    if request.param.endswith("safetensors"):
        save_file(tensors, folder / request.param)
    else:
        torch.save(tensors, folder / request.param)
    yield folder
    (folder / request.param).unlink()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_special_entities_read_no_other_rows(large_folder):
    table = ROWS * WIDTH * 4
    rows, vocabulary, whole = measure(large_folder, "special")
    print(f"special: rises by {whole / MIB:.0f} MiB, the vocabulary alone by {vocabulary / MIB:.0f} MiB")
    assert rows == 3
    assert whole < vocabulary + 32 * MIB  # the table has 488 MiB
    rows, vocabulary, whole = measure(large_folder, "all")
    print(f"all: rises by {whole / MIB:.0f} MiB, the vocabulary alone by {vocabulary / MIB:.0f} MiB")
    assert rows == ROWS
    assert whole > 2 * table  # the measurement sees the mapped pages and the copy
