import { Refusal } from '@millrace/kit/errors';
import { describe, expect, test, vi } from 'vitest';
import { budgetVerdict } from '../core/budget.js';
import { capReached } from '../sessions/sessions.test-support.js';
import { budgetRetryMs } from './outbox.js';
import {
  delivery,
  patience,
  secret,
  taskId,
  useRig,
  type Sent,
} from './queue-callback.test-support.js';

async function refusalOf(sent: Sent, settings?: Parameters<typeof useRig>[0]): Promise<Refusal> {
  const rig = await useRig(settings);
  const error: unknown = await rig.tasks.receive(delivery(sent)).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Refusal);
  expect(rig.sessions.spawned).toEqual([]);
  expect(await rig.store.database.collection('queue_tasks').count()).toBe(0);
  return error as Refusal;
}

describe('a delivery', () => {
  test('of text is a prompt, run headless, and the lease is kept from then on', async () => {
    const rig = await useRig();
    const accepted = await rig.tasks.receive(delivery());
    const [{ id, request }] = rig.sessions.spawned as [(typeof rig.sessions.spawned)[number]];
    expect(accepted).toEqual({ task_id: taskId, session_id: id });
    expect(request).toEqual({
      prompt: 'Review it.',
      driver: 'headless',
      auto_restart: false,
      tags: [`queue-task:${taskId}`],
    });
    await vi.waitFor(() => expect(rig.queue.of('extend').length).toBe(1), patience);
    expect(rig.queue.calls[0]).toEqual({
      act: 'extend',
      taskId,
      leaseToken: 'l1.first',
      authorization: 'Bearer queue-token',
      body: { extend_ms: 900_000 },
    });
  });

  test('of JSON is a SpawnRequest, and may name a driver of its own', async () => {
    const rig = await useRig();
    const body = JSON.stringify({
      prompt: 'Go.',
      backend: 'codex',
      driver: 'tmux',
      tags: ['x'],
      auto_restart: true,
    });
    await rig.tasks.receive(delivery({ body, contentType: 'Application/JSON; charset=utf-8' }));
    expect(rig.sessions.spawned[0]!.request).toMatchObject({
      prompt: 'Go.',
      backend: 'codex',
      driver: 'tmux',
      tags: ['x', `queue-task:${taskId}`],
      auto_restart: false,
    });
  });

  test('of the same attempt answers the session that is there, also when both come at once', async () => {
    const rig = await useRig();
    const [one, other] = await Promise.all([
      rig.tasks.receive(delivery()),
      rig.tasks.receive(delivery()),
    ]);
    expect(other).toEqual(one);
    await rig.restart();
    expect(await rig.tasks.receive(delivery())).toEqual(one);
    expect(rig.sessions.spawned.length).toBe(1);
  });

  test('of another attempt is another session', async () => {
    const rig = await useRig();
    await rig.tasks.receive(delivery());
    const again = { 'X-Queue-Attempt': '2', 'X-Queue-Lease-Token': 'l1.second' };
    await rig.tasks.receive(delivery({ headers: again }));
    const redriven = { 'X-Queue-Redrive-Count': '1', 'X-Queue-Lease-Token': 'l1.third' };
    await rig.tasks.receive(delivery({ headers: redriven }));
    expect(rig.sessions.spawned.length).toBe(3);
    const attempts = rig.sessions.spawned.map(({ origin }) => origin.task);
    expect(attempts).toEqual(
      [1, 2, 1].map((attempt) => ({ id: taskId, queue: 'agents', attempt })),
    );
  });

  test('of the same attempt under a new lease has the report bear that one', async () => {
    const rig = await useRig();
    const { session_id } = await rig.tasks.receive(delivery());
    await rig.tasks.receive(delivery({ headers: { 'X-Queue-Lease-Token': 'l1.new' } }));
    rig.sessions.set(session_id, { status: 'done', exit_code: 0 });
    await vi.waitFor(() => expect(rig.queue.of('complete').length).toBe(1), patience);
    expect(rig.queue.of('complete')[0]!.leaseToken).toBe('l1.new');
    expect(rig.sessions.spawned.length).toBe(1);
  });

  test('over the budget waits in the queue until there may be room again', async () => {
    const rig = await useRig();
    rig.sessions.overBudget = capReached;
    const error = (await rig.tasks
      .receive(delivery())
      .catch((thrown: unknown) => thrown)) as Refusal;
    expect(error.code).toBe('BUDGET_EXCEEDED');
    expect(error.extra.headers).toEqual({ 'X-Queue-Defer': 'true' });
    expect(error.extra.retryAfterMs).toBeGreaterThan(0);
    expect(error.extra.retryAfterMs).toBeLessThanOrEqual(25 * 3_600_000);
    expect(await rig.store.database.collection('queue_tasks').count()).toBe(0);
    rig.sessions.overBudget = undefined;
    await rig.tasks.receive(delivery());
    expect(rig.sessions.spawned.length).toBe(1);
  });

  test('for a backend that is not there is refused as a spawn is', async () => {
    const rig = await useRig();
    rig.sessions.refuseSpawn = () => new Refusal('BACKEND_NOT_FOUND', 'There is none.');
    await expect(rig.tasks.receive(delivery())).rejects.toMatchObject({
      code: 'BACKEND_NOT_FOUND',
    });
  });
});

