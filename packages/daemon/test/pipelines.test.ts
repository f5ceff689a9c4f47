import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { inCampaign } from '../../../test/support/campaign.js';
import { expectSchema, type ApiRequest } from './support/client.js';
import { startDaemon, type TestDaemon } from './support/daemon.js';
import { FakeClis } from './support/fake-clis.js';

const again = inCampaign('process');

type Pipeline = DaemonSchema<'Pipeline'>;

const patience = { timeout: 60_000, interval: 25 };

let daemon: TestDaemon;
let home: string;
let clis: FakeClis;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'mr-pipelines-'));
  clis = new FakeClis(join(home, 'bin'));
  // Echoes the prompt, and fails when the prompt says so.
  clis.add(
    'gemini',
    `console.log('Prompt: ' + prompt); if (/please fail/.test(prompt)) process.exit(3);`,
  );
  // Works until it is stopped. A daemon waits 20 s for a --help that does not end.
  clis.add('qwen', `if (!args.includes('--help')) setInterval(() => undefined, 1000);`);
  await start();
});
afterEach(() => daemon.dispose(), 60_000);

async function start(): Promise<void> {
  daemon = await startDaemon({ home, path: `${clis.path}:${process.env['PATH']}` });
  await daemon.api.ok('PUT', '/api/v1/backends/default', { id: 'gemini' });
}

async function create(body: unknown, headers: Record<string, string> = {}): Promise<Pipeline> {
  const reply = await daemon.api.send({ method: 'POST', path: '/api/v1/pipelines', body, headers });
  expect([reply.status, reply.text]).toEqual([201, reply.text]);
  expectSchema('Pipeline', reply.json);
  expect(reply.headers['location']).toBe(`/api/v1/pipelines/${reply.json.id}`);
  return reply.json as Pipeline;
}

async function become(id: string, status: Pipeline['status']): Promise<Pipeline> {
  const read = () => daemon.api.ok('GET', `/api/v1/pipelines/${id}`) as Promise<Pipeline>;
  await vi.waitFor(async () => {
    const now = await read();
    expect([now.status, now.jobs]).toEqual([status, now.jobs]);
  }, patience);
  const found = await read();
  expectSchema('Pipeline', found);
  return found;
}

