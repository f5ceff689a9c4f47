import { describe, expect, test } from 'vitest';
import { maxSuspensions, never, type Suspension, type TaskFlow } from '../../src/core/flow.js';
import type { WholeTask } from '../../src/core/task.js';
import { FlowRefused, insertFlow } from '../../src/storage/port/flow-graph.js';
import { sendSignal } from '../../src/storage/port/flow-run.js';
import { readRuns } from '../../src/storage/port/flow-runs.js';
import { type Fixture, noon, settlementOf } from './fixture.js';

const success = (id: string) => ({ id, on: 'success' as const });
const dead = { kind: 'dead', reason: 'PERMANENT' } as const;

/** Dependencies, steps, suspension and signals. */
export function flowTests(fixture: Fixture): void {
  const after = (...ids: string[]): { flow: TaskFlow } => ({
    flow: { dependsOn: ids.map(success) },
  });
  const flowOf = async (id: string) => (await fixture.task(id)).flow;
  const suspend = async (task: WholeTask, suspension: Partial<Suspension>, now = noon + 100) => {
    const verdict = { kind: 'suspended', dueAt: never, flow: {} } as const;
    const settlement = settlementOf(task, verdict, {
      now,
      suspension: { mode: 'any', ...suspension },
    });
    const [result] = await fixture.store.settle([settlement]);
    return result!;
  };
  const signal = (id: string, name: string, signalId: string, now = noon + 200) =>
    fixture.store.runFlow(() => sendSignal(id, { id: signalId, name, payload: '1' }, now), now);
  const step = (task: WholeTask, name: string, over: object = {}) => {
    const request = {
      id: task.id,
      token: task.lease!.token,
      now: noon + 50,
      steps: [{ name, result: '1', consumes: [], ...over }],
      maxSteps: 3,
    };
    return fixture.store.recordSteps(request);
  };
  const runOf = async (id: string) => {
    const task = await fixture.task(id);
    return (await readRuns(fixture.store, [task])).get(id)!;
  };

  describe('flows', () => {
    test('dependencies: a task is due when all have succeeded', async () => {
      await fixture.queue();
      const [a, b] = [await fixture.submit(), await fixture.submit()];
      const c = await fixture.submit(after(a, b));
      expect(await fixture.task(c)).toMatchObject({ status: 'PENDING', dueAt: never });
      expect(await fixture.store.counts('mail')).toMatchObject({
        pending: 3,
        waits: { dependencies: 1 },
        oldestDueAt: noon,
      });
      const tasks = await fixture.claim();
      expect(tasks.map(({ id }) => id).toSorted()).toEqual([a, b].toSorted());
      expect(await fixture.store.counts('mail')).toMatchObject({ oldestDueAt: null });
      await fixture.settle(tasks[0]!, { kind: 'succeeded' }, { result: '7' });
      expect(await fixture.claimIds({ now: noon + 1_000 })).toEqual([]);
      await fixture.reopen();
      await fixture.settle(tasks[1]!, { kind: 'succeeded' }, { now: noon + 500 });
      expect(await fixture.store.counts('mail')).toMatchObject({ oldestDueAt: noon + 500 });
      const [next] = await fixture.claim({ now: noon + 1_000 });
      expect(next).toMatchObject({ id: c });
      const { dependencies } = await runOf(c);
      expect(dependencies.map(({ status }) => status)).toEqual(['SUCCEEDED', 'SUCCEEDED']);
      expect(new Set(dependencies.map(({ result }) => result))).toEqual(new Set(['7', null]));
    });

    test('steps: requests at the same time are recorded as if one came after the other', async () => {
      await fixture.queue();
      await fixture.submit();
      await fixture.submit();
      const [one, two] = await fixture.claim();
      const lost = { ...one!, lease: { ...one!.lease!, token: 'other' } };
      const results = await Promise.all([
        step(one!, 'a', { result: '1' }),
        step(one!, 'a', { result: '2' }),
        step(two!, 'a', { result: '3' }),
        step(lost, 'b'),
        step(one!, 'b'),
        step(one!, 'c'),
        step(one!, 'too many'),
        step(two!, 'b'),
      ]);
      expect(results.map((result) => result.kind)).toEqual([
        'done',
        'done',
        'done',
        'lease_lost',
        'done',
        'done',
        'too_many',
        'done',
      ]);
      expect(results[1]).toMatchObject({ steps: [{ isRecorded: false, step: { result: '1' } }] });
      await fixture.reopen();
      const names = async (id: string) => (await runOf(id)).steps.map(({ name }) => name);
      expect(await names(one!.id)).toEqual(['a', 'b', 'c']);
      expect(await names(two!.id)).toEqual(['a', 'b']);
      expect((await flowOf(one!.id))!.steps).toMatchObject({ count: 3 });
    });

    test('dependencies: a failure kills a long chain in one pass', async () => {
      await fixture.queue();
      await fixture.queue('post');
      const first = await fixture.submit();
      const chain = [first];
      for (let i = 0; i < 40; i++) {
        const queue = i % 2 === 0 ? 'post' : 'mail';
        chain.push(await fixture.submit({ queue, ...after(chain.at(-1)!) }));
      }
      const any = { flow: { dependsOn: [{ id: chain[3]!, on: 'end' as const }] } };
      const anyway = await fixture.submit(any);
      await fixture.settle(await fixture.claimOne(), dead);
      for (const id of chain.slice(1)) {
        expect(await fixture.task(id)).toMatchObject({
          status: 'DEAD',
          deadReason: 'DEPENDENCY_FAILED',
        });
      }
      expect((await fixture.task(chain[1]!)).lastError!.message).toContain(first);
      expect(await fixture.claimIds({ now: noon + 1_000 })).toEqual([anyway]);
      expect(await fixture.redrive([first])).toEqual([first]);
      expect(await fixture.task(chain.at(-1)!)).toMatchObject({ status: 'PENDING', dueAt: never });
      expect(await fixture.claimIds({ now: noon + 2_000 })).toEqual([first]);
    });

    test('dependencies: one that is dead or unknown at submit', async () => {
      await fixture.queue();
      const lost = await fixture.die();
      const late = await fixture.submit(after(lost));
      expect(await fixture.task(late)).toMatchObject({ deadReason: 'DEPENDENCY_FAILED' });
      const unknown = fixture.id();
      const [result] = await fixture.store.insertTasks([fixture.newTask(after(unknown))], noon);
      expect(result).toEqual({ kind: 'unknown_dependency', id: unknown });
      await fixture.redrive([late]);
      expect(await fixture.task(late)).toMatchObject({ status: 'DEAD' });
      await fixture.redrive([lost], { withDependents: false });
      expect(await fixture.task(late)).toMatchObject({ status: 'DEAD' });
      await fixture.redrive([late]);
      expect(await fixture.task(late)).toMatchObject({ status: 'PENDING', dueAt: never });
    });

    test('dependencies: tasks of one call depend on each other in any order', async () => {
      await fixture.queue();
      const a = fixture.newTask();
      const b = fixture.newTask(after(a.id));
      const c = fixture.newTask(after(b.id, a.id));
      const results = await fixture.store.insertTasks([c, b, a], noon);
      expect(results.map(({ kind }) => kind)).toEqual(['stored', 'stored', 'stored']);
      for (const id of [a.id, b.id, c.id]) {
        const task = await fixture.claimOne({ now: noon + 1_000 });
        expect(task.id).toBe(id);
        await fixture.settle(task, { kind: 'succeeded' });
      }
    });

    test('dependencies: an id twice in one call has the same flow in both results', async () => {
      await fixture.queue();
      const a = await fixture.submit();
      const b = fixture.newTask(after(a));
      const [first, again] = await fixture.store.insertTasks([b, { ...b }], noon);
      expect(first).toMatchObject({ kind: 'stored', task: { flow: { dependsOn: [{ id: a }] } } });
      expect(again).toEqual({ ...first, kind: 'existing' });
    });

    test('expiry: that of a task in a flow is found after the clock was set back', async () => {
      await fixture.queue();
      const a = await fixture.submit();
      await fixture.store.nextEventAt();
      await fixture.store.expireTasks({ now: noon + 86_400_000, limit: 9 });
      await fixture.submit({ ...after(a), expiresAt: noon + 5 });
      expect((await fixture.store.nextEventAt()).upkeepAt).toBe(noon + 5);
    });

    test('dependencies: a program that throws stores nothing', async () => {
      await fixture.queue();
      const task = fixture.newTask({ flow: { flowId: fixture.id(), key: 'a' } });
      const program = function* () {
        const results = yield* insertFlow([task], noon);
        throw new FlowRefused(results);
      };
      await expect(fixture.store.runFlow(() => program(), noon)).rejects.toThrow(FlowRefused);
      expect(await fixture.store.getTask(task.id)).toBeUndefined();
    });

    test('flows: tasks are listed by their flow', async () => {
      await fixture.queue();
      const flowId = fixture.id();
      const a = await fixture.submit({ flow: { flowId, key: 'a' } });
      await fixture.submit();
      const filter = { flowId };
      const page = await fixture.store.listTasks({
        queue: 'mail',
        filter,
        order: 'newest',
        limit: 9,
      });
      expect(page.tasks.map(({ id }) => id)).toEqual([a]);
      expect(await fixture.store.countTasks({ queue: 'mail', filter })).toMatchObject({ count: 1 });
    });

    test('steps: the first record of a name wins, under the lease alone', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const task = await fixture.claimOne();
      expect(await step(task, 'a')).toMatchObject({ kind: 'done', steps: [{ isRecorded: true }] });
      expect(await step(task, 'a', { result: '2' })).toMatchObject({
        steps: [{ isRecorded: false, step: { result: '1' } }],
      });
      expect(await step(task, 'b')).toMatchObject({ kind: 'done' });
      await fixture.settle(task, { kind: 'retry', dueAt: noon });
      expect(await step(task, 'c')).toEqual({ kind: 'lease_lost' });
      await fixture.reopen();
      const again = await fixture.claimOne();
      expect((await runOf(id)).steps.map(({ name }) => name)).toEqual(['a', 'b']);
      expect(await step(again, 'c')).toMatchObject({ kind: 'done' });
      expect(await step(again, 'd')).toEqual({ kind: 'too_many' });
      await fixture.settle(again, dead);
      await fixture.redrive([id], { fromStep: 'b' });
      expect((await runOf(id)).steps.map(({ name }) => name)).toEqual(['a']);
      await fixture.settle(await fixture.claimOne({ now: noon + 1_000 }), dead, {
        now: noon + 1_000,
      });
      await fixture.redrive([id], { fromStep: null });
      expect((await runOf(id)).steps).toEqual([]);
    });

    test('settle: the answer has the flow as it is afterwards', async () => {
      await fixture.queue();
      for (const verdict of [{ kind: 'succeeded' }, { kind: 'retry', dueAt: never - 1 }] as const) {
        const id = await fixture.submit();
        const task = await fixture.claimOne();
        expect(task.flow).toBeNull();
        await signal(id, 'go', 's1', noon + 10);
        await step(task, 'a');
        const [result] = await fixture.store.settle([settlementOf(task, verdict, {})]);
        expect(result).toMatchObject({
          kind: 'settled',
          task: { flow: { steps: { count: 1 }, signals: { unread: { go: 1 } } } },
        });
        expect(result!.task!.flow).toEqual(await flowOf(id));
      }
    });

    test('suspend: a timer wakes the task and no attempt is used', async () => {
      await fixture.queue();
      const id = await fixture.submit({ groupKey: 'g' });
      const task = await fixture.claimOne({ fifoGroups: true });
      expect(await suspend(task, { until: noon + 5_000 })).toMatchObject({ kind: 'settled' });
      expect(await suspend(task, { until: noon + 5_000 })).toMatchObject({
        kind: 'repeated',
        verdict: 'suspended',
      });
      expect(await fixture.task(id)).toMatchObject({
        attempt: 0,
        dueAt: noon + 5_000,
        attempts: [],
      });
      expect((await flowOf(id))!.wait).toMatchObject({ kind: 'timer' });
      expect(await fixture.store.counts('mail')).toMatchObject({
        waits: { timer: 1 },
        inFlight: 0,
      });
      const other = await fixture.submit({ groupKey: 'g' });
      const next = await fixture.claimOne({ now: noon + 1_000, fifoGroups: true });
      expect(next.id).toBe(other);
      await fixture.settle(next, { kind: 'succeeded' });
      const woken = await fixture.claimOne({ now: noon + 5_000, fifoGroups: true });
      expect(woken).toMatchObject({ id, attempt: 1, flow: { wokenBy: { kind: 'timer' } } });
      expect(woken.flow!.wait).toBeUndefined();
      await fixture.settle(woken, { kind: 'retry', dueAt: noon + 6_000 });
      expect((await flowOf(id))!.wait).toBeUndefined();
    });

    test('signals: one wakes the task, waits for it, and is read once', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const task = await fixture.claimOne();
      await suspend(task, { signals: ['go'], until: noon + 90_000 });
      expect(await signal(id, 'other', 's0')).toMatchObject({ kind: 'stored' });
      expect(await fixture.claimIds({ now: noon + 300 })).toEqual([]);
      expect(await signal(id, 'go', 's1')).toMatchObject({ kind: 'stored' });
      expect(await signal(id, 'go', 's1')).toMatchObject({ kind: 'repeated' });
      await fixture.reopen();
      const woken = await fixture.claimOne({ now: noon + 300 });
      expect(woken.flow!.wokenBy).toEqual({ kind: 'signal', name: 'go' });
      expect((await runOf(id)).signals.map((each) => each.id)).toEqual(['s0', 's1']);
      await step(woken, 'read', { consumes: ['s1'] });
      expect((await runOf(id)).signals.map((each) => each.id)).toEqual(['s0']);
      expect(await signal(id, 'go', 's1')).toMatchObject({ kind: 'repeated' });
      await suspend(woken, { signals: ['other'] }, noon + 400);
      const last = await fixture.claimOne({ now: noon + 400 });
      await fixture.settle(last, { kind: 'succeeded' });
      expect(await signal(id, 'go', 's2')).toEqual({ kind: 'ended' });
      expect(await signal(fixture.id(), 'go', 's2')).toEqual({ kind: 'not_found' });
    });

    test('signals: at most 100 are unread', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      for (let i = 0; i < 100; i++) await signal(id, 'x', `s${i}`);
      expect(await signal(id, 'x', 'more')).toEqual({ kind: 'full' });
    });

    test('suspend: waits for any or all of several tasks', async () => {
      await fixture.queue();
      await fixture.queue('post');
      const parent = await fixture.submit();
      const task = await fixture.claimOne();
      const child = { queue: 'post', flow: { parentId: parent }, parentToken: task.lease!.token };
      const [a, b] = [await fixture.submit(child), await fixture.submit(child)];
      await suspend(task, { tasks: [a, b], mode: 'all' });
      const children = await fixture.claim({ queue: 'post' });
      await fixture.settle(children[0]!, { kind: 'succeeded' }, { result: '1' });
      expect(await fixture.claimIds({ now: noon + 300 })).toEqual([]);
      await fixture.settle(children[1]!, dead, { now: noon + 200 });
      const woken = await fixture.claimOne({ now: noon + 300 });
      expect(woken.flow!.wokenBy).toEqual({ kind: 'task', id: children[1]!.id });
      const run = await runOf(parent);
      expect(run.children.map(({ id }) => id)).toEqual([a, b]);
      expect(run.children.map(({ status }) => status).toSorted()).toEqual(['DEAD', 'SUCCEEDED']);
      // A condition that holds already.
      await suspend(woken, { tasks: [b] }, noon + 400);
      expect((await fixture.claimOne({ now: noon + 400 })).flow!.wokenBy).toEqual({
        kind: 'task',
        id: b,
      });
      const rows = await fixture.store.readFlowRows({ kinds: ['child'], ids: [parent] });
      expect(rows.map(({ key }) => key).toSorted()).toEqual([a, b].toSorted());
    });

    test('retention: children stay until their parent has ended', async () => {
      await fixture.queue();
      await fixture.queue('post');
      const parent = await fixture.submit();
      const task = await fixture.claimOne();
      const child = { queue: 'post', flow: { parentId: parent }, parentToken: task.lease!.token };
      const retained = { ...child, options: { retainMs: 10 } };
      const awaited = [await fixture.submit(child), await fixture.submit(child)];
      const own = await fixture.submit(retained);
      const other = await fixture.submit({ queue: 'post' });
      const claimed = await fixture.claim({ queue: 'post' });
      for (const each of claimed) {
        const isFailing = each.id === awaited[1];
        await fixture.settle(each, isFailing ? dead : { kind: 'succeeded' });
      }
      const now = noon + 60_000;
      const remove = async () => {
        const request = { queue: 'post', endedBefore: now, now, limit: 2 };
        const succeeded = await fixture.store.deleteFinished({ ...request, status: 'SUCCEEDED' });
        const died = await fixture.store.deleteFinished({ ...request, status: 'DEAD' });
        return [succeeded, died, await fixture.store.deleteRetained({ now, limit: 2 })];
      };
      expect(await remove()).toEqual([1, 0, 0]);
      await fixture.tombstone(other);
      await fixture.reopen();
      expect(await remove()).toEqual([0, 0, 0]);
      await fixture.settle(task, { kind: 'succeeded' });
      const gone = await remove();
      expect(gone.reduce((sum, count) => sum + count)).toBe(3);
      for (const id of [...awaited, own]) await fixture.tombstone(id);
    });

    test('parent: it must run under the lease and not have ended', async () => {
      await fixture.queue();
      const parent = await fixture.submit();
      const task = await fixture.claimOne();
      const insert = async (token: string) => {
        const child = fixture.newTask({ flow: { parentId: parent }, parentToken: token });
        return (await fixture.store.insertTasks([child], noon))[0]!.kind;
      };
      expect(await insert('wrong')).toBe('parent_lease_lost');
      expect(await insert(task.lease!.token)).toBe('stored');
      await fixture.settle(task, { kind: 'succeeded' });
      expect(await insert(task.lease!.token)).toBe('parent_ended');
    });

    test('suspend: an expiry ends the wait, and so does a cancel', async () => {
      await fixture.queue();
      const id = await fixture.submit({ expiresAt: noon + 1_000 });
      const next = await fixture.submit(after(id));
      await suspend(await fixture.claimOne(), { signals: ['never'] });
      await fixture.store.expireTasks({ now: noon + 1_000, limit: 10 });
      expect(await fixture.task(id)).toMatchObject({ deadReason: 'EXPIRED' });
      expect(await fixture.task(next)).toMatchObject({ deadReason: 'DEPENDENCY_FAILED' });
      expect(await fixture.store.counts('mail')).toMatchObject({ pending: 0, dead: 2 });
      const [a, b] = [await fixture.submit(), ''];
      const c = await fixture.submit(after(a));
      const act = { now: noon, by: 'ada', selector: {}, message: b };
      await fixture.store.cancelPending({ ...act, queue: 'mail', ids: [a] });
      expect(await fixture.task(c)).toMatchObject({ deadReason: 'DEPENDENCY_FAILED' });
    });

    test('suspend: a task that never gets on is stuck', async () => {
      await fixture.queue();
      const id = await fixture.submit({ flow: { suspensions: maxSuspensions - 2 } });
      await suspend(await fixture.claimOne(), { until: noon });
      await suspend(await fixture.claimOne({ now: noon + 100 }), { until: noon });
      expect(await fixture.task(id)).toMatchObject({ deadReason: 'FLOW_STUCK' });
    });

    test('purge: everything of a task is deleted with it', async () => {
      await fixture.queue();
      const id = await fixture.submit({ flow: { flowId: fixture.id(), key: 'a' } });
      const task = await fixture.claimOne();
      await step(task, 'a');
      await signal(id, 'x', 's');
      await fixture.settle(task, dead);
      await fixture.store.actOnDead({
        action: 'purge',
        queue: 'mail',
        ids: [id],
        diedBy: noon + 1_000,
        now: noon + 1_000,
        by: 'ada',
        selector: {},
      });
      for (const kind of ['step', 'signal', 'member'] as const) {
        expect(await fixture.store.readFlowRows({ kinds: [kind], ids: [id] })).toEqual([]);
      }
    });
  });
}
