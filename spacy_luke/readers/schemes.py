"""Tags of words -> mentions, and back: IOB1, IOB2, BIOES (BILOU), and the entity brackets of GUM.

A mention is `(start, end, label)`, words `start` to `end - 1` of the sequence that was given.
"""

import re
from collections.abc import Sequence

WordMention = tuple[int, int, str]

SCHEMES = ("auto", "IOB1", "IOB2", "BIOES", "BILOU")
_BRACKET = re.compile(r"\((?P<opened>[^()]+)(?P<at_once>\))?|(?P<closed>[^()]+)\)")


class TagError(ValueError):
    """A tag that cannot be read; `index` is the position of its word in the sequence that was given."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


def decode_tags(tags: Sequence[str], *, scheme: str = "auto") -> list[WordMention]:
    """Mentions of one sentence, in order.

    Tags are read as the `conlleval` script of CoNLL-2000 and CoNLL-2003 reads them, which is right for valid IOB1,
    IOB2 and BIOES alike and gives every invalid sequence one meaning too: a mention goes on where the tag is I or E
    (L), the tag before is B or I, and the labels are equal; every other tag but O begins a mention. seqeval's
    default mode does the same.

    scheme: "auto" takes any sequence. A named scheme demands valid sequences, those that `encode_tags` gives; IOB1
    takes a B that is not needed too, since its meaning is clear (CoNLL-2003's training file has one).

    Raises TagError for a tag that is not "O" or "<prefix>-<label>", and for a sequence invalid in the named scheme.
    """
    _check_scheme(scheme)
    mentions: list[WordMention] = []
    before, label_before, start = "O", "", 0
    for i, tag in enumerate([*tags, "O"]):
        prefix, label = _split_tag(tag, i)
        goes_on = prefix in ("I", "E") and before in ("B", "I") and label == label_before
        if before != "O" and not goes_on:
            mentions.append((start, i, label_before))
        if not goes_on:
            start = i
        before, label_before = prefix, label
    if scheme != "auto":
        _check_tags(tags, encode_tags(mentions, len(tags), scheme=scheme), scheme)
    return mentions


def encode_tags(mentions: Sequence[WordMention], length: int, *, scheme: str = "IOB2") -> list[str]:
    """The tags of a sentence of `length` words; the mentions must not overlap.

    IOB1: B only where a mention follows another of the same label at once. IOB2: B at every beginning.
    BIOES: also E at the end, S for a single word; BILOU is the same with L and U.
    """
    _check_scheme(scheme)
    if scheme == "auto":
        raise ValueError(f'encode_tags needs one of the schemes {SCHEMES[1:]}, but got "auto".')
    last, single = ("L", "U") if scheme == "BILOU" else ("E", "S")
    tags = ["O"] * length
    for start, end, label in sorted(mentions):
        if not 0 <= start < end <= length or any(tag != "O" for tag in tags[start:end]):
            raise ValueError(
                f"Mentions must lie within the {length} words and not overlap, but {(start, end, label)} does not."
            )
        tags[start:end] = [f"I-{label}"] * (end - start)
        if scheme != "IOB1" or (start and tags[start - 1][2:] == label):
            tags[start] = f"B-{label}"
        if scheme in ("BIOES", "BILOU"):
            tags[end - 1] = f"{last}-{label}"
            if end - start == 1:
                tags[start] = f"{single}-{label}"
    return tags


def decode_brackets(cells: Sequence[str], *, fields: Sequence[str] | None = None) -> list[WordMention]:
    """Mentions of one document, nested ones too, from GUM's `Entity=` values ("" for a word without one).

    `(12-person-new-...` opens mention 12, `12)` closes the one of that id that was opened last,
    `(12-person-...)` does both. `fields` are the names of the parts between the hyphens, from the comment
    `# global.Entity`; the part called "etype" is the label (GUM and CorefUD; README of UD_English-GUM, "Entity").

    Raises TagError for text outside brackets, a bracket that is never opened or never closed, and a mention in
    several parts (`(12[1/2]-...` in CorefUD), which no span can hold.
    """
    place = _label_place(fields)
    mentions: list[WordMention] = []
    opened: dict[str, list[tuple[int, str]]] = {}
    for i, cell in enumerate(cells):
        if _BRACKET.sub("", cell):
            raise TagError(i, f"expected brackets such as (1-person-new, 1) or (1-person-new), but got {cell!r}")
        for match in _BRACKET.finditer(cell):
            if match["closed"]:
                if not opened.get(match["closed"]):
                    raise TagError(i, f"{match[0]!r} closes a mention that is not open")
                start, label = opened[match["closed"]].pop()
                mentions.append((start, i + 1, label))
                continue
            parts = match["opened"].split("-")
            if "[" in parts[0] or len(parts) <= place or not parts[place]:
                raise TagError(i, f"expected an id and a label in one part, but got {match[0]!r}")
            if match["at_once"]:
                mentions.append((i, i + 1, parts[place]))
            else:
                opened.setdefault(parts[0], []).append((i, parts[place]))
    still_open = [(start, name) for name, stack in opened.items() for start, _ in stack]
    if still_open:
        start, name = min(still_open)
        raise TagError(start, f"mention {name!r} is opened but not closed before the document ends")
    return sorted(mentions)


def _label_place(fields: Sequence[str] | None) -> int:
    if fields is None:
        return 1
    if "etype" not in fields:
        raise ValueError(f"'# global.Entity' must name the part 'etype' (the label), but its parts are {list(fields)}.")
    return list(fields).index("etype")


def _check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {SCHEMES}, but it is {scheme!r}.")


def _split_tag(tag: str, i: int) -> tuple[str, str]:
    """Prefix (B, I, E, S or O) and label; L and U of BILOU become E and S."""
    if tag == "O":
        return "O", ""
    prefix, _, label = tag.partition("-")
    prefix = {"L": "E", "U": "S"}.get(prefix, prefix)
    if prefix not in ("B", "I", "E", "S") or not label:
        raise TagError(i, f"expected the tag O, or one of B I E S L U, a hyphen and a label, but got {tag!r}")
    return prefix, label


def _check_tags(tags: Sequence[str], valid: Sequence[str], scheme: str) -> None:
    for i, (tag, expected) in enumerate(zip(tags, valid, strict=True)):
        if tag != expected and not (scheme == "IOB1" and tag[:2] == "B-" and expected[:2] == "I-"):
            raise TagError(
                i,
                f"tag {tag!r} is not valid {scheme} here, it would have to be {expected!r}; mend the file, or set "
                f'scheme to "auto" to read it as conlleval does',
            )
