import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { auditFault, auditToWire } from '../../src/core/audit.js';
import { noon, someConfig, type Fixture } from './fixture.js';

export function auditTests(fixture: Fixture): void {
  const page = (over: object = {}) => fixture.store.auditPage({ limit: 100, ...over });
  const seqs = async (over: object = {}) => (await page(over)).map((record) => record.seq);

  describe('the audit log', () => {
    test('every act of an operator is recorded with its commit', async () => {
      await fixture.queue();
      const id = await fixture.die();
      const act = { queue: 'mail', by: 'ada' };
      await fixture.store.setPaused({ ...act, paused: true, now: noon + 1 });
      await fixture.store.setPaused({ ...act, paused: true, now: noon + 2 });
      await fixture.store.setPaused({ ...act, paused: false, now: noon + 3 });
      await fixture.redrive([id], { now: noon + 4, by: 'bob', selector: { ids: [id] } });
      const purge = {
        ...act,
        ids: [id],
        diedBy: noon + 9,
        now: noon + 5,
        selector: { filter: {} },
      };
      await fixture.store.actOnDead({ action: 'purge', ...purge });
      await fixture.settle(await fixture.claimOne({ now: noon + 1_000 }), { kind: 'succeeded' });
      await fixture.store.deleteQueue({ ...act, now: noon + 6 });
      const acts = (await page()).map(({ seq, at, principal, action, queue, selector, count }) => [
        seq,
        at - noon,
        principal,
        action,
        queue,
        selector,
        count,
      ]);
      expect(acts).toEqual([
        [7, 6, 'ada', 'delete', 'mail', null, null],
        [6, 5, 'ada', 'purge', 'mail', { filter: {} }, 0],
        [5, 4, 'bob', 'redrive', 'mail', { ids: [id] }, 1],
        [4, 3, 'ada', 'resume', 'mail', null, null],
        [3, 2, 'ada', 'pause', 'mail', null, null],
        [2, 1, 'ada', 'pause', 'mail', null, null],
        [1, 0, 'ada', 'config_write', 'mail', null, null],
      ]);
    });

    test('what was refused is not recorded', async () => {
      const act = { queue: 'none', now: noon, by: 'ada' };
      await fixture.store.putQueue({ ...act, config: someConfig(), ifVersion: 3 });
      await fixture.store.setPaused({ ...act, paused: true });
      await fixture.store.deleteQueue(act);
      await fixture.redrive([], { queue: 'none' });
      expect(await page()).toEqual([]);
    });

    test('the records form a chain of hashes that anyone can recompute', async () => {
      await fixture.queue();
      await fixture.queue('post');
      await fixture.store.setPaused({ queue: 'post', paused: true, now: noon + 1, by: 'ä"\n' });
      await fixture.redrive([], { selector: { filter: { b: 1.5, a: [null, 'é'] }, $: true } });
      const records = (await page()).toReversed();
      let last;
      for (const record of records) {
        const wire = auditToWire(record);
        expect(auditFault(last, wire)).toBeUndefined();
        last = wire;
      }
      expect(records[0]!.prevHash).toBe('0'.repeat(64));
      const text =
        `{"action":"config_write","at":"2026-01-05T12:00:00.000Z","count":null,` +
        `"prev_hash":"${'0'.repeat(64)}","principal":"ada","queue":"mail","selector":null,"seq":1}`;
      expect(records[0]!.hash).toBe(createHash('sha256').update(text).digest('hex'));
    });

    test('the log is read newest first, in pages and by queue and time', async () => {
      for (const queue of ['a', 'b', 'c', 'a', 'b']) await fixture.queue(queue);
      expect(await seqs()).toEqual([5, 4, 3, 2, 1]);
      expect(await seqs({ limit: 2 })).toEqual([5, 4]);
      expect(await seqs({ limit: 2, beforeSeq: 4 })).toEqual([3, 2]);
      expect(await seqs({ beforeSeq: 1 })).toEqual([]);
      expect(await seqs({ queue: 'b' })).toEqual([5, 2]);
      expect(await seqs({ allowed: (queue: string) => queue !== 'a' })).toEqual([5, 3, 2]);
      await fixture.store.setPaused({ queue: 'a', paused: true, now: noon + 5, by: 'ada' });
      expect(await seqs({ from: noon + 5 })).toEqual([6]);
      expect(await seqs({ to: noon + 5, limit: 1 })).toEqual([5]);
    });
  });
}
