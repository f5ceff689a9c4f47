import {
  indexRow,
  sameDefinition,
  storedIndex,
  type CollectionInfo,
  type Core,
} from '../../core/core.js';
import { expiryKey, expiryKinds, idBytes, prefixed, recordKey } from '../../format/keys.js';
import { lineageRow } from '../../storage/file/tables.js';
import type { Hash64 } from '../../value/bytes.js';
import { encodeRecord, type RecordImage } from '../../format/record.js';
import { damagedAt, hashFromHex, type BackupCatalog, type BackupHeader } from './frames.js';
import type { PortableBatch, PortableChange, PortableCommit } from './portable.js';
import type { BackupStatement } from './reader.js';

// Enough to fill a flush while the next frames are decoded.
const maxPending = 32;

interface ApplyOptions {
  /** Keep the lineage id, as a follower does; a restored copy starts a new lineage. */
  keepLineage?: boolean;
  onRecords?: (count: number) => void;
  /** False for the first commit or batch after the target: it and all later ones are left out. */
  isWithin?: ((commit: { seq: number; at: number }) => boolean) | undefined;
  /** The last commit or batch that the database has; by default that of its state. */
  startSeq?: number | undefined;
}

/**
 * Applies a backup to a database: a full one to an empty database, an increment to one at the
 * commit it builds on. The database moves to the backup's commit only with its last frame, so after
 * an incomplete backup it is unusable and must be deleted. Returns the commit or batch that the
 * database is at.
 */
export async function applyBackup(
  core: Core,
  statements: AsyncIterable<BackupStatement>,
  source: string,
  options: ApplyOptions = {},
): Promise<{ header: BackupHeader; seq: number }> {
  const apply = new Application(core, source, options);
  for await (const statement of statements) await apply.take(statement);
  return { header: apply.header!, seq: apply.seq };
}

/** An encoded change, ready to be written. */
interface Write {
  collection: CollectionInfo;
  id: string;
  row: Buffer | undefined;
  key: string;
  expiresAt: number;
}

class Application {
  header: BackupHeader | undefined;
  #catalog: BackupCatalog | undefined;
  readonly #collections = new Map<number, CollectionInfo>();
  readonly #underWay: Promise<void>[] = [];
  /** An archive may start before the base backup does: earlier commits are already applied. */
  readonly #startSeq: number;
  /** The last commit and, by batches, the last batch that were applied. */
  #last: PortableCommit | undefined;
  #lastBatch: PortableBatch | undefined;
  #isReached = false;

  constructor(
    private readonly core: Core,
    private readonly source: string,
    private readonly options: ApplyOptions,
  ) {
    this.#startSeq = options.startSeq ?? core.state.seq;
  }

  /** The commit or batch that the database is at. */
  get seq(): number {
    if (!this.#isReached) return this.header!.seq;
    return (this.#lastBatch ?? this.#last)?.seq ?? this.#startSeq;
  }

  async take(statement: BackupStatement): Promise<void> {
    switch (statement.kind) {
      case 'header':
        this.header = statement.header;
        return;
      case 'catalog':
        return this.#begin(statement.catalog);
      case 'records': {
        const collection = this.#collection(statement.collection);
        return this.#write(statement.records.map((image) => this.#encode(collection, image)));
      }
      case 'commits': {
        const due = this.#dueOf(statement.commits);
        this.#last = due.at(-1) ?? this.#last;
        return this.#writeCommits(due);
      }
      case 'batches': {
        const due = this.#dueOf(statement.batches);
        this.#lastBatch = due.at(-1) ?? this.#lastBatch;
        const commits = due.flatMap((batch) => batch.commits);
        this.#last = commits.at(-1) ?? this.#last;
        if (commits.length > 0) await this.#writeCommits(commits);
        return this.#writeRows(due.flatMap(({ rows }) => rows));
      }
      case 'rows':
        return this.#writeRows(statement.rows);
      case 'end':
        return this.#finish();
    }
  }

  async #begin(catalog: BackupCatalog): Promise<void> {
    this.#catalog = catalog;
    if (catalog.since_chain === null) await this.#makeCollections();
  }

  /**
   * Creates these collections, or all: an increment may have some that are newer than the target.
   */
  async #makeCollections(numbers?: ReadonlySet<number>): Promise<void> {
    for (const { number, name } of this.#catalog!.collections) {
      if (this.#collections.has(number) || numbers?.has(number) === false) continue;
      const collection = await this.core.writer.submit(() => this.core.collectionNow(name));
      this.#collections.set(number, collection);
    }
  }

  /** The commits or batches that the database lacks, up to the target. */
  #dueOf<Each extends PortableCommit | PortableBatch>(all: readonly Each[]): Each[] {
    return all.filter((each) => {
      if (this.#isReached || each.seq <= this.#startSeq) return false;
      this.#isReached = this.options.isWithin?.(each) === false;
      return !this.#isReached;
    });
  }

  async #writeCommits(commits: readonly PortableCommit[]): Promise<void> {
    const changes = commits.flatMap((commit) => commit.changes);
    await this.#makeCollections(new Set(changes.map(({ collection }) => collection)));
    await this.#write(changes.map((change) => this.#encodeChange(change)));
  }

