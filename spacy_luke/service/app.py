"""The service as an ASGI application (Starlette), and how it is run (uvicorn). Both are of the extra `serve`."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..pages.page import fill_page
from ..pages.schema import FORMAT, AnnotatedText
from ..pipelines.annotation import Annotator
from .batches import Batcher
from .forms import ErrorReply, RequestLimits, ServiceError, openapi, read_request
from .meters import Meters

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_HEADERS = {"x-content-type-options": "nosniff", "content-security-policy": "frame-ancestors 'none'"}
_GONE = 499  # as nginx counts requests whose client went away
_RETRY = 1  # seconds after which a request that was refused may come again


class Service:
    """What the addresses of the service answer."""

    def __init__(self, annotator: Annotator, limits: RequestLimits) -> None:
        self.annotator, self.limits, self.meters = annotator, limits, Meters()
        self.batcher = Batcher(annotator, self.meters, waiting=limits.waiting)
        self.meters.watch(lambda: len(self.batcher))

    async def annotate(self, request: "Request") -> "Response":
        from starlette.requests import ClientDisconnect
        from starlette.responses import Response

        started, status = perf_counter(), 500
        try:
            reply = f'{{"documents":[{",".join(await self._annotate(request))}]}}'
            status = 200
            return _reply(reply)
        except ServiceError as error:
            status = error.status
            raise
        except ClientDisconnect:  # before all of the request had come; nobody reads the answer
            status = _GONE
            return Response(status_code=status)
        finally:
            self.meters.request(status, perf_counter() - started)

    async def _annotate(self, request: "Request") -> Sequence[str]:
        """JSON of each document."""
        body = await self._body(request)
        annotator = self.annotator
        asked = read_request(body, self.limits, asks=annotator.answers_questions, fills=annotator.fills_queries)
        futures = [asyncio.wrap_future(x) for x in self.batcher.submit(asked.documents)]
        done = asyncio.gather(*futures)
        try:
            return await asyncio.wait_for(done, self.limits.seconds)
        except TimeoutError:
            told = f"It was not done in {self.limits.seconds:g} seconds: send fewer documents, or shorter ones."
            raise ServiceError("too_late", told) from None

    async def _body(self, request: "Request") -> bytes:
        if (packed := request.headers.get("content-encoding", "").strip().lower()) not in ("", "identity"):
            told = f"Expected JSON as it is, but Content-Encoding is {packed!r:.40}: send it unpacked."
            raise ServiceError("packed", told)
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self.limits.request:
                told = f"The request has more than {self.limits.request:,} bytes: send several."
                raise ServiceError("too_long", told)
            parts.append(part)
        return b"".join(parts)

    async def health(self, request: "Request") -> "Response":
        ending = self.batcher.closed
        told = f'{{"status":"{"ending" if ending else "ok"}","waiting":{len(self.batcher)}}}'
        return _reply(told, 503 if ending else 200)

    async def metrics(self, request: "Request") -> "Response":
        from starlette.responses import Response

        return Response(self.meters.text(), media_type="text/plain; version=0.0.4; charset=utf-8", headers=_HEADERS)

    async def schema(self, request: "Request") -> "Response":
        from starlette.responses import JSONResponse

        return JSONResponse(openapi(self.limits), headers=_HEADERS)

    async def page(self, request: "Request") -> "Response":
        from starlette.responses import HTMLResponse

        annotator = self.annotator
        live = {"annotate": "annotate", "most": self.limits.characters, "asks": annotator.answers_questions}
        html = fill_page(_nothing(annotator), title=annotator.name or "spacy_luke", labels=annotator.labels, live=live)
        return HTMLResponse(html, headers=_HEADERS)


def make_app(annotator: Annotator, limits: RequestLimits) -> "Starlette":
    """The application; its thread with the pipeline starts at once, and ends with it, after what waits is done."""
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route

        service = Service(annotator, limits)
    except ImportError as error:
        raise ImportError('The service needs Starlette and uvicorn: pip install "spacy-luke[serve]".') from error

    @asynccontextmanager
    async def ending(app: "Starlette") -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.batcher.close)

    return Starlette(
        routes=[
            Route("/", service.page),
            Route("/annotate", service.annotate, methods=["POST"]),
            Route("/health", service.health),
            Route("/metrics", service.metrics),
            Route("/openapi.json", service.schema),
        ],
        exception_handlers={ServiceError: _tell, 404: _not_found, 405: _wrong_method, 500: _failed},
        lifespan=ending,
    )


def run_app(
    app: "Starlette", *, host: str, port: int, grace: float, listening: Callable[[], None] = lambda: None
) -> None:
    """Serve until the process is asked to end (SIGTERM, SIGINT); requests that came before are answered, for `grace`
    seconds at most. listening: called as soon as requests arrive. OSError where the port is taken or not to be had."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            listening()

    settings = uvicorn.Config(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=int(grace))
    with bind(host, port) as place:
        Server(settings).run(sockets=[place])


def bind(host: str, port: int) -> socket.socket:
    """A socket at the address; OSError, which says what to do, where there can be none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        place = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OSError(f"{host} is no address of this machine: {error.strerror}. Give --host 127.0.0.1.") from None
    try:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(address)
    except OSError as error:
        place.close()
        raise OSError(f"{host}, port {port}: {error.strerror}. Give another --port, or end what is there.") from None
    return place


def _nothing(annotator: Annotator) -> AnnotatedText:
    return AnnotatedText(
        format=FORMAT,
        id=None,
        pipeline=annotator.name,
        language=annotator.nlp.lang or "",
        text="",
        words=0,
        sentences=None,
        entities=[],
        relations=[],
        answers=[],
    )


def _reply(json: str, status: int = 200, **headers: str) -> "Response":
    from starlette.responses import Response

    return Response(json, status_code=status, media_type="application/json", headers={**_HEADERS, **headers})


async def _tell(request: "Request", error: Any) -> "Response":
    retry = {"retry-after": str(_RETRY)} if error.failure.code == "busy" else {}
    return _reply(ErrorReply(error=error.failure).model_dump_json(), error.status, **retry)


async def _not_found(request: "Request", error: Any) -> "Response":
    told = f"There is nothing at {request.url.path}: see /openapi.json."
    return await _tell(request, ServiceError("not_found", told))


async def _wrong_method(request: "Request", error: Any) -> "Response":
    told = f"{request.url.path} does not take {request.method}: see /openapi.json."
    return await _tell(request, ServiceError("wrong_method", told))


async def _failed(request: "Request", error: Any) -> "Response":
    return await _tell(request, ServiceError("failed", f"The service failed with {type(error).__name__}."))
