"""Building a `tokenizers.Tokenizer` from the files of a checkpoint folder.

Each one reproduces the pure-Python tokenizer of transformers 4.53 (`RobertaTokenizer` / `LukeTokenizer`,
`BertTokenizer`, `XLMRobertaTokenizer` / `MLukeTokenizer`), whose behaviour the published models were trained with.
"""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from ..stores.plain_text import parse_json, read_object, read_text
from .charsmap import Charsmap, check_charsmap
from .entity_pieces import leave_words
from .patterns import check_patterns
from .sentencepiece_model import SentencePieceModel, read_sentencepiece

# Names of the special pieces in the files of transformers, in our order: cls, sep, pad, unk, mask.
SPECIAL_KEYS = ("cls_token", "sep_token", "pad_token", "unk_token", "mask_token")
ROBERTA_SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")
BERT_SPECIAL = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")


def build_byte_bpe(
    vocab: dict[str, int], merges: list[tuple[str, str]], *, unk: str, prefix: bool = False
) -> Tokenizer:
    """GPT-2's byte-level BPE. A piece that is not in the vocabulary becomes `unk`.

    prefix: give the text a blank before its first word (`add_prefix_space`; False in all released LUKE models).
    Raises ValueError where the vocabulary lacks a byte, whose characters would be lost, or a piece of a merge.
    """
    if lost := sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(vocab)):
        raise ValueError(
            f"Expected a piece for each of the 256 bytes in vocab.json, but {len(lost)} are missing, the first of "
            f"which are {lost[:5]}; text with them would be lost. Check that vocab.json is whole and a byte-level "
            "BPE's, as RoBERTa's."
        )
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


def build_wordpiece(vocab: dict[str, int], *, unk: str, settings: dict[str, Any]) -> Tokenizer:
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
    # The library's own BERT steps know the Unicode of 2015; the regular expressions add what came since, and the first
    # 256 Chinese characters of extension E, which it leaves out.
    splits = [pre_tokenizers.Split(Regex(r"[!-/:-@\[-`{-~\p{P}]"), "isolated")]
    splits += [pre_tokenizers.Split(Regex(r"[\x{2B820}-\x{2B91F}]"), "isolated")] if chinese else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), *splits])
    return tokenizer


def build_unigram(model: SentencePieceModel, *, source: str) -> Tokenizer:
    """SentencePiece unigram with the ids of XLM-R: <s> 0, <pad> 1, </s> 2, <unk> 3, piece i + 1, <mask> last.

    Text is to be normalised before, as `PieceTokenizer` does it.
    """
    head = [piece for piece, _, _ in model.pieces[:3]]
    if head != ["<unk>", "<s>", "</s>"] or model.unk_id != 0:
        raise ValueError(
            f"Expected a model of XLM-R's kind in {source}, whose first pieces are <unk> <s> </s>, but got {head}."
        )
    if not (model.add_dummy_prefix and model.remove_extra_whitespaces):
        raise ValueError(
            f"Expected a model that adds a blank before a text and removes extra blanks in {source}, as XLM-R's does."
        )
    pieces = [(piece, 0.0) for piece in ("<s>", "<pad>", "</s>", "<unk>")]
    # Nine digits hold a 32-bit float, and come back exactly from the backend's json.
    pieces += [(piece, float(f"{score:.9g}")) for piece, score, _ in model.pieces[3:]]
    pieces.append(("<mask>", 0.0))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=model.byte_fallback))
    tokenizer.encode_special_tokens = True
    return tokenizer


def build_deberta(
    model: SentencePieceModel, *, special: tuple[str, ...], settings: dict[str, Any], source: str
) -> Tokenizer:
    """SentencePiece unigram with the ids of the model itself, as DeBERTa-v3 has it; its [MASK] comes behind them.

    Text is to be normalised before, as `PieceTokenizer` does it. settings: those of tokenizer_config.json.
    """
    head = [piece for piece, _, _ in model.pieces[:4]]
    if sorted(head) != sorted(special[:4]) or head[model.unk_id : model.unk_id + 1] != [special[3]]:
        raise ValueError(
            f"Expected a model of DeBERTa-v3's kind in {source}, whose first pieces are {sorted(special[:4])}, with "
            f"{special[3]} as the unknown one, but got {head}, with number {model.unk_id}."
        )
    if not (model.add_dummy_prefix and model.remove_extra_whitespaces):
        raise ValueError(
            f"Expected a model that adds a blank before a text and removes extra blanks in {source}, as DeBERTa-v3's."
        )
    if wrong := [key for key in ("do_lower_case", "split_by_punct") if settings.get(key)]:
        raise ValueError(
            f"Expected a tokenizer of DeBERTa-v3's kind, with {wrong[0]} off, but tokenizer_config.json beside "
            f"{source} has it on. Give the folder a tokenizer.json instead (transformers writes it: save_pretrained)."
        )
    pieces = [(piece, 0.0 if i < 4 else float(f"{score:.9g}")) for i, (piece, score, _) in enumerate(model.pieces)]
    if special[4] not in dict(pieces):
        pieces.append((special[4], 0.0))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=model.unk_id, byte_fallback=model.byte_fallback))
    tokenizer.encode_special_tokens = True
    return tokenizer


def read_unigram(path: Path, build: Callable[..., Tokenizer], **settings: Any) -> tuple[Tokenizer, Charsmap]:
    """A SentencePiece model as `build` makes a tokenizer of it with these settings, and the normalisation before it."""
    model = read_sentencepiece(path.read_bytes(), name=str(path))
    return build(model, source=str(path), **settings), Charsmap(model.charsmap)


