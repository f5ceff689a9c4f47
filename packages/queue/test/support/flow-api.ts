import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { describe, expect, test } from 'vitest';
import { flowServer, type Body, type OpenStore } from './flow-server.js';
import { tokens, type Who } from './server.js';

/** Flows over REST, on the whole server with one kind of store. */
export function flowApiTests(name: string, openStore?: OpenStore): void {
  describe(`flows over REST on ${name}`, () => {
    const { post, get, submit, claim, complete, failFor, task, send } = flowServer(openStore);

    test('depends_on: a task waits, is claimed with results, and lists its dependencies', async () => {
      const a = await submit({ handler_ref: 'dep-a' }, 'mail.two');
      const b = await submit({ handler_ref: 'dep-b', depends_on: [a, { id: a, on: 'end' }] });
      expect(await task(b)).toMatchObject({
        status: 'PENDING',
        waiting_for: 'dependencies',
        next_attempt_at: null,
        depends_on: [{ id: a, on: 'success', status: 'PENDING' }],
      });
      const stats = (await get('/v1/queues/mail/stats')).body;
      expect(stats).toMatchObject({ blocked: 1, suspended: 0, pending: 1 });
      expect(stats['oldest_pending_age_ms']).toBe(0);
      expect(await claim('dep-b', 'mail', 0)).toBeUndefined();
      await complete(await claim('dep-a', 'mail.two'), { result: { n: 1 } });
      const claimed = await claim('dep-b');
      expect(claimed['dependencies']).toEqual([
        { id: a, handler_ref: 'dep-a', status: 'SUCCEEDED', result: { n: 1 } },
      ]);
      const listed = (await get('/v1/queues/mail/tasks')).body['tasks'] as Body[];
      expect(listed[0]!['depends_on']).toEqual([{ id: a, on: 'success', status: 'SUCCEEDED' }]);
      await complete(claimed);
    });

    test('depends_on: bad ones are refused with a pointer', async () => {
      const unknown = systemRandom.ulid(0);
      const bad = async (dependsOn: unknown, who: Who = 'root') => {
        const body = { handler_ref: 'a', depends_on: dependsOn };
        const answer = await post('/v1/queues/mail/tasks', body, who);
        const [error] = (answer.body['errors'] ?? [{}]) as { pointer?: string }[];
        return [answer.status, answer.body['code'], error!.pointer];
      };
      expect(await bad([unknown])).toEqual([422, 'INVALID_TASK', '/depends_on/0']);
      expect(await bad(['nonsense'])).toEqual([422, 'INVALID_TASK', '/depends_on/0']);
      expect(await bad([{ id: unknown, on: 'maybe' }])).toContain('INVALID_TASK');
      expect(await bad(Array(101).fill(unknown))).toContain('INVALID_TASK');
      const hidden = await submit({}, 'other');
      expect(await bad([hidden], 'submitter')).toEqual([422, 'INVALID_TASK', '/depends_on/0']);
      expect(
        (await post('/v1/queues/mail/tasks', { handler_ref: 'a', depends_on: [] })).status,
      ).toBe(202);
    });

    test('batch: items name each other; a cycle refuses what is on it and after it', async () => {
      const [a, b, c, d, e] = Array.from({ length: 5 }, () => systemRandom.ulid(systemClock.now()));
      const item = (id: string, ...depends_on: string[]) => ({ id, handler_ref: 'b', depends_on });
      const body = [item(a!, b!), item(b!), item(c!, d!), item(d!, c!), item(e!, d!)];
      const answer = await post('/v1/queues/mail/tasks:batch', body);
      const results = answer.body as unknown as { status: number; error?: { errors: Body[] } }[];
      expect(results.map(({ status }) => status)).toEqual([202, 202, 422, 422, 422]);
      expect(results[2]!.error!.errors[0]!['message']).toContain('itself');
      expect(results[4]!.error!.errors[0]!['message']).toContain('refused');
      expect(await task(a!)).toMatchObject({ waiting_for: 'dependencies' });
    });

    test('failure: kills dependents in any queue; a redrive brings them back', async () => {
      const a = await submit({ handler_ref: 'fail' });
      const b = await submit({ handler_ref: 'x', depends_on: [a] }, 'mail.two');
      const c = await submit({ handler_ref: 'x', depends_on: [b] });
      const end = await submit({ handler_ref: 'after', depends_on: [{ id: a, on: 'end' }] });
      await failFor(await claim('fail'));
      expect(await task(c)).toMatchObject({
        status: 'DEAD',
        dead_reason: 'DEPENDENCY_FAILED',
        last_error: { error_type: 'DEPENDENCY_FAILED' },
      });
      expect(
        String((await task(b))['last_error'] && JSON.stringify((await task(b))['last_error'])),
      ).toContain(a);
      expect((await claim('after')).id).toBe(end);
      const late = await post('/v1/queues/mail/tasks', { handler_ref: 'x', depends_on: [a] });
      expect([late.status, late.body['status']]).toEqual([202, 'DEAD']);
      const redrive = await post('/v1/queues/mail/dlq:redrive', { ids: [a] });
      expect(redrive.body).toEqual({ count: 1, dependents: 3 });
      expect(await task(c)).toMatchObject({ status: 'PENDING', waiting_for: 'dependencies' });
      await failFor(await claim('fail'));
      const alone = await post('/v1/queues/mail/dlq:redrive', { ids: [a], with_dependents: false });
      expect(alone.body).toEqual({ count: 1 });
      expect(await task(b)).toMatchObject({ status: 'DEAD' });
      await complete(await claim('fail'));
    });

    test('flow: all or nothing, idempotent, listed by its id', async () => {
      const flow_id = systemRandom.ulid(systemClock.now());
      const tasks = [
        {
          key: 'test',
          queue: 'mail',
          handler_ref: 'flow',
          depends_on: [{ key: 'build', on: 'end' }],
        },
        { key: 'build', queue: 'mail.two', handler_ref: 'flow' },
      ];
      const first = await post('/v1/flows', { flow_id, tasks });
      expect(first.status, first.text).toBe(202);
      const ids = first.body['tasks'] as { key: string; id: string }[];
      expect(ids.map(({ key }) => key)).toEqual(['test', 'build']);
      const again = await post('/v1/flows', { flow_id, tasks });
      expect([again.status, again.body]).toEqual([202, first.body]);
      const listed = (await get(`/v1/queues/mail/tasks?flow_id=${flow_id}`)).body[
        'tasks'
      ] as Body[];
      expect(listed).toMatchObject([{ id: ids[0]!.id, flow_id }]);
      const graph = (await get(`/v1/flows/${flow_id.toLowerCase()}`)).body;
      expect(graph).toMatchObject({
        flow_id,
        tasks: [
          { key: 'test', status: 'PENDING', waiting_for: 'dependencies', queue: 'mail' },
          { key: 'build', status: 'PENDING', depends_on: [], ended_at: null },
        ],
      });
      const [testTask] = graph['tasks'] as Body[];
      expect(testTask!['depends_on']).toEqual([{ id: ids[1]!.id, on: 'end', status: 'PENDING' }]);
      expect((await get(`/v1/flows/${flow_id}`, 'stranger')).status).toBe(404);
      expect((await get(`/v1/flows/${ids[0]!.id}`)).status).toBe(404);
      const bad = await post('/v1/flows', {
        tasks: [
          { key: 'a', queue: 'mail', handler_ref: 'x', depends_on: ['b'] },
          { key: 'b', queue: 'mail', handler_ref: 'x', depends_on: ['a'] },
        ],
      });
      expect([bad.status, bad.body['code']]).toEqual([422, 'INVALID_FLOW']);
      expect(bad.body['errors']).toMatchObject([
        { pointer: '/tasks/0/depends_on' },
        { pointer: '/tasks/1/depends_on' },
      ]);
      const unknown = await post('/v1/flows', {
        tasks: [{ key: 'a', queue: 'mail', handler_ref: 'x', depends_on: ['nope'], priority: 77 }],
      });
      expect(unknown.body).toMatchObject({ code: 'INVALID_FLOW' });
      const forbidden = await post(
        '/v1/flows',
        { tasks: [{ key: 'a', queue: 'other', handler_ref: 'x' }] },
        'submitter',
      );
      expect(forbidden.status).toBe(403);
      await complete(await claim('flow', 'mail.two'), { result: 5 });
      expect((await claim('flow'))['dependencies']).toMatchObject([{ key: 'build', result: 5 }]);
    });

    test('steps: are recorded once, carried by claims, and dropped by a redrive', async () => {
      const id = await submit({ handler_ref: 'steps' }, 'mail.slow');
      const first = await claim('steps', 'mail.slow');
      const { lease_token } = first;
      const record = (body: Body) => post(`/v1/tasks/${id}/steps`, { lease_token, ...body });
      const a = await record({ name: 'a', result: [1], started_at: '2026-01-01T00:00:00Z' });
      expect([a.status, a.body]).toMatchObject([200, { name: 'a', result: [1], recorded: true }]);
      const same = await record({ name: 'a', result: [2] });
      expect([same.status, same.body]).toMatchObject([200, { result: [1], recorded: false }]);
      const two = await record({
        steps: [{ name: 'b' }, { name: 'c', error: { type: 'E', message: 'm' } }],
      });
      expect(two.body['steps']).toMatchObject([{ name: 'b', recorded: true }, { name: 'c' }]);
      const large = await record({ name: 'd', result: 'x'.repeat(262_145) });
      expect([large.status, large.body['code']]).toEqual([413, 'STEP_TOO_LARGE']);
      expect((await record({ name: '' })).status).toBe(422);
      expect((await record({ name: 'x', steps: [] })).status).toBe(422);
      const lost = await post(`/v1/tasks/${id}/steps`, { lease_token: 'no', name: 'z' });
      expect([lost.status, lost.body['code']]).toEqual([409, 'LEASE_LOST']);
      await failFor(first, 'mail.slow');
      const no = await post('/v1/queues/mail.slow/dlq:redrive', { ids: [id], from_step: 'nope' });
      expect([no.status, no.body['code']]).toEqual([422, 'INVALID_SELECTOR']);
      await post('/v1/queues/mail.slow/dlq:redrive', { ids: [id], from_step: 'b' });
      const again = await claim('steps', 'mail.slow');
      expect(again['steps']).toMatchObject([{ name: 'a', result: [1] }]);
      const run = await send({
        path: `/v1/tasks/${id}/run`,
        token: tokens.worker,
        headers: { 'x-queue-lease-token': again.lease_token },
      });
      expect(run.body['steps']).toHaveLength(1);
      await failFor(again, 'mail.slow');
      await post('/v1/queues/mail.slow/dlq:redrive', { ids: [id], reset_steps: true });
      const last = await claim('steps', 'mail.slow');
      expect(last).not.toHaveProperty('steps');
      await complete(last);
    });

    test('suspend and signal: a signal wakes a task with its payload', async () => {
      const id = await submit({ handler_ref: 'wait', unique_key: 'order-1' });
      const first = await claim('wait');
      const until = new Date(systemClock.now() + 600_000).toISOString();
      const suspended = await complete(first, { suspend: { signals: ['go'], until } });
      expect(suspended).toMatchObject({ status: 'PENDING', attempt: 0, wakes_at: until });
      expect(await task(id)).toMatchObject({ waiting_for: 'signal', wakes_at: until });
      const { wait } = (await get(`/v1/tasks/${id}/run`)).body;
      expect(wait).toEqual({ kind: 'signal', until, signals: ['go'], mode: 'any' });
      expect((await get('/v1/queues/mail/stats')).body).toMatchObject({ suspended: 1 });
      const sent = await post(`/v1/tasks/${id}/signals`, {
        name: 'go',
        payload: { by: 'ada' },
        id: 's1',
      });
      expect([sent.status, sent.body]).toMatchObject([202, { id: 's1', payload: { by: 'ada' } }]);
      expect((await post(`/v1/tasks/${id}/signals`, { name: 'go', id: 's1' })).body).toEqual(
        sent.body,
      );
      const woken = await claim('wait');
      expect(woken).toMatchObject({
        id,
        attempt: 1,
        woken_by: { kind: 'signal', name: 'go' },
        signals: [{ id: 's1', name: 'go', payload: { by: 'ada' } }],
      });
      const { lease_token } = woken;
      await post(`/v1/tasks/${id}/steps`, { lease_token, name: 'read', consumes: ['s1'] });
      const byKey = { unique_key: 'order-1', name: 'paid' };
      expect((await post('/v1/queues/mail/signals', byKey)).status).toBe(202);
      const item = { id, lease_token, outcome: 'suspend', suspend: { signals: ['paid', 'x'] } };
      const settled = await post('/v1/queues/mail/tasks:settle', { items: [item] });
      expect(settled.body).toMatchObject([{ status: 200 }]);
      const last = await claim('wait');
      expect(last['signals']).toMatchObject([{ name: 'paid', payload: null }]);
      const empty = await post(`/v1/tasks/${id}:complete`, {
        lease_token: last.lease_token,
        suspend: {},
      });
      expect(empty.status).toBe(422);
      await complete(last);
      const late = await post(`/v1/tasks/${id}/signals`, { name: 'go' });
      expect([late.status, late.body['code']]).toEqual([409, 'TASK_ENDED']);
      const none = await post('/v1/queues/mail/signals', byKey);
      expect([none.status, none.body['code']]).toEqual([404, 'TASK_NOT_FOUND']);
    });

    test('suspend: a timer wakes a task', async () => {
      await submit({ handler_ref: 'timer' });
      const first = await claim('timer');
      const until = new Date(systemClock.now() + 200).toISOString();
      await complete(first, { suspend: { until } });
      expect(await task(first.id)).toMatchObject({ waiting_for: 'timer' });
      const woken = await claim('timer');
      expect(woken).toMatchObject({ id: first.id, woken_by: { kind: 'timer' }, attempt: 1 });
      await complete(woken);
    });

    test('children: the parent waits for them, the tree shows them, a cancel takes them along', async () => {
      const parent = await submit({ handler_ref: 'parent' });
      const held = await claim('parent');
      const link = { parent_id: parent, parent_lease_token: held.lease_token };
      const one = await submit({ handler_ref: 'child', ...link }, 'mail.two');
      const two = await submit({ handler_ref: 'child-2', ...link }, 'other');
      await complete(held, { suspend: { tasks: [one, two], mode: 'all' } });
      expect(await task(parent)).toMatchObject({ waiting_for: 'tasks', wakes_at: null });
      await complete(await claim('child', 'mail.two'), { result: 'r' });
      await failFor(await claim('child-2', 'other'), 'other');
      const woken = await claim('parent');
      expect(woken['children']).toMatchObject([
        { id: one, status: 'SUCCEEDED', result: 'r' },
        { id: two, status: 'DEAD', result: null },
      ]);
      expect(woken['woken_by']).toEqual({ kind: 'task', id: two });
      const wrong = { handler_ref: 'x', parent_id: parent, parent_lease_token: 'no' };
      expect((await post('/v1/queues/mail/tasks', wrong)).body['code']).toBe('LEASE_LOST');
      const grant = await post(
        '/v1/queues/mail/tasks',
        { handler_ref: 'x', parent_id: parent },
        'submitter',
      );
      expect(grant.status).toBe(403);
      const three = await submit({ handler_ref: 'later', parent_id: parent, delay_ms: 60_000 });
      const tree = (await get(`/v1/tasks/${parent}/tree`, 'submitter')).body;
      expect(tree).toMatchObject({
        truncated: false,
        root: { id: parent, status: 'IN_FLIGHT', steps: [] },
      });
      const children = (tree['root'] as { children: Body[] }).children;
      expect(children).toContainEqual({ id: two, hidden: true });
      expect(new Set(children.map(({ id }) => id))).toEqual(new Set([one, two, three]));
      await post(`/v1/tasks/${parent}:cancel`, {});
      expect(await task(three)).toMatchObject({ status: 'DEAD', dead_reason: 'CANCELLED' });
      expect(await task(one)).toMatchObject({ status: 'SUCCEEDED' });
      const ended = await post('/v1/queues/mail/tasks', { handler_ref: 'x', parent_id: parent });
      expect([ended.status, ended.body['code']]).toEqual([409, 'TASK_ENDED']);
    });
  });
}
