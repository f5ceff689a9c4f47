"""The runner of the scenarios in sdks/conformance; see the README there."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "src"))

from millrace import ApiError, Call, PermanentError, Queue, RetryLater, StepFailed, Worker  # noqa: E402

env = os.environ
queue = Queue(env["MILLRACE_URL"], env["MILLRACE_TOKEN"])


class Flaky(Exception):
    pass


started: list[str] = []
has_started = threading.Event()


def flaky(call: Call) -> Any:
    if call.task.attempt <= call.payload["failures"]:
        raise Flaky("not yet")
    return {"attempt": call.task.attempt}


def later(call: Call) -> str:
    if call.task.attempt == 1:
        raise RetryLater(0.05)
    return "done"


def permanent(call: Call) -> None:
    raise PermanentError(call.payload["message"])


def slow(call: Call) -> int:
    call.progress(50, "half")
    time.sleep(call.payload["ms"] / 1000)
    return call.task.attempt


def wait(call: Call) -> None:
    started.append(call.task.id)
    has_started.set()
    call.wait(30)


def crash(call: Call) -> str:
    if call.task.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "recovered"


tried: list[int] = []


def fail_once() -> int:
    tried.append(1)
    if len(tried) == 1:
        raise Flaky("not yet")
    return len(tried)


def flow(call: Call) -> Any:
    step = call.step
    doubled = step.run("double", lambda: call.payload * 2)
    step.sleep("nap", 0.05)
    return {
        "doubled": doubled,
        "signal": step.signal("go"),
        "late": step.signal("never", timeout=0.05),
        "child": step.submit("child", call.task.queue, "echo", call.payload + 21),
        "children": step.submit_many("children", call.task.queue, "echo", [1, 2, 3]),
        "tries": step.run("flaky", fail_once, backoff=0.01),
    }


def undo(call: Call) -> str:
    try:
        call.step.submit("child", call.task.queue, "permanent", {"message": "no"})
    except StepFailed as error:
        return error.error_type
    return "done"


def twice(call: Call) -> None:
    call.step.run("a", lambda: 1)
    call.step.run("a", lambda: 1)


def crash_flow(call: Call) -> Any:
    first = call.step.run("first", lambda: call.task.attempt)
    if call.task.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"first": first, "second": call.step.run("second", lambda: call.task.attempt)}


handlers = {
    "echo": lambda call: call.payload,
    "nothing": lambda call: None,
    "flaky": flaky,
    "later": later,
    "permanent": permanent,
    "large": lambda call: "x" * 70_000,
    "slow": slow,
    "wait": wait,
    "crash": crash,
    "flow": flow,
    "undo": undo,
    "twice": twice,
    "crash-flow": crash_flow,
}


def worker(name: str, scenario: dict[str, Any]) -> Worker:
    lease = scenario.get("lease_ms", 30_000) / 1000
    return Worker(queue, name, handlers, lease=lease, on_error=lambda error: None)


def submit(name: str, scenario: dict[str, Any]) -> list[str]:
    if "many" in scenario:
        many = scenario["many"]
        results = queue.submit_many(name, many["ref"], range(many["count"]))
        return [each.id for each in results if not isinstance(each, ApiError)]
    ids: list[str] = []
    for task in scenario["tasks"]:
        options = dict(task.get("options", {}))
        if "delay_ms" in options:
            options["delay"] = options.pop("delay_ms") / 1000
        ids.append(queue.submit(name, task["ref"], task.get("payload"), **options).id)
    return ids


def ended(task_id: str) -> dict[str, Any]:
    while not (task := queue.get(task_id, wait=30)).has_ended:
        pass
    error = task.raw.get("last_error")
    return {
        "status": task.status,
        "result": task.result,
        "attempt": task.attempt,
        "error_type": error and error["error_type"],
        "dead_reason": task.raw.get("dead_reason"),
    }


for scenario in json.load(open(sys.argv[1])):
    only = env.get("MILLRACE_ONLY")
    if scenario["name"] != only if only else "expect_after_crash" in scenario:
        continue
    name = f"{env['MILLRACE_PREFIX']}-{scenario['name']}"
    if env.get("MILLRACE_RESUME"):
        with worker(name, scenario):
            while (stats := queue.stats(name))["pending"] + stats["in_flight"] > 0:
                time.sleep(0.05)
        continue
    queue.configure(name, {"callback": {"protocol": "pull"}, **scenario.get("config", {})})
    with worker(name, scenario):
        ids = submit(name, scenario)
        if scenario.get("then") == "cancel":
            has_started.wait(60)
            queue.cancel(started[0])
        if scenario.get("then") == "signal":
            queue.signal(ids[0], "go", {"by": "ada"})
        tasks = [ended(each) for each in ids]
    print(json.dumps({"name": scenario["name"], "tasks": tasks}), flush=True)
