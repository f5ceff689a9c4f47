/** For people: `$12.50`, `$0.41`, and two digits that matter of what is less. */
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

/** Never 100 before it is. */
export function percent(value: number): string {
  const rounded = Math.round(value * 10) / 10;
  return `${rounded >= 100 && value < 100 ? 99.9 : rounded}%`;
}

/** Drawn with letters that every terminal has. A share above 0 shows, and only 1 looks full. */
export function bar(share: number, cells = 20): string {
  const full = Math.max(0, Math.min(1, share)) * cells;
  const filled = share >= 1 ? cells : Math.min(cells - 1, Math.ceil(full));
  return `${'#'.repeat(filled)}${'.'.repeat(cells - filled)}`;
}

/** The texts of a column of figures, all as long as the longest. */
export function alignedRight(texts: readonly string[]): string[] {
  const width = Math.max(...texts.map(({ length }) => length));
  return texts.map((text) => text.padStart(width));
}

function grouped(digits: string): string {
  return digits.replaceAll(/\B(?=(?:\d{3})+(?!\d))(?<!\.\d*)/g, ',');
}
