import type { IndexInfo, Core } from '../../core/core.js';
import { expiryKinds, idLength, prefixLength, readId, readUint48 } from '../../format/keys.js';
import { RecordImage } from '../../format/record.js';
import type { TableRow, TableName } from '../../storage/file/tables.js';
import type { SnapshotView } from '../../storage/views.js';
import { type KnownCatalog, entriesOf, type Expected, type Problems } from './records.js';
import type { Slice } from '../../core/slice.js';

const expiryHead = 7;

/**
 * Finds rows that no record refers to. All referenced rows are known to exist, so counting is
 * enough: rows are checked one by one only where there are more than expected.
 */
export class ExtraCheck {
  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
    private readonly known: KnownCatalog,
    private readonly expected: Expected,
    private readonly problems: Problems,
  ) {}

  async run(walker: TableWalker): Promise<void> {
    await this.#keys(walker);
    await this.#entries(walker, 'index');
    await this.#entries(walker, 'unique');
    await this.#expiry(walker);
  }

  async #keys(walker: TableWalker): Promise<void> {
    let count = 0;
    await walker.walk('keys', () => count++);
    if (count === this.expected.keys) return;
    await walker.walk('keys', ({ key, value }) => {
      const name = this.known.collections.get(key.readUInt32BE(0))?.name;
      const text = key.toString('utf8', prefixLength);
      const record =
        value.length === idLength && this.#record(key.subarray(0, prefixLength), value);
      if (record && record.key === text) return;
      const where = `${name ?? 'unknown collection'} "${text}"`;
      this.problems.add('key', where, 'its row names no record that has this key');
    });
  }

  async #entries(walker: TableWalker, table: 'index' | 'unique'): Promise<void> {
    const counts = new Map<number, number>();
    await walker.walk(table, (row) => {
      const id = row.key.readUInt32BE(0);
      const search = table === 'index' ? this.known.searches.get(id) : undefined;
      if (search) search.visit(row);
      else counts.set(id, (counts.get(id) ?? 0) + 1);
    });
    const suspects = new Set<number>();
    const isReady = (index: IndexInfo) =>
      this.known.ready.get(index.collection)?.includes(index) ?? false;
    for (const [id, count] of counts) {
      const index = this.known.indexes.get(id);
      if (!index) this.problems.add(table, `index ${id}`, `has ${count} rows, but is not known`);
      else if (isReady(index) && count !== (this.expected[table].get(id) ?? 0)) suspects.add(id);
    }
    if (table === 'index') for (const search of this.known.searches.values()) search.end();
    if (suspects.size === 0) return;
    await walker.walk(table, (row) => {
      if (suspects.has(row.key.readUInt32BE(0))) this.#checkEntry(table, row);
    });
  }

  #checkEntry(table: 'index' | 'unique', { key, value }: TableRow): void {
    const index = this.known.indexes.get(key.readUInt32BE(0))!;
    const cut = table === 'index' ? key.length - idLength : key.length;
    const id = table === 'index' ? key.subarray(cut) : value;
    const values = key.subarray(prefixLength, cut);
    const collection = this.core.catalog.find(index.collection)!;
    const owner = Buffer.alloc(prefixLength);
    owner.writeUInt32BE(collection.id);
    const record = id.length === idLength && this.#record(owner, id);
    const entries = record && entriesOf(index, record);
    const due = entries ? (table === 'index' ? entries.values : entries.unique) : [];
    if (due.some((each) => Buffer.compare(each, values) === 0)) return;
    const holder = id.length === idLength ? readId(id, 0) : id.toString('hex');
    this.problems.add(table, `${index.name} ${index.collection}/${holder}`, 'an entry too many');
  }

  async #expiry(walker: TableWalker): Promise<void> {
    let count = 0;
    await walker.walk('expiry', ({ key }) => {
      if (key[6] === expiryKinds.record) count++;
      else if (key[6] !== expiryKinds.request) {
        this.problems.add('expiry', key.toString('hex'), 'is of an unknown kind');
      }
    });
    if (count === this.expected.expiry) return;
    await walker.walk('expiry', ({ key }) => {
      if (key[6] !== expiryKinds.record) return;
      const what = key.subarray(expiryHead);
      const record = this.#record(what.subarray(0, prefixLength), what.subarray(prefixLength));
      if (record && record.expiresAt === readUint48(key, 0)) return;
      const where = `${what.readUInt32BE(0)}/${readId(what, prefixLength)}`;
      this.problems.add('expiry', where, 'is to be removed at a time the record does not have');
    });
  }

  #record(owner: Uint8Array, id: Uint8Array): RecordImage | undefined {
    const bytes = this.view.get('records', Buffer.concat([owner, id]));
    if (!bytes) return undefined;
    return new RecordImage(readId(id, 0), bytes, bytes.length, this.core.codec);
  }
}

/**
 * Iterates over tables of a snapshot a few milliseconds at a time. Each slice opens the table again
 * after the last row, so no LMDB cursor stays open during pauses.
 */
export class TableWalker {
  readonly #slice: Slice;

  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
  ) {
    this.#slice = core.newSlice();
  }

  async walk(table: TableName, visit: (row: TableRow) => void, from?: Buffer): Promise<void> {
    let start = from;
    do {
      start = this.#walkSome(table, start, visit);
      await this.#rest();
    } while (start);
  }

  /** Where to continue; undefined at the end. */
  #walkSome(
    table: TableName,
    start: Buffer | undefined,
    visit: (row: TableRow) => void,
  ): Buffer | undefined {
    for (const row of this.view.rows(table, start ? { start } : {})) {
      visit(row);
      if (this.#slice.spend(row.value.length)) return Buffer.concat([row.key, Buffer.of(0)]);
    }
    return undefined;
  }

  /** Yields to other work, then checks that the database is still open. */
  async #rest(): Promise<void> {
    if (this.#slice.due()) await this.#slice.pause();
    if (this.core.closed) throw this.core.closed;
  }
}
