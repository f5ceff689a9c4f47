import { dirname, join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import { messageOf } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import type { Random } from '@millrace/kit/random';
import type { Hash64 } from '../../value/bytes.js';
import { refuse } from '../../value/documents.js';
import { isOutOfRoom, type FileLayer, type LogFile, LogFailed } from '../file/files.js';
import {
  encodeFrame,
  readHead,
  sealFrame,
  type FrameContent,
  LogReader,
  encodeSegmentHeader,
  readSegmentHeader,
  Segment,
  segmentHeaderLength,
  segmentName,
  segmentNumber,
} from './segment.js';

export interface LogOptions {
  directory: string;
  files: FileLayer;
  clock: Clock;
  random: Random;
  log: Log;
  /** Changes no file. */
  readOnly?: boolean;
  /** Size at which a new segment is started. */
  segmentBytes?: number;
}

/** Where a log without segments starts. */
export interface LogStart {
  firstSeq: number;
  chain: Hash64;
}

/** A batch as it is appended to the log. */
export type LogEntry = Omit<FrameContent, 'lsn' | 'at'> & {
  /** The batch rolls back commits, whose numbers are reused: it starts a new segment. */
  isCut: boolean;
  /** The start of a segment whose first frame this is. */
  start: LogStart;
  /** Nobody else waits for the event loop to write. */
  isAlone?: boolean;
};

const defaultSegmentBytes = 16 * 2 ** 20;
const minAllocationBytes = 64 * 1024;
const maxAllocationBytes = 4 * 2 ** 20;
const maxSpares = 2;
/**
 * While syncs take less than this, one that is waited for alone blocks the event loop: a thread that
 * syncs is scheduled later. One caller inserts 1.2 to 1.3 times as fast (decision 0071).
 */
const maxBlockingSyncMs = 0.4;
const averagedSyncs = 16;
const nextName = 'next.tmp';

/**
 * The write-ahead log, which is also the change log: files of frames, one frame per group commit. A
 * frame is durable when the fsync after it has returned. Frames are written one at a time, so only
 * the last can be torn.
 */
export class WriteAheadLog {
  readonly #segments: Segment[] = [];
  /** Files of dropped segments, to be reused. */
  readonly #spares: string[] = [];
  readonly #reader = new LogReader();
  #nextLsn = 1;
  #allocating: Promise<void> | undefined;
  #nextSpare = 0;
  /**
   * A failed call may have left a segment that is not in the list: the next one must replace it.
   */
  #mustRoll = false;
  /** Moving average of a sync. */
  #syncMs = 1;

  private constructor(private readonly options: LogOptions) {}

  /**
   * Opens the log of a directory, or creates one. `visit` is called with every frame after
   * `foldedLsn`, in order. A torn frame at the end, left by a crash, is cut off.
   */
  static async open(
    options: LogOptions,
    foldedLsn: number,
    start: LogStart,
    visit: (frame: Buffer, lsn: number) => void,
  ): Promise<WriteAheadLog> {
    const log = new WriteAheadLog(options);
    try {
      await log.#open(foldedLsn, start, visit);
      return log;
    } catch (error) {
      log.close();
      throw error;
    }
  }

  /** LSN of the last frame written. */
  get lastLsn(): number {
    return this.#nextLsn - 1;
  }

  /** Bytes of frames in all segments. */
  get bytes(): number {
    let bytes = 0;
    for (const segment of this.#segments) bytes += usedBytes(segment);
    return bytes;
  }

  get segments(): readonly Segment[] {
    return this.#segments;
  }

  /**
   * Writes a batch as one frame and makes it durable; `onWritten` is called in between. When the
   * disk is full, nothing is written. Any other failure is thrown as `LogFailed`.
   */
  async append(entry: LogEntry, onWritten?: () => void): Promise<void> {
    try {
      await this.#append(entry, onWritten);
    } catch (error) {
      throw error instanceof LogFailed || isOutOfRoom(error) ? error : failed(error);
    }
  }

  async #append(entry: LogEntry, onWritten?: () => void): Promise<void> {
    const content = { ...entry, lsn: this.#nextLsn, at: this.options.clock.now() };
    const frame = encodeFrame(content);
    let segment = this.#segments.at(-1)!;
    const limit = this.options.segmentBytes ?? defaultSegmentBytes;
    const isFull = segment.end > segmentHeaderLength && segment.end + frame.length > limit;
    if (entry.isCut || isFull || this.#mustRoll) segment = await this.#roll(segment, entry.start);
    sealFrame(frame, segment.header.salt);
    if (this.#allocating && segment.end + frame.length > segment.allocated) await this.#allocating;
    const writing = segment.file.write(frame, segment.end);
    if (writing) await writing;
    segment.forgetBlock();
    onWritten?.();
    await this.#sync(segment, entry.isAlone ?? false);
    segment.noteFrame(readHead(frame, 0)!);
    segment.allocated = Math.max(segment.allocated, segment.end);
    this.#nextLsn++;
    if (entry.isCut) this.#reader.forgetAll();
    for (const { seq, bytes } of entry.commits) this.#reader.remember(seq, bytes);
    this.#allocateAhead(segment);
  }

  async #sync(segment: Segment, isAlone: boolean): Promise<void> {
    const { clock } = this.options;
    const startedAt = clock.monotonic();
    await syncOf(segment, isAlone && this.#syncMs < maxBlockingSyncMs);
    this.#syncMs += (clock.monotonic() - startedAt - this.#syncMs) / averagedSyncs;
  }

  /** The encoded commit, which must be durable; undefined when no segment has it. */
  read(seq: number): Buffer | undefined {
    return this.#reader.read(this.#segments, seq);
  }

  /** The frames from `firstLsn` to `lastLsn` that the log has; they must be durable. */
  *frames(firstLsn: number, lastLsn: number): ReturnType<Segment['framesFrom']> {
    const first = this.#segments.findLastIndex(({ header }) => header.firstLsn <= firstLsn);
    for (const segment of this.#segments.slice(Math.max(first, 0))) {
      for (const each of segment.framesFrom(firstLsn)) {
        if (each.head.lsn > lastLsn) return;
        yield each;
      }
    }
  }

  /** LSN of the first frame that the log has. */
  get firstLsn(): number {
    return this.#segments[0]?.header.firstLsn ?? this.#nextLsn;
  }

  /** LSN of the last frame before the segments that are newer than `time` and within `bytes`. */
  lsnBeyond(time: number, bytes: number): number {
    let left = bytes;
    const first = this.#segments.findLastIndex((segment, i) => {
      left -= usedBytes(segment);
      return left < 0 || (this.#segments[i + 1]?.header.createdAt ?? Infinity) < time;
    });
    return (this.#segments[first + 1]?.header.firstLsn ?? this.#nextLsn) - 1;
  }

  /** Bytes of the log from the frame with this commit on. */
  bytesFrom(seq: number): number {
    const place = this.#reader.locate(this.#segments, seq);
    if (!place) return 0;
    let bytes = place.segment.end - place.at;
    for (let i = this.#segments.indexOf(place.segment) + 1; i < this.#segments.length; i++) {
      bytes += usedBytes(this.#segments[i]!);
    }
    return bytes;
  }

  /** The first commit of which not all segments are older than `time`. */
  firstSeqAfter(time: number): number {
    const begun = this.#segments.findLast(({ header }) => header.createdAt < time);
    return begun?.header.firstSeq ?? 0;
  }

  /**
   * Drops every segment whose commits are all before `oldestSeq` and whose rows are all in the
   * store. Returns how many.
   */
  drop(oldestSeq: number, foldedLsn: number): number {
    let dropped = 0;
    while (this.#segments.length > 1) {
      const { firstSeq, firstLsn } = this.#segments[1]!.header;
      if (firstSeq > oldestSeq || firstLsn > foldedLsn + 1) break;
      const segment = this.#segments.shift()!;
      segment.file.close();
      this.#retire(segment);
      dropped++;
    }
    if (dropped > 0) this.#reader.forget();
    return dropped;
  }

  close(): void {
    for (const segment of this.#segments) segment.file.close();
    this.#segments.length = 0;
  }

  /** Resolves when no write is in progress. */
  async idle(): Promise<void> {
    await this.#allocating;
  }

  async #open(
    foldedLsn: number,
    start: LogStart,
    visit: (frame: Buffer, lsn: number) => void,
  ): Promise<void> {
    const { directory, files } = this.options;
    const { readOnly = false } = this.options;
    if (!readOnly) files.makeDirectory(directory);
    const names = files.list(directory);
    for (const name of readOnly ? [] : names) {
      if (segmentNumber(name) === undefined) files.remove(join(directory, name));
    }
    const numbers = names.flatMap((name) => segmentNumber(name) ?? []).sort((a, b) => a - b);
    if (numbers.length === 0) {
      if (foldedLsn > 0) throw this.#damaged('', 'its files are missing');
      if (readOnly) return;
      this.#segments.push(await this.#create(1, start));
      await files.syncDirectory(dirname(directory));
      return;
    }
    for (const number of numbers) this.#openSegment(number);
    await this.#recover(foldedLsn, visit);
  }

  #openSegment(number: number): void {
    const { directory, files } = this.options;
    const path = join(directory, segmentName(number));
    const file = files.open(path, this.options.readOnly ? 'read' : 'write');
    const header = readSegmentHeader(file);
    const before = this.#segments.at(-1);
    if (!header || header.number !== number) {
      file.close();
      throw this.#damaged(segmentName(number), 'its header is damaged');
    }
    this.#segments.push(new Segment(path, file, header));
    if (before && number !== before.header.number + 1) {
      throw this.#damaged(segmentName(before.header.number + 1), 'the file is missing');
    }
  }

  /** Reads all segments with frames that are not in the store yet. */
  async #recover(foldedLsn: number, visit: (frame: Buffer, lsn: number) => void): Promise<void> {
    const segments = this.#segments;
    if (segments[0]!.header.firstLsn > foldedLsn + 1) {
      throw this.#damaged(segmentName(segments[0]!.header.number - 1), 'the file is missing');
    }
    let first = segments.findLastIndex(({ header }) => header.firstLsn <= foldedLsn + 1);
    for (; first < segments.length; first++) {
      const segment = segments[first]!;
      const { nextLsn, later } = segment.scan((frame, { lsn }) => {
        if (lsn > foldedLsn) visit(frame, lsn);
      });
      this.#nextLsn = nextLsn;
      const due = segments[first + 1]?.header.firstLsn ?? nextLsn;
      if (later || due !== nextLsn) {
        const name = segmentName(segment.header.number);
        throw this.#damaged(name, `the frame at byte ${segment.end} is damaged`);
      }
    }
    if (this.lastLsn < foldedLsn) {
      const name = segmentName(segments.at(-1)!.header.number);
      throw this.#damaged(name, `it ends at frame ${this.lastLsn}, the store is at ${foldedLsn}`);
    }
    // A killed process may have left frames that were not synced: from now on they are durable.
    if (!this.options.readOnly) await syncOf(segments.at(-1)!);
  }

  async #roll(segment: Segment, start: LogStart): Promise<Segment> {
    await this.#allocating;
    this.#mustRoll = true;
    const next = await this.#create(segment.header.number + 1, start);
    this.#mustRoll = false;
    this.#segments.push(next);
    return next;
  }

  /**
   * Writes a segment to a temporary file and renames it when complete: a crash leaves either no
   * segment or an empty one.
   */
  async #create(number: number, start: LogStart): Promise<Segment> {
    const { directory, files, clock, random } = this.options;
    const temporary = join(directory, nextName);
    const spare = this.#spares.shift();
    if (spare !== undefined) {
      files.rename(spare, temporary);
      // Without this a power cut could restore the old name, with the content written below.
      await files.syncDirectory(directory);
    }
    const file = files.open(temporary, spare === undefined ? 'create' : 'write');
    try {
      const salt = Buffer.from(random.bytes(4)).readUInt32BE(0);
      const header = {
        number,
        salt,
        firstLsn: this.#nextLsn,
        createdAt: clock.now(),
        ...start,
      };
      const bytes = encodeSegmentHeader(header);
      const zeros = spare === undefined ? Buffer.alloc(minAllocationBytes - bytes.length) : noBytes;
      await file.write(Buffer.concat([bytes, zeros]), 0);
      await file.sync();
      const path = join(directory, segmentName(number));
      files.rename(temporary, path);
      await files.syncDirectory(directory);
      const segment = new Segment(path, file, header);
      segment.allocated = file.size();
      segment.isIndexed = true;
      return segment;
    } catch (error) {
      file.close();
      files.remove(temporary);
      throw error;
    }
  }

  /**
   * Writes zeros after the last frame: overwriting existing bytes does not change the file's
   * metadata, which halves the time of an fsync.
   */
  #allocateAhead(segment: Segment): void {
    const step = Math.min(Math.max(segment.end, minAllocationBytes), maxAllocationBytes);
    const limit = this.options.segmentBytes ?? defaultSegmentBytes;
    const isAhead = segment.allocated - segment.end > step / 2 || segment.allocated >= limit;
    if (this.#allocating || isAhead) return;
    this.#allocating = this.#allocate(segment, step).finally(() => (this.#allocating = undefined));
  }

  async #allocate(segment: Segment, step: number): Promise<void> {
    const { allocated } = segment;
    let file: LogFile | undefined;
    try {
      // Its own descriptor: the system reports a failed write only once per descriptor.
      file = this.options.files.open(segment.path, 'write');
      await file.write(Buffer.alloc(step), allocated);
      await file.sync();
      segment.allocated = Math.max(segment.allocated, allocated + step);
    } catch (error) {
      // Harmless: the write that needs the space fails if there is none.
      this.options.log.debug({ err: error }, 'log allocation failed');
    } finally {
      file?.close();
    }
  }

  #retire(segment: Segment): void {
    const { directory, files } = this.options;
    try {
      if (this.#spares.length >= maxSpares) files.remove(segment.path);
      else {
        const spare = join(directory, `spare-${++this.#nextSpare}.tmp`);
        files.rename(segment.path, spare);
        this.#spares.push(spare);
      }
    } catch (error) {
      this.options.log.error({ err: error, file: segment.path }, 'log segment not removed');
    }
  }

  #damaged(name: string, problem: string) {
    return refuse(
      'CORRUPT',
      `The log ${join(this.options.directory, name)} is incomplete: ${problem}. Nothing was ` +
        'changed. Put the file back as it was, or restore a backup into a new directory with ' +
        '"ctl db restore".',
    );
  }
}

const noBytes = Buffer.alloc(0);

/** For a segment whose frames were not read yet: the size of its file. */
function usedBytes({ isIndexed, end, file }: Segment): number {
  return (isIndexed ? end : file.size()) - segmentHeaderLength;
}

async function syncOf(segment: Segment, mayBlock = false): Promise<void> {
  try {
    await segment.file.sync(mayBlock);
  } catch (error) {
    throw failed(error);
  }
}

function failed(error: unknown): LogFailed {
  return new LogFailed(`The log could not be written: ${messageOf(error)}`, { cause: error });
}
