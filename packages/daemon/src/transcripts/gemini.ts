import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemCode } from '@millrace/kit/errors';
import { sightingOf } from './answer.js';
import {
  countIn,
  objectIn,
  textIn,
  timeIn,
  type JsonObject,
  type TranscriptReader,
} from './reader.js';
import type { Detection } from './detection.js';

const backend = 'gemini';

/**
 * `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`. The first line names the session; an
 * answer has the tokens of its call, and may be written again while it grows.
 */
export const geminiReader: TranscriptReader = {
  backend,
  roots: ({ home }) => [join(home, '.gemini', 'tmp')],
  isTranscript: (name) => name.startsWith('session-') && name.endsWith('.jsonl'),
  markers: ['"sessionId"', '"tokens"'],
  begin: (file, carry) => {
    let agent = typeof carry === 'string' ? carry : '';
    const cwd = projectRoot(file);
    return {
      read: (line) => {
        agent ||= textIn(line, 'sessionId');
        return sightingIn(line, { agent: agent || basename(file, '.jsonl'), cwd });
      },
      carry: () => agent,
    };
  },
};

/** A file beside the chats names the directory of the project. */
function projectRoot(file: string): string {
  try {
    return readFileSync(join(dirname(dirname(file)), '.project_root'), 'utf8').trim();
  } catch (error) {
    if (['ENOENT', 'EACCES', 'ENOTDIR'].includes(systemCode(error))) return '';
    throw error;
  }
}

function sightingIn(
  line: JsonObject,
  { agent, cwd }: { agent: string; cwd: string },
): Detection | undefined {
  const tokens = objectIn(line, 'tokens');
  if (line['type'] !== 'gemini' || !tokens) return undefined;
  // The input count includes cached tokens; the output count excludes thoughts.
  const cacheRead = countIn(tokens, 'cached');
  return sightingOf({
    backend,
    agent,
    ids: [textIn(line, 'id')],
    at: timeIn(line),
    cwd,
    model: textIn(line, 'model'),
    input: Math.max(0, countIn(tokens, 'input') - cacheRead) + countIn(tokens, 'tool'),
    output: countIn(tokens, 'output') + countIn(tokens, 'thoughts'),
    cacheRead,
  });
}
