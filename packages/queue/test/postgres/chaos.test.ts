import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { campaignSize, isFullCampaign } from '../../../../test/support/campaign.js';
import type { Attempt } from '../../src/core/task.js';
import { attemptsOf } from '../../src/storage/postgres/tasks.js';
import { newDirectory } from '../support/server.js';
import { ChaosServer } from './chaos-servers.js';
import { tableProblems } from './consistency.js';
import { ownPostgres, type PostgresServer } from './postgres-server.js';

/** 100,000 in a long run: `MILLRACE_CHAOS_TASKS=100000 npx vitest run .../chaos.test.ts`. */
const taskCount = Number(
  process.env['MILLRACE_CHAOS_TASKS'] ?? campaignSize({ quick: 600, full: 5_000 }),
);
const maxInFlight = 60;
const timeoutMs = 2_000;
const graceMs = 1_000;
const leaseMs = timeoutMs + graceMs;
/** An ended lease is found within five seconds of a good machine, and this one is busy. */
const foundWithinMs = 30_000;

beforeAll(() => {
  const built = new URL('../../dist/storage/postgres/open.js', import.meta.url);
  if (!existsSync(built)) throw new Error('Run `npm run build` first: this starts built servers');
});

interface Delivery {
  id: string;
  arrivedAt: number;
}

