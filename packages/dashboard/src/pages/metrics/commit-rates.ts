export interface CommitSample {
  /** Unix seconds. */
  time: number;
  seq: number;
  records: number;
}

/** An hour of samples at one in five seconds. */
const maxSamples = 720;
const maxGapSeconds = 60;

/** Adds a sample; one that repeats the time of the last is dropped. */
export function withSample(
  samples: readonly CommitSample[],
  sample: CommitSample,
): readonly CommitSample[] {
  if (samples.at(-1)?.time === sample.time) return samples;
  return [...samples, sample].slice(-maxSamples);
}

/**
 * Commits per second up to each sample; null for the first one, after a gap, and after a restore,
 * which takes the sequence back.
 */
export function commitRates(samples: readonly CommitSample[]): (number | null)[] {
  return samples.map(({ time, seq }, index) => {
    const before = samples[index - 1];
    if (!before || time - before.time > maxGapSeconds || seq < before.seq) return null;
    return (seq - before.seq) / (time - before.time);
  });
}
