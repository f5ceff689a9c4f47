import { useQuery } from '@tanstack/react-query';
import { queueQueries } from '../../queue/api.js';
import { sparklinePoints } from './sparkline-points.js';

const [width, height] = [96, 20];

/** Pending tasks of the last hour; the virtual table mounts it for visible rows only. */
export function Sparkline({ queue }: { queue: string }) {
  const { data } = useQuery({
    ...queueQueries.metrics(queue, '1h', '1m'),
    refetchInterval: 60_000,
    staleTime: 30_000,
  });
  const values = data?.points.flatMap(({ pending }) => pending ?? []) ?? [];
  if (values.length < 2) return null;
  const label = `Pending in the last hour: ${Math.min(...values)} to ${Math.max(...values)}`;
  return (
    <svg className="sparkline" width={width} height={height} role="img" aria-label={label}>
      <polyline points={sparklinePoints(values, width, height)} />
    </svg>
  );
}
