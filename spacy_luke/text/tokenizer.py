"""Characters -> pieces, over the `tokenizers` library: byte-level BPE, WordPiece and SentencePiece unigram."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer

from .backends import (
    BERT_SPECIAL,
    ROBERTA_SPECIAL,
    add_pieces,
    added_pieces,
    build_byte_bpe,
    build_deberta,
    build_unigram,
    build_wordpiece,
    is_panic,
    read_backend,
    read_if_there,
    read_merges,
    read_unigram,
    read_vocab_json,
    read_vocab_txt,
    special_pieces,
)
from .charsmap import Charsmap
from .entity_pieces import without_own_keys
from .export import write_files
from .offsets import extend_over_marks, trim_whitespace
from .patterns import check_patterns
from .recent import RecentTexts

# Shapes: N pieces.
PART = 20_000  # characters of a long text that are encoded at once
CACHED_WORDS = 200_000
_KINDS = {"BPE": "byte_bpe", "WordPiece": "wordpiece", "Unigram": "unigram"}
_FILES = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "sentencepiece.bpe.model", "spm.model")
_CLASSES = ("LukeTokenizer", "RobertaTokenizer", "BertTokenizer", "XLMRobertaTokenizer", "MLukeTokenizer")


def safe_cuts(text: str, *, size: int, added: list[AddedToken]) -> Iterator[tuple[int, int]]:
    """Parts [start, end) of a text, cut before a single blank between two letters or digits, about every `size`
    characters: pieces of the parts are those of the whole. No cut touches an added piece that would span it."""
    start = 0
    while len(text) - start > size:
        cut = start + size
        while cut < len(text) - 1 and not _is_safe(text, cut, added):
            cut = text.find(" ", cut + 1)
            if cut < 0:
                cut = len(text)
        if cut >= len(text) - 1:
            break
        yield start, cut
        start = cut
    yield start, len(text)


def _is_safe(text: str, cut: int, added: list[AddedToken]) -> bool:
    if not (text[cut] == " " and text[cut - 1].isalnum() and text[cut + 1].isalnum()):
        return False
    for piece in added:
        size = len(piece.content)
        if piece.rstrip and text.endswith(piece.content, cut - size, cut):
            return False
        if " " in piece.content and piece.content in text[max(0, cut - size + 1) : cut + size]:
            return False
    return True


class PieceTokenizer:
    """Characters -> pieces.

    backend: the tokenizer of the `tokenizers` library. kind: "byte_bpe", "wordpiece" or "unigram".
    special: the pieces that stand for [CLS], [SEP], padding, unknown and mask, in that order.
    settings: the folder's tokenizer_config.json, kept for the export. charsmap: SentencePiece's normalisation, where it
    is not one of the backend's own steps; special pieces are then found here, not by the backend.
    """

    def __init__(
        self,
        backend: Tokenizer,
        *,
        special: tuple[str, ...],
        settings: dict[str, Any] | None = None,
        charsmap: Charsmap | None = None,
    ) -> None:
        model = type(backend.model).__name__
        if model not in _KINDS:
            raise ValueError(f"Expected a tokenizer of one of the models {sorted(_KINDS)}, but got {model!r}.")
        self.backend = backend
        self.backend.no_truncation()
        self.backend.no_padding()
        self.kind = _KINDS[model]
        self.special = tuple(special)
        self.settings = dict(settings or {})
        self.cls_id, self.sep_id, self.pad_id, self.unk_id, self.mask_id = (_special_id(backend, x) for x in special)
        self.word_pieces: dict[str, tuple[int, ...]] = {}  # cache of encode_word, bounded
        self.charsmap = charsmap
        self.backend.encode_special_tokens = charsmap is not None
        self._plain: Tokenizer | None = None
        self._json: str | None = None
        self._find_added()

    def __len__(self) -> int:
        return self.backend.get_vocab_size(with_added_tokens=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return (PieceTokenizer.from_json, (self.to_json(),))

    @property
    def strips_accents(self) -> bool:
        """Whether letters lose their accents, as in BERT's small-letter vocabularies."""
        normalizer = self.backend.normalizer
        return normalizer is not None and normalizer.normalize_str("\u00e9") == "e"

    @property
    def doubles_sep(self) -> bool:
        """Whether two [SEP] stand between the texts of a pair: of encoders that call it </s>, such as RoBERTa."""
        return self.special[1] == ROBERTA_SPECIAL[1]

    def piece_id(self, piece: str) -> int | None:
        """The id of a piece, None where the vocabulary lacks it."""
        return self.backend.token_to_id(piece)

    def is_unknown(self, ids_N: np.ndarray) -> np.ndarray:
        """Which pieces stand for what the vocabulary lacks, bool (N,)."""
        return np.asarray(ids_N == self.unk_id)

    def window(self, *texts_N: np.ndarray) -> np.ndarray:
        """The pieces of a window (int64): [CLS], then those of each text with [SEP] behind them."""
        parts = [np.array([self.cls_id])]
        for ids_N in texts_N:
            parts += [ids_N, np.array([self.sep_id])]
        return np.concatenate(parts)

    def add_special_piece(self, piece: str) -> int:
        """Make `piece` a special one (found in any text, never split). Returns its id, the old one if it has one."""
        self.backend.add_special_tokens([AddedToken(piece, normalized=False, special=True)])
        self._json = None
        self._find_added()
        return _special_id(self.backend, piece)

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ids_N, starts_N, ends_N (int64): the pieces of a text and their characters [start, end) in it.

        No special pieces are added. Blanks at the edge of a piece are not part of [start, end), unless the piece is
        nothing but whitespace. Pieces that are parts of one character all have that character. Long texts are encoded
        part by part. ValueError for a text with a lone surrogate.
        """
        parts = []
        for start, end in safe_cuts(text, size=PART, added=self._added):
            part = text[start:end]
            part_ids, part_offsets = self._encode(part)
            if part_ids:
                offsets_N2 = np.array(part_offsets, dtype=np.int64)
                starts_N, ends_N = trim_whitespace(part, offsets_N2[:, 0], offsets_N2[:, 1])
                if self.kind != "byte_bpe" or self.backend.normalizer is not None:
                    extend_over_marks(part, starts_N, ends_N)
                parts.append((np.array(part_ids, dtype=np.int64), starts_N + start, ends_N + start))
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
        ids, starts, ends = zip(*parts, strict=True)
        return np.concatenate(ids), np.concatenate(starts), np.concatenate(ends)

    def starts_anew(self, text: str, blank: int) -> bool:
        """Whether pieces before this blank depend on nothing from it on, and the other way round."""
        return 0 < blank < len(text) - 1 and _is_safe(text, blank, self._added)

    def encode_word(self, word: str, *, blank: bool) -> tuple[int, ...]:
        """Piece ids of a word on its own; `blank`: with a blank before it (byte-level BPE only). Cached."""
        pieces = self.word_pieces.get(word)
        if pieces is None:
            text = " " + word if blank and self.kind == "byte_bpe" else word
            pieces = tuple(self._encode(text)[0])
            if len(self.word_pieces) >= CACHED_WORDS:
                self.word_pieces.clear()
            self.word_pieces[word] = pieces
        return pieces

    def to_json(self) -> str:
        """Everything in one string; the same tokenizer gives the same string."""
        if self._json is not None:
            return self._json  # as it was read: json of the backend may move the last digit of a score
        charsmap = None if self.charsmap is None else base64.b64encode(self.charsmap.data).decode("ascii")
        data = {"version": 1, "special": self.special, "settings": self.settings, "charsmap": charsmap}
        self._json = json.dumps({**data, "backend": self.backend.to_str()}, ensure_ascii=False, sort_keys=True)
        return self._json

    @classmethod
    def from_json(cls, text: str) -> "PieceTokenizer":
        """The reverse of `to_json`. Raises ValueError for what is none, and as `check_patterns`."""
        data = json.loads(text)
        if data.get("version") != 1:
            raise ValueError(f"Expected a tokenizer of version 1, but got version {data.get('version')!r}.")
        charsmap = None if data["charsmap"] is None else Charsmap(base64.b64decode(data["charsmap"]))
        backend = Tokenizer.from_str(data["backend"])
        check_patterns(backend, source="this pipeline")
        tokenizer = cls(backend, special=tuple(data["special"]), settings=data["settings"], charsmap=charsmap)
        tokenizer._json = text
        return tokenizer

    @classmethod
    def from_folder(cls, folder: str | Path, *, defaults: dict[str, Any] | None = None) -> "PieceTokenizer":
        """Read the tokenizer of a checkpoint folder: vocab.json and merges.txt (RoBERTa, LUKE), vocab.txt (BERT),
        sentencepiece.bpe.model (XLM-R, mLUKE) or spm.model (DeBERTa-v3), with what tokenizer_config.json,
        special_tokens_map.json and added_tokens.json say; or tokenizer.json, where these are not or of another class.
        defaults: settings that hold where tokenizer_config.json does not say."""
        folder = Path(folder)
        try:
            return cls._from_files(folder, defaults or {})
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise ValueError(
                f"The tokenizer's files in {folder} do not hold what they should ({error!r}). Download them again."
            ) from error

    @classmethod
    def _from_files(cls, folder: Path, defaults: dict[str, Any]) -> "PieceTokenizer":
        settings = {**defaults, **without_own_keys(read_if_there(folder / "tokenizer_config.json"))}
        named = {**settings, **read_if_there(folder / "special_tokens_map.json")}
        charsmap = None
        has = {name: (folder / name).exists() for name in _FILES}
        known = str(settings.get("tokenizer_class") or "LukeTokenizer").removesuffix("Fast") in _CLASSES
        if has["tokenizer.json"] and not (known and any(has[name] for name in _FILES[1:] if name != "merges.txt")):
            backend = read_backend(folder / "tokenizer.json", named)
            default = BERT_SPECIAL if backend.token_to_id("[CLS]") is not None else ROBERTA_SPECIAL
            return cls(backend, special=special_pieces(named, default), settings=settings)
        if has["vocab.json"] and has["merges.txt"]:
            special = special_pieces(named, ROBERTA_SPECIAL)
            prefix = bool(settings.get("add_prefix_space", False))
            vocab, merges = read_vocab_json(folder / "vocab.json"), read_merges(folder / "merges.txt")
            backend = build_byte_bpe(vocab, merges, unk=special[3], prefix=prefix)
        elif has["vocab.txt"]:
            special = special_pieces(named, BERT_SPECIAL)
            backend = build_wordpiece(read_vocab_txt(folder / "vocab.txt"), unk=special[3], settings=settings)
        elif has["sentencepiece.bpe.model"]:
            special = special_pieces(named, ROBERTA_SPECIAL)
            backend, charsmap = read_unigram(folder / "sentencepiece.bpe.model", build_unigram)
        elif has["spm.model"]:
            special = special_pieces(named, BERT_SPECIAL)
            path = folder / "spm.model"
            backend, charsmap = read_unigram(path, build_deberta, special=special, settings=settings)
        else:
            found = sorted(name for name in has if has[name]) or "none of them"
            raise ValueError(
                f"Expected the files of a tokenizer in {folder} (vocab.json and merges.txt; vocab.txt; "
                f"sentencepiece.bpe.model; spm.model; or tokenizer.json), but found {found}."
            )
        add_pieces(backend, added_pieces(folder, backend, special, named), source=str(folder))
        return cls(backend, special=special, settings=settings, charsmap=charsmap)

    def save_huggingface(self, folder: str | Path) -> None:
        """Write files that transformers reads: LukeTokenizer (byte_bpe), BertTokenizer or MLukeTokenizer (unigram).
        The entity vocabulary is not among them."""
        charsmap = None if self.charsmap is None else self.charsmap.data
        write_files(
            self.backend, Path(folder), kind=self.kind, special=self.special, settings=self.settings, charsmap=charsmap
        )

    def _find_added(self) -> None:
        self.word_pieces.clear()
        self.recent = RecentTexts()
        self._added = list(self.backend.get_added_tokens_decoder().values())
        longest_first = sorted((piece.content for piece in self._added), key=lambda content: (-len(content), content))
        lstrip = {piece.content for piece in self._added if piece.lstrip}
        choices = [(r"\s*" if content in lstrip else "") + re.escape(content) for content in longest_first]
        self._special_pattern = re.compile("|".join(choices))

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids and untrimmed offsets of a text."""
        try:
            if self.charsmap is None:
                encoding = self.backend.encode(text, add_special_tokens=False)
                return encoding.ids, encoding.offsets
            return self._encode_segments(text, self.charsmap)
        except (TypeError, UnicodeEncodeError):
            lone = [i for i, char in enumerate(text) if 0xD800 <= ord(char) < 0xE000]
            if not lone:
                raise
            raise ValueError(
                f"Expected Unicode text, but it holds the lone surrogate {text[lone[0]]!r}, after "
                f"{text[max(0, lone[0] - 20) : lone[0]]!r}; decode the text with errors='replace'."
            ) from None
        except BaseException as error:
            if not is_panic(error):
                raise
            raise ValueError(
                f"The rules of the tokenizer do not end well on the text {text[:40]!r}...: {error}. Rules of BERT, "
                "RoBERTa and XLM-R read any text; these are of another checkpoint's tokenizer.json."
            ) from error

    def _encode_segments(self, text: str, charsmap: Charsmap) -> tuple[list[int], list[tuple[int, int]]]:
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        done = 0
        for match in [*self._special_pattern.finditer(text), None]:
            start = len(text) if match is None else match.start()
            if done < start:
                segment_ids, segment_offsets = self._encode_segment(text[done:start], charsmap)
                ids += segment_ids
                offsets += [(done + a, done + b) for a, b in segment_offsets]
            if match is not None:
                ids.append(_special_id(self.backend, match[0].lstrip()))
                offsets.append(match.span())
                done = match.end()
        return ids, offsets

    def _encode_segment(self, text: str, charsmap: Charsmap) -> tuple[list[int], list[tuple[int, int]]]:
        """SentencePiece: normalise, drop blanks that follow a blank or end the text, put one before the first word,
        encode, and map the offsets back."""
        normal, starts, ends = charsmap.normalize(text)
        normal = normal.rstrip(" ▁")
        if not normal:
            return [], []
        if "  " in normal:
            codes = np.frombuffer(normal.encode("utf-32-le"), dtype=np.uint32)
            extra = np.append((codes[:-1] == 32) & (codes[1:] == 32), False)
            normal = codes[~extra].tobytes().decode("utf-32-le")
            kept = np.flatnonzero(~extra)
            starts, ends = (kept, kept + 1) if starts is None or ends is None else (starts[kept], ends[kept])
        prefix = 0 if normal[0] == " " else 1
        backend = self._without_special() if self._special_pattern.search(normal) else self.backend
        encoding = backend.encode((" " * prefix + normal).replace(" ", "▁"), add_special_tokens=False)
        offsets = [(max(a - prefix, 0), max(b - prefix, 1)) for a, b in encoding.offsets]
        if starts is not None and ends is not None:
            offsets = [(int(starts[a]), int(ends[b - 1])) for a, b in offsets]
        return encoding.ids, offsets

    def _without_special(self) -> Tokenizer:
        """The backend with other names for the special pieces, for text that looks like one when it is normalised
        ("＜mask＞" in full-width characters): there it is no special piece."""
        if self._plain is None:
            data = json.loads(self.backend.to_str())
            vocab = data["model"]["vocab"]
            renamed = [(f"\uffff{piece}" if piece in self.special else piece, score) for piece, score in vocab]
            data["model"]["vocab"], data["added_tokens"] = renamed, []
            self._plain = Tokenizer.from_str(json.dumps(data))
        return self._plain


def _special_id(backend: Tokenizer, piece: str) -> int:
    number: int | None = backend.token_to_id(piece)
    if number is None:
        raise ValueError(f"Expected the special piece {piece!r} in the vocabulary, but it is not there.")
    return number
