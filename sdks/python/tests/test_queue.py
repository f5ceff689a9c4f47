from __future__ import annotations

import asyncio
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any
from unittest import mock

from millrace import (
    ApiError,
    AsyncQueue,
    Call,
    ConnectionLost,
    PermanentError,
    Queue,
    RetryLater,
    TaskCancelled,
    TaskFailed,
    WaitTimeout,
    Worker,
    new_ulid,
)
from servers import servers

PULL = {"callback": {"protocol": "pull"}, "retry": {"initial_backoff_ms": 100, "max_attempts": 3}}


def setUpModule() -> None:
    global queue
    queue = Queue(servers().urls["queue"], servers().queue_token)
    queue.configure("py", PULL)


def tearDownModule() -> None:
    queue.close()


class Submit(unittest.TestCase):
    def test_a_task_is_stored_and_read_back(self) -> None:
        payload = {"to": "ada@example.com", "n": 1, "text": "Grüße"}
        task = queue.submit("py", "mail.send", payload, priority=7, delay=3600, group_key="g")
        self.assertEqual(task.status, "PENDING")
        read = queue.get(task.id)
        self.assertEqual(read.payload, payload)
        self.assertEqual(read.raw["priority"], 7)
        queue.cancel(task.id, "not needed")
        self.assertEqual(queue.get(task.id).raw["dead_reason"], "CANCELLED")

    def test_bytes_stay_bytes_and_no_payload_is_none(self) -> None:
        later = datetime.now(timezone.utc) + timedelta(hours=1)
        task = queue.submit("py", "raw", b"\x00\xff", run_at=later)
        self.assertEqual(queue.get(task.id).payload, b"\x00\xff")
        self.assertIsNone(queue.get(queue.submit("py", "raw", delay=60).id).payload)

    def test_the_same_id_is_one_task(self) -> None:
        task_id = new_ulid()
        for _ in range(2):
            self.assertEqual(queue.submit("py", "once", 1, id=task_id, delay=60).id, task_id)

    def test_many_are_split_and_refusals_are_results(self) -> None:
        results = queue.submit_many("py", "many", range(1201), delay=3600)
        self.assertEqual(len({task.id for task in results if not isinstance(task, ApiError)}), 1201)
        refused = queue.submit_many("py", "", [1])
        self.assertIsInstance(refused[0], ApiError)
        found = [task for task in queue.list("py", status="PENDING") if task.handler_ref == "many"]
        self.assertEqual(len(found), 1201)
        count = queue.cancel_many("py", filter={"handler_ref": "many"}, dry_run=True)
        self.assertEqual(count, 1201)

    def test_refusals_say_what_to_do(self) -> None:
        with self.assertRaises(ApiError) as caught:
            queue.submit("nowhere", "x")
        self.assertEqual((caught.exception.status, caught.exception.code), (404, "QUEUE_NOT_FOUND"))
        with self.assertRaises(TypeError):
            queue.submit("py", "x", prio=3)  # type: ignore[call-arg]
        with self.assertRaises(TypeError):
            queue.redrive("py")
        with self.assertRaises(ValueError):
            Queue("127.0.0.1:1")

    def test_a_server_that_is_away_is_named(self) -> None:
        with self.assertRaises(ConnectionLost) as caught:
            Queue("http://127.0.0.1:9", "t").stats("py")
        self.assertIn("127.0.0.1:9", str(caught.exception))

    def test_the_next_of_several_servers_is_used(self) -> None:
        both = Queue(["http://127.0.0.1:9", servers().urls["queue"]], servers().queue_token)
        self.assertIn("pending", both.stats("py"))

    def test_asyncio(self) -> None:
        async def run() -> None:
            async with AsyncQueue(servers().urls["queue"], servers().queue_token) as each:
                tasks = await asyncio.gather(*(each.submit("py", "a", n, delay=60) for n in range(20)))
                self.assertEqual(len({task.id for task in tasks}), 20)
                listed = [task async for task in each.list("py", handler_ref="a")]
                self.assertEqual(len(listed), 20)

        asyncio.run(run())

    def test_schedules(self) -> None:
        queue.put_schedule("py", "nightly", "report", {"x": 1}, cron="0 3 * * *", timezone="UTC")
        self.assertEqual(queue.schedule("py", "nightly")["cron"], "0 3 * * *")
        queue.pause_schedule("py", "nightly")
        self.assertTrue(next(queue.schedules("py"))["paused"])
        queue.delete_schedule("py", "nightly")
        self.assertEqual([*queue.schedules("py")], [])


