import { expect, test } from 'vitest';
import { systemClock, type Clock } from '../base/clock-and-random.js';
import { eventStream, eventText } from './sse.js';
import type { ServerEvent } from './sse.js';

test('an event is written field by field', () => {
  expect(eventText({ id: '7', event: 'task', data: { a: 1 } })).toBe(
    'id: 7\nevent: task\ndata: {"a":1}\n\n',
  );
});

test('line breaks cannot forge fields or events', () => {
  expect(eventText({ data: 'a\nb\r\nid: 9\rc' })).toBe(
    'data: a\ndata: b\ndata: id: 9\ndata: c\n\n',
  );
  expect(eventText({ id: 'a\nevent: x', data: '' })).toBe('id: a event: x\ndata: \n\n');
});

async function collect(stream: AsyncIterable<string>): Promise<string[]> {
  const parts: string[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

test('the stream opens with a comment and ends with its source', async () => {
  async function* two(): AsyncGenerator<ServerEvent> {
    yield { data: 'one' };
    yield await Promise.resolve({ data: 'two' });
  }
  const stream = eventStream(two(), { clock: systemClock, signals: [] });
  expect(await collect(stream)).toEqual([': open\n\n', 'data: one\n\n', 'data: two\n\n']);
});

test('silence is filled with heartbeats until a signal ends the stream', async () => {
  const controller = new AbortController();
  let beats = 0;
  const clock: Clock = {
    ...systemClock,
    after: (_delayMs, run) => {
      if (++beats === 3) controller.abort();
      return systemClock.after(1, run);
    },
  };
  let returned = false;
  const source: AsyncIterable<ServerEvent> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => undefined),
      return: () => {
        returned = true;
        return Promise.resolve({ done: true, value: undefined });
      },
    }),
  };
  const parts = await collect(eventStream(source, { clock, signals: [controller.signal] }));
  expect(parts).toEqual([': open\n\n', ': beat\n\n', ': beat\n\n']);
  expect(returned).toBe(true);
});

test('a signal that is aborted already ends the stream at once', async () => {
  async function* endless(): AsyncGenerator<ServerEvent> {
    for (;;) yield await Promise.resolve({ data: 'x' });
  }
  const stream = eventStream(endless(), { clock: systemClock, signals: [AbortSignal.abort()] });
  expect((await collect(stream)).length).toBeLessThanOrEqual(2);
});
