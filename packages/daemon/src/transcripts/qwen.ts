import { basename, join } from 'node:path';
import {
  countIn,
  nameOf,
  objectIn,
  textIn,
  timeIn,
  type JsonObject,
  type TranscriptReader,
} from './reader.js';
import { noTokens, type Sighting, type Tokens } from './sighting.js';

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

function sightingIn(line: JsonObject, file: string): Sighting | undefined {
  const payload = objectIn(line, 'systemPayload');
  const event = payload && objectIn(payload, 'uiEvent');
  if (!event || event['event.name'] !== 'qwen-code.api_response') return undefined;
  const agent = textIn(line, 'sessionId') || basename(file, '.jsonl');
  return {
    key: nameOf(backend, agent, textIn(event, 'response_id'), textIn(line, 'uuid')),
    at: timeIn(line),
    place: {
      backend,
      agent,
      cwd: textIn(line, 'cwd'),
      model: textIn(event, 'model') || 'unknown',
      rank: 0,
    },
    tokens: tokensOf(event),
  };
}

/** Cached tokens are a part of the input, and thoughts a part of the output. */
function tokensOf(event: JsonObject): Tokens {
  const cacheRead = countIn(event, 'cached_content_token_count');
  const input = Math.max(0, countIn(event, 'input_token_count') - cacheRead);
  return { ...noTokens, input, output: countIn(event, 'output_token_count'), cacheRead };
}
