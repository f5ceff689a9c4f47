import type { CollectionInfo, IndexInfo, Core } from '../src/core/core.js';
import { chainAfter, decodeCommit, type Change, type RecordImage } from '../src/format/record.js';
import { expiryKey, expiryKinds, idBytes, prefixed, recordKey } from '../src/format/keys.js';
import {
  decodeDirectory,
  directoryKey,
  eachPosting,
  eachTerm,
  numberKey,
  PageReader,
  segmentRange,
} from '../src/format/search-pages.js';
import { contentHash } from '../src/format/document-writer.js';
import { decodeState, stateRow, type TableName } from '../src/storage/file/tables.js';
import type { SnapshotView } from '../src/storage/views.js';

/**
 * Everything in a database's file that does not follow from its records and its log, one line
 * each. Written apart from the engine's own `verify`, so that the two check each other.
 */
export function problemsOf(core: Core): string[] {
  const view = core.snapshot();
  try {
    return new Inspection(core, view).problems;
  } finally {
    view.done();
  }
}

class Inspection {
  readonly problems: string[] = [];
  readonly #records = new Map<string, RecordImage>();
  readonly #wanted = new Map<TableName, Map<string, string>>();
  readonly #allowed = new Map<TableName, Set<string>>();

  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
  ) {
    for (const collection of core.catalog.allWithSystem()) this.#readCollection(collection);
    this.#checkOwners();
    this.#wantRequests();
    for (const table of ['keys', 'index', 'unique', 'expiry'] as const) this.#compare(table);
    for (const index of core.catalog.indexes()) {
      if (index.definition.kind === 'search' && index.state === 'ready') this.#checkSearch(index);
    }
    this.#checkLog();
  }

  #readCollection(collection: CollectionInfo): void {
    for (const record of this.view.scan(collection.id, {}, () => true)) {
      const name = `${collection.name}/${record.id}`;
      this.#records.set(hex(recordKey(collection.id, record.id)), record);
      if (contentHash(record.data) !== record.contentHash) {
        this.problems.push(`${name} does not have its content hash`);
      }
      if (record.seq > this.view.seq) this.problems.push(`${name} is from the future`);
      this.#wantKey(collection, record);
      if (record.expiresAt) {
        const what = recordKey(collection.id, record.id);
        this.#want('expiry', expiryKey(record.expiresAt, expiryKinds.record, what), '');
      }
      for (const index of collection.indexes) this.#wantEntries(index, record);
    }
  }

  #wantKey(collection: CollectionInfo, record: RecordImage): void {
    if (record.key === '') return;
    const row = prefixed(collection.id, Buffer.from(record.key));
    this.#want('keys', row, hex(idBytes(record.id)));
  }

  #wantEntries(index: IndexInfo, record: RecordImage): void {
    if (index.state === 'failed') return;
    const id = idBytes(record.id);
    const entries = index.compiled.entriesOf(record);
    if ((entries.multi && !index.multi) || (entries.cut && !index.cut)) {
      this.problems.push(`${index.name} does not know that ${record.id} is multi or cut`);
    }
    const isReady = index.state === 'ready';
    if (index.definition.kind === 'search') {
      if (entries.payload && isReady) this.#wantWords(index, hex(id), entries.payload);
      return;
    }
    for (const values of entries.values) {
      const row = prefixed(index.id, Buffer.concat([values, id]));
      if (isReady) this.#want('index', row, entries.payload ? hex(entries.payload) : '');
      else this.#allow('index', row);
    }
    for (const values of entries.unique) {
      const row = prefixed(index.id, values);
      if (isReady) this.#want('unique', row, hex(id));
      else this.#allow('unique', row);
    }
  }

  /** What each search index should have: ids, terms and their postings. */
  readonly #words = new Map<number, Set<string>>();

  #wantWords(index: IndexInfo, id: string, payload: Buffer): void {
    const wanted = this.#words.get(index.id) ?? new Set<string>();
    this.#words.set(index.id, wanted);
    eachTerm(payload, (term, start) => {
      const posting = payload.subarray(start, start + payload[start - 1]!);
      wanted.add(`${id} ${term} ${hex(posting)}`);
    });
  }

  #checkSearch({ id: index, name }: IndexInfo): void {
    const get = (key: Buffer) => this.view.get('index', prefixed(index, key));
    const { segments } = decodeDirectory(get(directoryKey));
    const found: string[] = [];
    for (const { id } of segments) {
      const { start, end } = segmentRange(id);
      const range = { start: prefixed(index, start), end: prefixed(index, end) };
      for (const { value } of this.view.rows('index', range)) {
        const page = new PageReader().open(value, value.length);
        while (page.next()) {
          eachPosting(page, (number, from, to) => {
            const owner = get(numberKey(number));
            if (owner) found.push(`${hex(owner)} ${page.name} ${hex(value.subarray(from, to))}`);
          });
        }
      }
    }
    const wanted = [...(this.#words.get(index) ?? [])];
    if (wanted.sort().join('\n') === found.sort().join('\n')) return;
    this.problems.push(`${name} has ${found.length} postings, its records ${wanted.length} others`);
  }

  #wantRequests(): void {
    const expiring = new Set<string>();
    for (const { key } of this.view.rows('expiry', {})) {
      if (key[6] !== expiryKinds.request) continue;
      this.#allow('expiry', key);
      expiring.add(hex(key.subarray(7)));
    }
    for (const { key } of this.view.rows('requests', {})) {
      if (!expiring.has(hex(key))) this.problems.push(`request ${key.toString()} never expires`);
    }
  }

  #want(table: TableName, key: Buffer, value: string): void {
    let rows = this.#wanted.get(table);
    if (!rows) this.#wanted.set(table, (rows = new Map()));
    const other = rows.get(hex(key));
    if (other !== undefined && other !== value) {
      this.problems.push(`two records want the row ${hex(key)} of ${table}`);
    }
    rows.set(hex(key), value);
  }

  #allow(table: TableName, key: Buffer): void {
    let rows = this.#allowed.get(table);
    if (!rows) this.#allowed.set(table, (rows = new Set()));
    rows.add(hex(key));
  }

  #compare(table: TableName): void {
    const wanted = new Map(this.#wanted.get(table));
    for (const { key, value } of this.view.rows(table, {})) {
      const name = hex(key);
      const want = wanted.get(name);
      wanted.delete(name);
      if (want === undefined) {
        if (this.#isCheckedElsewhere(table, key) || this.#allowed.get(table)?.has(name)) continue;
        this.problems.push(`${table} has the row ${name}, which no record asks for`);
      } else if (want !== hex(value)) this.problems.push(`${table} row ${name} has another value`);
    }
    for (const name of wanted.keys()) this.problems.push(`${table} lacks the row ${name}`);
  }

  /** Rows of search indexes, and of failed ones. */
  #isCheckedElsewhere(table: TableName, key: Buffer): boolean {
    if (table !== 'index' && table !== 'unique') return false;
    const id = key.readUInt32BE(0);
    return this.core.catalog
      .indexes()
      .some(
        (each) => each.id === id && (each.state === 'failed' || each.definition.kind === 'search'),
      );
  }

  /** Rows of records must belong to a collection that the catalog knows. */
  #checkOwners(): void {
    const known = new Set(this.core.catalog.allWithSystem().map(({ id }) => id));
    if (known.size !== this.core.catalog.allWithSystem().length)
      this.problems.push('two share a number');
    for (const { key } of this.view.rows('records', {})) {
      if (known.has(key.readUInt32BE(0))) continue;
      this.problems.push(`a record of the unknown collection ${key.readUInt32BE(0)}`);
    }
    const { nextCollection, nextIndex } = decodeState(this.view.get('meta', stateRow));
    for (const id of known) if (id >= nextCollection) this.problems.push(`collection ${id} is new`);
    for (const { id } of this.core.catalog.indexes()) {
      if (id >= nextIndex) this.problems.push(`index ${id} is new`);
    }
  }

  #checkLog(): void {
    const state = decodeState(this.view.get('meta', stateRow));
    const nameOf = (id: number) => this.core.catalog.byId(id).name;
    const last = new Map<string, Change>();
    let next = state.oldestSeq;
    let chain = state.oldestChain;
    for (; next <= state.seq; next++) {
      const seq = next;
      const value = this.core.commitRow(seq);
      if (!value) break;
      const commit = decodeCommit(seq, value, this.core.codec);
      chain = chainAfter(chain, commit, nameOf);
      if (chain.high !== commit.chain.high || chain.low !== commit.chain.low) {
        this.problems.push(`the chain breaks at ${seq}`);
        chain = commit.chain;
      }
      for (const change of commit.changes) {
        this.#checkChange(seq, change, last.get(nameOfChange(change)));
        last.set(nameOfChange(change), change);
      }
    }
    if (next !== state.seq + 1) this.problems.push(`the log ends at ${next - 1}, not ${state.seq}`);
    if (chain.high !== state.chain.high || chain.low !== state.chain.low) {
      this.problems.push('the state has another chain than the log');
    }
    this.#compareWithLog(last, state.oldestSeq);
  }

  /** Each change begins where the last one of its record ended. */
  #checkChange(seq: number, change: Change, earlier: Change | undefined): void {
    const { op, before, after } = change;
    const shape = { insert: [false, true], update: [true, true] }[op as 'insert' | 'update'];
    const [wantsBefore, wantsAfter] = shape ?? [true, false];
    if (!!before !== wantsBefore || !!after !== wantsAfter) {
      this.problems.push(`commit ${seq} has a strange ${op}`);
    }
    if (earlier && imageText(earlier.after) !== imageText(before)) {
      this.problems.push(`commit ${seq} does not begin where commit before it ended`);
    }
  }

  #compareWithLog(last: ReadonlyMap<string, Change>, oldestSeq: number): void {
    for (const [name, change] of last) {
      if (imageText(this.#records.get(name)) !== imageText(change.after)) {
        this.problems.push(`the record ${name} is not as the log left it`);
      }
    }
    if (oldestSeq !== 1) return;
    for (const name of this.#records.keys()) {
      if (!last.has(name)) this.problems.push(`the log does not know the record ${name}`);
    }
  }
}

function nameOfChange({ collection, id }: Change): string {
  return hex(recordKey(collection, id));
}

function imageText(image: RecordImage | undefined): string {
  return image ? hex(image.bytes.subarray(0, image.end)) : 'none';
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}
