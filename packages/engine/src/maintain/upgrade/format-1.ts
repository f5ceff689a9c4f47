import { commitChain } from '../../format/changes.js';
import { encodeLsn, foldedRow } from '../../storage/fold.js';
import { readUint48 } from '../../format/keys.js';
import type { CommitRow } from '../../format/changes.js';
import { logDirectoryOf, logNameFor, logRow } from '../../storage/open-log.js';
import { WriteAheadLog, type LogOptions } from '../../storage/log/write-ahead-log.js';
import { PendingWrites } from '../../storage/overlay/pending.js';
import { decodeState, encodeState, stateRow } from '../../storage/file/state.js';
import type { PutRow, Tables } from '../../storage/file/tables.js';

export type UpgradeOptions = Pick<LogOptions, 'clock' | 'random' | 'log' | 'files'>;

const maxFrameBytes = 256 * 1024;

/**
 * Upgrades format 1, which version 0.1.0 wrote: its change log is a table of the store, and its
 * state has no `commitEpoch`. The log is written to files. The store refers to them only in the
 * commit that also sets the new version, so a crash in between leaves the directory unchanged.
 */
export async function upgradeFormat1(
  tables: Tables,
  options: UpgradeOptions,
): Promise<(put: PutRow) => void> {
  const formerLog = tables.formerTable('log');
  const directory = logDirectoryOf(tables);
  options.files.removeDirectory(directory);
  const stored = tables.get('meta', stateRow);
  const state = decodeState(stored);
  const { oldestSeq, oldestChain, epoch } = state;
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
    for (const { key, value } of formerLog.rows()) {
      commits.push({ seq: readUint48(key, 2), bytes: value, images: [] });
      bytes += value.length;
      if (bytes >= maxFrameBytes) await flush();
    }
    await flush();
    await log.idle();
    const { lastLsn } = log;
    return (put) => {
      formerLog.drop();
      if (stored) put('meta', stateRow, encodeState({ ...state, commitEpoch: epoch }));
      put('meta', logRow, Buffer.from(logNameFor(tables.path)));
      put('meta', foldedRow, encodeLsn(lastLsn));
    };
  } finally {
    log.close();
  }
}
