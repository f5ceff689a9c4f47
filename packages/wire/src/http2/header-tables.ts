import { Field } from './field.js';

const staticFields: readonly Field[] = (
  [
    [':authority', ''],
    [':method', 'GET'],
    [':method', 'POST'],
    [':path', '/'],
    [':path', '/index.html'],
    [':scheme', 'http'],
    [':scheme', 'https'],
    [':status', '200'],
    [':status', '204'],
    [':status', '206'],
    [':status', '304'],
    [':status', '400'],
    [':status', '404'],
    [':status', '500'],
    ['accept-charset', ''],
    ['accept-encoding', 'gzip, deflate'],
    ['accept-language', ''],
    ['accept-ranges', ''],
    ['accept', ''],
    ['access-control-allow-origin', ''],
    ['age', ''],
    ['allow', ''],
    ['authorization', ''],
    ['cache-control', ''],
    ['content-disposition', ''],
    ['content-encoding', ''],
    ['content-language', ''],
    ['content-length', ''],
    ['content-location', ''],
    ['content-range', ''],
    ['content-type', ''],
    ['cookie', ''],
    ['date', ''],
    ['etag', ''],
    ['expect', ''],
    ['expires', ''],
    ['from', ''],
    ['host', ''],
    ['if-match', ''],
    ['if-modified-since', ''],
    ['if-none-match', ''],
    ['if-range', ''],
    ['if-unmodified-since', ''],
    ['last-modified', ''],
    ['link', ''],
    ['location', ''],
    ['max-forwards', ''],
    ['proxy-authenticate', ''],
    ['proxy-authorization', ''],
    ['range', ''],
    ['referer', ''],
    ['refresh', ''],
    ['retry-after', ''],
    ['server', ''],
    ['set-cookie', ''],
    ['strict-transport-security', ''],
    ['transfer-encoding', ''],
    ['user-agent', ''],
    ['vary', ''],
    ['via', ''],
    ['www-authenticate', ''],
  ] as const
).map(([name, value]) => new Field(name, value));

/** Index of a name, or of a name and value, in the static table; 0: not found. */
export function staticIndexOf(name: string, value?: string): number {
  return (
    1 + staticFields.findIndex((each) => each.name === name && (value ?? each.value) === each.value)
  );
}

/** Max size of the dynamic table: the default of SETTINGS_HEADER_TABLE_SIZE. */
export const tableBytes = 4_096;
const slots = tableBytes / 32;

/** The HPACK index space: 61 static entries, then the dynamic table, newest first. */
export class HeaderTable {
  readonly #recent: (Field | undefined)[] = [];
  #newest = 0;
  #count = 0;
  #bytes = 0;
  #maxBytes = tableBytes;
  /** Incremented whenever an index may mean another field. */
  changes = 0;

  /** Undefined when there is no such entry. */
  at(index: number): Field | undefined {
    if (index <= staticFields.length) return staticFields[index - 1];
    const age = index - staticFields.length - 1;
    return age < this.#count ? this.#recent[(this.#newest - age + slots) % slots] : undefined;
  }

  add(field: Field): void {
    this.changes++;
    this.#shrinkTo(this.#maxBytes - field.bytes);
    if (field.bytes > this.#maxBytes) return;
    this.#newest = (this.#newest + 1) % slots;
    this.#recent[this.#newest] = field;
    this.#count++;
    this.#bytes += field.bytes;
  }

  /** False when it exceeds the limit. */
  resize(maxBytes: number): boolean {
    if (maxBytes > tableBytes) return false;
    this.changes++;
    this.#maxBytes = maxBytes;
    this.#shrinkTo(maxBytes);
    return true;
  }

  #shrinkTo(bytes: number): void {
    while (this.#count > 0 && this.#bytes > bytes) {
      const oldest = (this.#newest - this.#count + 1 + slots) % slots;
      this.#bytes -= this.#recent[oldest]!.bytes;
      this.#recent[oldest] = undefined;
      this.#count--;
    }
  }
}
