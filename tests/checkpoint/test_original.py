"""What the original code's fine-tuning saves: weights alone, with rows that nothing names."""

import json
import shutil
import tarfile

import pytest
import torch
from safetensors.torch import save_file

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.names import archive_names
from spacy_luke.checkpoint.sources import make_checkpoint_loader
from tests.checkpoint.fine_tuned import (
    HEADS,
    make_huggingface,
    make_original,
    noise,
    read_golden,
    run_encoder,
    write_original,
    write_vocab,
    write_wordpiece,
)

WORDS, ENTITIES = "encoder.words.piece.weight", "encoder.entities.table.weight"
GOLDEN = {
    "typing": ("entity_classification", 1),
    "relation": ("entity_pair_classification", 2),
    "record": ("cloze", 2),
    "squad": ("question_answering", 1),
    "ner": ("span_classification", 3),
    "ner_no_word": ("span_classification", 1),
    "ner_no_entity": ("span_classification", 2),
}


def features_of(case, checkpoint, inputs):
    """What the head of a golden case reads, (B, units, features)."""
    words, entities = run_encoder(checkpoint, inputs)
    if case == "typing":
        return entities[:, :1]
    if case == "relation":
        return entities.flatten(1)[:, None]
    if case == "record":
        return torch.cat([entities[:, :1].expand_as(entities[:, 1:]), entities[:, 1:]], -1)
    if case == "squad":
        return words
    ends = [
        words.gather(1, inputs[f"entity_{end}_positions"][..., None].expand(-1, -1, words.shape[-1]))
        for end in ("start", "end")
    ]
    return torch.cat([*([] if case == "ner_no_word" else ends), *([] if case == "ner_no_entity" else [entities])], -1)


def logits_of(case, checkpoint, inputs):
    """Logits as the reference gives them, and where they count."""
    head = "qa_outputs" if case == "squad" else "classifier"
    features = features_of(case, checkpoint, inputs)
    logits = features @ checkpoint.tensors[f"head.{head}.weight"].T
    if f"head.{head}.bias" in checkpoint.tensors:
        logits = logits + checkpoint.tensors[f"head.{head}.bias"]
    real = inputs["word_attention_mask" if case == "squad" else "entity_attention_mask"].bool()
    if case in ("typing", "relation"):
        return logits[:, 0], torch.ones(len(logits), dtype=torch.bool)
    return logits.squeeze(-1), real[:, 1:] if case == "record" else real


def error_of(case, checkpoint, inputs, outputs):
    logits, real = logits_of(case, checkpoint, inputs)
    expected = (
        torch.stack([outputs["start_logits"], outputs["end_logits"]], -1) if case == "squad" else outputs["logits"]
    )
    return float((logits - expected)[real].abs().max())


@pytest.mark.parametrize("case", GOLDEN)
def test_golden_heads(shared, tmp_path, case):
    metadata, state, inputs, outputs, tolerance = read_golden(shared, case)
    checkpoint = read_checkpoint(write_original(tmp_path / "a", metadata, state))
    task, width = GOLDEN[case]
    assert checkpoint.task == task
    table = archive_names(checkpoint.config)
    assert set(checkpoint.tensors) == {table[name] for name in state}
    assert all(torch.equal(checkpoint.tensors[table[name]], x) for name, x in state.items())
    if case != "squad":
        assert checkpoint.tensors["head.classifier.weight"].shape[1] == width * checkpoint.config.hidden_size
        kept = ["[PAD]", "[MASK]", "[MASK2]"][: 3 if case == "relation" else 2]
        assert checkpoint.entities.titles() == kept
    known = ["NIL", "MISC", "PER", "ORG", "LOC"]  # the original's NER has these alone
    named = case.startswith("ner") and len(state["classifier.weight"]) == len(known)
    assert checkpoint.labels == (known if named else None)
    assert error_of(case, checkpoint, inputs, outputs) <= tolerance


