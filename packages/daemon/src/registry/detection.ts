import { jsonIn } from '@millrace/kit/errors';
import type { Outbound } from '@millrace/kit/outbound';
import { localId, type AcpRow, type Detection } from '../core/backend.js';
import { findProgram, type KnownCli } from './programs.js';

export interface DetectionParts {
  clis: readonly KnownCli[];
  /** Search path of programs: the value of PATH. */
  searchPath: () => string | undefined;
  outbound: Outbound;
  localUrl: string;
  /** The adapter of an installed CLI for the Agent Client Protocol. */
  findAdapter?: (id: string) => Promise<AcpRow | undefined>;
}

/** Detects installed CLIs and a running local model. */
export async function detectBackends(parts: DetectionParts): Promise<Detection[]> {
  const searchPath = parts.searchPath();
  const [local, ...programs] = await Promise.all([
    probeLocal(parts.outbound, parts.localUrl),
    ...parts.clis.map(({ binary }) => findProgram(binary, searchPath)),
  ]);
  const adapters = await Promise.all(
    parts.clis.map(async ({ id }, index) =>
      programs[index] === undefined ? undefined : parts.findAdapter?.(id),
    ),
  );
  return [
    ...parts.clis.map(({ id }, index) => ({
      id,
      installed: programs[index] !== undefined,
      binaryPath: programs[index] ?? '',
      adapter: adapters[index],
    })),
    { id: localId, installed: local !== undefined, binaryPath: '' },
  ];
}

/** Protocol of a local model server. */
export type LocalProtocol = 'ollama' | 'openai';

export interface LocalModel {
  /** Without a trailing slash. */
  url: string;
  protocol: LocalProtocol;
  /** Served models, in the server's order. */
  models: readonly string[];
}

/** Default of the setting `backends.local_url`. */
export const defaultLocalUrl = 'http://127.0.0.1:11434';

// Default ports of other model servers.
const otherUrls = ['http://127.0.0.1:1234', 'http://127.0.0.1:8080'];

/** Short, so that detection does not wait for a missing server. */
const probeTimeoutMs = 1_000;
const maxAnswerBytes = 1_048_576;

/**
 * Finds a local model: Ollama's API first, then the OpenAI-compatible one. A configured address is
 * the only one tried; the default one is followed by those of other model servers.
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
  // The listener may not be a model server.
  return jsonIn(Buffer.from(answer.body).toString('utf8'));
}

/** Names in a list such as `{data: [{id}]}`; undefined for any other shape. */
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

export function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
