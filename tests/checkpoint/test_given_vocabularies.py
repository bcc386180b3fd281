"""Weights without the files of a tokenizer, and a folder that has these: `tokenizer` of the loader, `--tokenizer`."""

import shutil

import pytest

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.pipelines.conversion import convert
from tests.tiny import ENTITIES, SENTENCES, make_checkpoint

LABELS = ["NIL", "PER", "LOC"]


@pytest.fixture
def places(tmp_path):
    """A folder with config and weights, and one with all the rest."""
    write_huggingface(make_checkpoint(labels=LABELS), tmp_path / "weights")
    (tmp_path / "rest").mkdir()
    for path in list((tmp_path / "weights").iterdir()):
        if path.name not in ("config.json", "model.safetensors"):
            path.rename(tmp_path / "rest" / path.name)
    return tmp_path / "weights", tmp_path / "rest"


@pytest.mark.parametrize("entities", ["all", "special"])
def test_both_vocabularies_are_taken(places, entities):
    checkpoint = read_checkpoint(places[0], tokenizer=places[1], entities=entities)
    assert checkpoint.tokenizer.piece_id("<ent>") == make_checkpoint().tokenizer.piece_id("<ent>")
    kept = [title for title in ENTITIES if entities == "all" or title.startswith("[")]
    assert checkpoint.entities.titles() == kept
    assert "found no tokenizer" not in checkpoint.report


def test_convert(places, tmp_path):
    nlp = convert(str(places[0]), tmp_path / "out", tokenizer=str(places[1])).nlp
    assert nlp(SENTENCES[0]).ents


def test_what_is_beside_the_weights_comes_first(places):
    (places[0] / "entity_vocab.json").write_text('{"[PAD]": 0, "[UNK]": 1, "[MASK]": 3, "Lome": 2}')
    assert read_checkpoint(places[0], tokenizer=places[1]).entities.titles() == ["[PAD]", "[UNK]", "Lome", "[MASK]"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {},
            "has no tokenizer. Expected its files .* Where they are not, name a folder .* or by --tokenizer of convert",
        ),
        ({"entities": "special"}, r"there is none. Give a folder .* \(tokenizer, --tokenizer\)"),
        ({"base": "REST"}, "has a config of its own; leave `base` out. Where it has no tokenizer, .* as `tokenizer`"),
    ],
)
def test_messages_name_the_way_out(places, tmp_path, settings, message):
    given = {key: str(places[1]) if value == "REST" else value for key, value in settings.items()}
    with pytest.raises(ValueError, match=message):
        convert(str(places[0]), tmp_path / "out", **given)


def test_a_tokenizer_of_its_own(places, tmp_path):
    shutil.copytree(places[1], places[0], dirs_exist_ok=True)
    with pytest.raises(ValueError, match="has a tokenizer of its own; leave `tokenizer` out"):
        read_checkpoint(places[0], tokenizer=places[1])
    added = places[0] / "added_tokens.json"
    added.write_text(added.read_text().replace("}", ', "<more>": 332}'))
    with pytest.raises(
        ValueError, match=r"or take them out of the folder, and name another folder .* \(tokenizer, --tok"
    ):
        read_checkpoint(places[0], tokenizer=places[1])


def test_an_entity_vocabulary_that_does_not_fit(places):
    (places[1] / "entity_vocab.json").write_text('{"[MASK]": 0, "Lome": 1, "x": 9}')
    with pytest.raises(
        ValueError, match="The entity vocabulary that is given has 10 rows, but the entity table only has"
    ):
        read_checkpoint(places[0], tokenizer=places[1])
