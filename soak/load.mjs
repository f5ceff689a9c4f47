/** What is done to the system all the time, and what each thing must come to in the end. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createDaemonClient, createQueueApi } from '../packages/client/dist/index.js';
import { backend } from './system.mjs';

const queue = 'soak';

/** Answers as the payload says: `ok`, `flaky` fails the first time, `bad` is refused for good. */
export async function startHandler() {
  const seen = new Map();
  const statusOf = (id, payload) => {
    const times = (seen.get(id) ?? 0) + 1;
    seen.set(id, times);
    if (payload === 'bad') return 422;
    return payload === 'flaky' && times === 1 ? 500 : 200;
  };
  const server = createServer((request, response) => {
    let payload = '';
    request.on('data', (chunk) => (payload += chunk));
    request.on('end', () => {
      response.writeHead(statusOf(request.headers['x-queue-task-id'], payload)).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: server.address().port, stop: () => server.close() };
}

export class Load {
  #over = new AbortController();
  /** How long each kind of call took since it was last asked, in ms. */
  waits = new Map();
  /** Calls that failed while a server was away; they were made again. */
  missed = 0;
  #tasks = new Map();
  #records = new Map();
  #sessions = 0;

  constructor(system, handler) {
    this.system = system;
    this.handler = handler;
    this.queue = createQueueApi({ url: system.url('queue'), token: system.token });
    this.daemon = createDaemonClient({ url: system.url('daemon'), token: system.daemonToken });
  }

  async prepare() {
    const callback = { url: `http://127.0.0.1:${this.handler.port}/`, timeout_ms: 5_000 };
    const body = { callback, retry: { initial_backoff_ms: 100 }, lease: { grace_ms: 1_000 } };
    await this.queue.call('putQueueConfig', { path: { queue }, body });
  }

  async run() {
    await Promise.all([
      this.#every(40, () => this.#submit()),
      this.#every(40, () => this.#write()),
      this.#every(200, () => this.#find()),
      this.#every(200, () => this.#look()),
      this.#every(5_000, () => this.#spawn()),
      this.#every(20_000, () => this.#submitAgent()),
    ]);
  }

  /** Begins nothing new; `run` comes back when what is under way is done. */
  end() {
    this.#over.abort();
  }

  /** Does it at this pace, again and again until it succeeds. */
  async #every(ms, act) {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const started = performance.now();
      try {
        await act();
      } catch (error) {
        if (error.status !== undefined && error.status < 500 && error.status !== 429) throw error;
        this.missed++;
      }
      const restMs = Math.max(1, ms - (performance.now() - started));
      await sleep(restMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #timed(kind, act) {
    const started = performance.now();
    const result = await act();
    const list = this.waits.get(kind) ?? [];
    list.push(performance.now() - started);
    this.waits.set(kind, list);
    return result;
  }

  async #submit() {
    const kind = ['ok', 'ok', 'ok', 'flaky', 'bad'][Math.floor(Math.random() * 5)];
    const task = { handler_ref: 'soak', payload: btoa(kind), payload_content_type: 'text/plain' };
    const { id } = await this.#timed('submit a task', () =>
      this.queue.submit(queue, task, { attempts: 30 }),
    );
    this.#tasks.set(id, kind === 'bad' ? 'DEAD' : 'SUCCEEDED');
  }

  async #submitAgent() {
    const request = { prompt: 'say the wheel turns', backend, cwd: `${this.system.folder}/work` };
    const payload = btoa(JSON.stringify(request));
    const task = { handler_ref: 'agent', payload, payload_content_type: 'application/json' };
    const { id } = await this.queue.submit('agents', task, { attempts: 30 });
    this.#tasks.set(id, 'SUCCEEDED');
  }

  async #write() {
    const key = `k${Math.floor(Math.random() * 5_000)}`;
    const data = { n: Math.floor(Math.random() * 1_000), note: 'x'.repeat(200) };
    // Until the answer is here nobody can say which of the two values it has.
    this.#records.delete(key);
    await this.#timed('write a record', () =>
      this.#database(`/v1/soak/keys/${key}:upsert`, { data }),
    );
    this.#records.set(key, data.n);
  }

  async #find() {
    const filter = { field: 'n', op: 'gt', value: 990 };
    await this.#timed('find records', () =>
      this.#database('/v1/soak/records:find', { filter, limit: 50 }),
    );
  }

  async #look() {
    await this.#timed('list sessions', () => this.daemon.call('listSessions', {}));
  }

  async #spawn() {
    const body = {
      prompt: 'sleep 1, then say the wheel turns',
      backend,
      cwd: `${this.system.folder}/work`,
      driver: 'headless',
    };
    await this.#timed('spawn an agent', () => this.daemon.call('spawnSession', { body }));
    this.#sessions++;
    await this.#tidy();
  }

  /** Sessions that ended are deleted, as people do. */
  async #tidy() {
    const { sessions } = await this.daemon.call('listSessions', {});
    for (const { id, status } of sessions.slice(20)) {
      if (!['done', 'errored', 'orphaned'].includes(status)) continue;
      await this.daemon.call('deleteSession', { path: { id } });
    }
  }

  #owner() {
    return { authorization: `Bearer ${this.system.dbKey}` };
  }

  async #database(path, body) {
    const answer = await fetch(`${this.system.url('db')}${path}`, {
      method: 'POST',
      headers: { ...this.#owner(), 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (answer.ok) return text;
    throw Object.assign(new Error(`${path}: ${answer.status} ${text}`), { status: answer.status });
  }

  /** Resolves when every server is ready: the last kill may fall on the end of the run. */
  async untilReady() {
    const deadline = performance.now() + 60_000;
    for (const [name, path] of [
      ['queue', '/readyz'],
      ['daemon', '/healthz'],
      ['db', '/readyz'],
    ]) {
      for (let problem = 'not called yet'; problem !== '';) {
        if (performance.now() > deadline) throw new Error(`the ${name} is not ready: ${problem}`);
        problem = await fetch(`${this.system.url(name)}${path}`).then(
          ({ ok, status }) => (ok ? '' : `status ${status}`),
          (error) => error.cause?.code ?? error.message,
        );
        if (problem !== '') await sleep(200);
      }
    }
  }

  /** What is not as it must be when the load has ended. */
  async faults() {
    const faults = [];
    await this.untilReady();
    const deadline = performance.now() + 180_000;
    for (const name of [queue, 'agents']) {
      let left = 1;
      while (left > 0 && performance.now() < deadline) {
        const stats = await this.queue.call('getStats', { path: { queue: name } });
        left = stats.pending + stats.in_flight;
        if (left > 0) await sleep(500);
      }
      if (left > 0) faults.push(`${left} tasks of ${name} did not come to an end`);
    }
    for (const [id, wanted] of this.#tasks) {
      const { status } = await this.queue.call('getTask', { path: { id } });
      if (status !== wanted) faults.push(`task ${id} is ${status}, not ${wanted}`);
    }
    for (const [key, n] of this.#records) {
      const answer = await fetch(`${this.system.url('db')}/v1/soak/keys/${key}`, {
        headers: this.#owner(),
      });
      const { record } = await answer.json();
      if (record?.data?.n !== n) faults.push(`record ${key} is ${record?.data?.n}, not ${n}`);
    }
    return faults;
  }

  counts() {
    return { tasks: this.#tasks.size, records: this.#records.size, sessions: this.#sessions };
  }
}
