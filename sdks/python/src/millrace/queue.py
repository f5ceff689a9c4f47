"""The queue: submit tasks, read and steer them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ParamSpec, TypeVar, Unpack

from .errors import ApiError, ConnectionLost, WaitTimeout
from .http import Api, Token, segment
from .tasks import (
    Duration,
    SubmitOptions,
    Task,
    encode_payload,
    milliseconds,
    submit_fields,
    task_of,
    timestamp,
)
from .ulid import new_ulid

_MAX_BATCH = 500
_MAX_WAIT = 30.0
_PAGE = 200

# `list` is a method of the classes below.
List = list

P = ParamSpec("P")
R = TypeVar("R")


class Queue:
    """A queue server. It may be used by several threads at once."""

    def __init__(
        self, url: str | Sequence[str] = "http://127.0.0.1:8081", token: Token = None, **options: Any
    ) -> None:
        self.api = Api(url, token, **options)

    def close(self) -> None:
        self.api.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Submit

    def submit(
        self, queue: str, ref: str, payload: Any = None, **options: Unpack[SubmitOptions]
    ) -> Task:
        """Submits a task. When it returns, the task is stored and will be run."""
        body = submit_fields(ref, payload, options)
        # With an id of its own it may be sent twice.
        body.setdefault("id", new_ulid())
        answer = self.api.call("POST", f"/v1/queues/{segment(queue)}/tasks", body, is_safe=True)
        return task_of({**body, "queue": queue, **answer})

    def submit_many(
        self, queue: str, ref: str, payloads: Iterable[Any], **options: Unpack[SubmitOptions]
    ) -> List[Task | ApiError]:
        """Submits a task for each payload; the result of each is a task or its refusal."""
        results: List[Task | ApiError] = []
        batch: List[dict[str, Any]] = []
        path = f"/v1/queues/{segment(queue)}/tasks:batch"

        def send() -> None:
            answers = self.api.call("POST", path, batch, is_safe=True)
            for item, answer in zip(batch, answers, strict=True):
                if "envelope" in answer:
                    results.append(task_of({**item, "queue": queue, **answer["envelope"]}))
                else:
                    results.append(ApiError(answer["status"], answer.get("error")))
            batch.clear()

        for payload in payloads:
            batch.append({"id": new_ulid(), **submit_fields(ref, payload, options)})
            if len(batch) == _MAX_BATCH:
                send()
        if batch:
            send()
        return results

    def submit_and_wait(
        self,
        queue: str,
        ref: str,
        payload: Any = None,
        *,
        timeout: float = 60.0,
        **options: Unpack[SubmitOptions],
    ) -> Any:
        """Submits a task and returns its result; raises TaskFailed or WaitTimeout."""
        return self.wait(self.submit(queue, ref, payload, **options).id, timeout=timeout)

    def wait(self, task_id: str, *, timeout: float = 60.0) -> Any:
        """The result of a task when it has ended; raises TaskFailed or WaitTimeout."""
        ends_at = time.monotonic() + timeout
        while True:
            left = ends_at - time.monotonic()
            task = self.get(task_id, wait=max(0.0, min(left, _MAX_WAIT)))
            if task.status == "SUCCEEDED":
                return task.result
            if task.status == "DEAD":
                raise task.failure()
            if time.monotonic() >= ends_at:
                raise WaitTimeout(task_id, timeout)
            time.sleep(0.02)

    def submit_flow(
        self, tasks: Sequence[Mapping[str, Any]], *, flow_id: str | None = None
    ) -> dict[str, str]:
        """Submits tasks that depend on each other, all or none; returns their ids by key.

        A task is `{"key", "queue", "ref", "payload", "after": [keys or ids], **options of submit}`.
        """
        body: dict[str, Any] = {"flow_id": flow_id or new_ulid(), "tasks": []}
        for task in tasks:
            rest = dict(task)
            about = {"key": rest.pop("key"), "queue": rest.pop("queue")}
            ref, payload, after = rest.pop("ref"), rest.pop("payload", None), rest.pop("after", None)
            if after:
                rest["depends_on"] = after
            options: Any = rest
            body["tasks"].append({**about, **submit_fields(ref, payload, options)})
        answer = self.api.call("POST", "/v1/flows", body, is_safe=True)
        return {each["key"]: each["id"] for each in answer["tasks"]}

    def signal(self, task_id: str, name: str, payload: Any = None, *, id: str | None = None) -> None:
        """Sends a signal to a task, now or before it waits for one; the same id is one signal."""
        body = {"name": name, "payload": payload, "id": id or new_ulid()}
        self.api.call("POST", f"/v1/tasks/{segment(task_id)}/signals", body, is_safe=True)

    def signal_key(
        self, queue: str, unique_key: str, name: str, payload: Any = None, *, id: str | None = None
    ) -> None:
        """Sends a signal to the task that holds a unique key."""
        body = {"unique_key": unique_key, "name": name, "payload": payload, "id": id or new_ulid()}
        self.api.call("POST", f"/v1/queues/{segment(queue)}/signals", body, is_safe=True)

    # Read

    def tree(self, task_id: str) -> dict[str, Any]:
        """A task with its children and theirs."""
        answer: dict[str, Any] = self.api.call("GET", f"/v1/tasks/{segment(task_id)}/tree")
        return answer

    def events(
        self,
        *,
        queue: str | None = None,
        types: Sequence[str] | None = None,
        after: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """What happens to tasks, from now on or after a cursor; goes on after a lost connection.

        Events may repeat then, but none is left out. A cursor that is too old is STALE_CURSOR.
        """
        query = {"queue": queue, "types": types and ",".join(types)}
        delay = 0.1
        while True:
            try:
                path = "/v1/events"
                with self.api.stream(
                    "GET", path, None, query={**query, "after": after}, accept="text/event-stream"
                ) as lines:
                    for line in lines:
                        name, _, value = line.partition(": ")
                        if name == "id":
                            after = value
                        elif name == "data":
                            delay = 0.1
                            yield json.loads(value)
            except ConnectionLost:
                time.sleep(delay)
                delay = min(delay * 2, 5.0)

    def get(self, task_id: str, *, wait: float = 0.0) -> Task:
        """A task; with `wait`, after it has ended, or after so many seconds."""
        query = {"wait_ms": milliseconds(wait)} if wait > 0 else None
        path = f"/v1/tasks/{segment(task_id)}"
        return task_of(self.api.call("GET", path, query=query, timeout=wait + 30))

    def list(
        self,
        queue: str,
        *,
        status: str | Sequence[str] | None = None,
        handler_ref: str | None = None,
        group_key: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        newest_first: bool = False,
    ) -> Iterator[Task]:
        """The tasks of a queue, page by page."""
        query = {
            "status": status if isinstance(status, str) or status is None else ",".join(status),
            "handler_ref": handler_ref,
            "group_key": group_key,
            "from": since and timestamp(since),
            "to": until and timestamp(until),
            "order": "desc" if newest_first else None,
        }
        return self._pages(f"/v1/queues/{segment(queue)}/tasks", query)

    def stats(self, queue: str) -> dict[str, Any]:
        """Counts of a queue, such as `pending` and `dlq_depth`."""
        answer: dict[str, Any] = self.api.call("GET", f"/v1/queues/{segment(queue)}/stats")
        return answer

    def queues(self) -> List[dict[str, Any]]:
        """The queues of the server."""
        answer: List[dict[str, Any]] = self.api.call("GET", "/v1/admin/queues")
        return answer

    # Steer

    def cancel(self, task_id: str, reason: str | None = None) -> Task:
        """Cancels a task; a handler that runs is told so."""
        body = {} if reason is None else {"reason": reason}
        path = f"/v1/tasks/{segment(task_id)}:cancel"
        return task_of(self.api.call("POST", path, body, is_safe=True))

    def cancel_many(
        self,
        queue: str,
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        reason: str | None = None,
        dry_run: bool = False,
    ) -> int:
        """Cancels waiting tasks by their ids or by a filter; returns how many."""
        body = _selector(ids, filter, dry_run)
        if reason is not None:
            body["reason"] = reason
        return self._count(f"/v1/queues/{segment(queue)}/tasks:cancel", body)

    def run_now(self, task_id: str) -> Task:
        """Makes a waiting task due."""
        path = f"/v1/tasks/{segment(task_id)}:run-now"
        return task_of(self.api.call("POST", path, is_safe=True))

    def reschedule(self, task_id: str, run_at: datetime) -> Task:
        """Gives a waiting task another time."""
        body = {"run_at": timestamp(run_at)}
        return task_of(self.api.call("PATCH", f"/v1/tasks/{segment(task_id)}", body, is_safe=True))

    def update(self, task_id: str, *, priority: int | None = None, payload: Any = None) -> Task:
        """Changes the priority or payload of a task that waits."""
        body: dict[str, Any] = encode_payload(payload)
        if priority is not None:
            body["priority"] = priority
        return task_of(self.api.call("PATCH", f"/v1/tasks/{segment(task_id)}", body, is_safe=True))

    def pause(self, queue: str) -> None:
        self.api.call("POST", f"/v1/admin/queues/{segment(queue)}:pause", is_safe=True)

    def resume(self, queue: str) -> None:
        self.api.call("POST", f"/v1/admin/queues/{segment(queue)}:resume", is_safe=True)

    def configure(self, queue: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """Creates or changes a queue, such as `{"callback": {"protocol": "pull"}}`."""
        path = f"/v1/admin/queues/{segment(queue)}/config"
        answer: dict[str, Any] = self.api.call("PUT", path, dict(config))
        return answer

    def config(self, queue: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.api.call("GET", f"/v1/admin/queues/{segment(queue)}/config")
        return answer

    def delete_queue(self, queue: str) -> None:
        self.api.call("DELETE", f"/v1/admin/queues/{segment(queue)}")

    # Schedules

    def put_schedule(
        self,
        queue: str,
        name: str,
        ref: str,
        payload: Any = None,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        timezone: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Creates or replaces a schedule; exactly one of `cron` and `every`."""
        if (cron is None) == (every is None):
            raise TypeError("Give exactly one of cron and every")
        body: dict[str, Any] = {"task": {"handler_ref": ref, **encode_payload(payload)}, **options}
        if cron is not None:
            body["cron"] = cron
        if every is not None:
            body["every_ms"] = milliseconds(every)
        if timezone is not None:
            body["timezone"] = timezone
        answer: dict[str, Any] = self.api.call("PUT", _schedule(queue, name), body)
        return answer

    def schedule(self, queue: str, name: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.api.call("GET", _schedule(queue, name))
        return answer

    def schedules(self, queue: str) -> Iterator[dict[str, Any]]:
        return self._items(f"/v1/queues/{segment(queue)}/schedules", "schedules", {})

    def delete_schedule(self, queue: str, name: str) -> None:
        self.api.call("DELETE", _schedule(queue, name))

    def pause_schedule(self, queue: str, name: str) -> None:
        self.api.call("POST", f"{_schedule(queue, name)}:pause", is_safe=True)

    def resume_schedule(self, queue: str, name: str) -> None:
        self.api.call("POST", f"{_schedule(queue, name)}:resume", is_safe=True)

    # Dead letters

    def dead(
        self,
        queue: str,
        *,
        error_type: str | None = None,
        handler_ref: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[Task]:
        """The dead-letter queue."""
        query = {
            "error_type": error_type,
            "handler_ref": handler_ref,
            "from": since and timestamp(since),
            "to": until and timestamp(until),
        }
        return self._pages(f"/v1/queues/{segment(queue)}/dlq", query)

    def dead_groups(self, queue: str) -> List[dict[str, Any]]:
        """Dead tasks counted by error and handler."""
        answer = self.api.call("GET", f"/v1/queues/{segment(queue)}/dlq:groups")
        groups: List[dict[str, Any]] = answer["groups"]
        return groups

    def redrive(
        self,
        queue: str,
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        from_step: str | None = None,
        reset_steps: bool = False,
        with_dependents: bool = True,
    ) -> int:
        """Runs dead tasks again; returns how many.

        Recorded steps stay, unless `from_step` or `reset_steps` drops them. Tasks that died of
        these come back with them.
        """
        body = _selector(ids, filter, dry_run)
        if from_step is not None:
            body["from_step"] = from_step
        if reset_steps:
            body["reset_steps"] = True
        if not with_dependents:
            body["with_dependents"] = False
        return self._count(f"/v1/queues/{segment(queue)}/dlq:redrive", body)

    def purge(
        self,
        queue: str,
        *,
        ids: Sequence[str] | None = None,
        filter: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> int:
        """Deletes dead tasks; returns how many."""
        body = _selector(ids, filter, dry_run)
        return self._count(f"/v1/queues/{segment(queue)}/dlq:purge", body)

    def _pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Task]:
        return map(task_of, self._items(path, "tasks", query))

    def _items(self, path: str, name: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = self.api.call("GET", path, query={**query, "limit": _PAGE, "cursor": cursor})
            yield from page[name]
            cursor = page.get("next_cursor") or None
            if cursor is None:
                return

    def _count(self, path: str, body: dict[str, Any]) -> int:
        """A call that stopped after a while, with tasks left, is repeated."""
        total = 0
        while True:
            answer = self.api.call("POST", path, body, is_safe=True, timeout=60)
            total += answer["count"]
            if answer.get("complete", True):
                return total


class AsyncQueue:
    """The same for asyncio: each call runs in a thread, so that the event loop never waits.

    `await queue.run(queue.sync.cancel, id)` reaches the calls that have no method here.
    """

    def __init__(
        self, url: str | Sequence[str] = "http://127.0.0.1:8081", token: Token = None, **options: Any
    ) -> None:
        self.sync = Queue(url, token, **options)

    async def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(call, *args, **kwargs)

    async def submit(
        self, queue: str, ref: str, payload: Any = None, **options: Unpack[SubmitOptions]
    ) -> Task:
        return await self.run(self.sync.submit, queue, ref, payload, **options)

    async def submit_many(
        self, queue: str, ref: str, payloads: Iterable[Any], **options: Unpack[SubmitOptions]
    ) -> List[Task | ApiError]:
        return await self.run(self.sync.submit_many, queue, ref, payloads, **options)

    async def submit_and_wait(
        self,
        queue: str,
        ref: str,
        payload: Any = None,
        *,
        timeout: float = 60.0,
        **options: Unpack[SubmitOptions],
    ) -> Any:
        return await self.run(
            self.sync.submit_and_wait, queue, ref, payload, timeout=timeout, **options
        )

    async def wait(self, task_id: str, *, timeout: float = 60.0) -> Any:
        return await self.run(self.sync.wait, task_id, timeout=timeout)

    async def get(self, task_id: str, *, wait: float = 0.0) -> Task:
        return await self.run(self.sync.get, task_id, wait=wait)

    async def cancel(self, task_id: str, reason: str | None = None) -> Task:
        return await self.run(self.sync.cancel, task_id, reason)

    async def signal(
        self, task_id: str, name: str, payload: Any = None, *, id: str | None = None
    ) -> None:
        await self.run(self.sync.signal, task_id, name, payload, id=id)

    async def stats(self, queue: str) -> dict[str, Any]:
        return await self.run(self.sync.stats, queue)

    async def list(self, queue: str, **filters: Any) -> AsyncIterator[Task]:
        pages = self.sync.list(queue, **filters)

        def take() -> Task | None:
            return next(pages, None)

        while (task := await asyncio.to_thread(take)) is not None:
            yield task

    async def close(self) -> None:
        await self.run(self.sync.close)

    async def __aenter__(self) -> AsyncQueue:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _schedule(queue: str, name: str) -> str:
    return f"/v1/queues/{segment(queue)}/schedules/{segment(name)}"


def _selector(
    ids: Sequence[str] | None, filter: Mapping[str, Any] | None, dry_run: bool
) -> dict[str, Any]:
    if (ids is None) == (filter is None):
        raise TypeError("Give exactly one of ids and filter; filter={} selects all")
    body: dict[str, Any] = {"ids": [*ids]} if ids is not None else {"filter": dict(filter or {})}
    if dry_run:
        body["dry_run"] = True
    return body
