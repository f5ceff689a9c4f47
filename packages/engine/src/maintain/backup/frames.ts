import { idLength } from '../../format/keys.js';
import { crc32 } from 'node:zlib';
import { refuse } from '../../value/documents.js';
import { createHash } from 'node:crypto';
import type { Hash64 } from '../../value/bytes.js';

/**
 * Backups are made of frames, each with its own checksums, so that damage is found where it is:
 *
 *   length u32 | kind u8 | checksum of the payload u32 | checksum of these nine bytes u32 | payload
 */
export const frameKinds = {
  /** Describes the backup; first in a file. JSON. */
  header: 1,
  /** Collections and indexes; first in the data. JSON. */
  catalog: 2,
  /** Records of one collection. */
  records: 3,
  /** Commits of the change log. */
  commits: 4,
  /** Size and checksum of the data; last in a file. JSON. */
  trailer: 5,
  /** Raw rows (see core/read-snapshot.ts). */
  rows: 6,
  /** Batches of the log: their commits and the raw rows that they wrote. */
  batches: 7,
} as const;

export interface Frame {
  kind: number;
  payload: Buffer;
  /** The complete frame, head and payload. */
  bytes: Buffer;
  /** Its offset. */
  at: number;
}

const headLength = 13;
// Frames have 64 KiB, or one large commit.
const maxFrameBytes = 256 * 1024 * 1024;
const checkedLength = 9;

export function encodeFrame(kind: number, payload: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(headLength + payload.length);
  frame.writeUInt32BE(payload.length, 0);
  frame[4] = kind;
  frame.writeUInt32BE(crc32(payload), 5);
  frame.writeUInt32BE(crc32(frame.subarray(0, checkedLength)), checkedLength);
  frame.set(payload, headLength);
  return frame;
}

/** Splits incoming bytes into frames. Throws where they are invalid. */
export class FrameReader {
  #pieces: Buffer[] = [];
  #have = 0;

  constructor(
    /** Names the input in errors. */
    private readonly source: string,
    /** Offset of the next frame. */
    public at = 0,
  ) {}

  push(bytes: Buffer): void {
    this.#pieces.push(bytes);
    this.#have += bytes.length;
  }

  /** The next frame; undefined when more bytes are needed. */
  next(): Frame | undefined {
    if (this.#have < headLength) return undefined;
    const head = this.#peek(headLength);
    if (crc32(head.subarray(0, checkedLength)) !== head.readUInt32BE(checkedLength)) {
      throw this.damaged('the head of a frame has another checksum than it says');
    }
    const length = headLength + head.readUInt32BE(0);
    if (length > maxFrameBytes) throw this.damaged(`a frame says that it has ${length} bytes`);
    if (this.#have < length) return undefined;
    const whole = this.#peek(length);
    const payload = whole.subarray(headLength);
    if (crc32(payload) !== whole.readUInt32BE(5)) {
      throw this.damaged('a frame has another checksum than it says');
    }
    const frame = { kind: whole[4]!, payload, bytes: whole, at: this.at };
    this.#drop(length);
    return frame;
  }

  /** Throws if bytes are left over. */
  end(): void {
    if (this.#have > 0) throw this.damaged('the last frame is cut off');
  }

  damaged(problem: string, at = this.at): Error {
    return damagedAt(this.source, at, problem);
  }

  #peek(length: number): Buffer {
    const first = this.#pieces[0]!;
    if (first.length < length) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!.subarray(0, length);
  }

  #drop(length: number): void {
    const first = this.#pieces[0]!;
    if (first.length === length) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(length);
    this.#have -= length;
    this.at += length;
  }
}

export function damagedAt(source: string, at: number, problem: string): Error {
  return refuse('CORRUPT', `${source} is damaged at byte ${at}: ${problem}.`);
}

export function jsonFrame(kind: number, value: unknown): Buffer {
  return encodeFrame(kind, Buffer.from(JSON.stringify(value)));
}

const maxChunkBytes = 256 * 1024;

/** Collects bytes into chunks of one size, and counts and hashes them all. */
export class Chunks {
  readonly #hash = createHash('sha256');
  #pieces: Buffer[] = [];
  #have = 0;
  #bytes = 0;
  records = 0;

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#have += piece.length;
  }

  /** The next full chunk; undefined when there is none yet. */
  next(): Buffer | undefined {
    return this.#have < maxChunkBytes ? undefined : this.#take(maxChunkBytes);
  }

  /** The remaining bytes at the end. */
  rest(): Buffer | undefined {
    return this.#have === 0 ? undefined : this.#take(this.#have);
  }

  get bytes(): number {
    return this.#bytes;
  }

  trailer(): BackupTrailer {
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex'), records: this.records };
  }

  #take(length: number): Buffer {
    const all = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    const chunk = all.subarray(0, length);
    this.#pieces = all.length > length ? [all.subarray(length)] : [];
    this.#have -= length;
    this.#bytes += length;
    this.#hash.update(chunk);
    return chunk;
  }
}

export type BackupFormat = 'snapshot' | 'ndjson';

/** Describes a backup. */
export interface BackupHeader {
  /** 2: by batches, so that `seq`, `sinceSeq` and `chainHash` are those of batches. */
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
  /** By batches: the last commit in the backup. */
  commit?: { seq: number; epoch: number; chain: string };
}

export const backupVersion = 1;
/** The version of backups by batches. */
export const batchesVersion = 2;

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

const newline = 0x0a;
/** The collection number at the start of a frame of records. */
const prefixLength = 4;

/** Counts the records in the data of a full backup as it arrives, for progress. */
export class RecordCounter {
  #records = 0;
  readonly #frames = new FrameReader('The data of the backup');

  constructor(private readonly format: BackupFormat) {}

  get records(): number {
    return this.#records;
  }

  push(bytes: Buffer): void {
    if (this.format === 'ndjson') {
      for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) {
        this.#records++;
      }
      return;
    }
    this.#frames.push(bytes);
    for (let frame = this.#frames.next(); frame; frame = this.#frames.next()) {
      if (frame.kind === frameKinds.records) this.#records += rowsIn(frame.payload);
    }
  }
}

function rowsIn(payload: Buffer): number {
  let rows = 0;
  for (let at = prefixLength; at < payload.length; rows++) {
    at += idLength + 4 + payload.readUInt32BE(at + idLength);
  }
  return rows;
}
