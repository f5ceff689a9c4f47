import { systemClock } from '@millrace/kit/clock';
import { expect, test, vi } from 'vitest';
import type { Lifecycle } from '../base/lifecycle.js';
import type { Terminal } from '../base/terminal.js';
import { amountText, Progress, whileShown } from './progress.js';

function watching(isScreen: boolean): { terminal: Terminal; shown: () => string } {
  let shown = '';
  const err = { write: (text: string) => void (shown += text), isScreen };
  return { terminal: { err } as unknown as Terminal, shown: () => shown };
}

test('progress is shown where somebody looks, and taken away at the end', () => {
  const { terminal, shown } = watching(true);
  const progress = new Progress(terminal, 'Imported');
  progress.show({ records: 1200, of: 4000, bytes: 2048 });
  expect(shown()).toBe('\rImported 1.2k of 4k (30%) records, 2 KiB');
  progress.end();
  expect(shown()).toMatch(/\r +\r$/);
});

test('a log file gets none of it', () => {
  const { terminal, shown } = watching(false);
  const progress = new Progress(terminal, 'Imported');
  progress.show({ records: 1 });
  progress.end();
  expect(shown()).toBe('');
});

test('it is not drawn more often than eyes can follow', () => {
  const { terminal, shown } = watching(true);
  const progress = new Progress(terminal, 'Exported');
  for (let records = 1; records < 100; records++) progress.show({ records });
  expect(shown()).toBe('\rExported 1 records');
});

test('progress: each step has a rate of its own', () => {
  const { terminal, shown } = watching(true);
  const now = vi.spyOn(systemClock, 'monotonic').mockReturnValue(0);
  try {
    const progress = new Progress(terminal, 'Moving');
    now.mockReturnValue(60_000);
    progress.show({ records: 600, of: 600 });
    progress.show({ records: 1, of: 600 }, 'Comparing');
    now.mockReturnValue(62_000);
    progress.show({ records: 200, of: 600 }, 'Comparing');
  } finally {
    now.mockRestore();
  }
  expect(shown()).toContain('\rMoving 600 of 600 (100%) records, 10/s');
  expect(shown()).toContain('\rComparing 200 of 600 (33%) records, 100/s, 4s left');
});

test('what is not known is left out', () => {
  expect(amountText({ records: 0 })).toBe('');
  expect(amountText({ bytes: 1536 })).toBe('1.5 KiB');
});

test('progress: work of unknown amount shows its time, and the line is cleared', async () => {
  const { terminal, shown } = watching(true);
  const lifecycle = { interrupted: new AbortController().signal } as Lifecycle;
  const shownWork = { verb: 'Compacting', work: async () => 7 };
  expect(await whileShown({ terminal, lifecycle }, shownWork)).toBe(7);
  expect(shown()).toMatch(/^\rCompacting, \S+\r +\r$/);
  const log = watching(false);
  await whileShown({ terminal: log.terminal, lifecycle }, shownWork);
  expect(log.shown()).toBe('');
});

test('progress: work that a server reports shows percent and time left', async () => {
  const { terminal, shown } = watching(true);
  const lifecycle = { interrupted: new AbortController().signal } as Lifecycle;
  let isRead = () => {};
  const work = () => new Promise<number>((resolve) => (isRead = () => resolve(7)));
  const read = async () => {
    setImmediate(() => setImmediate(isRead));
    return { done: 25, of: 100, elapsedMs: 10_000 };
  };
  expect(await whileShown({ terminal, lifecycle }, { verb: 'Compacting', work, read })).toBe(7);
  expect(shown()).toMatch(/^\rCompacting \[#####\.{15}\] 25%, 30s left\r +\r$/);
});

test('progress: a server that does not report shows the time alone', async () => {
  const { terminal, shown } = watching(true);
  const lifecycle = { interrupted: new AbortController().signal } as Lifecycle;
  let isRead = () => {};
  const work = () => new Promise<number>((resolve) => (isRead = () => resolve(7)));
  const read = () => {
    setImmediate(() => setImmediate(isRead));
    return Promise.reject(new Error('gone'));
  };
  expect(await whileShown({ terminal, lifecycle }, { verb: 'Compacting', work, read })).toBe(7);
  expect(shown()).toMatch(/^\rCompacting, \S+\r +\r$/);
});
