from __future__ import annotations

import asyncio
import threading
import unittest
from typing import Any

from millrace import Call, PermanentError, Queue, StepFailed, TaskFailed, Worker
from servers import servers


def setUpModule() -> None:
    global queue
    queue = Queue(servers().urls["queue"], servers().queue_token)
    for name in ("py-flows", "py-children"):
        queue.configure(name, {"callback": {"protocol": "pull"}, "retry": {"max_attempts": 5}})


def tearDownModule() -> None:
    queue.close()


def wait_for(task_id: str, kind: str) -> None:
    while queue.get(task_id).raw.get("waiting_for") != kind:
        threading.Event().wait(0.02)


class Flows(unittest.TestCase):
    def work(self, **handlers: Any) -> Worker:
        return Worker(queue, "py-flows", handlers, on_error=lambda error: None)

    def children(self) -> Worker:
        def double(call: Call) -> int:
            if call.payload < 0:
                raise PermanentError("below zero")
            return int(call.payload) * 2

        return Worker(queue, "py-children", {"double": double}, on_error=lambda error: None)

    def test_a_recorded_step_is_not_run_again(self) -> None:
        ran: list[str] = []

        def once(name: str) -> str:
            ran.append(name)
            return name

        def order(call: Call) -> Any:
            first = call.step.run("charge", once, "charge")
            call.step.sleep("cool-down", 0.2)
            answer = call.step.signal("approved", timeout=60)
            doubled = call.step.submit("double", "py-children", "double", 21)
            many = call.step.submit_many("many", "py-children", "double", [1, 2, 3])
            both = call.step.parallel(
                lambda: call.step.submit("left", "py-children", "double", 5),
                lambda: call.step.run("right", once, "right"),
            )
            same = [str(call.step.now()), call.step.random(), call.step.id()]
            call.step.sleep("end", 0.05)
            return [first, answer, doubled, many, both, len(same)]

        with self.work(order=order), self.children():
            task = queue.submit("py-flows", "order")
            wait_for(task.id, "signal")
            queue.signal(task.id, "approved", {"by": "ada"}, id="one")
            queue.signal(task.id, "approved", {"by": "ada"}, id="one")
            result = queue.wait(task.id)
        self.assertEqual(result, ["charge", {"by": "ada"}, 42, [2, 4, 6], [10, "right"], 3])
        self.assertEqual(ran, ["charge", "right"])
        self.assertEqual(queue.get(task.id).attempt, 1)
        self.assertEqual(len(queue.tree(task.id)["root"]["children"]), 5)

    def test_ended_children_do_not_wake_the_task_again_and_again(self) -> None:
        runs: list[str] = []

        def order(call: Call) -> Any:
            runs.append(call.task.id)
            return call.step.parallel(
                lambda: call.step.submit_many("many", "py-flows", "nap", [0, 0.8, 0]),
                lambda: call.step.sleep("rest", 0.5),
            )

        def nap(call: Call) -> Any:
            threading.Event().wait(call.payload)
            return call.payload

        with self.work(order=order, nap=nap):
            self.assertEqual(queue.submit_and_wait("py-flows", "order"), [[0, 0.8, 0], None])
        self.assertLess(len(runs), 10)

    def test_coroutines(self) -> None:
        ran: list[int] = []

        async def square(n: int) -> int:
            ran.append(n)
            return n * n

        async def order(call: Call) -> Any:
            step = call.async_step
            child = step.submit("child", "py-children", "double", 4)
            squares = await asyncio.gather(step.run("a", square, 3), step.run("b", square, 4), child)
            await step.sleep("nap", 0.05)
            late = await step.signal("never", timeout=0.1)
            return [*squares, late, len(await step.id())]

        with self.work(order=order), self.children():
            self.assertEqual(queue.submit_and_wait("py-flows", "order"), [9, 16, 8, None, 36])
        self.assertEqual(sorted(ran), [3, 4])

    def test_a_failing_step_is_tried_again_without_a_used_attempt(self) -> None:
        tries: list[str] = []

        def flaky(key: str) -> str:
            tries.append(key)
            if len(tries) < 3:
                raise ValueError("not yet")
            return "at last"

        def order(call: Call) -> Any:
            return [call.step.run("f", flaky, call.step.key("f"), backoff=0.02), call.task.attempt]

        with self.work(order=order):
            self.assertEqual(queue.submit_and_wait("py-flows", "order"), ["at last", 1])
        self.assertEqual(len(set(tries)), 1)

    def test_failures_can_be_undone(self) -> None:
        undone: list[str] = []

        def saga(call: Call) -> str:
            try:
                call.step.submit("child", "py-children", "double", -1)
            except StepFailed as error:
                call.step.run("undo", undone.append, error.error_type)
                return "undone"
            return "done"

        def broken(call: Call) -> None:
            def fail() -> None:
                raise PermanentError("no card")

            call.step.run("charge", fail)

        def twice(call: Call) -> None:
            call.step.run("a", str)
            call.step.run("a", str)

        with self.work(saga=saga, broken=broken, twice=twice), self.children():
            self.assertEqual(queue.submit_and_wait("py-flows", "saga"), "undone")
            with self.assertRaises(TaskFailed) as caught:
                queue.submit_and_wait("py-flows", "broken")
            self.assertIn("no card", str(caught.exception))
            with self.assertRaises(TaskFailed) as caught:
                queue.submit_and_wait("py-flows", "twice")
            self.assertIn("used twice", str(caught.exception))
        self.assertEqual(undone, ["CHILD_FAILED"])

    def test_tasks_that_depend_on_tasks(self) -> None:
        def add(call: Call) -> int:
            return int(call.payload) + sum(each["result"] for each in call.dependencies)

        common = {"queue": "py-flows", "ref": "add"}
        ids = queue.submit_flow(
            [
                {**common, "key": "c", "payload": 100, "after": ["a", {"key": "b", "on": "end"}]},
                {**common, "key": "a", "payload": 1},
                {**common, "key": "b", "payload": 10, "max_attempts": 2},
            ]
        )
        with self.work(add=add):
            self.assertEqual(queue.wait(ids["c"]), 111)
            after = queue.submit("py-flows", "add", 5, depends_on=[ids["c"]])
            self.assertEqual(queue.wait(after.id), 116)

    def test_events_and_changes_of_waiting_tasks(self) -> None:
        seen: list[str] = []
        ready, done = threading.Event(), threading.Event()

        def follow() -> None:
            events = queue.events(queue="py-flows", types=["submitted", "cancelled"])
            for event in events:
                seen.append(event["type"])
                ready.set()
                if event["type"] == "cancelled":
                    break
            done.set()

        threading.Thread(target=follow, daemon=True).start()
        task = queue.submit("py-flows", "later", 1, delay=3600)
        while not ready.wait(0.1):
            task = queue.submit("py-flows", "later", 1, delay=3600, labels=["gpu"])
        changed = queue.update(task.id, priority=9, payload={"n": 2})
        self.assertEqual((changed.raw["priority"], queue.get(task.id).payload), (9, {"n": 2}))
        queue.cancel(task.id)
        self.assertTrue(done.wait(30))
        self.assertEqual(seen[-1], "cancelled")


if __name__ == "__main__":
    unittest.main()
