"""The daemon: start coding agents, answer their questions, read what they cost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from .errors import ConnectionLost, WaitTimeout
from .http import Api, Token, segment
from .ulid import new_ulid

_ENDED = {"done", "errored", "orphaned"}


class Daemon:
    """A daemon. It may be used by several threads at once."""

    def __init__(
        self, url: str | Sequence[str] = "http://127.0.0.1:8080", token: Token = None, **options: Any
    ) -> None:
        self.api = Api(url, token, **options)

    def spawn(
        self,
        prompt: str,
        *,
        backend: str | None = None,
        model: str | None = None,
        repo: str | None = None,
        cwd: str | None = None,
        branch: str | None = None,
        name: str | None = None,
        driver: str | None = None,
        tags: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Starts an agent and returns its session."""
        given = {
            "prompt": prompt,
            "backend": backend,
            "model": model,
            "repo": repo,
            "cwd": cwd,
            "branch": branch,
            "name": name,
            "driver": driver,
            "tags": tags and [*tags],
            **more,
        }
        body = {field: value for field, value in given.items() if value is not None}
        headers = {"idempotency-key": idempotency_key or new_ulid()}
        answer: dict[str, Any] = self.api.call(
            "POST", "/api/v1/spawn", body, headers=headers, is_safe=True, timeout=120
        )
        return answer

    def sessions(self) -> list[dict[str, Any]]:
        answer = self.api.call("GET", "/api/v1/sessions")
        sessions: list[dict[str, Any]] = answer["sessions"] if isinstance(answer, dict) else answer
        return sessions

    def session(self, id: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.api.call("GET", f"/api/v1/sessions/{segment(id)}")
        return answer

    def output(self, id: str, *, after: int | None = None, limit: int | None = None) -> Any:
        """What the agent has written."""
        query = {"after": after, "limit": limit}
        return self.api.call("GET", f"/api/v1/sessions/{segment(id)}/output", query=query)

    def diff(self, id: str) -> Any:
        return self.api.call("GET", f"/api/v1/sessions/{segment(id)}/diff")

    def send(self, id: str, text: str) -> None:
        """Types a message to the agent. It is sent once, even if the answer is lost."""
        self.api.call("POST", f"/api/v1/sessions/{segment(id)}:send", {"text": text})

    def stop(self, id: str) -> None:
        self.api.call("POST", f"/api/v1/sessions/{segment(id)}:stop", is_safe=True)

    def delete(self, id: str) -> None:
        self.api.call("DELETE", f"/api/v1/sessions/{segment(id)}")

    def wait(self, id: str, *, timeout: float = 600.0) -> dict[str, Any]:
        """The session when its agent has ended; raises WaitTimeout."""
        ends_at = time.monotonic() + timeout
        while True:
            session = self.session(id)
            if session["status"] in _ENDED:
                return session
            if time.monotonic() >= ends_at:
                raise WaitTimeout(id, timeout)
            time.sleep(0.2)

    def questions(self, *, status: str | None = "open", session_id: str | None = None) -> Any:
        """Questions of agents."""
        query = {"status": status, "session_id": session_id}
        return self.api.call("GET", "/api/v1/questions", query=query)

    def answer(self, id: str, *, option_id: str | None = None, text: str | None = None) -> Any:
        """Answers a question by one of its options or by a text."""
        given = {"option_id": option_id, "text": text}
        body = {field: value for field, value in given.items() if value is not None}
        return self.api.call("POST", f"/api/v1/questions/{segment(id)}:answer", body)

    def spend(self) -> dict[str, Any]:
        """What agents have spent, in dollars and tokens."""
        answer: dict[str, Any] = self.api.call("GET", "/api/v1/spend")
        return answer

    def usage(self) -> Any:
        """Usage windows of the backends."""
        return self.api.call("GET", "/api/v1/usage")

    def backends(self) -> Any:
        return self.api.call("GET", "/api/v1/backends")

    def events(self) -> Iterator[dict[str, Any]]:
        """What happens from now on: `{"id", "event", "data"}`; goes on after a lost connection."""
        last_id: str | None = None
        delay = 0.1
        while True:
            try:
                query = {"last_event_id": last_id}
                accept = "text/event-stream"
                with self.api.stream("GET", "/api/v1/events", query=query, accept=accept) as stream:
                    event: dict[str, Any] = {}
                    for line in stream:
                        delay = 0.1
                        name, _, value = line.partition(": ")
                        if line == "" and "data" in event:
                            event["data"] = json.loads(event["data"])
                            last_id = event.get("id", last_id)
                            yield event
                            event = {}
                        elif name in ("id", "event", "data"):
                            event[name] = value
            except ConnectionLost:
                time.sleep(delay)
                delay = min(delay * 2, 5.0)

    def close(self) -> None:
        self.api.close()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
