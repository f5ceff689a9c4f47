import { expect, test } from 'vitest';
import { stopSignal } from './serve-command.js';

test('a server that listens is notified of the end once', async () => {
  let end = () => {};
  const stopped = new Promise<void>((resolve) => (end = resolve));
  const signals = stopSignal(stopped);
  const received: string[] = [];
  signals.on('SIGTERM', () => received.push('first'));
  const gone = () => received.push('gone');
  signals.on('SIGTERM', gone);
  signals.removeListener('SIGTERM', gone);
  signals.on('SIGINT', () => received.push('never'));
  end();
  await stopped;
  expect(received).toEqual(['first']);
});

test('one that was still starting is notified of it as soon as it listens', async () => {
  const stopped = Promise.resolve();
  const signals = stopSignal(stopped);
  await stopped;
  await new Promise<void>((resolve) => void signals.on('SIGTERM', resolve));
});
