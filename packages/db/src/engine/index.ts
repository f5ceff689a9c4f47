import { Database, type OpenOptions } from './database.js';

/**
 * Opens the database in a directory, which is made when it is not there.
 *
 *     const db = await open('./data', { collections: { people: { indexes: [{ fields: ['age'] }] } } });
 *     const people = db.collection<{ name: string; age: number }>('people');
 *     await people.insert({ name: 'Ada', age: 36 });
 */
export function open(directory: string, options: OpenOptions = {}): Promise<Database> {
  return Database.open(directory, options);
}

export type { Collection, Patch } from './collection.js';
export type { CollectionOptions, Database, OpenOptions } from './database.js';
export type { IndexDefinition } from './index/entries.js';
export type { StoredRecord } from './stored-record.js';
