"""The lines of a graph's files: nodes, edges and mentions, one form with a version.

Ids of nodes: Q84, an item of Wikidata; kb:ID, of a knowledge base that does not tell the item, or whose own ids were
asked for; nil:HEX, what no knowledge base has; value:HEX, a date or a number. Places are characters [start, end) of the
document.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

GRAPH_FORMAT = "spacy-luke-graph"
GRAPH_VERSION = 1


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class GraphNode(_Line):
    """A thing, or a value such as a date."""

    id: str = Field(description="Q84, kb:ID, nil:HEX or value:HEX")
    kind: Literal["linked", "nil", "value"] = Field(description="linked: a knowledge base has it")
    label: str = Field(description="the most frequent label of its mentions")
    name: str = Field(description="its title, else its most frequent name")
    title: str = Field(description='of the knowledge base, "" where that has none')
    description: str = Field(description='of the knowledge base, "" where that has none')
    url: str = Field(description='of the knowledge base, "" where that has none')
    wikidata: str = Field(description='its item, "" where nobody tells')
    ids: list[str] = Field(default=[], description="what knowledge bases call it, as links have it; sorted")
    types: list[str] = Field(description="what it is an instance of, as the knowledge base has it; sorted")
    names: dict[str, int] = Field(description="how often it is called what, the most frequent first")
    labels: dict[str, int] = Field(description="labels of its mentions, the most frequent first")
    mentions: int = Field(ge=1, description="how many mentions it has")
    documents: int = Field(ge=1, description="in how many documents")
    score: float | None = Field(description="the best of its mentions' scores")
    link_score: float | None = Field(description="the best of its links' scores; null of what is not linked")


class TextPlace(_Line):
    """A piece of a document."""

    start: int = Field(ge=0, description="its first character")
    end: int = Field(ge=0, description="the character behind its last one")
    text: str = Field(description="its words")


class Evidence(_Line):
    """A place where a document says what an edge says."""

    document: str = Field(description="its id")
    score: float = Field(description="probability of the relation")
    head: TextPlace = Field(description="the mention that it is said of")
    tail: TextPlace = Field(description="the mention that it is said with")
    sentences: list[TextPlace] = Field(description="those of head and tail, once where it is the same")


class GraphEdge(_Line):
    """What holds between two nodes, from head to tail."""

    head: str = Field(description="id of a node")
    label: str = Field(description="what holds")
    property: str = Field(description='what the label is elsewhere, such as P19 of Wikidata; "" where nobody says')
    tail: str = Field(description="id of a node")
    score: float = Field(description="of the best evidence")
    combined: float = Field(description="probability that one text or more is right, were they independent")
    times: int = Field(ge=1, description="how often it is said")
    documents: int = Field(ge=1, description="in how many documents")
    evidence: list[Evidence] = Field(description="the best first; the settings say how many at most")


class GraphMention(_Line):
    """A mention, and the node that it became. Mentions of values are those that a relation has."""

    node: str = Field(description="id of its node")
    document: str = Field(description="id of its document")
    start: int = Field(ge=0, description="its first character")
    end: int = Field(ge=1, description="the character behind its last one")
    text: str = Field(description="its words")
    label: str = Field(description='of the entity, "" of a mention that has types alone')
    score: float | None = Field(description="probability of the label")
    link_score: float | None = Field(description="of the linker; null where it told none")
    entity: str = Field(default="", description='the knowledge base\'s id that it is linked to, "" where it is not')
