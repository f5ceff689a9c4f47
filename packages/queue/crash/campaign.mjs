/**
 * Kills pull workers and their queue server with -9 under load, again and again, and judges the
 * end: every accepted task ran and succeeded once, and no lost lease settled anything.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { seededRandom } from '@millrace/kit/random';
import { checkFencing, checkTask } from './judge.mjs';
import { startQueueServer, startWorkerProcess, token, writeSettings } from './processes.mjs';

const workerCount = 3;
const startsPerRound = 150;
const maxPending = 400;
/** Without a start for so long, something is stuck. */
const stuckMs = 60_000;
const drainMs = 120_000;

/** Runs the rounds; throws an error that says how to repeat them. */
export async function campaign({ rounds, seed, storage = 'embedded', say = () => undefined }) {
  const home = mkdtempSync(join(tmpdir(), 'millrace-queue-crash-'));
  const run = new Campaign(seed, say);
  let keep = false;
  try {
    await run.begin(home, storage);
    for (let round = 0; round < rounds; round++) await run.round(round);
    await run.finish();
    return run.tally;
  } catch (error) {
    keep = true;
    throw new Error(`${error.message}\nseed ${seed}, files kept in ${home}`, { cause: error });
  } finally {
    await run.end();
    if (!keep) rmSync(home, { recursive: true, force: true });
  }
}

class Campaign {
  tally = {
    rounds: 0,
    serverKills: 0,
    workerKills: 0,
    tasks: 0,
    starts: 0,
    repeated: 0,
    fenced: 0,
  };
  #accepted = new Set();
  /** Starts by task, in the order in which they were reported. */
  #starts = new Map();
  #startCount = 0;
  #workers = [];
  #names = 0;
  #isSubmitting = true;
  #submitter = Promise.resolve();

  constructor(seed, say) {
    this.random = seededRandom(seed);
    this.say = say;
  }

  async begin(home, storage) {
    const { file, url } = await writeSettings(home, storage);
    this.file = file;
    this.url = url;
    this.server = await startQueueServer(file);
    const retry = { initial_backoff_ms: 10, max_backoff_ms: 10, max_attempts: 1_000 };
    const config = { callback: { protocol: 'pull' }, retry, limits: { max_in_flight: 1_000 } };
    await this.#ask('PUT', '/v1/admin/queues/crash/config', config);
    for (let i = 0; i < workerCount; i++) this.#startWorker(i);
    this.#submitter = this.#submitAll();
    // Its failure is reported by the round that waits for tasks.
    this.#submitter.catch((error) => (this.failure = error));
  }

  /** Kills after a number of starts, not after a time: a kill without work would prove nothing. */
  async round(round) {
    await this.#untilStarts(this.#startCount + this.random.integer(20, startsPerRound));
    await systemClock.sleep(this.random.integer(0, 20));
    const victims = this.random.integer(1, 3);
    const isServer = (victims & 1) === 1;
    const index = this.random.integer(0, workerCount - 1);
    const kills = [];
    if (isServer) kills.push(this.server.kill());
    if ((victims & 2) === 2) kills.push(this.#workers[index].kill());
    await Promise.all(kills);
    if (isServer) {
      this.tally.serverKills++;
      this.server = await startQueueServer(this.file);
    }
    if ((victims & 2) === 2) {
      this.tally.workerKills++;
      this.#startWorker(index);
    }
    this.tally.rounds++;
    this.say(`round ${round}: ${this.#accepted.size} tasks, ${this.#startCount} starts`);
  }

  async finish() {
    this.#isSubmitting = false;
    await this.#submitter;
    await this.#until(drainMs, 'the queue is empty', async () => {
      const { pending, in_flight } = await this.#ask('GET', '/v1/queues/crash/stats');
      return pending + in_flight === 0;
    });
    for (const worker of this.#workers) await worker.kill();
    const settle = (id, leaseToken) => this.#settle(id, leaseToken);
    for (const id of this.#accepted) {
      const task = await this.#ask('GET', `/v1/tasks/${id}`);
      const starts = this.#starts.get(id) ?? [];
      checkTask(task, starts);
      if (starts.length > 1) this.tally.repeated++;
      this.tally.fenced += await checkFencing(task, starts, settle);
    }
    this.tally.tasks = this.#accepted.size;
    this.tally.starts = this.#startCount;
  }

  async end() {
    this.#isSubmitting = false;
    for (const worker of this.#workers) await worker.kill();
    await this.server?.kill();
    await this.#submitter.catch(() => undefined);
  }

  #startWorker(index) {
    const name = `worker-${++this.#names}`;
    this.#workers[index] = startWorkerProcess(this.url, name, (start) => {
      this.#startCount++;
      const starts = this.#starts.get(start.id) ?? [];
      starts.push({ ...start, worker: name });
      this.#starts.set(start.id, starts);
    });
  }

  async #submitAll() {
    while (this.#isSubmitting) {
      if (this.#accepted.size - this.#starts.size > maxPending) {
        await systemClock.sleep(5);
        continue;
      }
      const tasks = Array.from({ length: this.random.integer(1, 20) }, () => ({
        handler_ref: 'work',
        id: this.random.ulid(systemClock.now()),
      }));
      await this.#submit(tasks);
    }
  }

  /** A batch without an answer is sent again: its ids make that safe. */
  async #submit(tasks) {
    for (;;) {
      try {
        const results = await this.#ask('POST', '/v1/queues/crash/tasks:batch', tasks);
        for (const { status, envelope } of results) {
          if (status === 202) this.#accepted.add(envelope.id);
        }
        return;
      } catch (error) {
        if (error instanceof Answered) throw error;
        if (!this.#isSubmitting) return;
        await systemClock.sleep(20);
      }
    }
  }

  async #untilStarts(count) {
    let before = this.#startCount;
    let seenAt = systemClock.monotonic();
    while (this.#startCount < count) {
      if (this.failure) throw this.failure;
      const now = systemClock.monotonic();
      if (this.#startCount > before) [before, seenAt] = [this.#startCount, now];
      if (now - seenAt > stuckMs) throw new Error(`no task started for ${stuckMs} ms`);
      await systemClock.sleep(5);
    }
  }

  async #until(timeoutMs, what, isTrue) {
    const endsAt = systemClock.monotonic() + timeoutMs;
    while (!(await isTrue())) {
      if (systemClock.monotonic() > endsAt) throw new Error(`not within ${timeoutMs} ms: ${what}`);
      await systemClock.sleep(100);
    }
  }

  async #settle(id, leaseToken) {
    const answer = await this.#send('POST', `/v1/tasks/${id}:complete`, {}, leaseToken);
    return answer.status;
  }

  async #ask(method, path, body) {
    const answer = await this.#send(method, path, body);
    const text = await answer.text();
    if (!answer.ok) throw new Answered(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  #send(method, path, body, leaseToken) {
    return fetch(`${this.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(leaseToken && { 'x-queue-lease-token': leaseToken }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
  }
}

/** The server answered, so it is not a matter of a kill. */
class Answered extends Error {}
