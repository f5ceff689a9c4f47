import { useSyncExternalStore } from 'react';

/** A value outside of React whose changes render the components that use it. */
export class Store<Value> {
  readonly #listeners = new Set<() => void>();

  constructor(public value: Value) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  set(value: Value): void {
    if (value === this.value) return;
    this.value = value;
    for (const listener of this.#listeners) listener();
  }

  use(): Value {
    return useSyncExternalStore(this.subscribe, () => this.value);
  }
}
