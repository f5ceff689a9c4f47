import { headerBlock } from './http2/header-block.js';

/** Header fields with their encoded HPACK block. */
export class HeaderList {
  #block: Buffer | undefined;

  constructor(readonly fields: Readonly<Record<string, string>>) {}

  /** A header block without dynamic table entries, valid on every connection. */
  get block(): Buffer {
    return (this.#block ??= headerBlock(this.fields));
  }
}
