import { appendFile, mkdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import { whenThere } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { runProgram } from '../registry/run-program.js';
import { opencodeCopy } from '../transcripts/answers.js';

export interface OpencodeCopyOptions {
  dataDir: string;
  home: string;
  /** Environment of the opencode program. */
  environment: Readonly<Record<string, string | undefined>>;
  /** The installed program; undefined when there is none. */
  program: () => Promise<string | undefined>;
  clock: Clock;
  log: Log;
}

interface Row {
  id: string;
  time_updated: number;
}

const maxRows = 2_000;
const timeoutMs = 60_000;
/** Each start of opencode takes a second of processor time. */
const pauseMs = 10_000;

/**
 * Copies the token counts of opencode's SQLite database to a file of lines, which is read like any
 * transcript. opencode's own program runs the query, so its write-ahead log and locks are honoured.
 */
export class OpencodeCopy {
  readonly #file: string;
  /** Size and time of the database when it was last copied. */
  #stamp = '';
  #copiedAt = -Infinity;
  /** The newest time that was copied, and the rows of exactly that time. */
  #newest: { at: number; ids: Set<string> } | undefined;

  constructor(private readonly options: OpencodeCopyOptions) {
    this.#file = opencodeCopy(options.dataDir);
  }

  /** Copies what is new. True when there was something. */
  async refresh(signal: AbortSignal, isUrgent = false): Promise<boolean> {
    const { clock, program, log } = this.options;
    const stamp = await this.#databaseStamp();
    if (stamp === undefined || stamp === this.#stamp) return false;
    if (!isUrgent && clock.monotonic() - this.#copiedAt < pauseMs) return false;
    const file = await program();
    if (file === undefined) return false;
    this.#copiedAt = clock.monotonic();
    let isNew = false;
    for (;;) {
      this.#newest ??= await newestIn(this.#file);
      const rows = rowsIn(await this.#query(file, queryFrom(this.#newest.at), signal));
      if (signal.aborted) return isNew;
      if (rows === undefined) {
        log.warn({ program: file }, 'failed to read opencode database');
        return isNew;
      }
      if (await this.#append(rows)) isNew = true;
      if (rows.length < maxRows) break;
    }
    this.#stamp = stamp;
    return isNew;
  }

  async #databaseStamp(): Promise<string | undefined> {
    const { home, environment } = this.options;
    const data = environment['XDG_DATA_HOME'] || join(home, '.local', 'share');
    const database = environment['OPENCODE_DB'] || join(data, 'opencode', 'opencode.db');
    const facts = await Promise.all([database, `${database}-wal`].map(stampOf));
    return facts[0] === undefined ? undefined : facts.join(' ');
  }

  /**
   * The last answer of a conversation, which is nowhere else: opencode clears its screen at its
   * end. It is read on request and not copied.
   */
  async lastAnswer(id: string): Promise<string | undefined> {
    const file = await this.options.program();
    if (file === undefined || !/^\w+$/.test(id)) return undefined;
    const text = await this.#query(file, answerQuery(id));
    const parts = (listIn(text) ?? []) as { message: string; text: string }[];
    const own = parts.filter(({ message }) => message === parts[0]!.message).toReversed();
    return own.map((part) => part.text).join('\n') || undefined;
  }

  /** What the program prints; empty when it fails. */
  async #query(file: string, query: string, signal?: AbortSignal): Promise<string> {
    const { clock, environment, home: cwd } = this.options;
    const args = ['db', '--pure', '--format', 'json', query];
    const run = { file, args, cwd, environment, timeoutMs, signal, clock };
    const end = await runProgram(run);
    return end.kind === 'exited' && end.code === 0 ? end.stdout : '';
  }

  async #append(rows: readonly Row[]): Promise<boolean> {
    const { at, ids } = this.#newest!;
    const fresh = rows.filter((row) => row.time_updated > at || !ids.has(row.id));
    const last = fresh.at(-1)?.time_updated;
    if (last === undefined) return false;
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
    const lines = fresh.map((row) => `${JSON.stringify(row)}\n`);
    await appendFile(this.#file, lines.join(''), { mode: 0o600 });
    const newest = rows.filter((row) => row.time_updated === last).map(({ id }) => id);
    this.#newest = { at: last, ids: new Set([...(last === at ? ids : []), ...newest]) };
    return true;
  }
}

/** The newest texts of the agent first. */
function answerQuery(id: string): string {
  return (
    `SELECT message_id AS message, json_extract(part.data, '$.text') AS text FROM part ` +
    `JOIN message ON message.id = message_id WHERE part.session_id = '${id}' ` +
    `AND json_extract(message.data, '$.role') = 'assistant' ` +
    `AND json_extract(part.data, '$.type') = 'text' ORDER BY part.id DESC LIMIT 100`
  );
}

/** Only counts and names are copied; prompts and answers stay in the database. */
function queryFrom(time: number): string {
  const field = (path: string, name: string) => `json_extract(data, '$.${path}') AS ${name}`;
  const fields = [
    field('modelID', 'model'),
    field('path.cwd', 'cwd'),
    field('tokens.input', 'input'),
    field('tokens.output', 'output'),
    field('tokens.reasoning', 'reasoning'),
    field('tokens.cache.read', 'cache_read'),
    field('tokens.cache.write', 'cache_write'),
  ];
  return (
    `SELECT id, session_id, time_created, time_updated, ${fields.join(', ')} FROM message ` +
    `WHERE json_extract(data, '$.role') = 'assistant' AND time_updated >= ${time} ` +
    `ORDER BY time_updated, id LIMIT ${maxRows}`
  );
}

function rowsIn(text: string): Row[] | undefined {
  const rows = listIn(text);
  return rows?.every(isRow) ? rows : undefined;
}

function listIn(text: string): unknown[] | undefined {
  try {
    const rows: unknown = JSON.parse(text);
    return Array.isArray(rows) ? rows : undefined;
  } catch {
    // An older program prints something else; the caller logs it.
    return undefined;
  }
}

function isRow(value: unknown): value is Row {
  const row = value as Partial<Row> | null;
  return typeof row?.id === 'string' && Number.isSafeInteger(row.time_updated);
}

/** The last line of the copy says how far it goes; its time is queried again. */
async function newestIn(file: string): Promise<{ at: number; ids: Set<string> }> {
  const text = (await whenThere(readFile(file, 'utf8'))) ?? '';
  const rows = text.split('\n').flatMap((line) => (line === '' ? [] : (rowsIn(`[${line}]`) ?? [])));
  const at = rows.at(-1)?.time_updated ?? 0;
  return { at, ids: new Set(rows.filter((row) => row.time_updated === at).map(({ id }) => id)) };
}

async function stampOf(path: string): Promise<string | undefined> {
  const found = await whenThere(stat(path));
  return found && `${found.size}:${found.mtimeMs}`;
}