def test_faults_are_seen(shared, tmp_path):
    """The comparison fails when two tensors are swapped, and when the rows that fine-tuning added are."""
    metadata, state, inputs, outputs, tolerance = read_golden(shared, "relation")
    swaps = [
        ("encoder.layer.1.attention.self.w2e_query.weight", "encoder.layer.1.attention.self.e2w_query.weight"),
        ("encoder.layer.0.attention.self.e2e_query.bias", "encoder.layer.0.attention.self.e2w_query.bias"),
        ("embeddings.position_embeddings.weight", "entity_embeddings.position_embeddings.weight"),
    ]
    for one, two in swaps:
        swapped = {**state, one: state[two], two: state[one]}
        checkpoint = read_checkpoint(write_original(tmp_path / "a", metadata, swapped))
        assert error_of("relation", checkpoint, inputs, outputs) > 10 * tolerance, one
    for name in ("entity_embeddings.entity_embeddings.weight", "classifier.weight"):
        checkpoint = read_checkpoint(write_original(tmp_path / "a", metadata, {**state, name: state[name].flip(0)}))
        assert error_of("relation", checkpoint, inputs, outputs) > 10 * tolerance, name


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", HEADS)
def test_archive_with_the_base_tokenizer(tmp_path, case, packed):
    """Added rows get their pieces, missing markers and special entities become copies, and all can be exported."""
    metadata, state = make_original(case)
    folder = write_original(tmp_path / "a", metadata, state)
    if packed:
        with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
            for path in folder.iterdir():
                archive.add(path, path.name)
        shutil.rmtree(folder)
        folder = tmp_path / "a.tar.gz"
    checkpoint = read_checkpoint(folder, tokenizer=write_wordpiece(tmp_path / "base", 40))
    task, _, _, labels, _, added, kept = HEADS[case]
    assert checkpoint.task == task
    before, after = state["embeddings.word_embeddings.weight"], checkpoint.tensors[WORDS]
    pieces = {
        "record": {"[HIGHLIGHT]": 40, "[PLACEHOLDER]": 41, "<ent>": 42, "<ent2>": 6},
        "relation": {"<ent>": 40, "<ent2>": 41},
        "typing": {"<ent>": 40, "<ent2>": 6},
    }.get(case, {"<ent>": 5, "<ent2>": 6})
    assert len(after) == len(checkpoint.tokenizer) == checkpoint.config.vocab_size == 40 + len(pieces)
    assert torch.equal(after[: 40 + added], before)
    for piece, row in pieces.items():
        assert torch.equal(after[checkpoint.tokenizer.piece_id(piece)], before[row]), piece
    special = checkpoint.entities.special_rows()
    assert set(special) == {"[PAD]", "[UNK]", "[MASK]", "[MASK2]"}
    table, theirs = checkpoint.tensors[ENTITIES], state["entity_embeddings.entity_embeddings.weight"]
    assert torch.equal(table[: len(theirs)], theirs)
    mask = special["[MASK]"]
    assert mask == (1 if kept else 2)
    assert all(torch.equal(table[special[name]], theirs[mask]) for name in special if special[name] >= len(theirs))
    assert sum("initialised the entity" in line for line in checkpoint.report) == {2: 2, 3: 1, None: 1}[kept]
    assert sum("read row" in line for line in checkpoint.report) == added
    write_huggingface(checkpoint, tmp_path / "out")
    again = read_checkpoint(tmp_path / "out")
    assert again.task == task
    assert set(again.tensors) == set(checkpoint.tensors)
    assert all(torch.equal(again.tensors[name], x) for name, x in checkpoint.tensors.items())
    if "head.classifier.weight" in checkpoint.tensors and case not in ("ner", "record"):
        assert again.labels == [f"LABEL_{i}" for i in range(labels)]


