"""The service over HTTP: replies, errors, limits, the page, metrics."""

import asyncio
import gzip
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spacy_luke.annotations import register_extensions
from spacy_luke.pipelines.annotation import Annotator
from spacy_luke.service.app import make_app
from spacy_luke.service.forms import CODES, ErrorReply, Reply, RequestLimits, openapi
from tests.pipelines import QUESTION, make_pipeline
from tests.tiny import SENTENCES

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("prometheus_client", reason="needs the extra serve")
ROOT = Path(__file__).parent.parent.parent
LIMITS = RequestLimits(characters=400, documents=8, waiting=30, seconds=30, request=10_000)


@pytest.fixture(scope="module")
def annotator():
    return Annotator(make_pipeline())


@pytest.fixture
def client(annotator):
    with _client(annotator, LIMITS) as client:
        yield client


def _client(annotator, limits):
    from starlette.testclient import TestClient

    return TestClient(make_app(annotator, limits), raise_server_exceptions=False)


def ask(client, *texts, **more):
    return client.post("/annotate", json={"documents": [{"text": text, **more} for text in texts]})


def test_annotate(client, annotator):
    reply = ask(client, *SENTENCES, id="mine", questions=[QUESTION])
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    documents = Reply.model_validate_json(reply.content).documents
    assert [x.text for x in documents] == SENTENCES
    assert {x.id for x in documents} == {"mine"}
    assert [x.text for x in documents[0].entities] == [x.text for x in annotator.nlp(SENTENCES[0]).ents]
    assert [x.question for x in documents[0].answers] == [QUESTION]
    assert documents[0].entities


@pytest.mark.parametrize(
    ("body", "code", "where", "message"),
    [
        (b"", "invalid_request", None, "JSON"),
        (b"{", "invalid_request", None, "JSON"),
        (b"[]", "invalid_request", None, "documents"),
        (b'{"documents": []}', "invalid_request", "documents", "at least 1"),
        (b'{"text": "Ada"}', "invalid_request", "documents", "required"),
        (b'{"documents": [{"text": "a"}, {"txt": "b"}]}', "invalid_request", "documents[1].text", "required"),
        (b'{"documents": [{"text": 5}]}', "invalid_request", "documents[0].text", "but it is 5"),
        (b'{"documents": [{"text": "a", "lang": "en"}]}', "invalid_request", "documents[0].lang", "not permitted"),
        (b'{"documents": [{"text": "\\ud800"}]}', "invalid_request", None, "hex escape"),
        (b'{"documents": [{"text": "\xff"}]}', "invalid_request", None, "JSON"),
        (json.dumps({"documents": [{"text": "x" * 401}]}), "too_long", "documents[0].text", "401 characters"),
        (json.dumps({"documents": [{"text": "x"}] * 9}), "too_long", "documents", "9 documents"),
        (b" " * 10_001, "too_long", None, "10,000 bytes"),
    ],
)
def test_requests_that_are_wrong(client, body, code, where, message):
    reply = client.post("/annotate", content=body)
    assert reply.status_code == CODES[code][0]
    failure = ErrorReply.model_validate_json(reply.content).error
    assert (failure.code, failure.where) == (code, where)
    assert message in failure.message


def test_packed_requests(client):
    body = json.dumps({"documents": [{"text": "Ada"}]}).encode()
    reply = client.post("/annotate", content=gzip.compress(body), headers={"content-encoding": "gzip"})
    assert reply.status_code == 415
    failure = ErrorReply.model_validate_json(reply.content).error
    assert (failure.code, failure.where) == ("packed", None)
    assert failure.message == "Expected JSON as it is, but Content-Encoding is 'gzip': send it unpacked."
    assert client.post("/annotate", content=body, headers={"content-encoding": "identity"}).status_code == 200


def test_the_documentation_has_all_codes():
    told = re.findall(r"\| `(\w+)` \| (\d+) \|", (ROOT / "docs/howto/serving.md").read_text(encoding="utf8"))
    assert dict(told) == {code: str(status) for code, (status, _) in CODES.items()}


