"""A linked corpus of the sample dump, its vocabulary, and shards of it."""

from pathlib import Path

import pytest

from spacy_luke.corpus.build_shards import build_shards
from spacy_luke.corpus.examples import ExampleSettings
from spacy_luke.corpus.from_dumps import build_from_dumps
from spacy_luke.corpus.vocabulary import build_entity_vocab
from spacy_luke.readers.sentences import RuleSentences
from spacy_luke.stores.parallel import Engine
from tests.tiny import make_wordpiece

SAMPLE = Path(__file__).parents[2] / "assets" / "wiki.xml"


@pytest.fixture(scope="session")
def linked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("linked") / "corpus"
    return build_from_dumps([SAMPLE], folder, part_chars=900, engine=Engine(workers=1))


@pytest.fixture(scope="session")
def vocab(linked):
    return build_entity_vocab([linked], engine=Engine(workers=1)).vocab


@pytest.fixture
def make_shards(linked, vocab, tmp_path):
    def make(output="shards", *, engine=Engine(workers=1), tokenizer=None, corpora=None, **settings):
        return build_shards(
            corpora or [linked],
            tmp_path / output,
            tokenizer=tokenizer or make_wordpiece(),
            vocab=vocab,
            sentences=RuleSentences("en"),
            settings=ExampleSettings(**{"max_pieces": 64, **settings}),
            engine=engine,
        )

    return make
