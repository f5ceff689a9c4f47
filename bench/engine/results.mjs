/** What was measured: for each measure and engine, one value per round. */
export class Results {
  #values = new Map();

  add(measure, engine, value) {
    if (!Number.isFinite(value)) throw new Error(`${engine}, ${measure}: measured ${value}`);
    const byEngine = this.#values.get(measure) ?? new Map();
    this.#values.set(measure, byEngine);
    byEngine.set(engine, [...(byEngine.get(engine) ?? []), value]);
  }

  median(measure, engine) {
    return medianOf(this.#values.get(measure)?.get(engine) ?? []);
  }

  /** Ours to a peer's, round by round: a busy moment of the machine falls on both alike. */
  ratio(measure, peer) {
    const ours = this.#values.get(measure)?.get('millrace') ?? [];
    const theirs = this.#values.get(measure)?.get(peer) ?? [];
    const pairs = Math.min(ours.length, theirs.length);
    return medianOf(Array.from({ length: pairs }, (_, i) => ours[i] / theirs[i]));
  }

  /** A row of a table: the engines' values, then the ratios. */
  row(title, measure, engines) {
    const row = { measure: title };
    for (const engine of engines) row[engine] = shown(this.median(measure, engine));
    for (const engine of engines) {
      if (engine === 'millrace') continue;
      const ratio = this.ratio(measure, engine);
      row[`/ ${engine}`] = ratio === undefined ? '-' : ratio.toFixed(2);
    }
    return row;
  }

  has(measure) {
    return this.#values.has(measure);
  }
}

export const tables = [
  {
    title: 'Single durable writes, per second',
    rows: [
      ['1 caller', 'writes/plain/1'],
      ['64 callers', 'writes/plain/64'],
      ['512 callers', 'writes/plain/512'],
      ['1 caller, three indexes', 'writes/indexed/1'],
      ['64 callers, three indexes', 'writes/indexed/64'],
      ['512 callers, three indexes', 'writes/indexed/512'],
      ['queue-like: tasks claimed and completed', 'queue'],
    ],
  },
  {
    title: 'The large database, per second',
    rows: [
      ['bulk load, records', 'bulk'],
      ['index build, records', 'indexBuild'],
      ['point reads by id', 'pointReads'],
      ['finds of 100 by an index', 'finds'],
      ['full filter, records', 'filter'],
      ['aggregate, records', 'aggregate'],
    ],
  },
  {
    title: 'Processor time for each, microseconds (less is better)',
    rows: [
      ['single write, 64 callers', 'cpu/writes/plain/64'],
      ['single write, 64 callers, three indexes', 'cpu/writes/indexed/64'],
      ['task claimed and completed', 'cpu/queue'],
      ['record of a bulk load', 'cpu/bulk'],
      ['point read', 'cpu/pointReads'],
      ['find of 100', 'cpu/finds'],
      ['record of a full filter', 'cpu/filter'],
      ['record of an aggregate', 'cpu/aggregate'],
    ],
  },
  {
    title: 'What it takes (less is better)',
    rows: [
      ['event loop p99 at 512 callers, ms', 'loop/plain'],
      ['the same with three indexes, ms', 'loop/indexed'],
      ['opening the large database, ms', 'open'],
      ['JS heap with it open, MB', 'heap'],
      ['resident memory with it open, MB', 'rss'],
    ],
  },
];

/** The tables that have something to show. */
export function tablesOf(results, engines) {
  return tables
    .map(({ title, rows }) => ({
      title,
      rows: rows
        .filter(([, measure]) => results.has(measure))
        .map(([name, measure]) => results.row(name, measure, engines)),
    }))
    .filter(({ rows }) => rows.length > 0);
}

function medianOf(list) {
  if (list.length === 0) return undefined;
  const sorted = list.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.floor(middle)] + sorted[Math.ceil(middle) - 1]) / 2;
}

function shown(value) {
  if (value === undefined) return '-';
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(value < 10 ? 2 : 1);
}
