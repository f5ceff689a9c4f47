/** `$12.50`, `$0.41`, and two significant digits for less. */
export function dollars(amount: number): string {
  const sign = amount < 0 ? '-' : '';
  const size = Math.abs(amount);
  if (size > 0 && size < 0.0001) return `${sign}<$0.0001`;
  const text = size === 0 || size >= 0.1 ? grouped(size.toFixed(2)) : size.toPrecision(2);
  return `${sign}$${text}`;
}

/** `81,000`. */
export function exact(count: number): string {
  return grouped(String(count));
}

/** Rounds, but shows 100 only for exactly 100. */
export function percent(value: number): string {
  const rounded = Math.round(value * 10) / 10;
  return `${rounded >= 100 && value < 100 ? 99.9 : rounded}%`;
}

/** An ASCII bar. A share above 0 is never empty; only 1 is full. */
export function bar(share: number, cells = 20): string {
  const full = Math.max(0, Math.min(1, share)) * cells;
  const filled = share >= 1 ? cells : Math.min(cells - 1, Math.ceil(full));
  return `${'#'.repeat(filled)}${'.'.repeat(cells - filled)}`;
}

/** Pads the texts of a column to one width. */
export function alignedRight(texts: readonly string[]): string[] {
  const width = Math.max(...texts.map(({ length }) => length));
  return texts.map((text) => text.padStart(width));
}

function grouped(digits: string): string {
  return digits.replaceAll(/\B(?=(?:\d{3})+(?!\d))(?<!\.\d*)/g, ',');
}
