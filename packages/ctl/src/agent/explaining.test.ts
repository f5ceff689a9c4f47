import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { contractExample } from '../daemon/contract-examples.test-support.js';
import { plain } from '../render/paint.js';
import { explain, explanationSheet } from './explaining.js';

type Session = DaemonSchema<'Session'>;

const now = Date.parse('2026-01-15T09:30:00.000Z');
const working = contractExample('Session');
const waiting = contractExample('SessionList').sessions[0]!;

test('at 80 columns: what it does, how that is known, and what to do', () => {
  expect(explanationSheet(waiting, now, { columns: 80, paint: plain })).toBe(
    `
agent       docs (01K9ZQ5A2N4P6R8S0T1V3W5X7Y)
status      waiting_for_input: it asked a question and waits for the answer
since       2026-01-15T09:28:00.000Z (for 2m)
evidence    asks whether it may run a command
context     212k tokens, warning
limits      none
last error  none
next steps  Answer it: ctl agent send 01K9ZQ5A2N4P6R8S0T1V3W5X7Y "TEXT"
            Or open its terminal: ctl agent attach 01K9ZQ5A2N4P6R8S0T1V3W5X7Y
`.slice(1),
  );
});

test('at 140 columns: one that is limited and whose context is full', () => {
  const limited: Session = {
    ...working,
    status: 'rate_limited',
    status_reason: 'the last line says that the session limit is hit',
    limited_until: '2026-01-15T11:00:00.000Z',
    last_error: 'session limit',
    context_tokens: 410_000,
    context_state: 'critical',
  };
  expect(explanationSheet(limited, now, { columns: 140, paint: plain })).toBe(
    `
agent       retry-upload (01K9ZQ4M7T3V8X2B6C0D5E1F9G)
status      rate_limited: its provider is rate limiting it
since       2026-01-15T09:29:00.000Z (for 1m)
evidence    the last line says that the session limit is hit
context     410k tokens, critical
limits      until 2026-01-15T11:00:00.000Z (in 1h)
last error  session limit
next steps  Wait 1h 30m, until the limit of claude ends.
            Or use another backend: ctl backend list
            Its context is critically full. It is compacted when it is next idle; or force it: ctl agent compact set
            01K9ZQ4M7T3V8X2B6C0D5E1F9G on
`.slice(1),
  );
});

const statuses: Session['status'][] = [
  'spawning',
  'working',
  'waiting_for_input',
  'idle',
  'done',
  'errored',
  'orphaned',
  'rate_limited',
];

test.for(statuses)('%s has a meaning and something to do', (status) => {
  const { meaning, advice } = explain({ ...working, status }, now);
  expect(meaning).not.toBe('');
  expect(advice.join('\n')).toMatch(/ctl (agent|backend) /);
});

test('a headless run that waits cannot be answered, and it says so', () => {
  const { advice } = explain({ ...waiting, driver: 'headless' }, now);
  expect(advice.join('\n')).not.toContain('ctl agent send');
});

test('a limit that is over is said to be over', () => {
  const limited: Session = {
    ...working,
    status: 'rate_limited',
    limited_until: '2026-01-15T09:00:00.000Z',
  };
  expect(explain(limited, now).advice[0]).toContain('is over');
  expect(explanationSheet(limited, now, { columns: 80, paint: plain })).toContain('ended 30m ago');
});
