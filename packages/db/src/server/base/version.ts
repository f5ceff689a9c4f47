import { readFileSync } from 'node:fs';

let known: string | undefined;

/** The version of the package, shared by all Millrace packages. */
export function serverVersion(): string {
  if (known !== undefined) return known;
  // The package root is three folders up from both src/server/base and dist/server/base.
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (known = (JSON.parse(text) as { version: string }).version);
}
