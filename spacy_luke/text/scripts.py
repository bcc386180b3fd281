"""Scripts that are written without blanks between words, and where blanks stand in texts of which only words are known.

CoNLL files and lists of tokens do not say where blanks stood. Between Latin words, or Korean ones, there was
one mostly; between those of Chinese, Japanese or Thai there was none, and a pipeline that is trained on "北 京"
misreads "北京".
"""

import re
import unicodedata
from collections.abc import Sequence

_EAST = (
    r"\u3005-\u3007\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003ffff"
)
# Ranges of a pattern: Thai, Lao, Burmese, Khmer; kana, bopomofo and Chinese characters. Of names in these scripts each
# character is a word of its own.
ALONE = rf"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f{_EAST}"
# Tibetan, Tai Le and Tai Lue, Tai Tham, Balinese, Javanese, Tai Viet: without blanks between words as well.
_LETTERS = rf"{ALONE}\u0f00-\u0fff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9df\uaa80-\uaadf"
# Punctuation of Chinese and Japanese, and letters, digits and punctuation as wide as their characters.
_WIDE = r"\u3000-\u303f\ufe30-\ufe4f\uff01-\uff65"
_LETTER = re.compile(f"[{_LETTERS}]")
_UNSPACED = re.compile(f"[{_LETTERS}{_WIDE}]")
_EASTERN = re.compile(f"[{_EAST}{_WIDE}]")
_OPENS, _CLOSES = frozenset("([{"), frozenset(".,;:!?%)]}")


def judged_blanks(words: Sequence[str]) -> list[bool] | None:
    """Whether a blank follows each word of a text; None where the scripts do not tell, as of Latin or Korean words.

    None stands between two words in scripts without blanks. Where most letters of the text are of such scripts, none
    stands beside Chinese and Japanese characters either ("2020年", "iPhone手机") and beside punctuation that is not
    ASCII, nor between two words of one character, since such texts are often given character by character. Between all
    others a blank stands, so between Latin words, and between these and Thai; but not before punctuation that closes,
    or behind a bracket that opens.

    words: none is empty.
    """
    text = "".join(words)
    if text.isascii() or not _UNSPACED.search(text):
        return None
    others = "".join(filter(str.isalpha, _LETTER.sub("", text)))
    mostly = _weight("".join(_LETTER.findall(text))) > _weight(others)
    pairs = list(zip(words, words[1:]))
    if not mostly and not any(_both(_UNSPACED, left, right) for left, right in pairs):
        return None
    return [*(_is_blank(left, right, mostly=mostly) for left, right in pairs), False]


def _weight(letters: str) -> int:
    """In bytes of UTF-8: three for a Chinese or Korean character, which stands for about as many Latin letters."""
    return len(letters.encode("utf8", "surrogatepass"))


def _is_blank(left: str, right: str, *, mostly: bool) -> bool:
    """mostly: whether most letters of the text are of scripts without blanks."""
    if _both(_UNSPACED, left, right):
        return False
    if mostly and (len(left) == len(right) == 1 or _is_eastern(left[-1]) or _is_eastern(right[0])):
        return False
    return left not in _OPENS and right not in _CLOSES


def _both(pattern: re.Pattern[str], left: str, right: str) -> bool:
    return bool(pattern.match(left[-1]) and pattern.match(right[0]))


def _is_eastern(character: str) -> bool:
    """Whether Chinese and Japanese have no blank beside it: one of theirs, or punctuation such as “ and …."""
    return bool(_EASTERN.match(character)) or (not character.isascii() and unicodedata.category(character)[0] in "PS")
