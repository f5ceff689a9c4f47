import { systemClock, type Clock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { Client } from '../../src/storage/postgres/connections.js';
import { Notifications } from '../../src/storage/postgres/notifications.js';
import { startPostgres, type PostgresServer } from './postgres-server.js';

let postgres: PostgresServer;
let url: string;
beforeAll(async () => {
  postgres = await startPostgres();
  url = await postgres.database('notifications');
});
afterAll(() => postgres.remove());

/** A clock whose timers run only when the test says so. */
function stoppedClock() {
  const timers: { delayMs: number; run: () => void }[] = [];
  const clock: Clock = {
    ...systemClock,
    after: (delayMs, run) => {
      const timer = { delayMs, run };
      timers.push(timer);
      return { cancel: () => void timers.splice(timers.indexOf(timer), 1) };
    },
  };
  const ring = (delayMs: number) => {
    const index = timers.findIndex((timer) => timer.delayMs === delayMs);
    expect(index).not.toBe(-1);
    timers.splice(index, 1)[0]!.run();
  };
  return { clock, ring };
}

async function listen(instance: string, clock: Clock) {
  const works: string[] = [];
  const freed: string[] = [];
  const notifications = new Notifications({
    url,
    sessionName: undefined,
    clock,
    log: silentLog,
    instance,
    onWork: (queue) => works.push(queue),
    onSlotFreed: (queue) => freed.push(queue),
    onCancelled: () => {},
  });
  await notifications.start();
  onTestFinished(() => notifications.close());
  return { notifications, works, freed };
}

const untilSeen = (works: readonly string[], expected: readonly string[]) =>
  vi.waitFor(() => expect(works).toEqual(expected), { timeout: 60_000 });

test('notifications: the first is sent at once, the next together after the interval', async () => {
  const { clock, ring } = stoppedClock();
  const sender = await listen('one', clock);
  const { works } = await listen('two', systemClock);
  sender.notifications.send(['mail']);
  await untilSeen(works, ['mail']);
  sender.notifications.send(['mail', 'print']);
  sender.notifications.send(['print']);
  ring(4);
  await untilSeen(works, ['mail', 'mail', 'print']);
  // After an interval without work the next is sent at once again.
  ring(4);
  sender.notifications.send(['mail']);
  await untilSeen(works, ['mail', 'mail', 'print', 'mail']);
  expect(sender.works).toEqual([]);
});

test('notifications: freed slots do not delay new work', async () => {
  const { clock } = stoppedClock();
  const sender = await listen('one', clock);
  const { works, freed } = await listen('two', systemClock);
  sender.notifications.sendSlotsFreed(['mail']);
  sender.notifications.send(['print']);
  await untilSeen(works, ['print']);
  expect(freed).toEqual(['mail']);
});

test('notifications: names beyond one message follow in the next', async () => {
  const { clock, ring } = stoppedClock();
  const sender = await listen('one', clock);
  const { works } = await listen('two', systemClock);
  const names = Array.from({ length: 60 }, (_, n) => `queue-${n}`);
  sender.notifications.send(names);
  ring(4);
  await untilSeen(works, names);
});

test('notifications: a commit waits for no disk', async () => {
  const query = vi.spyOn(Client.prototype, 'query');
  onTestFinished(() => query.mockRestore());
  const { notifications } = await listen('one', systemClock);
  const client = query.mock.contexts[0] as Client;
  const { rows } = await client.query<{ synchronous_commit: string }>('SHOW synchronous_commit');
  expect(rows).toEqual([{ synchronous_commit: 'off' }]);
  await notifications.close();
});
