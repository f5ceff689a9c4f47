import type { Metrics } from '@millrace/kit/metrics';

const nothing = () => {};
const series = { inc: nothing, observe: nothing };
const family = { of: () => series, inc: nothing, observe: nothing };

/** Counts nothing: what a run counts is told by its journal. */
export const silentMetrics = {
  contentType: 'text/plain',
  counter: () => family,
  histogram: () => family,
  gauge: () => ({ set: nothing, remove: nothing }),
  text: () => Promise.resolve(''),
  close: nothing,
} as unknown as Metrics;
