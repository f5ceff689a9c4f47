import type { Json, JsonObject } from '../value/documents.js';
import { refuse } from '../value/refusal.js';
import { compileAccumulator, valueOf, type Gathered, type GatheredMaker } from './accumulators.js';
import type { CheckedAggregate, Column } from './aggregate-query.js';
import { compareValues } from '../value/order.js';
import type { Path, Row } from '../value/path.js';
import { planQuery } from './plan.js';
import { compilePredicate, compileWith, type Predicate } from './predicate.js';
import { sortInSlices } from './merge-sort.js';
import { reportOf, visitAll, type PlanReport, type QuerySource } from './source.js';
import { canonicalText } from './values.js';

export interface AggregateGroup {
  /** Value by path of `groupBy`; null also for records that lack the field. */
  readonly key: JsonObject;
  /** How many records it has. */
  readonly count: number;
  /** The computed values by accumulator name. */
  readonly values: JsonObject;
}

export interface AggregateResult {
  readonly groups: AggregateGroup[];
  readonly plan: PlanReport;
}

const maxGroups = 100_000;

interface Group {
  key: Json[];
  count: number;
  gathered: Gathered[];
}

/** Group fields, then accumulators, then the number of records. */
type Columns = Json[];

/** Groups records and computes over them. */
export async function aggregate(
  source: QuerySource,
  query: CheckedAggregate,
): Promise<AggregateResult> {
  const { slice } = source;
  slice.enter();
  const plan = planQuery(query.condition, { keys: [], idDesc: false }, source.collection.indexes);
  const matches = compilePredicate(query.condition);
  const groups = new Groups(query);
  const rows = await visitAll(source, plan, (image) => {
    if (matches(image)) groups.add(image);
    return false;
  });
  const isWanted = compileWith(query.having, anyColumn);
  const wanted: Columns[] = [];
  for (const group of groups.all()) {
    const columns = columnsOf(group);
    if (isWanted(columns)) wanted.push(columns);
    if (slice.spend(0)) await slice.pause();
  }
  const sorted = await sortInSlices(wanted, orderOf(query), slice);
  const answer: AggregateGroup[] = [];
  for (const columns of sorted) {
    if (answer.length === query.limit) break;
    answer.push(toGroup(query, columns));
    if (slice.spend(0)) await slice.pause();
  }
  const report = { ...reportOf(plan, rows, answer.length, slice), sortedInMemory: true };
  return { groups: answer, plan: report };
}

function columnsOf({ key, gathered, count }: Group): Columns {
  return [...key, ...gathered.map((each) => each.result()), count];
}

function anyColumn(column: Column, test: (value: Json) => boolean): Predicate<Columns> {
  return (columns) => test(columns[column.at]!);
}

/** As asked, and by group where that leaves it open. */
function orderOf(query: CheckedAggregate): (a: Columns, b: Columns) => number {
  const steps = query.order.map(({ column, desc }) => ({ at: column.at, sign: desc ? -1 : 1 }));
  for (let at = 0; at < query.groupBy.length; at++) steps.push({ at, sign: 1 });
  return (a, b) => {
    for (const { at, sign } of steps) {
      const order = compareValues(a[at], b[at]);
      if (order !== 0) return order * sign;
    }
    return 0;
  };
}

function toGroup({ groupBy, accumulators }: CheckedAggregate, columns: Columns): AggregateGroup {
  const named = (names: readonly string[], from: number): JsonObject =>
    Object.fromEntries(names.map((name, i) => [name, columns[from + i]!]));
  return {
    key: named(
      groupBy.map((path) => path.text),
      0,
    ),
    count: columns.at(-1) as number,
    values: named(
      accumulators.map(({ name }) => name),
      groupBy.length,
    ),
  };
}

class Groups {
  readonly #reads: ((row: Row) => Json | undefined)[];
  readonly #makers: GatheredMaker[];
  /** By value while one field makes the group and it is plain; else by text. */
  readonly #byValue = new Map<Json, Group>();
  readonly #byText = new Map<string, Group>();

  constructor(query: CheckedAggregate) {
    this.#reads = query.groupBy.map((path: Path) => valueOf(path));
    this.#makers = query.accumulators.map(compileAccumulator);
    // Over nothing at all there is one group too.
    if (this.#reads.length === 0) this.#byText.set('[]', this.#make([]));
  }

  add(row: Row): void {
    const group = this.#reads.length === 1 ? this.#single(row) : this.#compound(row);
    group.count++;
    for (const each of group.gathered) each.add(row);
  }

  all(): Group[] {
    return [...this.#byValue.values(), ...this.#byText.values()];
  }

  #single(row: Row): Group {
    const value = this.#reads[0]!(row) ?? null;
    if (typeof value === 'object' && value !== null) return this.#textGroup([value]);
    let group = this.#byValue.get(value);
    if (!group) this.#byValue.set(value, (group = this.#make([value])));
    return group;
  }

  #compound(row: Row): Group {
    return this.#textGroup(this.#reads.map((read) => read(row) ?? null));
  }

  #textGroup(key: Json[]): Group {
    const text = canonicalText(key);
    let group = this.#byText.get(text);
    if (!group) this.#byText.set(text, (group = this.#make(key)));
    return group;
  }

  #make(key: Json[]): Group {
    if (this.#byValue.size + this.#byText.size >= maxGroups) throw tooManyGroups();
    return { key, count: 0, gathered: this.#makers.map((make) => make()) };
  }
}

function tooManyGroups(): Error {
  const limit = String(maxGroups);
  const text = `There are more than ${limit} groups; narrow the filter or group by less.`;
  return refuse('GROUP_LIMIT', text, { limit });
}
