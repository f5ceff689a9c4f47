/** The points of a polyline that fills the box; the bottom is 0. */
export function sparklinePoints(values: readonly number[], width: number, height: number): string {
  const top = Math.max(...values, 1);
  const step = width / Math.max(values.length - 1, 1);
  // One pixel above and below, so that the line is not cut in half.
  const y = (value: number) => height - 1 - (value / top) * (height - 2);
  return values.map((value, index) => `${round(index * step)},${round(y(value))}`).join(' ');
}

const round = (value: number) => Math.round(value * 10) / 10;
