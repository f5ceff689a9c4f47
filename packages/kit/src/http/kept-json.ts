/**
 * A body whose JSON is written once: for an answer that many callers are given before it changes.
 * Whoever holds it must not change the value.
 */
export class KeptJson<Body> {
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
export function keepJson<Body extends object>(): (value: Body) => KeptJson<Body> {
  let kept: KeptJson<Body> | undefined;
  return (value) => {
    if (kept?.value !== value) kept = new KeptJson(value);
    return kept;
  };
}
