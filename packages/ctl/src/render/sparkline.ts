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
