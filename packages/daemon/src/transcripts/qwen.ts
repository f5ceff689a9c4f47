import { basename, join } from 'node:path';
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

const backend = 'qwen';

/**
 * `~/.qwen/projects/<project>/chats/<session>.jsonl`. Every response of the model, also to a
 * subagent, is a telemetry event of its own.
 */
export const qwenReader: TranscriptReader = {
  backend,
  roots: ({ home }) => [join(home, '.qwen', 'projects')],
  isTranscript: (name) => name.endsWith('.jsonl'),
  markers: ['"qwen-code.api_response"'],
  begin: (file) => ({
    read: (line) => sightingIn(line, file),
    carry: () => null,
  }),
};

function sightingIn(line: JsonObject, file: string): Detection | undefined {
  const payload = objectIn(line, 'systemPayload');
  const event = payload && objectIn(payload, 'uiEvent');
  if (!event || event['event.name'] !== 'qwen-code.api_response') return undefined;
  const cacheRead = countIn(event, 'cached_content_token_count');
  return sightingOf({
    backend,
    agent: textIn(line, 'sessionId') || basename(file, '.jsonl'),
    ids: [textIn(event, 'response_id'), textIn(line, 'uuid')],
    at: timeIn(line),
    cwd: textIn(line, 'cwd'),
    model: textIn(event, 'model'),
    // Cached tokens are a part of the input, and thoughts a part of the output.
    input: countIn(event, 'input_token_count') - cacheRead,
    output: countIn(event, 'output_token_count'),
    cacheRead,
  });
}
