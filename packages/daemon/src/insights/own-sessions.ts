import type { DaemonSchema } from '@millrace/contract/daemon';
import { isEnded } from '../core/session.js';
import { slotMs } from '../spend/tally.js';
import { historyKey } from '../spend/session-history.js';
import type { Session } from './session.js';

type OwnSession = DaemonSchema<'Session'>;

/**
 * Merges sessions from transcripts with the daemon's own. A session in both is counted once: the
 * transcript has its activity, the daemon its name and how it ended. Most CLIs write no transcript
 * that the daemon can read, and a session that failed at start has none.
 */
export function withOwnSessions(
  found: readonly Session[],
  own: readonly OwnSession[],
  now: number,
): Session[] {
  const byKey = new Map(found.map((each) => [keyOf(each.backend, each.id), each]));
  const ownSessions = own.map((session) => {
    const key = keyOf(session.backend, session.backend_session_id ?? '');
    const transcript = byKey.get(key);
    byKey.delete(key);
    return transcript ? joined(transcript, session) : alone(session, now);
  });
  return [...byKey.values(), ...ownSessions];
}

function keyOf(backend: string, agent: string): string {
  return historyKey({ backend, agent });
}

function joined(transcript: Session, session: OwnSession): Session {
  const { id, name } = session;
  // A session that ended here may have been resumed elsewhere, so its last message still counts.
  const ended = isEnded(session) ? { hasEnded: true, endsInFailure: hasFailed(session) } : {};
  return { ...transcript, id, name, ...ended };
}

function alone(session: OwnSession, now: number): Session {
  const { id, name, backend, model, repo, workdir, driver } = session;
  const hasEnded = isEnded(session);
  const firstAt = Date.parse(session.created_at);
  const lastAt = Math.max(firstAt, hasEnded ? Date.parse(session.status_since) : now);
  // An interactive session also waits for its user, for an unknown time.
  const isTimed = driver === 'headless';
  return {
    id,
    name,
    backend,
    model: model ?? 'unknown',
    repo: repo ?? workdir,
    firstAt,
    lastAt,
    endsInFailure: hasFailed(session),
    files: [],
    stretches: isTimed ? stretchesOf(firstAt, lastAt) : [],
    hasEnded,
    isTimed,
  };
}

function hasFailed({ status }: OwnSession): boolean {
  return status === 'errored' || status === 'orphaned';
}

/** Splits activity into quarters of an hour, as transcripts are. */
function stretchesOf(firstAt: number, lastAt: number): Session['stretches'] {
  const stretches = [];
  for (let from = firstAt; from < lastAt;) {
    const to = Math.min(lastAt, (Math.floor(from / slotMs) + 1) * slotMs);
    stretches.push({ from, to });
    from = to;
  }
  return stretches;
}
