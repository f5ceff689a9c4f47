import type { Core } from '../../core/core.js';
import { tableNames, Tables } from '../../storage/file/tables.js';
import { TableWalker } from '../verify/extras.js';
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Refusal } from '@millrace/kit/errors';
import type { LogTrimmer } from '../../core/log-trim.js';
import { refuse } from '../../value/documents.js';
import { freeBytes, isDiskFull } from '../../storage/file/files.js';
import { currentStore, nextStore, pointTo, removeStore } from '../../storage/file/directory.js';
import { StoreCopy } from './store-copy.js';

// LMDB's overhead per row, and the maximum size of a row that shares a page.
const rowHead = 10;
const maxInPage = 2_000;
const pageBytes = 4_096;
const pageHead = 16;

/** Estimated size of a copy of the file. */
async function estimateBytes(core: Core): Promise<number> {
  const view = core.snapshot();
  const walker = new TableWalker(core, view);
  let pages = 2;
  try {
    for (const table of tableNames) {
      let shared = 0;
      const add = ({ key, value }: { key: Buffer; value: Buffer }) => {
        const size = rowHead + key.length + value.length;
        if (size <= maxInPage) shared += size;
        else {
          shared += rowHead + key.length + 8;
          pages += Math.ceil((value.length + pageHead) / pageBytes);
        }
      };
      await walker.walk(table, add);
      pages += Math.ceil(shared / (pageBytes - pageHead));
    }
    return pages * pageBytes;
  } finally {
    view.done();
  }
}

const reservedBytes = 16 * 2 ** 20;

export interface CompactOptions {
  /** Trim the log before this commit, even within its retention. */
  trimBeforeSeq?: number | undefined;
  /** Only estimate the result and change nothing. */
  dryRun?: boolean | undefined;
  /** Called with progress. Throwing cancels the compaction. */
  onStage?: ((stage: CompactStage, rows: number) => void | Promise<void>) | undefined;
}

export type CompactStage = 'trim' | 'copy' | 'compare' | 'hold' | 'point' | 'done';

/** Progress of a compaction: every row is copied, then compared. */
export interface CompactProgress {
  stage: CompactStage;
  /** Rows copied and rows compared. */
  rows: number;
  /** As counted at the start; writes may change it. */
  totalRows: number;
  elapsedMs: number;
}

export interface Compacted {
  /** Size of the data file before and after; after a dry run, the estimate. */
  bytesBefore: number;
  bytesAfter: number;
  /** The oldest commit that a watch can now start at. */
  oldestSeq: number;
  elapsedMs: number;
}

/**
 * Trims the log and rewrites the file while reads and writes continue. The copy replaces the file
 * only after a comparison, by one atomic step: renaming CURRENT. A failure before that leaves the
 * database unchanged.
 */
export class Compactor {
  #running: Promise<unknown> | undefined;
  #progress: (() => CompactProgress) | undefined;

  constructor(
    private readonly core: Core,
    private readonly directory: string,
    private readonly trimmer: LogTrimmer,
    private readonly stop: AbortSignal,
  ) {}

  async run(options: CompactOptions = {}): Promise<Compacted> {
    const before = checkSeq(options.trimBeforeSeq ?? 0);
    return this.alone(() =>
      options.dryRun ? this.#preview(before) : this.#compact(before, options),
    );
  }

  /** Runs another operation that replaces the store; compactions are refused meanwhile. */
  async alone<Result>(run: () => Promise<Result>): Promise<Result> {
    if (this.#running) {
      throw refuse(
        'ALREADY_RUNNING',
        'The data file is being rewritten already; wait for it to end.',
      );
    }
    const running = run();
    this.#running = running;
    try {
      return await running;
    } finally {
      this.#running = undefined;
    }
  }

  /** Undefined while no compaction runs. */
  get progress(): CompactProgress | undefined {
    return this.#progress?.();
  }

  /** Resolves when no compaction is running. Its failure is reported to its own caller. */
  async idle(): Promise<void> {
    await this.#running?.catch(() => undefined);
  }

