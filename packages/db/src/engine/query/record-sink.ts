import type { JsonObject } from '../documents.js';
import type { RecordImage } from '../record.js';
import type { Projection } from './projection.js';

/** Takes the records of a find as they are met and gives them back batch by batch. */
export interface RecordSink<Records> {
  /** The image lies in place: it is valid only during the call. */
  add(image: RecordImage): void;
  /** All since the last time. */
  take(): Records;
}

export class FoundRecord {
  constructor(
    readonly image: RecordImage,
    /** The parts of the document that were asked for; undefined: all of it. */
    readonly parts: JsonObject | undefined,
  ) {}

  /** The document, or the parts of it that were asked for. */
  get data(): JsonObject {
    return this.parts ?? this.image.data;
  }
}

/** Keeps the records themselves. */
export class RecordList implements RecordSink<FoundRecord[]> {
  #kept: FoundRecord[] = [];

  constructor(private readonly project: Projection | undefined) {}

  add(image: RecordImage): void {
    const kept = image.keep();
    this.#kept.push(new FoundRecord(kept, this.project?.(kept.data)));
  }

  take(): FoundRecord[] {
    const taken = this.#kept;
    this.#kept = [];
    return taken;
  }
}
