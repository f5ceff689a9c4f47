import { messageOf } from '@millrace/kit/errors';
import {
  chainAfter,
  decodeCommit,
  type Change,
  type Commit,
  RecordImage,
} from '../../format/record.js';
import type { Core } from '../../core/core.js';
import { contentHash } from '../../format/document-writer.js';
import type { Hash64 } from '../../value/bytes.js';
import { recordKey } from '../../format/keys.js';
import type { SnapshotView } from '../../storage/views.js';
import { sameHash } from '../../watch/message.js';
import type { KnownCatalog, Problems } from './records.js';

/** Checks the change log: no gaps, a valid hash chain, and records that match it. */
export class LogCheck {
  entries = 0;
  #next: number;
  #chain: Hash64;
  /** Records that match the log. */
  #found = 0;
  /** Records that are missing although the log, so far, has not removed them. */
  readonly #missing = new Map<string, number>();

  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
    private readonly known: KnownCatalog,
    private readonly problems: Problems,
  ) {
    this.#next = known.state.oldestSeq;
    this.#chain = known.state.oldestChain;
  }

  /** Reads the log up to the last commit of the snapshot. */
  async run(): Promise<void> {
    const slice = this.core.newSlice();
    for (; this.#next <= this.known.state.seq; this.#next++) {
      const row = this.#read(this.#next);
      if (!row) return;
      this.#visit(this.#next, row);
      if (slice.spend(row.length)) await slice.pause();
      if (this.core.closed) throw this.core.closed;
    }
  }

  #read(seq: number): Buffer | undefined {
    try {
      return this.core.commitRow(seq);
    } catch (error) {
      this.problems.add('log', `commit ${seq}`, messageOf(error));
      return undefined;
    }
  }

  #visit(seq: number, value: Buffer): void {
    this.entries++;
    const commit = this.#decode(seq, value);
    if (!commit) return;
    this.#checkChain(commit);
    for (const change of commit.changes) this.#checkChange(seq, change);
  }

  /** `inLog`: number of records whose last change should be in the log. */
  end(inLog: number): void {
    const { seq, chain } = this.known.state;
    if (this.#next !== seq + 1) {
      this.problems.add('log', `commit ${this.#next}`, `is missing: the last one is ${seq}`);
    }
    if (!sameHash(this.#chain, chain)) {
      this.problems.add('chain', `commit ${seq}`, 'the log leads to another chain than the state');
    }
    for (const [where, lost] of this.#missing) {
      this.problems.add('record', where, `is not there; commit ${lost} wrote it`);
    }
    if (this.#found !== inLog) {
      const detail = `${inLog} records say that it has their last change, it has ${this.#found}`;
      this.problems.add('log', 'log', detail);
    }
  }

  #decode(seq: number, value: Buffer): Commit | undefined {
    try {
      const commit = decodeCommit(seq, value, this.core.codec);
      for (const { after, before } of commit.changes) {
        for (const image of [after, before]) {
          if (!image || contentHash(image.data) === image.contentHash) continue;
          this.problems.add('log', `commit ${seq}`, `has damaged data of record ${image.id}`);
        }
      }
      return commit;
    } catch (error) {
      this.problems.add('log', `commit ${seq}`, `cannot be decoded: ${messageOf(error)}`);
      return undefined;
    }
  }

  #checkChain(commit: Commit): void {
    const { seq } = commit;
    const nameOf = (id: number) => this.known.collections.get(id)?.name ?? `unknown ${id}`;
    const computed = chainAfter(this.#chain, commit, nameOf);
    if (!sameHash(computed, commit.chain)) {
      this.problems.add('chain', `commit ${seq}`, 'the chain breaks here');
    }
    // Continues from the hash in the commit, so that one break is reported once.
    this.#chain = commit.chain;
  }

  #checkChange(seq: number, { collection, id, after }: Change): void {
    const name = this.known.collections.get(collection)?.name;
    const where = `${name ?? `unknown ${collection}`}/${id}`;
    if (!name)
      this.problems.add('log', `commit ${seq}`, `is of an unknown collection ${collection}`);
    const bytes = this.view.get('records', recordKey(collection, id));
    if (!after) {
      this.#missing.delete(where);
      if (bytes && this.#image(id, bytes).seq <= seq) {
        this.problems.add('record', where, `is still there; commit ${seq} removed it`);
      }
      return;
    }
    if (!bytes) {
      this.#missing.set(where, seq);
      return;
    }
    const record = this.#image(id, bytes);
    if (record.seq > seq) return;
    if (record.seq < seq) {
      this.problems.add('record', where, `is of commit ${record.seq}, but ${seq} changed it`);
    } else {
      this.#found++;
      if (!bytes.equals(after.bytes.subarray(0, after.end))) {
        this.problems.add('record', where, `is not as commit ${seq} wrote it`);
      }
    }
  }

  #image(id: string, bytes: Buffer): RecordImage {
    return new RecordImage(id, bytes, bytes.length, this.core.codec);
  }
}