@pytest.mark.product
@pytest.mark.parametrize("source", ["folder", "file", "archive"])
@pytest.mark.parametrize("base", ["original", "huggingface"])
@pytest.mark.parametrize("case", HEADS)
def test_weights_alone_with_their_base(tmp_path, case, base, source):
    """From a base in Hugging Face's layout too, whose tokenizer has the markers in other places."""
    metadata, state = make_original(case)
    (tmp_path / "run").mkdir()
    torch.save(state, tmp_path / "run" / "pytorch_model.bin")
    (tmp_path / "run" / "results.json").write_text("{}")
    place = {"folder": tmp_path / "run", "file": tmp_path / "run" / "pytorch_model.bin"}.get(source)
    if source == "archive":
        place = tmp_path / "run.tar"
        with tarfile.open(place, "w") as archive:
            archive.add(tmp_path / "run" / "pytorch_model.bin", "run/pytorch_model.bin")
    expected = read_checkpoint(
        write_original(tmp_path / "whole", metadata, state), tokenizer=write_wordpiece(tmp_path / "tokenizer", 40)
    )
    if base == "original":
        write_original(tmp_path / "base", metadata, {"unused": torch.zeros(1)})
        checkpoint = read_checkpoint(place, base=tmp_path / "base", tokenizer=tmp_path / "tokenizer")
    else:
        data, tensors = make_huggingface("LukeForMaskedLM", width=1, labels=1, bias=False, entity_vocab_size=9)
        folder = write_small(tmp_path / "base", {**data, "vocab_size": 42}, tensors, entities=9)
        write_wordpiece(folder, 42, markers=("<ent>", "<ent2>"))
        checkpoint = read_checkpoint(place, base=folder)
        assert checkpoint.config == expected.config
    assert checkpoint.task == expected.task
    assert set(checkpoint.tensors) == set(expected.tensors)
    for piece in ("<ent>", "<ent2>", "[HIGHLIGHT]", "[PLACEHOLDER]", "@", "w3"):
        one, two = (x.tokenizer.piece_id(piece) for x in (checkpoint, expected))
        assert (one is None) == (two is None), piece
        if one is not None:
            assert torch.equal(checkpoint.tensors[WORDS][one], expected.tensors[WORDS][two]), piece
    for name, tensor in expected.tensors.items():
        assert name == WORDS or torch.equal(checkpoint.tensors[name], tensor), name


def write_small(folder, data, tensors, *, entities):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(data))
    save_file(tensors, folder / "model.safetensors")
    write_vocab(folder, entities)
    return folder


