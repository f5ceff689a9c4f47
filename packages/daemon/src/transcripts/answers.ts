import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemCode } from '@millrace/kit/errors';
import {
  countIn,
  millisIn,
  nameOf,
  noTokens,
  objectIn,
  textIn,
  timeIn,
  type Detection,
  type JsonObject,
  type TranscriptReader,
} from './reader.js';

/* Readers of command lines that record each answer of a model in one line. */

interface Answer {
  /** The conversation; empty where the line does not name it. */
  agent: string;
  /** Names the answer within the agent. */
  ids: readonly string[];
  at: number;
  cwd: string;
  model: string;
  /** Cached tokens excluded. */
  input: number;
  /** Reasoning tokens included. */
  output: number;
  cacheRead: number;
  cacheWrite?: number;
}

interface AnswerFormat extends Pick<
  TranscriptReader,
  'backend' | 'roots' | 'isTranscript' | 'markers'
> {
  /** What a file says about all its answers. */
  factsOf?(file: string): Partial<Answer>;
  /** The conversation, where only the first line of a file names it. */
  agentIn?(line: JsonObject): string;
  answerIn(line: JsonObject): (Omit<Answer, 'cwd'> & Partial<Answer>) | undefined;
}

function readerOf({ factsOf, agentIn, answerIn, ...format }: AnswerFormat): TranscriptReader {
  const { backend } = format;
  return {
    ...format,
    begin: (file, carry) => {
      let agent = typeof carry === 'string' ? carry : '';
      const facts = factsOf?.(file);
      return {
        read: (line) => {
          if (agentIn) agent ||= agentIn(line);
          const found = answerIn(line);
          if (!found) return undefined;
          const owner = found.agent || agent || basename(file, '.jsonl');
          return detectionOf(backend, { cwd: '', ...facts, ...found, agent: owner });
        },
        carry: () => (agentIn ? agent : null),
      };
    },
  };
}

function detectionOf(backend: string, answer: Answer): Detection {
  const { agent, ids, at, cwd, model, input, output, cacheRead, cacheWrite = 0 } = answer;
  return {
    key: nameOf(backend, agent, ...ids),
    at,
    place: { backend, agent, cwd, model: model || 'unknown', rank: 0 },
    // A cached count above the input would make it negative.
    tokens: { ...noTokens, input: Math.max(0, input), output, cacheRead, cacheWrite },
  };
}

/**
 * `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`. The first line names the session; an
 * answer has the tokens of its call, and may be written again while it grows.
 */
export const geminiReader = readerOf({
  backend: 'gemini',
  roots: ({ home }) => [join(home, '.gemini', 'tmp')],
  isTranscript: (name) => name.startsWith('session-') && name.endsWith('.jsonl'),
  markers: ['"sessionId"', '"tokens"'],
  factsOf: (file) => ({ cwd: projectRoot(file) }),
  agentIn: (line) => textIn(line, 'sessionId'),
  answerIn: (line) => {
    const tokens = objectIn(line, 'tokens');
    if (line['type'] !== 'gemini' || !tokens) return undefined;
    // The input count includes cached tokens; the output count excludes thoughts.
    const cacheRead = countIn(tokens, 'cached');
    return {
      agent: '',
      ids: [textIn(line, 'id')],
      at: timeIn(line),
      model: textIn(line, 'model'),
      input: Math.max(0, countIn(tokens, 'input') - cacheRead) + countIn(tokens, 'tool'),
      output: countIn(tokens, 'output') + countIn(tokens, 'thoughts'),
      cacheRead,
    };
  },
});

/** A file beside the chats of gemini names the directory of the project. */
function projectRoot(file: string): string {
  try {
    return readFileSync(join(dirname(dirname(file)), '.project_root'), 'utf8').trim();
  } catch (error) {
    if (['ENOENT', 'EACCES', 'ENOTDIR'].includes(systemCode(error))) return '';
    throw error;
  }
}

/**
 * `~/.qwen/projects/<project>/chats/<session>.jsonl`. Every response of the model, also to a
 * subagent, is a telemetry event of its own.
 */
export const qwenReader = readerOf({
  backend: 'qwen',
  roots: ({ home }) => [join(home, '.qwen', 'projects')],
  isTranscript: (name) => name.endsWith('.jsonl'),
  markers: ['"qwen-code.api_response"'],
  answerIn: (line) => {
    const payload = objectIn(line, 'systemPayload');
    const event = payload && objectIn(payload, 'uiEvent');
    if (!event || event['event.name'] !== 'qwen-code.api_response') return undefined;
    const cacheRead = countIn(event, 'cached_content_token_count');
    return {
      agent: textIn(line, 'sessionId'),
      ids: [textIn(event, 'response_id'), textIn(line, 'uuid')],
      at: timeIn(line),
      cwd: textIn(line, 'cwd'),
      model: textIn(event, 'model'),
      // Cached tokens are a part of the input, and thoughts a part of the output.
      input: countIn(event, 'input_token_count') - cacheRead,
      output: countIn(event, 'output_token_count'),
      cacheRead,
    };
  },
});

/** The file that the daemon copies the counts of opencode's database to. */
export function opencodeCopy(dataDir: string): string {
  return join(dataDir, 'transcripts', 'opencode.jsonl');
}

/**
 * One line per answer: a row of opencode's database, which its own program reads. An answer is
 * listed again when it has grown.
 */
export const opencodeReader = readerOf({
  backend: 'opencode',
  roots: ({ dataDir }) => (dataDir === undefined ? [] : [join(dataDir, 'transcripts')]),
  isTranscript: (name) => name === 'opencode.jsonl',
  markers: ['"session_id"'],
  answerIn: (line) => ({
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
});
