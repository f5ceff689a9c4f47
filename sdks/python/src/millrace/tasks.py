"""What travels between a queue and the programs that submit and handle its tasks."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, TypedDict

from .errors import TaskFailed

Status = Literal["PENDING", "IN_FLIGHT", "SUCCEEDED", "DEAD"]
Duration = float | timedelta
"""Seconds, or a timedelta."""

_JSON_TYPE = re.compile(r"application/(?:[\w.-]+\+)?json(?:\s*;|$)", re.IGNORECASE)

_AS_THEY_ARE = ("id", "priority", "group_key", "headers", "unique_key", "max_attempts") + (
    "backoff",
    "labels",
    "depends_on",
    "parent_id",
)


class SubmitOptions(TypedDict, total=False):
    """Options of a submit. All may be left out."""

    id: str
    """A ULID; submitting it again changes nothing."""
    delay: Duration
    run_at: datetime
    expires_at: datetime
    priority: int
    """0 to 9, higher first; 4 if absent."""
    group_key: str
    headers: Mapping[str, str]
    unique_key: str
    """While a task with this key waits or runs, a second submit returns that task."""
    unique_for: Duration
    debounce: Duration
    """With a unique key: runs so long after the last submit, whose payload wins."""
    max_attempts: int
    backoff: Mapping[str, Any]
    """`{"kind": "exponential" | "fixed", "ms": 1000, "max_ms": 60000, "jitter": 0.5}`."""
    attempt_timeout: Duration
    """How long an attempt may take."""
    retain: Duration
    """How long the task is held after its end."""
    labels: Sequence[str]
    """Only workers that name all of them get the task."""
    depends_on: Sequence[str | Mapping[str, str]]
    """Ids of tasks that must succeed first, or `{"id": ..., "on": "end"}`."""
    parent_id: str


@dataclass(frozen=True)
class Task:
    """A task as the queue knows it. `raw` has every field of the API."""

    id: str
    queue: str
    handler_ref: str
    status: Status
    attempt: int
    max_attempts: int
    redrive_count: int
    headers: Mapping[str, str]
    result: Any
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def payload(self) -> Any:
        """JSON as its value, no payload as None, anything else as bytes."""
        return decode_payload(
            self.raw.get("payload") or "", str(self.raw.get("payload_content_type", ""))
        )

    @property
    def has_ended(self) -> bool:
        return self.status in ("SUCCEEDED", "DEAD")

    def failure(self) -> TaskFailed:
        """Why it is dead."""
        error = self.raw.get("last_error")
        if error:
            text, kind = f"{error['error_type']}: {error['message']}", str(error["error_type"])
        else:
            text, kind = str(self.raw.get("dead_reason")), None
        return TaskFailed(f"The task {self.id} failed: {text}", self.id, kind)


def task_of(raw: Mapping[str, Any]) -> Task:
    """A task from the JSON of the API."""
    return Task(
        id=raw["id"],
        queue=raw["queue"],
        handler_ref=raw.get("handler_ref", ""),
        status=raw["status"],
        attempt=raw.get("attempt", 0),
        max_attempts=raw.get("max_attempts", 0),
        redrive_count=raw.get("redrive_count", 0),
        headers=raw.get("headers") or {},
        result=raw.get("result"),
        raw=raw,
    )


def encode_payload(payload: Any) -> dict[str, str]:
    """The fields of a payload: bytes as they are, anything else as JSON, None as no payload."""
    if payload is None:
        return {}
    if isinstance(payload, (bytes, bytearray)):
        return {"payload": base64.b64encode(payload).decode()}
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    content = base64.b64encode(text.encode()).decode()
    return {"payload": content, "payload_content_type": "application/json"}


def decode_payload(text: str, content_type: str) -> Any:
    """The opposite of `encode_payload`."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"The payload is not base64: {error}") from error
    if not data:
        return None
    return json.loads(data) if _JSON_TYPE.match(content_type) else data


def milliseconds(duration: Duration) -> int:
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return round(seconds * 1000)


def timestamp(time: datetime) -> str:
    """RFC 3339 in UTC. A time without a zone is local, as everywhere in Python."""
    return time.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def submit_fields(ref: str, payload: Any, options: SubmitOptions) -> dict[str, Any]:
    """The body of a submit."""
    unknown = set(options) - set(SubmitOptions.__annotations__)
    if unknown:
        known = ", ".join(sorted(SubmitOptions.__annotations__))
        raise TypeError(f"Unknown option {', '.join(sorted(unknown))}; there are {known}")
    body: dict[str, Any] = {"handler_ref": ref, **encode_payload(payload)}
    for name in _AS_THEY_ARE:
        if options.get(name) is not None:
            body[name] = options[name]  # type: ignore[literal-required]
    for name in ("run_at", "expires_at"):
        time = options.get(name)
        if isinstance(time, datetime):
            body[name] = timestamp(time)
    for name in ("delay", "unique_for", "debounce", "attempt_timeout", "retain"):
        if name in options:
            wire = f"{name.removeprefix('attempt_')}_ms"
            body[wire] = milliseconds(options[name])  # type: ignore[literal-required]
    return body
