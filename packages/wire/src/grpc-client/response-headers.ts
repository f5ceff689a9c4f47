import type { Field } from '../http2/field.js';
import type { FieldSink } from '../http2/hpack-decoder.js';

/** Decoded size up to which a header list is accepted. */
export const maxResponseHeaderBytes = 64 * 1024;

/** The response headers or trailers that a client reads. */
export class ResponseHeaders implements FieldSink {
  ':status': string | undefined = undefined;
  'grpc-status': string | undefined = undefined;
  'grpc-message': string | undefined = undefined;
  'grpc-status-details-bin': string | undefined = undefined;
  #bytes = 0;

  get isTooLarge(): boolean {
    return this.#bytes > maxResponseHeaderBytes;
  }

  take({ name, value, bytes }: Field): void {
    this.#bytes += bytes;
    if (this.isTooLarge) return;
    switch (name) {
      case ':status':
      case 'grpc-status':
      case 'grpc-message':
      case 'grpc-status-details-bin':
        this[name] = value;
    }
  }
}