def test_labels(tmp_path):
    metadata, state = make_original("typing")
    folder = write_original(tmp_path / "a", metadata, state)
    names = ["person", "place", "time", "group"]
    assert read_checkpoint(folder).labels is None
    assert read_checkpoint(folder, labels=names).labels == names
    for wrong, message in (
        (names[:3], "has 4 rows, so 4 different labels.* but 3 are given"),
        ([*names[:3], "time"], r"4 are given: .*'time'\], of which \['time'\] are repeated"),
        (["", *names[:3]], "4 different labels"),
    ):
        with pytest.raises(ValueError, match=message):
            read_checkpoint(folder, labels=wrong)
    (folder / "labels.txt").write_text("a\nb\nc\nd\n")
    assert read_checkpoint(folder).labels == ["a", "b", "c", "d"]
    assert make_checkpoint_loader(str(folder), labels=names)().labels == names
    (folder / "labels.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match="but 2 are given"):
        read_checkpoint(folder)
    metadata, state = make_original("squad")
    with pytest.raises(ValueError, match="no classifier of labels"):
        read_checkpoint(write_original(tmp_path / "b", metadata, state), labels=names)


def test_only_special_entities(tmp_path):
    for case in HEADS:
        metadata, state = make_original(case)
        folder = write_original(tmp_path / case, metadata, state)
        whole = read_checkpoint(folder)
        lite = read_checkpoint(folder, entities="special")
        rows = [whole.entities.special_rows()[title] for title in lite.entities.titles()]
        assert torch.equal(lite.tensors[ENTITIES], whole.tensors[ENTITIES][rows])
        assert len(rows) == (HEADS[case][-1] or 3)


def test_tokenizers_that_do_not_fit(tmp_path):
    metadata, state = make_original("record")
    folder = write_original(tmp_path / "a", metadata, state)
    for size, markers in ((39, ()), (41, ()), (41, ("<ent>", "<ent2>"))):
        small = write_wordpiece(tmp_path / f"t{size}{len(markers)}", size, markers=markers)
        with pytest.raises(
            ValueError, match=r"\['\[HIGHLIGHT\]', .*expected a tokenizer of 40 pieces.*has (39|41) pieces"
        ):
            read_checkpoint(folder, tokenizer=small)
    between = write_wordpiece(tmp_path / "between", 41)
    text = (between / "vocab.txt").read_text().replace("w3\n", "<ent>\n")
    (between / "vocab.txt").write_text(text)
    (between / "special_tokens_map.json").write_text('{"additional_special_tokens": ["<ent>"]}')
    with pytest.raises(ValueError, match=r"has 40 pieces besides the markers \['<ent>'\]"):
        read_checkpoint(folder, tokenizer=between)


@pytest.mark.slow
@pytest.mark.parametrize("case", HEADS)
def test_damage(tmp_path, case):
    metadata, state = make_original(case)
    head = HEADS[case][1]
    folder = tmp_path / "a"
    for name in state:
        rest = {key: x for key, x in state.items() if key != name}
        with pytest.raises(
            ValueError,
            match=r"lacks 1 tensors|has \d+ columns and no bias|no place for|word embeddings|must have the shape",
        ):
            read_checkpoint(write_original(folder, metadata, rest))
    for extra, message in (
        ("typing2.weight", "1 tensors that its config does not account for: 'typing2.weight'"),
        ("encoder.layer.2.output.dense.bias", "does not account for"),
        ("lm_head.dense.weight", "lacks 4 tensors"),
    ):
        with pytest.raises(ValueError, match=message):
            read_checkpoint(write_original(folder, metadata, {**state, extra: torch.zeros(16)}))
    for name in (f"{head}.weight", "embeddings.word_embeddings.weight", "entity_embeddings.entity_embeddings.weight"):
        bad = state[name].clone()
        bad[0, 1] = float("nan")
        with pytest.raises(ValueError, match=rf"'{name}' must be finite.* row 0"):
            read_checkpoint(write_original(folder, metadata, {**state, name: bad}))
        with pytest.raises(ValueError, match=r"must have the shape|columns and|lacks|no place"):
            read_checkpoint(write_original(folder, metadata, {**state, name: state[name].T.contiguous()}))
        with pytest.raises(ValueError, match=r"must have the shape|columns and|lacks|no place"):
            read_checkpoint(write_original(folder, metadata, {**state, name: state[name][0]}))


def test_two_heads(tmp_path):
    metadata, state = make_original("typing")
    for other in ("scorer", "classifier"):
        both = {**state, f"{other}.weight": noise((1, 32), torch.Generator())}
        with pytest.raises(ValueError, match="are names of one tensor"):
            read_checkpoint(write_original(tmp_path / "a", metadata, both))
    both = {**state, "qa_outputs.weight": torch.zeros(2, 16), "qa_outputs.bias": torch.zeros(2)}
    with pytest.raises(ValueError, match="its task has no place"):
        read_checkpoint(write_original(tmp_path / "a", metadata, both))


def test_a_word_table_of_another_size(tmp_path):
    metadata, state = make_original("relation")
    name = "embeddings.word_embeddings.weight"
    folder = write_original(tmp_path / "a", metadata, {**state, name: state[name][:-1]})
    with pytest.raises(ValueError, match=r"must have the shape \(40, 16\) by the config, but it has \(41, 16\)"):
        read_checkpoint(folder)


def test_no_base(tmp_path):
    _, state = make_original("typing")
    torch.save(state, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"must hold config\.json.*give the model that it began with as base"):
        read_checkpoint(tmp_path)
    with pytest.raises(ValueError, match=r"Expected metadata\.json.*as base"):
        read_checkpoint(tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"Expected metadata\.json.*there is neither"):
        read_checkpoint(tmp_path, base=write_wordpiece(tmp_path / "base", 40))
    data, tensors = make_huggingface("LukeForEntityClassification", width=1, labels=3, bias=True)
    folder = write_small(tmp_path / "whole", data, tensors, entities=4)
    with pytest.raises(ValueError, match="has a config of its own; leave `base` out"):
        read_checkpoint(folder, base=folder)


def test_code_is_never_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("run",))

    metadata, state = make_original("typing")
    folder = write_original(tmp_path / "a", metadata, state)
    torch.save({**state, "typing.bias": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"is refused.*pickle that holds more than weights"):
        read_checkpoint(folder)
    torch.save({"model": state, "epoch": 3}, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="must hold a dict of tensors"):
        read_checkpoint(folder)
    torch.save(state, folder / "pytorch_model.bin")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(folder / "metadata.json", "metadata.json")
        archive.add(folder / "pytorch_model.bin", "../pytorch_model.bin")
    with pytest.raises(ValueError, match="is refused"):
        read_checkpoint(tmp_path / "a.tar.gz")
