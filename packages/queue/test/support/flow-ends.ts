import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { describe, expect, test } from 'vitest';
import { flowServer, type Body, type OpenStore } from './flow-server.js';

const newId = () => systemRandom.ulid(systemClock.now());

/** Flows whose tasks are gone, repeated, cancelled or named oddly, with one kind of store. */
export function flowEndTests(name: string, openStore?: OpenStore): void {
  describe(`ends of flows on ${name}`, () => {
    const { post, submit, claim, complete, failFor, task, refusal } = flowServer(openStore);

    test('flow: the same id at the same time stores it once', async () => {
      const flow = {
        flow_id: newId(),
        tasks: [
          { key: 'a', queue: 'mail', handler_ref: 'never' },
          { key: 'b', queue: 'mail', handler_ref: 'never', depends_on: ['a'] },
        ],
      };
      const answers = await Promise.all(Array.from({ length: 6 }, () => post('/v1/flows', flow)));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(202));
    });

    test('flow: its id shows nothing to those who may not submit to its queues', async () => {
      const flow_id = newId();
      const of = (queue: string) => ({ tasks: [{ key: 'a', queue, handler_ref: 'never' }] });
      expect((await post('/v1/flows', { flow_id, ...of('other') })).status).toBe(202);
      const guessed = await post('/v1/flows', { flow_id, ...of('mail') }, 'submitter');
      expect(refusal(guessed)).toEqual([409, 'ID_CONFLICT']);
    });

    test('flow: says which task holds a unique key', async () => {
      const held = await submit({ handler_ref: 'never', unique_key: 'held' });
      const again = { key: 'a', queue: 'mail', handler_ref: 'never', unique_key: 'held' };
      const answer = await post('/v1/flows', { tasks: [again] });
      expect(refusal(answer)).toEqual([422, 'INVALID_FLOW', '/tasks/0/unique_key']);
      expect(answer.text).toContain(held);
    });

    test('children: a dead one that was purged did not succeed, nor did an unknown one', async () => {
      const parent = await submit({ handler_ref: 'purge' });
      const held = await claim('purge');
      const dead = await submit({ handler_ref: 'purge-1', parent_id: parent }, 'mail.two');
      const good = await submit({ handler_ref: 'purge-2', parent_id: parent }, 'mail.two');
      const unknown = newId();
      await complete(held, { suspend: { tasks: [dead, good, unknown], mode: 'all' } });
      await failFor(await claim('purge-1', 'mail.two'), 'mail.two');
      const purge = await post('/v1/queues/mail.two/dlq:purge', { ids: [dead] });
      expect(purge.body).toEqual({ count: 1 });
      await complete(await claim('purge-2', 'mail.two'), { result: 2 });
      const woken = await claim('purge');
      const children = woken['children'] as Body[];
      expect(children.map(({ id, status, result }) => [id, status, result])).toEqual([
        [dead, 'DEAD', null],
        [good, 'SUCCEEDED', 2],
        [unknown, 'DEAD', null],
      ]);
      await complete(woken);
    });

    test('redrive: a task that was cancelled while it waited was woken by nothing', async () => {
      const id = await submit({ handler_ref: 'again' }, 'mail.slow');
      const until = new Date(systemClock.now() + 600_000).toISOString();
      await complete(await claim('again', 'mail.slow'), { suspend: { signals: ['go'], until } });
      await post(`/v1/tasks/${id}:cancel`, {});
      await post('/v1/queues/mail.slow/dlq:redrive', { ids: [id] });
      const held = await claim('again', 'mail.slow');
      expect(held).toMatchObject({ id });
      expect(held).not.toHaveProperty('woken_by');
      await complete(held);
    });

    test.each(['constructor', '__proto__', 'toString'])(
      'signals: one named %s wakes a task',
      async (signal) => {
        const handler = `odd${signal}`;
        const id = await submit({ handler_ref: handler });
        await complete(await claim(handler), { suspend: { signals: [signal] } });
        await post(`/v1/tasks/${id}/signals`, { name: signal, id: 's1' });
        const woken = await claim(handler);
        expect(woken['woken_by']).toEqual({ kind: 'signal', name: signal });
        const { lease_token } = woken;
        await post(`/v1/tasks/${id}/steps`, { lease_token, name: 'read', consumes: ['s1'] });
        await complete(woken, { suspend: { signals: [signal] } });
        expect(await task(id)).toMatchObject({ waiting_for: 'signal' });
        await post(`/v1/tasks/${id}:cancel`, {});
      },
    );
  });
}
