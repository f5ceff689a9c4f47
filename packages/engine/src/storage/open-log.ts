import { basename, dirname, join } from 'node:path';
import { foldedLsn } from './fold.js';
import type { Overlay } from './overlay/overlay.js';
import { PendingWrites } from './overlay/pending.js';
import { decodeState, stateRow } from './file/state.js';
import type { Tables } from './file/tables.js';
import { frameRows } from './log/frame.js';
import { WriteAheadLog, type LogOptions } from './log/write-ahead-log.js';

/** The row of `meta` with the name of the log directory, beside the store. */
export const logRow = Buffer.from('log');

/** The name of the log of a new store. */
export function logNameFor(store: string): string {
  return basename(store).replace(/^store-(\d+)\.mdb$/, 'log-$1');
}

/** The directory of the log of a store. */
export function logDirectoryOf(tables: Tables): string {
  const name = tables.get('meta', logRow)?.toString() ?? logNameFor(tables.path);
  return join(dirname(tables.path), name);
}

/** A log, and its batches that are not in the store yet. */
export class OpenedLog {
  private constructor(
    readonly log: WriteAheadLog,
    private readonly batches: readonly { frame: Buffer; lsn: number }[],
  ) {}

  static async open(tables: Tables, options: Omit<LogOptions, 'directory'>): Promise<OpenedLog> {
    const { seq, chain } = decodeState(tables.get('meta', stateRow));
    const batches: { frame: Buffer; lsn: number }[] = [];
    const log = await WriteAheadLog.open(
      { ...options, directory: logDirectoryOf(tables) },
      foldedLsn(tables),
      { firstSeq: seq + 1, chain },
      (frame, lsn) => batches.push({ frame, lsn }),
    );
    return new OpenedLog(log, batches);
  }

  /** Loads the missing batches into the overlay. */
  loadInto(overlay: Overlay): void {
    for (const { frame, lsn } of this.batches) {
      const writes = new PendingWrites();
      for (const { table, key, value } of frameRows(frame)) writes.set(table, key, value);
      overlay.add(writes, lsn, -1);
    }
  }
}
