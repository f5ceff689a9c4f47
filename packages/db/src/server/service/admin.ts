import { create } from '@bufbuild/protobuf';
import {
  BackupFormat,
  BackupResponseSchema,
  CompactResponseSchema,
  PromoteResponseSchema,
  type BackupResponse,
} from '@millrace/contract/db';
import type { BackupPart } from '@millrace/engine/maintain/backup/frames';
import { hashToBigInt } from '@millrace/engine/value/bytes';
import type { CallContext, Request, Service } from './call.js';
import type { ServiceParts } from './parts.js';
import { statusMethod } from './status.js';
import { badField, duration, timestamp, wholeNumber } from './records.js';

type AdminMethods = Pick<Service, 'Compact' | 'Backup' | 'Promote' | 'ReplicationStatus'>;

export function adminMethods(parts: ServiceParts): AdminMethods {
  return {
    Compact: async (request) => {
      const compacted = await parts.database.compact({
        trimBeforeSeq: wholeNumber(request.trimBeforeSeq, 'trim_before_seq'),
        dryRun: request.dryRun,
      });
      return create(CompactResponseSchema, {
        bytesBefore: BigInt(compacted.bytesBefore),
        bytesAfter: BigInt(compacted.bytesAfter),
        oldestSeq: BigInt(compacted.oldestSeq),
        elapsed: duration(compacted.elapsedMs),
      });
    },
    Backup: (request, context) => backupParts(parts, request, context),
    Promote: async (request) => {
      const maxLag = wholeNumber(request.maxLag, 'max_lag');
      const { role, lag } = await parts.replication.promote({ force: request.force, maxLag });
      const { epoch, seq } = parts.handle.current.core.state;
      return create(PromoteResponseSchema, {
        role,
        epoch: BigInt(epoch),
        seq: BigInt(seq),
        lag: BigInt(lag),
      });
    },
    ReplicationStatus: statusMethod(parts),
  };
}

async function* backupParts(
  parts: ServiceParts,
  request: Request<'Backup'>,
  context: CallContext,
): AsyncGenerator<BackupResponse, void, void> {
  if (request.peer) await parts.replication.handlePeer(request.peer, 'Backup', context);
  const made = parts.database.backup({
    format: backupFormat(request.format),
    collections: request.collections,
    sinceSeq: wholeNumber(request.sinceSeq, 'since_seq'),
    signal: context.signal,
  });
  for await (const part of made) yield backupMessage(part);
}

function backupFormat(format: BackupFormat): 'snapshot' | 'ndjson' {
  if (format === BackupFormat.NDJSON) return 'ndjson';
  if (format === BackupFormat.SNAPSHOT || format === BackupFormat.UNSPECIFIED) return 'snapshot';
  throw badField('format', 'must be BACKUP_FORMAT_SNAPSHOT or BACKUP_FORMAT_NDJSON');
}

function backupMessage(part: BackupPart): BackupResponse {
  if (part.kind === 'data') {
    return {
      $typeName: 'millrace.db.v1.BackupResponse',
      part: { case: 'data', value: part.bytes },
    };
  }
  if (part.kind === 'trailer') {
    const { bytes, sha256, records } = part.trailer;
    const value = { bytes: BigInt(bytes), sha256, records: BigInt(records) };
    return create(BackupResponseSchema, { part: { case: 'trailer', value } });
  }
  const { header } = part;
  const value = {
    formatVersion: header.formatVersion,
    seq: BigInt(header.seq),
    epoch: BigInt(header.epoch),
    lineageId: header.lineageId,
    createdAt: timestamp(header.createdAt.getTime()),
    format: header.format === 'ndjson' ? BackupFormat.NDJSON : BackupFormat.SNAPSHOT,
    sinceSeq: BigInt(header.sinceSeq),
    chainHash: hashToBigInt(header.chainHash),
  };
  return create(BackupResponseSchema, { part: { case: 'header', value } });
}
