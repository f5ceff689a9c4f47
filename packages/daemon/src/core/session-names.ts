import type { Session } from './session.js';

type Named = Pick<Session, 'id' | 'name' | 'status'>;

const endedStatuses: ReadonlySet<string> = new Set(['done', 'errored', 'orphaned']);

/** A live session occupies its name. One that waits for the end of a limit is live. */
export function isLive({ status }: Pick<Session, 'status'>): boolean {
  return !endedStatuses.has(status);
}

/** The name, or the first of `name-2`, `name-3`, ... that is free. */
export function freeName(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted;
  for (let number = 2; ; number++) {
    const suffix = `-${number}`;
    const name = `${wanted.slice(0, maxNameLength - suffix.length)}${suffix}`;
    if (!taken.has(name)) return name;
  }
}

/** As the contract has it. */
const maxNameLength = 128;

/** Shorter prefixes would be guesses. */
const minPrefixLength = 6;

/**
 * The sessions that words may mean: an id, else a name (of live sessions first), else a prefix of
 * ids. One of them is the answer; several are ambiguous.
 */
export function sessionsMeant<Each extends Named>(all: readonly Each[], words: string): Each[] {
  const exact = all.find(({ id }) => id === words);
  if (exact) return [exact];
  const named = all.filter(({ name }) => name === words);
  const live = named.filter(isLive);
  if (live.length > 0) return live;
  if (named.length > 0 || words.length < minPrefixLength) return named;
  const prefix = words.toUpperCase();
  return all.filter(({ id }) => id.toUpperCase().startsWith(prefix));
}
