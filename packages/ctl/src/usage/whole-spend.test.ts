import { expect, test } from 'vitest';
import type { DaemonApi } from '../daemon/api.js';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import type { Lifecycle } from '../base/lifecycle.js';
import type { Terminal } from '../base/terminal.js';
import { readWholeSpend } from './whole-spend.js';

/** A daemon whose answers take this long, with a scan that ends after some of them. */
function slowDaemon(answerMs: number, answersInScan: number) {
  let now = 0;
  const calls: string[] = [];
  const call = async (operation: string) => {
    calls.push(operation);
    if (operation === 'getSpend') {
      now += answerMs;
      return contractExample('SpendRollup');
    }
    const isScanning = calls.filter((each) => each === 'getSpend').length < answersInScan;
    const scan = { bytes_read: 43, bytes_total: 100, elapsed_ms: now + 5_000 };
    return { ...contractExample('Metrics'), transcript_scan: isScanning ? scan : undefined };
  };
  const api = { url: 'http://127.0.0.1:1', call } as unknown as DaemonApi;
  return { api, calls, clock: { monotonic: () => now } };
}

function watching(isScreen: boolean) {
  let shown = '';
  const err = {
    write: (text: string) => void (shown += text),
    paint: (_tone: string, text: string) => text,
    isScreen,
  };
  const terminal = { err } as unknown as Terminal;
  const lifecycle = { interrupted: new AbortController().signal } as Lifecycle;
  return { here: { terminal, lifecycle }, shown: () => shown };
}

test('spend: a quick answer is whole, and the scan is not looked up', async () => {
  const { api, calls, clock } = slowDaemon(50, 9);
  const { here, shown } = watching(false);
  expect(await readWholeSpend(api, here, clock)).toEqual(contractExample('SpendRollup'));
  expect([calls, shown()]).toEqual([['getSpend'], '']);
});

test('spend: without a terminal the figures so far come with a warning', async () => {
  const { api, calls, clock } = slowDaemon(20_000, 9);
  const { here, shown } = watching(false);
  await readWholeSpend(api, here, clock);
  expect(calls).toEqual(['getSpend', 'getMetrics']);
  expect(shown()).toBe(
    'Warning: The daemon has read 43% of the transcripts. Run it again for the rest.\n',
  );
});

test('spend: on a terminal the end of the scan is waited for', async () => {
  const { api, calls, clock } = slowDaemon(20_000, 3);
  const { here } = watching(true);
  await readWholeSpend(api, here, clock);
  expect(calls.filter((each) => each === 'getSpend')).toHaveLength(3);
});
