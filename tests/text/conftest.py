import io
import json
import shutil
import string

import pytest

from spacy_luke.text.tokenizer import PieceTokenizer
from tests.family_tokenizers import write_deberta, write_deberta_spm, write_modernbert
from tests.text.hard_texts import HARD


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Folders with a small tokenizer of each kind, made here: {kind: Path}."""
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in MAKERS.items()}


@pytest.fixture(params=["byte_bpe", "wordpiece", "unigram", "deberta", "deberta_spm", "modernbert"])
def tokenizer(request, folders):
    if folders[request.param] is None:
        pytest.skip("the sentencepiece package is not installed")
    return PieceTokenizer.from_folder(folders[request.param])


@pytest.fixture(scope="session")
def roberta_folder(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("roberta")
    source = shared("data/vocabularies/roberta")
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(source / name, folder / name)
    (folder / "added_tokens.json").write_text(json.dumps({"<ent>": 50265, "<ent2>": 50266}))
    return folder


def _byte_bpe(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(HARD[:20] * 3, trainer)
    tokenizer.model.save(str(folder))
    return folder


def _wordpiece(folder):
    letters = [*string.ascii_lowercase, *string.digits, "é", "東", "京", "한", "글", "ש"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *letters, "the", "##ing", "live"]
    pieces += ["##" + letter for letter in letters]
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces), encoding="utf8")
    return folder


def _unigram(folder):
    try:
        import sentencepiece
    except ImportError:
        return None
    out = io.BytesIO()
    lines = [line for text in HARD for line in text.replace("\x00", "").splitlines() if 0 < len(line) < 200]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 3), model_writer=out, vocab_size=400, hard_vocab_limit=False, minloglevel=2,
        unk_id=0, bos_id=1, eos_id=2, pad_id=-1, normalization_rule_name="nmt_nfkc", character_coverage=0.98,
    )  # fmt: skip
    (folder / "sentencepiece.bpe.model").write_bytes(out.getvalue())
    return folder


def _of_family(write):
    return lambda folder: write(folder, HARD[:20] * 3)


MAKERS = {
    "byte_bpe": _byte_bpe,
    "wordpiece": _wordpiece,
    "unigram": _unigram,
    "deberta": _of_family(write_deberta),
    "deberta_spm": _of_family(write_deberta_spm),
    "modernbert": _of_family(write_modernbert),
}
