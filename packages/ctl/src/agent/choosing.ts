import { Refusal } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { harmless } from '../base/exchange.js';

/** Wording for a resource that has an id and a name. */
export interface Wording {
  readonly kind: string;
  /** Error code if nothing matches. */
  readonly code: string;
  /** Command that lists all of them. */
  readonly list: string;
}

interface Named {
  readonly id: string;
  readonly name: string;
}

/** Finds one item by id, name or id prefix; among items of one name, a live one comes first. */
export function chosen<Each extends Named>(
  all: readonly Each[],
  words: string,
  { kind, code, list }: Wording,
  isLive: (each: Each) => boolean = () => false,
): Each {
  const whole = all.find(({ id }) => id === words);
  if (whole) return whole;
  const named = all.filter(({ name }) => name === words);
  const live = named.filter(isLive);
  const byName = live.length > 0 ? live : named;
  const found = byName.length > 0 ? byName : startingWith(all, words);
  const [first, ...others] = found;
  if (first && others.length === 0) return first;
  if (first) {
    const shown = found.slice(0, maxShown).map(({ id, name }) => `${id} (${harmless(name)})`);
    const more = found.length > maxShown ? `, and ${found.length - maxShown} more` : '';
    throw new Refusal(
      'AMBIGUOUS',
      `"${words}" matches ${found.length}: ${shown.join(', ')}${more}. Use the id, or a ` +
        'longer prefix of it.',
    );
  }
  const names = all.map(({ name }) => harmless(name));
  const meant = suggestion(words, names) || `. List them all with \`${list}\`.`;
  throw new Refusal(code, `no ${kind} is called "${words}"${meant}`);
}

/** Ids are upper case; accepts lower case too. */
function startingWith<Each extends Named>(all: readonly Each[], words: string): Each[] {
  const start = words.toUpperCase();
  return start === '' ? [] : all.filter(({ id }) => id.toUpperCase().startsWith(start));
}

const maxShown = 5;
