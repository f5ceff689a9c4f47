import type { JsonObject } from '../value/documents.js';
import type { RecordImage } from '../format/record.js';
import type { Projection } from './projection.js';

/** Receives the records of a find one by one and returns them in batches. */
export interface RecordSink<Records> {
  /** The image is read in place: it is valid only during the call. */
  add(image: RecordImage): void;
  /** The records since the last call. */
  take(): Records;
}

export class FoundRecord {
  constructor(
    readonly image: RecordImage,
    /** The requested parts of the document; undefined: all of it. */
    readonly parts: JsonObject | undefined,
  ) {}

  /** The document, or its requested parts. */
  get data(): JsonObject {
    return this.parts ?? this.image.data;
  }
}

/** Keeps the records themselves. */
export class RecordList implements RecordSink<FoundRecord[]> {
  #records: FoundRecord[] = [];

  constructor(private readonly project: Projection | undefined) {}

  add(image: RecordImage): void {
    const copy = image.keep();
    this.#records.push(new FoundRecord(copy, this.project?.(copy.data)));
  }

  take(): FoundRecord[] {
    const taken = this.#records;
    this.#records = [];
    return taken;
  }
}
