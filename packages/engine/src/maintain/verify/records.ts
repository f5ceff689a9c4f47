import { messageOf } from '@millrace/kit/errors';
import {
  type CollectionInfo,
  type IndexInfo,
  type Core,
  indexRow,
  type StoredIndex,
} from '../../core/core.js';
import {
  expiryKey,
  expiryKinds,
  idBytes,
  idLength,
  prefixLength,
  prefixed,
  readId,
} from '../../format/keys.js';
import { contentHash } from '../../format/document-writer.js';
import type { IndexEntries } from '../../format/entries.js';
import { fixedLength, RecordImage } from '../../format/record.js';
import {
  type TableName,
  type TableRow,
  lineageRow,
  decodeState,
  freshState,
  stateRow,
  type DatabaseState,
} from '../../storage/file/tables.js';
import type { SnapshotView } from '../../storage/views.js';
import { formatVersion } from '../upgrade/format.js';
import { SearchCheck } from './search.js';

/** Number of rows of each kind that the records require; there must be no others. */
export interface Expected {
  keys: number;
  expiry: number;
  index: Map<number, number>;
  unique: Map<number, number>;
}

/** Checks each record, and that all its rows in other tables exist. */
export class RecordCheck {
  records = 0;
  indexEntries = 0;
  /** Records whose last change should be in the log. */
  inLog = 0;
  readonly expected: Expected = { keys: 0, expiry: 0, index: new Map(), unique: new Map() };

  constructor(
    private readonly core: Core,
    private readonly view: SnapshotView,
    private readonly known: KnownCatalog,
    private readonly problems: Problems,
  ) {}

  visit = ({ key, value }: TableRow): void => {
    this.records++;
    if (key.length !== prefixLength + idLength) {
      this.problems.add('record', key.toString('hex'), 'has a key of the wrong length');
      return;
    }
    const collection = this.known.collections.get(key.readUInt32BE(0));
    const id = readId(key, prefixLength);
    if (!collection) {
      this.problems.add('record', id, `is of an unknown collection ${key.readUInt32BE(0)}`);
      return;
    }
    const where = `${collection.name}/${id}`;
    if (value.length <= fixedLength) {
      this.problems.add('record', where, 'is cut off');
      return;
    }
    const record = new RecordImage(id, value, value.length, this.core.codec);
    if (!this.#checkContent(record, where)) return;
    if (record.seq >= this.known.state.oldestSeq) this.inLog++;
    this.#checkKey(collection, record, where);
    this.#checkExpiry(key, record, where);
    for (const index of this.known.ready.get(collection.name) ?? []) {
      this.#checkEntries(index, record, where);
    }
  };

  #checkContent(record: RecordImage, where: string): boolean {
    try {
      if (contentHash(record.data) !== record.contentHash) {
        this.problems.add('record', where, 'its data is not what was written: its hash differs');
      }
    } catch (error) {
      this.problems.add('record', where, `cannot be decoded: ${messageOf(error)}`);
      return false;
    }
    if (record.rev < 1) this.problems.add('record', where, 'has no revision');
    if (record.seq < 1 || record.seq > this.known.state.seq) {
      this.problems.add('record', where, `is of commit ${record.seq}, which there is none of`);
    }
    return true;
  }

  #checkKey(collection: CollectionInfo, record: RecordImage, where: string): void {
    if (record.key === '') return;
    this.expected.keys++;
    const row = prefixed(collection.id, Buffer.from(record.key));
    this.#expectRow('key', 'keys', row, idBytes(record.id), `${where} "${record.key}"`);
  }

  #checkExpiry(what: Buffer, record: RecordImage, where: string): void {
    if (record.expiresAt === 0) return;
    this.expected.expiry++;
    const row = expiryKey(record.expiresAt, expiryKinds.record, what);
    if (this.view.get('expiry', row)) return;
    this.problems.add('expiry', where, 'will not be removed when its time is up');
  }

  #checkEntries(index: IndexInfo, record: RecordImage, where: string): void {
    const holder = idBytes(record.id);
    const entries = entriesOf(index, record);
    if (!entries) {
      this.problems.add('index', `${index.name} ${where}`, 'its entries cannot be computed');
      return;
    }
    const { values, unique, multi, cut, payload } = entries;
    const search = this.known.searches.get(index.id);
    if ((multi && !index.multi) || (cut && !index.cut)) {
      this.problems.add('index', `${index.name} ${where}`, 'the index does not know what it holds');
    }
    if (search) {
      this.indexEntries += search.record(record, payload, where);
      return;
    }
    this.indexEntries += values.length;
    addTo(this.expected.index, index.id, values.length);
    addTo(this.expected.unique, index.id, unique.length);
    for (const each of values) {
      const row = prefixed(index.id, Buffer.concat([each, holder]));
      const found = this.view.get('index', row);
      // Rows of 0.1.0 have no vector beside them.
      if (found && (found.length === 0 || !payload || found.equals(payload))) continue;
      const problem = found ? 'an entry has another vector' : 'an entry is missing';
      this.problems.add('index', `${index.name} ${where}`, problem);
    }
    for (const each of unique) {
      const row = prefixed(index.id, each);
      this.#expectRow('unique', 'unique', row, holder, `${index.name} ${where}`);
    }
  }

  #expectRow(
    kind: 'key' | 'unique',
    table: TableName,
    row: Buffer,
    holder: Buffer,
    where: string,
  ): void {
    const found = this.view.get(table, row);
    if (!found) this.problems.add(kind, where, 'its row is missing');
    else if (!found.equals(holder)) {
      const other = found.length === idLength ? readId(found, 0) : found.toString('hex');
      this.problems.add(kind, where, `its row names another record, ${other}`);
    }
  }
}

