import type { Session } from '../sessions/port.js';
import { phaseOf } from '../core/session.js';
import { tailOf } from '../pipelines/output.js';

/** The report to the queue when a task's session has ended. */
export type Report =
  | { kind: 'complete'; result?: TaskResult }
  | {
      kind: 'fail';
      error_type: string;
      message: string;
      retry: boolean;
      /** The attempt does not count. */
      defer?: boolean;
      retry_after_ms?: number;
    };

/** The result of a task: its session and the end of the agent's output. */
export type TaskResult = Pick<Session, 'backend' | 'model' | 'branch'> & {
  session_id: string;
  /** The last answer of the agent, or the end of its output. */
  output: string;
  /** At the exact prices of its models; null when it is unknown. */
  exact_usd: number | null;
};

/** The queue takes 64 KiB of JSON, in which a character may take more than in the text. */
const maxOutputBytes = 16_384;
/** The queue stores at most this much of a message, from its start. */
const maxMessageBytes = 1_024;
const maxReasonBytes = 256;
/** Assumed duration of a limit without a known reset time. */
const defaultLimitMs = 15 * 60_000;

export interface Work {
  /** The end of the output. */
  said: string;
  answer?: string | undefined;
  exactUsd?: number | null;
}

/** The report on a session; undefined while it is running. */
export function reportOf(session: Session, work: Work, now: number): Report | undefined {
  const { said } = work;
  switch (phaseOf(session)) {
    case 'works':
    case 'waits':
      return undefined;
    case 'done':
      return { kind: 'complete', result: resultOf(session, work) };
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

function resultOf({ id, backend, model, branch }: Session, work: Work): TaskResult {
  const { said, answer = said, exactUsd = null } = work;
  const output = tailOf(answer, maxOutputBytes);
  return { session_id: id, backend, model, branch, output, exact_usd: exactUsd };
}

/** The report on a deleted session. */
export const deletedReport: Report = {
  ...failure('AGENT_STOPPED', 'the session was deleted', ''),
  retry: false,
};

/** The reason in one line, followed by as much of the output before it as fits. */
function failure(error_type: string, reason: string, said: string): Report & { kind: 'fail' } {
  const whole = oneLine(reason);
  const head = tailOf(whole, maxReasonBytes);
  const room = maxMessageBytes - Buffer.byteLength(head) - 1;
  const message = `${head}\n${tailOf(withoutEnd(said, whole), room)}`.trim();
  return { kind: 'fail', error_type, message, retry: true };
}

/** The reason is often the last that the agent said: it is not said twice. */
function withoutEnd(said: string, reason: string): string {
  const lines = said.trimEnd().split('\n');
  for (let count = 1; count <= lines.length; count++) {
    const end = oneLine(lines.slice(-count).join(' '));
    if (end === reason) return lines.slice(0, -count).join('\n');
    if (end.length > reason.length) break;
  }
  return said;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function limitMs({ limited_until }: Session, now: number): number {
  const until = limited_until === null ? Number.NaN : Date.parse(limited_until);
  return Number.isNaN(until) ? defaultLimitMs : Math.max(0, until - now);
}