def test_questions_need_a_component(annotator, monkeypatch):
    monkeypatch.setattr(annotator, "answers_questions", False)
    monkeypatch.setattr(annotator, "fills_queries", False)
    with _client(annotator, LIMITS) as client:
        for what in ("questions", "queries"):
            reply = ask(client, "Ada", **{what: ["@placeholder?"]})
            failure = ErrorReply.model_validate_json(reply.content).error
            assert (reply.status_code, failure.code, failure.where) == (422, "not_asked", f"documents[0].{what}")


def test_addresses_that_are_none(client):
    for reply, code in ((client.get("/nowhere"), "not_found"), (client.get("/annotate"), "wrong_method")):
        assert reply.status_code == CODES[code][0]
        assert ErrorReply.model_validate_json(reply.content).error.code == code


@pytest.fixture
def gate(annotator, monkeypatch):
    """The pipeline works only when the gate is open."""
    gate = threading.Event()
    make_doc = annotator.make_doc
    monkeypatch.setattr(annotator, "make_doc", lambda *given: gate.wait(30) and make_doc(*given))
    yield gate
    gate.set()


def test_eight_clients_lose_nothing(client, annotator, gate):
    texts = [f"{SENTENCES[i % len(SENTENCES)]} {i}" for i in range(24)]
    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(ask, client, text, id=str(i)) for i, text in enumerate(texts)]
        gate.set()
        found = [Reply.model_validate_json(x.result().content).documents[0] for x in replies]
    assert [(x.id, x.text) for x in found] == [(str(i), text) for i, text in enumerate(texts)]
    counts = client.get("/metrics").text
    assert 'spacy_luke_requests_total{status="200"} 24.0' in counts
    assert 'spacy_luke_documents_total{outcome="annotated"} 24.0' in counts
    batches = float(re.search(r"spacy_luke_batch_documents_count (\S+)", counts)[1])
    assert 2 <= batches < 24


def test_a_request_that_takes_too_long(annotator, gate):
    limits = RequestLimits(characters=400, waiting=1, seconds=0.05)
    with _client(annotator, limits) as client:
        reply = ask(client, "One.")
        assert reply.status_code == 504
        assert ErrorReply.model_validate_json(reply.content).error.code == "too_late"
        ask(client, "Two.")  # it was cancelled: the next one finds the queue as long, and nobody waits for it
        reply = ask(client, "Three.", "Four.")
        assert reply.status_code == 503
        assert reply.headers["retry-after"] == "1"
        gate.set()


def test_health(client):
    assert client.get("/health").json() == {"status": "ok", "waiting": 0}


def test_the_page_is_live(client, annotator):
    reply = client.get("/")
    assert reply.status_code == 200
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
    assert "connect-src 'self'" in reply.text
    data = json.loads(re.search(r'id="page">(.*?)</script>', reply.text)[1])
    assert (data["annotate"], data["most"], data["asks"]) == ("annotate", 400, True)


def test_openapi_names_what_is_there(client):
    schema = client.get("/openapi.json").json()
    assert schema == openapi(LIMITS)
    known = {f"#/components/schemas/{name}" for name in schema["components"]["schemas"]}
    assert set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema))) <= known
    replies = schema["paths"]["/annotate"]["post"]["responses"]
    assert set(replies) == {"200", *(str(status) for status, _ in CODES.values())}
    assert set(schema["paths"]) == {"/annotate", "/health", "/metrics"}


def test_a_pipeline_without_a_component_of_ours():
    import spacy

    register_extensions()
    with pytest.raises(ValueError, match="with a component of spacy_luke"):
        Annotator(spacy.blank("en"))


def test_a_client_that_goes_away_while_it_sends(annotator):
    """No failure of the pipeline, and no traceback: it is counted apart."""
    app, sent = make_app(annotator, LIMITS), []
    scope = {"type": "http", "method": "POST", "path": "/annotate", "raw_path": b"/annotate", "query_string": b""}
    scope |= {"headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http"}
    coming = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def receive():
        return coming.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert [x["status"] for x in sent if x["type"] == "http.response.start"] == [499]
    with _client(annotator, LIMITS) as client:
        assert client.get("/health").status_code == 200
