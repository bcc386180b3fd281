"""Building a `tokenizers.Tokenizer` from the files of a checkpoint folder.

Each one reproduces the pure-Python tokenizer of transformers 4.53 (`RobertaTokenizer` / `LukeTokenizer`,
`BertTokenizer`, `XLMRobertaTokenizer` / `MLukeTokenizer`), whose behaviour the published models were trained with.
"""

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from .sentencepiece_model import SentencePieceModel

# Names of the special pieces in the files of transformers, in our order: cls, sep, pad, unk, mask.
SPECIAL_KEYS = ("cls_token", "sep_token", "pad_token", "unk_token", "mask_token")
ROBERTA_SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
BERT_SPECIAL = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")


def build_byte_bpe(
    vocab: Dict[str, int], merges: List[Tuple[str, str]], *, unk: str, prefix: bool = False
) -> Tokenizer:
    """GPT-2's byte-level BPE. A piece that is not in the vocabulary becomes `unk`.

    prefix: give the text a blank before its first word (`add_prefix_space`; False in all released LUKE models).
    """
    for number, pair in enumerate(merges):
        for piece in (*pair, "".join(pair)):
            if piece not in vocab:
                raise ValueError(
                    f"Merge {number} of merges.txt, {pair}, needs the piece {piece!r}, which is not in vocab.json; "
                    f"the two files do not belong together."
                )
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token=unk if unk in vocab else None, fuse_unk=False))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    return tokenizer


def build_wordpiece(vocab: Dict[str, int], *, unk: str, settings: Dict[str, Any]) -> Tokenizer:
    """BERT's WordPiece after its basic tokenizer; `settings` are those of tokenizer_config.json."""
    lower = settings.get("do_lower_case", True)
    accents = settings.get("strip_accents")
    strip = lower if accents is None else bool(accents)
    chinese = settings.get("tokenize_chinese_chars", True)
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token=unk, max_input_chars_per_word=100))
    steps = [_bert_step(clean_text=True, handle_chinese_chars=chinese), normalizers.Replace(Regex(r"\p{C}"), "")]
    steps += [normalizers.NFC()]
    steps += [_bert_step(lowercase=True)] if lower else []
    steps += [normalizers.NFD(), normalizers.Replace(Regex(r"\p{Mn}"), "")] if strip else []
    tokenizer.normalizer = normalizers.Sequence(steps)
    # The library's own BERT steps know the Unicode of 2015; the regular expressions add what came since.
    punctuation = pre_tokenizers.Split(Regex(r"[!-/:-@\[-`{-~\p{P}]"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), punctuation])
    return tokenizer


def build_unigram(model: SentencePieceModel, *, source: str) -> Tokenizer:
    """SentencePiece unigram with the ids of XLM-R: <s> 0, <pad> 1, </s> 2, <unk> 3, piece i + 1, <mask> last.

    Characters are to be normalised before (`Charsmap`), special pieces cut out, and a blank put before the first word.
    """
    head = [piece for piece, _, _ in model.pieces[:3]]
    if head != ["<unk>", "<s>", "</s>"] or model.unk_id != 0:
        raise ValueError(
            f"Expected a model of XLM-R's kind in {source}, whose first pieces are <unk> <s> </s>, but got {head}."
        )
    pieces = [(piece, 0.0) for piece in ("<s>", "<pad>", "</s>", "<unk>")]
    # Nine digits hold a 32-bit float, and come back exactly from the backend's json.
    pieces += [(piece, float(f"{score:.9g}")) for piece, score, _ in model.pieces[3:]]
    pieces.append(("<mask>", 0.0))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=model.byte_fallback))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex("^ +|[ ▁]+$"), ""),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Prepend("▁"),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False)
    tokenizer.encode_special_tokens = True
    return tokenizer


def add_pieces(tokenizer: Tokenizer, pieces: List[Tuple[int, AddedToken]], *, source: str) -> None:
    """Make pieces special (found in any text, never split), in the order of their ids, which must come out as given."""
    for number, piece in sorted(pieces, key=lambda item: item[0]):
        tokenizer.add_special_tokens([piece])
        got = tokenizer.token_to_id(piece.content)
        if got != number:
            raise ValueError(
                f"{source} gives the added piece {piece.content!r} the id {number}, but the next free id is {got}; "
                f"the vocabulary and the added pieces do not belong together."
            )


def read_vocab_json(path: Path) -> Dict[str, int]:
    vocab = read_json(path)
    if not all(isinstance(number, int) for number in vocab.values()):
        raise ValueError(f"Expected piece -> id (integers) in {path}, but not every value is an integer.")
    return vocab


def read_merges(path: Path) -> List[Tuple[str, str]]:
    """Lines "left right", best first; the first line is the version."""
    merges = []
    for number, line in enumerate(path.read_text(encoding="utf8").split("\n"), start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = line.split()
        if len(pair) != 2:
            raise ValueError(f"Expected two pieces on line {number} of {path}, but got {line!r}.")
        merges.append((pair[0], pair[1]))
    return merges


def read_vocab_txt(path: Path) -> Dict[str, int]:
    """One piece a line, id = line. Of a piece that stands twice, the last line counts (as in transformers)."""
    lines = path.read_text(encoding="utf8").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return {line.rstrip("\r"): number for number, line in enumerate(lines)}


def read_json(path: Path) -> Dict[str, Any]:
    """A json object; {} where the file is absent."""
    if not path.exists():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf8"))
    except ValueError as error:
        raise ValueError(f"Expected json in {path}, but it cannot be parsed: {error}.") from error
    if not isinstance(data, dict):
        raise ValueError(f"Expected a json object in {path}, but got {type(data).__name__}.")
    return data


def _bert_step(**switches: bool) -> normalizers.Normalizer:
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**{**off, **switches})
