"""Works off a queue with the Python SDK; see bench/sdks.mjs."""

import os
import sys
import threading

sys.path.insert(0, os.environ["MILLRACE_SDK"])
from millrace import Queue, Worker  # noqa: E402

queue = Queue(os.environ["MILLRACE_URL"], os.environ["MILLRACE_TOKEN"])
name, count = os.environ["BENCH_QUEUE"], int(os.environ["BENCH_COUNT"])
if sys.argv[1] == "submit":
    queue.submit_many(name, "add", range(count))
else:
    left, done, lock = count, threading.Event(), threading.Lock()

    def add(call):
        global left
        with lock:
            left -= 1
            if left == 0:
                done.set()
        return call.payload + 1

    with Worker(queue, name, {"add": add}, concurrency=32):
        done.wait()
