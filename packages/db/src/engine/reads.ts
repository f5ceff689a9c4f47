import type { Core } from './core.js';
import { RecordImage } from './record.js';
import { prefixed, readId, recordKey } from './storage/keys.js';
import type { Transaction } from './transactions.js';

/** Reads of single records, from the newest commit that is visible or inside a transaction. */
export class Reads {
  constructor(private readonly core: Core) {}

  byId(name: string, id: string, transaction?: Transaction): RecordImage | undefined {
    const collection = this.core.catalog.find(name);
    if (!collection) return undefined;
    if (transaction) {
      transaction.use();
      return transaction.byId(collection, id);
    }
    return this.#live(this.#record(collection.id, id));
  }

  byKey(name: string, key: string, transaction?: Transaction): RecordImage | undefined {
    const collection = this.core.catalog.find(name);
    if (!collection) return undefined;
    if (transaction) {
      transaction.use();
      return transaction.byKey(collection, key);
    }
    const id = this.core.tables.get('keys', prefixed(collection.id, Buffer.from(key)));
    return id && this.#live(this.#record(collection.id, readId(id, 0)));
  }

  #record(collection: number, id: string): RecordImage | undefined {
    const bytes = this.core.tables.get('records', recordKey(collection, id));
    return bytes && new RecordImage(id, bytes, bytes.length, this.core.codec);
  }

  #live(record: RecordImage | undefined): RecordImage | undefined {
    return record?.isExpired(this.core.clock.now()) ? undefined : record;
  }
}
