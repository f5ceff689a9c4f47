import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { homedir } from 'node:os';
import type { Clock } from '@millrace/kit/clock';
import { jsonIn, systemCode } from '@millrace/kit/errors';
import type { Sign, Entry } from '../../core/session.js';
import { claudeReader } from '../../transcripts/claude.js';
import { codexReader } from '../../transcripts/codex.js';
import { geminiReader, opencodeReader, qwenReader } from '../../transcripts/answers.js';
import { findFiles } from '../../transcripts/find-files.js';
import {
  BrokenLine,
  type Detection,
  type Places,
  type TranscriptReader,
} from '../../transcripts/reader.js';
import {
  contextIn,
  findOwnTranscript,
  modelIn,
  type TranscriptRule,
} from '../../transcripts/own.js';
import { signalIn } from '../../think/signals.js';
import { rulesOf } from '../cli/command-lines.js';
import type { SessionSettings } from '../cli/settings.js';
import { claudeContext, isSynthetic, objectIn, textIn } from './output-reader.js';

type JsonObject = Readonly<Record<string, unknown>>;

/** What the end of a backend's own transcript contains. */
export interface TranscriptTail {
  contextTokens: number | undefined;
  /** Size of the model's context window, if the transcript has it. */
  contextWindow?: number | undefined;
  model: string | undefined;
  /** State of the turn, and since when; undefined when unknown. */
  turn: { sign: Sign; at: number } | undefined;
}

const tailBytes = 262_144;
const maxFailureLength = 300;

export function placesOf(environment: Places['environment']): Places {
  return { home: environment['HOME'] || homedir(), environment };
}

/**
 * The transcript of claude's session with this id in that directory; `isWide`: also searches the
 * other directories.
 */
export async function claudeTranscript(
  places: Places,
  { id, cwd, isWide }: { id: string; cwd: string; isWide: boolean },
): Promise<string | undefined> {
  const name = `${id}.jsonl`;
  for (const root of claudeReader.roots(places)) {
    const usual = join(root, cwd.replaceAll(/[^A-Za-z0-9]/g, '-'), name);
    if (await isFile(usual)) return usual;
    for (const project of isWide ? await namesIn(root) : []) {
      const path = join(root, project, name);
      if (await isFile(path)) return path;
    }
  }
  return undefined;
}

export interface CodexOptions {
  /** Null when it is not known yet. */
  id: string | null;
  cwd: string;
  /** When the agent was started. */
  since: number;
  /** Sessions that other agents are known to have. */
  taken: ReadonlySet<string>;
}

/**
 * The transcript of codex's session: by its id, or else the first one started in that directory
 * since the agent's start that belongs to no other session.
 */
export async function codexTranscript(
  places: Places,
  { id, cwd, since, taken }: CodexOptions,
): Promise<{ path: string; id: string } | undefined> {
  for (const root of codexReader.roots(places)) {
    for (const path of await recentRollouts(root, since)) {
      const own = /-([0-9a-f]{8}-[0-9a-f-]{27})\.jsonl$/.exec(path)?.[1];
      if (id !== null) {
        if (own === id) return { path, id };
        continue;
      }
      const meta = await firstLine(path);
      const payload = objectIn(meta, 'payload');
      const metaId = textIn(payload, 'id') ?? own;
      const begunAt = Date.parse(textIn(payload, 'timestamp') ?? textIn(meta, 'timestamp') ?? '');
      const isOurs = textIn(payload, 'cwd') === cwd && begunAt >= since - 1_000;
      if (metaId !== undefined && isOurs && !taken.has(metaId)) return { path, id: metaId };
    }
  }
  return undefined;
}

/** Rollouts from the start day on, oldest first. */
async function recentRollouts(root: string, since: number): Promise<string[]> {
  const found: string[] = [];
  const dayMs = 86_400_000;
  // Directories are named in local time, which is less than a day off.
  const first = new Date(since - dayMs).toISOString().slice(0, 10);
  for (const year of await namesIn(root)) {
    if (year < first.slice(0, 4)) continue;
    for (const month of await namesIn(join(root, year))) {
      if (`${year}-${month}` < first.slice(0, 7)) continue;
      for (const day of await namesIn(join(root, year, month))) {
        if (`${year}-${month}-${day}` < first) continue;
        const directory = join(root, year, month, day);
        const names = await namesIn(directory);
        found.push(
          ...names
            .filter((name) => codexReader.isTranscript(name, name))
            .map((name) => join(directory, name)),
        );
      }
    }
  }
  return found.sort();
}

