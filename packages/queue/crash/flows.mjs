/**
 * Kills workers of flows, their queue servers and PostgreSQL with -9, and judges the end: every flow
 * ended with what its steps recorded first, read its signal once, has each child once, and its
 * dependent ran after it.
 */
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '@millrace/kit/clock';
import { seededRandom } from '@millrace/kit/random';
import {
  flowProgram,
  queueConfig,
  runCampaign,
  startQueueServer,
  startServers,
  startWorkerProcess,
  token,
} from './processes.mjs';

const workerCount = 2;
const flowsPerRound = 12;
const maxWaitMs = 120_000;

export function campaign({ seed, say = () => undefined, ...options }) {
  return runCampaign(new FlowCampaign(seed, say), { seed, ...options });
}

class FlowCampaign {
  tally = {
    rounds: 0,
    serverKills: 0,
    workerKills: 0,
    databaseKills: 0,
    flows: 0,
    /** Functions of steps that ran, and how often one did again. */
    steps: 0,
    repeated: 0,
  };
  #servers = [];
  #workers = [];
  /** By flow: the ids of its tasks, by their keys. */
  #flows = [];
  #ran = new Set();
  #names = 0;

  constructor(seed, say) {
    this.random = seededRandom(seed);
    this.say = say;
  }

  async begin(home, store) {
    await startServers(this, home, store, this.#servers);
    await this.#ask('PUT', '/v1/admin/queues/crash/config', queueConfig);
    for (let i = 0; i < workerCount; i++) this.#startWorker(i);
  }

  /** Submits flows and their signals while something is killed. */
  async round(round) {
    const submitting = Array.from({ length: flowsPerRound }, () => this.#submit());
    await systemClock.sleep(this.random.integer(0, 400));
    const kinds = this.postgres
      ? ['server', 'worker', 'both', 'database']
      : ['server', 'worker', 'both'];
    const kind = kinds[this.random.integer(0, kinds.length - 1)];
    const kills = [];
    if (kind === 'database') kills.push(this.#crashDatabase());
    if (kind === 'server' || kind === 'both') kills.push(this.#restartServer());
    if (kind === 'worker' || kind === 'both') kills.push(this.#restartWorker());
    await Promise.all([...kills, ...submitting]);
    this.tally.rounds++;
    this.say(`round ${round}: ${this.tally.flows} flows, ${this.tally.steps} steps run`);
  }

  async finish() {
    const endsAt = systemClock.monotonic() + maxWaitMs;
    for (;;) {
      const { pending, in_flight, blocked, suspended } = await this.#ask(
        'GET',
        '/v1/queues/crash/stats',
      );
      if (pending + in_flight === 0) break;
      if (systemClock.monotonic() > endsAt) {
        const left = { pending, in_flight, blocked, suspended };
        throw new Error(`flows are stuck: ${JSON.stringify(left)}`);
      }
      await systemClock.sleep(100);
    }
    for (const flow of this.#flows) await this.#judge(flow);
  }

  async end() {
    for (const worker of this.#workers) await worker.kill();
    for (const server of this.#servers) await server.process.kill();
    await this.postgres?.remove();
  }

  async #judge({ flow, dependent, payload }) {
    const must = (isTrue, what) => {
      if (!isTrue) throw new Error(`flow ${flow}: ${what}`);
    };
    const task = await this.#ask('GET', `/v1/tasks/${flow}`);
    must(task.status === 'SUCCEEDED', `is ${task.status}: ${JSON.stringify(task.last_error)}`);
    const run = await this.#ask('GET', `/v1/tasks/${flow}/run`);
    const steps = new Map(run.steps.map(({ name, result }) => [name, result]));
    must(steps.size === run.steps.length, 'has a step twice');
    const { first, answer, many, last } = task.result;
    must(
      first === steps.get('first') && last === steps.get('last'),
      'did not use what is recorded',
    );
    must(isDeepStrictEqual(answer, payload), `read the signal ${JSON.stringify(answer)}`);
    must(isDeepStrictEqual(many, [2, 4, 6]), `has the results ${JSON.stringify(many)}`);
    must(run.signals.length === 0, 'left a signal unread');
    const { root } = await this.#ask('GET', `/v1/tasks/${flow}/tree`);
    const ends = root.children.map(({ status }) => status);
    must(isDeepStrictEqual(ends, Array(3).fill('SUCCEEDED')), `has the children ${ends}`);
    const after = await this.#ask('GET', `/v1/tasks/${dependent}`);
    must(after.status === 'SUCCEEDED', `has a dependent that is ${after.status}`);
    const seen = [{ status: 'SUCCEEDED', result: task.result }];
    must(isDeepStrictEqual(after.result, seen), 'its dependent started early');
  }

  async #submit() {
    const flowId = this.random.ulid(systemClock.now());
    const tasks = [
      { key: 'dependent', queue: 'crash', handler_ref: 'dependent', depends_on: ['flow'] },
      { key: 'flow', queue: 'crash', handler_ref: 'flow' },
    ];
    const payload = { n: this.random.integer(0, 1_000_000) };
    const waitMs = this.random.integer(0, 300);
    const stored = await this.#ask('POST', '/v1/flows', { flow_id: flowId, tasks });
    const [dependent, flow] = stored.tasks.map(({ id }) => id);
    this.#flows.push({ flow, dependent, payload });
    this.tally.flows++;
    await systemClock.sleep(waitMs);
    // Twice, of which one counts.
    for (const _ of [1, 2]) {
      await this.#ask('POST', `/v1/tasks/${flow}/signals`, { name: 'go', payload, id: 'go' });
    }
  }

  async #crashDatabase() {
    this.tally.databaseKills++;
    await this.postgres.crash();
  }

  async #restartServer() {
    const server = this.#servers[this.random.integer(0, this.#servers.length - 1)];
    await server.process.kill();
    this.tally.serverKills++;
    server.process = await startQueueServer(server.file);
  }

  async #restartWorker() {
    const index = this.random.integer(0, workerCount - 1);
    await this.#workers[index].kill();
    this.tally.workerKills++;
    this.#startWorker(index);
  }

  #startWorker(index) {
    const { url } = this.#servers[index % this.#servers.length];
    const onStep = ({ id, step }) => {
      this.tally.steps++;
      if (this.#ran.has(`${id} ${step}`)) this.tally.repeated++;
      this.#ran.add(`${id} ${step}`);
    };
    this.#workers[index] = startWorkerProcess(url, `flows-${++this.#names}`, onStep, flowProgram);
  }

  /** Every call can be repeated: by its ids, or because it only reads. */
  async #ask(method, path, body) {
    const endsAt = systemClock.monotonic() + maxWaitMs;
    for (;;) {
      const { url } = this.#servers[this.random.integer(0, this.#servers.length - 1)];
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const request = { method, headers, ...(body && { body: JSON.stringify(body) }) };
      try {
        const answer = await fetch(`${url}${path}`, request);
        const text = await answer.text();
        if (answer.ok) return JSON.parse(text);
        // The first of two signals may have ended the flow by now.
        if (path.endsWith('/signals') && answer.status === 409) return undefined;
        if (answer.status < 500) throw new Answered(`${method} ${path}: ${answer.status} ${text}`);
      } catch (error) {
        if (error instanceof Answered || systemClock.monotonic() > endsAt) throw error;
      }
      await systemClock.sleep(50);
    }
  }
}

/** A refusal, which is not a matter of a kill. */
class Answered extends Error {}
