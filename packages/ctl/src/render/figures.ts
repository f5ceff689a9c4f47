import { widthOf } from './text.js';

let money: Intl.NumberFormat | undefined;

/** `$1,234.50`; amounts above 0 and below a cent are shown as such. */
export function dollars(usd: number): string {
  if (usd > 0 && usd < 0.005) return '<$0.01';
  money ??= new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });
  return money.format(usd);
}

/** Pads texts to one width, for a column of figures that are not plain numbers. */
export function rightAligned(texts: readonly string[]): string[] {
  const width = Math.max(0, ...texts.map(widthOf));
  return texts.map((text) => ' '.repeat(width - widthOf(text)) + text);
}

/** An ASCII bar. A share above 0 is never empty; only 1 is full. */
export function bar(share: number, cells = 20): string {
  const full = Math.max(0, Math.min(1, share)) * cells;
  const filled = share >= 1 ? cells : Math.min(cells - 1, Math.ceil(full));
  return `${'#'.repeat(filled)}${'.'.repeat(cells - filled)}`;
}

/** The same for a value and its maximum, rounded. */
export function barOf(value: number, top: number, cells: number): string {
  if (top <= 0 || value <= 0) return '.'.repeat(cells);
  const share = (Math.min(value, top) / top) * cells;
  const filled = value >= top ? cells : Math.max(1, Math.min(cells - 1, Math.round(share)));
  return `${'#'.repeat(filled)}${'.'.repeat(cells - filled)}`;
}

const bars = '▁▂▃▄▅▆▇█';

/** The last values as a row of bars, scaled to the maximum. A value above 0 is never drawn as 0. */
export function sparkline(values: readonly number[], width: number): string {
  const shown = values.slice(-width);
  const top = Math.max(0, ...shown);
  const steps = bars.length - 1;
  return shown
    .map((value) => {
      if (value <= 0 || top === 0) return bars[0]!;
      return bars[Math.max(1, Math.round((value / top) * steps))]!;
    })
    .join('');
}

/** `2026-01-14 10:12`, local time. */
export function localTime(timestamp: string): string {
  const at = new Date(timestamp);
  const wall = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return wall.toISOString().slice(0, 16).replace('T', ' ');
}
