import { loadavg } from 'node:os';

/** Figures by measure and by contestant, several rounds of each. */
export class Results {
  #rows = new Map();

  add(measure, name, value) {
    const row = this.#rows.get(measure) ?? new Map();
    this.#rows.set(measure, row.set(name, [...(row.get(name) ?? []), value]));
  }

  /** The median of the rounds; undefined when there was none. */
  of(measure, name) {
    const values = this.#rows
      .get(measure)
      ?.get(name)
      ?.toSorted((a, b) => a - b);
    return values?.[Math.floor(values.length / 2)];
  }

  get measures() {
    return [...this.#rows.keys()];
  }

  table(names) {
    return this.measures.map((measure) => ({
      measure,
      ...Object.fromEntries(names.map((name) => [name, shown(this.of(measure, name))])),
    }));
  }
}

/** The value below which that share of the values lies; they are in ascending order. */
export function percentile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** The first lines of a results file: what ran, when and where. */
export function heading({ title, name, args, machine }) {
  const date = new Date().toISOString().slice(0, 10);
  return [
    `# ${title}`,
    '',
    'Written by the benchmark itself.',
    '',
    `- Command: \`${[`npm run bench -- ${name}`, ...args].join(' ')}\``,
    `- Date: ${date}; load average at the end ${loadavg()[0].toFixed(1)}`,
    `- Machine: ${machine}`,
  ];
}

export function atLeast(target, asked, value) {
  return verdict(target, `>= ${asked.toLocaleString('en')}`, value, value >= asked);
}

export function below(target, asked, value) {
  return verdict(target, `< ${asked.toLocaleString('en')}`, value, value < asked);
}

function verdict(target, asked, value, met) {
  if (value === undefined || Number.isNaN(value)) {
    return { target, asked, measured: '-', verdict: '-' };
  }
  return { target, asked, measured: shown(value), verdict: met ? 'met' : 'MISSED' };
}

function shown(value) {
  if (value === undefined) return '-';
  return value < 100 ? value.toPrecision(3) : Math.round(value).toLocaleString('en');
}

/** A table of Markdown. */
export function markdown(rows) {
  const names = Object.keys(rows[0]);
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [
    line(names),
    line(names.map((_, i) => (i === 0 ? '---' : '---:'))),
    ...rows.map((row) => line(names.map((name) => row[name]))),
  ].join('\n');
}
