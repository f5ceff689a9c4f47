const key = Symbol('cached');

interface Cached {
  readonly variant: unknown;
  readonly value: unknown;
  readonly next: Cached | undefined;
}

/**
 * Computes a value from an object that several streams share, and caches it on the object. A
 * WeakMap would move the values to the old generation, where they outlive the object. `variant`
 * distinguishes several values of one object.
 */
export function computeOnce<Source extends object, Value, Variant = unknown>(
  source: Source,
  compute: (source: Source, variant: Variant) => Value,
  variant: Variant = compute as Variant,
): Value {
  const target = source as { [key]?: Cached };
  for (let cached = target[key]; cached; cached = cached.next) {
    if (cached.variant === variant) return cached.value as Value;
  }
  const value = compute(source, variant);
  // Not enumerable, so that a copy of the object does not inherit the value.
  const cached: Cached = { variant, value, next: target[key] };
  Object.defineProperty(target, key, { value: cached, configurable: true });
  return value;
}
