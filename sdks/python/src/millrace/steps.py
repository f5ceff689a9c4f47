"""Durable handlers: steps that are recorded, sleeps, signals and child tasks.

A handler that uses steps may be run many times; a step whose result is recorded is not run again.
What is not in a step must be cheap and free of effects.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from functools import partial
from typing import Any, NoReturn, TypeVar, Unpack

from .errors import ApiError, LeaseLost, MillraceError, PermanentError, RetryLater, StepFailed
from .http import Api, segment
from .tasks import Duration, SubmitOptions, Task, milliseconds, submit_fields, timestamp

T = TypeVar("T")

_ENDED = ("SUCCEEDED", "DEAD")
_MAX_CHILDREN = 1_000
_MAX_BATCH = 500
_MAX_BACKOFF = 3_600.0
_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Suspended(BaseException):
    """Ends a run of a handler whose next step waits. Not an Exception, so that no handler catches it."""


class Steps:
    """The steps of one run of a handler that runs in a thread. Names are unique within a task."""

    def __init__(
        self, api: Api, task: Task, token: str, on_lost: Callable[[MillraceError], None]
    ) -> None:
        self._api = api
        self._task = task
        self._token = token
        self._on_lost = on_lost
        self._path = f"/v1/tasks/{segment(task.id)}/steps"
        raw = task.raw
        self._recorded: dict[str, Mapping[str, Any]] = {s["name"]: s for s in raw.get("steps") or ()}
        self._signals: list[Mapping[str, Any]] = [*(raw.get("signals") or ())]
        self._children: dict[str, Mapping[str, Any]] = {c["id"]: c for c in raw.get("children") or ()}
        self._used: set[str] = set()
        self._waits: list[dict[str, Any]] = []
        self._unnamed = 0
        self._lock = threading.RLock()

    def run(
        self,
        name: str,
        fn: Callable[..., T],
        *args: Any,
        attempts: int | None = None,
        backoff: float = 1.0,
    ) -> T:
        """Calls `fn(*args)` and records what it returns, which JSON must be able to hold.

        After an exception it is tried again, as often as the task may be or `attempts` says; in
        between the task is suspended, `backoff` seconds at first, then twice as long each time.
        """
        known, attempt = self.begin(name)
        stored: T
        if known is not None:
            stored = _outcome(known)
            return stored
        started = time.time()
        try:
            result = fn(*args)
        except Exception as error:
            self.fail(name, error, attempt, attempts, backoff, started)
        stored = self.record(name, {"result": result}, started)
        return stored

    def key(self, name: str) -> str:
        """An idempotency key of a step: the same in every attempt."""
        return f"{self._task.id}:{name}"

    def sleep(self, name: str, duration: Duration) -> None:
        """Suspends the task; no worker is held meanwhile."""
        known = self._claim(name)
        if known is None:
            until = _now_ms() + milliseconds(duration)
            self.record(name, {"result": {"until": until}})
        else:
            until = known["result"]["until"]
        if until > _now_ms():
            self._wait({"until": until})

    def signal(self, name: str, *, timeout: Duration | None = None) -> Any:
        """Waits for a signal and returns its payload; None after the timeout."""
        known = self._claim(name)
        if known is not None:
            return (known.get("result") or {}).get("payload")
        with self._lock:
            found = next((each for each in self._signals if each["name"] == name), None)
            if found is not None:
                self._signals.remove(found)
        if found is not None:
            step = {"result": {"payload": found.get("payload")}, "consumes": [found["id"]]}
            return self.record(name, step)["payload"]
        wait: dict[str, Any] = {"signal": name}
        if timeout is not None:
            wait["until"] = self._deadline(name, timeout)
            if wait["until"] <= _now_ms():
                self.record(name, {"result": {}})
                return None
        return self._wait(wait)

    def submit(
        self, name: str, queue: str, ref: str, payload: Any = None, **options: Unpack[SubmitOptions]
    ) -> Any:
        """Submits a child task and returns its result when it has ended."""
        return self._submit_all(name, queue, ref, [payload], options, is_single=True)

    def submit_many(
        self,
        name: str,
        queue: str,
        ref: str,
        payloads: Sequence[Any],
        **options: Unpack[SubmitOptions],
    ) -> list[Any]:
        """Submits up to 1,000 child tasks and returns their results in order."""
        if len(payloads) > _MAX_CHILDREN:
            raise PermanentError(f"submit_many takes at most {_MAX_CHILDREN} tasks")
        results: list[Any] = self._submit_all(name, queue, ref, payloads, options, is_single=False)
        return results

    def agent(self, name: str, queue: str, prompt: str, **more: Any) -> dict[str, Any]:
        """Runs an agent as a child task, with `backend`, `repo`, `branch` and so on."""
        result: dict[str, Any] = self.submit(name, queue, "agent", {"prompt": prompt, **more})
        return result

    def parallel(self, *branches: Callable[[], Any]) -> list[Any]:
        """Runs branches in threads; the task is suspended when every one of them waits or is done."""

        def run(branch: Callable[[], Any]) -> tuple[Any, BaseException | None]:
            try:
                return branch(), None
            except BaseException as error:
                return None, error

        with ThreadPoolExecutor(max(1, len(branches))) as pool:
            results = [*pool.map(run, branches)]
        errors = [error for _, error in results if error is not None]
        for error in sorted(errors, key=lambda each: isinstance(each, Suspended)):
            raise error
        return [result for result, _ in results]

    def now(self) -> datetime:
        """The time of the first run."""
        return datetime.fromtimestamp(self._value("now", _now_ms) / 1000, timezone.utc)

    def random(self) -> float:
        """From 0 up to 1, the same in every run."""
        return self._value("random", random.random)

    def id(self) -> str:
        """A UUID, the same in every run."""
        return self._value("id", lambda: str(uuid.uuid4()))

    @property
    def is_waiting(self) -> bool:
        return bool(self._waits)

    def suspension(self) -> dict[str, Any]:
        """One wait of all branches: the first event wakes the task."""
        times = [wait["until"] for wait in self._waits if "until" in wait]
        signals = {wait["signal"]: None for wait in self._waits if "signal" in wait}
        tasks = {each: None for wait in self._waits for each in self._awaited(wait)}
        suspend: dict[str, Any] = {}
        if times:
            suspend["until"] = _stamp(min(times))
        if signals:
            suspend["signals"] = [*signals]
        if tasks:
            suspend["tasks"] = [*tasks][:_MAX_CHILDREN]
        if len(self._waits) == 1 and len(tasks) > 1:
            suspend["mode"] = "all"
        return suspend

    def _awaited(self, wait: Mapping[str, Any]) -> Sequence[str]:
        # Beside other branches, tasks that have ended would wake the task again and again. Once all
        # have ended, waiting for them gets their results.
        opened = wait.get("open", ())
        return opened[-1:] if len(self._waits) > 1 and opened else wait.get("tasks", ())

    def begin(self, name: str) -> tuple[Mapping[str, Any] | None, int]:
        """The recorded step, or the number of the attempt to make now."""
        known = self._claim(name)
        attempt, last = 1, None
        while (tried := self._recorded.get(f"{name}~{attempt}")) is not None:
            attempt, last = attempt + 1, tried
        if known is None and last is not None and last["result"]["until"] > _now_ms():
            self._wait({"until": last["result"]["until"]})
        return known, attempt

    def _claim(self, name: str) -> Mapping[str, Any] | None:
        with self._lock:
            if name in self._used:
                raise PermanentError(
                    f"The step {name} is used twice in one run; give each its own name, such as {name}-2"
                )
            self._used.add(name)
            return self._recorded.get(name)

    def _value(self, kind: str, make: Callable[[], T]) -> T:
        with self._lock:
            self._unnamed += 1
            name = f"{kind}~{self._unnamed}"
        known = self._claim(name)
        result: T = known["result"] if known is not None else self.record(name, {"result": make()})
        return result

    def _deadline(self, name: str, timeout: Duration) -> int:
        known = self._recorded.get(f"{name}~until")
        if known is not None:
            return int(known["result"])
        return int(self.record(f"{name}~until", {"result": _now_ms() + milliseconds(timeout)}))

    def fail(
        self,
        name: str,
        error: Exception,
        attempt: int,
        attempts: int | None,
        backoff: float,
        started: float,
    ) -> NoReturn:
        """Records the failure; suspends the task until the next try, or raises if there is none."""
        if isinstance(error, LeaseLost):
            raise error
        record = {"type": type(error).__name__[:128], "message": str(error)[:1_000]}
        is_final = isinstance(error, PermanentError)
        if is_final or attempt >= max(1, attempts or self._task.max_attempts):
            self.record(name, {"error": record}, started)
            if is_final:
                raise error
            raise StepFailed(record["message"], record["type"]) from error
        delay = min(_MAX_BACKOFF, backoff * 2.0 ** (attempt - 1))
        if isinstance(error, RetryLater):
            delay = max(delay, error.after)
        until = _now_ms() + round(delay * 1000)
        self.record(f"{name}~{attempt}", {"result": {"until": until}, "error": record}, started)
        self._wait({"until": until})

    def _submit_all(
        self,
        name: str,
        queue: str,
        ref: str,
        payloads: Sequence[Any],
        options: SubmitOptions,
        is_single: bool,
    ) -> Any:
        known = self._claim(name)
        if known is not None:
            return _outcome(known)
        ids = [_child_id(self._task, f"{name}#{n}") for n in range(len(payloads))]
        bodies = [
            {
                **submit_fields(ref, payload, options),
                "id": task_id,
                "parent_id": self._task.id,
                "parent_lease_token": self._token,
            }
            for task_id, payload in zip(ids, payloads, strict=True)
            if task_id not in self._children
        ]
        statuses = {task_id: child["status"] for task_id, child in self._children.items()}
        for envelope in self._submit_children(queue, bodies, is_single):
            statuses[envelope["id"]] = envelope["status"]
        children = [self._children.get(task_id) for task_id in ids]
        ended = [each for each in children if each and each["status"] in _ENDED]
        if len(ended) < len(ids):
            opened = [task_id for task_id in ids if statuses.get(task_id) not in _ENDED]
            self._wait({"tasks": ids, "open": opened})
        dead = next((each for each in ended if each["status"] == "DEAD"), None)
        if dead is not None:
            message = f"The child task {dead['id']} of the step {name} failed"
            self.record(name, {"error": {"type": "CHILD_FAILED", "message": message}})
            raise StepFailed(message, "CHILD_FAILED")
        results = [each.get("result") for each in ended]
        return self.record(name, {"result": results[0] if is_single else results})

    def _submit_children(
        self, queue: str, bodies: Sequence[Mapping[str, Any]], is_single: bool
    ) -> Iterator[Mapping[str, Any]]:
        path = f"/v1/queues/{segment(queue)}/tasks"
        if is_single and bodies:
            yield self._call(path, bodies[0])
            return
        for start in range(0, len(bodies), _MAX_BATCH):
            for answer in self._call(f"{path}:batch", bodies[start : start + _MAX_BATCH]):
                if "error" in answer:
                    raise PermanentError(str(ApiError(answer["status"], answer["error"])))
                yield answer["envelope"]

    def record(self, name: str, step: Mapping[str, Any], started: float | None = None) -> Any:
        """Records a step; returns its result as a later run gets it."""
        body: dict[str, Any] = {"lease_token": self._token, "name": name, **step}
        if started is not None:
            body["started_at"] = _stamp(started * 1000)
        recorded = self._call(self._path, body)
        with self._lock:
            self._recorded[name] = recorded
        return recorded.get("result")

    def _call(self, path: str, body: Any) -> Any:
        """A call under the lease."""
        try:
            return self._api.call("POST", path, body, is_safe=True)
        except ApiError as error:
            if error.code not in ("LEASE_LOST", "TASK_ENDED"):
                raise
            lost = LeaseLost(f"{self._task.id}: {error.detail}")
            self._on_lost(lost)
            raise lost from error

    def _wait(self, wait: dict[str, Any]) -> NoReturn:
        with self._lock:
            self._waits.append(wait)
        raise Suspended


class AsyncSteps:
    """The same for coroutines. `asyncio.gather` and the like run branches side by side; the task is
    suspended when every open branch waits."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._open = 0
        self.suspended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(
        self,
        name: str,
        fn: Callable[..., Awaitable[T]],
        *args: Any,
        attempts: int | None = None,
        backoff: float = 1.0,
        timeout: float | None = None,
    ) -> T:
        """Awaits `fn(*args)` and records what it returns. See Steps.run."""
        known, attempt = await self._do(self._steps.begin, name)
        if known is not None:
            stored: T = _outcome(known)
            return stored
        self._open += 1
        started = time.time()
        try:
            try:
                result = await asyncio.wait_for(fn(*args), timeout)
            except Exception as error:
                failed = partial(self._steps.fail, attempts=attempts, backoff=backoff, started=started)
                return await self._do(failed, name, error, attempt)
            return await self._do(self._steps.record, name, {"result": result}, started)
        finally:
            self._close()

    def key(self, name: str) -> str:
        return self._steps.key(name)

    async def sleep(self, name: str, duration: Duration) -> None:
        await self._do(self._steps.sleep, name, duration)

    async def signal(self, name: str, *, timeout: Duration | None = None) -> Any:
        return await self._do(partial(self._steps.signal, name, timeout=timeout))

    async def submit(
        self, name: str, queue: str, ref: str, payload: Any = None, **options: Unpack[SubmitOptions]
    ) -> Any:
        return await self._do(partial(self._steps.submit, name, queue, ref, payload, **options))

    async def submit_many(
        self,
        name: str,
        queue: str,
        ref: str,
        payloads: Sequence[Any],
        **options: Unpack[SubmitOptions],
    ) -> list[Any]:
        return await self._do(partial(self._steps.submit_many, name, queue, ref, payloads, **options))

    async def agent(self, name: str, queue: str, prompt: str, **more: Any) -> dict[str, Any]:
        return await self._do(partial(self._steps.agent, name, queue, prompt, **more))

    async def now(self) -> datetime:
        return await self._do(self._steps.now)

    async def random(self) -> float:
        return await self._do(self._steps.random)

    async def id(self) -> str:
        return await self._do(self._steps.id)

    async def _do(self, call: Callable[..., T], *args: Any) -> T:
        self._open += 1
        try:
            return await asyncio.to_thread(call, *args)
        except Suspended:
            pass
        finally:
            self._close()
        # The handler runs again when the wait is over.
        await asyncio.get_running_loop().create_future()
        raise Suspended

    def _close(self) -> None:
        self._open -= 1
        # Not before the handler has gone on with what it got, which may begin the next step.
        asyncio.get_running_loop().call_later(0.005, self._check)

    def _check(self) -> None:
        if self._open == 0 and self._steps.is_waiting and not self.suspended.done():
            self.suspended.set_result(None)


def _outcome(step: Mapping[str, Any]) -> Any:
    error = step.get("error")
    if error:
        raise StepFailed(error["message"], error["type"])
    return step.get("result")


def _child_id(task: Task, name: str) -> str:
    """The same ULID in every run, so that a child is submitted once; another one after a redrive."""
    digest = hashlib.sha256(f"{task.id} {task.redrive_count} {name}".encode()).digest()
    return task.id[:10] + "".join(_DIGITS[byte % 32] for byte in digest[:16])


def _now_ms() -> int:
    return int(time.time() * 1000)


def _stamp(ms: float) -> str:
    return timestamp(datetime.fromtimestamp(ms / 1000, timezone.utc))
