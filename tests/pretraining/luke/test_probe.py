"""`spacy luke probe`: the head's own ranking, neighbours by cosine, brackets, the page, and what is refused."""

import re

import numpy as np
import pytest
import torch
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.checkpoint.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.model.luke import Mentions, Windows
from spacy_luke.pretraining.luke.probe import Probe, find_mentions
from spacy_luke.pretraining.luke.task import load_luke_pretraining, to_luke_checkpoint
from tests.pretraining.luke.shards import make_vocab
from tests.tiny import make_checkpoint

TEXT = "Ada Lovelace lived in London near the Royal Society ."
TASKS = {"words": True, "entities": True, "pages": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkpoint whose table is noise."""
    started = make_checkpoint(entity_aware=False)
    model = load_luke_pretraining(started, make_vocab(), seed=0)
    for p in (model.encoder.entities.table.weight, model.entity_head.dense.weight):
        torch.nn.init.normal_(p, std=0.5)
    folder = tmp_path_factory.mktemp("probe") / "model"
    write_huggingface(to_luke_checkpoint(model.state_dict(), started, make_vocab(), tasks=TASKS), folder)
    return folder


@pytest.fixture(scope="module")
def probe(folder):
    return Probe(read_checkpoint(folder))


def test_brackets():
    assert find_mentions("[Ada] lived in [London].") == ("Ada lived in London.", [(0, 3), (13, 19)])
    for text in ("Ada lived in London.", "Ada [] lived"):
        with pytest.raises(ValueError, match="Expected a mention in brackets"):
            find_mentions(text)


@torch.no_grad()
def test_predictions_are_those_of_the_head(probe):
    """Step by step: the mention's pieces, [MASK] there, the logits of all entities but the special ones."""
    start = TEXT.index("London")
    (found,) = probe.predict(TEXT, [(start, start + 6)], top=5)
    pieces, begins, ends = probe.tokenizer.encode(TEXT)
    inside = [i for i in range(len(pieces)) if begins[i] >= start and ends[i] <= start + 6]
    ids = torch.tensor([probe.tokenizer.cls_id, *pieces, probe.tokenizer.sep_id])
    place = [torch.tensor([inside[i] + 1]) for i in (0, -1)]
    _, states = probe.encoder(Windows(ids, [len(ids)]), Mentions(torch.tensor([2]), *place, [1]))
    shares = probe.head(states, probe.table)[0, probe.rows_E].softmax(-1)
    assert [x for x, _ in found.entities] == [probe.titles[i] for i in shares.argsort(descending=True)[:5]]
    assert [x for _, x in found.entities] == pytest.approx(shares.sort(descending=True).values[:5].tolist(), abs=1e-5)
    assert (found.start, found.end) == (start, start + 6)
    assert not {"[MASK]", "[UNK]", "[PAD]", "[MASK2]"} & set(probe.titles)


def test_hidden_words(probe):
    """What stands in a mention makes no difference then."""
    one, other = TEXT.replace("London", "Berlin"), TEXT
    start = TEXT.index("London")
    seen, hidden = ([probe.predict(x, [(start, start + 6)], hide=h)[0].entities for x in (one, other)] for h in (0, 1))
    assert seen[0] != seen[1]
    if len(probe.tokenizer.encode(" London")[0]) == len(probe.tokenizer.encode(" Berlin")[0]):
        assert hidden[0] == hidden[1]


def test_several_mentions(probe):
    plain, places = find_mentions("[Ada Lovelace] lived in [London] .")
    assert [(x.start, x.end) for x in probe.predict(plain, places, top=100)] == places
    assert all(len(x.entities) == len(probe.titles) for x in probe.predict(plain, places, top=100))


def test_neighbours(probe):
    table = probe.table.numpy()
    rows = probe.rows_E.numpy()
    row = probe.vocab.row("E4")
    cosines = table[rows] @ table[row] / np.linalg.norm(table[rows], axis=1) / np.linalg.norm(table[row])
    order = [i for i in np.argsort(-cosines) if rows[i] != row]
    found = probe.nearest("E4", top=3)
    assert [x for x, _ in found] == [probe.titles[i] for i in order[:3]]
    assert [x for _, x in found] == pytest.approx(cosines[order[:3]], abs=1e-5)
    assert len(probe.nearest("E4", top=1000)) == len(probe.titles) - 1


def test_what_is_refused(probe, folder):
    with pytest.raises(ValueError, match=r"'E44' is not in the entity vocabulary of 20 entities. Is one of \['E4'"):
        probe.nearest("E44")
    with pytest.raises(ValueError, match=r"has \d+ pieces, but the encoder reads \d+ at once"):
        probe.predict(TEXT * 20, [(0, 3)])
    with pytest.raises(ValueError, match="has no piece"):
        probe.predict("Ada", [(3, 4)])
    with pytest.raises(ValueError, match="special entities only"):
        Probe(read_checkpoint(folder, entities="special"))
    with pytest.raises(ValueError, match="has no masked-entity head"):
        Probe(make_checkpoint())


def test_the_command(folder, tmp_path):
    page = tmp_path / "new" / "page.html"
    arguments = [
        "luke",
        "probe",
        str(folder),
        "<Ada> lived in [London].",
        "--near",
        "E3",
        "--top",
        "4",
        "-o",
        str(page),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "[London]" in result.output
    assert "near E3" in result.output
    html = page.read_text(encoding="utf8")
    assert "&lt;Ada&gt; lived in <mark" in html
    assert html.count("<tr>") == 2 * (1 + 4)
    assert "1 masked mention · 20 entities" in html
    assert not re.search(r"https?://", html)
    result = CliRunner().invoke(app, ["luke", "probe", str(folder), "No mention."])
    assert result.exit_code == 1
    assert "Expected a mention in brackets" in " ".join(result.output.split())
