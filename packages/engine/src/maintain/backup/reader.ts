import { createHash } from 'node:crypto';
import { UsageError } from '@millrace/kit/errors';
import type { RecordImage } from '../../format/record.js';
import { refuse } from '../../value/documents.js';
import {
  damagedAt,
  frameKinds,
  FrameReader,
  type Frame,
  backupVersion,
  batchesVersion,
  type BackupCatalog,
  type BackupHeader,
  type BackupPart,
  type BackupTrailer,
} from './frames.js';
import {
  catalogProblem,
  headerProblem,
  trailerProblem,
  decodeRows,
  decodeBatchRows,
  decodeCommitRows,
  decodeRecordRows,
  type PortableBatch,
  type PortableCommit,
} from './portable.js';

/** The content of a backup, in order. The catalog comes first. */
export type BackupStatement =
  | { kind: 'header'; header: BackupHeader }
  | { kind: 'catalog'; catalog: BackupCatalog }
  | { kind: 'records'; collection: number; records: RecordImage[] }
  | { kind: 'commits'; commits: PortableCommit[] }
  | { kind: 'batches'; batches: PortableBatch[] }
  | { kind: 'rows'; rows: PortableBatch['rows'] }
  | { kind: 'end'; trailer: BackupTrailer };

/**
 * Reads the parts of a backup and checks everything that can be checked without another one: that
 * there is a header, the checksum of every frame, the content of every record, and at the end the
 * totals of the trailer. Damage is reported with its position; `source` names the input.
 */
export async function* readBackup(
  parts: AsyncIterable<BackupPart>,
  source: string,
): AsyncGenerator<BackupStatement, void, void> {
  const hash = createHash('sha256');
  let frames: FrameReader | undefined;
  let bytes = 0;
  let records = 0;
  let hasCatalog = false;
  for await (const part of parts) {
    if (part.kind === 'header') {
      if (frames) throw damagedAt(source, bytes, 'a second header');
      checkHeader(part.header, source);
      frames = new FrameReader(`The data of ${source}`);
      yield part;
    } else if (!frames)
      throw refuse('CORRUPT', `${source} does not begin with the header of a backup.`);
    else if (part.kind === 'data') {
      frames.push(part.bytes);
      hash.update(part.bytes);
      bytes += part.bytes.length;
      for (let frame = frames.next(); frame; frame = frames.next()) {
        const statement = statementOf(frame, frames);
        if ((statement.kind === 'catalog') === hasCatalog) {
          throw frames.damaged('its catalog is not where it should be', frame.at);
        }
        hasCatalog = true;
        records += countOf(statement);
        yield statement;
      }
    } else {
      frames.end();
      if (!hasCatalog) throw frames.damaged('it has no catalog');
      checkTrailer(part.trailer, { bytes, records, sha256: hash.digest('hex') }, source);
      yield { kind: 'end', trailer: part.trailer };
      return;
    }
  }
  throw refuse(
    'CORRUPT',
    `${source} is incomplete: it ends after ${bytes} data bytes, without trailer.`,
  );
}

function checkHeader(header: BackupHeader, source: string): void {
  if (![backupVersion, batchesVersion].includes(header.formatVersion)) {
    throw new UsageError(
      `${source} has backup format ${header.formatVersion}; this Millrace reads formats up to ` +
        `${batchesVersion}.`,
    );
  }
  const problem = headerProblem(header);
  if (problem !== undefined) throw damagedAt(source, 0, problem);
  if (header.format !== 'snapshot') {
    throw new UsageError(
      `${source} is a backup as NDJSON, made to be read elsewhere; restore needs a snapshot.`,
    );
  }
}

function statementOf(frame: Frame, frames: FrameReader): BackupStatement {
  const { kind, payload, at } = frame;
  try {
    switch (kind) {
      case frameKinds.catalog: {
        const catalog = JSON.parse(payload.toString()) as BackupCatalog;
        const problem = catalogProblem(catalog);
        if (problem !== undefined) throw new RangeError(problem);
        return { kind: 'catalog', catalog };
      }
      case frameKinds.records: {
        const records = [...decodeRecordRows(payload)];
        return { kind: 'records', collection: payload.readUInt32BE(0), records };
      }
      case frameKinds.commits:
        return { kind: 'commits', commits: [...decodeCommitRows(payload)] };
      case frameKinds.batches:
        return { kind: 'batches', batches: [...decodeBatchRows(payload)] };
      case frameKinds.rows:
        return { kind: 'rows', rows: decodeRows(payload) };
      default:
        throw new RangeError(`a frame is of the unknown kind ${kind}`);
    }
  } catch (error) {
    if (error instanceof RangeError || error instanceof SyntaxError) {
      throw frames.damaged(error.message, at);
    }
    throw error;
  }
}

function countOf(statement: BackupStatement): number {
  if (statement.kind === 'records') return statement.records.length;
  if (statement.kind === 'commits') return changesIn(statement.commits);
  if (statement.kind !== 'batches') return 0;
  return statement.batches.reduce(
    (sum, { commits, rows }) => sum + changesIn(commits) + rows.length,
    0,
  );
}

function changesIn(commits: readonly PortableCommit[]): number {
  return commits.reduce((sum, { changes }) => sum + changes.length, 0);
}

function checkTrailer(said: BackupTrailer, found: BackupTrailer, source: string): void {
  const problem = trailerProblem(said);
  if (problem !== undefined) throw damagedAt(source, found.bytes, problem);
  if (said.bytes !== found.bytes) {
    throw refuse(
      'CORRUPT',
      `${source} is incomplete: it has ${found.bytes} data bytes, its trailer says ${said.bytes}.`,
    );
  }
  if (said.sha256 !== found.sha256) {
    throw refuse('CORRUPT', `${source} is damaged: its data has another SHA-256 than it says.`);
  }
  if (said.records !== found.records) {
    throw refuse(
      'CORRUPT',
      `${source} is damaged: it has ${found.records} records, its trailer says ${said.records}.`,
    );
  }
}
