import type { DaemonSchema } from '@millrace/contract/daemon';
import { isEnded } from '../core/session.js';
import { slotMs, type Cell } from '../spend/tally.js';
import { historyKey, type SessionHistory } from '../spend/session-history.js';
import type { KnownPlace } from '../spend/rows.js';

type OwnSession = DaemonSchema<'Session'>;

/**
 * Merges sessions from transcripts with the daemon's own. A session in both is counted once: the
 * transcript has its activity, the daemon its name, the time of its run and how it ended. Most CLIs
 * write no transcript that the daemon can read, and a session that failed at start has none.
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
    return transcript ? joined(transcript, session, now) : alone(session, now);
  });
  return [...byKey.values(), ...ownSessions];
}

function keyOf(backend: string, agent: string): string {
  return historyKey({ backend, agent });
}

function joined(transcript: Session, session: OwnSession, now: number): Session {
  const { id, name } = session;
  // The transcript may name a worktree that is gone by now.
  const repo = session.repo ?? transcript.repo;
  const ended = isEnded(session) ? { hasEnded: true, endsInFailure: hasFailed(session) } : {};
  return { ...transcript, id, name, repo, ...ended, ...timesOf(transcript, session, now) };
}

/** A headless agent works from its start to its end, also between its messages. */
function timesOf(transcript: Session, session: OwnSession, now: number): Partial<Session> {
  // Between its starts it does not.
  if (session.driver !== 'headless' || session.restart_count > 0) return {};
  const { firstAt, lastAt, stretches } = alone(session, now);
  // A session that ended here may have been resumed elsewhere, so its last messages still count.
  const later = transcript.stretches
    .filter(({ to }) => to > lastAt)
    .map(({ from, to }) => ({ from: Math.max(from, lastAt), to }));
  return {
    firstAt: Math.min(firstAt, transcript.firstAt),
    lastAt: Math.max(lastAt, transcript.lastAt),
    stretches: [...stretches, ...later],
  };
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

type CoEditedFiles = DaemonSchema<'CoEditedFiles'>;
type ParallelCandidate = DaemonSchema<'ParallelCandidate'>;

const maxShown = 100;
/** Sessions that edit more files than this say nothing about which files belong together. */
const maxPairedFiles = 40;
/** Sessions with a longer pause between them are considered unrelated. */
const maxPauseMs = 4 * 3_600_000;

/** Pairs of files edited together by at least two sessions, the most frequent first. */
export function coEditedFiles(sessions: readonly Session[]): CoEditedFiles[] {
  const edits = new Map<string, number>();
  const pairs = new Map<string, { repo: string; files: [string, string]; sessions: number }>();
  const nameOf = (...parts: readonly string[]) => parts.join('\0');
  for (const { repo, files } of sessions) {
    for (const file of files)
      edits.set(nameOf(repo, file), (edits.get(nameOf(repo, file)) ?? 0) + 1);
    if (files.length > maxPairedFiles) continue;
    for (const [at, first] of files.entries()) {
      for (const second of files.slice(at + 1)) {
        const name = nameOf(repo, first, second);
        const pair = pairs.get(name);
        if (pair) pair.sessions += 1;
        else pairs.set(name, { repo, files: [first, second], sessions: 1 });
      }
    }
  }
  return [...pairs.values()]
    .filter((pair) => pair.sessions >= 2)
    .map((pair) => {
      const [first, second] = pair.files.map((file) => edits.get(nameOf(pair.repo, file))!);
      return { ...pair, share: pair.sessions / (first! + second! - pair.sessions) };
    })
    .sort(
      (a, b) =>
        b.sessions - a.sessions ||
        b.share - a.share ||
        (nameOf(a.repo, ...a.files) < nameOf(b.repo, ...b.files) ? -1 : 1),
    )
    .slice(0, maxShown);
}

/** Consecutive sessions in one repository that edited no common file. */
export function parallelCandidates(ended: readonly Session[]): ParallelCandidate[] {
  const last = new Map<string, Session>();
  const candidates: ParallelCandidate[] = [];
  for (const second of ended) {
    const first = last.get(second.repo);
    last.set(second.repo, second);
    if (!first || second.firstAt < first.lastAt) continue;
    if (second.firstAt - first.lastAt > maxPauseMs) continue;
    // Without known edits there is no evidence that the sessions are independent.
    if (first.files.length === 0 || second.files.length === 0) continue;
    const firstFiles = new Set(first.files);
    const saved = Math.min(workOf(first), workOf(second));
    if (saved === 0 || second.files.some((file) => firstFiles.has(file))) continue;
    candidates.push({
      repo: second.repo,
      first_id: first.id,
      first_name: first.name ?? first.id,
      second_id: second.id,
      second_name: second.name ?? second.id,
      saved_ms: saved,
      reason: 'they have no edited file in common',
    });
  }
  return candidates
    .sort((a, b) => b.saved_ms - a.saved_ms || (a.first_id < b.first_id ? -1 : 1))
    .slice(0, maxShown);
}

/** A session with its activity as intervals without overlap. */
export interface Session extends SessionHistory {
  stretches: readonly { from: number; to: number }[];
  /** Its name, if it has one. */
  name?: string;
  /** Whether it has ended, if known; otherwise inferred from inactivity. */
  hasEnded?: boolean;
  /** Whether its activity is known (default: true). */
  isTimed?: boolean;
}

/** Active time of a session, without idle time. */
export function workOf({ stretches }: Session): number {
  return stretches.reduce((sum, { from, to }) => sum + (to - from), 0);
}

export interface Histories {
  histories(): Iterable<SessionHistory>;
  cells(): Iterable<Cell>;
  place(number: number): KnownPlace;
}

/**
 * Sessions with their activity: the quarters of an hour in which they used tokens, the first and
 * the last one cut to the first and last message.
 */
export function sessionsOf(sums: Histories): Session[] {
  const slots = new Map<string, Set<number>>();
  for (const { slot, place } of sums.cells()) {
    const key = historyKey(sums.place(place));
    const active = slots.get(key);
    if (active) active.add(slot);
    else slots.set(key, new Set([slot]));
  }
  return [...sums.histories()].map((history) => {
    const { firstAt, lastAt } = history;
    const active = slots.get(historyKey({ backend: history.backend, agent: history.id }));
    const stretches = [...(active ?? [])]
      .sort((a, b) => a - b)
      .map((slot) => ({
        from: Math.max(slot * slotMs, firstAt),
        to: Math.min((slot + 1) * slotMs, lastAt),
      }))
      .filter(({ from, to }) => to > from);
    return { ...history, stretches };
  });
}
