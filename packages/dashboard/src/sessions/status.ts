import type { DaemonSchema } from '@millrace/contract/daemon';
import type { Tone } from '../parts/status.js';

type SessionStatus = DaemonSchema<'SessionStatus'>;

export const sessionTones: Readonly<Record<SessionStatus, Tone>> = {
  spawning: 'busy',
  working: 'busy',
  waiting_for_input: 'warn',
  idle: 'calm',
  done: 'good',
  errored: 'bad',
  orphaned: 'bad',
  rate_limited: 'warn',
};

/** Whether the session has ended. */
export function isOver(status: SessionStatus): boolean {
  return status === 'done' || status === 'errored' || status === 'orphaned';
}
