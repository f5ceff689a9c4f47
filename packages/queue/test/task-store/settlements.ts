import { describe, expect, test } from 'vitest';
import { noon, settlementOf, someAttempt, type Fixture } from './fixture.js';

export function settlementTests(fixture: Fixture): void {
  const error = { errorType: 'HTTP_5XX', message: 'Bad Gateway', httpStatus: 502, at: noon + 100 };

  describe('settlements', () => {
    test('a success ends the task', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const task = await fixture.claimOne();
      const attempt = someAttempt({ outcome: 'SUCCEEDED', errorType: null, traceId: 'abc' });
      const result = await fixture.settle(task, { kind: 'succeeded' }, { attempt });
      const { payload: _payload, attempts: _attempts, ...plain } = task;
      const settled = { ...plain, status: 'SUCCEEDED', lease: null, completedAt: noon + 100 };
      expect(result).toEqual({ kind: 'settled', task: { ...settled, updatedAt: noon + 100 } });
      expect((await fixture.task(id)).attempts).toEqual([attempt]);
    });

    test('a retry waits until it is due and is claimed as the next attempt', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const verdict = { kind: 'retry', dueAt: noon + 1_000 } as const;
      const result = await fixture.settle(await fixture.claimOne(), verdict, { error });
      expect(result).toMatchObject({
        kind: 'settled',
        task: { status: 'PENDING', attempt: 1, dueAt: noon + 1_000, lease: null, lastError: error },
      });
      expect(await fixture.claim({ now: noon + 999 })).toEqual([]);
      const again = await fixture.claimOne({ now: noon + 1_000 });
      expect(again).toMatchObject({ id, attempt: 2, totalAttempts: 2, lastError: error });
      expect(again.attempts).toHaveLength(1);
    });

    test('a retry that is due at once may be claimed at once', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      await fixture.settle(await fixture.claimOne(), { kind: 'retry', dueAt: noon + 100 });
      expect(await fixture.claimIds({ now: noon + 100 })).toEqual([id]);
    });

    test('a dead task says when and why', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const verdict = { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED' } as const;
      await fixture.settle(await fixture.claimOne(), verdict, { error });
      expect(await fixture.task(id)).toMatchObject({
        status: 'DEAD',
        deadAt: noon + 100,
        deadReason: 'ATTEMPTS_EXHAUSTED',
        lastError: error,
        attempt: 1,
        dueAt: null,
        lease: null,
      });
    });

    test('a task that is handed back has not used up an attempt', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const attempt = someAttempt({ outcome: 'INTERRUPTED' });
      const verdict = { kind: 'handed_back', dueAt: noon + 100 } as const;
      await fixture.settle(await fixture.claimOne(), verdict, { attempt });
      const task = await fixture.task(id);
      expect(task).toMatchObject({ status: 'PENDING', attempt: 0, totalAttempts: 0 });
      expect(task.attempts).toEqual([attempt]);
      expect(await fixture.claimOne({ now: noon + 100 })).toMatchObject({ id, attempt: 1 });
    });

    test('without an error the last one stays', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const retry = { kind: 'retry', dueAt: noon + 100 } as const;
      await fixture.settle(await fixture.claimOne(), retry, { error });
      await fixture.settle(await fixture.claimOne({ now: noon + 100 }), { kind: 'succeeded' });
      expect(await fixture.task(id)).toMatchObject({ status: 'SUCCEEDED', lastError: error });
    });

    test('a lost lease settles nothing', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const late = await fixture.claimOne();
      const ended = { kind: 'retry', dueAt: noon + 100 } as const;
      await fixture.settle(late, ended);
      const next = await fixture.claimOne({ now: noon + 100 });
      const other = { ...late, lease: { ...late.lease!, token: 'guessed' } };
      const before = await fixture.task(id);
      const { payload: _payload, attempts: _attempts, ...task } = before;
      expect(await fixture.settle(other, { kind: 'succeeded' })).toEqual({
        kind: 'lease_lost',
        task,
      });
      expect(await fixture.task(id)).toEqual(before);
      expect(await fixture.settle(next, { kind: 'succeeded' })).toMatchObject({ kind: 'settled' });
    });

    test('a task that is gone has no lease', async () => {
      await fixture.queue();
      await fixture.submit();
      const task = await fixture.claimOne();
      const unknown = { ...task, id: fixture.id() };
      expect(await fixture.settle(unknown, { kind: 'succeeded' })).toEqual({
        kind: 'lease_lost',
        task: undefined,
      });
    });

    test('settling twice with one token is answered with how it was settled', async () => {
      await fixture.queue();
      await fixture.submit();
      const task = await fixture.claimOne();
      const retry = { kind: 'retry', dueAt: noon + 100 } as const;
      await fixture.settle(task, retry);
      expect(await fixture.settle(task, { kind: 'succeeded' })).toMatchObject({
        kind: 'repeated',
        verdict: 'retry',
        task: { status: 'PENDING' },
      });
      const again = await fixture.claimOne({ now: noon + 100 });
      expect(await fixture.settle(task, retry)).toMatchObject({
        kind: 'repeated',
        verdict: 'retry',
        task: { status: 'IN_FLIGHT' },
      });
      await fixture.settle(again, { kind: 'succeeded' });
      expect(await fixture.settle(again, { kind: 'succeeded' })).toMatchObject({
        kind: 'repeated',
        verdict: 'succeeded',
      });
      expect(await fixture.settle(task, retry)).toMatchObject({ kind: 'lease_lost' });
      expect((await fixture.task(task.id)).attempts).toHaveLength(2);
    });

    test('many are settled together, each by its own lease', async () => {
      await fixture.queue();
      for (let i = 0; i < 3; i++) await fixture.submit();
      const tasks = await fixture.claim();
      const results = await fixture.store.settle([
        settlementOf(tasks[0]!, { kind: 'succeeded' }),
        settlementOf(tasks[1]!, { kind: 'succeeded' }, { token: 'guessed' }),
        settlementOf(tasks[2]!, { kind: 'dead', reason: 'PERMANENT' }),
        settlementOf(tasks[0]!, { kind: 'succeeded' }),
      ]);
      expect(results.map((result) => result.kind)).toEqual([
        'settled',
        'lease_lost',
        'settled',
        'repeated',
      ]);
      expect(await fixture.store.counts('mail')).toMatchObject({ inFlight: 1, dead: 1 });
      expect(await fixture.store.settle([])).toEqual([]);
    });

    test('a lease that has ended may still be settled until someone else settles it', async () => {
      await fixture.queue();
      await fixture.submit();
      const task = await fixture.claimOne({ leaseExpiresAt: noon + 10 });
      const late = await fixture.settle(task, { kind: 'succeeded' }, { now: noon + 5_000 });
      expect(late).toMatchObject({ kind: 'settled' });
      expect(await fixture.store.endedLeases({ now: noon + 9_000, limit: 5 })).toEqual([]);
    });

    test('the first attempt and the last 49 are kept', async () => {
      await fixture.queue();
      const id = await fixture.submit();
      const numbers: number[] = [];
      for (let i = 1; i <= 60; i++) {
        numbers.push(i);
        const task = await fixture.claimOne({ now: noon + i });
        const long = i % 3 === 0 ? 'x'.repeat(2_048) : 'short';
        const attempt = someAttempt({ attempt: i, responseSnippet: long, endedAt: noon + i });
        await fixture.settle(task, { kind: 'retry', dueAt: noon + i + 1 }, { attempt });
        if (i === 50) expect((await fixture.task(id)).attempts).toHaveLength(50);
      }
      const { attempts, attempt } = await fixture.task(id);
      expect(attempt).toBe(60);
      expect(attempts.map((each) => each.attempt)).toEqual([1, ...numbers.slice(-49)]);
      expect(attempts.at(-1)?.responseSnippet).toHaveLength(2_048);
    });
  });

  describe('leases', () => {
    test('a lease can be moved by whoever holds it', async () => {
      await fixture.queue();
      await fixture.submit();
      const task = await fixture.claimOne({ leaseExpiresAt: noon + 10 });
      const change = {
        id: task.id,
        token: task.lease!.token,
        expiresAt: noon + 90_000,
        isAsync: true,
        now: noon + 5,
      };
      expect(await fixture.store.extendLease(change)).toMatchObject({
        status: 'IN_FLIGHT',
        updatedAt: noon + 5,
        lease: { expiresAt: noon + 90_000, isAsync: true, token: task.lease!.token },
      });
      expect(await fixture.store.endedLeases({ now: noon + 80_000, limit: 5 })).toEqual([]);
      expect(await fixture.store.extendLease({ ...change, token: 'guessed' })).toBe('lease_lost');
      expect(await fixture.store.extendLease({ ...change, id: fixture.id() })).toBe('not_found');
      await fixture.settle(task, { kind: 'succeeded' });
      expect(await fixture.store.extendLease(change)).toBe('lease_lost');
    });

    test('extend: makes a lease shorter only if it still has the expiry that is replaced', async () => {
      await fixture.queue();
      await fixture.submit();
      const task = await fixture.claimOne({ leaseExpiresAt: noon + 60_000 });
      const extend = async (expiresAt: number, replaces?: number) => {
        const change = { id: task.id, token: task.lease!.token, isAsync: true, now: noon + 5 };
        const moved = await fixture.store.extendLease({ ...change, expiresAt, replaces });
        return typeof moved === 'string' ? moved : moved.lease!.expiresAt - noon;
      };
      expect(await extend(noon + 10_000)).toBe(60_000);
      expect(await extend(noon + 10_000, noon + 60_000)).toBe(10_000);
      expect(await extend(noon + 90_000)).toBe(90_000);
      expect(await extend(noon + 20_000, noon + 60_000)).toBe(90_000);
      expect((await fixture.task(task.id)).lease!.expiresAt).toBe(noon + 90_000);
      expect(await fixture.store.endedLeases({ now: noon + 80_000, limit: 5 })).toEqual([]);
    });

    test.each([
      ['retry', { kind: 'retry', dueAt: noon + 70_000 }],
      ['dead', { kind: 'dead', reason: 'ATTEMPTS_EXHAUSTED' }],
    ] as const)(
      'expiry (%s): does not end a lease that was extended since',
      async (_name, verdict) => {
        await fixture.queue();
        const id = await fixture.submit();
        const task = await fixture.claimOne({ leaseExpiresAt: noon + 60_000 });
        const [ended] = await fixture.store.endedLeases({ now: noon + 60_000, limit: 5 });
        const change = { id, token: task.lease!.token, isAsync: false, now: noon + 60_000 };
        await fixture.store.extendLease({ ...change, expiresAt: noon + 90_000 });
        const expiry = (now: number) => fixture.settle(ended!, verdict, { now, expiredBy: now });
        expect(await expiry(noon + 60_000)).toMatchObject({
          kind: 'lease_lost',
          task: { status: 'IN_FLIGHT', lease: { expiresAt: noon + 90_000 } },
        });
        expect(await expiry(noon + 90_000)).toMatchObject({ kind: 'settled' });
      },
    );

    test('leases with the same expiry are listed by id', async () => {
      await fixture.queue();
      const ids: string[] = [];
      for (const priority of [1, 9, 5]) ids.push(await fixture.submit({ priority }));
      const leaseExpiresAt = noon + 100;
      expect((await fixture.claimIds({ leaseExpiresAt }))[0]).toBe(ids[1]);
      const later = await fixture.submit();
      await fixture.claimOne({ leaseExpiresAt: noon + 200 });
      const ended = await fixture.store.endedLeases({ now: noon + 300, limit: 9 });
      expect(ended.map((task) => task.id)).toEqual([...ids, later]);
    });

    test('a task claimed again for the same time has a lease like the others', async () => {
      await fixture.queue();
      for (let i = 0; i < 3; i++) await fixture.submit();
      const leaseExpiresAt = noon + 9_000;
      const [first] = await fixture.claim({ leaseExpiresAt });
      await fixture.settle(first!, { kind: 'retry', dueAt: noon + 100 });
      await fixture.claimOne({ now: noon + 100, leaseExpiresAt });
      const ended = () => fixture.store.endedLeases({ now: noon + 9_000, limit: 9 });
      const tasks = await ended();
      expect(tasks).toHaveLength(3);
      for (const task of tasks) await fixture.settle(task, { kind: 'succeeded' });
      expect(await ended()).toEqual([]);
    });

    test('ended leases are found, the longest past first, and settled like any other', async () => {
      await fixture.queue();
      for (let i = 0; i < 3; i++) await fixture.submit();
      const claimed = [];
      for (const end of [300, 100, 200]) {
        claimed.push(await fixture.claimOne({ leaseExpiresAt: noon + end, nodeId: `node-${end}` }));
      }
      const ended = async (now: number, limit = 10) =>
        (await fixture.store.endedLeases({ now, limit })).map((task) => task.id);
      const [third, first, second] = claimed.map((task) => task.id);
      expect(await ended(noon + 99)).toEqual([]);
      expect(await ended(noon + 100)).toEqual([first]);
      expect(await ended(noon + 900)).toEqual([first, second, third]);
      expect(await ended(noon + 900, 2)).toEqual([first, second]);
      const [task] = await fixture.store.endedLeases({ now: noon + 900, limit: 1 });
      expect(task).toEqual(claimed[1]);
      const attempt = someAttempt({ outcome: 'LEASE_EXPIRED' });
      await fixture.settle(task!, { kind: 'retry', dueAt: noon + 950 }, { attempt });
      expect(await ended(noon + 900)).toEqual([second, third]);
      expect(await fixture.settle(claimed[1]!, { kind: 'succeeded' })).toMatchObject({
        kind: 'repeated',
        verdict: 'retry',
      });
    });
  });
}
