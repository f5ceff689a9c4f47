import { roles, type Field } from './field.js';
import type { FieldSink } from './hpack-decoder.js';

export const maxHeaderBytes = 16 * 1024;
const maxFields = 64;

type StoredName = 'content-type' | 'grpc-timeout' | 'grpc-encoding' | 'x-api-key' | 'authorization';

/** The request headers that the server reads, and whether the header list is valid. */
export class RequestHeaders implements FieldSink {
  ':method': string | undefined = undefined;
  ':scheme': string | undefined = undefined;
  ':path': string | undefined = undefined;
  ':authority': string | undefined = undefined;
  'content-type': string | undefined = undefined;
  'grpc-timeout': string | undefined = undefined;
  'grpc-encoding': string | undefined = undefined;
  'x-api-key': string | undefined = undefined;
  authorization: string | undefined = undefined;
  contentLength: number | undefined = undefined;
  /** The parsed request, cached because identical header blocks share this object. */
  parsed: unknown = undefined;
  #bytes = 0;
  #count = 0;
  #hasRegular = false;
  #hasPseudo = false;
  #isMalformed = false;

  /** Uncompressed size of the header list. */
  get byteCount(): number {
    return this.#bytes;
  }

  get isTooLarge(): boolean {
    return this.#bytes > maxHeaderBytes || this.#count > maxFields;
  }

  /** Whether these are valid request headers. */
  get isRequest(): boolean {
    if (this.#isMalformed || this[':method'] === undefined) return false;
    const { ':path': path, ':scheme': scheme } = this;
    if (this[':method'] === 'CONNECT') return path === undefined && scheme === undefined;
    if (scheme === undefined || path === undefined) return false;
    return path.startsWith('/') || (path === '*' && this[':method'] === 'OPTIONS');
  }

  /** Whether these are valid trailers. */
  get areTrailers(): boolean {
    return !this.#isMalformed && !this.#hasPseudo;
  }

  take(field: Field): void {
    this.#bytes += field.bytes;
    this.#count++;
    // Fields over the limit are still decoded for the dynamic table, but not stored.
    if (this.isTooLarge || this.#isMalformed) return;
    const { role } = field;
    if (role === roles.malformed) this.#isMalformed = true;
    else if (role === roles.pseudo) this.#takePseudo(field);
    else {
      this.#hasRegular = true;
      if (role === roles.length) this.#takeLength(field.value);
      else if (role === roles.stored) this.#store(field);
    }
  }

  #takePseudo({ name, value }: Field): void {
    const pseudo = name as ':method' | ':scheme' | ':path' | ':authority';
    if (this.#hasRegular || this[pseudo] !== undefined) this.#isMalformed = true;
    this.#hasPseudo = true;
    this[pseudo] = value;
  }

  #store({ name, value }: Field): void {
    const stored = name as StoredName;
    const before = this[stored];
    // Repeated fields are joined (RFC 9110, 5.2).
    this[stored] = before === undefined ? value : `${before}, ${value}`;
  }

  #takeLength(value: string): void {
    const length = /^\d{1,15}$/.test(value) ? Number(value) : -1;
    const isOther = this.contentLength !== undefined && this.contentLength !== length;
    if (length === -1 || isOther) this.#isMalformed = true;
    else this.contentLength = length;
  }
}
