import type { DaemonSchema } from '@millrace/contract/daemon';
import { expect, test } from 'vitest';
import { agentSeries, spaced } from './history.js';

const sample = (second: number, agents: object[] = []) =>
  ({ taken_at: new Date(second * 1000).toISOString(), agents }) as DaemonSchema<'Metrics'>;

test('spaced: a gap in the recording breaks the line', () => {
  const points = spaced({ step_s: 15, samples: [sample(0), sample(15), sample(600)] });
  expect(points.map(({ time, sample: found }) => [time, found !== undefined])).toEqual([
    [0, true],
    [15, true],
    [30, false],
    [600, true],
  ]);
});

test('agentSeries: the highest agents, with unique labels', () => {
  const agents = Array.from({ length: 9 }, (_, n) => ({ id: `agent-${n}`, rss: n * 10 }));
  const points = spaced({ step_s: 15, samples: [sample(0, agents), sample(15)] });
  const names = new Map([
    ['agent-8', 'twin'],
    ['agent-7', 'twin'],
  ]);
  const series = agentSeries(points, 'rss', names);
  expect(series.map(({ label }) => label).slice(0, 3)).toEqual(['twin', 'twin (2)', 'gent-6']);
  expect(series).toHaveLength(6);
  expect(series[0]!.values).toEqual([80, null]);
});

test('agentSeries: skips an agent without data', () => {
  const points = spaced({ step_s: 15, samples: [sample(0, [{ id: 'a', context_tokens: null }])] });
  expect(agentSeries(points, 'context_tokens', new Map())).toEqual([]);
});
