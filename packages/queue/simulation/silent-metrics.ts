import type { Metrics } from '@millrace/kit/metrics';

const nothing = () => {};
const series = { inc: nothing, observe: nothing };
const family = { of: () => series, inc: nothing, observe: nothing };

/** Counts nothing: the journal of a run has the numbers. */
export const silentMetrics = {
  contentType: 'text/plain',
  counter: () => family,
  histogram: () => family,
  gauge: () => ({ set: nothing, remove: nothing }),
  text: () => Promise.resolve(''),
  close: nothing,
} as unknown as Metrics;
