import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { findFiles, type FileFacts } from './find-files.js';
import { LineWalker } from './lines.js';
import {
  joined,
  type Conversations,
  type Places,
  type TranscriptReader,
  type Detection,
} from './reader.js';
import { isUnchanged, scanFile, type FileState, type ScanSink } from './scan-file.js';

/** Results of a scan that are not on disk yet; they become one commit. */
export interface Batch {
  detections: readonly Detection[];
  states: readonly FileState[];
  /** Paths where there is no transcript any more. */
  removed: readonly string[];
}

/** Stores counts and offsets together. */
export interface TallyKeeper {
  readonly states: ReadonlyMap<string, FileState>;
  /** Atomic. Batches are committed one after the other. */
  commit(batch: Batch): Promise<void>;
}

export interface ScannerOptions {
  readers: readonly TranscriptReader[];
  places: Places;
  tally: TallyKeeper;
  log: Log;
  /** Files that have not changed since then are left out. */
  since?: number;
  /** How many messages go into one commit. */
  batchMessages?: number;
  walker?: LineWalker;
}

export interface ScanReport {
  files: number;
  /** Files with new content. */
  filesRead: number;
  bytesRead: number;
  brokenLines: number;
}

/** How far a scan in progress is. */
interface ScanProgress {
  bytesRead: number;
  /** Including what is already read. */
  bytesTotal: number;
}

/** Updates the tally from the transcripts. One scan at a time. */
export class Scanner {
  readonly #walker: LineWalker;
  readonly #roots = new Map<string, string>();
  #current: { batches: Batches; total?: Promise<number> } | undefined;

  constructor(private readonly options: ScannerOptions) {
    this.#walker = options.walker ?? new LineWalker();
    const conversations = this.#conversations();
    for (const { backend, carry } of options.tally.states.values()) {
      const reader = options.readers.find((each) => each.backend === backend);
      if (carry !== null) reader?.recall?.(carry, conversations);
    }
  }

  async scan(signal?: AbortSignal): Promise<ScanReport> {
    const { tally, log } = this.options;
    const batches = new Batches(this.options, this.#conversations(), signal);
    this.#current = { batches };
    const report: ScanReport = { files: 0, filesRead: 0, bytesRead: 0, brokenLines: 0 };
    const removed = new Set(tally.states.keys());
    const onTrouble = (path: string, error: unknown) => {
      log.warn({ path, reason: messageOf(error) }, 'failed to read transcript');
    };
    try {
      await this.#readAll(batches, report, removed, onTrouble);
      await batches.finish([...removed]);
    } finally {
      // All commits of this scan must be on disk before the next one starts.
      await batches.settled();
      this.#current = undefined;
    }
    return report;
  }

  /** Undefined while no scan runs. The total is counted once per scan, and only on request. */
  async progress(): Promise<ScanProgress | undefined> {
    const scan = this.#current;
    if (!scan) return undefined;
    const total = await (scan.total ??= this.#total(scan.batches));
    if (this.#current !== scan) return undefined;
    const { bytesRead } = scan.batches;
    return { bytesRead, bytesTotal: Math.max(total, bytesRead) };
  }

  /** Computes what was read and what is left, file by file, while the scan continues. */
  async #total(batches: Batches): Promise<number> {
    const { readers, places, tally } = this.options;
    let total = 0;
    // The scan itself reports files that cannot be read.
    for await (const found of findFiles(readers, places, () => {})) {
      total += batches.bytesOf(found, tally.states.get(found.path));
    }
    return total;
  }

  async #readAll(
    batches: Batches,
    report: ScanReport,
    removed: Set<string>,
    onTrouble: (path: string, error: unknown) => void,
  ): Promise<void> {
    const { readers, places, tally, log, since = 0 } = this.options;
    for await (const found of findFiles(readers, places, onTrouble)) {
      batches.checkStop();
      if (found.modifiedMs < since) continue;
      const known = tally.states.get(found.path);
      const before = known?.version === found.reader.version ? known : undefined;
      report.files += 1;
      removed.delete(found.path);
      if (before && isUnchanged(before, found)) {
        report.brokenLines += before.broken;
        continue;
      }
      try {
        report.bytesRead += await scanFile(this.#walker, found, before, batches);
        report.filesRead += 1;
      } catch (error) {
        if (batches.isStopped || batches.hasFailed || !isSystemError(error)) throw error;
        onTrouble(found.path, error);
      }
      const { brokenSince, state } = batches.lastOf(found.path, before);
      report.brokenLines += state?.broken ?? 0;
      if (brokenSince > 0) logBroken(log, state!, brokenSince);
    }
  }

  #conversations(): Conversations {
    return {
      rootOf: (id) => this.#roots.get(id),
      learnRoot: (id, root) => void this.#roots.set(id, root),
    };
  }
}

/** Collects detections, and commits them while reading continues. */
class Batches implements ScanSink {
  #detections = new Map<string, Detection>();
  #states = new Map<string, FileState>();
  #last: FileState | undefined;
  #committing: Promise<void> = Promise.resolve();
  #hasFailed = false;
  /** How far each file has been read by this scan. */
  readonly #read = new Map<string, { offset: number; bytes: number }>();
  bytesRead = 0;

