import { basename, join } from 'node:path';
import {
  BrokenLine,
  countIn,
  nameOf,
  objectIn,
  textIn,
  timeIn,
  noTokens,
  type JsonObject,
  type Places,
  type TranscriptReader,
  type Detection,
  type Tokens,
} from './reader.js';

const backend = 'claude';

/** Messages of the command line itself, such as errors: they cost nothing. */
const noModel = '<synthetic>';

/**
 * `<config>/projects/<project>/<session>.jsonl`, and those of subagents below that. Every line of
 * an answer has the usage of the whole message so far, identified by `message.id` and `requestId`.
 */
export const claudeReader: TranscriptReader = {
  backend,
  roots: (places) => configDirectories(places).map((directory) => join(directory, 'projects')),
  isTranscript: (name) => name.endsWith('.jsonl'),
  markers: ['"usage"'],
  begin: (file) => ({
    read: (line, offset) => detectionIn(line, file, offset),
    carry: () => null,
  }),
};

function configDirectories({ home, environment }: Places): string[] {
  const named = (environment['CLAUDE_CONFIG_DIR'] ?? '').split(',').map((part) => part.trim());
  const given = named.filter((part) => part !== '');
  if (given.length > 0) return given;
  // Both are in use; where one is a link to the other, its files are found once.
  return [
    join(home, '.claude'),
    join(environment['XDG_CONFIG_HOME'] || join(home, '.config'), 'claude'),
  ];
}

function detectionIn(line: JsonObject, file: string, offset: number): Detection | undefined {
  const type = line['type'];
  // The report of a tool may carry the usage of a subagent, whose own file has it too.
  if (type !== 'assistant' && type !== undefined) return undefined;
  const message = objectIn(line, 'message');
  const usage = message && objectIn(message, 'usage');
  if (!usage) return undefined;
  const model = textIn(message, 'model') || 'unknown';
  const isFailure = line['isApiErrorMessage'] === true;
  if (model === noModel && !isFailure) return undefined;
  return {
    key: keyOf(line, textIn(message, 'id'), file, offset),
    at: timeIn(line),
    place: {
      backend,
      agent: textIn(line, 'sessionId') || basename(file, '.jsonl'),
      cwd: textIn(line, 'cwd'),
      model: model === noModel ? 'unknown' : model,
      rank: objectIn(line, 'forkedFrom') ? 1 : 0,
    },
    tokens: model === noModel ? noTokens : tokensOf(usage),
    files: filesIn(message['content']),
    isFailure,
  };
}

const none: readonly string[] = [];

/** Files that the editing tools of a message write. */
function filesIn(content: unknown): readonly string[] {
  if (!Array.isArray(content)) return none;
  let files: string[] | undefined;
  for (const block of content as readonly (JsonObject | null)[]) {
    if (block?.['type'] !== 'tool_use' || !editing.has(textIn(block, 'name'))) continue;
    const input = objectIn(block, 'input');
    const file = input && (textIn(input, 'file_path') || textIn(input, 'notebook_path'));
    if (file) (files ??= []).push(file);
  }
  return files ?? none;
}

const editing = new Set(['Edit', 'MultiEdit', 'Write', 'NotebookEdit']);

/** The provider's id; a line without one is identified by its position. */
function keyOf(line: JsonObject, messageId: string, file: string, offset: number): string {
  const requestId = textIn(line, 'requestId');
  if (messageId !== '' || requestId !== '') return nameOf(backend, `${messageId}:${requestId}`);
  const uuid = textIn(line, 'uuid');
  if (uuid !== '') return nameOf(backend, 'uuid', uuid);
  return nameOf(backend, 'line', file, String(offset), JSON.stringify(line));
}

function tokensOf(usage: JsonObject): Tokens {
  const written = objectIn(usage, 'cache_creation');
  const short = written ? countIn(written, 'ephemeral_5m_input_tokens') : 0;
  const long = written ? countIn(written, 'ephemeral_1h_input_tokens') : 0;
  const cacheWrite =
    usage['cache_creation_input_tokens'] === undefined
      ? short + long
      : countIn(usage, 'cache_creation_input_tokens');
  if (long > cacheWrite) throw new BrokenLine('cache_creation is more than its total');
  return {
    input: countIn(usage, 'input_tokens'),
    output: countIn(usage, 'output_tokens'),
    cacheRead: countIn(usage, 'cache_read_input_tokens'),
    cacheWrite,
    cacheWriteLong: long,
  };
}
