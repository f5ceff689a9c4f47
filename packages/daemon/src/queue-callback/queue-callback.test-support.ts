import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { memoryLog, type MemoryLog } from '@millrace/kit/log';
import { webhookGuard } from '@millrace/kit/outbound';
import { systemRandom } from '@millrace/kit/random';
import { createOutbound } from '@millrace/wire/http1';
import { onTestFinished } from 'vitest';
import { memorySessions, type MemorySessions } from '../sessions/sessions.test-support.js';
import { openStore, type Store } from '../storage/store.js';
import { openQueueTasks, type Delivery, type QueueTasks } from './index.js';
import type { CallbackHeaders } from './received-task.js';

/** How long a test waits for what must come; far more than it takes. */
export const patience = { timeout: 60_000, interval: 5 };
export const secret = `whsec_${Buffer.from('the secret of the test queue').toString('base64')}`;

export interface QueueCall {
  act: string;
  taskId: string;
  leaseToken: string | undefined;
  authorization: string | undefined;
  body: Record<string, unknown>;
}

export interface FakeAnswer {
  status: number;
  code?: string;
  body?: object;
}

/** A fake queue server that records calls and gives configured responses. */
export class FakeQueue {
  readonly calls: QueueCall[] = [];
  /** Status and code of the next answers; without one all is well. */
  answer: ((call: QueueCall) => FakeAnswer | Promise<FakeAnswer>) | undefined;
  url = '';

  static async start(): Promise<FakeQueue> {
    const queue = new FakeQueue();
    const server = createServer((request, response) => {
      let text = '';
      request.setEncoding('utf8');
      request.on('data', (part: string) => (text += part));
      request.on('end', () => {
        const [, taskId = '', act = ''] = /^\/v1\/tasks\/([^:]+):(\w+)$/.exec(request.url!) ?? [];
        const { authorization } = request.headers;
        const leaseToken = request.headers['x-queue-lease-token'] as string | undefined;
        const body = JSON.parse(text) as Record<string, unknown>;
        const call = { act, taskId, leaseToken, authorization, body };
        queue.calls.push(call);
        void Promise.resolve(queue.answer?.(call)).then((answer) => {
          const { status = 200, code, body: said = {} } = answer ?? {};
          response.writeHead(status, { 'content-type': 'application/json' });
          response.end(JSON.stringify({ ...said, ...(code && { code }) }));
        });
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    queue.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    return queue;
  }

  of(act: string): QueueCall[] {
    return this.calls.filter((call) => call.act === act);
  }
}

export interface Rig {
  /** What sessions have cost. */
  costs: Map<string, number>;
  queue: FakeQueue;
  sessions: MemorySessions;
  store: Store;
  log: MemoryLog;
  tasks: QueueTasks;
  restart(): Promise<void>;
}

export async function useRig(
  settings: { callback_secret?: string | undefined; url?: string } = { callback_secret: secret },
): Promise<Rig> {
  const home = mkdtempSync(join(tmpdir(), 'mr-queue-tasks-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const log = memoryLog();
  const world = { clock: systemClock, random: systemRandom, log };
  const store = await openStore(join(home, 'store'), world);
  onTestFinished(() => store.close());
  const queue = await FakeQueue.start();
  const outbound = createOutbound({ guard: webhookGuard });
  onTestFinished(() => outbound.close());
  const sessions = memorySessions();
  const { database } = store;
  const pull = { mode: 'push', name: 'agents', labels: {}, max_agents: 4, lease: 60_000 } as const;
  const all = { ...pull, url: queue.url, token: 'queue-token', ...settings };
  const costs = new Map<string, number>();
  const exactUsdOf = ({ id }: { id: string }) => Promise.resolve(costs.get(id) ?? null);
  const rest = { outbound, dataDir: home, settings: all, exactUsdOf };
  const parts = { world, database, sessions, ...rest };
  const rig: Rig = {
    queue,
    sessions,
    store,
    log,
    costs,
    tasks: await openQueueTasks(parts),
    async restart() {
      await rig.tasks.close();
      rig.tasks = await openQueueTasks(parts);
    },
  };
  onTestFinished(() => rig.tasks.close());
  return rig;
}

export const taskId = '01K9ZT6A8B0C2D4E6F8G1H3J5K';

export interface Sent {
  body?: string | Uint8Array;
  contentType?: string;
  headers?: { [Name in keyof CallbackHeaders]?: string | undefined };
  /** Signs as if it were that much later. */
  aheadMs?: number;
  secret?: string;
}

/** A delivery as the queue makes it. */
export function delivery({ body = 'Review it.', ...rest }: Sent = {}): Delivery {
  const { contentType = 'text/plain', aheadMs = 0 } = rest;
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const timestamp = String(Math.floor((systemClock.now() + aheadMs) / 1000));
  const key = Buffer.from((rest.secret ?? secret).slice('whsec_'.length), 'base64');
  const digest = createHmac('sha256', key).update(`${taskId}.${timestamp}.`).update(bytes);
  const headers: Record<string, string | undefined> = {
    'webhook-id': taskId,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${digest.digest('base64')}`,
    'X-Queue-Name': 'agents',
    'X-Queue-Task-Id': taskId,
    'X-Queue-Lease-Token': 'l1.first',
    'X-Queue-Handler-Ref': 'agent/review',
    'X-Queue-Attempt': '1',
    'X-Queue-Max-Attempts': '15',
    'X-Queue-Redrive-Count': '0',
    ...rest.headers,
  };
  for (const name of Object.keys(headers)) {
    if (headers[name] === undefined) delete headers[name];
  }
  const sent = bytes.length === 0 ? undefined : bytes;
  return { headers: headers as CallbackHeaders, contentType, body: sent };
}
