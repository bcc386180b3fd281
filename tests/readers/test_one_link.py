"""An Example of each linked mention: in the config of the 2019 paper each is learned twice, in whatever document it
stands."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from spacy.tokens import Doc, Span
from spacy.util import load_config, registry

from spacy_luke.annotations import get_candidates_given, set_candidates_given
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.training.steps import in_order
from tests.components.linker.linked import candidates_of, make_example, make_linker, make_store
from tests.tiny import SENTENCES

CONFIG = Path(__file__).parents[2] / "configs/linking_aida_2019_large.cfg"
TEXTS = [*SENTENCES[:3], "London", "Accra and Berlin", "nobody", " ".join(SENTENCES)]  # with no to many mentions


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("one_link"))


def make_corpus(nlp, folder, docs=None, **settings):
    """The training part of the config, over other documents."""
    docs = [make_example(nlp, text).reference for text in TEXTS] if docs is None else docs
    write_docbin(docs, folder / "train.spacy")
    train = load_config(CONFIG, interpolate=False)["corpora"]["train"]
    told = {**train, "path": str(folder / "train.spacy"), **settings}
    return registry.resolve({"train": told})["train"]


def learned(linker, examples, *, epochs, size):
    """How often each mention is: by the text, the first piece and the gold entity of its window."""
    found = Counter()
    for epoch in range(epochs):
        order = in_order(examples, seed=0, epoch=epoch)
        for some in (order[i : i + size] for i in range(0, len(order), size)):
            for batch in linker.batches(some):
                for item in batch.items:
                    (own,) = np.unique(item.owner_C)
                    found[tuple(item.pieces.tolist()), int(item.first_E[own])] += 1
    return found


@pytest.mark.parametrize("others", ["none", "pseudo"])
def test_the_papers_config_learns_each_mention_twice(store, tmp_path, others):
    config = load_config(CONFIG, interpolate=True)
    settings = {name: config["components"]["luke_linker"][name] for name in ("split", "learned_mentions")}
    nlp, linker = make_linker(store, others=others, **settings)
    examples = list(make_corpus(nlp, tmp_path)(nlp))
    counts = learned(linker, examples, epochs=config["training"]["max_epochs"], size=4)
    assert len(counts) == sum(len(make_example(nlp, text).reference.ents) for text in TEXTS) == len(examples)
    assert set(counts.values()) == {2}


def test_an_input_is_that_of_predictions(store, tmp_path):
    """Also with likely candidates of the other mentions, which are not learned beside it."""
    nlp, linker = make_linker(store, others="pseudo")
    whole = [item for x in TEXTS for batch in linker.batches([make_example(nlp, x)]) for item in batch.items]
    single = [item for x in make_corpus(nlp, tmp_path)(nlp) for batch in linker.batches([x]) for item in batch.items]
    assert len(whole) == len(single)
    assert any((item.entities_E >= 0).any() for item in single)

    def told(item):
        return repr([item.pieces.tolist(), sorted(zip(item.first_E.tolist(), item.last_E.tolist())), item.gold_S])

    assert sorted(map(told, whole)) == sorted(map(told, single))


@pytest.mark.parametrize("nil", [False, True])
def test_examples(store, tmp_path, nil):
    """The gold is one mention's, in a span group where the data set has one; the pipeline is given all."""
    nlp, _ = make_linker(store)
    doc = Doc(nlp.vocab, words=["London", "Accra", "Rome", "x"], spaces=[True, True, False, False])
    ids = ["Entity 1", "NIL", ""]
    doc.set_ents([Span(doc, i, i + 1, "X", kb_id=name) for i, name in enumerate(ids)])
    set_candidates_given(doc, [(x.start_char, x.end_char, candidates_of(x.text)) for x in doc.ents])
    grouped = doc.copy()
    grouped.spans["luke_links"] = [Span(grouped, 0, 2, "X", kb_id="Entity 2"), Span(grouped, 1, 2, "X", kb_id="NIL")]
    augmenter = {"@augmenters": "spacy-luke.one_link.v1", "nil": nil}
    examples = list(make_corpus(nlp, tmp_path, [doc, grouped], augmenter=augmenter)(nlp))
    golds = [[(x.text, x.kb_id_) for x in one.reference.spans["luke_links"]] for one in examples]
    wanted = [("London", "Entity 1"), ("Accra", "NIL"), ("London Accra", "Entity 2"), ("Accra", "NIL")]
    assert golds == [[x] for x in wanted if nil or x[1] != "NIL"]
    for one in examples:
        assert one.reference.text == one.predicted.text == "London Accra Romex"
        assert [(x.text, x.kb_id_) for x in one.predicted.ents] == [("London", ""), ("Accra", ""), ("Rome", "")]
        assert get_candidates_given(one.predicted) == get_candidates_given(doc)
