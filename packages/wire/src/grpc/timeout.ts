const unitsMs: Record<string, number> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Milliseconds of a `grpc-timeout`; undefined when it is not valid. */
export function timeoutMsOf(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return unit === undefined ? undefined : Number(digits) * unitsMs[unit]!;
}
