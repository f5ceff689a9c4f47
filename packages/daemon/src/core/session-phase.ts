import type { DaemonSchema } from '@millrace/contract/daemon';

type Session = DaemonSchema<'Session'>;

/**
 * Progress of a session with its one assignment, for the pipeline job or queue task that waits for
 * it. `limited`: the provider refuses to continue. `stopped`: ended by someone before it was done.
 */
export type Phase = 'works' | 'waits' | 'limited' | 'done' | 'stopped' | 'failed';

export function phaseOf({
  status,
  exit_code,
  turn_error = null,
}: Pick<Session, 'status' | 'exit_code' | 'turn_error'>): Phase {
  switch (status) {
    case 'spawning':
    case 'working':
      return 'works';
    case 'waiting_for_input':
      return 'waits';
    case 'rate_limited':
      return 'limited';
    case 'idle':
      // An interactive agent does not end by itself: its turn is over.
      return turn_error === null ? 'done' : 'failed';
    case 'done':
      return exit_code === 0 ? 'done' : 'stopped';
    case 'errored':
    case 'orphaned':
      return 'failed';
  }
}

/** True when the two are the same for a waiting job or task. */
export function isSamePhase(a: Session | undefined, b: Session | undefined): boolean {
  if (!a || !b) return a === b;
  return (
    a.status === b.status &&
    a.exit_code === b.exit_code &&
    (a.turn_error ?? null) === (b.turn_error ?? null) &&
    (a.pid === null) === (b.pid === null)
  );
}
