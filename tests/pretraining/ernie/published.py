"""The original's published sample, and the numbers of its entities, which are found again by making the records
anew."""

import random
from collections import Counter

from spacy_luke.pretraining.ernie.instances import InstanceSettings, LinkedSentence, pair_documents
from spacy_luke.pretraining.ernie.sources import make_piece_documents

DOCUMENTS = 11  # sample.bin was made of the first ones of wiki_token
SEED = 53  # what random.Random(12345).randint(0, 100), the original's default, gives
BERT = InstanceSettings(cls_id=101, sep_id=102, mask_id=103, random_pieces=30521, min_entities=0)


def remake(folder, settings=BERT, documents=DOCUMENTS):
    """All instances of the original's documents, their entities as numbers of Wikidata ids in order of appearance; and
    the ids."""
    ids = {}
    read = make_piece_documents(str(folder / "wiki"), placing="code", limit=documents)
    encoded = []
    for document in read(0):
        sentences = []
        for pieces, mentions in document.sentences:
            entities = [-1] * len(pieces)
            for start, _, name in mentions:
                entities[start] = ids.setdefault(name, len(ids))
            sentences.append(LinkedSentence(list(pieces), entities))
        encoded.append((document.name, sentences))
    counts = Counter()
    made = list(pair_documents(encoded, settings=settings, rng=random.Random(SEED), counts=counts))
    return made, list(ids), counts
