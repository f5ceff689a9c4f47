import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { contractExample } from '../src/daemon/contract-examples.test-support.js';
import { faultsOf } from './daemon-server.js';
import { FakeDaemon } from './fake-daemon.js';
import { runCtl, type RunOptions } from './queue-server.js';

const pipeline = contractExample('Pipeline');
const note = contractExample('Inbox').notes[0]!;
let daemon: FakeDaemon;
let folder = '';
beforeAll(async () => {
  daemon = await FakeDaemon.start();
  folder = mkdtempSync(join(tmpdir(), 'ctl-pipeline-'));
});
afterAll(async () => {
  await daemon.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  daemon.requests.length = 0;
  daemon.routes.clear();
  daemon.reply = { status: 404, body: problem(404, 'NOT_FOUND', 'no such path') };
  daemon.routes.set('GET /api/v1/pipelines', { body: { pipelines: [pipeline] } });
  daemon.routes.set('GET /api/v1/inbox', { body: { notes: [note] } });
});

function problem(status: number, code: string, detail: string, more: object = {}) {
  return { type: 'about:blank', title: 'x', status, code, detail, error: detail, ...more };
}

const ctl = (args: readonly string[], options: RunOptions = {}) =>
  runCtl(args, { ...options, env: { HOME: folder, MILLRACE_URL: daemon.url } });

function file(text: string): string {
  const path = join(folder, 'upload.yaml');
  writeFileSync(path, text);
  return path;
}

const definition = `name: upload
repo: ./mill
jobs:
  - id: build
    prompt: Build it
  - id: docs
    prompt: Describe it
    depends_on: [build]
`;

const lastBody = () => JSON.parse(daemon.requests.at(-1)!.body) as Record<string, unknown>;

describe('pipeline run', () => {
  test('sends the file, with the repository seen from where the file lies', async () => {
    daemon.routes.set('POST /api/v1/pipelines', { status: 201, body: pipeline });
    const { code, out } = await ctl(['pipeline', 'run', file(definition)]);
    expect(code).toBe(0);
    expect(out).toMatch(/^JOB +STATUS/m);
    expect(lastBody()).toMatchObject({ name: 'upload', repo: join(folder, 'mill') });
    expect(faultsOf('PipelineDefinition', lastBody())).toEqual([]);
    await ctl(['pipeline', 'run', '-', '--no-start', '--json'], { input: definition });
    expect(lastBody()).toMatchObject({ start: false });
  });

  test('mistakes are reported by the lines of the file', async () => {
    daemon.routes.set('POST /api/v1/pipelines', {
      status: 400,
      body: problem(400, 'INVALID_REQUEST', 'wrong', {
        errors: [{ pointer: '/jobs/1/depends_on/0', message: 'names no job' }],
      }),
    });
    const path = file(definition);
    const { code, err } = await ctl(['pipeline', 'run', path]);
    expect([code, err]).toEqual([1, `ctl: ${path}:8: /jobs/1/depends_on/0 names no job.\n`]);
    const broken = await ctl(['pipeline', 'run', file('name: [')]);
    expect(broken.code).toBe(2);
    expect(broken.err).toMatch(/upload\.yaml:1: /);
    const empty = await ctl(['pipeline', 'run', file('')]);
    expect(empty.err).toMatch(/is empty. It needs at least name: \.\.\. and jobs/);
  });

  test('--wait follows it until it goes no further, and the exit code shows how it ended', async () => {
    daemon.routes.set('POST /api/v1/pipelines', { status: 201, body: pipeline });
    const statuses = ['running', 'done', 'running', 'stalled'];
    daemon.routes.set(`GET /api/v1/pipelines/${pipeline.id}`, () => ({
      body: { ...pipeline, status: statuses.shift() },
    }));
    expect(await ctl(['pipeline', 'run', file(definition), '--wait'])).toMatchObject({ code: 0 });
    const stalled = await ctl(['pipeline', 'run', file(definition), '--wait']);
    expect(stalled).toMatchObject({ code: 1, err: '' });
    expect(stalled.out).toMatch(/^status +stalled$/m);
  });
});

describe('pipeline list, show, start and cancel', () => {
  test('one is found by its name or the beginning of its id', async () => {
    for (const words of ['upload', '01K9ZR0']) {
      const { out } = await ctl(['pipeline', 'show', words, '--json']);
      expect(JSON.parse(out)).toEqual(pipeline);
    }
    expect((await ctl(['pipeline', 'show', 'nope'])).err).toMatch(
      /no pipeline is called "nope"\. List them all with `ctl pipeline list`\./,
    );
    const { out } = await ctl(['pipeline', 'ls', '--json']);
    expect(faultsOf('PipelineList', JSON.parse(out))).toEqual([]);
  });

  test('--output shows what the jobs said, with control characters escaped', async () => {
    const { jobs } = pipeline;
    const said = [{ ...jobs[0], status: 'done', output: 'fine\u001B[2J\nbye' }, jobs[1]];
    daemon.routes.set('GET /api/v1/pipelines', {
      body: { pipelines: [{ ...pipeline, jobs: said }] },
    });
    const { out } = await ctl(['pipeline', 'show', 'upload', '--output']);
    expect(out).toMatch(/\n\nbuild\nfine\\u001b\[2J\nbye\n$/);
  });

  test.for(['start', 'cancel'])('%s answers the pipeline as it is then', async (act) => {
    const after = { ...pipeline, status: act === 'start' ? 'running' : 'canceled' };
    daemon.routes.set(`POST /api/v1/pipelines/${pipeline.id}:${act}`, { body: after });
    expect(JSON.parse((await ctl(['pipeline', act, 'upload', '--json'])).out)).toEqual(after);
  });
});

describe('inbox', () => {
  test('is a command and a group, and asks for what the flags say', async () => {
    for (const args of [['inbox'], ['inbox', 'list']]) {
      const { code, out } = await ctl([...args, '--unread', '--limit', '5', '--json']);
      expect([code, JSON.parse(out)]).toEqual([0, { notes: [note] }]);
      expect(daemon.requests.at(-1)?.line).toBe('GET /api/v1/inbox?unread=true&limit=5');
    }
    expect((await ctl(['inbox'])).out).toMatch(/^\* {2}01K9ZS3M/m);
    expect((await ctl(['inbox', '--limit', '0'])).code).toBe(2);
    daemon.routes.set('GET /api/v1/inbox', { body: { notes: [] } });
    expect((await ctl(['inbox'])).out).toBe('The inbox is empty.\n');
    expect((await ctl(['inbox', '--unread'])).out).toBe('No unread notifications.\n');
  });

  test('read marks those that are named, or all', async () => {
    const path = `POST /api/v1/inbox/${note.id}:read`;
    daemon.routes.set(path, { body: { ...note, read: true } });
    expect((await ctl(['inbox', 'read', '01K9ZS'])).out).toBe('Marked 1 notification as read.\n');
    expect(daemon.requests.at(-1)?.line).toBe(path);
    const { out } = await ctl(['inbox', 'read', '--all', '--json']);
    expect(JSON.parse(out)).toEqual({ notes: [{ ...note, read: true }] });
    expect((await ctl(['inbox', 'read', 'zzz'])).code).toBe(1);
    expect((await ctl(['inbox', 'read'])).err).toMatch(
      /Name the notifications by id, or use --all\./,
    );
    expect((await ctl(['inbox', 'read', 'x', '--all'])).code).toBe(2);
  });
});