class Work(unittest.TestCase):
    def worker(self, handlers: dict[str, Any], **options: Any) -> Worker:
        self.errors: list[BaseException] = []
        return Worker(queue, "py", handlers, on_error=self.errors.append, **options)

    def test_results_of_functions_and_coroutines(self) -> None:
        async def double(call: Call) -> Any:
            await asyncio.sleep(0.01)
            return call.payload * 2

        with self.worker({"add": lambda call: call.payload + 1, "double": double}):
            self.assertEqual(queue.submit_and_wait("py", "add", 41), 42)
            self.assertEqual(queue.submit_and_wait("py", "double", 21), 42)

    def test_failures_are_retried_and_permanent_ones_are_not(self) -> None:
        attempts: list[int] = []

        def flaky(call: Call) -> str:
            attempts.append(call.task.attempt)
            if call.task.attempt < 3:
                raise RetryLater(0.01)
            return "at last"

        def broken(call: Call) -> None:
            raise PermanentError("no such address")

        with self.worker({"flaky": flaky, "broken": broken}):
            self.assertEqual(queue.submit_and_wait("py", "flaky"), "at last")
            with self.assertRaises(TaskFailed) as caught:
                queue.submit_and_wait("py", "broken")
        self.assertEqual(attempts, [1, 2, 3])
        self.assertEqual(caught.exception.error_type, "PermanentError")
        [dead] = queue.dead("py", handler_ref="broken")
        self.assertIn("no such address", dead.raw["last_error"]["message"])
        self.assertEqual(queue.redrive("py", ids=[dead.id]), 1)
        with self.worker({"broken": lambda call: "mended"}):
            self.assertEqual(queue.wait(dead.id), "mended")

    def test_a_cancel_reaches_the_handler(self) -> None:
        started, stopped = threading.Event(), threading.Event()

        def slow(call: Call) -> None:
            started.set()
            try:
                call.wait(60)
            except TaskCancelled:
                stopped.set()
                raise

        # The lease is not extended before the test ends.
        with self.worker({"slow": slow}, lease=180):
            task = queue.submit("py", "slow")
            self.assertTrue(started.wait(30))
            queue.cancel(task.id)
            self.assertTrue(stopped.wait(30))
        self.assertEqual(queue.get(task.id).raw["dead_reason"], "CANCELLED")

    def test_leases_are_extended_and_progress_is_seen(self) -> None:
        extended = threading.Event()
        call_server = queue.api.call

        def spy(method: str, path: str, body: Any = None, **more: Any) -> Any:
            answer = call_server(method, path, body, **more)
            if path.endswith(":extend") and "progress" not in body:
                extended.set()
            return answer

        def long(call: Call) -> int:
            call.progress(50, "half")
            return call.task.attempt if extended.wait(60) else 0

        with mock.patch.object(queue.api, "call", spy), self.worker({"long": long}, lease=9.0):
            task = queue.submit("py", "long")
            self.assertEqual(queue.wait(task.id), 1)
        self.assertEqual(queue.get(task.id).raw["progress"]["message"], "half")

    def test_stop_ends_a_claim_that_waits(self) -> None:
        worker = self.worker({"nothing": print}).start()
        worker.stop()
        threads = [thread.name for thread in threading.enumerate()]
        self.assertEqual([name for name in threads if name.startswith(worker.name)], [])
        self.assertEqual(self.errors, [])

    def test_stop_waits_for_what_runs_and_hands_back_the_rest(self) -> None:
        begun = threading.Event()

        def patient(call: Call) -> str:
            begun.set()
            time.sleep(0.5)
            return "done"

        def stubborn(call: Call) -> str:
            begun.set()
            call.wait(60)
            return "never"

        worker = self.worker({"patient": patient}).start()
        task = queue.submit("py", "patient")
        self.assertTrue(begun.wait(30))
        worker.stop()
        self.assertEqual(queue.get(task.id).result, "done")
        begun.clear()
        worker = self.worker({"stubborn": stubborn}).start()
        task = queue.submit("py", "stubborn")
        self.assertTrue(begun.wait(30))
        worker.stop(timeout=0.1)
        self.assertEqual(queue.get(task.id).status, "PENDING")
        queue.cancel(task.id)

    def test_waiting_ends_in_time(self) -> None:
        with self.assertRaises(WaitTimeout):
            queue.submit_and_wait("py", "nobody", timeout=0.2)

    def test_a_worker_needs_handlers(self) -> None:
        with self.assertRaises(ValueError):
            self.worker({})


if __name__ == "__main__":
    unittest.main()
