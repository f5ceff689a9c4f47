/**
 * A body whose JSON is written once: for an answer that many callers are given before it changes.
 * Whoever holds it must not change the value.
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

/** Keeps the JSON of the value that came last, for as long as that very value keeps coming. */
export function cacheJson<Body extends object>(): (value: Body) => CachedJson<Body> {
  let cached: CachedJson<Body> | undefined;
  return (value) => {
    if (cached?.value !== value) cached = new CachedJson(value);
    return cached;
  };
}