describe('a delivery is refused', () => {
  test('while there is no secret', async () => {
    const { code, detail } = await refusalOf({}, { callback_secret: undefined });
    expect(code).toBe('FEATURE_DISABLED');
    expect(detail).toContain('queue.callback_secret');
  });

  test.each<[string, Sent]>([
    ['that bears no id', { headers: { 'webhook-id': undefined } }],
    ['that bears no time', { headers: { 'webhook-timestamp': undefined } }],
    ['that bears no signature', { headers: { 'webhook-signature': undefined } }],
    ['whose time is no number', { headers: { 'webhook-timestamp': 'now' } }],
    ['that is too old', { aheadMs: -301_000 }],
    ['that is of the future', { aheadMs: 302_000 }],
    ['that another key signed', { secret: `whsec_${Buffer.from('wrong').toString('base64')}` }],
    ['whose signature is of another kind', { headers: { 'webhook-signature': 'v1a,AAAA' } }],
    ['whose signature is none', { headers: { 'webhook-signature': 'v1,' } }],
  ])('%s', async (_what, sent) => {
    expect((await refusalOf(sent)).code).toBe('BAD_SIGNATURE');
  });

  test('whose bytes are not those that were signed', async () => {
    const rig = await useRig();
    const changed = { ...delivery(), body: new TextEncoder().encode('Delete it.') };
    await expect(rig.tasks.receive(changed)).rejects.toMatchObject({ code: 'BAD_SIGNATURE' });
  });

  test.each<[string, Sent, string]>([
    ['without a queue', { headers: { 'X-Queue-Name': undefined } }, '/X-Queue-Name'],
    ['without a task', { headers: { 'X-Queue-Task-Id': undefined } }, '/X-Queue-Task-Id'],
    ['of another task', { headers: { 'X-Queue-Task-Id': 'other' } }, '/X-Queue-Task-Id'],
    ['without a lease', { headers: { 'X-Queue-Lease-Token': undefined } }, '/X-Queue-Lease-Token'],
    ['without a payload', { body: '' }, ''],
    ['with a blank prompt', { body: ' \n' }, ''],
    ['whose payload is no text', { body: new Uint8Array([0xff, 0xfe, 0x00]) }, ''],
    ['whose prompt is too long', { body: 'x'.repeat(262_145) }, ''],
    ['whose JSON is none', { body: '{', contentType: 'application/json' }, ''],
    [
      'whose JSON is not Unicode',
      { body: '{"prompt":"\\ud800"}', contentType: 'application/json' },
      '',
    ],
    ['whose JSON has no prompt', { body: '{}', contentType: 'application/json' }, '/prompt'],
    [
      'whose JSON has something else',
      { body: '{"prompt":"x","fores":true}', contentType: 'application/json' },
      '/fores',
    ],
  ])('%s', async (_what, sent, pointer) => {
    const { code, extra } = await refusalOf(sent);
    expect(code).toBe('INVALID_REQUEST');
    expect(extra.errors?.map((each) => each.pointer)).toEqual([pointer]);
  });

  test('by any of several signatures that fits, it is not', async () => {
    const rig = await useRig();
    const { headers, ...rest } = delivery();
    const many = `v1,AAAA ${headers['webhook-signature']} v2,x`;
    await rig.tasks.receive({ ...rest, headers: { ...headers, 'webhook-signature': many } });
    expect(rig.sessions.spawned.length).toBe(1);
  });
});

