import { roles, type Field } from './field.js';
import type { FieldSink } from './hpack-decoder.js';

export const mostHeaderBytes = 16 * 1024;
const mostFields = 64;

type KeptName = 'content-type' | 'grpc-timeout' | 'grpc-encoding' | 'x-api-key' | 'authorization';

/** The headers of a request: those that anyone here reads, and whether all are as they must be. */
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
  /** What their reader made of them, kept for when the same come again. */
  meaning: unknown = undefined;
  #bytes = 0;
  #count = 0;
  #hasRegular = false;
  #hasPseudo = false;
  #isBroken = false;

  /** What the peer sent, uncompressed. */
  get byteCount(): number {
    return this.#bytes;
  }

  get isTooLarge(): boolean {
    return this.#bytes > mostHeaderBytes || this.#count > mostFields;
  }

  /** Whether they may begin a request. */
  get isRequest(): boolean {
    if (this.#isBroken || this[':method'] === undefined) return false;
    const { ':path': path, ':scheme': scheme } = this;
    if (this[':method'] === 'CONNECT') return path === undefined && scheme === undefined;
    if (scheme === undefined || path === undefined) return false;
    return path.startsWith('/') || (path === '*' && this[':method'] === 'OPTIONS');
  }

  /** Whether they may end one. */
  get areTrailers(): boolean {
    return !this.#isBroken && !this.#hasPseudo;
  }

  take(field: Field): void {
    this.#bytes += field.bytes;
    this.#count++;
    // What is too much is still read for the sake of the table, but not kept.
    if (this.isTooLarge || this.#isBroken) return;
    const { role } = field;
    if (role === roles.malformed) this.#isBroken = true;
    else if (role === roles.pseudo) this.#takePseudo(field);
    else {
      this.#hasRegular = true;
      if (role === roles.length) this.#takeLength(field.value);
      else if (role === roles.kept) this.#keep(field);
    }
  }

  #takePseudo({ name, value }: Field): void {
    const pseudo = name as ':method' | ':scheme' | ':path' | ':authority';
    if (this.#hasRegular || this[pseudo] !== undefined) this.#isBroken = true;
    this.#hasPseudo = true;
    this[pseudo] = value;
  }

  #keep({ name, value }: Field): void {
    const kept = name as KeptName;
    const before = this[kept];
    // As HTTP joins what is sent several times.
    this[kept] = before === undefined ? value : `${before}, ${value}`;
  }

  #takeLength(value: string): void {
    const length = /^\d{1,15}$/.test(value) ? Number(value) : -1;
    const isOther = this.contentLength !== undefined && this.contentLength !== length;
    if (length === -1 || isOther) this.#isBroken = true;
    else this.contentLength = length;
  }
}