async function namesIn(directory: string): Promise<string[]> {
  // Missing or unreadable directories count as empty.
  const names: string[] = await readdir(directory).catch(() => []);
  return names.sort();
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (facts) => facts.isFile(),
    () => false,
  );
}

async function firstLine(path: string): Promise<JsonObject | undefined> {
  const bytes = await piece(path, 0, 65_536);
  return objectOf(bytes.split('\n')[0]!);
}

async function piece(path: string, from: number, length: number): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Reads the end of a transcript, unless its length has not changed. */
export async function readTail(
  format: string | TranscriptRule,
  { path, id }: { path: string; id: string },
  sizeBefore: number,
): Promise<{ tail: TranscriptTail | undefined; size: number }> {
  const { size } = await stat(path);
  if (size === sizeBefore) return { tail: undefined, size };
  const reader = typeof format === 'string' ? answerReaders[format] : undefined;
  if (reader) return { tail: answersTail(await answersIn(path, reader), id), size };
  const objects = await lastLines(path, tailBytes);
  if (typeof format !== 'string') return { tail: ownTail(format, objects), size };
  return { tail: format === 'claude' ? claudeTail(objects) : codexTail(objects), size };
}

/** Of the last answer of a conversation. */
function answersTail(answers: readonly Detection[], id: string): TranscriptTail | undefined {
  const last = answers.findLast(({ place }) => place.agent === id);
  if (!last) return undefined;
  const { input, cacheRead, cacheWrite } = last.tokens;
  const contextTokens = input + cacheRead + cacheWrite;
  return { contextTokens, model: last.place.model, turn: undefined };
}

/** Lines of a person's own format say nothing about turns. */
function ownTail(rule: TranscriptRule, lines: readonly JsonObject[]): TranscriptTail {
  const last = lines.findLast((line) => contextIn(rule, line) !== undefined);
  return {
    contextTokens: last && contextIn(rule, last),
    model: last && modelIn(rule, last),
    turn: undefined,
  };
}

/** The complete lines in the last bytes of a transcript. */
export async function lastLines(path: string, maxBytes: number): Promise<JsonObject[]> {
  const { size } = await stat(path);
  const text = await piece(path, Math.max(0, size - maxBytes), Math.min(size, maxBytes));
  const lines = text.split('\n');
  // The first line may be a part of one.
  if (size > maxBytes) lines.shift();
  return lines.map(objectOf).filter((line) => line !== undefined);
}

export function claudeTail(lines: readonly JsonObject[]): TranscriptTail {
  const own = lines.filter((line) => line['isSidechain'] !== true);
  const answer = own.findLast(
    (line) =>
      line['type'] === 'assistant' &&
      objectIn(objectIn(line, 'message'), 'usage') &&
      !isSynthetic(objectIn(line, 'message')),
  );
  const boundary = own.findLastIndex((line) => line['subtype'] === 'compact_boundary');
  const compacted = boundary > own.indexOf(answer!) ? own[boundary] : undefined;
  const message = objectIn(answer, 'message');
  const last = own.findLast((line) => line['type'] === 'assistant' || line['type'] === 'user');
  return {
    contextTokens: tokensAfter(compacted) ?? claudeContext(objectIn(message, 'usage')),
    model: textIn(message, 'model'),
    turn: last && claudeTurn(last),
  };
}

/** The size of the context after a compaction, where claude reports it. */
function tokensAfter(boundary: JsonObject | undefined): number | undefined {
  const tokens = objectIn(boundary, 'compactMetadata')?.['postTokens'];
  return typeof tokens === 'number' && tokens > 0 ? tokens : undefined;
}

function claudeTurn(line: JsonObject): TranscriptTail['turn'] {
  const at = Date.parse(textIn(line, 'timestamp') ?? '');
  const message = objectIn(line, 'message');
  if (Number.isNaN(at) || line['isMeta'] === true || line['isCompactSummary'] === true) return;
  if (line['type'] === 'user') {
    const text = firstText(message?.['content']);
    if (text.startsWith('[Request interrupted')) return over('its turn was interrupted', at);
    // Commands of the command line itself are no turns.
    if (/^<(?:command-|local-command)/.test(text)) return undefined;
    return { sign: { status: 'working', reason: 'its transcript waits for an answer' }, at };
  }
  if (line['isApiErrorMessage'] === true) return claudeError(line, at);
  // A requested tool may be running, or wait for a permission: the screen shows which.
  if (message?.['stop_reason'] !== 'end_turn') return undefined;
  return over('its transcript ends with a whole answer', at);
}

