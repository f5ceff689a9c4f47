import type { KnownPlace } from '../spend/place-numbers.js';
import { slotMs, type Cell } from '../spend/tally.js';
import { historyKey, type SessionHistory } from '../spend/session-history.js';
import type { Session } from './session.js';

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
