import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { capReached } from '../sessions/sessions.test-support.js';
import { jobIn, patience, useRig } from './pipelines.test-support.js';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mr-repo-'));
  folders.push(folder);
  return folder;
}

describe('a pipeline of sessions', () => {
  test('runs its jobs headless, in order, and hands on what each one said', async () => {
    const rig = await useRig();
    const repo = newFolder();
    mkdirSync(join(repo, '.git'));
    const { id, status } = await rig.create(
      { build: { backend: 'codex' }, docs: { depends_on: ['build'] } },
      { repo },
    );
    expect(status).toBe('running');
    await rig.finish(id, 'build', 'The build is green.');
    await rig.expectSummary(id, 'running: build done, docs running');
    await rig.finish(id, 'docs', 'Written.');
    const done = await rig.expectSummary(id, 'done: build done, docs done');
    expect(jobIn(done, 'docs').output).toBe('Written.');
    const [build, docs] = rig.sessions.spawned;
    expect(build).toMatchObject({
      request: { prompt: 'Do build.', backend: 'codex', driver: 'headless', repo },
      origin: { pipeline: { id, jobId: 'build' }, idempotencyKey: `pipeline:${id}:build:1` },
    });
    expect(docs!.request.prompt).toBe(
      'Do docs.\n\n## Output of build (done)\n\nThe build is green.',
    );
    expect(docs!.request.backend).toBeUndefined();
  });

  test('stays pending with start false, until it is started', async () => {
    const rig = await useRig();
    const { id, status } = await rig.create({ a: {} }, { start: false });
    expect(status).toBe('pending');
    expect(rig.sessions.spawned).toEqual([]);
    expect((await rig.pipelines.start(id)).status).toBe('running');
    await rig.finish(id, 'a');
    await rig.expectSummary(id, 'done: a done');
  });

  test('needs attention while an agent asks, and goes on with it', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {} });
    const session = await rig.sessionOf(id, 'a');
    rig.sessions.set(session, { status: 'working' });
    rig.sessions.set(session, { status: 'waiting_for_input' });
    await rig.expectSummary(id, 'stalled: a needs_attention');
    rig.sessions.set(session, { status: 'working' });
    await rig.expectSummary(id, 'running: a running');
  });

  test('takes an interactive agent that is idle after its turn as done, and ends it', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {} });
    const session = await rig.sessionOf(id, 'a');
    rig.sessions.say(session, 'All tests pass.');
    rig.sessions.set(session, { status: 'idle' });
    const done = await rig.expectSummary(id, 'done: a done');
    expect(jobIn(done, 'a').output).toBe('All tests pass.');
    await vi.waitFor(() => expect(rig.sessions.stopped).toEqual([session]), patience);
    // A person goes on talking to it: that is no longer the pipeline's business.
    rig.sessions.set(session, { status: 'working' });
    rig.sessions.set(session, { status: 'idle' });
    const next = await rig.create({ a: {} });
    await rig.finish(next.id, 'a');
    await rig.expectSummary(next.id, 'done: a done');
    expect(rig.sessions.stopped).toEqual([session]);
  });

  test.each([
    ['errored', { status: 'errored', last_error: 'it fell over' }, 'it fell over'],
    ['lost', { status: 'orphaned' }, ''],
    ['stopped by a person', { status: 'done', exit_code: null }, ''],
    ['ended at a limit', { status: 'rate_limited', pid: null }, ''],
  ] as const)('fails a job whose session is %s', async (_how, change, output) => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {} });
    rig.sessions.set(await rig.sessionOf(id, 'a'), change);
    const stalled = await rig.expectSummary(id, 'stalled: a failed');
    expect(jobIn(stalled, 'a').output).toBe(output);
  });

  test('fails a job whose session is deleted', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {} });
    await rig.sessions.remove(await rig.sessionOf(id, 'a'));
    await rig.expectSummary(id, 'stalled: a failed');
  });

  test('has an agent at a limit need attention as long as it lives', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {} });
    rig.sessions.set(await rig.sessionOf(id, 'a'), { status: 'rate_limited', pid: 7 });
    await rig.expectSummary(id, 'stalled: a needs_attention');
  });

  test('fails a job that is refused, with the reason', async () => {
    const rig = await useRig();
    rig.sessions.refuseSpawn = () => new Refusal('BACKEND_NOT_ELIGIBLE', 'claude is disabled.');
    const { id } = await rig.create({ a: {}, b: { depends_on: ['a'], run_if: 'failure' } });
    const stalled = await rig.expectSummary(id, 'stalled: a failed, b failed');
    expect(jobIn(stalled, 'a').output).toBe('BACKEND_NOT_ELIGIBLE: claude is disabled.');
  });

  test('takes a conversation for a prompt that no headless run could be given', async () => {
    const rig = await useRig();
    const errors = [{ pointer: '/prompt', message: 'cannot be given: it is too long' }];
    const tooLong = new Refusal('INVALID_REQUEST', 'It is too long.', { errors });
    rig.sessions.refuseSpawn = ({ driver }) => (driver === 'headless' ? tooLong : undefined);
    const { id } = await rig.create({ a: {} });
    await rig.sessionOf(id, 'a');
    expect(rig.sessions.spawned.map(({ request }) => request.driver)).toEqual(['tmux']);
    rig.sessions.refuseSpawn = () => tooLong;
    const other = await rig.create({ a: {} });
    const stalled = await rig.expectSummary(other.id, 'stalled: a failed');
    expect(jobIn(stalled, 'a').output).toBe('INVALID_REQUEST: It is too long.');
  });

  test('is paused by the budget gate, and goes on with force', async () => {
    const rig = await useRig();
    rig.sessions.overBudget = capReached;
    const { id } = await rig.create({ a: {}, b: { depends_on: ['a'] } });
    await rig.expectSummary(id, 'paused: a pending, b pending');
    expect((await rig.pipelines.start(id)).status).toBe('running');
    await rig.finish(id, 'a');
    await rig.finish(id, 'b');
    await rig.expectSummary(id, 'done: a done, b done');
    expect(rig.sessions.spawned.map(({ request }) => request.force)).toEqual([true, true]);
  });

  test('runs failed jobs again when it is started again', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {}, b: { depends_on: ['a'] } });
    await rig.finish(id, 'a', 'No.', false);
    await rig.expectSummary(id, 'stalled: a failed, b skipped');
    await rig.pipelines.start(id);
    await rig.finish(id, 'a', 'Yes.');
    await rig.finish(id, 'b');
    await rig.expectSummary(id, 'done: a done, b done');
    expect(rig.sessions.spawned.map(({ origin }) => origin.idempotencyKey)).toEqual([
      `pipeline:${id}:a:1`,
      `pipeline:${id}:a:2`,
      `pipeline:${id}:b:1`,
    ]);
  });

  test('that is canceled stops its sessions and keeps what they had said', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {}, b: { depends_on: ['a'] } });
    const session = await rig.sessionOf(id, 'a');
    rig.sessions.say(session, 'Half way.');
    expect((await rig.pipelines.cancel(id)).status).toBe('canceled');
    const canceled = await rig.expectSummary(id, 'canceled: a failed, b skipped');
    await vi.waitFor(() => expect(rig.sessions.stopped).toEqual([session]), patience);
    await vi.waitFor(async () => {
      expect(jobIn(await rig.pipelines.get(id), 'a').output).toBe('Half way.');
    }, patience);
    expect(await rig.pipelines.cancel(id)).toMatchObject({ status: canceled.status });
    await expect(rig.pipelines.start(id)).rejects.toMatchObject({ code: 'PIPELINE_STATE' });
  });

  test('lists newest first, and refuses an id that it does not know', async () => {
    const rig = await useRig();
    const older = await rig.create({ a: {} });
    const newer = await rig.create({ a: {} });
    expect((await rig.pipelines.list()).map(({ id }) => id)).toEqual([newer.id, older.id]);
    await expect(rig.pipelines.get('nobody')).rejects.toMatchObject({ code: 'PIPELINE_NOT_FOUND' });
    await expect(rig.pipelines.start('x')).rejects.toMatchObject({ code: 'PIPELINE_NOT_FOUND' });
    await expect(rig.pipelines.cancel('x')).rejects.toMatchObject({ code: 'PIPELINE_NOT_FOUND' });
  });

  test('cuts what an agent said to its end', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {} });
    await rig.finish(id, 'a', `${'x'.repeat(20_000)}\n${'the end '.repeat(500)}`);
    const { output } = jobIn(await rig.expectSummary(id, 'done: a done'), 'a');
    expect(Buffer.byteLength(output!)).toBeLessThanOrEqual(16_384);
    expect(output!.endsWith('the end')).toBe(true);
  });
});