  async #preview(trimBeforeSeq: number): Promise<Compacted> {
    const { clock } = this.core;
    const started = clock.monotonic();
    const oldestSeq = await this.trimmer.preview(trimBeforeSeq);
    return {
      bytesBefore: await this.#foldedBytes(),
      bytesAfter: await estimateBytes(this.core),
      oldestSeq,
      elapsedMs: clock.monotonic() - started,
    };
  }

  async #compact(trimBeforeSeq: number, options: CompactOptions): Promise<Compacted> {
    const { core } = this;
    const started = core.clock.monotonic();
    const bytesBefore = await this.#foldedBytes();
    await options.onStage?.('trim', 0);
    await this.trimmer.trim(trimBeforeSeq);
    try {
      await this.#rewrite(options, started);
    } finally {
      this.#progress = undefined;
    }
    return {
      bytesBefore,
      bytesAfter: this.#fileBytes(),
      oldestSeq: core.durable.oldestSeq,
      elapsedMs: core.clock.monotonic() - started,
    };
  }

  async #rewrite(options: CompactOptions, started: number): Promise<void> {
    const { core, directory } = this;
    const old = core.tables;
    const oldName = currentStore(directory);
    const name = nextStore(oldName);
    removeStore(directory, name);
    let fresh: Tables | undefined;
    try {
      fresh = new Tables(join(directory, name));
      await this.#copyInto(fresh, name, options, started);
    } catch (error) {
      core.writer.forgetTouched();
      // Computed before deleting the copy frees the space.
      const reason = this.#explain(error, join(directory, name));
      await fresh?.close();
      if (!this.#isNamed(name)) removeStore(directory, name);
      throw reason;
    }
    core.files
      .retire(old, () => removeStore(directory, oldName))
      .catch((error: unknown) => {
        core.log.error({ err: error, file: basename(old.path) }, 'The old file was not removed');
      });
    await options.onStage?.('done', 0);
  }

  async #copyInto(
    fresh: Tables,
    name: string,
    options: CompactOptions,
    started: number,
  ): Promise<void> {
    const { core } = this;
    const report = async (stage: CompactStage) => {
      if (this.stop.aborted) throw refuse('SHUTTING_DOWN', 'The database is being closed.');
      this.#checkRoom();
      await options.onStage?.(stage, copy.rows);
    };
    let stage: CompactStage = 'copy';
    const copy = new StoreCopy(core, fresh, () => report(stage));
    core.tables.refresh();
    const rows = tableNames.reduce((sum, table) => sum + core.tables.stats(table).rows, 0);
    this.#progress = () => ({
      stage,
      rows: copy.rows + copy.compared,
      totalRows: 2 * rows,
      elapsedMs: core.clock.monotonic() - started,
    });
    await report(stage);
    await copy.copyAll();
    await copy.calmDown();
    await report((stage = 'compare'));
    await copy.compareAll();
    await copy.calmDown();
    await report((stage = 'hold'));
    await core.writer.hold(async () => {
      await core.store.fold();
      await copy.catchUp();
      copy.compareCounts();
      await report((stage = 'point'));
      this.#pointTo(name);
      core.switchTo(fresh);
      core.writer.forgetTouched();
    });
  }

  /** Makes the copy the current store. Throws only when it is not. */
  #pointTo(name: string): void {
    try {
      pointTo(this.directory, name);
    } catch (error) {
      if (currentStore(this.directory) !== name) throw error;
      // CURRENT is renamed already; only the fsync that protects the rename from a power cut
      // failed.
      this.core.log.error({ err: error }, 'CURRENT was written, but perhaps not to the disk');
    }
  }

  /** Whether CURRENT names this store, or cannot be read. */
  #isNamed(name: string): boolean {
    try {
      return currentStore(this.directory) === name;
    } catch (error) {
      this.core.log.error({ err: error }, 'CURRENT cannot be read');
      return true;
    }
  }

  /** Stops when the remaining disk space is needed for writes. */
  #checkRoom(): void {
    const free = freeBytes(this.core.tables.path);
    if (free >= reservedBytes) return;
    throw refuse(
      'DISK_FULL',
      'The disk is too full for a second copy of the data, which compacting needs for a while; ' +
        'the database goes on as it was.',
    );
  }

  /** The size of the file after folding the overlay into it. */
  async #foldedBytes(): Promise<number> {
    const { store, tables } = this.core;
    try {
      await store.fold();
    } catch (error) {
      throw this.#explain(error, tables.path);
    }
    return this.#fileBytes();
  }

  #fileBytes(): number {
    // A database in memory has no name for its file.
    return statSync(this.core.tables.path, { throwIfNoEntry: false })?.size ?? 0;
  }

  #explain(error: unknown, path: string): unknown {
    if (error instanceof Refusal || !isDiskFull(error, path)) return error;
    return refuse(
      'DISK_FULL',
      'The disk is too full for a second copy of the data; the database goes on as it was.',
      undefined,
      { cause: error },
    );
  }
}

function checkSeq(seq: number): number {
  if (Number.isSafeInteger(seq) && seq >= 0) return seq;
  throw refuse('BAD_REQUEST', `trim_before_seq must be the number of a commit, not ${seq}.`);
}
