"""Patterns of strangers' tokenizers: what may take longer than a text is long is refused."""

import json
import random

import pytest
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from spacy_luke.text.backends import build_wordpiece, read_backend
from spacy_luke.text.patterns import KNOWN, check_patterns, refusal
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.tiny import make_checkpoint

FINE = [
    "", " {2,}", r"\s+", r"\p{C}", r"[!-/:-@\[-`{-~\p{P}]", r"[\x{2B820}-\x{2B91F}]", "(?:ab|c)+", "(?i)x+", "[^]a]+",
    r"\b\w+", "a|b|c", "a{2}b{1,3}c*", "[[a-z]&&[^b]]+", "a+b*c?", "(?<=x)y+", "(?i:[sdmt]|ll|ve)", "a{,5}b", "a{x}",
]  # fmt: skip
REFUSED = {
    "(a+)+$": "is repeated",
    "(.*)*(.*)*(.*)*x": "is repeated",
    "a++": "is repeated",
    "a+$": "followed by more",
    "a*a*b": "followed by more",
    r"\w+\b": "followed by more",
    r"\s+(?!\S)": "followed by more",
    "(x|a*)b": "followed by more",
    "(?=.*x)a": "followed by more",
    "(?=.*)a": "without limit",
    "((a{1,1000}){1,1000}){1,1000}": "more than 10,000 characters",
    "(a|a){30}b": "more than 10,000 characters",
    "a{99999}b": "more than 10,000 characters",
    "(a|b)" * 4000: "20,000 characters",
    "(" * 60 + ")" * 60: "groups in groups",
    "(": "brackets",
    "a)": "brackets",
    "[a": "brackets",
    "a\\": "backslash",
    r"(a)\1": "not known",
    r"\X": "not known",
    "(?<n>a)": "not known",
    "(?x)a": "not known",
    "(?~a)": "not known",
    "(*FAIL)": "not known",
}


MOST_STEPS = 10_000


@pytest.mark.parametrize("pattern", [*FINE, *sorted(KNOWN)])
def test_what_is_read(pattern):
    assert refusal(pattern) is None
    Regex(pattern)


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda x: x[:30])
def test_what_is_refused(pattern):
    assert REFUSED[pattern] in refusal(pattern)


def draw(rng, depth):
    """A pattern of a and b: ("one", letter), ("all", parts), ("any", parts) or ("times", part, least, most)."""
    kind = rng.choice(["one", "all", "any", "times"]) if depth else "one"
    if kind == "one":
        return kind, rng.choice("ab")
    if kind == "times":
        return kind, draw(rng, depth - 1), *rng.choice([(0, None), (1, None), (0, 1), (2, 3), (2, None)])
    return kind, [draw(rng, depth - 1) for _ in range(rng.randint(1, 3))]


def written(node):
    if node[0] == "one":
        return node[1]
    if node[0] == "times":
        return f"(?:{written(node[1])}){{{node[2]},{'' if node[3] is None else node[3]}}}"
    return "(?:" + ("" if node[0] == "all" else "|").join(map(written, node[1])) + ")"


def ends(node, text, at, steps):
    """Where a match from `at` may end, the first choice first, as a backtracking engine tries them; steps[0] counts,
    and no more is tried after MOST_STEPS."""
    steps[0] += 1
    if steps[0] > MOST_STEPS:
        return
    if node[0] == "one":
        if text[at : at + 1] == node[1]:
            yield at + 1
    elif node[0] == "any":
        for part in node[1]:
            yield from ends(part, text, at, steps)
    elif node[0] == "all":
        first, *rest = node[1]
        for end in ends(first, text, at, steps):
            if rest:
                yield from ends(("all", rest), text, end, steps)
            else:
                yield end
    else:
        _, part, least, most = node
        if most is None or most > 0:
            for end in ends(part, text, at, steps):
                if end > at or least > 0:
                    less = ("times", part, max(least - 1, 0), None if most is None else most - 1)
                    yield from ends(less, text, end, steps)
        if least == 0:
            yield at


def count_steps(node, text):
    """Steps to find all matches in a text, one after the other."""
    steps, at = [0], 0
    while at < len(text) and steps[0] < MOST_STEPS:
        end = next(ends(node, text, at, steps), at)
        at = max(end, at + 1)
    return steps[0]


def test_what_is_read_is_quick():
    """Beside an engine that goes back one step at a time: twice the text, at most twice the steps."""
    rng = random.Random(0)
    read, slow = 0, 0
    for _ in range(1000):
        node = draw(rng, 4)
        grows = any(
            count_steps(node, text * 40) > 2.2 * count_steps(node, text * 20) + 100 for text in ("a", "ab", "aab")
        )
        if refusal(written(node)) is None:
            read += 1
            assert not grows, written(node)
        slow += grows
    assert read > 100
    assert slow > 10


def test_where_patterns_are(tmp_path):
    slow = pre_tokenizers.Split(Regex("a+$"), "isolated")
    for part in (
        {"pre_tokenizer": slow},
        {"pre_tokenizer": pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), slow])},
        {"normalizer": normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex("a+$"), "")])},
    ):
        tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
        for name, step in part.items():
            setattr(tokenizer, name, step)
        tokenizer.save(str(tmp_path / "tokenizer.json"))
        with pytest.raises(ValueError, match=r"tokenizer\.json has the regular expression 'a\+\$', which may take"):
            read_backend(tmp_path / "tokenizer.json", {})


def test_words_of_any_length(tmp_path):
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]", max_input_chars_per_word=10**6))
    with pytest.raises(ValueError, match="up to 1,000,000 characters"):
        check_patterns(tokenizer, source="x")


def test_saved_pipelines_too():
    text = make_checkpoint().tokenizer.to_json()
    data = json.loads(text)
    backend = json.loads(data["backend"])
    backend["normalizer"] = {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""}
    with pytest.raises(ValueError, match="which may take very long"):
        PieceTokenizer.from_json(json.dumps({**data, "backend": json.dumps(backend)}))


def test_our_own_are_read():
    for lower in (True, False):
        vocab = {"[UNK]": 0, "a": 1}
        check_patterns(build_wordpiece(vocab, unk="[UNK]", settings={"do_lower_case": lower}), source="x")
