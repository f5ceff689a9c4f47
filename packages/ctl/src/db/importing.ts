import { createReadStream } from 'node:fs';
import { systemClock } from '@millrace/kit/clock';
import { messageOf, Refusal, UsageError } from '@millrace/kit/errors';
import { humanDuration } from '@millrace/kit/units';
import type { RemoteCollection, RemoteDatabase } from '@millrace/db/client';
import type { Tools } from '../tools.js';
import { parseLine, type ImportLine, type LineOptions } from './import-line.js';
import { linesOf } from './lines.js';
import { Progress } from './progress.js';
import { counted } from './reads.js';

export interface ImportOptions extends LineOptions {
  collection: string;
  file: string | undefined;
  merge: boolean;
  batch: number;
  startLine: number;
  keepGoing: boolean;
}

type Records = RemoteCollection<Record<string, unknown>>;

export async function importRecords(
  database: RemoteDatabase,
  options: ImportOptions,
  { terminal, exitWith }: Pick<Tools, 'terminal' | 'exitWith'>,
): Promise<void> {
  const fromStdin = options.file === undefined || options.file === '-';
  const input = fromStdin ? terminal.in.stream : createReadStream(options.file!);
  const place = fromStdin ? 'stdin' : options.file!;
  const progress = new Progress(terminal, 'Imported');
  const run = new ImportRun(database.collection(options.collection), options, place, progress);
  try {
    await run.take(input);
  } finally {
    progress.end();
  }
  const { out, err, json } = terminal;
  const { created, replaced, expired, failures } = run;
  if (json) {
    const failed = failures.map(({ line, message }) => ({ line, message }));
    out.write(`${JSON.stringify({ created, replaced, expired, failed }, null, 2)}\n`);
  } else {
    const gone = expired > 0 ? `, ${expired} expired and skipped` : '';
    const took = humanDuration(progress.elapsedMs);
    const total = counted(created + replaced, 'record');
    out.write(`Imported ${total} in ${took}: ${created} new, ${replaced} replaced${gone}.\n`);
    for (const { line, message } of failures) err.write(`ctl: ${place}:${line}: ${message}\n`);
  }
  if (failures.length > 0) exitWith(1);
}

/** One import: writes lines as they are read, up to `batch` in flight, in order for each key. */
class ImportRun {
  created = 0;
  replaced = 0;
  expired = 0;
  readonly failures: { line: number; message: string }[] = [];
  readonly #underWay = new Map<number, Promise<void>>();
  readonly #keys = new Map<string, Promise<void>>();
  #failure: { line: number; error: unknown } | undefined;
  #bytes = 0;

  constructor(
    private readonly records: Records,
    private readonly options: ImportOptions,
    private readonly place: string,
    private readonly progress: Progress,
  ) {}

  async take(input: NodeJS.ReadableStream): Promise<void> {
    let line = 0;
    try {
      for await (const text of linesOf(input)) {
        if (++line < this.options.startLine || text.trim() === '') continue;
        this.#bytes += Buffer.byteLength(text) + 1;
        while (this.#underWay.size >= this.options.batch)
          await Promise.race(this.#underWay.values());
        if (this.#failure) break;
        this.#start(line, text);
      }
    } finally {
      await Promise.all(this.#underWay.values());
    }
    if (this.#failure) throw this.#stopped(this.#failure);
  }

  #start(line: number, text: string): void {
    const running = this.#line(line, text)
      .catch((error: unknown) => this.#fail(line, error))
      .finally(() => {
        this.#underWay.delete(line);
        this.progress.show({ records: this.created + this.replaced, bytes: this.#bytes });
      });
    this.#underWay.set(line, running);
  }

  async #line(line: number, text: string): Promise<void> {
    const parsed = parseLine(text, `${this.place}:${line}`, this.options);
    const { key } = parsed;
    if (key === undefined) return this.#write(parsed);
    // Writes of one key stay in order, because the last one wins.
    const before = this.#keys.get(key);
    const writing = (before ?? Promise.resolve()).then(() => this.#write(parsed));
    const settled = writing.catch(() => undefined);
    this.#keys.set(key, settled);
    try {
      await writing;
    } finally {
      if (this.#keys.get(key) === settled) this.#keys.delete(key);
    }
  }

  async #write({ key, id, data, expiresAt }: ImportLine): Promise<void> {
    const ttlMs = expiresAt === undefined ? undefined : expiresAt - systemClock.now();
    if (ttlMs !== undefined && ttlMs <= 0) {
      this.expired++;
      return;
    }
    const created =
      key === undefined
        ? await this.#insert(id, data, ttlMs)
        : await this.#upsert(key, data, ttlMs);
    if (created) this.created++;
    else this.replaced++;
  }

  async #upsert(key: string, data: Record<string, unknown>, ttlMs: number | undefined) {
    const { created } = this.options.merge
      ? await this.records.upsertMerge(key, data, { ttlMs })
      : await this.records.upsert(key, data, { ttlMs });
    return created;
  }

  async #insert(id: string | undefined, data: Record<string, unknown>, ttlMs: number | undefined) {
    try {
      await this.records.insert(data, { ttlMs, ...(id === undefined ? {} : { id }) });
      return true;
    } catch (error) {
      const isThere = error instanceof Refusal && error.code === 'DUPLICATE_ID';
      if (!isThere || id === undefined) throw error;
      if (this.options.merge) await this.records.merge(id, data, { ttlMs });
      else await this.records.update(id, data, { ttlMs });
      return false;
    }
  }

  #fail(line: number, error: unknown): void {
    if (this.options.keepGoing && isAboutLine(error)) {
      this.failures.push({ line, message: withoutPlace(error, `${this.place}:${line}`) });
      this.failures.sort((a, b) => a.line - b.line);
    } else if (!this.#failure || line < this.#failure.line) this.#failure = { line, error };
  }

  /** Every line before the failed one has been written. */
  #stopped({ line, error }: { line: number; error: unknown }): Error {
    const at = `${this.place}:${line}`;
    const detail =
      `${at}: ${withoutPlace(error, at)} The lines before it are written. Fix it, then ` +
      `resume with --start-line ${line}.`;
    if (error instanceof UsageError) return new UsageError(detail, { cause: error });
    if (error instanceof Refusal) return new Refusal(error.code, detail, { cause: error });
    return error instanceof Error ? error : new Error(detail);
  }
}

function withoutPlace(error: unknown, place: string): string {
  const message = error instanceof Refusal ? error.detail : messageOf(error);
  const bare = message.startsWith(place)
    ? message.slice(place.length).replace(/^[: ]+/, '')
    : message;
  return bare.replace(/([^.])$/, '$1.');
}

const refusalsOfLines = new Set([
  'BAD_DATA',
  'BAD_KEY',
  'BAD_ID',
  'RECORD_TOO_LARGE',
  'REQUEST_TOO_LARGE',
  'UNIQUE_VIOLATION',
]);

/** The error is about this line, so the next one may succeed. */
function isAboutLine(error: unknown): boolean {
  if (error instanceof UsageError) return true;
  return error instanceof Refusal && refusalsOfLines.has(error.code);
}
