import { readFileSync } from 'node:fs';

export function version(): string {
  return manifest().version;
}

/** The minimum Node version, from `engines` of the package. */
export function oldestNode(): string {
  return manifest().engines.node.replace(/^>=/, '');
}

function manifest(): { version: string; engines: { node: string } } {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
}
