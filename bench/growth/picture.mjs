const width = 640;
const height = 360;
const margin = { left: 60, right: 150, top: 20, bottom: 40 };
const colors = ['#2563eb', '#dc2626', '#059669', '#9333ea'];

/** Lines over logarithmic axes as SVG: a cost that grows with log n is nearly flat. */
export function drawLines({ title, xLabel, series }) {
  const points = series.flatMap(({ points: each }) => each);
  const x = logScale(
    points.map(([value]) => value),
    margin.left,
    width - margin.right,
  );
  const y = logScale(
    points.map(([, value]) => value),
    height - margin.bottom,
    margin.top,
  );
  const lines = series.map(({ name, points: each }, i) => {
    const path = each.map(([px, py]) => `${x(px)},${y(py)}`).join(' ');
    const [, last] = each.at(-1);
    const labelAt = `x="${width - margin.right + 8}" y="${y(last)}"`;
    return `<polyline fill="none" stroke="${colors[i]}" stroke-width="2" points="${path}"/>
<text ${labelAt} fill="${colors[i]}">${name}: ${last.toPrecision(3)} µs</text>`;
  });
  const ticks = [...new Set(points.map(([value]) => value))].map(
    (value) =>
      `<text x="${x(value)}" y="${height - 20}" text-anchor="middle">${value.toLocaleString('en')}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<title>${title}</title>
<rect width="100%" height="100%" fill="#fff"/>
${[...lines, ...ticks].join('\n')}
<text x="${margin.left}" y="${height - 5}">${xLabel}</text>
</svg>
`;
}

function logScale(values, from, to) {
  const [low, high] = [Math.log(Math.min(...values)), Math.log(Math.max(...values))];
  return (value) => {
    const share = high === low ? 0.5 : (Math.log(value) - low) / (high - low);
    return Number((from + share * (to - from)).toFixed(1));
  };
}
