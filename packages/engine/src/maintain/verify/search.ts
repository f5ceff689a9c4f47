import { GoneNumbers } from '../../core/search-segments.js';
import type { IndexInfo } from '../../core/core.js';
import { idBytes, prefixed, prefixLength } from '../../format/keys.js';
import {
  decodeDirectory,
  directoryKey,
  eachPosting,
  eachTerm,
  numberKey,
  PageReader,
  recordRowKey,
  rowKind,
} from '../../format/search-pages.js';
import type { RecordImage } from '../../format/record.js';
import type { TableRow } from '../../storage/file/tables.js';
import type { SnapshotView } from '../../storage/views.js';
import { hashText } from '../../value/bytes.js';

/** Sums that are equal when two sets of postings are. */
class PostingSums {
  count = 0;
  high = 0;
  low = 0;

  add(term: string, number: number, bytes: Buffer, start: number, end: number): void {
    const hash = hashText(`${number} ${term} ${bytes.toString('latin1', start, end)}`);
    this.count++;
    this.high = (this.high + hash.high) >>> 0;
    this.low = (this.low + hash.low) >>> 0;
  }

  equals({ count, high, low }: PostingSums): boolean {
    return this.count === count && this.high === high && this.low === low;
  }
}

/**
 * Checks a search index: each record has its number, and the postings of all pages are those of the
 * records. Sums of both are compared, so that memory does not grow with the index.
 */
export class SearchCheck {
  readonly #expected = new PostingSums();
  readonly #found = new PostingSums();
  readonly #gone = new GoneNumbers();
  readonly #rows = { record: 0, number: 0 };
  readonly #segments: ReadonlySet<number>;
  readonly #unused: ReadonlySet<number>;
  readonly #directory;
  readonly #page = new PageReader();
  #records = 0;
  #words = 0;

  constructor(
    private readonly view: SnapshotView,
    readonly index: IndexInfo,
    private readonly report: (where: string, problem: string) => void,
  ) {
    this.#directory = decodeDirectory(this.#get(directoryKey));
    this.#segments = new Set(this.#directory.segments.map(({ id }) => id));
    this.#unused = new Set(this.#directory.unused);
  }

  #get(key: Buffer): Buffer | undefined {
    return this.view.get('index', prefixed(this.index.id, key));
  }

  /** Checks the rows of a record, and returns the number of its postings. */
  record({ id }: RecordImage, payload: Buffer | undefined, where: string): number {
    const row = this.#get(recordRowKey(idBytes(id)));
    const number = row?.readUInt32BE(0) ?? 0;
    const isKnown = row && this.#get(numberKey(number))?.equals(idBytes(id));
    if (Boolean(isKnown) !== (payload !== undefined)) {
      const problem = payload ? 'an entry is missing' : 'an entry too many';
      this.report(`${this.index.name} ${where}`, problem);
    }
    if (!payload) return 0;
    let count = 0;
    this.#records++;
    this.#words += eachTerm(payload, (term, start) => {
      count++;
      this.#expected.add(term, number, payload, start, start + payload[start - 1]!);
    });
    return count;
  }

  /** Sees a row of the index, in the order of their keys. */
  visit({ key, value }: TableRow): void {
    const { kind, segment = 0 } = rowKind(key) ?? {};
    if (kind === 'gone') this.#gone.add(key, prefixLength + 1, value);
    else if (kind === 'record' || kind === 'number') this.#rows[kind]++;
    else if (kind === 'page' && this.#segments.has(segment)) this.#visitPage(value);
    else if (kind !== 'directory' && !this.#unused.has(segment)) {
      this.report(this.index.name, 'an entry too many');
    }
  }

  #visitPage(value: Buffer): void {
    const page = this.#page.open(value, value.length);
    while (page.next()) {
      const { name, bytes } = page;
      eachPosting(page, (number, start, end) => {
        if (!this.#gone.has(number)) this.#found.add(name, number, bytes, start, end);
      });
    }
  }

  end(): void {
    const { records, words } = this.#directory;
    const isSame = records === this.#records && words === this.#words;
    const hasRows = this.#rows.record === records && this.#rows.number === records;
    if (isSame && hasRows && this.#found.equals(this.#expected)) return;
    this.report(this.index.name, 'its words are not those of the records');
  }
}
