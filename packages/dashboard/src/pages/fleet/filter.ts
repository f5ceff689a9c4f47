import type { DaemonSchema } from '@millrace/contract/daemon';
import { newestAttempts } from '@millrace/contract/lists/daemon';

type Session = DaemonSchema<'Session'>;
type Status = Session['status'];

export type StatusGroup = 'all' | 'attention' | 'working' | 'idle' | 'done';

/** The title of each group and its statuses; without them it has all. */
export const statusGroups: Readonly<
  Record<StatusGroup, readonly [title: string, statuses?: readonly Status[]]>
> = {
  all: ['All'],
  attention: ['Needs attention', ['waiting_for_input', 'errored', 'orphaned', 'rate_limited']],
  working: ['Working', ['spawning', 'working']],
  idle: ['Idle', ['idle']],
  done: ['Done', ['done']],
};

export const isIn = (group: StatusGroup, status: Status): boolean =>
  statusGroups[group][1]?.includes(status) ?? true;

/** The earlier attempts at the queue task of a session, oldest first. */
export function earlierAttempts(sessions: readonly Session[]): (of: Session) => Session[] {
  const retried = sessions.filter(({ task }) => task);
  return ({ id, task }) =>
    retried
      .filter((each) => each.task!.id === task?.id && each.id !== id)
      .toSorted((a, b) => a.task!.attempt - b.task!.attempt);
}

/** The columns of the board with one card for each queue task, where its newest attempt is. */
export function boardCards(
  columns: DaemonSchema<'Board'>['columns'],
  text: string,
): { name: DaemonSchema<'BoardColumnName'>; sessions: readonly Session[] }[] {
  const all = columns
    .flatMap(({ sessions }) => sessions)
    .toSorted((a, b) => (a.id < b.id ? 1 : -1));
  const newest = new Set(newestAttempts(all).map(({ id }) => id));
  return columns.map(({ name, sessions }) => ({
    name,
    sessions: filterSessions(
      sessions.filter(({ id }) => newest.has(id)),
      text,
      'all',
    ),
  }));
}

/** The sessions of a group that contain every word of the text; an id is found by its start. */
export function filterSessions(
  sessions: readonly Session[],
  text: string,
  group: StatusGroup,
): readonly Session[] {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  // Retries of a queue task are one row.
  return newestAttempts(sessions).filter((session) => {
    if (!isIn(group, session.status)) return false;
    if (wanted.length === 0) return true;
    const { id, name, backend, model, repo, branch, tags, status } = session;
    const hay = [name, backend, model, repo, branch, status, ...tags].join(' ').toLowerCase();
    return wanted.every((word) => hay.includes(word) || id.toLowerCase().startsWith(word));
  });
}
