import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import {
  decodeCommit,
  type Change,
  type Commit,
  type RecordImage,
} from '@millrace/engine/format/record';
import type { Core } from '@millrace/engine/core/core';
import { hashToHex } from '@millrace/engine/maintain/backup/frames';
import { lineageOf } from '@millrace/engine/storage/file/tables';
import { syncDirectory } from '@millrace/engine/storage/file/directory';
import type { SavedTailState } from '../service/replication.js';

/** The first line of the file. */
interface TailHeader {
  format: 'millrace.db.tail';
  version: 1;
  lineage_id: string;
  node_id: string;
  /** Epoch of the last commit in the file. */
  epoch: number;
  first_seq: number;
  last_seq: number;
  saved_at: string;
  /** The leader that does not have these commits. */
  leader: string;
  reason: string;
}

export interface TailOptions {
  directory: string;
  nodeId: string;
  leader: string;
  reason: string;
  /** The last commit before the tail. */
  afterSeq: number;
  now: number;
}

const pattern = /^tail-[\d-]+\.jsonl$/;
const maxHeaderBytes = 16 * 1024;

/**
 * Saves the logged commits after `afterSeq` as JSON lines: a header, then one line per commit with
 * its records before and after. The file is synced when this resolves; undefined when there is
 * nothing to save.
 */
export async function saveTail(
  core: Core,
  options: TailOptions,
): Promise<SavedTailState | undefined> {
  const { seq: lastSeq, oldestSeq } = core.durable;
  const firstSeq = Math.max(options.afterSeq + 1, oldestSeq);
  if (firstSeq > lastSeq) return undefined;
  const header = headerOf(core, options, firstSeq, lastSeq);
  const name = freeName(options.directory, `tail-${header.epoch}-${firstSeq}-${lastSeq}`);
  const unfinished = join(options.directory, `${name}.new`);
  const file = await open(unfinished, 'w', 0o600);
  const pin = core.pinLog(firstSeq);
  try {
    await file.write(`${JSON.stringify(header)}\n`);
    // Written in batches, because there may be a day of commits.
    let lines: string[] = [];
    for (let seq = firstSeq; seq <= lastSeq; seq++) {
      const row = core.commitRow(seq);
      if (!row) throw new Error(`The change log has no commit ${seq}`);
      const commit = decodeCommit(seq, row, core.codec);
      lines.push(`${JSON.stringify(commitLine(core, commit))}\n`);
      if (lines.length < 100) continue;
      await file.write(lines.join(''));
      lines = [];
    }
    await file.write(lines.join(''));
    await file.sync();
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  } finally {
    pin.release();
    await file.close();
  }
  renameSync(unfinished, join(options.directory, name));
  syncDirectory(options.directory);
  return stateOf(name, header);
}

/** Saved tails in a data directory, oldest first. */
export function savedTails(directory: string): SavedTailState[] {
  const names = readdirSync(directory).filter((name) => pattern.test(name));
  const tails = names.flatMap((name) => {
    const header = readHeader(join(directory, name));
    return header ? [stateOf(name, header)] : [];
  });
  return tails.sort((a, b) => a.savedAt - b.savedAt || a.firstSeq - b.firstSeq);
}

function headerOf(core: Core, options: TailOptions, firstSeq: number, lastSeq: number): TailHeader {
  const last = core.commitRow(lastSeq);
  return {
    format: 'millrace.db.tail',
    version: 1,
    lineage_id: lineageOf(core.tables),
    node_id: options.nodeId,
    epoch: last ? decodeCommit(lastSeq, last, core.codec).epoch : core.durable.epoch,
    first_seq: firstSeq,
    last_seq: lastSeq,
    saved_at: new Date(options.now).toISOString(),
    leader: options.leader,
    reason: options.reason,
  };
}

function commitLine(core: Core, { seq, at, epoch, chain, changes }: Commit) {
  return {
    seq,
    committed_at: new Date(at).toISOString(),
    epoch,
    chain_hash: hashToHex(chain),
    changes: changes.map((change) => changeLine(core, change)),
  };
}

function changeLine(core: Core, { op, collection, id, after, before }: Change) {
  return {
    op,
    collection: core.catalog.byId(collection).name,
    id,
    ...(after && { record: recordLine(after) }),
    ...(before && { before: recordLine(before) }),
  };
}

function recordLine({ key, rev, seq, createdAt, updatedAt, expiresAt, data }: RecordImage) {
  return {
    key,
    rev,
    seq,
    created_at: new Date(createdAt).toISOString(),
    updated_at: new Date(updatedAt).toISOString(),
    ...(expiresAt > 0 && { expires_at: new Date(expiresAt).toISOString() }),
    data,
  };
}

function freeName(directory: string, stem: string): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? `${stem}.jsonl` : `${stem}-${n}.jsonl`;
    if (!existsSync(join(directory, name))) return name;
  }
}

/** Undefined when the file is not a tail file. */
function readHeader(path: string): TailHeader | undefined {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(maxHeaderBytes);
    const text = bytes.toString('utf8', 0, readSync(file, bytes, 0, maxHeaderBytes, 0));
    const header = JSON.parse(text.slice(0, text.indexOf('\n'))) as Partial<TailHeader>;
    return header.format === 'millrace.db.tail' ? (header as TailHeader) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  } finally {
    closeSync(file);
  }
}

function stateOf(file: string, header: TailHeader): SavedTailState {
  return {
    file,
    firstSeq: header.first_seq,
    lastSeq: header.last_seq,
    epoch: header.epoch,
    savedAt: Date.parse(header.saved_at),
  };
}
