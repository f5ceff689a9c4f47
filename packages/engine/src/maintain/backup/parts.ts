import type { Hash64 } from '../../value/hash.js';

export type BackupFormat = 'snapshot' | 'ndjson';

/** Describes a backup. */
export interface BackupHeader {
  formatVersion: number;
  /** The last commit in the backup. */
  seq: number;
  epoch: number;
  /** The lineage of the database. */
  lineageId: string;
  createdAt: Date;
  format: BackupFormat;
  /** For an increment: the commit it builds on. 0 for a full backup. */
  sinceSeq: number;
  /** Chain hash over all commits up to `seq`. */
  chainHash: Hash64;
}

/** Size and checksum of the data of a backup. */
export interface BackupTrailer {
  /** Number of data bytes. */
  bytes: number;
  /** Over all data bytes, in lower-case hex. */
  sha256: string;
  /** Number of records; in an increment, of changes. */
  records: number;
}

/** First the header, then data of at most 256 KiB each, then the trailer. */
export type BackupPart =
  | { kind: 'header'; header: BackupHeader }
  | { kind: 'data'; bytes: Buffer }
  | { kind: 'trailer'; trailer: BackupTrailer };

/** The first frame of the data. */
export interface BackupCatalog {
  collections: { number: number; name: string }[];
  indexes: { collection: string; fields: string[]; unique: boolean; sparse: boolean }[];
  /** The only collections in the backup; null: all. */
  only: string[] | null;
  /** For an increment: the chain hash at the commit it builds on, in hex. */
  since_chain: string | null;
}

export const backupVersion = 1;

export function hashToHex({ high, low }: Hash64): string {
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}

export function hashFromHex(text: string): Hash64 {
  return { high: parseInt(text.slice(0, 8), 16), low: parseInt(text.slice(8, 16), 16) };
}

/** The header as it is stored in a file. */
export function headerToJson(header: BackupHeader): Record<string, unknown> {
  return {
    format_version: header.formatVersion,
    seq: header.seq,
    epoch: header.epoch,
    lineage_id: header.lineageId,
    created_at: header.createdAt.toISOString(),
    format: header.format,
    since_seq: header.sinceSeq,
    chain_hash: hashToHex(header.chainHash),
  };
}

export function headerFromJson(json: Record<string, unknown>): BackupHeader {
  return {
    formatVersion: Number(json['format_version']),
    seq: Number(json['seq']),
    epoch: Number(json['epoch']),
    lineageId: String(json['lineage_id']),
    createdAt: new Date(String(json['created_at'])),
    format: json['format'] as BackupFormat,
    sinceSeq: Number(json['since_seq']),
    chainHash: hashFromHex(String(json['chain_hash'])),
  };
}
