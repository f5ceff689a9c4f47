import { join } from 'node:path';
import { sightingOf } from './answer.js';
import { countIn, millisIn, textIn, type TranscriptReader } from './reader.js';

const backend = 'opencode';

/** The file that the daemon copies the counts of opencode's database to. */
export function opencodeCopy(dataDir: string): string {
  return join(dataDir, 'transcripts', 'opencode.jsonl');
}

/**
 * One line per answer: a row of opencode's database, which its own program reads. An answer is
 * listed again when it has grown.
 */
export const opencodeReader: TranscriptReader = {
  backend,
  roots: ({ dataDir }) => (dataDir === undefined ? [] : [join(dataDir, 'transcripts')]),
  isTranscript: (name) => name === 'opencode.jsonl',
  markers: ['"session_id"'],
  begin: () => ({
    read: (line) =>
      sightingOf({
        backend,
        agent: textIn(line, 'session_id'),
        ids: [textIn(line, 'id')],
        at: millisIn(line, 'time_created'),
        cwd: textIn(line, 'cwd'),
        model: textIn(line, 'model'),
        input: countIn(line, 'input'),
        output: countIn(line, 'output') + countIn(line, 'reasoning'),
        cacheRead: countIn(line, 'cache_read'),
        cacheWrite: countIn(line, 'cache_write'),
      }),
    carry: () => null,
  }),
};
