import type { Json } from '../value/documents.js';
import type { AggregateQuery as PlainAggregateQuery } from './aggregate-query.js';
import type { FilterOp } from '../value/plain-query.js';
import type { Lookup, NearQuery, SearchQuery } from './query.js';
import type { OrderBy } from './sort.js';

/** The fields that every record has beside its data. */
type OwnPath = '$id' | '$key' | '$rev' | '$seq' | '$created_at' | '$updated_at' | '$expires_at';

/** One level less; paths end at three. */
type Less = [never, 0, 1, 2];
export type IsOpen<T> = unknown extends T ? true : string extends keyof T ? true : false;

export type DataPath<T, Depth extends number> = T extends object
  ? { [K in keyof T & string]-?: K | PathBelow<NonNullable<T[K]>, K, Less[Depth]> }[keyof T &
      string]
  : never;

type PathBelow<V, K extends string, Depth extends number> = [Depth] extends [never]
  ? never
  : Depth extends 0
    ? never
    : IsOpen<V> extends true
      ? `${K}.${string}`
      : V extends readonly (infer Item)[]
        ? | `${K}.${number}`
          | `${K}.${DataPath<NonNullable<Item>, Depth>}`
          | `${K}.${number}.${DataPath<NonNullable<Item>, Depth>}`
        : V extends object
          ? `${K}.${DataPath<V, Depth>}`
          : never;

/** Dotted paths into T, to depth 3, and the record's own fields. */
export type Path<T> = [T] extends [never]
  ? string
  : IsOpen<T> extends true
    ? string
    : DataPath<T, 3> | OwnPath;

/** The type of the value at a path. */
export type ValueAt<T, P extends string> = P extends '$rev' | '$seq'
  ? number
  : P extends OwnPath
    ? string
    : ValueIn<T, P>;

type ValueIn<T, P extends string> = unknown extends T
  ? unknown
  : T extends readonly (infer Item)[]
    ? P extends `${number}`
      ? Exclude<Item, undefined>
      : P extends `${number}.${infer Rest}`
        ? ValueIn<NonNullable<Item>, Rest>
        : ValueIn<NonNullable<Item>, P>
    : T extends object
      ? P extends keyof T
        ? Exclude<T[P], undefined>
        : P extends `${infer Head}.${infer Rest}`
          ? Head extends keyof T
            ? ValueIn<NonNullable<T[Head]>, Rest>
            : never
          : never
      : never;

type TextOf<V> = unknown extends V ? string : Extract<V, string> extends never ? never : string;
type ContainedIn<V> = unknown extends V
  ? unknown
  : V extends readonly (infer Item)[]
    ? Item
    : V extends string
      ? string
      : never;

/** A Date is compared with times that are stored as text. */
type Compared<V> = string extends V ? V | Date : V;

interface Operators<V> {
  eq: Compared<V>;
  ne: Compared<V>;
  gt: Compared<V>;
  gte: Compared<V>;
  lt: Compared<V>;
  lte: Compared<V>;
  in: readonly Compared<V>[];
  nin: readonly Compared<V>[];
  between: readonly [Compared<V>, Compared<V>];
  exists: boolean;
  /** A part of a string, or an element of an array. */
  contains: ContainedIn<V>;
  prefix: TextOf<V>;
  /** RE2 syntax. */
  regex: TextOf<V>;
  /** Equal without regard to case. An index with `collation: 'ci'` serves it. */
  eqi: TextOf<V>;
  /** Begins with a text, without regard to case. An index with `collation: 'ci'` serves it. */
  startsWithi: TextOf<V>;
  /** One element passes all of these: a filter on its fields, or operators on a plain element. */
  elemMatch: ArrayOf<V, { readonly [name: string]: unknown }>;
  /** An array with all of these elements. */
  all: ArrayOf<V, readonly ContainedIn<V>[]>;
  /** An array of this length. */
  size: ArrayOf<V, number>;
  type: 'null' | 'boolean' | 'number' | 'text' | 'array' | 'object';
}

type ArrayOf<V, Operand> = unknown extends V
  ? Operand
  : Extract<V, readonly unknown[]> extends never
    ? never
    : Operand;

type AtLeastOne<O> = { [K in keyof O]: Pick<O, K> & Partial<Omit<O, K>> }[keyof O];

/** Objects are compared with `{eq: ...}`; everything else also by the value alone. */
type PlainValue<V> = unknown extends V
  ? unknown
  : V extends readonly unknown[]
    ? V
    : V extends object
      ? never
      : Compared<V>;

type Test<V> = PlainValue<V> | AtLeastOne<Operators<V>>;

type FilterGroups<T> = {
  and?: readonly Filter<T>[] | undefined;
  or?: readonly Filter<T>[] | undefined;
  not?: Filter<T> | undefined;
};

/** A condition on one field, which may be deeper than the typed paths. */
export type FieldCondition<T> = FilterGroups<T> & { field: Path<T> | (string & {}) } & (
    { op: 'exists'; value?: boolean | undefined } | { op: Exclude<FilterOp, 'exists'>; value: Json }
  );

