import { BackupFormat, type BackupResponse } from '@millrace/contract/db';
import { fileBytes } from '@millrace/engine/maintain/backup/file';
import type { BackupPart } from '@millrace/engine/maintain/backup/frames';
import type { StreamForm } from './streams.js';

/** A backup in the file format that `ctl db restore` reads. */
export const backupFileForm: StreamForm = {
  contentType: 'application/octet-stream',
  failure: undefined,
  async deliver(messages, writer) {
    for await (const bytes of fileBytes(partsOf(messages as AsyncIterable<BackupResponse>))) {
      if (!writer.hasBegun) writer.begin('application/octet-stream');
      await writer.write(bytes);
    }
    writer.end('application/octet-stream');
  },
};

async function* partsOf(messages: AsyncIterable<BackupResponse>): AsyncGenerator<BackupPart> {
  for await (const { part } of messages) {
    if (part.case === 'data') yield { kind: 'data', bytes: asBuffer(part.value) };
    else if (part.case === 'trailer') {
      const { bytes, sha256, records } = part.value;
      yield {
        kind: 'trailer',
        trailer: { bytes: Number(bytes), sha256, records: Number(records) },
      };
    } else if (part.case === 'header') {
      const { value: header } = part;
      const { seconds, nanos } = header.createdAt!;
      yield {
        kind: 'header',
        header: {
          formatVersion: header.formatVersion,
          seq: Number(header.seq),
          epoch: Number(header.epoch),
          lineageId: header.lineageId,
          createdAt: new Date(Number(seconds) * 1000 + nanos / 1e6),
          format: header.format === BackupFormat.NDJSON ? 'ndjson' : 'snapshot',
          sinceSeq: Number(header.sinceSeq),
          chainHash: {
            high: Number(header.chainHash >> 32n),
            low: Number(header.chainHash & 0xffff_ffffn),
          },
        },
      };
    }
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
