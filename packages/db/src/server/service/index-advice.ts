import type { CollectionInfo } from '@millrace/engine/core/core';
import type { Condition, FieldTest } from '@millrace/engine/value/filter';
import type { IndexDefinition } from '@millrace/engine/format/entries';
import type { SortOrder } from '@millrace/engine/query/sort';
import type { PlanReport } from '@millrace/engine/query/source';

/** A slow query that has ended. */
export interface SlowQuery {
  collection: string;
  condition: Condition;
  order: SortOrder | undefined;
  plan: PlanReport;
  /** The filter and order, without values. */
  shape: string;
  /** Milliseconds since the epoch. */
  endedAt: number;
}

/** An index that would have served slow queries. */
export interface Advice {
  collection: string;
  fields: string[];
  /** `ci`: of text without its case. */
  collation: string;
  queryCount: number;
  totalMs: number;
  maxMs: number;
  rowsScanned: number;
  rowsReturned: number;
  filter: string;
  lastAt: number;
}

const maxEntries = 1_000;
const maxFields = 4;
/** An index that reads this many rows for each one returned is not selective. */
const poorRatio = 10;

/** Slow queries by the index they lacked, at most 1,000 kinds; the oldest is forgotten first. */
export class SlowQueryLog {
  readonly #entries = new Map<string, Advice>();

  record({ collection, condition, order, plan, shape, endedAt }: SlowQuery): void {
    if (!needsIndex(plan)) return;
    const sensitive = fieldsFor(condition, order);
    const isFolded = sensitive.length === 0;
    const fields = isFolded ? fieldsTested(condition, foldedTests).slice(0, 1) : sensitive;
    if (fields.length === 0) return;
    const collation = isFolded ? 'ci' : '';
    const key = JSON.stringify([collection, fields, collation]);
    const before = this.#entries.get(key);
    this.#entries.delete(key);
    this.#entries.set(key, {
      collection,
      fields,
      collation,
      queryCount: (before?.queryCount ?? 0) + 1,
      totalMs: (before?.totalMs ?? 0) + plan.elapsedMs,
      maxMs: Math.max(before?.maxMs ?? 0, plan.elapsedMs),
      rowsScanned: (before?.rowsScanned ?? 0) + plan.rowsScanned,
      rowsReturned: (before?.rowsReturned ?? 0) + plan.rowsReturned,
      filter: shape,
      lastAt: endedAt,
    });
    if (this.#entries.size > maxEntries) {
      this.#entries.delete(this.#entries.keys().next().value!);
    }
  }

  /** Without what an index of the collections serves by now; the longest time first. */
  advice(collections: readonly CollectionInfo[]): Advice[] {
    const byName = new Map(collections.map((each) => [each.name, each]));
    return [...this.#entries.values()]
      .filter((advice) => {
        const indexes = byName.get(advice.collection)?.indexes;
        return indexes && !indexes.some(({ definition }) => serves(definition, advice));
      })
      .sort((a, b) => b.totalMs - a.totalMs);
  }
}

/** An index of words or vectors or a partial one does not serve what an index of values would. */
function serves(index: IndexDefinition, { fields, collation }: Advice): boolean {
  if (index.kind !== undefined || index.where !== undefined) return false;
  if ((index.collation ?? '') !== collation) return false;
  return fields.every((field, i) => index.fields[i] === field);
}

function needsIndex(plan: PlanReport): boolean {
  // A search or vector index gives the hits; an index of values cannot be used beside it.
  if (/(?:search|vector):/.test(plan.index)) return false;
  const isPoor = plan.rowsScanned >= poorRatio * Math.max(1, plan.rowsReturned);
  return plan.fullScan || plan.sortedInMemory || isPoor;
}

const equalities: ReadonlySet<string> = new Set(['eq', 'in']);
const foldedTests: ReadonlySet<string> = new Set(['eqi', 'startsWithi']);
const ranges: ReadonlySet<string> = new Set(['gt', 'gte', 'lt', 'lte', 'between', 'prefix']);

/** Fields that are equal first, then those of the order or else one that is in a range. */
function fieldsFor(condition: Condition, order: SortOrder | undefined): string[] {
  const named = (ops: ReadonlySet<string>) => fieldsTested(condition, ops);
  const sorted = (order?.keys ?? []).map(({ path }) => path.text);
  const rest = sorted.length > 0 ? sorted : named(ranges).slice(0, 1);
  const fields = [...named(equalities), ...rest].filter((field) => !field.startsWith('$'));
  return [...new Set(fields)].slice(0, maxFields);
}

function fieldsTested(condition: Condition, ops: ReadonlySet<string>): string[] {
  return testsOf(condition)
    .filter(({ op }) => ops.has(op))
    .map(({ field }) => field.text);
}

/** The tests that every match passes. */
function testsOf(condition: Condition): FieldTest[] {
  if (condition.kind === 'test') return [condition];
  return condition.kind === 'and' ? condition.parts.flatMap(testsOf) : [];
}