test('a secret that the queue could not sign with is a mistake of the config', async () => {
  await expect(useRig({ callback_secret: 'whsec_not base64' })).rejects.toThrow(
    'queue.callback_secret must be "whsec_" followed by base64',
  );
  expect(secret.startsWith('whsec_')).toBe(true);
});

describe('when the session is over, the task is', () => {
  async function reported(
    change: Parameters<Awaited<ReturnType<typeof useRig>>['sessions']['set']>[1],
  ) {
    const rig = await useRig();
    const { session_id } = await rig.tasks.receive(delivery());
    rig.sessions.say(session_id, 'line one\nline two\nthe last line');
    rig.sessions.set(session_id, { status: 'working', pid: 7 });
    rig.sessions.set(session_id, change);
    await vi.waitFor(() => {
      expect(rig.queue.of('complete').length + rig.queue.of('fail').length).toBe(1);
    }, patience);
    const [call] = rig.queue.calls.filter(({ act }) => act !== 'extend');
    return { rig, session_id, call: call! };
  }

  test('completed when it is done', async () => {
    const { call, session_id } = await reported({ status: 'done', exit_code: 0, pid: null });
    expect(call).toMatchObject({ act: 'complete', taskId, leaseToken: 'l1.first' });
    expect(call.body).toEqual({
      result: {
        session_id,
        backend: 'claude',
        model: null,
        branch: null,
        output: 'line one\nline two\nthe last line',
        exact_usd: null,
      },
    });
  });

  test('completed with the last answer of the agent, not its screen, and what it cost', async () => {
    const rig = await useRig();
    const { session_id } = await rig.tasks.receive(delivery());
    rig.sessions.say(session_id, 'a box around the prompt');
    rig.sessions.answers.set(session_id, 'All tests pass.');
    rig.costs.set(session_id, 0.125);
    rig.sessions.set(session_id, { status: 'idle', model: 'claude-opus-4-5', branch: 'fix' });
    await vi.waitFor(() => expect(rig.queue.of('complete')).toHaveLength(1), patience);
    expect(rig.queue.of('complete')[0]!.body).toEqual({
      result: {
        session_id,
        backend: 'claude',
        model: 'claude-opus-4-5',
        branch: 'fix',
        output: 'All tests pass.',
        exact_usd: 0.125,
      },
    });
  });

  test('completed when an interactive agent is idle after its turn, which then ends', async () => {
    const { call, rig, session_id } = await reported({ status: 'idle' });
    expect(call.act).toBe('complete');
    await vi.waitFor(() => expect(rig.sessions.stopped).toEqual([session_id]), patience);
  });

  test('failed when an API error ended the turn of an interactive agent', async () => {
    const error = 'API Error: 500';
    const { call } = await reported({ status: 'idle', turn_error: error, last_error: error });
    expect(call).toMatchObject({ act: 'fail', body: { error_type: 'AGENT_FAILED', retry: true } });
    expect(call.body['message']).toContain(error);
  });

  test('failed with the end of what the agent said', async () => {
    const { call } = await reported({ status: 'errored', exit_code: 3, last_error: 'it  broke' });
    expect(call).toMatchObject({ act: 'fail', body: { error_type: 'AGENT_FAILED', retry: true } });
    expect(call.body['message']).toBe('it broke\nline one\nline two\nthe last line');
  });

  test('failed with a reason that is not repeated when it is the last that was said', async () => {
    const broken = { status: 'errored', exit_code: 3 } as const;
    const { call } = await reported({ ...broken, last_error: 'the  last line' });
    expect(call.body['message']).toBe('the last line\nline one\nline two');
    const all = await reported({ ...broken, last_error: 'line one\nline two\nthe last line' });
    expect(all.call.body['message']).toBe('line one line two the last line');
  });

  test('failed when the session was lost, to be tried again', async () => {
    const { call } = await reported({ status: 'orphaned' });
    expect(call.body).toMatchObject({ error_type: 'AGENT_LOST', retry: true });
  });

  test('failed for good when a person stopped it', async () => {
    const { call } = await reported({ status: 'done', exit_code: null });
    expect(call.body).toMatchObject({ error_type: 'AGENT_STOPPED', retry: false });
  });

  test('failed until the limit of the provider is over', async () => {
    const limited_until = new Date(Date.now() + 600_000).toISOString();
    const { call, rig, session_id } = await reported({ status: 'rate_limited', limited_until });
    expect(call.body).toMatchObject({ error_type: 'RATE_LIMITED', retry: true, defer: true });
    expect(call.body['retry_after_ms']).toBeGreaterThan(500_000);
    expect(call.body['retry_after_ms']).toBeLessThanOrEqual(600_000);
    await vi.waitFor(() => expect(rig.sessions.stopped).toEqual([session_id]), patience);
    // The attempt did not count: it is delivered again and starts a new session.
    const again = delivery({ headers: { 'X-Queue-Lease-Token': 'after.limit' } });
    expect((await rig.tasks.receive(again)).session_id).not.toBe(session_id);
  });
});

