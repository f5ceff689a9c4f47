import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { describe, expect, test } from 'vitest';
import { flowServer, type Body, type Claimed, type OpenStore } from './flow-server.js';

/** What flows do where they meet groups, limits, retention, schedules and grants. */
export function flowEdgeTests(name: string, openStore?: OpenStore): void {
  describe(`edges of flows on ${name}`, () => {
    const server = flowServer(openStore);
    const { get, post, put, configure, submit, claim, complete, failFor, task, refusal } = server;
    const newId = () => systemRandom.ulid(systemClock.now());
    const later = (ms: number) => new Date(systemClock.now() + ms).toISOString();
    const suspend = (held: Claimed, wait: Body) => complete(held, { suspend: wait });
    const stats = async (queue: string) => (await get(`/v1/queues/${queue}/stats`)).body;
    const record = ({ id, lease_token }: Claimed, body: Body) =>
      post(`/v1/tasks/${id}/steps`, { lease_token, ...body });

    test('groups: neither a blocked nor a suspended task holds its turn', async () => {
      await configure('mail.group', { ordering: { mode: 'group' } });
      const group_key = 'g';
      const open = await submit({ handler_ref: 'never' }, 'mail.two');
      const blocked = await submit(
        { handler_ref: 'g', group_key, depends_on: [open] },
        'mail.group',
      );
      const first = await submit({ handler_ref: 'g', group_key }, 'mail.group');
      const second = await submit({ handler_ref: 'g', group_key }, 'mail.group');
      const held = await claim('g', 'mail.group');
      expect(held.id).toBe(first);
      await suspend(held, { signals: ['go'] });
      expect((await claim('g', 'mail.group')).id).toBe(second);
      expect(await task(blocked)).toMatchObject({ waiting_for: 'dependencies' });
    });

    test('max_in_flight: a suspended task takes no place', async () => {
      await configure('mail.one', { limits: { max_in_flight: 1 } });
      await submit({ handler_ref: 'm' }, 'mail.one');
      const second = await submit({ handler_ref: 'm' }, 'mail.one');
      await suspend(await claim('m', 'mail.one'), { until: later(600_000) });
      expect((await claim('m', 'mail.one')).id).toBe(second);
      expect(await stats('mail.one')).toMatchObject({ suspended: 1, blocked: 0, in_flight: 1 });
    });

    test('expiry: ends blocked and suspended tasks', async () => {
      await configure('mail.expiry');
      const open = await submit({ handler_ref: 'never' }, 'mail.two');
      const expires_at = later(700);
      const blocked = await submit({ expires_at, depends_on: [open] }, 'mail.expiry');
      const waiting = await submit({ handler_ref: 'e', expires_at }, 'mail.expiry');
      const after = await submit({ depends_on: [waiting] }, 'mail.expiry');
      await suspend(await claim('e', 'mail.expiry'), { signals: ['go'] });
      await expect.poll(async () => (await task(after))['status']).toBe('DEAD');
      for (const id of [blocked, waiting]) {
        expect(await task(id)).toMatchObject({ status: 'DEAD', dead_reason: 'EXPIRED' });
      }
      expect(await task(after)).toMatchObject({ dead_reason: 'DEPENDENCY_FAILED' });
    });

    test('dependencies: cancelled and purged ones fail; a succeeded one that is gone is unknown', async () => {
      await configure('mail.gone');
      const cancelled = await submit({ handler_ref: 'never' }, 'mail.gone');
      const one = await submit({ depends_on: [cancelled] }, 'mail.gone');
      const end = await submit(
        { handler_ref: 'end', depends_on: [{ id: cancelled, on: 'end' }] },
        'mail.gone',
      );
      await post(`/v1/tasks/${cancelled}:cancel`, {});
      expect(await task(one)).toMatchObject({ status: 'DEAD', dead_reason: 'DEPENDENCY_FAILED' });
      const held = await claim('end', 'mail.gone');
      expect(held).toMatchObject({ id: end, dependencies: [{ id: cancelled, status: 'DEAD' }] });
      await complete(held);
      await post('/v1/queues/mail.gone/dlq:purge', { ids: [cancelled] });
      const late = await post('/v1/queues/mail/tasks', {
        handler_ref: 'x',
        depends_on: [cancelled],
      });
      expect(refusal(late)).toEqual([422, 'INVALID_TASK', '/depends_on/0']);
      // Its end is remembered, though it is gone.
      await post('/v1/queues/mail.gone/dlq:redrive', { ids: [one] });
      expect(await task(one)).toMatchObject({ status: 'DEAD', dead_reason: 'DEPENDENCY_FAILED' });
      expect((await task(one))['depends_on']).toEqual([
        { id: cancelled, on: 'success', status: 'DEAD' },
      ]);
    });

    test('dependencies: a chain of 300 dies in one pass and comes back with its first', async () => {
      await configure('mail.chain', { retry: { max_attempts: 1 } });
      const tasks = Array.from({ length: 300 }, (_, i) => ({
        key: `t${i}`,
        queue: 'mail.chain',
        handler_ref: `c${i}`,
        ...(i > 0 && { depends_on: [`t${i - 1}`] }),
      }));
      const flow = await post('/v1/flows', { tasks });
      expect(flow.status, flow.text).toBe(202);
      const ids = (flow.body['tasks'] as { id: string }[]).map(({ id }) => id);
      await failFor(await claim('c0', 'mail.chain'), 'mail.chain');
      expect(await task(ids[299]!)).toMatchObject({ status: 'DEAD' });
      const back = await post('/v1/queues/mail.chain/dlq:redrive', { ids: [ids[0]] });
      expect(back.body).toEqual({ count: 1, dependents: 299 });
      expect(await stats('mail.chain')).toMatchObject({ pending: 300, blocked: 299 });
    });

    test('changes: no time set by an operator starts a blocked task', async () => {
      const open = await submit({ handler_ref: 'never' }, 'mail.two');
      const blocked = await submit({ handler_ref: 'early', depends_on: [open] });
      expect((await post(`/v1/tasks/${blocked}:run-now`, {})).status).not.toBe(200);
      await server.send({
        method: 'PATCH',
        path: `/v1/tasks/${blocked}`,
        body: { run_at: later(0) },
        token: 'token-of-root',
      });
      expect(await claim('early', 'mail', 300)).toBeUndefined();
      expect(await task(blocked)).toMatchObject({ waiting_for: 'dependencies' });
    });

    test('delay: a dependent waits for its own time as well', async () => {
      const first = await submit({ handler_ref: 'first' });
      const delayed = await submit({
        handler_ref: 'delayed',
        delay_ms: 600_000,
        depends_on: [first],
      });
      await complete(await claim('first'));
      expect(await task(delayed)).toMatchObject({ waiting_for: 'time' });
    });

    test('steps: limits, atomic lists, and none without the lease', async () => {
      await configure('mail.steps', { limits: { max_steps: 3 }, retry: { max_attempts: 1 } });
      await submit({ handler_ref: 's' }, 'mail.steps');
      const held = await claim('s', 'mail.steps');
      expect((await record(held, { name: 'n'.repeat(201) })).status).toBe(422);
      const list = { steps: ['a', 'b', 'c', 'd'].map((each) => ({ name: each })) };
      expect(refusal(await record(held, list))).toEqual([422, 'TOO_MANY_STEPS']);
      const run = await get(`/v1/tasks/${held.id}/run`);
      expect(run.body['steps']).toEqual([]);
      expect((await record(held, { name: 'a', result: null })).body).toMatchObject({
        result: null,
      });
      expect((await record(held, { name: 'x', what: 1 })).status).toBe(422);
      await complete(held);
      expect(refusal(await record(held, { name: 'late' }))).toEqual([409, 'LEASE_LOST']);
    });

    test.each(['settle', 'complete'])(
      '%s: records steps in the same commit, or does neither',
      async (by) => {
        await configure('mail.settle', { limits: { max_steps: 2 } });
        const id = await submit({ handler_ref: 's' }, 'mail.settle');
        const settle = async (held: Claimed, { outcome, ...item }: Body) => {
          if (by === 'complete') {
            const body = { lease_token: held.lease_token, ...item };
            const answer = await post(`/v1/tasks/${id}:complete`, body);
            return { status: answer.status, error: answer.body as { code: string } };
          }
          const items = [{ id, lease_token: held.lease_token, outcome, ...item }];
          const answer = await post('/v1/queues/mail.settle/tasks:settle', { items });
          return (answer.body as unknown as { status: number; error?: { code: string } }[])[0]!;
        };
        const steps = (...names: string[]) => ({ steps: names.map((each) => ({ name: each })) });
        const first = await claim('s', 'mail.settle');
        await post(`/v1/tasks/${id}/signals`, { name: 'go', id: 's1' });
        const suspension = { outcome: 'suspend', suspend: { signals: ['go', 'on'] } };
        if (by === 'settle') {
          const failed = await settle(first, { outcome: 'fail', ...steps('a') });
          expect(failed.error!.code).toBe('INVALID_CLAIM');
          const done = await settle(first, { ...suspension, outcome: 'complete' });
          expect([done.status, done.error!.code]).toEqual([422, 'INVALID_CLAIM']);
        }
        const refused = await settle(first, { ...suspension, result: 1 });
        expect(refused.status).toBe(422);
        const many = await settle(first, { ...suspension, ...steps('a', 'b', 'c') });
        expect([many.status, many.error!.code]).toEqual([422, 'TOO_MANY_STEPS']);
        expect(await task(id)).toMatchObject({ status: 'IN_FLIGHT' });
        const read = [{ name: 'a', result: 1, consumes: ['s1'] }];
        expect((await settle(first, { ...suspension, steps: read })).status).toBe(200);
        expect(await task(id)).toMatchObject({ waiting_for: 'signal' });
        expect((await settle(first, { ...suspension, ...steps('late') })).status).toBe(200);
        await post(`/v1/tasks/${id}/signals`, { name: 'on' });
        const second = await claim('s', 'mail.settle');
        expect(second).toMatchObject({
          steps: [{ name: 'a', result: 1 }],
          signals: [{ name: 'on' }],
        });
        const after = await submit({ handler_ref: 'after', depends_on: [id] }, 'mail.settle');
        const done = { outcome: 'complete', result: 2, ...steps('z') };
        expect((await settle(second, done)).status).toBe(200);
        const run = (await get(`/v1/tasks/${id}/run`)).body;
        expect(run['steps']).toMatchObject([{ name: 'a' }, { name: 'z' }]);
        const dependent = await claim('after', 'mail.settle');
        expect(dependent).toMatchObject({ id: after, dependencies: [{ id, result: 2 }] });
      },
    );

    test('steps: a journal has at most 8 MiB', async () => {
      await submit({ handler_ref: 'journal' });
      const held = await claim('journal');
      const result = 'x'.repeat(262_000);
      for (let i = 0; i < 4; i++) {
        const steps = Array.from({ length: 8 }, (_, n) => ({ name: `${i}-${n}`, result }));
        const answer = await record(held, { steps });
        if (answer.status !== 200) throw new Error(`${i}: ${answer.text.slice(0, 300)}`);
      }
      expect(refusal(await record(held, { name: 'more', result }))).toEqual([
        413,
        'STEP_TOO_LARGE',
      ]);
      await complete(held);
    });

    test('signals: in order, at most 100 unread, large ones refused, consumed once', async () => {
      const id = await submit({ handler_ref: 'signals' });
      const held = await claim('signals');
      const send = (body: Body) => post(`/v1/tasks/${id}/signals`, body);
      for (let i = 0; i < 100; i++) await send({ name: 'n', payload: i, id: `s${i}` });
      const full = await send({ name: 'n' });
      expect(refusal(full)).toEqual([429, 'SIGNALS_FULL']);
      expect(full.headers['retry-after']).toBeTruthy();
      expect((await send({ name: 'n', id: 's7' })).status).toBe(202);
      expect((await send({ name: 'n', payload: 'x'.repeat(65_536) })).status).toBe(422);
      const consumes = ['s0', 's1'];
      expect((await record(held, { name: 'r', consumes })).body).toMatchObject({ recorded: true });
      expect((await record(held, { name: 'r2', consumes })).status).toBe(200);
      await suspend(held, { signals: ['n'] });
      const woken = await claim('signals');
      const left = woken['signals'] as { payload: number }[];
      expect(left.map(({ payload }) => payload)).toEqual(
        Array.from({ length: 98 }, (_, i) => i + 2),
      );
      expect(woken['woken_by']).toMatchObject({ kind: 'signal', name: 'n' });
      await complete(woken);
    });

    test('suspend: mode all waits for each, and a time ends any wait', async () => {
      const id = await submit({ handler_ref: 'all' });
      const first = await claim('all');
      await suspend(first, { signals: ['a', 'b'], mode: 'all' });
      await post(`/v1/tasks/${id}/signals`, { name: 'a' });
      expect(await task(id)).toMatchObject({ waiting_for: 'signal' });
      await post(`/v1/tasks/${id}/signals`, { name: 'b' });
      const second = await claim('all');
      expect(second).toMatchObject({ attempt: 1, woken_by: { kind: 'signal', name: 'b' } });
      const child = await submit({ handler_ref: 'never' }, 'mail.two');
      await suspend(second, { tasks: [child], signals: ['c'], mode: 'all', until: later(300) });
      const third = await claim('all');
      expect(third).toMatchObject({ attempt: 1, woken_by: { kind: 'timer' } });
      expect(third['children']).toMatchObject([{ id: child, status: 'PENDING' }]);
      await suspend(third, { until: later(-1_000) });
      const last = await claim('all');
      expect(last['woken_by']).toEqual({ kind: 'timer' });
      const again = await post(`/v1/tasks/${id}:complete`, {
        lease_token: third.lease_token,
        suspend: { signals: ['z'] },
      });
      expect(again.status, again.text).toBe(200);
      await complete(last);
    });

    test('schedule: takes depends_on, and overlap skip counts waiting tasks', async () => {
      await configure('mail.cron');
      const open = await submit({ handler_ref: 'never' }, 'mail.two');
      const path = '/v1/queues/mail.cron/schedules/nightly';
      const body = {
        every_ms: 3_600_000,
        overlap: 'skip',
        task: { handler_ref: 'cron', depends_on: [open] },
      };
      const made = await put(path, body);
      expect(made.status, made.text).toBe(200);
      await post(`${path}:run-now`, {});
      expect(await stats('mail.cron')).toMatchObject({ pending: 1, blocked: 1 });
      const [only] = (await get('/v1/queues/mail.cron/tasks')).body['tasks'] as Body[];
      expect(only).toMatchObject({ waiting_for: 'dependencies', depends_on: [{ id: open }] });
    });

    test('flow: bad ones name each fault; a missing queue and unknown fields are refused', async () => {
      const good = { key: 'a', queue: 'mail', handler_ref: 'x' };
      const bad = async (...tasks: unknown[]) => {
        const answer = await post('/v1/flows', { tasks });
        const errors = (answer.body['errors'] ?? []) as { pointer: string }[];
        return [answer.status, answer.body['code'], ...errors.map(({ pointer }) => pointer)];
      };
      expect(await bad(good, { ...good })).toEqual([422, 'INVALID_FLOW', '/tasks/1/key']);
      expect(await bad({ ...good, depends_on: [newId()] })).toEqual([
        422,
        'INVALID_FLOW',
        '/tasks/0/depends_on/0',
      ]);
      expect(
        await bad(
          { ...good, depends_on: ['b'] },
          { ...good, key: 'c', depends_on: [{ key: 'nope' }] },
        ),
      ).toEqual([422, 'INVALID_FLOW', '/tasks/0/depends_on/0', '/tasks/1/depends_on/0']);
      expect((await bad({ ...good, what: 1 })).slice(0, 2)).toEqual([422, 'INVALID_FLOW']);
      expect((await bad()).slice(0, 2)).toEqual([422, 'INVALID_FLOW']);
      expect(
        (await bad(...Array.from({ length: 1_001 }, (_, i) => ({ ...good, key: `${i}` }))))[0],
      ).toBe(422);
      expect((await bad({ ...good, queue: 'mail.none' })).slice(0, 1)).toEqual([404]);
      expect((await stats('mail.none'))['code']).toBe('QUEUE_NOT_FOUND');
    });

    test('cancel: cascade false leaves the children; a whole tree is cancelled', async () => {
      const parent = await submit({ handler_ref: 'tree' });
      const held = await claim('tree');
      const link = { parent_id: parent, parent_lease_token: held.lease_token };
      const child = await submit({ handler_ref: 'tree-child', ...link });
      const low = await claim('tree-child');
      const grandchild = await submit({
        handler_ref: 'never',
        parent_id: child,
        parent_lease_token: low.lease_token,
      });
      const other = await submit({ handler_ref: 'tree' });
      await claim('tree');
      const left = await submit({ handler_ref: 'never', parent_id: other });
      await post(`/v1/tasks/${other}:cancel`, { cascade: false });
      expect(await task(left)).toMatchObject({ status: 'PENDING', parent_id: other });
      await post(`/v1/tasks/${parent}:cancel`, {});
      expect(await task(grandchild)).toMatchObject({ status: 'DEAD', dead_reason: 'CANCELLED' });
      const tree = (await get(`/v1/tasks/${parent}/tree`)).body['root'] as { children: Body[] };
      expect(tree.children).toMatchObject([{ id: child, children: [{ id: grandchild }] }]);
      const body = { handler_ref: 'x', parent_id: newId() };
      for (const orphan of [body, { ...body, parent_lease_token: 'l1.none' }]) {
        const expected = [422, 'INVALID_TASK', '/parent_id'];
        expect(refusal(await post('/v1/queues/mail/tasks', orphan))).toEqual(expected);
      }
    });

    test('results: above 256 KiB together are left out of a claim', async () => {
      await configure('mail.large');
      const ids = [];
      for (const handler_ref of ['l1', 'l2', 'l3', 'l4', 'l5']) {
        ids.push(await submit({ handler_ref }, 'mail.large'));
        await complete(await claim(handler_ref, 'mail.large'), { result: 'x'.repeat(60_000) });
      }
      await submit({ handler_ref: 'last', depends_on: ids }, 'mail.large');
      expect((await claim('last', 'mail.large'))['dependencies']).toMatchObject(
        ids.map((id) => ({ id, status: 'SUCCEEDED', result_omitted: true })),
      );
    });

    test('age: a woken task counts from when it became due', async () => {
      await configure('mail.age');
      const id = await submit({ handler_ref: 'age' }, 'mail.age');
      await suspend(await claim('age', 'mail.age'), { signals: ['go'] });
      await new Promise((resolve) => setTimeout(resolve, 400));
      expect(await stats('mail.age')).toMatchObject({ oldest_pending_age_ms: 0, suspended: 1 });
      await post(`/v1/tasks/${id}/signals`, { name: 'go' });
      const woken = await stats('mail.age');
      expect(woken).toMatchObject({ suspended: 0, pending: 1 });
      expect(woken['oldest_pending_age_ms']).toBeLessThan(400);
    });

    test('bulk: a cancel of several tasks takes their children along', async () => {
      await configure('mail.bulk');
      await submit({ handler_ref: 'bulk' }, 'mail.bulk');
      const held = await claim('bulk', 'mail.bulk');
      const child = await submit({ handler_ref: 'never', parent_id: held.id });
      await suspend(held, { tasks: [child] });
      const done = await post('/v1/queues/mail.bulk/tasks:cancel', { filter: {} });
      expect([done.status, done.body]).toEqual([200, { count: 1 }]);
      expect(await task(child)).toMatchObject({ status: 'DEAD', dead_reason: 'CANCELLED' });
    });
  });
}
