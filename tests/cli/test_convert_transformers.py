"""`spacy luke convert` of what transformers 5 saves of a LUKE: entities among the added pieces, and in no file of
their own."""

import json
import string

import pytest
import spacy
import torch
from spacy.cli._util import app as spacy_app
from spacy.tokens import Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.bridge.documents import read_document
from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.text.entity_pieces import leave_words
from tests.tiny import ENTITIES, make_checkpoint

transformers = pytest.importorskip("transformers")
if int(transformers.__version__.split(".")[0]) < 5:
    pytest.skip("transformers 4 writes other files", allow_module_level=True)
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

TEXT = "Ada lived in London"
LABELS = ["NIL", "PER", "LOC", "ORG"]
ENTITY_PIECES = ["[UNK]", "[PAD]", "[MASK]", "[MASK2]"]


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def save_luke(folder, *, grown=False, pieces=()):
    """A LUKE for entities, read and saved by transformers. grown: its word table has a row for each piece. pieces: that
    a user adds."""
    write_huggingface(make_checkpoint(labels=LABELS, seed=5), folder / "first")
    model = transformers.LukeForEntitySpanClassification.from_pretrained(folder / "first")
    tokenizer = transformers.LukeTokenizer.from_pretrained(folder / "first")
    tokenizer.add_tokens(list(pieces))
    if grown or pieces:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.save_pretrained(folder / "saved")
    tokenizer.save_pretrained(folder / "saved")
    return folder / "saved"


def expected_scores(folder):
    """What transformers says of every span of words: characters -> probabilities."""
    model = transformers.LukeForEntitySpanClassification.from_pretrained(folder).eval()
    tokenizer = transformers.LukeTokenizer.from_pretrained(
        folder, task="entity_span_classification", max_entity_length=100
    )
    words = [(token.idx, token.idx + len(token)) for token in spacy.blank("en")(TEXT)]
    spans = [(start, end) for i, (start, _) in enumerate(words) for _, end in words[i:]]
    inputs = tokenizer(TEXT, entity_spans=spans, return_tensors="pt")
    with torch.no_grad():
        return dict(zip(spans, model(**inputs).logits[0].softmax(-1)))


def check_entities(folder, pipeline):
    doc, expected = spacy.load(pipeline)(TEXT), expected_scores(folder)
    assert doc.ents
    for ent in doc.ents:
        scores = expected[ent.start_char, ent.end_char]
        assert ent.label_ == LABELS[int(scores.argmax())]
        assert ent._.luke_score == pytest.approx(float(scores.max()), abs=1e-5)


@pytest.mark.parametrize("grown", [False, True])
def test_there_and_back(tmp_path, grown):
    """The pieces of entities are no words; what the package writes is read, saved and converted again."""
    saved = save_luke(tmp_path, grown=grown)
    assert not (saved / "entity_vocab.json").exists()
    run("convert", saved, tmp_path / "pipeline")
    check_entities(saved, tmp_path / "pipeline")
    checkpoint, first = read_checkpoint(saved), read_checkpoint(tmp_path / "first")
    assert [checkpoint.tokenizer.piece_id(x) for x in ENTITY_PIECES] == [None] * 4
    assert checkpoint.tokenizer.backend.get_vocab() == first.tokenizer.backend.get_vocab()
    assert checkpoint.entities.names() == first.entities.names()
    assert "entity_vocab" not in checkpoint.tokenizer.settings
    run("export", tmp_path / "pipeline", tmp_path / "again/first")
    tokenizer = transformers.LukeTokenizer.from_pretrained(tmp_path / "again/first")
    assert tokenizer.entity_vocab == ENTITIES
    tokenizer.save_pretrained(tmp_path / "again/saved")
    model = transformers.LukeForEntitySpanClassification.from_pretrained(tmp_path / "again/first")
    model.save_pretrained(tmp_path / "again/saved")
    run("convert", tmp_path / "again/saved", tmp_path / "again/pipeline")
    check_entities(saved, tmp_path / "again/pipeline")


def test_pieces_that_a_user_added(tmp_path):
    """They come behind the entities, and keep their rows."""
    saved = save_luke(tmp_path, pieces=["<foo>"])
    run("convert", saved, tmp_path / "pipeline")
    check_entities(saved, tmp_path / "pipeline")
    known, plain = read_checkpoint(saved).tokenizer, len(read_checkpoint(tmp_path / "first").tokenizer)
    assert known.piece_id("<foo>") == plain + len(ENTITY_PIECES)
    theirs = transformers.LukeTokenizer.from_pretrained(saved)
    ids = theirs("Ada <foo> London", add_special_tokens=False)["input_ids"]
    assert known.encode("Ada <foo> London")[0].tolist() == ids
    assert known.piece_id("<foo>") in ids


def test_training_begins_from_it(tmp_path):
    saved = save_luke(tmp_path)
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_encoder")
    source = {"@misc": "spacy-luke.checkpoint.v1", "path": str(saved)}
    nlp.config["initialize"]["components"]["luke_encoder"] = {"weights": source}
    nlp.initialize()
    assert nlp.get_pipe("luke_encoder").tokenizer.piece_id("<ent2>") is not None


