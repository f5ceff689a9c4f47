import { expect } from 'vitest';
import type { WatchChange, WatchMessage } from './message.js';

export type Message = WatchMessage<WatchChange<Item>>;

export interface Item {
  n?: number;
  name?: string;
  group?: string;
}

/** The next message, which must be there. */
export async function next<Shown>(
  watch: AsyncIterator<WatchMessage<Shown>>,
): Promise<WatchMessage<Shown>> {
  const step = await watch.next();
  expect(step.done ?? false).toBe(false);
  return step.value as WatchMessage<Shown>;
}

export async function take<Shown>(
  watch: AsyncIterator<WatchMessage<Shown>>,
  count: number,
): Promise<WatchMessage<Shown>[]> {
  const messages: WatchMessage<Shown>[] = [];
  while (messages.length < count) messages.push(await next(watch));
  return messages;
}

/** Reads on until a message covers `seq`. */
export async function takeUntil<Shown>(
  watch: AsyncIterator<WatchMessage<Shown>>,
  seq: number,
): Promise<WatchMessage<Shown>[]> {
  const messages: WatchMessage<Shown>[] = [];
  while (messages.at(-1)?.seq !== seq) messages.push(await next(watch));
  return messages;
}

/** What a message says, in few words: `5 update bob entered`. */
export function summaryOf({ kind, seq, changes }: Message): string {
  const each = changes.map(({ op, record, entered, left }) =>
    [op, record.key, entered ? 'entered' : '', left ? 'left' : ''].filter(Boolean).join(' '),
  );
  return kind === 'changes' ? `${seq} ${each.join(', ')}` : `${kind} ${each.join(', ')}`.trim();
}

/** Lets everything that is under way without a timer come to rest. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}