/** A turn that the provider refused: a limit, or another error. */
function claudeError(line: JsonObject, at: number): TranscriptTail['turn'] {
  const text = firstText(objectIn(line, 'message')?.['content']) || 'API error';
  const found = signalIn({ id: 'claude', succeeded: true, stdout: text, stderr: '' }, at);
  const isLimit = found !== undefined && found.kind !== 'unauthenticated';
  if (!isLimit && line['error'] !== 'rate_limit') return failedTurn(text, at);
  const reason = isLimit ? found.reason : 'usage limit reached';
  return { sign: { status: 'rate_limited', reason, limitedUntil: found?.resetAt }, at };
}

function over(reason: string, at: number): NonNullable<TranscriptTail['turn']> {
  return { sign: { status: 'idle', reason }, at };
}

function failedTurn(text: string, at: number): NonNullable<TranscriptTail['turn']> {
  const failure = text.split('\n')[0]!.slice(0, maxFailureLength);
  return { sign: { status: 'idle', reason: `its turn failed: ${failure}`, failure }, at };
}

function firstText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const block = content.find((each: unknown) => textIn(each as JsonObject, 'text') !== undefined);
  return textIn(block as JsonObject | undefined, 'text') ?? '';
}

export function codexTail(lines: readonly JsonObject[]): TranscriptTail {
  const counts = lines.findLast((line) => payloadType(line) === 'token_count' && infoOf(line));
  const usage = objectIn(infoOf(counts), 'last_token_usage');
  const context = lines.findLast((line) => line['type'] === 'turn_context');
  const last = lines.findLast((line) =>
    ['task_started', 'task_complete', 'turn_aborted', 'user_message'].includes(
      payloadType(line) ?? '',
    ),
  );
  const error = lines.findLast((line) => payloadType(line) === 'error');
  const hasFailed = error !== undefined && lines.indexOf(error) > startOf(lines);
  return {
    contextTokens: codexContext(usage),
    contextWindow: windowIn(infoOf(counts)),
    model: textIn(objectIn(context, 'payload'), 'model'),
    turn: last && codexTurn(last, hasFailed ? error : undefined),
  };
}

/** After a compaction there is a total, and no input. */
function codexContext(usage: JsonObject | undefined): number | undefined {
  const known = ['input_tokens', 'total_tokens']
    .map((name) => usage?.[name])
    .filter((tokens) => typeof tokens === 'number');
  return known.find((tokens) => tokens > 0);
}

function windowIn(info: JsonObject | undefined): number | undefined {
  const window = info?.['model_context_window'];
  return typeof window === 'number' && window > 0 ? window : undefined;
}

/** The start of the last turn. */
function startOf(lines: readonly JsonObject[]): number {
  return lines.findLastIndex((line) => payloadType(line) === 'task_started');
}

function codexTurn(line: JsonObject, error: JsonObject | undefined): TranscriptTail['turn'] {
  const at = Date.parse(textIn(line, 'timestamp') ?? '');
  if (Number.isNaN(at)) return undefined;
  switch (payloadType(line)) {
    case 'task_complete':
      return codexError(line, error, at) ?? over('its transcript ends with a whole answer', at);
    case 'turn_aborted':
      return over('its turn was interrupted', at);
    default:
      // A turn that waits for a permission is still running: the screen shows it.
      return undefined;
  }
}

/** The end of a turn contains its error; older versions write a separate record before it. */
function codexError(
  end: JsonObject,
  record: JsonObject | undefined,
  at: number,
): TranscriptTail['turn'] {
  const error = objectIn(objectIn(end, 'payload'), 'error') ?? objectIn(record, 'payload');
  return error && failedTurn(textIn(error, 'message') ?? 'error', at);
}

function payloadType(line: JsonObject): string | undefined {
  return line['type'] === 'event_msg' ? textIn(objectIn(line, 'payload'), 'type') : undefined;
}

function infoOf(line: JsonObject | undefined): JsonObject | undefined {
  return objectIn(objectIn(line, 'payload'), 'info');
}

/** Undefined for a line that is cut short: it is still being written. */
function objectOf(line: string): JsonObject | undefined {
  return line.startsWith('{') ? (jsonIn(line) as JsonObject | undefined) : undefined;
}

export interface TranscriptParts {
  clock: Clock;
  places: Places;
  /** Copies the newest rows of opencode's database. */
  refreshCopy?: (() => Promise<void>) | undefined;
  /** The last answer of one of opencode's conversations, from its database. */
  opencodeAnswer?: ((id: string) => Promise<string | undefined>) | undefined;
  /** The sessions of a backend that agents other than this one have. */
  taken: (id: string) => ReadonlySet<string>;
  settings: SessionSettings;
}

/** A wide search reads many directories, so it is not done at every inspection. */
const searchMs = 5_000;

