import type { Flags } from '../base/tools.js';
import { wholeNumber } from '../base/arguments.js';
import type { ConnectedTools, ConnectionFlags } from './connection.js';
import { formatOfName, typesOf, importTexts, type FileFormat } from './import-items.js';
import { createReadStream, statSync } from 'node:fs';
import { systemClock } from '@millrace/kit/clock';
import { messageOf, Refusal, UsageError } from '@millrace/kit/errors';
import { humanDuration } from '@millrace/kit/units';
import { JsonText, type RemoteCollection } from '@millrace/db/client';
import { programName } from '../base/command-name.js';
import { rest } from '../base/rest.js';
import { parseLine, type ImportLine, type LineOptions } from './import-line.js';
import type { CellTypes } from '@millrace/contract/lists/csv';
import { Progress } from './progress.js';
import { counted } from '@millrace/contract/lists';

interface ImportOptions extends LineOptions {
  collection: string;
  file: string | undefined;
  merge: boolean;
  format: FileFormat;
  types: CellTypes | undefined;
  batch: number;
  startLine: number;
  keepGoing: boolean;
}

type ImportFlags = ConnectionFlags &
  Flags<'keyField batch startLine types', 'documents merge keepGoing'> & { format?: FileFormat };

type Records = RemoteCollection<Record<string, unknown>>;
type Operation = Parameters<Records['bulkWrite']>[0][number];

/** How long Ctrl-C waits for the batch in flight: lines without a key must not be resumed twice. */
const settleMs = 3_000;
const maxBatchBytes = 4 * 1024 * 1024;

export async function importRecords(
  collection: string,
  file: string | undefined,
  flags: ImportFlags,
  { connected, terminal, lifecycle, exitWith }: ConnectedTools,
): Promise<void> {
  const format = flags.format ?? formatOfName(file);
  const options = {
    collection,
    file,
    keyField: flags.keyField,
    documents: flags.documents ?? false,
    merge: flags.merge ?? false,
    format,
    types: typesOf(flags.types, format),
    batch: Math.min(wholeNumber(flags.batch, '--batch') || 1000, 10_000),
    startLine: wholeNumber(flags.startLine, '--start-line', 1) ?? 1,
    keepGoing: flags.keepGoing ?? false,
  };
  const database = await connected();
  const fromStdin = options.file === undefined || options.file === '-';
  const ofBytes = fromStdin ? 0 : sizeOf(options.file!);
  const input = fromStdin ? terminal.in.stream : createReadStream(options.file!);
  const place = fromStdin ? 'stdin' : options.file!;
  const progress = new Progress(terminal, 'Imported');
  const run = new ImportRun(database.collection(options.collection), options, place, (amount) =>
    progress.show({ ...amount, ofBytes }),
  );
  const goOn = lifecycle.onInterrupt(async () => {
    await run.stop();
    progress.end();
    terminal.err.write(`${programName()}: ${stoppedAt(run.nextLine)}\n`);
  });
  try {
    await run.take(input);
  } finally {
    goOn();
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
    for (const { line, message } of failures)
      err.write(`${programName()}: ${place}:${line}: ${message}\n`);
  }
  if (failures.length > 0) exitWith(1);
}

function sizeOf(file: string): number {
  const found = statSync(file);
  if (found.isDirectory()) throw new Refusal('FILE_ERROR', `${file}: is a directory, not a file.`);
  return found.isFile() ? found.size : 0;
}

function stoppedAt(line: number): string {
  return `Stopped at line ${line}. Resume with --start-line ${line}`;
}

interface BatchLine {
  line: number;
  operation: Operation;
  /** The other way to write a line with an id: insert when it is new, update when it exists. */
  other: Operation | undefined;
}

/** One import: each batch is one bulk write, and the next one is read meanwhile. */
class ImportRun {
  created = 0;
  replaced = 0;
  expired = 0;
  /** Every line before this one is written. */
  nextLine: number;
  readonly failures: { line: number; message: string }[] = [];
  #writing: Promise<void> = Promise.resolve();
  #bytes = 0;
  #isStopped = false;

  constructor(
    private readonly records: Records,
    private readonly options: ImportOptions,
    private readonly place: string,
    private readonly show: (amount: { records: number; bytes: number }) => void,
  ) {
    this.nextLine = options.startLine;
  }

