import type { Session } from '../sessions/port.js';
import { phaseOf } from '../core/session-phase.js';
import { tailOf } from '../pipelines/output.js';

/** What the queue is told when a session is over with its task. */
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

/** The queue keeps so much of a message, and of a longer one the start. */
const maxMessageBytes = 1_024;
const maxReasonBytes = 256;
/** When nobody says how long a limit lasts. */
const defaultLimitMs = 15 * 60_000;

/** The report on a session; undefined while the session is still at it. */
export function reportOf(session: Session, said: string, now: number): Report | undefined {
  switch (phaseOf(session)) {
    case 'works':
    case 'waits':
      return undefined;
    case 'done':
      return { kind: 'complete' };
    case 'limited':
      return {
        ...failure('RATE_LIMITED', session.last_error ?? 'the provider refuses to go on', said),
        defer: true,
        retry_after_ms: limitMs(session, now),
      };
    case 'stopped':
      // Whoever stopped it does not want it to be started again by itself.
      return { ...failure('AGENT_STOPPED', 'the session was stopped', said), retry: false };
    case 'failed': {
      const { last_error, status_reason, status } = session;
      const type = status === 'orphaned' ? 'AGENT_LOST' : 'AGENT_FAILED';
      return failure(type, last_error ?? status_reason ?? `the session is ${status}`, said);
    }
  }
}

/** The report on a session that somebody deleted. */
export const deletedReport: Report = {
  ...failure('AGENT_STOPPED', 'the session was deleted', ''),
  retry: false,
};

/** First the reason in a line, then as much of the end of what the agent said as there is room. */
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
