import { chmodSync } from 'node:fs';
import { openApiYaml } from '@millrace/contract/documents';
import { DocumentSchemas } from '@millrace/kit/http';
import { openApiDocument } from '@millrace/contract/documents';
import { expect, test } from 'vitest';
import { useServer } from './support/both.js';
import { startServer } from './support/server.js';
import { LogFailed } from '@millrace/engine/storage/file/files';
import { apiLabel } from '../../src/server/calls/calls.js';

const both = useServer({ 'slow-query-ms': '1', 'access-log': 'all' });
const health = new DocumentSchemas(openApiDocument('db')).named('Health');

test('health: live and ready', async () => {
  const { rest } = both;
  const alive = await rest.send('GET', '/healthz');
  expect(alive).toMatchObject({ status: 200, body: { status: 'ok' } });
  const ready = await rest.send('GET', '/readyz');
  expect(ready.body).toEqual({ status: 'ready', checks: { database: 'ok', data_directory: 'ok' } });
  expect(health.accepts(ready.body)).toBe(true);
  expect((await rest.send('HEAD', '/healthz')).status).toBe(200);
});

test('health: a data directory that is not writable is not ready', async () => {
  if (process.geteuid?.() === 0) {
    // Root ignores file modes, so the directory is moved away instead.
    const { renameSync } = await import('node:fs');
    renameSync(both.server.data, `${both.server.data}.away`);
    try {
      await expectNotReady();
    } finally {
      renameSync(`${both.server.data}.away`, both.server.data);
    }
  } else {
    chmodSync(both.server.data, 0o500);
    try {
      await expectNotReady();
    } finally {
      chmodSync(both.server.data, 0o700);
    }
  }
  await expect.poll(async () => (await both.rest.send('GET', '/readyz')).status).toBe(200);
});

async function expectNotReady(): Promise<void> {
  const { rest } = both;
  await expect.poll(async () => (await fetch(`${both.server.http}/readyz`)).status).toBe(503);
  const response = await fetch(`${both.server.http}/readyz`);
  expect(response.headers.get('retry-after')).toBe('1');
  const body: unknown = await response.json();
  expect(body).toMatchObject({ status: 'not_ready', checks: { database: 'ok' } });
  expect(health.accepts(body)).toBe(true);
  expect((await rest.send('GET', '/healthz')).status).toBe(200);
}

test('health: a failed sync of the log is not ready', async () => {
  const server = await startServer();
  const { log } = server.database.core.store;
  log!.append = () => Promise.reject(new LogFailed('EIO'));
  const write = () =>
    fetch(`${server.http}/v1/people/records`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"data":{}}',
    });
  expect(await (await write()).text()).toContain('STORAGE_FAILED');
  const response = await fetch(`${server.http}/readyz`);
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
  const body: unknown = await response.json();
  expect(body).toMatchObject({ status: 'not_ready', checks: { data_directory: 'ok' } });
  expect(JSON.stringify(body)).toContain('storage failed');
  expect(await (await fetch(`${server.http}/metrics`)).text()).toMatch(/storage_failed 1/);
  await server.dispose();
});

test('openapi: serves the document of the contract', async () => {
  const answer = await both.rest.send('GET', '/openapi.yaml');
  expect(answer.headers.get('content-type')).toBe('application/yaml');
  expect(answer.text).toBe(openApiYaml('db'));
});

test('docs page: loads nothing from other hosts', async () => {
  const { rest } = both;
  const page = await rest.send('GET', '/docs');
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const policy = page.headers.get('content-security-policy')!;
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|https?:/);
  expect(page.text).not.toMatch(/https?:\/\//);
  const parts = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((found) => found[1]!);
  expect(parts).toHaveLength(5);
  for (const part of parts) {
    const answer = await rest.send('GET', part);
    expect([part, answer.status]).toEqual([part, 200]);
    expect(answer.text.length).toBeGreaterThan(50);
  }
  expect((await rest.send('GET', '/docs/../package.json')).status).toBe(404);
  expect((await rest.send('GET', '/docs/index.html')).status).toBe(404);
});

test('metrics: commits, calls and queues', async () => {
  const { rest } = both;
  await rest.ok('POST', '/v1/people/keys', { key: 'k', data: {} });
  await rest.refusal('POST', '/v1/people/keys', { key: 'k', data: {} });
  const { text, headers } = await rest.send('GET', '/metrics');
  expect(headers.get('content-type')).toContain('text/plain');
  const value = (name: string) => {
    const line = text.split('\n').find((each) => each.startsWith(`millrace_db_${name} `));
    return Number(line?.split(' ').at(-1));
  };
  expect(value('commits_total')).toBe(1);
  expect(value('seq')).toBe(1);
  expect(value('commit_batch_size_count')).toBe(1);
  expect(value('fsync_duration_seconds_count')).toBeGreaterThanOrEqual(1);
  expect(value('queue_delay_seconds_count')).toBeGreaterThanOrEqual(2);
  expect(value('log_lag_commits')).toBe(0);
  expect(value('oldest_reader_commits')).toBe(0);
  expect(value('durability_relaxed')).toBe(0);
  expect(value('storage_failed')).toBe(0);
  expect(value('log_pinned_commits')).toBe(0);
  expect(value('overlay_bytes')).toBeGreaterThanOrEqual(0);
  expect(value('calls_total{method="InsertWithKey",face="rest",code="OK"}')).toBe(1);
  expect(value('calls_total{method="InsertWithKey",face="rest",code="ALREADY_EXISTS"}')).toBe(1);
});

test('access log: a line per call, and one for a slow query with its plan', async () => {
  const { writes } = both.server.database;
  const text = 'x'.repeat(1_000);
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 1_000 }, () => writes.insert('slow', { text })));
  }
  await both.rest.ok('POST', '/v1/slow/records:find', {
    filter: {
      and: [
        { field: 'text', op: 'regex', value: 'secret$' },
        { field: 'n', op: 'ne', value: 1 },
      ],
    },
  });
  const { lines } = both.server.log;
  expect(lines.findLast(({ message }) => message === 'call')?.fields).toMatchObject({
    method: 'Find',
    [apiLabel]: 'rest',
    code: 'OK',
    principal: 'local',
    peer: expect.stringMatching(/^127\.0\.0\.1:\d+$/) as string,
    duration_ms: expect.any(Number) as number,
  });
  const slow = lines.findLast(({ message }) => message === 'slow query');
  expect(slow?.fields).toMatchObject({
    collection: 'slow',
    filter: '(text regex and n ne)',
    plan: { index: '', full_scan: true, rows_scanned: 5_000, rows_returned: 0 },
  });
  expect(JSON.stringify(slow)).not.toContain('secret');
});