/**
 * The entries that the record should have in the index; undefined when its data is damaged. Damaged
 * data can cause any error, so all errors count as damage, which the caller reports.
 */
export function entriesOf(index: IndexInfo, record: RecordImage): IndexEntries | undefined {
  try {
    return index.compiled.entriesOf(record);
  } catch {
    return undefined;
  }
}

function addTo(counts: Map<number, number>, index: number, count: number): void {
  counts.set(index, (counts.get(index) ?? 0) + count);
}

/** The collections and indexes that everything else is checked against. */
export interface KnownCatalog {
  state: DatabaseState;
  collections: ReadonlyMap<number, CollectionInfo>;
  indexes: ReadonlyMap<number, IndexInfo>;
  /** The indexes that were ready at the snapshot, by the name of their collection. */
  ready: ReadonlyMap<string, readonly IndexInfo[]>;
  /** Checks of the search indexes that were ready, by number. */
  searches: ReadonlyMap<number, SearchCheck>;
}

/** Reads the rows of `meta` and checks that their numbers are consistent. */
export function checkCatalog(core: Core, view: SnapshotView, problems: Problems): KnownCatalog {
  const state = readState(view, problems);
  const format = view.get('meta', Buffer.from('format'))?.toString();
  if (format !== String(formatVersion)) {
    problems.add('meta', 'format', `is ${format ?? 'missing'}, not ${formatVersion}`);
  }
  if (!view.get('meta', lineageRow)) problems.add('meta', 'lineage', 'is missing');
  const collections = new Map(core.catalog.allWithSystem().map((each) => [each.id, each]));
  const indexes = new Map(core.catalog.indexes().map((each) => [each.id, each]));
  if (collections.size < core.catalog.allWithSystem().length) {
    problems.add('meta', 'collections', 'two of them have the same number');
  }
  for (const { id, name } of core.catalog.allWithSystem()) {
    if (id >= state.nextCollection) {
      problems.add('meta', name, `has the number ${id}, which is still to be given`);
    }
  }
  for (const { id, name } of indexes.values()) {
    if (id >= state.nextIndex) {
      problems.add('meta', name, `has the number ${id}, which is still to be given`);
    }
  }
  const ready = readyIndexes(core, view);
  const report = (where: string, problem: string) => problems.add('index', where, problem);
  const searches = new Map(
    [...ready.values()]
      .flat()
      .filter(({ definition }) => definition.kind === 'search')
      .map((index) => [index.id, new SearchCheck(view, index, report)]),
  );
  return { state, collections, indexes, ready, searches };
}

/** From the rows of the snapshot: an index may have become ready since. */
function readyIndexes(core: Core, view: SnapshotView): Map<string, IndexInfo[]> {
  const ready = new Map<string, IndexInfo[]>();
  for (const index of core.catalog.indexes()) {
    const row = view.get('meta', Buffer.from(indexRow(index.id)));
    if (!row || (JSON.parse(row.toString()) as StoredIndex).state !== 'ready') continue;
    ready.set(index.collection, [...(ready.get(index.collection) ?? []), index]);
  }
  return ready;
}

function readState(view: SnapshotView, problems: Problems): DatabaseState {
  try {
    return decodeState(view.get('meta', stateRow));
  } catch (error) {
    problems.add('meta', 'state', `cannot be read: ${messageOf(error)}`);
    return freshState;
  }
}

/** What a problem was found in. */
export type ProblemKind =
  'meta' | 'record' | 'key' | 'index' | 'unique' | 'expiry' | 'log' | 'chain' | 'row';

export interface Problem {
  kind: ProblemKind;
  /** The collection and record, the index or the commit. */
  where: string;
  detail: string;
}

export interface VerifyReport {
  ok: boolean;
  /** The commit that was checked. */
  seq: number;
  records: number;
  /** Entries of all indexes that are ready. */
  indexEntries: number;
  logEntries: number;
  /** The first hundred problems. */
  problems: Problem[];
  /** Total number of problems. */
  problemCount: number;
  elapsedMs: number;
}

const maxProblems = 100;

/** Collects problems: counts all and keeps the first hundred. */
export class Problems {
  readonly shown: Problem[] = [];
  count = 0;

  add(kind: ProblemKind, where: string, detail: string): void {
    this.count++;
    if (this.shown.length < maxProblems) this.shown.push({ kind, where, detail });
  }
}
