import { readFileSync } from 'node:fs';

let known: string | undefined;

/** The version of the package, which is that of the whole of Millrace. */
export function daemonVersion(): string {
  if (known !== undefined) return known;
  // Seen from src/server and from dist/server alike, the package is two folders up.
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (known = (JSON.parse(text) as { version: string }).version);
}
