"""JSON over HTTP with the standard library: one pool of connections for a server, any thread."""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from .errors import ApiError, ConnectionLost

Json = Any
Token = str | Callable[[], str | None] | None

_MAX_IDLE = 16
_RETRIES = 5
_FIRST_RETRY = 0.1
_MAX_RETRY = 5.0


class Api:
    """Requests to one server, or to the first of several that answers."""

    def __init__(
        self,
        url: str | Sequence[str],
        token: Token = None,
        *,
        timeout: float = 60.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        if not urls:
            raise ValueError("Give the address of a server, such as http://127.0.0.1:8081")
        self._origins = [_Origin(each, ssl_context) for each in urls]
        self._token = token
        self._timeout = timeout
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address that is used now."""
        return self._origins[0].url

    def close(self) -> None:
        """Closes idle connections, and busy ones after their answer."""
        for origin in self._origins:
            origin.close()

    def call(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        is_safe: bool | None = None,
        abort: Abort | None = None,
    ) -> Json:
        """The body of a success; anything else raises an ApiError.

        A request that may be repeated (`is_safe`; GET, PUT and DELETE are) is repeated when the
        connection breaks and when the server is overloaded; another is sent once, unless no
        connection could be made, or the server refused it before it did anything.
        """
        repeatable = method in ("GET", "PUT", "DELETE") if is_safe is None else is_safe
        delay = _FIRST_RETRY
        abort = abort or Abort()
        for attempt in range(_RETRIES + 1):
            try:
                return self._once(method, path, body, query, headers, timeout, repeatable, abort)
            except ApiError as error:
                if error.status not in (429, 503) or attempt == _RETRIES:
                    raise
                least = error.retry_after or 0.0
            except _Unreachable as error:
                self._use_next(error.origin)
                if attempt == _RETRIES:
                    raise ConnectionLost(str(error)) from error.__cause__
                least = 0.0
            except (OSError, http.client.HTTPException) as error:
                if not repeatable or attempt == _RETRIES or abort.is_set():
                    raise ConnectionLost(f"{self.url}: the connection broke: {error}") from error
                least = 0.0
            if abort.wait(max(least, delay * random.uniform(0.5, 1.0))):
                raise ConnectionLost(f"{self.url}: the request was aborted")
            delay = min(delay * 2, _MAX_RETRY)
        raise AssertionError("unreachable")

    def stream(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        query: Mapping[str, Any] | None = None,
        accept: str = "application/x-ndjson",
    ) -> Stream:
        """Opens a response that arrives line by line. It has a connection of its own."""
        origin = self._origins[0]
        headers = self._headers({"accept": accept}, body)
        data = None if body is None else json.dumps(body).encode()
        connection: http.client.HTTPConnection | None = None
        try:
            connection = origin.new_connection(self._timeout)
            connection.request(method, origin.path + _target(path, query), data, headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException, _Unreachable) as error:
            if connection is not None:
                connection.close()
            self._use_next(origin)
            raise ConnectionLost(f"{origin.url}: {error}") from error
        if response.status != 200:
            refused = _refusal(response, response.read())
            connection.close()
            if refused.status in (429, 503):
                # Overloaded or shutting down: as good as away, and tried again.
                raise ConnectionLost(f"{origin.url}: {refused}") from refused
            raise refused
        return Stream(connection, response)

    def _once(
        self,
        method: str,
        path: str,
        body: Json,
        query: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
        repeatable: bool,
        abort: Abort,
    ) -> Json:
        origin = self._origins[0]
        sent = self._headers(headers or {}, body)
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        # The server may close an idle connection at any time: what must not be sent twice gets a
        # new one.
        connection = origin.take(timeout or self._timeout, repeatable)
        try:
            abort.watch(connection)
            connection.request(method, origin.path + _target(path, query), data, sent)
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            raise
        finally:
            abort.watch(None)
        if response.will_close:
            connection.close()
        else:
            origin.give_back(connection)
        if not 200 <= response.status < 300:
            raise _refusal(response, content)
        return json.loads(content) if content else None

    def _headers(self, given: Mapping[str, str], body: Json) -> dict[str, str]:
        token = self._token() if callable(self._token) else self._token
        headers = {"accept": "application/json", **given}
        if body is not None:
            headers["content-type"] = "application/json"
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return headers

    def _use_next(self, failed: _Origin) -> None:
        with self._lock:
            if self._origins[0] is failed:
                self._origins.append(self._origins.pop(0))


class Abort:
    """Ends a request in another thread. An answer that has arrived by then is still read."""

    def __init__(self) -> None:
        self._aborted = threading.Event()
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self.is_set = self._aborted.is_set
        self.wait = self._aborted.wait

    def set(self) -> None:
        with self._lock:
            self._aborted.set()
            _wake(self._connection)

    def watch(self, connection: http.client.HTTPConnection | None) -> None:
        """The connection to end, while it is in use."""
        with self._lock:
            self._connection = connection
            if self._aborted.is_set():
                _wake(connection)


def _wake(connection: http.client.HTTPConnection | None) -> None:
    """Ends a connection, and so the read of another thread from it."""
    if connection is not None and connection.sock is not None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Stream:
    """Lines of a response; iterate over it. Closing it ends the iteration in any thread."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._response = response
        self._closed = False

    def __iter__(self) -> Iterator[str]:
        try:
            while True:
                line = self._response.readline()
                if not line:
                    if self._closed:
                        return
                    raise ConnectionLost("The server ended the stream")
                yield line.decode().rstrip("\r\n")
        except (OSError, ValueError, http.client.HTTPException, AttributeError) as error:
            if self._closed:
                return
            raise ConnectionLost(f"The stream broke: {error}") from error
        finally:
            self.close()

    def close(self) -> None:
        """Ends the stream."""
        if self._closed:
            return
        self._closed = True
        _wake(self._connection)
        self._connection.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Unreachable(Exception):
    """There is no connection, so that any request may be repeated."""

    def __init__(self, origin: _Origin, message: str) -> None:
        self.origin = origin
        super().__init__(message)


class _Origin:
    """A server and the idle connections to it."""

    def __init__(self, url: str, context: ssl.SSLContext | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a server, such as http://127.0.0.1:8081")
        self.url = url.rstrip("/")
        self.path = parts.path.rstrip("/")
        self._host = parts.hostname
        self._port = parts.port
        self._is_secure = parts.scheme == "https"
        self._context = context
        self._idle: list[http.client.HTTPConnection] = []
        self._is_closed = False
        self._lock = threading.Lock()

    def new_connection(self, timeout: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._is_secure:
            context = self._context or ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.connect()
        except OSError as error:
            raise _Unreachable(self, f"{self.url} cannot be reached: {error}") from error
        if connection.sock is not None:
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def take(self, timeout: float, may_reuse: bool) -> http.client.HTTPConnection:
        with self._lock:
            connection = self._idle.pop() if may_reuse and self._idle else None
        if connection is None:
            return self.new_connection(timeout)
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _MAX_IDLE and not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _target(path: str, query: Mapping[str, Any] | None) -> str:
    given = {k: _text(v) for k, v in (query or {}).items() if v is not None}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return [_text(each) for each in value]
    return value


def segment(text: str) -> str:
    """A name as a part of a path."""
    return quote(text, safe="")


def _refusal(response: http.client.HTTPResponse, content: bytes) -> ApiError:
    try:
        problem = json.loads(content)
    except ValueError:
        problem = None
    after = response.headers.get("retry-after")
    return ApiError(response.status, problem, float(after) if after and after.isdigit() else None)