test('a result that is too long keeps its end, and fits into the queue', async () => {
  const rig = await useRig();
  const { session_id } = await rig.tasks.receive(delivery());
  rig.sessions.say(session_id, `${'"\\'.repeat(60_000)}\nand that was it`);
  rig.sessions.set(session_id, { status: 'done', exit_code: 0 });
  await vi.waitFor(() => expect(rig.queue.of('complete').length).toBe(1), patience);
  const { result } = rig.queue.of('complete')[0]!.body as { result: { output: string } };
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(65_536);
  expect(result.output.endsWith('and that was it')).toBe(true);
});

test('a queue that takes no result receives the report without it', async () => {
  const rig = await useRig();
  const { session_id } = await rig.tasks.receive(delivery());
  rig.queue.answer = ({ body }) =>
    'result' in body ? { status: 422, code: 'INVALID_TASK' } : { status: 200 };
  rig.sessions.set(session_id, { status: 'done', exit_code: 0 });
  await expectState(rig, 'settled');
  expect(rig.queue.of('complete').at(-1)!.body).toEqual({});
});

test('a message that is too long keeps its end', async () => {
  const rig = await useRig();
  const { session_id } = await rig.tasks.receive(delivery());
  rig.sessions.say(session_id, `${'ü'.repeat(3_000)}\nand that was it`);
  rig.sessions.set(session_id, { status: 'errored', last_error: 'x'.repeat(5_000) });
  await vi.waitFor(() => expect(rig.queue.of('fail').length).toBe(1), patience);
  const message = String(rig.queue.of('fail')[0]!.body['message']);
  expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1_024);
  expect(message.endsWith('and that was it')).toBe(true);
});

describe('a task whose session', () => {
  test('waits for a person keeps its lease', async () => {
    const rig = await useRig();
    rig.queue.answer = () => ({
      status: 200,
      body: { lease_expires_at: new Date(Date.now() + 1_000).toISOString() },
    });
    const { session_id } = await rig.tasks.receive(delivery());
    rig.sessions.set(session_id, { status: 'waiting_for_input' });
    await vi.waitFor(() => expect(rig.queue.of('extend').length).toBeGreaterThan(2), patience);
    expect(rig.queue.calls.every(({ act }) => act === 'extend')).toBe(true);
  });

  test('is deleted is failed for good', async () => {
    const rig = await useRig();
    const { session_id } = await rig.tasks.receive(delivery());
    await rig.sessions.remove(session_id);
    await vi.waitFor(() => expect(rig.queue.of('fail').length).toBe(1), patience);
    expect(rig.queue.of('fail')[0]!.body).toMatchObject({ retry: false });
  });
});