def add_pieces(tokenizer: Tokenizer, pieces: list[tuple[int, AddedToken]], *, source: str) -> None:
    """Make pieces special (found in any text, never split), in the order of their ids, which must come out as given."""
    for number, piece in sorted(pieces, key=lambda item: item[0]):
        tokenizer.add_special_tokens([piece])
        got = tokenizer.token_to_id(piece.content)
        if got != number:
            raise ValueError(
                f"{source} gives the added piece {piece.content!r} the id {number}, but the next free id is {got}; "
                f"the vocabulary and the added pieces do not belong together."
            )


def read_backend(path: Path, named: dict[str, Any]) -> Tokenizer:
    """A tokenizer.json, without the entities that may be in it. named: tokenizer_config.json. Raises ValueError where
    the `tokenizers` library cannot read it, or cannot encode with it."""
    try:
        text = read_text(path)
        data = parse_json(text)
        for step in _steps(data):
            if step.get("type") == "Precompiled":
                check_charsmap(base64.b64decode(step["precompiled_charsmap"]))
        backend = Tokenizer.from_str(json.dumps(data) if leave_words(data, named) else text)
        check_patterns(backend, source=str(path))
        backend.encode("\u00c9t\u00e9, 1.", add_special_tokens=False)
        return backend
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise ValueError(f"Expected a tokenizer of the `tokenizers` library in {path}, but {error}.") from error


def is_panic(error: BaseException) -> bool:
    """Whether the `tokenizers` library, which is in Rust, has met what it does not expect; no Exception, and has no
    public name."""
    return type(error).__name__ == "PanicException"


def _steps(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in JSON that say what they are."""
    if isinstance(value, dict) and "type" in value:
        yield value
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _steps(inner)


def special_pieces(named: dict[str, Any], default: tuple[str, ...]) -> tuple[str, ...]:
    values = (named.get(key) or piece for key, piece in zip(SPECIAL_KEYS, default, strict=True))
    return tuple(value["content"] if isinstance(value, dict) else value for value in values)


def added_pieces(
    folder: Path, backend: Tokenizer, special: tuple[str, ...], named: dict[str, Any]
) -> list[tuple[int, AddedToken]]:
    """Special and added pieces with their ids. Flags come from tokenizer_config.json, then special_tokens_map.json;
    the mask of RoBERTa and XLM-R takes the whitespace before it, as in their tokenizers."""
    flags: dict[str, dict[str, Any]] = {special[4]: {"lstrip": special[4] == ROBERTA_SPECIAL[4]}}
    ids: dict[str, int | None] = {piece: backend.token_to_id(piece) for piece in special}
    entries = [value for key, value in named.items() if key.endswith("_token") and not key.startswith("entity_")]
    extra = named.get("additional_special_tokens") or []
    for entry in [*entries, *extra]:
        content = entry["content"] if isinstance(entry, dict) else entry
        if isinstance(content, str):
            ids.setdefault(content, backend.token_to_id(content))
            if isinstance(entry, dict):
                flags[content] = entry
    for content, number in read_if_there(folder / "added_tokens.json").items():
        ids[content] = number
    for number, entry in named.get("added_tokens_decoder", {}).items():
        ids[entry["content"]] = int(number)
        flags[entry["content"]] = entry
    if named.get("tokenizer_class") in ("LukeTokenizer", "MLukeTokenizer"):
        for content in ("<ent>", "<ent2>"):
            ids.setdefault(content, backend.token_to_id(content))
    fresh = max([len(backend.get_vocab()) - 1, *(number for number in ids.values() if number is not None)])
    pieces = []
    for content, number in ids.items():
        if number is None and content in special:
            raise ValueError(
                f"Expected the special piece {content!r} in the vocabulary of {folder}, but it is not there; "
                f"special_tokens_map.json or tokenizer_config.json can name other special pieces."
            )
        if number is None:
            number = fresh = fresh + 1
        switches = {key: bool(flags.get(content, {}).get(key)) for key in ("lstrip", "rstrip", "single_word")}
        pieces.append((number, AddedToken(content, normalized=False, special=True, **switches)))
    return pieces


def read_vocab_json(path: Path) -> dict[str, int]:
    vocab = read_if_there(path)
    if not all(isinstance(number, int) for number in vocab.values()):
        raise ValueError(f"Expected piece -> id (integers) in {path}, but not every value is an integer.")
    return vocab


def read_merges(path: Path) -> list[tuple[str, str]]:
    """Lines "left right", best first; the first line is the version."""
    merges = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = line.split()
        if len(pair) != 2:
            raise ValueError(f"Expected two pieces on line {number} of {path}, but got {line!r}.")
        merges.append((pair[0], pair[1]))
    return merges


def read_vocab_txt(path: Path) -> dict[str, int]:
    """One piece a line, id = line. Of a piece that stands twice, the last line counts (as in transformers)."""
    lines = read_text(path).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return {line.rstrip("\r"): number for number, line in enumerate(lines)}


def read_if_there(path: Path) -> dict[str, Any]:
    """The object of a JSON file; {} where the file is absent."""
    return read_object(path) if path.exists() else {}


def _bert_step(**switches: bool) -> normalizers.Normalizer:
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    return normalizers.BertNormalizer(**{**off, **switches})
