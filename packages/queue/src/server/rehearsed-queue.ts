import type { QueueConfig } from '../core/queue.js';

export const rehearsedQueue = 'rehearsal';

/** Written out, since to fill in defaults takes longer than to rehearse. */
export function rehearsedConfig(callbackUrl: string): QueueConfig {
  return {
    description: '',
    callback: {
      url: callbackUrl,
      protocol: 'http',
      timeout_ms: 5_000,
      connect_timeout_ms: 5_000,
      async_timeout_ms: 5_000,
      auth: { type: 'none' },
      signing: null,
    },
    retry: {
      max_attempts: 1,
      initial_backoff_ms: 1_000,
      multiplier: 2,
      max_backoff_ms: 1_000,
      retry_statuses: [],
      dead_statuses: [],
    },
    limits: {
      max_payload_bytes: 1_048_576,
      max_in_flight: 64,
      dispatch_per_second: 0,
      submit_per_second: 0,
      max_pending: 0,
    },
    lease: { grace_ms: 15_000 },
    retention: { succeeded_ms: 0, dead_ms: 0 },
    circuit_breaker: {
      enabled: true,
      failure_ratio: 0.7,
      min_requests: 10,
      window_ms: 30_000,
      open_ms: 30_000,
    },
    ordering: { mode: 'none' },
  };
}
