"""Names under which annotations lie on Docs."""

NIL = "NIL"  # the `kb_id_` of a mention whose entity is in no knowledge base, as spaCy's entity_linker writes it
PLACEHOLDER = "@placeholder"  # what a query asks for, as in ReCoRD
LINKS = "luke_links"  # doc.spans: mentions with `kb_id_`, where they overlap; else they are in doc.ents
TYPES = "luke_types"  # doc.spans: a span for each type of a mention, one without a label for a mention that has none
MENTIONS = "luke_mentions"  # doc.spans: mentions that are given to be typed
