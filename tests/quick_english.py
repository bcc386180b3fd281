"""spaCy's English in the tests: the special cases of its tokenizer that texts of the tests hold, and no more.

All 1,347 of them are made anew in each pipeline that is made, loaded or copied: two thirds of the time that this takes
for a tiny pipeline. The entry points of the environment are looked up by group once, not at each look into a registry.
"""

import catalogue
from spacy.lang.en import English

BLANKS = [" ", "\t", "\\t", "\n", "\\n", "\u2014", "\u00a0"]
ABBREVIATIONS = "a. b. c. d. f. p. a.m. p.m. e.g. i.e. Dr. Mr. Mrs. Ms. St. Inc. Ltd. Co. Corp. Jan. Feb. C++".split()
CONTRACTIONS = "'s 'S \u2019s ' '' don't Don't can't cannot isn't i'm I'm I'll it's It's that's".split()
CONTRACTIONS += "They're they're i've What's".split()
SMILEYS = ":) :( :D :3 :0 :1 :-3 ._. 0.0".split()
KEPT = [*BLANKS, *ABBREVIATIONS, *CONTRACTIONS, *SMILEYS]


def make_quick() -> None:
    """For the process of the tests; the programs that tests start have spaCy's English as it is."""
    rules = English.Defaults.tokenizer_exceptions
    English.Defaults.tokenizer_exceptions = {rule: rules[rule] for rule in KEPT if rule in rules}
    points = catalogue.AVAILABLE_ENTRY_POINTS
    catalogue.AVAILABLE_ENTRY_POINTS = {group: list(points.select(group=group)) for group in points.groups}
