import type { Outbound } from '@millrace/kit/outbound';

/** How a local model is spoken to. */
export type LocalProtocol = 'ollama' | 'openai';

export interface LocalModel {
  /** Without a slash at its end. */
  url: string;
  protocol: LocalProtocol;
  /** What is served there, in the server's order. */
  models: readonly string[];
}

/** The address that the config has unless told. */
export const defaultLocalUrl = 'http://127.0.0.1:11434';

// Other programs that serve a model, at the ports they use by themselves.
const otherUrls = ['http://127.0.0.1:1234', 'http://127.0.0.1:8080'];

/** Whoever looks around should not wait for what is not there. */
const probeTimeoutMs = 1_000;
const maxAnswerBytes = 1_048_576;

/**
 * Looks for a local model: Ollama's list first, then the OpenAI-compatible one. An address that
 * somebody set is the only one looked at; the usual one is followed by those of other programs.
 */
export async function probeLocal(
  outbound: Outbound,
  url: string,
  timeoutMs = probeTimeoutMs,
): Promise<LocalModel | undefined> {
  const base = url.replace(/\/+$/, '');
  const urls = base === defaultLocalUrl ? [base, ...otherUrls] : [base];
  const found = await Promise.all(urls.map((each) => probeOne(outbound, each, timeoutMs)));
  return found.find((model) => model !== undefined);
}

async function probeOne(
  outbound: Outbound,
  url: string,
  timeoutMs: number,
): Promise<LocalModel | undefined> {
  const get = (path: string) => getJson(outbound, `${url}${path}`, timeoutMs);
  const tags = namesIn(await get('/api/tags'), 'models', ['model', 'name']);
  if (tags) return { url, protocol: 'ollama', models: tags };
  const listed = namesIn(await get('/v1/models'), 'data', ['id']);
  return listed && { url, protocol: 'openai', models: listed };
}

async function getJson(outbound: Outbound, url: string, timeoutMs: number): Promise<unknown> {
  const answer = await outbound.request({
    url,
    method: 'GET',
    headers: { accept: 'application/json' },
    timeoutMs,
    connectTimeoutMs: timeoutMs,
    maxResponseBytes: maxAnswerBytes,
  });
  if (!answer.ok || answer.status !== 200 || answer.truncated) return undefined;
  return parseJson(answer.body);
}

/** The JSON of an answer, or undefined: whoever listens there need not be a model at all. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The names in a list such as `{data: [{id}]}`; undefined when it is no such list. */
function namesIn(
  document: unknown,
  member: string,
  names: readonly string[],
): string[] | undefined {
  const list = memberOf(document, member);
  if (!Array.isArray(list)) return undefined;
  const found: string[] = [];
  for (const item of list) {
    const name = names.map((each) => memberOf(item, each)).find((each) => typeof each === 'string');
    if (name === undefined) return undefined;
    found.push(name);
  }
  return found;
}

/** One member of a value that may be anything. */
export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