describe('after a restart of the daemon a pipeline', () => {
  test('goes on with what happened meanwhile', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {}, b: { depends_on: ['a'] } });
    const session = await rig.sessionOf(id, 'a');
    await rig.pipelines.close();
    expect(rig.sessions.listenerCount).toBe(0);
    rig.sessions.set(session, { status: 'done', exit_code: 0 });
    await rig.restart();
    await rig.finish(id, 'b');
    await rig.expectSummary(id, 'done: a done, b done');
    expect(rig.sessions.spawned.length).toBe(2);
  });

  test('starts no job twice, though it ended before the session was noted', async () => {
    const rig = await useRig();
    const spawn = rig.sessions.spawn.bind(rig.sessions);
    const started = new Promise<void>((resolve) => {
      rig.sessions.spawn = async (request, origin) => {
        await spawn(request, origin);
        resolve();
        throw new Error('the daemon was killed here');
      };
    });
    const { id } = await rig.create({ a: {} });
    await started;
    await rig.pipelines.close();
    // As a kill leaves it: the session is there and the job does not know of it.
    const stored = rig.store.database.collection<{ status: string; jobs: object[] }>('pipelines');
    const { data } = (await stored.findByKey(id))!;
    const jobs = data.jobs.map((job) => ({
      ...job,
      status: 'running',
      session_id: null,
      output: null,
    }));
    await stored.updateByKey(id, { ...data, status: 'running', jobs });
    rig.sessions.spawn = spawn;
    await rig.restart();
    await rig.finish(id, 'a');
    await rig.expectSummary(id, 'done: a done');
    expect(rig.sessions.spawned.length).toBe(1);
  });

  test('leaves no session behind that was on its way when it was canceled', async () => {
    const rig = await useRig();
    const { id } = await rig.create({ a: {} }, { start: false });
    await rig.pipelines.cancel(id);
    await rig.pipelines.close();
    const late = rig.sessions.add({ pipeline_id: id, job_id: 'a', status: 'working' });
    await rig.restart();
    await vi.waitFor(() => expect(rig.sessions.stopped).toEqual([late.id]), patience);
  });

  test('that was paused or never started is left as it was', async () => {
    const rig = await useRig();
    rig.sessions.overBudget = capReached;
    const paused = await rig.create({ a: {} });
    await rig.expectSummary(paused.id, 'paused: a pending');
    const pending = await rig.create({ a: {} }, { start: false });
    rig.sessions.overBudget = undefined;
    await rig.restart();
    await rig.expectSummary(paused.id, 'paused: a pending');
    await rig.expectSummary(pending.id, 'pending: a pending');
    expect(rig.sessions.spawned).toEqual([]);
  });
});