describe('POST /api/v1/pipelines', () => {
  test('runs a pipeline of YAML from end to end with a real program', async () => {
    const yaml = `
name: upload
jobs:
  - id: build
    prompt: Say hello.
  - id: docs
    prompt: |
      Describe it.
      Before that: {{jobs.build.output}}
    depends_on: [build]
    run_if: success
  - id: never
    prompt: Fix it.
    depends_on: [build]
    run_if: failure
`;
    const { id } = await create(yaml, { 'content-type': 'application/yaml' });
    const { jobs } = await become(id, 'done');
    expect(jobs.map(({ id: job, status }) => `${job} ${status}`)).toEqual([
      'build done',
      'docs done',
      'never skipped',
    ]);
    expect(jobs[0]!.output).toBe('Prompt: Say hello.');
    expect(jobs[1]!.output).toContain('Before that: Prompt: Say hello.');
    const session = await daemon.api.ok('GET', `/api/v1/sessions/${jobs[0]!.session_id}`);
    expect(session).toMatchObject({ pipeline_id: id, job_id: 'build', driver: 'headless' });
    const list = await daemon.api.ok('GET', '/api/v1/pipelines');
    expectSchema('PipelineList', list);
    expect(list.pipelines.map((each: Pipeline) => each.id)).toEqual([id]);
  });

  again('stalls at a job that fails, and runs it again when it is started', async () => {
    const jobs = [
      { id: 'a', prompt: 'please fail' },
      { id: 'b', prompt: 'after', depends_on: ['a'] },
    ];
    const { id } = await create({ name: 'n', jobs });
    const stalled = await become(id, 'stalled');
    expect(stalled.jobs.map(({ status }) => status)).toEqual(['failed', 'skipped']);
    expect(stalled.jobs[0]!.output).toContain('please fail');
    const again = await daemon.api.ok('POST', `/api/v1/pipelines/${id}:start`);
    expect(again).toMatchObject({ status: 'running' });
    await become(id, 'stalled');
  });

  again('waits with start false, is canceled, and stays so', async () => {
    const jobs = [{ id: 'a', prompt: 'x', backend: 'qwen' }];
    const waiting = await create({ name: 'n', start: false, jobs });
    expect(waiting.status).toBe('pending');
    const path = `/api/v1/pipelines/${waiting.id}`;
    expect(await daemon.api.ok('POST', `${path}:start`)).toMatchObject({ status: 'running' });
    const canceled = await daemon.api.ok('POST', `${path}:cancel`);
    expect(canceled).toMatchObject({ status: 'canceled' });
    expect(await daemon.api.ok('POST', `${path}:cancel`)).toMatchObject({ status: 'canceled' });
    await daemon.api.refused({ method: 'POST', path: `${path}:start` }, 409, 'PIPELINE_STATE');
    await vi.waitFor(async () => {
      const { sessions } = await daemon.api.ok('GET', '/api/v1/sessions');
      expect(sessions.map(({ status }: { status: string }) => status)).toEqual(['done']);
    }, patience);
  });

  test('goes on after the daemon was started again', async () => {
    const jobs = [
      { id: 'a', prompt: 'x', backend: 'qwen' },
      { id: 'b', prompt: 'y', depends_on: ['a'], run_if: 'always' },
    ];
    const { id } = await create({ name: 'n', jobs });
    await vi.waitFor(async () => {
      const { sessions } = await daemon.api.ok('GET', '/api/v1/sessions');
      expect(sessions[0]?.pid).toBeGreaterThan(0);
    }, patience);
    await daemon.stop();
    await start();
    const { sessions } = await daemon.api.ok('GET', '/api/v1/sessions');
    expect(sessions.length).toBe(1);
    await daemon.api.ok('POST', `/api/v1/sessions/${sessions[0].id}:stop`);
    const { jobs: ended } = await become(id, 'stalled');
    expect(ended.map(({ status }) => status)).toEqual(['failed', 'done']);
  });

  const post = (body: unknown, type = 'application/json'): ApiRequest => ({
    method: 'POST',
    path: '/api/v1/pipelines',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': type },
  });

  test('refuses what is wrong, with the place', async () => {
    const { api } = daemon;
    const job = (id: string, rest = {}) => ({ id, prompt: 'x', ...rest });
    const cycle = [job('a', { depends_on: ['b'] }), job('b', { depends_on: ['a'] })];
    const wrong = await api.refused(post({ name: 'n', jobs: cycle }), 400, 'INVALID_REQUEST');
    expect(wrong.errors).toEqual([
      { pointer: '/jobs/0/depends_on', message: 'is a cycle: a -> b -> a' },
    ]);
    for (const [body, pointer] of [
      [{ name: 'n', jobs: [job('a', { depends_on: ['z'] })] }, '/jobs/0/depends_on/0'],
      [{ name: 'n', jobs: [job('a'), job('a')] }, '/jobs/1/id'],
      [{ name: 'n', jobs: [] }, '/jobs'],
      [{ name: 'n', jobs: [job('a b')] }, '/jobs/0/id'],
      [{ name: 'n', jobs: [job('a', { run_if: 'perhaps' })] }, '/jobs/0/run_if'],
      [{ name: 'n', jobs: [job('a', { needs: [] })] }, '/jobs/0/needs'],
      [{ jobs: [job('a')] }, '/name'],
    ] as const) {
      const { errors } = await api.refused(post(body), 400, 'INVALID_REQUEST');
      expect(errors?.map((each) => each.pointer)).toEqual([pointer]);
      const yaml = await api.refused(
        post(JSON.stringify(body), 'application/yaml'),
        400,
        'INVALID_REQUEST',
      );
      expect(yaml.errors).toEqual(errors);
    }
    const unknown = { name: 'n', jobs: [job('a', { backend: 'nobody' })] };
    await api.refused(post(unknown), 404, 'BACKEND_NOT_FOUND');
    expect((await api.ok('GET', '/api/v1/pipelines')).pipelines).toEqual([]);
  });

  test('names line and column of YAML that cannot be read', async () => {
    const { api } = daemon;
    for (const [yaml, place] of [
      ['name: x\njobs:\n  - id: a\n   prompt: b\n', 'line 4, column'],
      ['name: x\nname: y\n', 'line 2, column 1'],
      ['a: &x [*x]', 'line 1, column'],
      ['---\na: 1\n---\nb: 2\n', 'line 3, column 1'],
      ['name: "unfinished', 'line 1, column'],
    ] as const) {
      const { detail } = await api.refused(post(yaml, 'application/yaml'), 400, 'INVALID_REQUEST');
      expect(detail).toContain(place);
    }
    const bomb = ['a0: &a0 [x]'];
    for (let n = 1; n < 12; n++) bomb.push(`a${n}: &a${n} [${`*a${n - 1},`.repeat(9)}]`);
    const huge = await api.refused(
      post(bomb.join('\n'), 'application/yaml'),
      400,
      'INVALID_REQUEST',
    );
    expect(huge.detail).toContain('aliases expand to more than 10000 values');
    await api.refused(post('name: x', 'text/yaml'), 415, 'UNSUPPORTED_MEDIA_TYPE');
  });
});

test('a pipeline that is not there is 404', async () => {
  for (const id of ['nobody', 'a%20b', '%2e%2e']) {
    const path = `/api/v1/pipelines/${id}`;
    await daemon.api.refused({ path }, 404, 'PIPELINE_NOT_FOUND');
    for (const act of ['start', 'cancel']) {
      const request = { method: 'POST', path: `${path}:${act}` };
      await daemon.api.refused(request, 404, 'PIPELINE_NOT_FOUND');
    }
  }
});
