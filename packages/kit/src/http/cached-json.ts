/**
 * A body whose JSON is serialized once, for responses that many clients get before they change. Do
 * not modify the value.
 */
export class CachedJson<Body> {
  #text: string | undefined;

  constructor(readonly value: Body) {}

  get text(): string {
    return (this.#text ??= JSON.stringify(this.value));
  }

  toJSON(): Body {
    return this.value;
  }
}

/** Caches the JSON of the last value, by identity. */
export function cacheJson<Body extends object>(): (value: Body) => CachedJson<Body> {
  let cached: CachedJson<Body> | undefined;
  return (value) => {
    if (cached?.value !== value) cached = new CachedJson(value);
    return cached;
  };
}
