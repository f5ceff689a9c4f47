import { useNow } from './clock.js';
import { exact, relative, unknown } from './format.js';

/** A time as `5 min ago`, with the exact time as its title. */
export function Time({ at }: { at: string | number | null | undefined }) {
  const now = useNow();
  const moment = at === null || at === undefined ? Number.NaN : new Date(at).getTime();
  if (Number.isNaN(moment)) return <span className="muted">{unknown}</span>;
  return (
    <time dateTime={new Date(moment).toISOString()} title={exact(moment)}>
      {relative(moment, now)}
    </time>
  );
}
