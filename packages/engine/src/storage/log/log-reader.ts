import { refuse } from '../../value/refusal.js';
import { frameHeadLength, readHead } from './frame.js';
import type { Segment } from './segment.js';

const recentCommits = 4_096;
const maxRecentBytes = 4 * 2 ** 20;

/** A frame that was read, and the last commit read from it. */
interface OpenFrame {
  segment: Segment;
  at: number;
  bytes: Buffer;
  firstSeq: number;
  commits: number;
  /** The commit that begins at `commitAt`. */
  seq: number;
  commitAt: number;
}

/**
 * Finds commits in the segments by number. The newest are cached, because most readers follow the
 * end of the log; the others read sequentially.
 */
export class LogReader {
  /** The last commits without a gap, starting at `#firstRecent`. */
  #recent: Buffer[] = [];
  #firstRecent = 0;
  #recentBytes = 0;
  /** The last commit that was read: without readers nothing is cached. */
  #lastRead = -Infinity;
  #frame: OpenFrame | undefined;

  remember(seq: number, bytes: Buffer): void {
    if (seq - this.#lastRead > recentCommits) {
      if (this.#recent.length > 0) this.#forgetRecent();
      return;
    }
    const isNext = seq === this.#firstRecent + this.#recent.length;
    if (!isNext || this.#recent.length >= recentCommits || this.#recentBytes > maxRecentBytes) {
      this.#forgetRecent();
      this.#firstRecent = seq;
    }
    this.#recent.push(bytes);
    this.#recentBytes += bytes.length;
  }

  #forgetRecent(): void {
    this.#recent = [];
    this.#recentBytes = 0;
  }

  /** Drops the frame it has read: its segment may have been removed. */
  forget(): void {
    this.#frame = undefined;
  }

  /** Drops everything: commits were rolled back, and new ones will reuse their numbers. */
  forgetAll(): void {
    this.#frame = undefined;
    this.#forgetRecent();
  }

  read(segments: readonly Segment[], seq: number): Buffer | undefined {
    this.#lastRead = seq;
    const recent = this.#recent[seq - this.#firstRecent];
    if (recent) return recent;
    const frame = this.#frameOf(segments, seq);
    if (!frame) return undefined;
    if (seq < frame.seq) {
      frame.seq = frame.firstSeq;
      frame.commitAt = frameHeadLength;
    }
    const { bytes } = frame;
    for (; frame.seq < seq; frame.seq++) {
      frame.commitAt += 4 + bytes.readUInt32BE(frame.commitAt);
    }
    const start = frame.commitAt + 4;
    // Copied: a reader that keeps one commit must not keep the whole frame.
    return Buffer.from(bytes.subarray(start, start + bytes.readUInt32BE(frame.commitAt)));
  }

  #frameOf(segments: readonly Segment[], seq: number): OpenFrame | undefined {
    const open = this.#frame;
    if (open && has(open, seq) && ownerOf(segments, seq) === open.segment) return open;
    const place = this.locate(segments, seq);
    return place && (this.#frame = openFrame(place.segment, place.at));
  }

  /** The frame that holds a commit. */
  locate(segments: readonly Segment[], seq: number): { segment: Segment; at: number } | undefined {
    const segment = ownerOf(segments, seq);
    if (!segment) return undefined;
    if (!segment.isIndexed) segment.buildIndex();
    const open = this.#frame;
    const isNext = open?.segment === segment && open.firstSeq + open.commits === seq;
    let at = isNext ? open.at + open.bytes.length : segment.markBefore(seq);
    while (at < segment.end) {
      const head = segment.headAt(at);
      if (!head) throw damagedFrame(segment, at);
      if (head.commits > 0 && head.firstSeq > seq) return undefined;
      if (head.commits > 0 && head.firstSeq + head.commits > seq) return { segment, at };
      at += head.length;
    }
    return undefined;
  }
}

/** A rolled-back commit is in an earlier segment than the commit that reuses its number. */
function ownerOf(segments: readonly Segment[], seq: number): Segment | undefined {
  return segments.findLast(({ header }) => header.firstSeq <= seq);
}

function has({ firstSeq, commits }: OpenFrame, seq: number): boolean {
  return seq >= firstSeq && seq < firstSeq + commits;
}

function openFrame(segment: Segment, at: number): OpenFrame {
  const head = segment.headAt(at)!;
  const bytes = segment.frameAt(at, head);
  if (!bytes) throw damagedFrame(segment, at);
  const { firstSeq, commits } = readHead(bytes, 0)!;
  return { segment, at, bytes, firstSeq, commits, seq: firstSeq, commitAt: frameHeadLength };
}

function damagedFrame({ path }: Segment, at: number) {
  return refuse(
    'CORRUPT',
    `The log ${path} is damaged at byte ${at}. Stop the server and run "ctl db verify"; then put ` +
      'the file back as it was, or restore a backup into a new directory with "ctl db restore".',
  );
}