describe('a definition is refused', () => {
  const errorsOf = async (jobs: Parameters<Awaited<ReturnType<typeof useRig>>['create']>[0]) => {
    const rig = await useRig();
    const error: unknown = await rig.create(jobs).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Refusal);
    return error as Refusal;
  };

  test('with a cycle, which is named', async () => {
    const { code, extra } = await errorsOf({
      a: {},
      b: { depends_on: ['a', 'd'] },
      c: { depends_on: ['b'] },
      d: { depends_on: ['c'] },
    });
    expect(code).toBe('INVALID_REQUEST');
    expect(extra.errors).toEqual([
      { pointer: '/jobs/1/depends_on', message: 'is a cycle: b -> d -> c -> b' },
    ]);
  });

  test('with a job that depends on itself', async () => {
    const { extra } = await errorsOf({ a: { depends_on: ['a'] } });
    expect(extra.errors).toEqual([
      { pointer: '/jobs/0/depends_on', message: 'is a cycle: a -> a' },
    ]);
  });

  test('with a dependency that is not there, and says what may be meant', async () => {
    const { detail, extra } = await errorsOf({ build: {}, docs: { depends_on: ['biuld'] } });
    expect(extra.errors).toEqual([
      {
        pointer: '/jobs/1/depends_on/0',
        message: 'names the job "biuld", which does not exist; did you mean build?',
      },
    ]);
    expect(detail).toContain('/jobs/1/depends_on/0 names the job "biuld"');
  });

  test('with an id that two jobs have', async () => {
    const rig = await useRig();
    const jobs = ['a', 'b', 'a'].map((id) => ({ id, prompt: 'x' }));
    await expect(rig.pipelines.create({ name: 'n', start: true, jobs })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
      extra: { errors: [{ pointer: '/jobs/2/id' }] },
    });
  });

  test('with a placeholder for a job that does not come before', async () => {
    const { extra } = await errorsOf({
      a: {},
      b: { prompt: 'Use {{jobs.a.output}}', depends_on: [] },
    });
    expect(extra.errors).toEqual([
      {
        pointer: '/jobs/1/prompt',
        message: 'uses the output of "a", which the job does not depend on',
      },
    ]);
  });

  test('with an unknown backend, a repository that is not there, or too much text', async () => {
    const rig = await useRig();
    await expect(rig.create({ a: { backend: 'claud' } })).rejects.toMatchObject({
      code: 'BACKEND_NOT_FOUND',
      detail: '/jobs/0: backend "claud" does not exist; did you mean claude?',
    });
    for (const [repo, message] of [
      ['/nowhere/at/all', 'does not exist'],
      ['src', 'must be an absolute path'],
      [newFolder(), 'is not in a git repository'],
    ] as const) {
      await expect(rig.create({ a: {} }, { repo })).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        extra: { errors: [{ pointer: '/repo', message }] },
      });
    }
    const long = Object.fromEntries(
      Array.from({ length: 6 }, (_, n) => [`j${n}`, { prompt: 'x'.repeat(250_000) }]),
    );
    await expect(rig.create(long)).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    expect(await rig.pipelines.list()).toEqual([]);
  });
});

test('a pipeline as large as may be is kept with all its outputs', async () => {
  const rig = await useRig();
  const jobs = Object.fromEntries(
    Array.from({ length: 10 }, (_, n) => [`j${n}`, { prompt: 'ü'.repeat(60_000) }]),
  );
  const { id } = await rig.create(jobs);
  for (const jobId of Object.keys(jobs)) await rig.finish(id, jobId, 'ö'.repeat(100_000));
  await vi.waitFor(async () => expect((await rig.pipelines.get(id)).status).toBe('done'), patience);
});
