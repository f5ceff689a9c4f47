import type { Simulation } from '@millrace/kit/simulation';
import type { QueueConfig } from '../src/core/queue.js';
import { sampleConfig } from '../src/delivery/delivery.test-support.js';
import type { Manners } from './handlers.js';

/** The queues of a run and how their handlers behave. */
export const manners: ReadonlyMap<string, Manners> = new Map<string, Manners>([
  ['slow', { latencyMs: [5, 20_000], failChance: 0.1, failures: [{ status: 500 }] }],
  [
    'fifo',
    {
      latencyMs: [1, 800],
      failChance: 0.25,
      failures: [{ status: 503, headers: { 'retry-after': '2' } }, { status: 404 }],
    },
  ],
  [
    'rated',
    {
      latencyMs: [1, 300],
      failChance: 0.1,
      failures: [{ status: 429 }, { status: 429, headers: { 'x-queue-defer': 'true' } }],
    },
  ],
  [
    'flapping',
    {
      latencyMs: [1, 50],
      flapping: { upMs: [20_000, 90_000], downMs: [5_000, 40_000] },
      failures: [
        { errorType: 'CONNECTION_REFUSED' },
        { errorType: 'DNS_FAILURE' },
        { status: 502 },
      ],
    },
  ],
  ['long', { latencyMs: [1, 100], failChance: 0.1, asyncChance: 0.7, failures: [{ status: 500 }] }],
  [
    'hanging',
    {
      latencyMs: [1, 500],
      hangChance: 0.15,
      failChance: 0.2,
      failures: [
        { status: 302 },
        { status: 500, headers: { 'x-queue-retry': 'never' } },
        { errorType: 'CONNECTION_RESET' },
        { errorType: 'TARGET_BLOCKED' },
      ],
    },
  ],
]);

/** A config by chance, with short times so that much happens. */
export function randomConfig(world: Simulation, queue: string): QueueConfig {
  const { between, chance } = {
    between: (low: number, high: number) => world.between([low, high]),
    chance: (p: number) => world.chance(p),
  };
  const isRated = queue === 'rated';
  const initial = between(10, 2_000);
  return sampleConfig({
    callback: {
      url: `https://handlers.example.org/${queue}`,
      timeout_ms: queue === 'slow' ? between(8_000, 25_000) : between(500, 5_000),
      async_timeout_ms: between(1_000, 90_000),
    },
    retry: {
      max_attempts: between(1, 6),
      initial_backoff_ms: initial,
      multiplier: between(1, 3),
      max_backoff_ms: between(initial, 20_000),
    },
    limits: {
      max_in_flight: between(1, 12),
      dispatch_per_second: isRated ? between(1, 6) : 0,
    },
    lease: { grace_ms: between(100, 10_000) },
    retention: {
      succeeded_ms: chance(0.3) ? between(5_000, 120_000) : 86_400_000,
      dead_ms: chance(0.2) ? between(60_000, 300_000) : 0,
    },
    circuit_breaker: {
      enabled: chance(0.8),
      min_requests: between(2, 10),
      window_ms: between(1_000, 30_000),
      open_ms: between(100, 30_000),
    },
    ordering: { mode: queue === 'fifo' ? 'group' : 'none' },
  });
}
