import type { DaemonSchema } from '@millrace/contract/daemon';
import { isEnded } from '../core/session.js';
import { slotMs } from '../spend/tally.js';
import { historyKey } from '../spend/session-history.js';
import type { Session } from './session.js';

type OwnSession = DaemonSchema<'Session'>;

/**
 * The history of the transcripts and that of the sessions which the daemon has started itself. One
 * that is in both is one session: the transcript tells when it was at work, the daemon how it ended
 * and what it is called. Most command lines leave no transcript that we can read, and one that
 * never came to speak leaves none at all.
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
  // One that is over here may have been taken up elsewhere, so its silence still counts.
  const ended = isEnded(session) ? { hasEnded: true, endsInFailure: hasFailed(session) } : {};
  return { ...transcript, id, name, ...ended };
}

function alone(session: OwnSession, now: number): Session {
  const { id, name, backend, model, repo, workdir, driver } = session;
  const hasEnded = isEnded(session);
  const firstAt = Date.parse(session.created_at);
  const lastAt = Math.max(firstAt, hasEnded ? Date.parse(session.status_since) : now);
  // A conversation also waits for its person, and nothing tells for how long.
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

/** In quarters of an hour, as transcripts have them: each counts for the hour it lies in. */
function stretchesOf(firstAt: number, lastAt: number): Session['stretches'] {
  const stretches = [];
  for (let from = firstAt; from < lastAt;) {
    const to = Math.min(lastAt, (Math.floor(from / slotMs) + 1) * slotMs);
    stretches.push({ from, to });
    from = to;
  }
  return stretches;
}
