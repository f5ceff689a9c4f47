"""Celery and RQ on one Redis, as a user would set them up; see bench/sdks.mjs."""

import os
import subprocess
import sys
import time

from celery import Celery
from redis import Redis
from rq import Queue, SimpleWorker

REDIS = os.environ["BENCH_REDIS"]
COUNT = int(os.environ["BENCH_COUNT"])
app = Celery("peers", broker=REDIS, backend=REDIS)
app.conf.task_acks_late = True  # at least once, as the others


def add(n):
    return n + 1


celery_add = app.task(name="add")(add)


def work_celery(connection):
    """Its default: processes, one for each core. Each result is a key of Redis."""
    before = connection.dbsize()
    command = [sys.executable, "-m", "celery", "-A", "peers", "worker", "--loglevel", "ERROR"]
    worker = subprocess.Popen([*command, "--concurrency", "2"], stdout=subprocess.DEVNULL)
    while connection.dbsize() < before + COUNT:
        time.sleep(0.02)
    worker.terminate()
    worker.wait()


if __name__ == "__main__":
    kind, action = sys.argv[1:]
    connection = Redis.from_url(REDIS)
    queue = Queue("bench", connection=connection)
    if kind == "celery" and action == "submit":
        for n in range(COUNT):
            celery_add.delay(n)
    elif kind == "celery":
        work_celery(connection)
    elif action == "submit":
        for n in range(COUNT):
            queue.enqueue("peers.add", n)
    else:
        # SimpleWorker runs tasks in its own process; the default one forks for each.
        SimpleWorker([queue], connection=connection).work(burst=True, logging_level="ERROR")
