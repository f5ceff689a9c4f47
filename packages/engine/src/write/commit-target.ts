import type { CollectionInfo } from '../core/catalog.js';
import type { Core } from '../core/core.js';
import type { JsonObject } from '../value/documents.js';
import { encodeDocument, type EncodedDocument } from '../format/encoded-document.js';
import { CommitBuilder } from './mutations.js';
import type { Target } from './operations.js';
import type { RecordImage } from '../format/record.js';
import { rowWriter, type RowWriter } from '../core/rows.js';
import { StepCollection } from './step-collection.js';
import type { WriterView } from '../storage/views.js';
import type { DatabaseState } from '../storage/file/state.js';

/** Operations that write directly into a commit. Used inside one job of the writer. */
export class CommitTarget implements Target {
  readonly commit: CommitBuilder;

  constructor(private readonly core: Core) {
    this.commit = new CommitBuilder(core);
  }

  /** The records of one collection, by key. */
  collection<T extends object = Record<string, unknown>>(name: string): StepCollection<T> {
    return new StepCollection<T>(this.core, this, name);
  }

  /** Raw rows beside the records. */
  get rows(): RowWriter {
    return (this.#rows ??= rowWriter(this.core));
  }
  #rows: RowWriter | undefined;

  get view(): WriterView<DatabaseState> {
    return (this.#view ??= this.core.view());
  }
  #view: WriterView<DatabaseState> | undefined;

  get now(): number {
    return this.commit.now;
  }

  newId(): string {
    return this.core.random.ulid(this.now);
  }

  encode(data: JsonObject): EncodedDocument {
    return encodeDocument(this.core, data);
  }

  byId(collection: CollectionInfo, id: string): RecordImage | undefined {
    return this.#live(collection, this.view.record(collection.id, id));
  }

  byKey(collection: CollectionInfo, key: string): RecordImage | undefined {
    const id = this.view.idOfKey(collection.id, key);
    return id === undefined ? undefined : this.byId(collection, id);
  }

  store(
    collection: CollectionInfo,
    id: string,
    before: RecordImage | undefined,
    document: EncodedDocument,
    fields: { key: string; expiresAt: number },
  ): RecordImage {
    return this.commit.store(collection, id, before, document, fields);
  }

  remove(collection: CollectionInfo, before: RecordImage): void {
    this.commit.remove(collection, before);
  }

  /** An expired record that is not swept yet is removed now. */
  #live(collection: CollectionInfo, record: RecordImage | undefined): RecordImage | undefined {
    if (!record?.isExpired(this.now)) return record;
    this.commit.remove(collection, record, 'expire');
    return undefined;
  }
}
