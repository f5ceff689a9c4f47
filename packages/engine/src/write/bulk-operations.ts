import type { UpdateMode } from '../value/documents.js';
import { Refusal } from '@millrace/kit/errors';
import type { WriteOptions } from './mutations.js';
import type { EncodedDocument, RecordImage } from '../format/record.js';
import type { Transaction } from './transactions.js';
import type { CollectionInfo, Core } from '../core/core.js';
import { Hasher, hashText, type Hash64 } from '../value/bytes.js';
import { remember, requestIdReused, requestMemoryMs } from './requests.js';
import { idLength, readId, readUint48, writeId } from '../format/keys.js';

export const maxBulkOperations = 10_000;

interface Body extends WriteOptions {
  data?: unknown;
  /** Operators, in place of `data`. */
  update?: unknown;
}
export type Place = { id?: string | undefined; key?: string | undefined };

/** One write of a bulk: exactly one of the members is set. */
export interface BulkOperation {
  insert?: (WriteOptions & Place & { data: unknown }) | undefined;
  upsert?: (Body & { key: string; mode?: UpdateMode | undefined }) | undefined;
  update?:
    | (Body & Place & { mode?: UpdateMode | undefined; expectedRev?: number | undefined })
    | undefined;
  delete?: Place | undefined;
}

export type BulkOutcome =
  | {
      status: 'OK';
      id: string;
      key: string;
      rev: number;
      created: boolean;
      seq: number;
      /** The record after the write. Undefined in a repeated answer if it changed since. */
      record: RecordImage | undefined;
    }
  | { status: 'FAILED'; error: Refusal }
  | { status: 'NOT_RUN' };

export interface BulkOptions {
  /** Stops at the first failure. */
  ordered?: boolean | undefined;
  /** One commit or nothing. */
  atomic?: boolean | undefined;
  requestId?: string | undefined;
  transaction?: Transaction | undefined;
  /** The caller keeps no reference to the data, so it is not copied. */
  isDataOwn?: boolean | undefined;
}

const headLength = 24;
const rowLength = 1 + idLength + 4;
const flags = { ok: 1, created: 2, notRun: 4 };
const splitMark = 'split';

/**
 * What a repeated bulk needs to answer the same again, a row for each of its commits:
 *
 *   expires_at u48 | fingerprint u64 | seq u48 | length u32, failures as JSON
 *   | per operation: flags u8, id, rev u32
 */
export class BulkMemory {
  readonly #row: Buffer;
  #print: Hash64 | undefined;

  constructor(
    private readonly core: Core,
    private readonly requestId: string,
    start: number,
    private readonly list: readonly (BulkOperation | Refusal)[],
    /** Their documents, as far as they are encoded. */
    private readonly documents: readonly (EncodedDocument | undefined)[],
  ) {
    this.#row = Buffer.from(`b:${start}:${requestId}`);
  }

  /** Only inside a job. `split`: the operations of this part are stored one by one. */
  save(outcomes: readonly BulkOutcome[] | 'split'): void {
    const now = this.core.clock.now();
    const isSplit = outcomes === 'split';
    const failures = isSplit
      ? splitMark
      : outcomes.flatMap((outcome, i) =>
          outcome.status === 'FAILED' ? [[i, outcome.error.code, outcome.error.detail]] : [],
        );
    const text = Buffer.from(JSON.stringify(failures));
    const rows = isSplit ? [] : outcomes;
    const value = Buffer.alloc(headLength + text.length + rows.length * rowLength);
    const print = this.#fingerprint();
    value.writeUIntBE(now + requestMemoryMs, 0, 6);
    value.writeUInt32BE(print.high, 6);
    value.writeUInt32BE(print.low, 10);
    value.writeUInt32BE(text.length, 20);
    text.copy(value, headLength);
    rows.forEach((outcome, i) => {
      const at = headLength + text.length + i * rowLength;
      if (outcome.status === 'NOT_RUN') value[at] = flags.notRun;
      if (outcome.status !== 'OK') return;
      value[at] = flags.ok | (outcome.created ? flags.created : 0);
      writeId(outcome.id, value, at + 1);
      value.writeUInt32BE(outcome.rev, at + 1 + idLength);
      value.writeUIntBE(outcome.seq, 14, 6);
    });
    remember(this.core, this.#row, now, value);
  }

  /**
   * The outcomes of an earlier call with this request id; undefined: it is new. Only inside a job.
   */
  find(collection: CollectionInfo): BulkOutcome[] | 'split' | undefined {
    const { core } = this;
    const stored = core.writer.get('requests', this.#row);
    if (!stored || readUint48(stored, 0) <= core.clock.now()) return undefined;
    const isPrint = ({ high, low }: Hash64) =>
      stored.readUInt32BE(6) === high && stored.readUInt32BE(10) === low;
    // Earlier versions made the fingerprint from all of the text.
    if (!isPrint(this.#fingerprint()) && !isPrint(hashText(JSON.stringify(this.list)))) {
      throw requestIdReused(this.requestId);
    }
    const seq = readUint48(stored, 14);
    const rowsAt = headLength + stored.readUInt32BE(20);
    const failures = JSON.parse(stored.toString('utf8', headLength, rowsAt)) as
      [number, string, string][] | typeof splitMark;
    if (failures === splitMark) return 'split';
    const failed = new Map(failures.map(([i, code, detail]) => [i, new Refusal(code, detail)]));
    return this.list.map((operation, i): BulkOutcome => {
      const at = rowsAt + i * rowLength;
      const mark = stored[at]!;
      if (mark & flags.notRun) return { status: 'NOT_RUN' };
      if (!(mark & flags.ok)) return { status: 'FAILED', error: failed.get(i)! };
      const id = readId(stored, at + 1);
      const rev = stored.readUInt32BE(at + 1 + idLength);
      const there = core.view().record(collection.id, id);
      const key = there?.key ?? keyOf(operation);
      const record = there?.rev === rev ? there : undefined;
      return { status: 'OK', id, key, rev, created: (mark & flags.created) !== 0, seq, record };
    });
  }

  /** The hash of a document stands for its text, if it is encoded. */
  #fingerprint(): Hash64 {
    if (this.#print) return this.#print;
    const hasher = new Hasher();
    this.list.forEach((operation, i) => {
      const document = this.documents[i];
      const [kind, body] = Object.entries(operation).find(([, value]) => value !== undefined) ?? [];
      if (!document) return hasher.text(JSON.stringify(operation));
      const {
        id = '',
        key = '',
        ttlMs,
        mode,
        expectedRev,
      } = body as NonNullable<BulkOperation['update']>;
      hasher.text(`${kind} ${id} ${ttlMs} ${mode} ${expectedRev} ${key}`);
      return hasher.number(document.contentHash).number(document.size);
    });
    return (this.#print = hasher.result());
  }
}

function keyOf(operation: BulkOperation | Refusal): string {
  if (operation instanceof Refusal) return '';
  const place = operation.insert ?? operation.upsert ?? operation.update ?? operation.delete;
  return place?.key ?? '';
}
