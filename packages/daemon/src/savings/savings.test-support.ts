import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { features, lineOf, type Entry } from './entry.js';
import { ledgerFile } from './files.js';

/** Data directories that are gone after the test: `afterEach(() => directories.remove())`. */
export class Directories {
  readonly #made: string[] = [];

  make(): string {
    const directory = mkdtempSync(join(tmpdir(), 'mr-savings-'));
    this.#made.push(directory);
    return directory;
  }

  remove(): void {
    for (const made of this.#made.splice(0)) rmSync(made, { recursive: true, force: true });
  }
}

export function writeLedger(dataDir: string, content: string | Buffer): string {
  const file = ledgerFile(dataDir);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

export function linesOf(entries: readonly Entry[]): string {
  return entries.map((entry) => `${lineOf(entry)}\n`).join('');
}

export const someEntry: Entry = {
  at: Date.parse('2026-01-14T10:12:00.000Z'),
  feature: 'check',
  agentId: null,
  repo: '/home/ada/src/mühle',
  rawBytes: 4_000,
  retainedBytes: 400,
  rawTokens: 1_000,
  retainedTokens: 100,
  basis: 'HEURISTIC',
  outputBytes: 0,
  outputTokens: 0,
};

/** Entries between two moments, as our own writers make them. */
export function anyEntry(from: number, to: number): fc.Arbitrary<Entry> {
  const bytes = fc.integer({ min: 0, max: 5_000_000 });
  return fc
    .record({
      at: fc.integer({ min: from, max: to }),
      feature: fc.constantFrom(...features),
      raw: bytes,
      retained: bytes,
      output: bytes,
    })
    .map(({ at, feature, raw, retained, output }) => {
      const isOffload = feature === 'llm_offload';
      const rawBytes = isOffload ? raw + output : raw;
      const retainedBytes = isOffload ? 0 : retained;
      const outputBytes = isOffload ? output : 0;
      return {
        ...someEntry,
        at,
        feature,
        rawBytes,
        retainedBytes,
        rawTokens: Math.ceil(rawBytes / 4),
        retainedTokens: Math.ceil(retainedBytes / 4),
        outputBytes,
        outputTokens: Math.ceil(outputBytes / 4),
      };
    });
}
