"""Pipelines of each component by itself or on a shared encoder, and examples for them, small and of many windows."""

import spacy
from spacy.training import Example

from spacy_luke.annotations import set_queries, set_questions
from tests import pipelines
from tests.components import known
from tests.components.linker import linked
from tests.components.listening import textcat_model
from tests.tiny import SENTENCES, make_checkpoint, make_ernie

LUKE = (*pipelines.COMPONENTS, "luke_linker")
ERNIE = ("ernie_typer", "ernie_relation", "soft_textcat")
SHARED = {"@architectures": "spacy-luke.SharedEncoder.v1"}
AT_ONCE = 100_000  # pieces of a batch, so that an update has one
PRECISION = {"train_precision": "float32"}


def luke_texts(windows):
    """One text of about so many windows of the tiny encoder."""
    return [" ".join(SENTENCES[i % 3] for i in range(windows if windows == 1 else 2 * windows))]


def luke_examples(nlp, windows=1):
    examples = [pipelines.make_example(nlp, text) for text in luke_texts(windows)]
    for example in examples:
        set_questions(example.predicted, [pipelines.QUESTION])
        set_queries(example.predicted, [pipelines.QUERY])
    return examples


def link_examples(nlp, windows=1):
    return [linked.make_example(nlp, text) for text in luke_texts(windows)]


def make_luke(name, attention, store, *, layers=2, weights=None):
    """A pipeline with one component of an encoder of its own, and its examples by a number of windows."""
    weights = weights or (lambda: make_checkpoint(num_layers=layers))
    if name == "luke_linker":
        config = {"attention": attention, "prior": True, "weights": weights, "batch_size": AT_ONCE}
        return linked.make_linker(store, **config)[0], link_examples
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    model = {"attention": attention, "encoder": PRECISION}
    component = nlp.add_pipe(name, config={"model": model, "batch_size": AT_ONCE, **pipelines.SETTINGS[name]})
    examples = [luke_examples(nlp)[0], luke_examples(nlp, 2)[0]]
    component.initialize(lambda: examples, nlp=nlp, weights=weights)
    return nlp, luke_examples


def make_shared(*, layers=2):
    """Three tasks on one encoder, and a tagger and a categorizer of spaCy's that listen to it."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("luke_encoder", config={"overlap": 32, "model": PRECISION, "batch_size": AT_ONCE})
    for name in pipelines.COMPONENTS[:3]:
        model = {"attention": "one_way", "encoder": SHARED}
        nlp.add_pipe(name, config={"model": model, "batch_size": AT_ONCE, **pipelines.SETTINGS[name]})
    listens = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32}
    nlp.add_pipe("tagger", config={"model": {"tok2vec": listens}})
    nlp.add_pipe("textcat", config={"model": textcat_model("words")})
    examples = [*shared_examples(nlp), *shared_examples(nlp, 2)]
    for name, component in nlp.pipeline[1:]:
        weights = {"weights": lambda: make_checkpoint(num_layers=layers)} if name == "luke_encoder" else {}
        component.initialize(lambda: examples, nlp=nlp, **weights)
    return nlp, shared_examples


def shared_examples(nlp, windows=1):
    examples = luke_examples(nlp, windows)
    for example in examples:
        gold = example.reference
        for word in gold:
            word.tag_ = "NAME" if word.text[0].isupper() else "WORD"
        gold.cats = {"rain": 0.0, "people": 1.0}
    return examples


def make_known(name, vectors, *, layers=3):
    """The same for ERNIE's components."""
    weights = lambda: make_ernie(vectors, num_layers=layers)  # noqa: E731
    if name != "soft_textcat":
        config = {"batch_size": AT_ONCE, "model": {"encoder": PRECISION}, **known.ALWAYS[name]}
        nlp, _ = known.make([name], vectors, weights=weights, **{name: config})
        return nlp, known_examples
    nlp = spacy.blank("en")
    nlp.add_pipe("ernie_encoder", config={"overlap": 8, "batch_size": AT_ONCE, "model": PRECISION})
    nlp.add_pipe(name, config={"model": textcat_model("words")})
    examples = known_examples(nlp)
    nlp.get_pipe("ernie_encoder").initialize(lambda: examples, nlp=nlp, weights=weights)
    nlp.get_pipe(name).initialize(lambda: examples, nlp=nlp)
    return nlp, known_examples


def known_examples(nlp, windows=1):
    texts = [" ".join(known.TEXTS[i % 2] for i in range(windows if windows == 1 else 3 * windows))]
    golds = [known.gold_of(nlp, text) for text in texts]
    for gold in golds:
        gold.cats = {"one": 0.25, "other": 0.75}
    return [Example(known.annotate(nlp.make_doc(gold.text)), gold) for gold in golds]
