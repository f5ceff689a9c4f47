import { Refusal } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { harmless } from '../http/exchange.js';

/** What people call a thing that has an id and a name. */
export interface Wording {
  readonly kind: string;
  /** Of the refusal when there is none. */
  readonly code: string;
  /** The command that shows them all. */
  readonly list: string;
}

interface Named {
  readonly id: string;
  readonly name: string;
}

/** The one that is meant by its id, its name, or the beginning of its id. */
export function chosen<Each extends Named>(
  all: readonly Each[],
  words: string,
  { kind, code, list }: Wording,
): Each {
  const whole = all.find(({ id }) => id === words);
  if (whole) return whole;
  const byName = all.filter(({ name }) => name === words);
  const found = byName.length > 0 ? byName : startingWith(all, words);
  const [first, ...others] = found;
  if (first && others.length === 0) return first;
  if (first) {
    const shown = found.slice(0, mostShown).map(({ id, name }) => `${id} (${harmless(name)})`);
    const more = found.length > mostShown ? `, and ${found.length - mostShown} more` : '';
    throw new Refusal(
      'AMBIGUOUS',
      `"${words}" may be any of ${found.length}: ${shown.join(', ')}${more}. ` +
        'Give the id, or more of it.',
    );
  }
  const names = all.map(({ name }) => harmless(name));
  const meant = suggestion(words, names) || `; \`${list}\` shows them all.`;
  throw new Refusal(code, `no ${kind} is called "${words}"${meant}`);
}

/** Ids are in capitals, which nobody types. */
function startingWith<Each extends Named>(all: readonly Each[], words: string): Each[] {
  const start = words.toUpperCase();
  return start === '' ? [] : all.filter(({ id }) => id.toUpperCase().startsWith(start));
}

const mostShown = 5;
const shortestId = 8;

/** The ids as short as they can be told from one another; a pipe gets them whole. */
export function tellingIds(
  ids: readonly string[],
  { columns }: { columns: number },
): Map<string, string> {
  if (!Number.isFinite(columns)) return new Map(ids.map((id) => [id, id]));
  const sorted = ids.toSorted((a, b) => (a < b ? -1 : 1));
  return new Map(
    sorted.map((id, at) => {
      const neighbours = [sorted[at - 1] ?? '', sorted[at + 1] ?? ''];
      const shared = neighbours.map((other) => sharedLength(id, other));
      return [id, id.slice(0, Math.max(shortestId, ...shared.map((length) => length + 1)))];
    }),
  );
}

function sharedLength(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}