def save_for_questions(folder):
    """A reader of noise, its tokenizer that of a LUKE for entities."""
    saved = save_luke(folder)
    config = transformers.LukeConfig.from_pretrained(saved)
    torch.manual_seed(3)
    config.initializer_range, config.num_labels = 0.3, 2
    transformers.LukeForQuestionAnswering(config).save_pretrained(saved)
    return saved


def test_questions_as_written(tmp_path):
    """convert says which blanks are read; with `as_written` the answer is that of transformers, saved and loaded."""
    saved, question = save_for_questions(tmp_path), "Who lived in London?"
    told = run("convert", saved, tmp_path / "first_pipeline")
    assert "set nlp.get_pipe('luke_qa').as_written" in " ".join(told.split())
    nlp = spacy.load(tmp_path / "first_pipeline")
    nlp.get_pipe("luke_qa").as_written = True
    nlp.to_disk(tmp_path / "pipeline")
    nlp = spacy.load(tmp_path / "pipeline")
    doc = nlp.make_doc(TEXT)
    found = {answer.text: answer.score for answer in nlp.get_pipe("luke_qa").answer(doc, question).spans}
    model = transformers.LukeForQuestionAnswering.from_pretrained(saved).eval()
    encoding = transformers.LukeTokenizer.from_pretrained(saved)(question, TEXT, return_tensors="pt")
    with torch.no_grad():
        output = model(**encoding)
    starts, ends = output.start_logits[0].tolist(), output.end_logits[0].tolist()
    known = nlp.get_pipe("luke_qa").tokenizer
    pieces = read_document(doc, known).pieces
    first = len(starts) - 1 - len(known.encode(TEXT)[0])
    places = [(first + a, first + b) for a, b in zip(pieces.first_W.tolist(), pieces.last_W.tolist())]
    scores = {}
    for a in range(first, len(starts) - 1):
        for b in range(a, min(a + 30, len(starts) - 1)):
            begin = next(i for i, place in enumerate(places) if a < place[1])
            end = next(i for i, place in enumerate(places) if b < place[1])
            text = doc[begin : end + 1].text
            scores[text] = max(scores.get(text, -1e9), starts[a] + ends[b])
    assert list(found) == sorted(scores, key=scores.__getitem__, reverse=True)
    shares = torch.tensor(list(scores.values())).softmax(0).tolist()
    assert [found[text] for text in scores] == pytest.approx(shares, abs=1e-5)


def save_mluke(folder):
    """An mLUKE for relations that was made by transformers 5, which calls its markers ▁<ent> and ▁<ent2>."""
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(letter, -3.0) for letter in string.ascii_letters]
    entities = {"[MASK2]": 0, "[MASK]": 1, "[PAD]": 2, "[UNK]": 3, "en:London": 4, "ja:London": 4}
    tokenizer = transformers.MLukeTokenizer(vocab=pieces, entity_vocab=entities)
    config = transformers.LukeConfig(
        vocab_size=len(tokenizer) - len(ENTITY_PIECES), entity_vocab_size=5, hidden_size=16, entity_emb_size=6,
        num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, max_position_embeddings=60,
        type_vocab_size=1, bos_token_id=0, pad_token_id=1, eos_token_id=2, initializer_range=0.5,
        id2label=dict(enumerate(["no_relation", "lives_in", "born_in"])),
    )  # fmt: skip
    torch.manual_seed(2)
    transformers.LukeForEntityPairClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_mluke(tmp_path):
    saved = save_mluke(tmp_path / "saved")
    run("convert", saved, tmp_path / "pipeline")
    checkpoint = read_checkpoint(saved)
    assert len(checkpoint.tokenizer) == checkpoint.config.vocab_size
    assert checkpoint.entities.row("London", language="ja") == 4
    nlp = spacy.load(tmp_path / "pipeline")
    doc = nlp.make_doc(TEXT)
    doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 3, 4, "LOC")]
    found = nlp(doc)._.luke_relations
    assert found
    model = transformers.LukeForEntityPairClassification.from_pretrained(saved).eval()
    tokenizer = transformers.MLukeTokenizer.from_pretrained(saved, task="entity_pair_classification")
    for relation in found:
        spans = [(x.start_char, x.end_char) for x in (relation.head, relation.tail)]
        with torch.no_grad():
            scores = model(**tokenizer(TEXT, entity_spans=spans, return_tensors="pt")).logits[0].softmax(-1)
        assert relation.label == checkpoint.labels[int(scores.argmax())]
        assert relation.score == pytest.approx(float(scores.max()), abs=1e-5)


def test_a_true_word_piece_stays(tmp_path):
    """One of the vocabulary itself; and an added one before it, as ids are places."""
    saved = save_luke(tmp_path)
    data, named = (json.loads((saved / name).read_text("utf8")) for name in ("tokenizer.json", "tokenizer_config.json"))
    pieces = list(data["added_tokens"])
    assert leave_words({**data, "added_tokens": pieces}, named)
    data["model"]["vocab"]["[MASK]"] = pieces[-2]["id"]
    assert leave_words(data, named)
    assert data["added_tokens"] == pieces[:-1]


def test_another_folder_without_entities(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LukeTokenizer"}))
    with pytest.raises(ValueError, match=r"or tokenizer_config.json with 'entity_vocab'\), but none is there"):
        EntityVocab.from_file(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"entity_vocab": [1]}))
    with pytest.raises(ValueError, match="Expected a json object from names to rows"):
        EntityVocab.from_file(tmp_path)