  /** Starts no more batches, and waits for the one in flight. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const settled = this.#writing.catch(() => undefined);
    await Promise.race([settled, rest(settleMs)]);
  }

  async take(input: NodeJS.ReadableStream): Promise<void> {
    let line = 0;
    let batch: BatchLine[] = [];
    let batchBytes = 0;
    const flush = async () => {
      const full = batch;
      const next = line + 1;
      const bytes = this.#bytes;
      batch = [];
      batchBytes = 0;
      await this.#writing;
      // The process is about to exit.
      if (this.#isStopped) await new Promise<never>(() => undefined);
      this.#writing = this.#write(full).then(() => {
        this.nextLine = next;
        this.show({ records: this.created + this.replaced, bytes });
      });
      // The next flush reports the failure.
      this.#writing.catch(() => undefined);
    };
    try {
      const { place, options } = this;
      for await (const { line: at, text, bytes } of importTexts(input, { ...options, place })) {
        this.#bytes += bytes;
        line = at;
        if (line < options.startLine || text === '') continue;
        const parsed = this.#parse(line, text);
        if (parsed === undefined) continue;
        if (parsed instanceof Error) {
          line--;
          await flush();
          await this.#writing;
          throw this.#stopped(line + 1, parsed);
        }
        batch.push(parsed);
        batchBytes += bytes;
        if (batch.length >= options.batch || batchBytes >= maxBatchBytes) await flush();
      }
      await flush();
    } finally {
      await this.#writing;
    }
  }

  /** Undefined: nothing to write. An error stops the import at this line. */
  #parse(line: number, text: string | UsageError): BatchLine | Error | undefined {
    try {
      if (typeof text !== 'string') throw text;
      const parsed = parseLine(text, `${this.place}:${line}`, this.options);
      const { expiresAt } = parsed;
      const ttlMs = expiresAt === undefined ? undefined : expiresAt - systemClock.now();
      if (ttlMs === undefined || ttlMs > 0) {
        // Encoded now, while the server writes the batch before. Most lines are sent as they are.
        const json = new JsonText(parsed.isWhole ? text : JSON.stringify(parsed.data));
        return { line, ...operationsOf(parsed, json, ttlMs, this.options.merge) };
      }
      this.expired++;
      return undefined;
    } catch (error) {
      if (this.options.keepGoing && isAboutLine(error)) {
        this.#note(line, error);
        return undefined;
      }
      return error instanceof Error ? error : new Error(messageOf(error));
    }
  }

  /** Stops at the first failure, so that every line before it is written and none behind it. */
  async #write(batch: readonly BatchLine[]): Promise<void> {
    let rest = [...batch];
    while (rest.length > 0) {
      const { results } = await this.records
        .bulkWrite(
          rest.map(({ operation }) => operation),
          { ordered: !this.options.keepGoing },
        )
        .catch((error: unknown) => {
          throw this.#stopped(rest[0]!.line, error);
        });
      const again: BatchLine[] = [];
      let isFlipped = false;
      results.forEach(({ status, error, created }, i) => {
        const entry = rest[i]!;
        if (status === 'OK') this.#count(created);
        else if (status === 'NOT_RUN') again.push(entry);
        else if (entry.other && isOtherWay(error!.reason)) {
          isFlipped = true;
          again.push(otherWay(entry));
        } else if (this.options.keepGoing && refusalsOfLines.has(error!.reason)) {
          this.#note(entry.line, new Refusal(error!.reason, error!.message));
        } else throw this.#stopped(entry.line, new Refusal(error!.reason, error!.message));
      });
      // A file that was imported before has many such lines in a row.
      const isOrdered = !this.options.keepGoing;
      rest = again.map((entry, i) =>
        isFlipped && isOrdered && i > 0 && entry.other ? otherWay(entry) : entry,
      );
    }
  }

  #count(created: boolean): void {
    if (created) this.created++;
    else this.replaced++;
  }

  #note(line: number, error: unknown): void {
    this.failures.push({ line, message: withoutPlace(error, `${this.place}:${line}`) });
    this.failures.sort((a, b) => a.line - b.line);
  }

  /** Every line before the failed one has been written. */
  #stopped(line: number, error: unknown): Error {
    const at = `${this.place}:${line}`;
    const detail = `${at}: ${withoutPlace(error, at)} The lines before it are written. ${stoppedAt(line)}.`;
    this.nextLine = line;
    // The file is at fault, not the command line.
    if (error instanceof UsageError) return new Refusal('BAD_LINE', detail, { cause: error });
    if (error instanceof Refusal) return new Refusal(error.code, detail, { cause: error });
    return error instanceof Error ? error : new Error(detail);
  }
}

function operationsOf(
  { key, id }: ImportLine,
  json: JsonText,
  ttlMs: number | undefined,
  isMerge: boolean,
): Omit<BatchLine, 'line'> {
  const data = json as object as Record<string, unknown>;
  const body = isMerge ? { data, ttlMs, mode: 'merge' as const } : { data, ttlMs };
  if (key !== undefined) return { operation: { upsert: { key, ...body } }, other: undefined };
  const operation = { insert: { id, data, ttlMs } };
  return { operation, other: id === undefined ? undefined : { update: { id, ...body } } };
}

function isOtherWay(reason: string): boolean {
  return reason === 'DUPLICATE_ID' || reason === 'RECORD_NOT_FOUND';
}

function otherWay(entry: BatchLine): BatchLine {
  return { ...entry, operation: entry.other!, other: entry.operation };
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
  'SCHEMA_VIOLATION',
  'UNIQUE_VIOLATION',
]);

/** The error is about this line, so the next one may succeed. */
function isAboutLine(error: unknown): boolean {
  if (error instanceof UsageError) return true;
  return error instanceof Refusal && refusalsOfLines.has(error.code);
}
