"""Names under which annotations lie on Docs, each said once.

What a name of `doc.user_data` holds is said in `rows`. `doc._` has the same names, but for two: candidates that a data
set gives are `doc._.luke_candidates_given`, and those that a linker considered `span._.luke_candidates`. The names in
`doc.user_data` are those of saved files, and do not change.
"""

NIL = "NIL"  # the `kb_id_` of a mention whose entity is in no knowledge base, as spaCy's entity_linker writes it
UNLINKED = ("", NIL)  # the `kb_id_` of a mention whose entity is not said, or is in no knowledge base
PLACEHOLDER = "@placeholder"  # what a query asks for, as in ReCoRD

# doc.user_data
RELATIONS = "luke_relations"
PAIRS = "luke_pairs"
QUESTIONS = "luke_questions"
QUERIES = "luke_queries"
ANSWERS = "luke_answers"  # found for the questions
FILLERS = "luke_fillers"  # found for the queries
KNOWLEDGE = "luke_knowledge"
GIVEN_CANDIDATES = "luke_candidates"
LINKED_CANDIDATES = "luke_linked"
LINK_EVIDENCE = "luke_evidence"
LINKED_ENTITIES = "luke_entities"  # what is known of the entities that mentions are linked to
SECOND = "luke_second"
SCOPE = "luke_scope"  # what gold says, and what it leaves open
FIELDS = "luke_fields"  # of the record that a Doc was made of, for whoever reads it
TAUGHT = "luke_taught"  # what another pipeline says, for one that shall learn it

# doc.spans
LINKS = "luke_links"  # mentions with their `kb_id_`, where they overlap, which doc.ents cannot hold
TYPES = "luke_types"  # a span for each type of a mention, with that label; one with "" where a mention has no type
MENTIONS = "luke_mentions"  # mentions that are given, to be typed
OWN_GROUPS = (LINKS, TYPES, MENTIONS)  # that hold no entities to be found

# span._
SCORE = "luke_score"
SPAN_TYPES = "luke_types"  # {type: probability}
CANDIDATES = "luke_candidates"
ENTITY = "luke_entity"
