import { hash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { DaemonSettings } from '../core/settings.js';
import { findFiles } from './find-files.js';
import {
  BrokenLine,
  nameOf,
  noTokens,
  type JsonObject,
  type Places,
  type TranscriptReader,
} from './reader.js';

/** `transcript` of a row of `backends.extra`: a file of JSON lines for each conversation. */
export type TranscriptRule = NonNullable<DaemonSettings['backends']['extra'][number]['transcript']>;

/** Reads the transcripts of a command line of the config. */
export function ownReader(backend: string, rule: TranscriptRule): TranscriptReader {
  const { fields } = rule;
  const { root, tail } = partsOf(rule.path);
  const pattern = tailPattern(rule.path);
  const marker = fields.input.split('.').findLast((name) => !/^\d+$/.test(name)) ?? '';
  return {
    backend,
    // Other rules read other figures from the same lines.
    version: Number.parseInt(hash('sha256', JSON.stringify(rule)).slice(0, 8), 16),
    roots: ({ home }) => [root.replace(/^~(?=\/|$)/, () => home)],
    depth: rule.path.includes('**') ? undefined : tail.length - 1,
    isTranscript: (_name, path) => pattern.test(path),
    markers: [`"${marker}"`],
    begin: (file) => ({
      read: (line, offset) => {
        const at = timeAt(line, fields.at);
        if (valueAt(line, fields.input) === undefined) return undefined;
        const agent = agentOf(rule.path, file);
        return {
          key: nameOf(backend, agent, String(offset)),
          at,
          place: { backend, agent, cwd: '', model: modelIn(rule, line) ?? 'unknown', rank: 0 },
          tokens: {
            ...noTokens,
            input: countAt(line, fields.input),
            output: countAt(line, fields.output),
            cacheRead: countAt(line, fields.cache_read),
            cacheWrite: countAt(line, fields.cache_write),
          },
        };
      },
      carry: () => null,
    }),
  };
}

export function modelIn({ fields }: TranscriptRule, line: JsonObject): string | undefined {
  const model = valueAt(line, fields.model);
  return typeof model === 'string' && model !== '' ? model : undefined;
}

/** All input tokens of a line, new and cached: the size of the context. */
export function contextIn({ fields }: TranscriptRule, line: JsonObject): number | undefined {
  if (typeof valueAt(line, fields.input) !== 'number') return undefined;
  const names = [fields.input, fields.cache_read, fields.cache_write];
  return names.reduce((sum, name) => sum + countAt(line, name), 0);
}

/**
 * The file of an agent: one that its session names, else the first that was made since its start
 * and belongs to no other agent, else the only one that was written to since.
 */
export async function findOwnTranscript(
  rule: TranscriptRule,
  places: Places,
  agent: { session: string; own: string | null; since: number; taken: ReadonlySet<string> },
): Promise<{ path: string; id: string } | undefined> {
  const files: { path: string; id: string; bornMs: number }[] = [];
  for await (const { path, modifiedMs } of findFiles([ownReader('', rule)], places, () => {})) {
    const id = agentOf(rule.path, path);
    if (id === agent.own || path.includes(agent.session)) return { path, id };
    // Clocks of files are coarse.
    if (modifiedMs < agent.since - 1_000 || agent.taken.has(id)) continue;
    files.push({ path, id, bornMs: (await stat(path)).birthtimeMs });
  }
  const born = files.filter(({ bornMs }) => bornMs >= agent.since - 1_000);
  const [first] = born.toSorted((a, b) => a.bornMs - b.bornMs);
  return first ?? (files.length === 1 ? files[0] : undefined);
}

/** The part of a file's path that the rule leaves open, without the ending. */
function agentOf(pattern: string, file: string): string {
  const own = pattern.includes('**') ? basename(file) : tailPattern(pattern).exec(file)?.[1];
  return (own ?? basename(file)).replace(/\.\w+$/, '');
}

/** The directory that all files are below, and what follows it. */
function partsOf(pattern: string): { root: string; tail: string[] } {
  const parts = pattern.split('/');
  const open = parts.findIndex((part) => part.includes('*'));
  const at = open === -1 ? parts.length - 1 : Math.min(open, parts.length - 1);
  return { root: parts.slice(0, at).join('/') || '/', tail: parts.slice(at) };
}

function tailPattern(pattern: string): RegExp {
  const names = partsOf(pattern).tail.map((part) =>
    part.split('*').map((text) => text.replaceAll(/[^\w-]/g, '\\$&')),
  );
  const source = names.map((texts) => texts.join('[^/]*')).join('/');
  return new RegExp(`/(${source.replaceAll('[^/]*[^/]*/', '(?:.*/)?')})$`);
}

function valueAt(line: JsonObject, path: string | undefined): unknown {
  if (path === undefined) return undefined;
  let value: unknown = line;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name))
      return undefined;
    value = (value as JsonObject)[name];
  }
  return value;
}

/** Far more than any model accepts, and small enough that sums stay exact. */
const maxTokens = 1e12;

function countAt(line: JsonObject, path: string | undefined): number {
  const value = valueAt(line, path) ?? 0;
  const isCount = typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
  if (isCount && value <= maxTokens) return value;
  throw new BrokenLine(`${path} is not a count of tokens`);
}

/** RFC 3339, or seconds or milliseconds since 1970. */
function timeAt(line: JsonObject, path: string | undefined): number {
  const value = valueAt(line, path ?? 'timestamp');
  const time = typeof value === 'number' ? (value < 1e11 ? value * 1000 : value) : timeOf(value);
  if (time >= 0 && time < Date.UTC(9999, 0)) return time;
  throw new BrokenLine(`${path ?? 'timestamp'} is not a time`);
}

function timeOf(value: unknown): number {
  return typeof value === 'string' ? Date.parse(value) : Number.NaN;
}
