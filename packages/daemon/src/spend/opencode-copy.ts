import { appendFile, mkdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import { systemCode } from '@millrace/kit/errors';
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
  readonly #options: OpencodeCopyOptions;
  readonly #file: string;
  /** Size and time of the database when it was last copied. */
  #stamp = '';
  #copiedAt = -Infinity;
  /** The newest time that was copied, and the rows of exactly that time. */
  #newest: { at: number; ids: Set<string> } | undefined;

  constructor(options: OpencodeCopyOptions) {
    this.#options = options;
    this.#file = opencodeCopy(options.dataDir);
  }

  /** Copies what is new. True when there was something. */
  async refresh(signal: AbortSignal, isUrgent = false): Promise<boolean> {
    const { clock, program, log } = this.#options;
    const stamp = await this.#databaseStamp();
    if (stamp === undefined || stamp === this.#stamp) return false;
    if (!isUrgent && clock.monotonic() - this.#copiedAt < pauseMs) return false;
    const file = await program();
    if (file === undefined) return false;
    this.#copiedAt = clock.monotonic();
    let isNew = false;
    for (;;) {
      const rows = await this.#query(file, signal);
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
    const { home, environment } = this.#options;
    const data = environment['XDG_DATA_HOME'] || join(home, '.local', 'share');
    const database = environment['OPENCODE_DB'] || join(data, 'opencode', 'opencode.db');
    const facts = await Promise.all([database, `${database}-wal`].map(stampOf));
    return facts[0] === undefined ? undefined : facts.join(' ');
  }

  async #query(file: string, signal: AbortSignal): Promise<Row[] | undefined> {
    const { clock, environment, home: cwd } = this.#options;
    this.#newest ??= await newestIn(this.#file);
    const args = ['db', '--pure', '--format', 'json', queryFrom(this.#newest.at)];
    const run = { file, args, input: '', cwd, environment, timeoutMs, signal, clock };
    const end = await runProgram(run);
    return end.kind === 'exited' && end.code === 0 ? rowsIn(end.stdout) : undefined;
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

/** Only counts and names leave the database; prompts and answers stay. */
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
  try {
    const rows: unknown = JSON.parse(text);
    return Array.isArray(rows) && rows.every(isRow) ? rows : undefined;
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
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return '';
    throw error;
  });
  const rows = text.split('\n').flatMap((line) => (line === '' ? [] : (rowsIn(`[${line}]`) ?? [])));
  const at = rows.at(-1)?.time_updated ?? 0;
  return { at, ids: new Set(rows.filter((row) => row.time_updated === at).map(({ id }) => id)) };
}

async function stampOf(path: string): Promise<string | undefined> {
  try {
    const { size, mtimeMs } = await stat(path);
    return `${size}:${mtimeMs}`;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error))) return undefined;
    throw error;
  }
}
