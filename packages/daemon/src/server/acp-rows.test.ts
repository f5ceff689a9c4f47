import { memoryLog } from '@millrace/kit/log';
import { simulate } from '@millrace/kit/simulation';
import { expect, test } from 'vitest';
import { fillAcpRows } from './agents.js';

test('acp rows: programs are checked once, ten seconds after the start', async () => {
  const simulation = simulate(1);
  const { clock } = simulation;
  const log = memoryLog();
  let count = 0;
  const findMissingAcp = (onError: (id: string, error: unknown) => void) => {
    count += 1;
    onError('gemini', new Error('it is gone'));
    return Promise.resolve();
  };
  const rows = fillAcpRows({ backends: { findMissingAcp }, clock, log });
  await simulation.runFor(9_999);
  expect(count).toBe(0);
  await simulation.runFor(60_000);
  expect(count).toBe(1);
  expect(log.lines).toMatchObject([
    { level: 'warn', fields: { backend: 'gemini', reason: 'it is gone' } },
  ]);
  await rows.close();
});

test('acp rows: a daemon that stops before checks nothing', async () => {
  const simulation = simulate(1);
  const { clock } = simulation;
  let count = 0;
  const findMissingAcp = () => {
    count += 1;
    return Promise.resolve();
  };
  await fillAcpRows({ backends: { findMissingAcp }, clock, log: memoryLog() }).close();
  await simulation.runFor(60_000);
  expect(count).toBe(0);
});
