import { describe, expect, test } from 'vitest';
import type { TaskOptions } from '../../src/core/task.js';
import { noon, type Fixture } from './fixture.js';

export function optionTests(fixture: Fixture): void {
  const submit = (options: TaskOptions, over: object = {}) => fixture.submit({ options, ...over });

  describe('options of tasks', () => {
    test('options: come back as they were, through claim, retry, death and redrive', async () => {
      await fixture.queue();
      const options: TaskOptions = {
        maxAttempts: 3,
        backoff: { kind: 'fixed', ms: 50, jitter: 0.5 },
        timeoutMs: 1_000,
        retainMs: 60_000,
        labels: ['gpu', 'eu'],
      };
      const id = await submit(options);
      const labels = ['eu', 'gpu', 'x'];
      const first = await fixture.claimOne({ labels });
      expect(first.options).toEqual(options);
      await fixture.reopen();
      await fixture.settle(first, { kind: 'retry', dueAt: noon });
      const again = await fixture.claimOne({ labels, now: noon + 200 });
      expect(again.options).toEqual(options);
      await fixture.settle(again, { kind: 'dead', reason: 'PERMANENT' }, { now: noon + 200 });
      await fixture.redrive([id]);
      expect(await fixture.claimIds({ now: noon + 2_000, labels: [] })).toEqual([]);
      expect(await fixture.claimIds({ now: noon + 2_000, labels })).toEqual([id]);
      expect((await fixture.task(id)).options).toEqual(options);
      const plain = await fixture.submit();
      expect((await fixture.task(plain)).options).toBeUndefined();
    });

    test('labels: a claim gets tasks all of whose labels it has, and tasks without labels', async () => {
      await fixture.queue();
      const gpu = await submit({ labels: ['gpu'] });
      const both = await submit({ labels: ['gpu', 'eu'] }, { groupKey: 'g' });
      const plain = await fixture.submit();
      const later = await submit({ labels: ['gpu'] });
      expect(await fixture.claimIds({ labels: ['eu'] })).toEqual([plain]);
      expect(await fixture.claimIds({ labels: ['gpu'], limit: 1 })).toEqual([gpu]);
      expect(await fixture.claimIds({ labels: ['gpu'] })).toEqual([later]);
      expect(await fixture.claimIds({ labels: ['gpu', 'eu'] })).toEqual([both]);
      const any = await submit({ labels: ['x'] });
      expect(await fixture.claimIds()).toEqual([any]);
    });

    test('labels: skipped tasks are found although later ones were claimed', async () => {
      await fixture.queue();
      const skipped = await submit({ labels: ['gpu'] }, { dueAt: noon - 10_000 });
      for (let i = 0; i < 5; i++) await fixture.submit({ dueAt: noon + i }, noon + i);
      expect(await fixture.claimIds({ now: noon + 9_000, labels: [] })).toHaveLength(5);
      expect(await fixture.claimIds({ now: noon + 9_000, labels: ['gpu'] })).toEqual([skipped]);
    });

    test('maxPerGroup: this many of a group are in flight, and others are not held up', async () => {
      await fixture.queue();
      const ids: string[] = [];
      for (let i = 0; i < 12; i++) ids.push(await fixture.submit({ groupKey: 'a' }));
      const [b, free] = [await fixture.submit({ groupKey: 'b' }), await fixture.submit()];
      const claim = () => fixture.claim({ maxPerGroup: 2, limit: 1 });
      const claimed = [];
      for (let i = 0; i < 6; i++) claimed.push(...(await claim()));
      expect(claimed.map(({ id }) => id).toSorted()).toEqual([ids[0], ids[1], b, free].toSorted());
      const query = { queue: 'mail', groupKey: 'a', id: ids[5]!, maxPerGroup: 2 };
      expect(await fixture.store.groupIsBusy(query)).toBe(true);
      expect(await fixture.store.groupIsBusy({ ...query, groupKey: 'b' })).toBe(false);
      await fixture.settle(
        claimed.find(({ id }) => id === ids[0])!,
        { kind: 'succeeded' },
      );
      expect((await claim()).map(({ id }) => id)).toEqual([ids[2]]);
      expect(await claim()).toEqual([]);
    });

    test('maxPerGroup: holds over priorities and within one claim', async () => {
      await fixture.queue();
      for (let i = 0; i < 6; i++) await fixture.submit({ groupKey: 'a', priority: i % 3 });
      const first = await fixture.claim({ maxPerGroup: 3, limit: 10 });
      expect(first).toHaveLength(3);
      expect(await fixture.claim({ maxPerGroup: 3, limit: 10 })).toEqual([]);
    });

    test('debounce: the last payload wins, and runs after its time', async () => {
      await fixture.queue();
      const send = async (payload: string, now: number) => {
        const task = fixture.newTask({
          payload: Buffer.from(payload),
          payloadContentType: `text/${payload.length}`,
          uniqueKey: 'k',
          isDebounced: true,
          dueAt: now + 100,
        });
        const [result] = await fixture.store.insertTasks([task], now);
        return result!;
      };
      const first = await send('one', noon);
      const second = await send('x'.repeat(5_000), noon + 50);
      const third = await send('three', noon + 80);
      expect([first.kind, second.kind, third.kind]).toEqual(['stored', 'existing', 'existing']);
      expect(await fixture.claim({ now: noon + 179 })).toEqual([]);
      const [task] = await fixture.claim({ now: noon + 180 });
      expect(Buffer.from(task!.payload).toString()).toBe('three');
      expect(task!.payloadContentType).toBe('text/5');
      const next = await send('four', noon + 200);
      expect(next.kind).toBe('stored');
      expect(await send('five', noon + 210)).toMatchObject({ kind: 'existing' });
      await fixture.settle(task!, { kind: 'succeeded' }, { now: noon + 220 });
      expect(await send('six', noon + 230)).toMatchObject({ kind: 'existing' });
      const [last] = await fixture.claim({ now: noon + 400 });
      expect(Buffer.from(last!.payload).toString()).toBe('six');
    });

    test('update: replaces the payload of a pending task', async () => {
      await fixture.queue();
      const id = await fixture.submit({ payload: Buffer.from('old') });
      const change = { id, action: 'update' as const, now: noon, by: 'ada', selector: {} };
      const large = { bytes: Buffer.alloc(9_000, 1), contentType: 'a/b' };
      await fixture.store.updateTask({ ...change, payload: large });
      expect((await fixture.task(id)).payload).toHaveLength(9_000);
      const small = { bytes: Buffer.from('new'), contentType: 'text/plain' };
      await fixture.store.updateTask({ ...change, payload: small, priority: 9 });
      const task = await fixture.claimOne();
      expect(task).toMatchObject({ id, priority: 9, payloadContentType: 'text/plain' });
      expect(Buffer.from(task.payload).toString()).toBe('new');
      const refused = await fixture.store.updateTask({ ...change, payload: large });
      expect(refused.kind).toBe('refused');
    });

    test('retainMs: a finished task is deleted after its own time alone', async () => {
      await fixture.queue();
      const short = await submit({ retainMs: 100 });
      const long = await submit({ retainMs: 10_000 });
      const plain = await fixture.submit();
      for (const task of await fixture.claim()) {
        await fixture.settle(task, { kind: 'succeeded' }, { now: noon });
      }
      const dead = await fixture.die({ options: { retainMs: 100 } });
      const at = (now: number) => ({ now, limit: 10 });
      expect(await fixture.store.deleteRetained(at(noon + 99))).toBe(0);
      expect(await fixture.store.deleteRetained(at(noon + 100))).toBe(2);
      for (const id of [short, dead]) expect((await fixture.tombstone(id)).id).toBe(id);
      expect(await fixture.store.counts('mail')).toMatchObject({ dead: 0 });
      const sweep = { queue: 'mail', status: 'SUCCEEDED', endedBefore: noon + 5 } as const;
      expect(await fixture.store.deleteFinished({ ...sweep, ...at(noon + 200) })).toBe(1);
      expect((await fixture.tombstone(plain)).id).toBe(plain);
      expect((await fixture.task(long)).status).toBe('SUCCEEDED');
      const retained = await fixture.die({ options: { retainMs: 10_000 } }, noon + 300);
      const died = await fixture.die({}, noon + 300);
      const dying = { queue: 'mail', status: 'DEAD', endedBefore: noon + 400 } as const;
      expect(await fixture.store.deleteFinished({ ...dying, ...at(noon + 400) })).toBe(1);
      expect((await fixture.tombstone(died)).id).toBe(died);
      await fixture.redrive([retained]);
      expect(await fixture.store.deleteRetained(at(noon + 100_000))).toBe(1);
      expect((await fixture.task(retained)).status).toBe('PENDING');
    });
  });
}
