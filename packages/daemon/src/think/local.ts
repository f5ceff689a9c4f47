import type { Outbound, OutboundOutcome } from '@millrace/kit/outbound';
import { jsonIn } from '@millrace/kit/errors';
import { memberOf, probeLocal, type LocalModel } from '../registry/detection.js';
import type { Attempt, ModelTokens } from './thinker.js';

export interface LocalParts {
  outbound: Outbound;
  url: string;
  /** The model to use; default: the first one served. */
  model: string | undefined;
  timeoutMs: number;
}

const maxAnswerBytes = 4_194_304;
/** Long enough for a server that is busy loading a model. */
const probeTimeoutMs = 5_000;

/** Finds the local model and runs the prompt on it. */
export async function thinkWithLocal(
  parts: LocalParts,
  prompt: string,
  signal: AbortSignal,
): Promise<Attempt> {
  const local = await probeLocal(parts.outbound, parts.url, probeTimeoutMs);
  if (!local) return { outcome: 'unavailable', reason: 'no local model is reachable' };
  const model = parts.model ?? local.models[0];
  if (model === undefined) {
    return { outcome: 'unavailable', reason: 'the local server has no model: pull one first' };
  }
  const { path, body } = requestFor(local, model, prompt);
  const answer = await parts.outbound.request({
    url: `${local.url}${path}`,
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify(body),
    timeoutMs: parts.timeoutMs,
    maxResponseBytes: maxAnswerBytes,
    signal,
  });
  return readAnswer(local, answer);
}

function requestFor({ protocol }: LocalModel, model: string, prompt: string) {
  if (protocol === 'ollama') {
    return { path: '/api/generate', body: { model, prompt, stream: false } };
  }
  const messages = [{ role: 'user', content: prompt }];
  return { path: '/v1/chat/completions', body: { model, messages, stream: false } };
}

function readAnswer({ protocol }: LocalModel, answer: OutboundOutcome): Attempt {
  if (!answer.ok) {
    return answer.errorType === 'TIMEOUT'
      ? { outcome: 'timeout', reason: 'the local model took too long' }
      : { outcome: 'unavailable', reason: 'the local model cannot be reached' };
  }
  if (answer.status !== 200) {
    return { outcome: 'error', reason: `the local model answered with status ${answer.status}` };
  }
  if (answer.truncated) return { outcome: 'error', reason: 'the local model answered too much' };
  const document = jsonIn(Buffer.from(answer.body).toString('utf8'));
  const text = textIn(protocol, document);
  if (text === undefined || text.trim() === '') {
    return { outcome: 'error', reason: 'the local model answered nothing' };
  }
  return { outcome: 'answered', text: text.trim(), tokens: tokensIn(protocol, document) };
}

/** Undefined when the server does not report both. */
function tokensIn(protocol: LocalModel['protocol'], document: unknown): ModelTokens | undefined {
  const [input, output] =
    protocol === 'ollama'
      ? ['prompt_eval_count', 'eval_count'].map((name) => memberOf(document, name))
      : ['prompt_tokens', 'completion_tokens'].map((name) =>
          memberOf(memberOf(document, 'usage'), name),
        );
  return isCount(input) && isCount(output) ? { input, output } : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function textIn(protocol: LocalModel['protocol'], document: unknown): string | undefined {
  const text =
    protocol === 'ollama'
      ? memberOf(document, 'response')
      : memberOf(memberOf(memberOf(memberOf(document, 'choices'), '0'), 'message'), 'content');
  return typeof text === 'string' ? text : undefined;
}
