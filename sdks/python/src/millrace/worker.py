"""A worker: claims tasks of a queue and runs their handlers in threads or on an event loop."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import re
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .errors import (
    ApiError,
    LeaseLost,
    MillraceError,
    PermanentError,
    RetryLater,
    TaskCancelled,
)
from .http import Abort, segment
from .queue import Queue
from .steps import AsyncSteps, Steps, Suspended
from .tasks import Task, task_of

Handler = Callable[["Call"], Any]
"""Gets a call and returns the result of the task, as JSON can hold it; may be a coroutine function."""

_CLAIM_WAIT = 30.0
_MAX_PER_CLAIM = 100
_MAX_HANDLERS_IN_CLAIM = 100
_MAX_SETTLE = 100
_MAX_RESULT_BYTES = 65_536
_FIRST_RETRY = 0.1
_MAX_RETRY = 5.0
_WATCH_AFTER = 0.5
_WATCH_WAIT = 2.0
_ERROR_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")


@dataclass
class Call:
    """One run of a handler."""

    payload: Any
    task: Task
    _running: _Running = field(repr=False)

    @cached_property
    def step(self) -> Steps:
        """Steps that are recorded, for handlers that are functions."""
        running = self._running
        return Steps(running.api, self.task, running.token, running.stop)

    @cached_property
    def async_step(self) -> AsyncSteps:
        """Steps that are recorded, for handlers that are coroutine functions."""
        return AsyncSteps(self.step)

    @property
    def dependencies(self) -> list[dict[str, Any]]:
        """The tasks that this one depends on, with their results, in the order given."""
        return [*(self.task.raw.get("dependencies") or ())]

    @property
    def cancelled(self) -> bool:
        """Whether the result will not be taken: the task was cancelled, or its lease is lost."""
        return self._running.reason is not None

    def check(self) -> None:
        """Raises TaskCancelled or LeaseLost when the handler should stop."""
        if self._running.reason is not None:
            raise self._running.reason

    def wait(self, seconds: float) -> None:
        """Sleeps, and raises TaskCancelled or LeaseLost as soon as the handler should stop."""
        self._running.stopped.wait(seconds)
        self.check()

    def progress(self, percent: float | None = None, message: str | None = None) -> None:
        """Reports progress, and keeps the lease."""
        report: dict[str, Any] = {"percent": percent}
        if message is not None:
            report["message"] = message
        self._running.extend(report)


class Worker:
    """Claims tasks and runs their handlers until it is stopped.

    Ordinary functions run in threads, coroutine functions on one event loop of the worker. Leases
    are extended while handlers run. `with Worker(...)` starts it and stops it in the end; `run()`
    works until the process is interrupted.
    """

    def __init__(
        self,
        queue: Queue,
        name: str,
        handlers: Mapping[str, Handler],
        *,
        concurrency: int = 10,
        lease: float = 30.0,
        labels: Sequence[str] = (),
        worker_name: str | None = None,
        on_error: Callable[[BaseException], None] | None = None,
    ) -> None:
        if not handlers:
            raise ValueError("A worker needs at least one handler")
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self.name = worker_name or f"worker-{uuid.uuid4().hex[:8]}"
        self.queue_name = name
        self._queue = queue
        self._handlers = dict(handlers)
        self._concurrency = concurrency
        self._lease = lease
        self._labels = [*labels]
        self._on_error = on_error or self._print_error
        self._running: dict[str, _Running] = {}
        self._changed = threading.Condition()
        self._settle_queue: list[tuple[_Running, dict[str, Any]]] = []
        self._stopping = threading.Event()
        self._claiming = Abort()
        self._threads: list[threading.Thread] = []
        self._pool: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def running(self) -> int:
        """How many tasks run now."""
        return len(self._running)

    def start(self) -> Worker:
        """Starts the worker and returns."""
        if self._threads:
            raise MillraceError("The worker was started already")
        self._pool = ThreadPoolExecutor(self._concurrency, f"{self.name}-handler")
        if any(inspect.iscoroutinefunction(handler) for handler in self._handlers.values()):
            self._loop = asyncio.new_event_loop()
            self._spawn(self._loop.run_forever, "loop")
        self._spawn(self._claim_forever, "claim")
        self._spawn(self._settle_forever, "settle")
        self._spawn(self._extend_forever, "extend")
        self._spawn(self._watch_forever, "watch")
        return self

    def stop(self, timeout: float = 30.0) -> None:
        """Claims nothing more and returns when running tasks have ended and are settled.

        After `timeout` seconds the handlers that still run are told to stop, and their tasks are
        handed back without a used attempt.
        """
        self._stopping.set()
        ends_at = time.monotonic() + timeout
        # First: a claim that waits would get the tasks that are handed back.
        self._claiming.set()
        self._join("claim")
        with self._changed:
            self._changed.notify_all()
            while self._running and time.monotonic() < ends_at:
                self._changed.wait(max(0.01, ends_at - time.monotonic()))
            for running in self._running.values():
                running.stop(LeaseLost("The worker stops"), is_shutdown=True)
            while self._running or self._settle_queue:
                self._changed.wait(1.0)
        if self._pool is not None:
            self._pool.shutdown(wait=False)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._join("")
        if self._loop is not None and not self._loop.is_running():
            self._loop.close()

    def run(self) -> None:
        """Works until the process is interrupted or terminated, then stops in good order."""
        import signal

        ended = threading.Event()
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda *_: ended.set())
        self.start()
        while not ended.wait(1.0):
            pass
        self.stop()

    def __enter__(self) -> Worker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self, target: Callable[[], None], part: str) -> None:
        thread = threading.Thread(target=target, name=f"{self.name}-{part}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _join(self, part: str) -> None:
        for thread in self._threads:
            if thread.name.endswith(part):
                thread.join(5.0)

    def _claim_forever(self) -> None:
        delay = _FIRST_RETRY
        while not self._stopping.is_set():
            with self._changed:
                while len(self._running) >= self._concurrency and not self._stopping.is_set():
                    self._changed.wait(1.0)
                free = self._concurrency - len(self._running)
            if self._stopping.is_set():
                break
            started = time.monotonic()
            least = 0.0
            try:
                claimed = self._claim(min(free, _MAX_PER_CLAIM))
                for raw in claimed:
                    self._run(raw)
                # A server that shuts down does not wait.
                if claimed or time.monotonic() - started > _CLAIM_WAIT / 2:
                    delay = _FIRST_RETRY
                    continue
            except MillraceError as error:
                if self._stopping.is_set():
                    break
                self._on_error(error)
                least = getattr(error, "retry_after", None) or 0.0
            self._stopping.wait(max(least, delay * random.uniform(0.5, 1.0)))
            delay = min(delay * 2, _MAX_RETRY)

    def _claim(self, limit: int) -> list[dict[str, Any]]:
        body: dict[str, Any] = {
            "worker": self.name,
            "limit": limit,
            "wait_ms": int(_CLAIM_WAIT * 1000),
            "lease_ms": int(self._lease * 1000),
        }
        # Tasks without a handler here are left to other workers.
        if len(self._handlers) <= _MAX_HANDLERS_IN_CLAIM:
            body["handlers"] = list(self._handlers)
        # Tasks all of whose labels are among these.
        if self._labels:
            body["labels"] = self._labels
        path = f"/v1/queues/{segment(self.queue_name)}/tasks:claim"
        api, timeout = self._queue.api, _CLAIM_WAIT + 30
        answer = api.call("POST", path, body, timeout=timeout, is_safe=True, abort=self._claiming)
        tasks: list[dict[str, Any]] = answer["tasks"]
        return tasks

    def _run(self, raw: dict[str, Any]) -> None:
        running = _Running(self._queue, raw, self._lease)
        if self._stopping.is_set():
            # Claimed while the worker stopped: handed back without a used attempt.
            self._settle([(running, running.failed(LeaseLost("The worker stops"), True))])
            return
        with self._changed:
            self._running[running.key] = running
        handler = self._handlers.get(running.task.handler_ref)
        if handler is not None and inspect.iscoroutinefunction(handler):
            assert self._loop is not None
            future = asyncio.run_coroutine_threadsafe(self._handle_async(handler, running), self._loop)
            running.cancel = future.cancel
        else:
            assert self._pool is not None
            future = self._pool.submit(self._handle, handler, running)
        future.add_done_callback(lambda done: self._ended(running, done))
        with self._changed:
            self._changed.notify_all()

    def _handle(self, handler: Handler | None, running: _Running) -> Any:
        if handler is None:
            raise PermanentError(f"There is no handler for {running.task.handler_ref}")
        call = Call(running.task.payload, running.task, running)
        try:
            return handler(call)
        except Suspended:
            return _Suspension(call.step.suspension())

    async def _handle_async(self, handler: Handler, running: _Running) -> Any:
        call = Call(running.task.payload, running.task, running)
        suspended = call.async_step.suspended
        work = asyncio.ensure_future(handler(call))
        try:
            await asyncio.wait({work, suspended}, return_when=asyncio.FIRST_COMPLETED)
            return work.result() if work.done() else _Suspension(call.step.suspension())
        finally:
            work.cancel()

    def _ended(self, running: _Running, done: Future[Any]) -> None:
        try:
            result = done.result()
            item: dict[str, Any] | None = running.completed(result)
        except BaseException as error:  # a handler may raise anything, also SystemExit
            item = running.failed(error, is_deferred=running.is_shutdown)
        if running.reason is not None and not running.is_shutdown:
            item = None
        with self._changed:
            self._running.pop(running.key, None)
            if item is not None:
                self._settle_queue.append((running, item))
            self._changed.notify_all()

    def _settle_forever(self) -> None:
        while True:
            with self._changed:
                while not self._settle_queue:
                    if self._stopping.is_set() and not self._running:
                        return
                    self._changed.wait(1.0)
                batch = self._settle_queue[:_MAX_SETTLE]
            self._settle(batch)
            with self._changed:
                del self._settle_queue[: len(batch)]
                self._changed.notify_all()

    def _settle(self, batch: list[tuple[_Running, dict[str, Any]]]) -> None:
        """Repeats a failed call until the leases end, which is harmless."""
        path = f"/v1/queues/{segment(self.queue_name)}/tasks:settle"
        while batch:
            try:
                items = [item for _, item in batch]
                answers = self._queue.api.call("POST", path, {"items": items}, is_safe=True)
                for answer in answers:
                    if "error" in answer:
                        self._on_error(ApiError(answer.get("status", 409), answer["error"]))
                return
            except ApiError as error:
                self._on_error(error)
                if error.status < 500 and error.status != 429:
                    return
            except MillraceError as error:
                self._on_error(error)
            now = time.monotonic()
            batch = [entry for entry in batch if entry[0].lease_end > now]
            time.sleep(_FIRST_RETRY)

    def _extend_forever(self) -> None:
        def is_over() -> bool:
            return self._stopping.is_set() and not self._running

        while True:
            with self._changed:
                if self._changed.wait_for(is_over, self._lease / 3):
                    return
                due = [each for each in self._running.values() if each.is_due(self._lease)]
            for running in due:
                try:
                    running.extend()
                except MillraceError as error:
                    self._on_error(error)

    def _watch_forever(self) -> None:
        """Starts a watch of every task that runs for longer than most."""
        watched: set[str] = set()
        while not (self._stopping.is_set() and not self._running):
            with self._changed:
                self._changed.wait_for(lambda: len(self._running) > 0 or self._stopping.is_set(), 1.0)
                watched &= self._running.keys()
                now = time.monotonic()
                new = [
                    each
                    for key, each in self._running.items()
                    if key not in watched and now - each.started_at >= _WATCH_AFTER
                ]
            for running in new:
                watched.add(running.key)
                threading.Thread(target=self._watch, args=(running,), daemon=True).start()
            time.sleep(_WATCH_AFTER / 2)

    def _watch(self, running: _Running) -> None:
        """Waits for the end of a task, which is a cancel while its handler runs."""
        while running.key in self._running and running.reason is None:
            started = time.monotonic()
            try:
                if running.is_over(_WATCH_WAIT) and running.key in self._running:
                    running.extend()
                    return
            except MillraceError as error:
                if running.reason is None and running.key in self._running:
                    self._on_error(error)
                return
            # A server that shuts down does not wait: the next extension of the lease finds out.
            if time.monotonic() - started < _WATCH_WAIT / 2:
                return

    def _print_error(self, error: BaseException) -> None:
        print(f"{self.name}: {error}", file=sys.stderr)


@dataclass
class _Suspension:
    """What a run of a handler ends with when its next step waits."""

    wait: dict[str, Any]


class _Running:
    """A claimed task while its handler runs."""

    def __init__(self, queue: Queue, raw: dict[str, Any], lease: float) -> None:
        self.task = task_of(raw)
        self.token: str = raw["lease_token"]
        self.key = f"{self.task.id} {self.token}"
        self.started_at = time.monotonic()
        self.lease_end = self.started_at + lease
        self.reason: MillraceError | None = None
        self.is_shutdown = False
        self.stopped = threading.Event()
        self.cancel: Callable[[], object] | None = None
        self.api = queue.api
        self._lease = lease

    def is_due(self, lease: float) -> bool:
        return self.reason is None and self.lease_end - time.monotonic() < lease * 0.8

    def stop(self, reason: MillraceError, is_shutdown: bool = False) -> None:
        """Tells the handler that its result will not be taken."""
        self.is_shutdown = is_shutdown
        self.reason = reason
        self.stopped.set()
        if self.cancel is not None:
            self.cancel()

    def is_over(self, wait: float) -> bool:
        """Whether the task ended within `wait` seconds."""
        try:
            task = self.api.call(
                "GET",
                f"/v1/tasks/{segment(self.task.id)}",
                query={"wait_ms": int(wait * 1000)},
                headers={"x-queue-lease-token": self.token},
            )
        except ApiError as error:
            # A role that may only read tasks that it holds is refused when the lease is gone.
            if error.code in ("FORBIDDEN", "TASK_NOT_FOUND"):
                return True
            raise
        status: str = task["status"]
        return status == "DEAD"

    def extend(self, progress: dict[str, Any] | None = None) -> None:
        body: dict[str, Any] = {"extend_ms": int(self._lease * 1000)}
        if progress is not None:
            body["progress"] = progress
        sent_at = time.monotonic()
        try:
            self.api.call(
                "POST",
                f"/v1/tasks/{segment(self.task.id)}:extend",
                body,
                headers={"x-queue-lease-token": self.token},
                is_safe=True,
            )
            self.lease_end = max(self.lease_end, sent_at + self._lease)
        except ApiError as error:
            if error.code in ("LEASE_LOST", "TASK_NOT_FOUND"):
                is_cancel = (error.reason or "").upper().startswith("CANCEL")
                kind = TaskCancelled if is_cancel else LeaseLost
                self.stop(kind(f"{self.task.id}: {error.detail}"))
            raise

    def completed(self, result: Any) -> dict[str, Any]:
        if isinstance(result, _Suspension):
            return {**self._lease_fields(), "outcome": "suspend", "suspend": result.wait}
        item: dict[str, Any] = {**self._lease_fields(), "outcome": "complete"}
        if result is not None:
            size = len(json.dumps(result, ensure_ascii=False).encode())
            if size > _MAX_RESULT_BYTES:
                text = f"The result has {size} bytes; at most {_MAX_RESULT_BYTES} are kept."
                raise PermanentError(text)
            item["result"] = result
        return item

    def failed(self, error: BaseException, is_deferred: bool = False) -> dict[str, Any]:
        kind = type(error).__name__
        lines = traceback.format_exception(error)
        item: dict[str, Any] = {
            **self._lease_fields(),
            "outcome": "fail",
            "error_type": kind if _ERROR_TYPE.fullmatch(kind) else "INTERNAL",
            "message": _cut(str(error), 1_024),
            # The end of a traceback says most.
            "stack": _cut("".join(lines)[-2_048:], 2_048),
            "retry": not isinstance(error, PermanentError),
        }
        if is_deferred:
            item["defer"] = True
        if isinstance(error, RetryLater):
            item["retry_after_ms"] = max(0, round(error.after * 1000))
        return item

    def _lease_fields(self) -> dict[str, Any]:
        return {"id": self.task.id, "lease_token": self.token}


def _cut(text: str, max_bytes: int) -> str:
    return text.encode(errors="replace")[:max_bytes].decode(errors="ignore")