  #writeRows(rows: PortableBatch['rows']): Promise<void> {
    return this.#submit(() => {
      for (const { key, value } of rows) {
        // Copied: otherwise each row would keep its much larger frame in memory.
        if (value) this.core.writer.put('rows', Buffer.from(key), Buffer.from(value));
        else this.core.writer.remove('rows', Buffer.from(key));
      }
    });
  }

  /** The commit that the database is at when everything is applied. */
  #end(): { seq: number; epoch: number; chain: Hash64 } {
    if (this.#isReached) return this.#last ?? this.core.state;
    const { commit } = this.#catalog!;
    if (commit) return { ...commit, chain: hashFromHex(commit.chain) };
    const { seq, epoch, chainHash } = this.header!;
    return { seq, epoch, chain: chainHash };
  }

  #collection(number: number): CollectionInfo {
    const collection = this.#collections.get(number);
    if (collection) return collection;
    throw damagedAt(this.source, 0, `its catalog does not have collection ${number}`);
  }

  #encode(collection: CollectionInfo, image: RecordImage): Write {
    const { id, rev, seq, createdAt, updatedAt, expiresAt, key, contentHash } = image;
    const fields = { rev, seq, createdAt, updatedAt, expiresAt, key, contentHash };
    const row = encodeRecord(fields, this.core.codec.encode(image.data));
    return { collection, id, row, key, expiresAt };
  }

  #encodeChange({ collection: number, id, after }: PortableChange): Write {
    const collection = this.#collection(number);
    if (after) return this.#encode(collection, after);
    return { collection, id, row: undefined, key: '', expiresAt: 0 };
  }

  async #write(writes: Write[]): Promise<void> {
    await this.#submit(() => {
      for (const write of writes) this.#put(write);
    });
    this.options.onRecords?.(writes.length);
  }

  async #submit(job: () => void): Promise<void> {
    const written = this.core.writer.submit(job);
    // Awaited below; until then a rejection must not count as unhandled.
    written.catch(() => undefined);
    this.#underWay.push(written);
    if (this.#underWay.length >= maxPending) await this.#underWay.shift();
  }

  #put({ collection, id, row, key, expiresAt }: Write): void {
    const { writer } = this.core;
    const before = this.core.view().record(collection.id, id);
    const rowKey = recordKey(collection.id, id);
    const keyRow = (text: string) => prefixed(collection.id, Buffer.from(text));
    const expiryRow = (time: number) => expiryKey(time, expiryKinds.record, rowKey);
    if (before?.key && before.key !== key) {
      const old = keyRow(before.key);
      if (writer.get('keys', old)?.equals(idBytes(id))) writer.remove('keys', old);
    }
    if (before?.expiresAt && before.expiresAt !== expiresAt) {
      writer.remove('expiry', expiryRow(before.expiresAt));
    }
    if (!row) {
      writer.remove('records', rowKey);
      return;
    }
    writer.put('records', rowKey, row);
    if (key) writer.put('keys', keyRow(key), idBytes(id));
    if (expiresAt) writer.put('expiry', expiryRow(expiresAt), Buffer.alloc(0));
  }

  async #finish(): Promise<void> {
    await Promise.all(this.#underWay.splice(0));
    const { core } = this;
    const { lineageId } = this.header!;
    const { seq, epoch, chain } = this.#end();
    if (!this.#isReached) await this.#makeCollections();
    for (const index of this.#catalog!.indexes) {
      if (core.catalog.find(index.collection)) await this.#declare(index);
    }
    await core.writer.submit(() => {
      if (this.options.keepLineage) core.writer.put('meta', lineageRow, Buffer.from(lineageId));
      core.writer.state = {
        ...core.state,
        seq,
        epoch,
        commitEpoch: epoch,
        chain,
        // A new log starts: earlier commits are only in the backup.
        oldestSeq: seq + 1,
        oldestChain: chain,
      };
    });
  }

  /**
   * Declares an index to be built; the next `open` builds it, or drops it if it is not declared
   * there.
   */
  async #declare(wanted: BackupCatalog['indexes'][number]): Promise<void> {
    const { collection, fields, unique, sparse } = wanted;
    const known = this.core.catalog.find(collection)?.indexes ?? [];
    if (known.some((index) => sameDefinition(index.definition, wanted))) return;
    await this.core.writer.submit(() => {
      const id = this.core.state.nextIndex;
      this.core.writer.state = { ...this.core.state, nextIndex: id + 1 };
      const index = this.core.catalog.addIndex({
        id,
        collection,
        definition: { fields, unique, sparse },
        state: 'building',
        problem: '',
        multi: false,
        cut: false,
      });
      this.core.putMeta(indexRow(id), storedIndex(index));
    });
  }
}
