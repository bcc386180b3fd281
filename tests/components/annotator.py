"""A table of names, and what an entity_annotator found."""

TABLE = """name\tentity\tcount\toccurrences
New York\tNew York City\t60\t200
New York\tNew York (state)\t40\t200
New York City\tNew York City\t30\t40
York\tYork\t1\t200
the\tThe (article)\t2\t1000
Ada Lovelace\tAda Lovelace\t5\t5
Lovelace's notes\tNote G\t3\t4
"""


def links(doc, key="luke_links"):
    group = doc.spans[key]
    rows = zip(group, group.attrs["scores"].tolist(), group.attrs["priors"].tolist(), strict=True)
    return [(span.text, span.kb_id_, round(score, 3), round(prior, 3)) for span, score, prior in rows]


def ents(doc):
    return [(entity.text, entity.label_, entity.kb_id_) for entity in doc.ents]
