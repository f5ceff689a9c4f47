import { headerBlock } from './http2/header-block.js';

/** Header fields, and how HTTP/2 writes them. */
export class HeaderList {
  #block: Buffer | undefined;

  constructor(readonly fields: Readonly<Record<string, string>>) {}

  /** A header block that means the same on every connection. */
  get block(): Buffer {
    return (this.#block ??= headerBlock(this.fields));
  }
}