/** Succeeds nine times of ten, and counts. */
async function startWitness() {
  const deliveries: Delivery[] = [];
  const succeeded = new Set<string>();
  const open = { now: 0, most: 0 };
  const server = createServer((request, response) => {
    const id = String(request.headers['x-queue-task-id']);
    deliveries.push({ id, arrivedAt: systemClock.now() });
    open.most = Math.max(open.most, ++open.now);
    response.on('close', () => open.now--);
    request.resume().on('end', () => {
      const isGood = systemRandom.next() < 0.9;
      setTimeout(
        () => {
          response.writeHead(isGood ? 200 : 503).end();
          if (isGood) succeeded.add(id);
        },
        // So long that every kill finds calls of its server under way.
        systemRandom.integer(0, 150),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/run`, deliveries, succeeded, open };
}

/** Sends batches to any server that accepts them, until every task was acknowledged. */
async function submitAll(servers: readonly ChaosServer[]): Promise<string[]> {
  const ids: string[] = [];
  const size = 50;
  const submitOne = async (from: number) => {
    const body = Array.from({ length: Math.min(size, taskCount - from) }, () => ({
      id: systemRandom.ulid(systemClock.now()),
      handler_ref: 'chaos',
      payload: 'aGVsbG8=',
    }));
    for (let tries = 0; ; tries++) {
      const server = servers[(from / size + tries) % servers.length]!;
      const path = '/v1/queues/chaos/tasks:batch';
      const answer = await server.send({ method: 'POST', path, body }).catch(() => undefined);
      const items = answer?.status === 207 ? (answer.body as unknown as { status: number }[]) : [];
      if (items.length > 0 && items.every(({ status }) => status === 202)) break;
      // The same ids again: what was stored all the same is not stored twice.
      await systemClock.sleep(50);
    }
    ids.push(...body.map(({ id }) => id));
  };
  const starts = Array.from({ length: Math.ceil(taskCount / size) }, (_, i) => i * size);
  const sender = async () => {
    for (let from = starts.shift(); from !== undefined; from = starts.shift()) {
      await submitOne(from);
    }
  };
  await Promise.all(Array.from({ length: 4 }, sender));
  return ids;
}

/** Faults, each at a share of the work. */
async function wreak(
  servers: readonly ChaosServer[],
  postgres: PostgresServer,
  share: () => number,
): Promise<void> {
  const [one, two, three] = servers as [ChaosServer, ChaosServer, ChaosServer];
  const restart = async (server: ChaosServer) => {
    await server.kill();
    await server.start();
  };
  const cut = async () => {
    const where = `application_name = 'millrace-queue'`;
    const text = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${where}`;
    await postgres.sql(await postgres.database('postgres'), text);
  };
  const all: [number, () => Promise<void>][] = [
    [0.1, () => restart(one)],
    [0.2, cut],
    [
      0.3,
      async () => {
        await postgres.crash();
        await postgres.start();
      },
    ],
    [0.45, () => restart(three)],
    [0.55, cut],
    [
      0.65,
      async () => {
        await postgres.stop();
        await postgres.start();
      },
    ],
    [
      0.8,
      async () => {
        await Promise.all([two.kill(), one.kill()]);
        await two.start();
        await one.start();
      },
    ],
  ];
  // Each kind once in a short run: a server, connections, the database, two servers.
  const acts = isFullCampaign ? all : [0, 1, 2, 5, 6].map((kind) => all[kind]!);
  for (const [at, act] of acts) {
    while (share() < at) await systemClock.sleep(10);
    await act();
  }
}

interface Ended {
  id: string;
  outcome: number;
  ended_at: string;
  attempts: string[];
}

test(
  `${taskCount} tasks over three servers survive kills, restarts, cuts and a wrong clock`,
  async () => {
    const postgres = await ownPostgres();
    onTestFinished(() => postgres.remove());
    const storage = await postgres.database('chaos');
    const witness = await startWitness();
    const clocks = [0, 0, 3_600_000];
    const servers = clocks.map((aheadMs) => new ChaosServer(newDirectory(), storage, aheadMs));
    onTestFinished(async () => void (await Promise.all(servers.map((server) => server.kill()))));
    await Promise.all(servers.map((server) => server.start()));
    const made = await servers[0]!.send({
      method: 'PUT',
      path: '/v1/admin/queues/chaos/config',
      body: {
        callback: { url: witness.url, timeout_ms: timeoutMs },
        retry: { max_attempts: 100, initial_backoff_ms: 20, max_backoff_ms: 200 },
        lease: { grace_ms: graceMs },
        limits: { max_in_flight: maxInFlight },
        circuit_breaker: { enabled: false },
      },
    });
    expect(made.status, made.text).toBe(200);
    const startedAt = systemClock.now();
    const share = () => witness.succeeded.size / taskCount;
    const [ids] = await Promise.all([submitAll(servers), wreak(servers, postgres, share)]);
    const left = async () => {
      const [row] = await postgres.sql(storage, 'SELECT count(*)::int AS left FROM millrace.live');
      return row!['left'];
    };
    await expect.poll(left, { timeout: 120_000 + taskCount * 10, interval: 100 }).toBe(0);
    await Promise.all(servers.map((server) => server.stop()));

    expect(new Set(ids).size).toBe(taskCount);
    const ended = (await postgres.sql(
      storage,
      'SELECT * FROM millrace.ended',
    )) as unknown as Ended[];
    expect(ended.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(ended.every(({ outcome }) => outcome === 3)).toBe(true);
    expect(await tableProblems(postgres, storage)).toEqual([]);
    checkHistories(ended, startedAt);
    checkDeliveries(ended, witness.deliveries);
    expect(witness.open.most).toBeLessThanOrEqual(maxInFlight);
    checkSpread(ended);
  },
  600_000 + taskCount * 20,
);

/** Attempts of a task follow one another, and a lease ends neither early nor late. */
function checkHistories(ended: readonly Ended[], startedAt: number): void {
  let expiries = 0;
  for (const { id, attempts } of ended) {
    let last: Attempt | undefined;
    for (const attempt of attempts.flatMap(attemptsOf)) {
      expect(attempt.startedAt, id).toBeGreaterThanOrEqual(last?.endedAt ?? startedAt - 5_000);
      last = attempt;
      if (attempt.outcome !== 'LEASE_EXPIRED') continue;
      expiries++;
      const heldMs = attempt.endedAt - attempt.startedAt;
      expect(heldMs, id).toBeGreaterThanOrEqual(leaseMs);
      expect(heldMs, id).toBeLessThan(leaseMs + foundWithinMs);
    }
    expect(last!.outcome, id).toBe('SUCCEEDED');
  }
  // Kills without work would prove nothing.
  expect(expiries).toBeGreaterThan(0);
}

/** Nothing is delivered more often than it was claimed, nor after its success was stored. */
function checkDeliveries(ended: readonly Ended[], deliveries: readonly Delivery[]): void {
  const arrivals = new Map<string, number[]>();
  for (const { id, arrivedAt } of deliveries) {
    if (arrivals.has(id)) arrivals.get(id)!.push(arrivedAt);
    else arrivals.set(id, [arrivedAt]);
  }
  for (const { id, attempts, ended_at: endedAt } of ended) {
    const times = arrivals.get(id) ?? [];
    expect(times.length, id).toBeGreaterThan(0);
    expect(times.length, id).toBeLessThanOrEqual(attempts.length);
    for (const at of times) expect(at, id).toBeLessThanOrEqual(Number(endedAt) + 100);
  }
}

function checkSpread(ended: readonly Ended[]): void {
  const counts = new Map<string, number>();
  for (const { attempts } of ended) {
    const { nodeId } = attemptsOf(attempts.at(-1)!)[0]!;
    counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  }
  // A server that starts again on a busy machine may come too late for the tasks of a short run.
  if (!isFullCampaign) return expect(counts.size).toBeGreaterThan(1);
  expect(counts.size).toBe(3);
  for (const count of counts.values()) expect(count).toBeGreaterThan(taskCount / 20);
}
