import { commitChain } from '../../format/changes.js';
import { encodeLsn, foldedRow } from '../../storage/fold.js';
import { seqOfKey } from '../../format/keys.js';
import type { CommitRow } from '../../format/changes.js';
import { logDirectoryOf, logNameFor, logRow } from '../../storage/open-log.js';
import { WriteAheadLog, type LogOptions } from '../../storage/log/write-ahead-log.js';
import { PendingWrites } from '../../storage/overlay/pending.js';
import { decodeState, stateRow } from '../../storage/file/state.js';
import type { PutRow, Tables } from '../../storage/file/tables.js';

export type UpgradeOptions = Pick<LogOptions, 'clock' | 'random' | 'log' | 'files'>;

const maxFrameBytes = 256 * 1024;

/**
 * Writes the change log of format 1, a table of the store, to files. They count only when the
 * store names them, which it does together with the new version: a crash in between leaves the
 * directory as it was.
 */
export async function moveLogTable(
  tables: Tables,
  options: UpgradeOptions,
): Promise<(put: PutRow) => void> {
  const legacy = tables.legacyLog();
  const directory = logDirectoryOf(tables);
  options.files.removeDirectory(directory);
  const { oldestSeq, oldestChain, epoch } = decodeState(tables.get('meta', stateRow));
  let start = { firstSeq: oldestSeq, chain: oldestChain };
  const log = await WriteAheadLog.open({ ...options, directory }, 0, start, () => undefined);
  let commits: CommitRow[] = [];
  let bytes = 0;
  const flush = async () => {
    if (commits.length === 0) return;
    await log.append({ epoch, commits, writes: new PendingWrites(), isCut: false, start });
    const last = commits.at(-1)!;
    start = { firstSeq: last.seq + 1, chain: commitChain(last.bytes) };
    commits = [];
    bytes = 0;
  };
  try {
    for (const { key, value } of legacy.rows()) {
      commits.push({ seq: seqOfKey(key), bytes: value, images: [] });
      bytes += value.length;
      if (bytes >= maxFrameBytes) await flush();
    }
    await flush();
    await log.idle();
    const { lastLsn } = log;
    return (put) => {
      legacy.drop();
      put('meta', logRow, Buffer.from(logNameFor(tables.path)));
      put('meta', foldedRow, encodeLsn(lastLsn));
    };
  } finally {
    log.close();
  }
}
