"""`spacy luke serve`."""

import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.cli import serve
from spacy_luke.service.forms import Reply
from tests.pipelines import make_pipeline
from tests.tiny import SENTENCES


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serve") / "pipeline"
    make_pipeline().to_disk(folder)
    return folder


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", "serve", *map(str, arguments)])
    return result, " ".join(result.output.split())


def test_settings_arrive(pipeline, monkeypatch):
    given = {}
    monkeypatch.setattr(serve, "make_app", lambda annotator, limits: given.update(limits=limits, annotator=annotator))
    monkeypatch.setattr(serve, "run_app", lambda app, **settings: given.update(settings))
    result, text = run(pipeline)
    assert "answers at" not in text  # nobody listens yet
    monkeypatch.setattr(serve, "run_app", lambda app, **settings: given.update(settings) or settings["listening"]())
    result, text = run(pipeline, "--port", 80, "--characters", 9_000_000, "--seconds", 2, "--waiting", 5)
    assert result.exit_code == 0, text
    assert "answers at http://127.0.0.1:80" in text
    assert (given["host"], given["port"], given["grace"]) == ("127.0.0.1", 80, 2.0)
    limits = given["limits"]
    assert (limits.characters, limits.seconds, limits.waiting, limits.documents) == (9_000_000, 2.0, 5, 64)
    assert limits.request >= 4 * limits.characters
    assert given["annotator"].labels


def test_the_extra_is_named(pipeline, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    result, text = run(pipeline)
    assert result.exit_code == 1
    assert 'pip install "spacy-luke[serve]"' in text


def test_a_taken_port_is_told(pipeline):
    pytest.importorskip("uvicorn", reason="needs the extra serve")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result, text = run(pipeline, "--port", port)
    assert result.exit_code == 1
    assert f"127.0.0.1, port {port}: " in text
    assert "Give another --port" in text
    result, text = run(pipeline, "--host", "no.such.host.invalid")
    assert result.exit_code == 1
    assert "no.such.host.invalid is no address of this machine" in text


@pytest.mark.slow
def test_a_process_that_is_asked_to_end_answers_first(pipeline):
    pytest.importorskip("uvicorn", reason="needs the extra serve")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-u", "-m", "spacy", "luke", "serve", str(pipeline)]
    command += ["--port", str(port), "--seconds", "300"]  # however busy the machine is
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = ""
        while "Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        address = f"http://127.0.0.1:{port}"
        transport = httpx.HTTPTransport(retries=10)
        with httpx.Client(transport=transport, timeout=300) as client:
            assert client.get(f"{address}/health").json()["status"] == "ok"
            replies = []
            body = {"documents": [{"text": " ".join(SENTENCES) * 4}] * 16}
            asking = threading.Thread(target=lambda: replies.append(client.post(f"{address}/annotate", json=body)))
            asking.start()
            while client.get(f"{address}/health").json()["waiting"] == 0 and asking.is_alive():
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            asking.join(300)
        assert replies[0].status_code == 200
        assert len(Reply.model_validate_json(replies[0].content).documents) == 16
        assert process.wait(30) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
