import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LineWalker } from '../../packages/daemon/dist/transcripts/lines.js';
import { transcriptReaders } from '../../packages/daemon/dist/transcripts/readers.js';
import { scanFile } from '../../packages/daemon/dist/transcripts/scan-file.js';

/* Transcripts: each reader reads the whole input, in two steps as a file that grows. */

const directory = mkdtempSync(join(tmpdir(), 'mr-fuzz-'));
const path = join(
  directory,
  'rollout-2026-01-01T00-00-00-01234567-89ab-cdef-0123-456789abcdef.jsonl',
);
const walker = new LineWalker(4_096, 16_384);

export const end = () => rmSync(directory, { recursive: true, force: true });

export async function run(input) {
  for (const reader of transcriptReaders) {
    const roots = new Map();
    let state;
    let total = 0;
    const sink = {
      conversations: {
        rootOf: (id) => roots.get(id),
        learnRoot: (id, root) => void roots.set(id, root),
      },
      see: ({ key, at, tokens }) => {
        const counts = Object.values(tokens);
        const isSound = typeof key === 'string' && at >= 0 && counts.every((each) => each >= 0);
        if (!isSound) throw new Error(`a sighting is wrong: ${JSON.stringify({ at, tokens })}`);
        total++;
      },
      isFull: false,
      save: async (next) => void (state = JSON.parse(JSON.stringify(next))),
      checkStop: () => undefined,
      advance: () => undefined,
    };
    for (const size of [input.length >> 1, input.length]) {
      writeFileSync(path, input.subarray(0, size));
      const facts = { path, inode: 1, size, modifiedMs: size };
      await scanFile(walker, { ...facts, reader }, state, sink);
    }
    if (total > input.length) throw new Error('more sightings than bytes');
  }
}

export const dictionary = [
  '"type":"assistant"',
  '"usage":{',
  '"input_tokens":',
  '"message":{',
  '"timestamp":',
  '\n',
  '"token_count"',
  '"total_token_usage":{',
  '"tokens":{',
  '"usageMetadata":{',
  '"sessionId":',
];
