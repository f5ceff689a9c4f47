import type { Session } from '../sessions/port.js';
import { phaseOf } from '../core/session-phase.js';
import { tailOf } from '../pipelines/output.js';

/** The report to the queue when a task's session has ended. */
export type Report =
  | { kind: 'complete' }
  | {
      kind: 'fail';
      error_type: string;
      message: string;
      retry: boolean;
      /** The attempt does not count. */
      defer?: boolean;
      retry_after_ms?: number;
    };

/** The queue stores at most this much of a message, from its start. */
const maxMessageBytes = 1_024;
const maxReasonBytes = 256;
/** Assumed duration of a limit without a known reset time. */
const defaultLimitMs = 15 * 60_000;

/** The report on a session; undefined while it is running. */
export function reportOf(session: Session, said: string, now: number): Report | undefined {
  switch (phaseOf(session)) {
    case 'works':
    case 'waits':
      return undefined;
    case 'done':
      return { kind: 'complete' };
    case 'limited':
      return {
        ...failure('RATE_LIMITED', session.last_error ?? 'the provider limits requests', said),
        defer: true,
        retry_after_ms: limitMs(session, now),
      };
    case 'stopped':
      // A user stopped it, so it must not be retried.
      return { ...failure('AGENT_STOPPED', 'the session was stopped', said), retry: false };
    case 'failed': {
      const { last_error, status_reason, status } = session;
      const type = status === 'orphaned' ? 'AGENT_LOST' : 'AGENT_FAILED';
      return failure(type, last_error ?? status_reason ?? `the session is ${status}`, said);
    }
  }
}

/** The report on a deleted session. */
export const deletedReport: Report = {
  ...failure('AGENT_STOPPED', 'the session was deleted', ''),
  retry: false,
};

/** The reason in one line, followed by as much of the end of the output as fits. */
function failure(error_type: string, reason: string, said: string): Report & { kind: 'fail' } {
  const head = tailOf(reason.replaceAll(/\s+/g, ' '), maxReasonBytes);
  const room = maxMessageBytes - Buffer.byteLength(head) - 1;
  const message = `${head}\n${tailOf(said, room)}`.trim();
  return { kind: 'fail', error_type, message, retry: true };
}

function limitMs({ limited_until }: Session, now: number): number {
  const until = limited_until === null ? Number.NaN : Date.parse(limited_until);
  return Number.isNaN(until) ? defaultLimitMs : Math.max(0, until - now);
}
