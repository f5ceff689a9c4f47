import { isFieldName } from '../value/documents.js';
import { nameHash } from './content-hash.js';

/** The field names of an object, in their order. */
export interface Shape {
  readonly number: number;
  readonly names: readonly string[];
  /** Hashes of the names, for the content hash. */
  readonly hashes: readonly number[];
}

/** Enough for the collections of one database; objects of rarer shapes carry their field names. */
const maxShapes = 256;
/** An object with more fields is a dictionary, whose names hardly ever repeat. */
const maxShapeNames = 128;

/**
 * The shapes of the objects in a database, by number. A stored object has the number of its shape
 * instead of its field names, so a shape must be on disk in or before the commit that uses it.
 */
export class Shapes {
  /** Field names by number. */
  readonly names: (readonly string[])[] = [];
  readonly #byFirstName = new Map<string, Shape[]>();
  #savedCount = 0;

  constructor(stored: readonly (readonly string[])[]) {
    for (const names of stored) this.#add(names);
    this.#savedCount = this.names.length;
  }

  /** Whether there are shapes that are not stored yet. */
  get hasNew(): boolean {
    return this.#savedCount < this.names.length;
  }

  /** The shape with these names; a new one if needed and allowed. */
  of(names: readonly string[]): Shape | undefined {
    const candidates = this.#byFirstName.get(names[0] ?? '');
    if (candidates) {
      for (let i = 0; i < candidates.length; i++) {
        const shape = candidates[i]!;
        if (!isSame(shape.names, names)) continue;
        if (i > 0) {
          candidates[i] = candidates[0]!;
          candidates[0] = shape;
        }
        return shape;
      }
    }
    if (this.names.length >= maxShapes || names.length > maxShapeNames) return undefined;
    return names.every(isFieldName) ? this.#add(names) : undefined;
  }

  markSaved(): void {
    this.#savedCount = this.names.length;
  }

  /** Discards the shapes that are not stored yet. */
  discardNew(): void {
    for (const names of this.names.splice(this.#savedCount)) {
      const first = names[0] ?? '';
      const others = this.#byFirstName.get(first)!.filter((shape) => shape.names !== names);
      this.#byFirstName.set(first, others);
    }
  }

  #add(names: readonly string[]): Shape {
    const shape = { number: this.names.length, names, hashes: names.map(nameHash) };
    this.names.push(names);
    const first = names[0] ?? '';
    const same = this.#byFirstName.get(first);
    if (same) same.push(shape);
    else this.#byFirstName.set(first, [shape]);
    return shape;
  }
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