  constructor(
    private readonly options: Pick<ScannerOptions, 'tally' | 'batchMessages'>,
    readonly conversations: Conversations,
    private readonly signal: AbortSignal | undefined,
  ) {}

  get isFull(): boolean {
    return this.#detections.size >= (this.options.batchMessages ?? defaultBatchMessages);
  }

  /** Something seen could not be written down. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  see(detection: Detection): void {
    const existing = this.#detections.get(detection.key);
    this.#detections.set(detection.key, existing ? joined(existing, detection) : detection);
  }

  async save(state: FileState): Promise<void> {
    this.#states.set(state.path, state);
    this.#last = state;
    if (this.isFull || this.#states.size >= maxStates) await this.#commit([]);
  }

  /** The newest state of a file, and the number of broken lines that this scan found in it. */
  lastOf(path: string, before: FileState | undefined) {
    const state = this.#last?.path === path ? this.#last : undefined;
    // A file that was read from its start is counted from 0.
    const old = before && state && before.broken <= state.broken ? before.broken : 0;
    return { state, brokenSince: (state?.broken ?? 0) - old };
  }

  get isStopped(): boolean {
    return this.signal?.aborted === true;
  }

  checkStop(): void {
    this.signal?.throwIfAborted();
  }

  advance(path: string, offset: number, bytes: number): void {
    const read = (this.#read.get(path)?.bytes ?? 0) + bytes;
    this.#read.set(path, { offset, bytes: read });
    this.bytesRead += bytes;
  }

  /** Bytes of a file that this scan has read or is still to read. */
  bytesOf(found: FileFacts, before: FileState | undefined): number {
    const read = this.#read.get(found.path);
    if (!read && before && isUnchanged(before, found)) return 0;
    const offset = read?.offset ?? (before?.inode === found.inode ? before.offset : 0);
    return (read?.bytes ?? 0) + Math.max(0, found.size - offset);
  }

  async settled(): Promise<void> {
    await Promise.allSettled([this.#committing]);
  }

  async finish(removed: readonly string[]): Promise<void> {
    if (this.#states.size > 0 || removed.length > 0) await this.#commit(removed);
    await this.#committing;
  }

  /** Returns when the batch before is on disk, so there are two in memory at most. */
  async #commit(removed: readonly string[]): Promise<void> {
    const batch = {
      detections: [...this.#detections.values()],
      states: [...this.#states.values()],
      removed,
    };
    this.#detections = new Map();
    this.#states = new Map();
    await this.#committing;
    this.#committing = this.options.tally.commit(batch);
    // The rejection is reported to the next caller that waits.
    this.#committing.catch(() => {
      this.#hasFailed = true;
    });
  }
}

// Few enough to die young: batches of 1,000 grow the heap by 50 MB over a gigabyte, for no speed.
const defaultBatchMessages = 300;
const maxStates = 500;

function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}

function logBroken(log: Log, { path, firstBroken, broken }: FileState, since: number): void {
  log.warn(
    {
      path,
      lines: since,
      total_lines: broken,
      offset: firstBroken?.offset,
      reason: firstBroken?.reason,
    },
    'skipped unreadable transcript lines',
  );
}
