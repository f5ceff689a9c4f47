import type { DataPath, IsOpen, ValueAt } from './typed-query.js';

/** Paths into T that an update may write, to depth 3. */
type Written<T> = [T] extends [never] ? string : IsOpen<T> extends true ? string : DataPath<T, 3>;

/** The value at a path; anything where T does not say. */
type At<T, P extends string> = [T] extends [never]
  ? unknown
  : IsOpen<T> extends true
    ? unknown
    : ValueAt<T, P>;

type IsOf<V, Kind> = unknown extends V ? true : [Extract<V, Kind>] extends [never] ? false : true;

/** Paths whose value is, or may be, of a kind. */
type PathsOf<T, Kind> = {
  [P in Written<T>]: IsOf<At<T, P>, Kind> extends true ? P : never;
}[Written<T>];

type ItemOf<V> = unknown extends V ? unknown : V extends readonly (infer Item)[] ? Item : never;

/** Several values to add, in place of one. */
interface Each<Item> {
  each: readonly Item[];
}

interface Pushed<Item> extends Each<Item> {
  /** Number of elements to keep from the start; below zero, from the end. */
  slice?: number | undefined;
  /** Sorts the array, by its elements or by fields of them. */
  sort?: 1 | -1 | { readonly [field: string]: 1 | -1 } | undefined;
}

/**
 * Operators that change parts of a document: `{ $inc: { n: 1 }, $push: { tags: 'x' } }`. No two may
 * write the same path, or a path and one inside it.
 */
export interface Update<T = never> {
  $set?: { readonly [P in Written<T>]?: At<T, P> } | undefined;
  $unset?: { readonly [P in Written<T>]?: true } | readonly Written<T>[] | undefined;
  /** Adds; a missing field counts as 0. Refuses TYPE_MISMATCH for other values. */
  $inc?: { readonly [P in PathsOf<T, number>]?: number } | undefined;
  /** Multiplies; a missing field becomes 0. */
  $mul?: { readonly [P in PathsOf<T, number>]?: number } | undefined;
  $min?: { readonly [P in Written<T>]?: At<T, P> } | undefined;
  $max?: { readonly [P in Written<T>]?: At<T, P> } | undefined;
  $push?:
    | {
        readonly [P in PathsOf<T, readonly unknown[]>]?:
          ItemOf<At<T, P>> | Pushed<ItemOf<At<T, P>>>;
      }
    | undefined;
  /** Adds what is not there yet. */
  $addToSet?:
    | { readonly [P in PathsOf<T, readonly unknown[]>]?: ItemOf<At<T, P>> | Each<ItemOf<At<T, P>>> }
    | undefined;
  /** Removes elements that equal a value, or that match a condition as in filters. */
  $pull?: { readonly [P in PathsOf<T, readonly unknown[]>]?: unknown } | undefined;
  /** Moves the value of a path to another. */
  $rename?: { readonly [P in Written<T>]?: string } | undefined;
  /** Writes the time of the commit as RFC 3339. */
  $currentDate?: { readonly [P in PathsOf<T, string>]?: true } | undefined;
}
