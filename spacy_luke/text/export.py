"""Writing a tokenizer as the files that transformers reads."""

import base64
import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, processors

from .backends import SPECIAL_KEYS
from .sentencepiece_model import CONTROL, NORMAL, UNKNOWN, SentencePieceModel, write_sentencepiece

_CLASSES = {"byte_bpe": "LukeTokenizer", "wordpiece": "BertTokenizer", "unigram": "MLukeTokenizer"}
# What LukeTokenizer and MLukeTokenizer of transformers want to find in tokenizer_config.json.
_LUKE_SETTINGS = {
    "entity_token_1": "<ent>",
    "entity_token_2": "<ent2>",
    "entity_unk_token": "[UNK]",
    "entity_pad_token": "[PAD]",
    "entity_mask_token": "[MASK]",
    "entity_mask2_token": "[MASK2]",
    "max_entity_length": 32,
    "max_mention_length": 30,
    "task": None,
}


def write_files(
    backend: Tokenizer,
    folder: Path,
    *,
    kind: str,
    special: tuple[str, ...],
    settings: dict[str, Any],
    charsmap: bytes | None,
) -> None:
    """vocab.json and merges.txt, or vocab.txt, or sentencepiece.bpe.model; and always
    added_tokens.json, special_tokens_map.json, tokenizer_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    model = json.loads(backend.to_str())["model"]
    added = sorted(backend.get_added_tokens_decoder().items())
    if kind == "byte_bpe":
        base = model["vocab"]
        write_json(folder / "vocab.json", base)
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
        write_text(folder / "merges.txt", "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in pairs))
    elif kind == "wordpiece":
        base = model["vocab"]
        _write_vocab_txt(folder / "vocab.txt", base)
    else:
        base = {piece: number for number, (piece, _) in enumerate(model["vocab"])}
        (folder / "sentencepiece.bpe.model").write_bytes(_sentencepiece_of(backend, model, charsmap))
    write_json(folder / "added_tokens.json", {p.content: i for i, p in added if p.content not in base})
    by_content = {piece.content: piece for _, piece in added}
    roles = {key: by_content[piece] for key, piece in zip(SPECIAL_KEYS, special, strict=True) if piece in by_content}
    if kind != "wordpiece":
        roles.update({"bos_token": roles["cls_token"], "eos_token": roles["sep_token"]})
    extra = [piece for _, piece in added if piece.content not in special]
    special_map: dict[str, Any] = {key: _flags(piece) for key, piece in sorted(roles.items())}
    if extra:
        special_map["additional_special_tokens"] = [_flags(piece) for piece in extra]
    write_json(folder / "special_tokens_map.json", special_map)
    write_json(folder / "tokenizer_config.json", _config(kind, roles, extra, added, settings))


def write_backend(backend: Tokenizer, folder: Path, *, special: tuple[str, ...], doubled: bool) -> None:
    """tokenizer.json and tokenizer_config.json. special: [CLS], [SEP], padding, unknown and mask; doubled: whether two
    [SEP] stand between two texts. Both are put around texts where the backend does not do so itself."""
    backend = Tokenizer.from_str(backend.to_str())
    if backend.post_processor is None:
        (cls, sep), ids = special[:2], [(piece, backend.token_to_id(piece)) for piece in special[:2]]
        between = f"{sep} {sep}" if doubled else sep
        backend.post_processor = processors.TemplateProcessing(
            single=f"{cls} $A {sep}", pair=f"{cls} $A {between} $B:1 {sep}:1", special_tokens=ids
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "tokenizer.json", backend.to_str(pretty=True) + "\n")
    names = dict(zip(SPECIAL_KEYS, special, strict=True))
    write_json(folder / "tokenizer_config.json", {**names, "tokenizer_class": "PreTrainedTokenizerFast"})


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, ensure_ascii=False, indent=2, sort_keys=True) + "\n")


def write_text(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf8"))  # no newline translation


def _config(
    kind: str,
    roles: dict[str, AddedToken],
    extra: list[AddedToken],
    added: list[tuple[int, AddedToken]],
    settings: dict[str, Any],
) -> dict[str, Any]:
    config = {**settings, "tokenizer_class": _CLASSES[kind]}
    if kind != "wordpiece":
        config = {**_LUKE_SETTINGS, **config}
    config.update({key: piece.content for key, piece in roles.items()})
    config["additional_special_tokens"] = [piece.content for piece in extra]
    config["added_tokens_decoder"] = {str(number): {**_flags(piece), "special": True} for number, piece in added}
    config.setdefault("clean_up_tokenization_spaces", False)
    return config


def _flags(piece: AddedToken) -> dict[str, Any]:
    return {
        "content": piece.content,
        "lstrip": piece.lstrip,
        "normalized": piece.normalized,
        "rstrip": piece.rstrip,
        "single_word": piece.single_word,
    }


def _write_vocab_txt(path: Path, vocab: dict[str, int]) -> None:
    pieces = sorted(vocab, key=vocab.__getitem__)
    if [vocab[piece] for piece in pieces] != list(range(len(pieces))):
        raise ValueError("Expected the ids of the vocabulary to be 0, 1, 2, ..., but there are gaps between them.")
    write_text(path, "".join(f"{piece}\n" for piece in pieces))


def _sentencepiece_of(backend: Tokenizer, model: dict[str, Any], charsmap: bytes | None) -> bytes:
    """The SentencePiece model inside an XLM-R tokenizer (the inverse of `build_unigram`)."""
    vocab = model["vocab"]
    head, tail = [piece for piece, _ in vocab[:4]], vocab[-1][0]
    if head != ["<s>", "<pad>", "</s>", "<unk>"] or tail != "<mask>":
        raise ValueError(
            f"Expected the vocabulary of XLM-R (<s> <pad> </s> <unk> ... <mask>), but it is {head} ... {tail!r}."
        )
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    pieces += [(piece, score, NORMAL) for piece, score in vocab[4:-1]]
    if charsmap is None:
        steps = json.loads(backend.to_str())["normalizer"] or {}
        maps = [step for step in steps.get("normalizers", [steps]) if step.get("type") == "Precompiled"]
        charsmap = base64.b64decode(maps[0]["precompiled_charsmap"]) if maps else b""
    return write_sentencepiece(
        SentencePieceModel(pieces=pieces, unk_id=0, byte_fallback=bool(model.get("byte_fallback")), charsmap=charsmap)
    )
