import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@millrace/db/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inCampaign } from './support/campaign.js';
import { ctl } from '../packages/ctl/test/run-ctl.js';
import { anyPorts, patient, Up } from './support/up.js';

const again = inCampaign('process');

/* `ctl connect` as a part of `ctl up`: changes of the database become tasks of the queue. */

let data = '';
let up: Up | undefined;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'millrace-connect-'));
});
afterEach(async () => {
  up?.kill('SIGKILL');
  await up?.ended;
  up = undefined;
  rmSync(data, { recursive: true, force: true });
});

const connectors = `
connectors:
  - name: orders
    collection: orders
    queue: work
    handler_ref: order.changed
    payload: {op: '{{op}}', id: '{{id}}', rev: '{{rev}}'}
`;

interface Claimed {
  tasks: { id: string; payload: string; lease_token: string }[];
}

/** Claims and completes all tasks; returns their payloads. */
async function drain(running: Up): Promise<string[]> {
  const payloads: string[] = [];
  for (;;) {
    const body = { worker: 'test', limit: 100 };
    const claimed = await running.queue('/v1/queues/work/tasks:claim', 'POST', body);
    expect(claimed.status).toBe(200);
    const { tasks } = (await claimed.json()) as Claimed;
    if (tasks.length === 0) return payloads;
    for (const { payload } of tasks) payloads.push(Buffer.from(payload, 'base64').toString());
    const items = tasks.map(({ id, lease_token }) => ({ id, lease_token, outcome: 'complete' }));
    const settled = await running.queue('/v1/queues/work/tasks:settle', 'POST', { items });
    expect(settled.status).toBe(207);
  }
}

interface Status {
  db: { connectors: { name: string; lag_ms: number | null; error: string | null }[] | null };
}

async function statusOf(name: string) {
  const { out } = await ctl(['status', '--json', '--data', data], { HOME: data });
  return (JSON.parse(out) as Status).db.connectors?.find((each) => each.name === name);
}

test('connect: kill -9 of connector, queue and database loses and repeats no change', async () => {
  writeFileSync(join(data, 'connectors.yaml'), connectors);
  up = await new Up(data, anyPorts, false).ready();
  const running = up;
  const config = { callback: { protocol: 'pull' } };
  const made = await running.queue('/v1/admin/queues/work/config', 'PUT', config);
  expect(made.status).toBe(200);
  const db = await connect(`unix:${join(data, 'db', 'db.sock')}`, { timeoutMs: 120_000 });
  const orders = db.collection<{ n: number }>('orders');
  // The connector has saved where it starts.
  const positions = db.collection('millrace_connectors');
  await expect.poll(() => positions.findByKey('orders'), patient).toBeDefined();
  const expected: string[] = [];
  const note = (op: string, { id, rev }: { id: string; rev: number }) =>
    expected.push(JSON.stringify({ op, id, rev }));
  const writer = async (worker: number) => {
    for (let n = 0; n < 60; n++) {
      const record = await orders.insert({ n: worker * 1000 + n });
      note('insert', record);
      if (n % 2 === 0) note('update', await orders.merge(record.id, { n: -n }));
      if (n % 4 === 0) note('delete', await orders.delete(record.id));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const killer = async () => {
    for (const name of ['connect', 'queue', 'db', 'connect', 'db', 'queue', 'connect']) {
      await expect.poll(() => running.parts().get(name), patient).toBeDefined();
      process.kill(running.parts().get(name)!, 'SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  };
  await Promise.all([writer(1), writer(2), writer(3), killer()]);
  await expect
    .poll(async () => (await running.queue('/readyz').catch(() => undefined))?.status, patient)
    .toBe(200);
  await expect
    .poll(async () => statusOf('orders'), { ...patient, interval: 1_000 })
    .toMatchObject({ lag_ms: 0, error: null });
  expect((await drain(running)).toSorted()).toEqual(expected.toSorted());
  expect(expected).toHaveLength(3 * (60 + 30 + 15));
  await db.close();
  expect((await running.stop()).code).toBe(0);
}, 240_000);

again(
  'connect: a missing queue is shown with the lag, and the task follows when it exists',
  async () => {
    writeFileSync(join(data, 'connectors.yaml'), connectors);
    up = await new Up(data, anyPorts, false).ready();
    const running = up;
    const db = await connect(`unix:${join(data, 'db', 'db.sock')}`);
    const positions = db.collection('millrace_connectors');
    await expect.poll(() => positions.findByKey('orders'), patient).toBeDefined();
    const { id } = await db.collection('orders').insert({ n: 1 });
    await expect
      .poll(() => statusOf('orders'), { ...patient, interval: 500 })
      .toMatchObject({ error: expect.stringMatching(/^QUEUE_NOT_FOUND: /) });
    expect((await statusOf('orders'))!.lag_ms).toBeGreaterThan(0);
    const metrics = await (await fetch(`${running.url('connect', 'metrics')}/metrics`)).text();
    expect(metrics).toMatch(/^millrace_connect_lag_seconds\{connector="orders"\} [0-9.]*[1-9]/m);
    expect(metrics).toMatch(/^millrace_connect_errors_total\{connector="orders"\} [1-9]/m);
    const config = { callback: { protocol: 'pull' } };
    await running.queue('/v1/admin/queues/work/config', 'PUT', config);
    await expect
      .poll(() => statusOf('orders'), { ...patient, interval: 500 })
      .toMatchObject({ error: null, lag_ms: 0 });
    expect(await drain(running)).toEqual([JSON.stringify({ op: 'insert', id, rev: 1 })]);
    await db.close();
  },
);

test('connect: a mistake in the file is one line with file and line, before anything starts', async () => {
  const file = join(data, 'connectors.yaml');
  writeFileSync(file, connectors.replace('{{op}}', '{{opp}}'));
  const line = `ctl: ${file}:7: connectors[0].payload has the unknown placeholder {{opp}}`;
  for (const args of [
    ['connect', '--config', file],
    ['connect', '--check', '--config', file],
    ['up', '--data', data, ...anyPorts],
  ]) {
    const { code, err } = await ctl(args, { HOME: data });
    expect([code, err.split('\n').length, err.startsWith(line)]).toEqual([2, 2, true]);
  }
  expect(existsSync(join(data, 'db'))).toBe(false);
});