describe('report to the queue', () => {
  test.each([
    ['answers 503', { status: 503, code: 'STORAGE_UNAVAILABLE' }],
    ['answers 429', { status: 429, code: 'RATE_LIMITED' }],
    ['does not know the token yet', { status: 401, code: 'UNAUTHENTICATED' }],
    ['is not what is there yet', { status: 404 }],
  ])('again when it %s', async (_what, answer) => {
    const rig = await useRig();
    const { session_id } = await rig.tasks.receive(delivery());
    rig.queue.answer = () => answer;
    rig.sessions.set(session_id, { status: 'done', exit_code: 0 });
    await vi.waitFor(() => expect(rig.queue.of('complete').length).toBe(1), patience);
    rig.queue.answer = undefined;
    await vi.waitFor(() => expect(rig.queue.of('complete').length).toBe(2), patience);
    await expectState(rig, 'settled');
  });

  test('after a restart of the daemon what it had not heard', async () => {
    const rig = await useRig();
    const { session_id } = await rig.tasks.receive(delivery());
    rig.queue.answer = () => ({ status: 500 });
    rig.sessions.set(session_id, { status: 'errored', last_error: 'no' });
    await vi.waitFor(() => expect(rig.queue.of('fail').length).toBe(1), patience);
    await rig.tasks.close();
    expect(rig.sessions.listenerCount).toBe(0);
    rig.queue.answer = undefined;
    await rig.restart();
    await expectState(rig, 'settled');
    const [first, second] = rig.queue.of('fail');
    expect(second).toEqual(first);
  });

  test('after a restart of what ended while the daemon was away', async () => {
    const rig = await useRig();
    const { session_id } = await rig.tasks.receive(delivery());
    await rig.tasks.close();
    rig.sessions.set(session_id, { status: 'done', exit_code: 0 });
    await rig.restart();
    await vi.waitFor(() => expect(rig.queue.of('complete').length).toBe(1), patience);
  });

  test('no more when the lease is lost, and the session is stopped', async () => {
    const rig = await useRig();
    rig.queue.answer = () => ({ status: 409, code: 'LEASE_LOST' });
    const { session_id } = await rig.tasks.receive(delivery());
    await vi.waitFor(() => expect(rig.sessions.stopped).toEqual([session_id]), patience);
    await expectState(rig, 'lost');
    expect(rig.queue.calls.length).toBe(1);
    // Handed out again, it is begun again.
    rig.queue.answer = undefined;
    await rig.tasks.receive(delivery({ headers: { 'X-Queue-Lease-Token': 'l1.later' } }));
    expect(rig.sessions.spawned.length).toBe(2);
  });

  test('under the new lease, though word comes late that the old one is lost', async () => {
    const rig = await useRig();
    let answerOld = (_answer: { status: number; code: string }) => {};
    const late = new Promise<{ status: number; code: string }>((resolve) => (answerOld = resolve));
    rig.queue.answer = ({ leaseToken }) => (leaseToken === 'l1.first' ? late : { status: 200 });
    const { session_id } = await rig.tasks.receive(delivery());
    await vi.waitFor(() => expect(rig.queue.of('extend').length).toBe(1), patience);
    await rig.tasks.receive(delivery({ headers: { 'X-Queue-Lease-Token': 'l1.new' } }));
    answerOld({ status: 409, code: 'LEASE_LOST' });
    await vi.waitFor(() => {
      expect(rig.queue.calls.some(({ leaseToken }) => leaseToken === 'l1.new')).toBe(true);
    }, patience);
    await expectState(rig, 'working');
    expect(rig.sessions.stopped).toEqual([]);
    rig.sessions.set(session_id, { status: 'done', exit_code: 0 });
    await expectState(rig, 'settled');
    expect(rig.queue.of('complete').map(({ leaseToken }) => leaseToken)).toEqual(['l1.new']);
  });

  test('is abandoned when the queue refuses it', async () => {
    const rig = await useRig();
    const { session_id } = await rig.tasks.receive(delivery());
    rig.queue.answer = () => ({ status: 422, code: 'INVALID_TASK' });
    rig.sessions.set(session_id, { status: 'done', exit_code: 0 });
    await expectState(rig, 'given_up');
    expect(rig.log.lines.some(({ level }) => level === 'error')).toBe(true);
  });
});

test('a session that was started without an answer to the queue does not go on by itself', async () => {
  const rig = await useRig();
  await rig.tasks.receive(delivery());
  await rig.tasks.close();
  const stored = rig.store.database.collection('queue_tasks');
  const { key, data } = (await stored.findOne())!;
  await stored.updateByKey(key, { ...data, session_id: null, state: 'spawning' });
  await rig.restart();
  expect(rig.sessions.stopped).toEqual([rig.sessions.spawned[0]!.id]);
  expect(await stored.count()).toBe(0);
});

test('there may be room again at midnight, or within the hour where the week is full', () => {
  const evening = new Date(2026, 5, 10, 22, 30).getTime();
  const caps = { isOn: true, dailyUsd: 10, weeklyUsd: 50 };
  const day = budgetVerdict({ dailyUsd: 11, weeklyUsd: 11 }, caps);
  const week = budgetVerdict({ dailyUsd: 11, weeklyUsd: 60 }, caps);
  expect(budgetRetryMs(day, evening)).toBe(90 * 60_000);
  expect(budgetRetryMs(week, evening)).toBe(3_600_000);
  expect(budgetRetryMs(undefined, evening)).toBe(3_600_000);
});

async function expectState(rig: Awaited<ReturnType<typeof useRig>>, state: string): Promise<void> {
  await vi.waitFor(async () => {
    const found = await rig.store.database.collection('queue_tasks').findOne();
    expect(found?.data['state']).toBe(state);
  }, patience);
}
