"""Which settings follow from what the data are like, and that each of them is one, with a reason."""

import pytest
from confection import Config

from spacy_luke.quickstart.rules import Shape, Wanted, draft, fill, read_rules, tasks_of

NER = Shape(100, 20_000, mentions=500, ner_labels=4, longest_span=5)


def config(shape, *tasks, **wanted):
    return Config().from_str(draft(Wanted(tasks, **wanted), shape), interpolate=False)


def test_every_setting_has_a_reason_once():
    """Those that say nothing new follow one that does: paths of readers, and the dev corpus, which is as the other."""
    for section, setting, _, reason, _ in read_rules()["entries"]:
        silent = setting == "path" or section == "corpora.dev" or setting in ("sents_p", "sents_r")
        assert bool(reason) or silent, (section, setting)
        assert len(reason) < 130


def test_one_task_has_its_own_encoder():
    found = config(NER, "ner")
    assert found["nlp"]["pipeline"] == ["sentencizer", "luke_ner"]
    assert "weights" in found["initialize"]["components"]["luke_ner"]
    assert found["components"]["luke_ner"] == {"factory": "luke_ner", "max_window": 128}
    assert "dev" not in found["corpora"]  # spaCy's own, which gives the text alone


def test_several_tasks_share_one():
    found = config(NER._replace(relations=9, relation_labels=2, questions=3), "ner", "relations", "questions")
    assert found["nlp"]["pipeline"] == ["sentencizer", "luke_encoder", "luke_ner", "luke_relation", "luke_qa"]
    assert list(found["initialize"]["components"]) == ["luke_encoder"]
    assert found["corpora"]["dev"]["questions"] is True
    assert "lengths" not in found["corpora"]["train"]  # would leave the questions out


def test_given_pairs_are_given_in_the_dev_data_too():
    """Also beside entities, which luke_ner finds from the text alone."""
    found = config(NER._replace(relations=9, relation_labels=2, pairs=20), "ner", "relations")["corpora"]
    assert found["dev"] == {"@readers": "spacy-luke.GoldCorpus.v1", "path": "${paths.dev}", "pairs": True}
    assert found["train"]["pairs"] is True


def test_nested_entities():
    found = config(NER._replace(nested=True, spans_key="inner"), "ner")
    assert found["components"]["luke_ner"]["spans_key"] == "inner"


@pytest.mark.parametrize(
    ("longest", "pieces", "window"),
    [(8, None, 128), (9, 24, 128), (31, 64, 144), (32, 64, 144), (33, 72, 160), (40, 80, 176), (900, 248, 512)],
)
def test_long_entities(longest, pieces, window):
    """A window has room for twice their pieces, which luke_ner asks for."""
    found = config(NER._replace(longest_span=longest), "ner")["components"]["luke_ner"]
    assert (found.get("max_span_pieces"), found["max_window"]) == (pieces, window)
    assert found.get("overlap", 128) >= 2 * (pieces or 16)  # or luke_ner would refuse
    assert ("overlap" in found) == (longest > 32)
    assert (
        "max_window" not in config(NER._replace(longest_span=longest), "ner", encoder="base")["components"]["luke_ner"]
    )


@pytest.mark.parametrize(
    ("changes", "setting", "expected"),
    [
        ({"several": True}, ("multi_label",), True),
        ({}, ("suggester", "same_sentence"), True),
        ({"crossing": True}, ("suggester", "same_sentence"), None),
        ({"longest_gap": 101}, ("suggester", "max_words"), 110),
    ],
)
def test_relations(changes, setting, expected):
    found = config(NER._replace(relations=9, relation_labels=2, **changes), "ner", "relations")
    part = found["components"]["luke_relation"]
    for name in setting[:-1]:
        part = part[name]
    assert part.get(setting[-1]) == expected


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        ({"longest_gap": 99}, 128),
        ({"pairs": 9, "crossing": True}, 128),
        ({"crossing": True}, 304),
        ({"crossing": True, "longest_gap": 131}, 432),
        ({"crossing": True, "longest_gap": 900, "longest_span": 30}, 512),
    ],
)
def test_pairs_far_apart(changes, window):
    """Half of a window holds them, up to the widest: what it does not hold takes further windows."""
    shape = NER._replace(relations=9, relation_labels=2, **changes)
    assert config(shape, "ner", "relations")["components"]["luke_encoder"]["max_window"] == window
    if not shape.longest_span:
        assert config(shape, "relations")["components"]["luke_relation"]["max_window"] == window
    assert "max_window" not in config(shape, "ner", "relations", encoder="base")["components"]["luke_encoder"]


@pytest.mark.parametrize(
    ("documents", "words", "epochs", "batch"),
    [
        (48, 6178, 17, 260),  # small: many passes, two documents a step
        (1000, 200_000, 3, 1000),
        (20, 200_000, 20, 1000),  # a document is a step
        (100_000, 20_000_000, 3, 1000),
    ],
)
def test_steps(documents, words, epochs, batch):
    training = config(NER._replace(documents=documents, words=words), "ner")["training"]
    assert (training["max_epochs"], training["batcher"]["size"]) == (epochs, batch)


@pytest.mark.parametrize(
    ("tasks", "changes", "message"),
    [
        ((), {}, "Expected a task"),
        (("types",), {}, "The task types needs gold of it, but the training data have none; they have: ner"),
        (("ner", "links"), {"linked": 3}, "The task links is trained by itself"),
        (("links",), {"linked": 3}, "needs a knowledge base: --kb FOLDER"),
        (("relations",), {"relations": 3, "nested": True}, "add the task ner"),
    ],
)
def test_what_cannot_be(tasks, changes, message):
    with pytest.raises(ValueError, match=message):
        draft(Wanted(tasks), NER._replace(**changes))


def test_names_of_an_encoder_and_a_machine():
    with pytest.raises(ValueError, match=r"encoder must be one of small, base, .* but it is 'huge'"):
        draft(Wanted(("ner",), encoder="huge"), NER)
    with pytest.raises(ValueError, match="machine must be one of cpu, gpu, but it is 'tpu'"):
        draft(Wanted(("ner",), machine="tpu"), NER)


def test_tasks_of_data():
    assert tasks_of(NER._replace(linked=4, questions=1)) == ("ner", "questions")
    assert tasks_of(Shape(1, 1, linked=4)) == ("links",)


def test_references_stay():
    assert fill("${paths.train} {n} {x}", {"n": 1234, "paths": 1}, shown=True) == "${paths.train} 1,234 {x}"