type Reserved = 'field' | 'op' | 'and' | 'or' | 'not';

/** Conditions by path: `{ age: { gt: 30 }, 'address.city': 'Bern' }`. All must hold. */
export type ObjectFilter<T> = FilterGroups<T> & { field?: never; op?: never } & ByPath<T>;

type ByPath<T> = [T] extends [never]
  ? {}
  : IsOpen<T> extends true
    ? { readonly [path: string]: unknown }
    : { readonly [P in Exclude<Path<T>, Reserved>]?: Test<ValueAt<T, P>> };

/**
 * Which records: an object by path, or `{field, op, value}`, or `and`, `or`, `not` over filters. A
 * document's own fields named field, op, and, or, not need the second form. Untyped
 * collections accept only the forms that every collection has.
 */
export type Filter<T = never> = FieldCondition<T> | ObjectFilter<T>;

/** `{ age: 'desc', name: 'asc' }`, or a list of steps. */
export type Order<T = never> = readonly OrderBy[] | { readonly [P in Path<T>]?: 'asc' | 'desc' };

/** Without `F` a query of a typed collection has no `fields`: its result is all of T. */
type DefaultFields<T> = [T] extends [never] ? string : never;

/** A query for the first match. */
export interface FindOneQuery<T = never, F extends string = DefaultFields<T>> {
  /** Which records. Default: all. */
  filter?: Filter<T> | undefined;
  /** The id is always the last tie-break. Default: by id. */
  orderBy?: Order<T> | undefined;
  /** Number of matching records to skip. Not skipped again after a cursor. */
  skip?: number | undefined;
  /** `nextCursor` of the previous page, with the same filter and order. */
  cursor?: string | undefined;
  /** Dotted paths of the fields of `data` to return. Default: all. */
  fields?: readonly F[] | undefined;
  /** Dotted paths of the fields of `data` to leave out, in place of `fields`. */
  projection?: { exclude: readonly Path<T>[] } | undefined;
  explain?: boolean | undefined;
  /** Only counts the matches, regardless of limit, skip and cursor. */
  countOnly?: boolean | undefined;
  /** False: refuse a query that no index serves. */
  allowFullScan?: boolean | undefined;
}

export interface FindQuery<T = never, F extends string = DefaultFields<T>> extends FindOneQuery<
  T,
  F
> {
  /** Maximum number of records. 0 or absent: all on a stream, 100 on a page. */
  limit?: number | undefined;
  /** Words to find, best hits first: at most 1,000. Needs a search index. */
  search?: string | SearchQuery | undefined;
  /** The nearest vectors, best first. Needs a vector index; with `search`, by reciprocal rank. */
  near?: NearQuery | undefined;
  /** The same as `skip`. */
  offset?: number | undefined;
  /** Joins records of other collections: their documents are an array at `as` in the data. */
  lookup?: Lookup | readonly Lookup[] | undefined;
}

type Head<F extends string> = F extends `${infer First}.${string}` ? First : F;
type Tail<F extends string, K extends string> = F extends `${K}.${infer Rest}` ? Rest : never;

type Part<V, F extends string> = V extends readonly (infer Item)[]
  ? Part<Item, F extends `${number}.${infer Rest}` ? Rest : F>[]
  : V extends object
    ? IsOpen<V> extends true
      ? V
      : { [K in keyof V as K extends Head<F> ? K : never]: PartAt<V, K, F> }
    : V;

type PartAt<V, K extends keyof V, F extends string> = K extends F
  ? V[K]
  : Part<V[K], Tail<F, K & string>>;

/** T with only the given paths. No paths: all of T. */
export type Projected<T, F extends string> = [F] extends [never]
  ? T
  : IsOpen<T> extends true
    ? T
    : string extends F
      ? T
      : [Exclude<F, OwnPath>] extends [keyof T]
        ? Pick<T, Exclude<F, OwnPath> & keyof T>
        : Part<T, Exclude<F, OwnPath>>;

/** The type of the values of `distinct`: of an array its elements. */
export type DistinctValue<T, P extends string> =
  ValueAt<T, P> extends readonly (infer Item)[] ? Item : ValueAt<T, P>;

/** What to compute over groups of records. */
export interface AggregateQuery<T = never> extends Omit<
  PlainAggregateQuery,
  'filter' | 'having' | 'orderBy'
> {
  /** Which records. Default: all. */
  filter?: Filter<T> | undefined;
  /** Which groups to return. Its fields name accumulators or group fields. */
  having?: Filter<Record<string, unknown>> | undefined;
  /** By accumulators or group fields. Default: by group. */
  orderBy?: Order<Record<string, unknown>> | undefined;
}

/** A query whose result is kept up to date. */
export interface LiveQuery<T = never> extends Pick<FindQuery<T>, 'filter' | 'orderBy' | 'limit'> {
  /** Ends the query without an error. */
  signal?: AbortSignal | undefined;
}
