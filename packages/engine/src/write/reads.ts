import type { CollectionInfo } from '../core/catalog.js';
import type { Core } from '../core/core.js';
import { RecordImage } from '../format/record.js';
import { prefixed, readId, recordKey } from '../format/keys.js';
import type { Transaction } from './transactions.js';

/** Reads of single records, from the newest commit that is visible or inside a transaction. */
export class Reads {
  constructor(private readonly core: Core) {}

  byId(name: string, id: string, transaction?: Transaction): RecordImage | undefined {
    const collection = this.#collection(name);
    if (transaction) {
      transaction.use();
      if (collection) return transaction.byId(collection, id);
      transaction.notePredicate({ collection: name, matches: (image) => image.id === id });
    }
    return collection && this.#live(this.#record(collection.id, id));
  }

  byKey(name: string, key: string, transaction?: Transaction): RecordImage | undefined {
    const collection = this.#collection(name);
    if (transaction) {
      transaction.use();
      if (collection) return transaction.byKey(collection, key);
      // There is no record to track as read, but another writer may create it.
      transaction.notePredicate({ collection: name, matches: (image) => image.key === key });
    }
    if (!collection) return undefined;
    const id = this.core.store.get('keys', prefixed(collection.id, Buffer.from(key)));
    return id && this.#live(this.#record(collection.id, readId(id, 0)));
  }

  #collection(name: string): CollectionInfo | undefined {
    if (this.core.closed) throw this.core.closed;
    return this.core.catalog.find(name);
  }

  #record(collection: number, id: string): RecordImage | undefined {
    const bytes = this.core.store.get('records', recordKey(collection, id));
    return bytes && new RecordImage(id, bytes, bytes.length, this.core.codec);
  }

  #live(record: RecordImage | undefined): RecordImage | undefined {
    return record?.isExpired(this.core.clock.now()) ? undefined : record;
  }
}
