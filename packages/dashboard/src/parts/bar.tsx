interface BarProps {
  /** What the bar measures and its value, for screen readers. */
  label: string;
  /** Null means unknown, which is not drawn as 0. */
  percent: number | null;
  tone?: 'warn' | 'bad' | undefined;
}

export function Bar({ label, percent, tone }: BarProps) {
  if (percent === null) return <span className="bar bar-unknown" role="img" aria-label={label} />;
  const width = `${Math.min(Math.max(percent, 0), 100)}%`;
  return (
    <span className="bar" role="img" aria-label={label}>
      <span className={tone ? `bar-fill bar-fill-${tone}` : 'bar-fill'} style={{ width }} />
    </span>
  );
}