/** Transcripts in which every answer of a model is one line. */
const answerReaders: Readonly<Record<string, TranscriptReader>> = {
  gemini: geminiReader,
  qwen: qwenReader,
  opencode: opencodeReader,
};

/** By the id of the conversation, or else the first in that directory since the agent's start. */
export async function answersTranscript(
  reader: TranscriptReader,
  places: Places,
  { id, cwd, since, taken }: CodexOptions,
): Promise<{ path: string; id: string } | undefined> {
  for await (const { path, modifiedMs } of findFiles([reader], places, () => {})) {
    if (modifiedMs < since - 1_000) continue;
    const found = (await answersIn(path, reader)).find(({ at, place }) =>
      id === null
        ? place.cwd === cwd && at >= since - 1_000 && !taken.has(place.agent)
        : place.agent === id,
    );
    if (found) return { path, id: found.place.agent };
  }
  return undefined;
}

const noConversations = { rootOf: () => undefined, learnRoot: () => {} };

async function answersIn(path: string, reader: TranscriptReader): Promise<Detection[]> {
  const lines = reader.begin(path, null, noConversations);
  const first = await firstLine(path);
  // The first line names the conversation in some formats.
  const all = [...(first ? [first] : []), ...(await lastLines(path, tailBytes))];
  return all.flatMap((line) => {
    try {
      return lines.read(line, 0) ?? [];
    } catch (error) {
      if (error instanceof BrokenLine) return [];
      throw error;
    }
  });
}

/** Where the backend itself writes down the conversation of an agent. */
export async function findTranscript(
  { places, taken, settings }: Pick<TranscriptParts, 'places' | 'taken' | 'settings'>,
  { session, handle }: Entry,
  { isWide = true } = {},
): Promise<{ path: string; id: string } | undefined> {
  const { id, backend_session_id: own, workdir: cwd } = session;
  const rule = rulesOf(settings.values.backends.extra, session.backend)?.transcript;
  if (rule) {
    if (!isWide) return undefined;
    const agent = { session: id, own, since: handle.startedAt, taken: taken(id) };
    return findOwnTranscript(rule, places, agent);
  }
  if (handle.cli === 'codex') {
    if (!isWide) return undefined;
    return codexTranscript(places, { id: own, cwd, since: handle.startedAt, taken: taken(id) });
  }
  const reader = answerReaders[handle.cli];
  if (reader) {
    if (!isWide) return undefined;
    const agent = { id: own, cwd, since: handle.startedAt, taken: taken(id) };
    return answersTranscript(reader, places, agent);
  }
  if (handle.cli !== 'claude' || own === null) return undefined;
  const path = await claudeTranscript(places, { id: own, cwd, isWide });
  return path === undefined ? undefined : { path, id: own };
}

/** Follows the transcript of one agent. */
export class TranscriptWatch {
  #found: { path: string; id: string } | undefined;
  #searchedAt = -Infinity;
  #size = -1;
  #tail: TranscriptTail | undefined;

  constructor(private readonly parts: TranscriptParts) {}

  /** What its end contains now; undefined while there is none. */
  async inspect(
    entry: Entry,
    { isOver }: { isOver: boolean },
  ): Promise<(TranscriptTail & { id: string }) | undefined> {
    const { cli } = entry.handle;
    const { extra } = this.parts.settings.values.backends;
    const format = rulesOf(extra, entry.session.backend)?.transcript ?? cli;
    const isKnown = format === 'claude' || format === 'codex' || typeof format !== 'string';
    if (!isKnown && !Object.hasOwn(answerReaders, format)) return undefined;
    // Its program writes to a database, so the end of a short run is copied for it.
    if (isOver && format === 'opencode') await this.parts.refreshCopy?.();
    const own = entry.session.backend_session_id;
    if (this.#found && own !== null && this.#found.id !== own) this.#found = undefined;
    this.#found ??= await this.#search(entry, isOver);
    if (!this.#found) return undefined;
    const { id } = this.#found;
    try {
      const { tail, size } = await readTail(format, this.#found, this.#size);
      if (tail) this.#tail = tail;
      this.#size = size;
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error;
      this.#found = undefined;
    }
    return this.#tail && { ...this.#tail, id };
  }

  async #search(entry: Entry, isOver: boolean): Promise<{ path: string; id: string } | undefined> {
    const now = this.parts.clock.monotonic();
    // A run that has ended is searched for once more: a short one may be over before the next try.
    const isWide = isOver || now - this.#searchedAt >= searchMs;
    if (isWide) this.#searchedAt = now;
    return findTranscript(this.parts, entry, { isWide });
  }
}
