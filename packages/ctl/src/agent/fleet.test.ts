import { expect, test } from 'vitest';
import { plain } from '../render/paint.js';
import { fleetScreen, type Fleet } from './fleet.js';

const now = Date.parse('2026-11-01T12:00:00Z');
const sheet = { columns: Infinity, paint: plain };
const workers: Fleet['workers'] = [
  {
    worker: 'big-1a2b3c',
    principal: 'agents',
    remote_ip: '10.0.0.7',
    last_seen_at: '2026-11-01T11:59:48.000Z',
    in_flight: 1,
    claimed: 3,
    completed: 2,
    failed: 0,
  },
];

test('fleet: machines, and the tasks that their agents work on', () => {
  const task = {
    id: '01K9ZT6A8B0C2D4E6F8G1H3J5K',
    attempt: 1,
    progress: {
      percent: null,
      message: 'working: docs (claude, session 01K9ZQ4M7T3V8X2B6C0D5E1F9G)',
      at: '2026-11-01T11:59:50.000Z',
    },
  };
  const tasks = [task] as unknown as Fleet['tasks'];
  expect(fleetScreen({ workers, tasks }, now, sheet)).toBe(
    'MACHINE     ADDRESS   SEEN     AGENTS  COMPLETED  FAILED\n' +
      'big-1a2b3c  10.0.0.7  12s ago       1          2       0\n\n' +
      'TASK                        ATTEMPT  REPORTED  AGENT\n' +
      '01K9ZT6A8B0C2D4E6F8G1H3J5K        1  10s ago   ' +
      'working: docs (claude, session 01K9ZQ4M7T3V8X2B6C0D5E1F9G)\n',
  );
});

test('fleet: without a machine it says so', () => {
  expect(fleetScreen({ workers: [], tasks: [] }, now, sheet)).toBe(
    'No machine claimed work in the last 10 minutes.\n',
  );
});
