"""Tokenizers of families of encoders, in their own files, made here of a few texts."""

import io
import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

BERT_SPECIAL = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
DEBERTA_HEAD = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]


def write_deberta(folder: Path, texts: Iterable[str], *, size: int = 400) -> Path:
    """tokenizer.json as transformers writes DeBERTa-v3's: a unigram of SentencePiece, with blanks as "▁"."""
    backend = Tokenizer(models.Unigram())
    blanks = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
    backend.normalizer = normalizers.Sequence([blanks, normalizers.NFC(), normalizers.Strip(left=False, right=True)])
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace("▁", prepend_scheme="always")])
    backend.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=DEBERTA_HEAD, unk_token="[UNK]", show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    backend.add_special_tokens([AddedToken("[MASK]", normalized=False, special=True)])
    return _write(backend, folder, tokenizer_class="DebertaV2Tokenizer", do_lower_case=False, vocab_type="spm")


def write_deberta_spm(folder: Path, texts: Iterable[str], *, size: int = 400) -> Path | None:
    """spm.model, all that microsoft/deberta-v3-base has; None without the sentencepiece package."""
    try:
        import sentencepiece
    except ImportError:
        return None
    out = io.BytesIO()
    lines = [line for text in texts for line in text.replace("\x00", "").splitlines() if 0 < len(line) < 200]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 3), model_writer=out, vocab_size=size, hard_vocab_limit=False, minloglevel=2,
        pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]",
        unk_piece="[UNK]", normalization_rule_name="nmt_nfkc", character_coverage=0.98,
    )  # fmt: skip
    (folder / "spm.model").write_bytes(out.getvalue())
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False, "vocab_type": "spm"}))
    return folder


def write_bert(folder: Path, texts: Iterable[str], *, size: int = 400) -> Path:
    """tokenizer.json and vocab.txt as BERT's, of small letters: ELECTRA's and DistilBERT's are so."""
    return _write_wordpiece(folder, texts, size, {**BERT_SPECIAL, "mask_token": "[MASK]"}, "BertTokenizer")


def write_mpnet(folder: Path, texts: Iterable[str], *, size: int = 400) -> Path:
    """BERT's pieces between RoBERTa's special ones."""
    special = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "[UNK]"}
    return _write_wordpiece(folder, texts, size, {**special, "mask_token": "<mask>"}, "MPNetTokenizer")


def _write_wordpiece(folder: Path, texts: Iterable[str], size: int, special: dict[str, str], kind: str) -> Path:
    backend = Tokenizer(models.WordPiece(unk_token=special["unk_token"]))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=list(special.values()), show_progress=False)
    backend.train_from_iterator([*texts, "@ # * $"], trainer)
    backend.save(str(folder / "tokenizer.json"))
    pieces = sorted(backend.get_vocab().items(), key=lambda x: x[1])
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece, _ in pieces))
    settings = {**special, "do_lower_case": True, "tokenizer_class": kind}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def write_modernbert(folder: Path, texts: Iterable[str], *, size: int = 500) -> Path:
    """tokenizer.json as ModernBERT's: a byte-level BPE in NFC, with runs of blanks as pieces and BERT's special ones
    behind all."""
    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    backend.add_tokens([AddedToken(" " * n, normalized=True, special=False) for n in (4, 3, 2)])
    special = [AddedToken(piece, normalized=False, special=True) for piece in ("[UNK]", "[CLS]", "[SEP]", "[PAD]")]
    backend.add_special_tokens([*special, AddedToken("[MASK]", lstrip=True, normalized=False, special=True)])
    return _write(backend, folder, tokenizer_class="PreTrainedTokenizerFast")


def _write(backend: Tokenizer, folder: Path, **settings: object) -> Path:
    backend.save(str(folder / "tokenizer.json"))
    names = {**BERT_SPECIAL, "mask_token": "[MASK]"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**names, **settings}))
    return folder
