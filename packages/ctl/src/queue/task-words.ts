import type { QueueSchema } from '@millrace/contract/queue';

type Task = QueueSchema<'Task'>;

const waits: Readonly<Record<QueueSchema<'WaitingFor'>, string>> = {
  time: 'it is not due yet',
  paused: 'the queue is paused, or its callback URL has left the allowlist',
  concurrency: 'as many tasks run as the queue allows (limits.max_in_flight)',
  rate_limit: 'the queue has started as many as it may this second (limits.dispatch_per_second)',
  circuit_open: 'the handler keeps failing, so the circuit breaker is open',
  group: 'an earlier task of its group goes first',
  dispatch: 'it is next in turn',
};

/** `: it is not due yet`, or nothing when it does not wait. */
export function waitingText({ status, waiting_for: reason }: Task): string {
  return status === 'PENDING' && reason !== undefined ? `: ${waits[reason]}` : '';
}

/** `HTTP_5XX 503: the handler's words`. */
export function errorText(error: QueueSchema<'LastError'>): string {
  const status = error.http_status === null ? '' : ` ${error.http_status}`;
  return `${error.error_type}${status}${error.message === '' ? '' : `: ${error.message}`}`;
}
