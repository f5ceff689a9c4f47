/**
 * Kills producers, pull workers and their queue servers with -9 under load, again and again, and judges the
 * end: every accepted task ran and succeeded once, and no lost lease settled anything.
 */
import { systemClock } from '@millrace/kit/clock';
import { seededRandom } from '@millrace/kit/random';
import { checkFencing, checkTask } from './judge.mjs';
import {
  queueConfig,
  runCampaign,
  startProducerProcess,
  startQueueServer,
  startServers,
  startWorkerProcess,
  token,
} from './processes.mjs';

const workerCount = 3;
const startsPerRound = 150;
const maxPending = 400;
/** Without a start for so long, something is stuck. */
const stuckMs = 60_000;
const drainMs = 120_000;
const retryMs = 50;
/** Tasks that are judged at the same time. */
const judgeCount = 8;

export function campaign({ seed, say = () => undefined, ...options }) {
  return runCampaign(new Campaign(seed, say), { seed, ...options });
}

class Campaign {
  tally = {
    rounds: 0,
    serverKills: 0,
    workerKills: 0,
    producerKills: 0,
    tasks: 0,
    starts: 0,
    repeated: 0,
    fenced: 0,
    /** Refused while the task ran under its next lease. */
    fencedInFlight: 0,
  };
  #servers = [];
  #fencing = new Set();
  #accepted = new Set();
  /** Starts by task, in the order in which they were reported. */
  #starts = new Map();
  #startCount = 0;
  #workers = [];
  #producer;
  #names = 0;
  #isSubmitting = true;
  #submitter = Promise.resolve();

  constructor(seed, say) {
    this.random = seededRandom(seed);
    this.say = say;
  }

  async begin(home, store) {
    await startServers(this, home, store, this.#servers);
    await this.#ask('PUT', '/v1/admin/queues/crash/config', queueConfig);
    for (let i = 0; i < workerCount; i++) this.#startWorker(i);
    this.#startProducer();
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
    const killed = isServer ? this.#someServers() : [];
    const kills = killed.map((server) => server.process.kill());
    if ((victims & 2) === 2) kills.push(this.#workers[index].kill());
    const isProducer = this.random.integer(0, 1) === 1;
    if (isProducer) kills.push(this.#producer.kill());
    await Promise.all(kills);
    if (isProducer) {
      this.tally.producerKills++;
      this.#startProducer();
    }
    this.tally.serverKills += killed.length;
    for (const server of killed) server.process = await startQueueServer(server.file);
    if ((victims & 2) === 2) {
      this.tally.workerKills++;
      this.#startWorker(index);
    }
    this.tally.rounds++;
    this.say(`round ${round}: ${this.#accepted.size} tasks, ${this.#startCount} starts`);
  }

  async finish() {
    this.#isSubmitting = false;
    await this.#producer.kill();
    await this.#submitter;
    await this.#until(drainMs, 'the queue is empty', async () => {
      const { pending, in_flight } = await this.#ask('GET', '/v1/queues/crash/stats');
      return pending + in_flight === 0;
    });
    for (const worker of this.#workers) await worker.kill();
    await Promise.all(this.#fencing);
    if (this.failure) throw this.failure;
    const left = this.#accepted.values();
    const judge = async () => {
      for (const id of left) await this.#judge(id);
    };
    await Promise.all(Array.from({ length: judgeCount }, judge));
    this.tally.tasks = this.#accepted.size;
    this.tally.starts = this.#startCount;
  }

  async end() {
    this.#isSubmitting = false;
    await this.#producer?.kill();
    for (const worker of this.#workers) await worker.kill();
    for (const server of this.#servers) await server.process.kill();
    await this.#submitter.catch(() => undefined);
    await Promise.all(this.#fencing);
    await this.postgres?.remove();
  }

  /** One server or several. */
  #someServers() {
    const bits = this.random.integer(1, 2 ** this.#servers.length - 1);
    return this.#servers.filter((_, i) => (bits >> i) & 1);
  }

  async #judge(id) {
    const task = await this.#ask('GET', `/v1/tasks/${id}`);
    const starts = this.#starts.get(id) ?? [];
    checkTask(task, starts);
    if (starts.length > 1) this.tally.repeated++;
    for (const { url } of this.#servers) {
      const settle = (_id, leaseToken) => this.#settle(url, id, leaseToken);
      const refused = await checkFencing(task, starts, settle);
      this.tally.fenced += refused;
    }
  }

  /** Settles a task that runs again with its lost lease, by every server; each must refuse. */
  #fence(id, leaseToken) {
    const act = async () => {
      for (const { url } of this.#servers) {
        // A server that is down accepts nothing.
        const status = await this.#settle(url, id, leaseToken).catch(() => undefined);
        if (status === 409) this.tally.fencedInFlight++;
        if (status === 200) this.failure ??= new Error(`task ${id}: a lost lease settled it`);
      }
    };
    const fencing = act().finally(() => this.#fencing.delete(fencing));
    this.#fencing.add(fencing);
  }

  #startProducer() {
    const urls = this.#servers.map(({ url }) => url);
    this.#producer = startProducerProcess(urls, (ids) => {
      for (const id of ids) this.#accepted.add(id);
    });
  }

  #startWorker(index) {
    const name = `worker-${++this.#names}`;
    const { url } = this.#servers[index % this.#servers.length];
    this.#workers[index] = startWorkerProcess(url, name, (start) => {
      this.#startCount++;
      const starts = this.#starts.get(start.id) ?? [];
      for (const { leaseToken } of starts) this.#fence(start.id, leaseToken);
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

  async #settle(url, id, leaseToken) {
    const path = `/v1/tasks/${id}:complete`;
    const answer = await this.#send({ url, method: 'POST', path, body: {}, leaseToken });
    await answer.text();
    return answer.status;
  }

  async #ask(method, path, body) {
    const { url } = this.#servers[this.random.integer(0, this.#servers.length - 1)];
    const answer = await this.#send({ url, method, path, body });
    const text = await answer.text();
    if (!answer.ok) throw new Answered(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  /** 503: PostgreSQL did not answer in time, on a busy machine. Every call can be repeated. */
  async #send({ url, method, path, body, leaseToken }) {
    const endsAt = systemClock.monotonic() + stuckMs;
    for (;;) {
      const answer = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          ...(leaseToken && { 'x-queue-lease-token': leaseToken }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (answer.status !== 503 || systemClock.monotonic() > endsAt) return answer;
      await answer.text();
      await systemClock.sleep(retryMs);
    }
  }
}

/** The server answered, so it is not a matter of a kill. */
class Answered extends Error {}
