import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const ulid = (index: number) => `01JD3Z8Q4M7X2N5V9RTBKW${String(index).padStart(4, '0')}`;
const at = (ms: number) => new Date(ms).toISOString();

/** The operations that a server of this version has beyond 0.1.0. */
const document = `openapi: 3.1.0
paths:
  /v1/queues/{queue}/tasks:
    get:
    post:
  /v1/queues/{queue}/tasks:count:
    get:
  /v1/queues/{queue}/tasks:cancel:
    post:
  /v1/tasks/{id}:
    get:
    patch:
  /v1/tasks/{id}:cancel:
    post:
  /v1/tasks/{id}:run-now:
    post:
  /v1/queues/{queue}/workers:
    get:
  /v1/queues/{queue}/schedules:
    get:
  /v1/queues/{queue}/schedules/{name}:
    put:
    delete:
  /v1/queues/{queue}/jobs:
    get:
  /v1/jobs/{id}:cancel:
    post:
  /v1/queues/{queue}/metrics:
    get:
components: {}
`;

type Json = any;

/** Stands in for a queue server with task lists, schedules, workers, jobs and history. */
export class FakeQueue {
  readonly calls: string[] = [];
  tasks: Json[] = [];
  schedules = new Map<string, Json>();
  jobs: Json[] = [];
  #server: Server = createServer((request, response) => {
    void this.#answer(request).then(([status, body]) => {
      const isText = typeof body === 'string';
      response.writeHead(status, {
        'content-type': isText ? 'application/yaml' : 'application/json',
      });
      response.end(isText ? body : JSON.stringify(body));
    });
  });

  constructor(private readonly now: number) {}

  async start(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  addTask(index: number, more: object = {}): void {
    this.tasks.push({
      id: ulid(index),
      queue: 'mail',
      handler_ref: 'mail.send',
      status: 'PENDING',
      payload_content_type: 'application/json',
      payload: Buffer.from('{"to":"Ada"}').toString('base64'),
      headers: {},
      priority: 4,
      group_key: null,
      attempt: 0,
      total_attempts: 0,
      max_attempts: 5,
      redrive_count: 0,
      created_at: at(this.now - index * 1000),
      updated_at: at(this.now),
      next_attempt_at: at(this.now + 3_600_000),
      expires_at: null,
      lease_expires_at: null,
      completed_at: null,
      dead_at: null,
      dead_reason: null,
      last_error: null,
      submitted_by: 'root',
      attempts: [],
      ...more,
    });
  }

  task(index: number): Json {
    return this.tasks.find(({ id }) => id === ulid(index));
  }

  async #answer(request: IncomingMessage): Promise<[number, unknown]> {
    const url = new URL(request.url!, 'http://localhost');
    const call = `${request.method} ${url.pathname}`;
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const body: Json = text === '' ? undefined : JSON.parse(text);
    if (request.method !== 'GET') this.calls.push(`${call} ${text}`);
    if (call === 'GET /readyz') return [200, { status: 'ok' }];
    if (call === 'GET /openapi.yaml') return [200, document];
    if (call === 'GET /v1/admin/queues') return [200, [this.#queue()]];
    if (call === 'GET /v1/admin/queues/mail/config') return [200, this.#config()];
    return (
      this.#onTasks(call, url, body) ??
      this.#onTask(call, body) ??
      this.#onOthers(call, body) ?? [404, { code: 'NOT_FOUND', detail: call }]
    );
  }

  #onTasks(call: string, url: URL, body: Json): [number, unknown] | undefined {
    const wanted = url.searchParams.getAll('status');
    const handler = url.searchParams.get('handler_ref');
    const found = this.tasks.filter(
      ({ status, handler_ref }) =>
        wanted.includes(status) && (handler === null || handler_ref === handler),
    );
    if (call === 'GET /v1/queues/mail/tasks:count') {
      return [200, { count: found.length, is_estimate: false }];
    }
    if (call === 'GET /v1/queues/mail/tasks') {
      const start = Number(url.searchParams.get('cursor') ?? 0);
      const limit = Number(url.searchParams.get('limit'));
      const rows = found
        .slice(start, start + limit)
        .map(({ payload: _payload, attempts: _attempts, ...row }) => row);
      const next = start + limit < found.length ? String(start + limit) : null;
      return [200, { tasks: rows, next_cursor: next }];
    }
    if (call === 'POST /v1/queues/mail/tasks:cancel') {
      const ids = this.tasks.filter(({ id, status }) =>
        body.ids ? body.ids.includes(id) : status === 'PENDING',
      );
      if (!body.dry_run) for (const task of ids) this.#cancel(task, 'bulk');
      return [200, { count: ids.length }];
    }
    return undefined;
  }

  #onTask(call: string, body: Json): [number, unknown] | undefined {
    const found = /^(GET|PATCH|POST) \/v1\/tasks\/(\w+)(?::([\w-]+))?$/.exec(call);
    const task = found && this.tasks.find(({ id }) => id === found[2]);
    if (!found || !task) return undefined;
    if (found[1] === 'PATCH') Object.assign(task, body);
    if (found[3] === 'cancel') this.#cancel(task, body.reason);
    if (found[3] === 'run-now') task.next_attempt_at = at(this.now);
    return [200, task];
  }

  #cancel(task: Json, reason: string): void {
    const last_error = {
      error_type: 'CANCELLED',
      message: reason,
      http_status: null,
      at: at(this.now),
    };
    Object.assign(task, {
      status: 'DEAD',
      dead_reason: 'CANCELLED',
      dead_at: at(this.now),
      last_error,
    });
  }

  #onOthers(call: string, body: Json): [number, unknown] | undefined {
    const schedule =
      /^(PUT|DELETE|POST) \/v1\/queues\/mail\/schedules\/([\w.]+)(?::([\w-]+))?$/.exec(call);
    if (schedule) {
      const [, method, name = '', action] = schedule;
      if (method === 'DELETE') this.schedules.delete(name);
      const kept = this.schedules.get(name) ?? { last_run_at: null, last_task_id: null };
      const paused = action === 'pause' || (action !== 'resume' && kept.paused === true);
      const next = { timezone: 'UTC', overlap: 'skip', catch_up: 'last', ...kept, ...body, name };
      const next_run_at = at(this.now + 60_000);
      if (method !== 'DELETE') this.schedules.set(name, { ...next, next_run_at, paused });
      return [200, this.schedules.get(name) ?? {}];
    }
    if (call === 'GET /v1/queues/mail/schedules') {
      return [200, { schedules: [...this.schedules.values()] }];
    }
    if (call === 'GET /v1/queues/mail/workers') return [200, { workers: [this.#worker()] }];
    if (call === 'GET /v1/queues/mail/jobs') return [200, { jobs: this.jobs }];
    const job = /^POST \/v1\/jobs\/(\w+):cancel$/.exec(call);
    if (job) {
      const one = this.jobs.find(({ id }) => id === job[1]);
      Object.assign(one, { status: 'cancelled', finished_at: at(this.now) });
      return [200, one];
    }
    if (call === 'GET /v1/queues/mail/metrics') return [200, this.#metrics()];
    return undefined;
  }

  #queue(): Json {
    const pending = this.tasks.filter(({ status }) => status === 'PENDING').length;
    return {
      name: 'mail',
      summary: {
        pending,
        in_flight: 1,
        dlq_depth: 0,
        paused: false,
        oldest_pending_age_ms: 12_000,
        callback_url: '',
        breaker: 'closed',
      },
    };
  }

  #worker(): Json {
    return {
      worker: 'box-1',
      principal: 'workers',
      remote_ip: '10.0.0.7',
      last_seen_at: at(this.now),
      in_flight: 3,
      claimed: 1200,
      completed: 1190,
      failed: 7,
    };
  }

  #metrics(): Json {
    const percentiles = (ms: number) => ({ p50: ms, p95: ms * 3, p99: ms * 6 });
    const points = Array.from({ length: 360 }, (_, index) => ({
      ts: at(this.now - (360 - index) * 10_000),
      submitted: 200 + Math.round(80 * Math.sin(index / 20)),
      succeeded: 190 + Math.round(70 * Math.sin((index - 6) / 20)),
      failed: index % 40 === 0 ? 30 : 2,
      dead: 0,
      cancelled: 0,
      pending: 300 + Math.round(200 * Math.sin(index / 40)),
      in_flight: 20,
      wait_ms: percentiles(40 + 10 * Math.sin(index / 15)),
      run_ms: percentiles(120),
    }));
    return { step_s: 10, points };
  }

  #config(): Json {
    return {
      name: 'mail',
      description: '',
      paused: false,
      version: 1,
      created_at: at(this.now),
      updated_at: at(this.now),
      callback: {
        url: 'http://127.0.0.1:9/run',
        timeout_ms: 1000,
        connect_timeout_ms: 1000,
        async_timeout_ms: 1000,
        auth: { type: 'none' },
        signing: null,
      },
      retry: {
        max_attempts: 5,
        initial_backoff_ms: 1000,
        multiplier: 2,
        max_backoff_ms: 60_000,
        retry_statuses: [],
        dead_statuses: [],
      },
      limits: {
        max_in_flight: 10,
        max_payload_bytes: 1_048_576,
        dispatch_per_second: 0,
        submit_per_second: 0,
        max_pending: 0,
      },
      lease: { grace_ms: 1000 },
      retention: { succeeded_ms: 86_400_000, dead_ms: 0 },
      circuit_breaker: { enabled: false },
      ordering: { mode: 'none' },
    };
  }
}
