"""The errors that are answers: what the package says of bad input, by its words. Anything else that is raised is a
failure."""

import re

# One pattern for each documented refusal of what is on a Doc, and why it is one.
DOCUMENTED = {
    r"doc\._\.luke_second must be a character where a word begins": "a pair of texts is divided between words",
    r"The question .* has \d+ pieces, but (max_question_pieces is|a window of)": "a question that is too long is no "
    "part of itself",
    r"The query .* has \d+ pieces, but it may have": "a query must fit into half of a window",
    r"A query must have @placeholder exactly once": "a query asks for one gap",
    r"Entity \d+ of the question .* must have characters": "places lie in the text",
    r"The prior of a candidate must be 0 or more": "priors are probabilities",
    r"doc\.user_data\['luke_\w+'\](: row \d+)? must be ": "rows have a form, and places lie in the text",
    r"The Doc has luke_(answers|fillers) of \d+": "answers belong to the questions that are asked",
    r"An annotation has the characters .*, but the Doc's text has": "user_data of another Doc",
}
PATTERN = re.compile("|".join(DOCUMENTED))


def is_documented(error: BaseException) -> bool:
    return isinstance(error, ValueError) and PATTERN.search(str(error)) is not None
