import { readFileSync } from 'node:fs';

let known: string | undefined;

/** The version of the package, shared by all packages of Millrace. */
export function queueVersion(): string {
  if (known !== undefined) return known;
  // The package is two folders up from both src/server and dist/server.
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (known = (JSON.parse(text) as { version: string }).version);
}
