import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  BackupFormat as FormatCode,
  Database,
  type BackupHeader as HeaderMessage,
  type BackupResponse,
} from '@millrace/contract/db';
import type { BackupOptions } from '@millrace/engine/maintain/backup/backup';
import type { BackupHeader, BackupPart } from '@millrace/engine/maintain/backup/parts';
import { RecordCounter } from '@millrace/engine/maintain/backup/record-counter';
import type { Compacted } from '@millrace/engine/maintain/compact/compact';
import { toHash } from './changes.js';
import { dateOf, uint64Of } from './records.js';
import type { CallOptions, Session } from './session.js';

const { method: rpc } = Database;

const compactTimeoutMs = 30 * 60_000;

/** Streams the parts of a backup, with backpressure. */
export async function* backup(
  session: Session,
  options: BackupOptions & CallOptions = {},
): AsyncGenerator<BackupPart, void, void> {
  const { format = 'snapshot', collections = [], sinceSeq = 0, onProgress } = options;
  const request = {
    format: format === 'ndjson' ? FormatCode.NDJSON : FormatCode.SNAPSHOT,
    collections: [...collections],
    sinceSeq: uint64Of(sinceSeq, 'since_seq'),
  };
  let bytes = 0;
  // Counting costs time; an increment has changes instead of records.
  const counter = onProgress && sinceSeq === 0 ? new RecordCounter(format) : undefined;
  for await (const reply of session.stream(rpc.backup, request, options)) {
    const part = toPart(reply);
    if (!part) continue;
    if (part.kind === 'data') {
      bytes += part.bytes.length;
      counter?.push(part.bytes);
    }
    const records = part.kind === 'trailer' ? part.trailer.records : (counter?.records ?? 0);
    onProgress?.({ records, bytes });
    yield part;
  }
}

export async function compact(
  session: Session,
  options: { trimBeforeSeq?: number | undefined; dryRun?: boolean | undefined } & CallOptions = {},
): Promise<Compacted> {
  const { trimBeforeSeq = 0, dryRun = false, timeoutMs = compactTimeoutMs, signal } = options;
  const request = { trimBeforeSeq: uint64Of(trimBeforeSeq, 'trim_before_seq'), dryRun };
  const reply = await session.callOnce(rpc.compact, request, { timeoutMs, signal });
  return {
    bytesBefore: Number(reply.bytesBefore),
    bytesAfter: Number(reply.bytesAfter),
    oldestSeq: Number(reply.oldestSeq),
    elapsedMs: reply.elapsed ? durationMs(reply.elapsed) : 0,
  };
}

export interface Promoted {
  role: string;
  epoch: number;
  seq: number;
  /** Commits of the old leader that were missing, as far as known. */
  lag: number;
}

export async function promote(
  session: Session,
  options: { force?: boolean | undefined; maxLag?: number | undefined } & CallOptions = {},
): Promise<Promoted> {
  const { force = false, maxLag = 0 } = options;
  const request = { force, maxLag: uint64Of(maxLag, 'max_lag') };
  const { role, epoch, seq, lag } = await session.call(rpc.promote, request, options);
  return { role, epoch: Number(epoch), seq: Number(seq), lag: Number(lag) };
}

/** Converts a backup message; undefined for a part that this client does not know. */
export function toPart({ part }: BackupResponse): BackupPart | undefined {
  switch (part.case) {
    case 'header':
      return { kind: 'header', header: toHeader(part.value) };
    case 'data': {
      const { buffer, byteOffset, byteLength } = part.value;
      return { kind: 'data', bytes: Buffer.from(buffer, byteOffset, byteLength) };
    }
    case 'trailer': {
      const { bytes, sha256, records } = part.value;
      const trailer = { bytes: Number(bytes), sha256, records: Number(records) };
      return { kind: 'trailer', trailer };
    }
    case undefined:
      return undefined;
  }
}

function toHeader(header: HeaderMessage): BackupHeader {
  return {
    formatVersion: header.formatVersion,
    seq: Number(header.seq),
    epoch: Number(header.epoch),
    lineageId: header.lineageId,
    createdAt: dateOf(header.createdAt),
    format: header.format === FormatCode.NDJSON ? 'ndjson' : 'snapshot',
    sinceSeq: Number(header.sinceSeq),
    chainHash: toHash(header.chainHash),
  };
}
