import type { DaemonSchema } from '@millrace/contract/daemon';
import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { applyEvents } from './live-cache.js';

type Event = DaemonSchema<'Event'>;

let lastId = 0;
const event = (type: string, key: string | null, data: unknown = null) =>
  ({ id: String(++lastId), ts: '2026-01-15T09:30:00.000Z', type, key, data }) as unknown as Event;

function clientWith(data: Readonly<Record<string, unknown>>): QueryClient {
  const client = new QueryClient();
  for (const [key, value] of Object.entries(data)) client.setQueryData([key], value);
  return client;
}

const isStale = (client: QueryClient, key: string) =>
  client.getQueryState([key])?.isInvalidated ?? false;

test('applyEvents: updates rows in place and puts new rows first', () => {
  const client = clientWith({ sessions: [{ id: 'b', status: 'working' }, { id: 'a' }] });
  applyEvents(client, [
    event('session.changed', 'b', { id: 'b', status: 'idle' }),
    event('session.changed', 'c', { id: 'c' }),
    event('session.changed', 'd', { id: 'd' }),
    event('session.removed', 'a'),
  ]);
  expect(client.getQueryData(['sessions'])).toEqual([
    { id: 'd' },
    { id: 'c' },
    { id: 'b', status: 'idle' },
  ]);
  expect(client.getQueryData(['session', 'b'])).toEqual({ id: 'b', status: 'idle' });
  expect(client.getQueryData(['session', 'a'])).toBe(null);
});

test('applyEvents: the last change of a batch wins', () => {
  const client = clientWith({ inbox: [{ id: 'n' }] });
  applyEvents(client, [
    event('note.changed', 'm', { id: 'm', read: false }),
    event('note.removed', 'n'),
    event('note.changed', 'm', { id: 'm', read: true }),
    event('note.changed', 'n', { id: 'n', read: true }),
  ]);
  expect(client.getQueryData(['inbox'])).toEqual([
    { id: 'm', read: true },
    { id: 'n', read: true },
  ]);
});

test('applyEvents: identifies branches by agent_id', () => {
  const client = clientWith({ branches: [{ agent_id: 'a', ahead: 1 }] });
  applyEvents(client, [event('branch.changed', 'a', { agent_id: 'a', ahead: 2 })]);
  expect(client.getQueryData(['branches'])).toEqual([{ agent_id: 'a', ahead: 2 }]);
});

test('applyEvents: does not create a list that was never read', () => {
  const client = clientWith({});
  applyEvents(client, [event('pipeline.changed', 'p', { id: 'p' })]);
  expect(client.getQueryData(['pipelines'])).toBe(undefined);
});

test('applyEvents: invalidates only the reports that changed', () => {
  const client = clientWith({ spend: {}, savings: {}, usage: {}, registry: {}, sessions: [] });
  applyEvents(client, [event('spend.changed', null), event('settings.changed', 'settings', {})]);
  expect(isStale(client, 'spend')).toBe(true);
  expect(isStale(client, 'registry')).toBe(true);
  expect(isStale(client, 'savings')).toBe(false);
  expect(isStale(client, 'sessions')).toBe(false);
});

test('applyEvents: stream.reset invalidates everything', () => {
  const client = clientWith({ spend: {}, sessions: [{ id: 'a' }] });
  applyEvents(client, [event('stream.reset', null), event('session.changed', 'b', { id: 'b' })]);
  expect(isStale(client, 'spend')).toBe(true);
  expect(isStale(client, 'sessions')).toBe(true);
  expect(client.getQueryData(['sessions'])).toEqual([{ id: 'a' }]);
});

test('applyEvents: reads the board after a session or branch changed, one read at a time', async () => {
  const client = clientWith({});
  let [running, most, reads] = [0, 0, 0];
  const observer = new QueryObserver(client, {
    queryKey: ['board'],
    queryFn: async ({ signal }) => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      expect(signal.aborted).toBe(false);
      return ++reads;
    },
  });
  const unsubscribe = observer.subscribe(() => {});
  await expect.poll(() => reads).toBe(1);
  for (let batch = 0; batch < 20; batch++) {
    applyEvents(client, [event('session.changed', 'a', { id: 'a' })]);
  }
  await expect.poll(() => reads).toBe(2);
  applyEvents(client, [event('branch.changed', 'a', { agent_id: 'a' })]);
  await expect.poll(() => reads).toBe(3);
  applyEvents(client, [event('note.changed', 'a', { id: 'a' })]);
  await new Promise((resolve) => setImmediate(resolve));
  expect([most, reads, client.isFetching()]).toEqual([1, 3, 0]);
  unsubscribe();
});
