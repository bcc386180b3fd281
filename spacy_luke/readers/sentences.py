"""Sentences of a text, by the rules of a language."""

from dataclasses import dataclass
from functools import lru_cache

import spacy
from spacy.language import Language


@dataclass(frozen=True)
class RuleSentences:
    """spaCy's rules: a sentence ends after a full stop, or its like in other scripts, that is a word of its own, which
    the tokenizer of the language keeps apart from those of abbreviations. Its repr tells all that it does."""

    language: str = "en"

    def __call__(self, text: str) -> list[tuple[int, int]]:
        """Characters [start, end) of each sentence, in order."""
        nlp = _blank(self.language)
        doc = nlp.get_pipe("sentencizer")(nlp.tokenizer(text))
        return [(sentence.start_char, sentence.end_char) for sentence in doc.sents]


@lru_cache(maxsize=4)
def _blank(language: str) -> Language:
    """ValueError for a language that spaCy does not know; "xx" suits any."""
    try:
        nlp = spacy.blank(language)
    except ImportError as error:
        raise ValueError(f"spaCy has no rules for the language {language!r} ({error}); take xx.") from error
    nlp.add_pipe("sentencizer")
    return nlp
