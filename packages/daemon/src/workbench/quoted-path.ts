import { isUtf8 } from 'node:buffer';

const escapes: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
  '"': 34,
  '\\': 92,
};

/**
 * The path that git prints: quoted when it has unusual bytes. A path that is not UTF-8 stays as
 * git quotes it (`"caf\351.txt"`), so that different files keep different names.
 */
export function unquotePath(printed: string): string {
  if (!printed.startsWith('"') || !printed.endsWith('"') || printed.length < 2) return printed;
  const bytes: number[] = [];
  for (const [, octal, letter, plain] of printed
    .slice(1, -1)
    .matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gs)) {
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (letter !== undefined) bytes.push(escapes[letter] ?? letter.charCodeAt(0));
    else bytes.push(...Buffer.from(plain!, 'utf8'));
  }
  const raw = Buffer.from(bytes);
  return isUtf8(raw) ? raw.toString('utf8') : printed;
}
