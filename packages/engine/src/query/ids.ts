import { isUlid } from '@millrace/kit/ulid';

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const highest = '7' + 'Z'.repeat(25);

/** True for an id in the stored form of record ids. */
export function isStoredId(text: string): boolean {
  return isUlid(text) && text === text.toUpperCase();
}

/** The id right before it; `undefined` before the first. */
export function idBefore(id: string): string | undefined {
  return step(id, '0', 'Z', -1);
}

/** The id right after it; `undefined` after the last. */
export function idBehind(id: string): string | undefined {
  return id === highest ? undefined : step(id, 'Z', '0', 1);
}

function step(id: string, full: string, empty: string, by: 1 | -1): string | undefined {
  let at = id.length - 1;
  while (at >= 0 && id[at] === full) at--;
  if (at < 0) return undefined;
  const digit = alphabet[alphabet.indexOf(id[at]!) + by]!;
  return id.slice(0, at) + digit + empty.repeat(id.length - 1 - at);
}
