import { readFileSync } from 'node:fs';

export function version(): string {
  return manifest().version;
}

/** The oldest Node this command line promises to run on, as `engines` of its package says. */
export function oldestNode(): string {
  return manifest().engines.node.replace(/^>=/, '');
}

function manifest(): { version: string; engines: { node: string } } {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
}
