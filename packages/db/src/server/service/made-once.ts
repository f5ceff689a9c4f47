const key = Symbol('made');

interface Made {
  readonly how: unknown;
  readonly value: unknown;
  readonly next: Made | undefined;
}

/**
 * What `make` makes of a thing that several streams are given: made for the first of them and kept
 * in the thing. Not in a weak map: that is old, and what an old table holds outlives the thing it
 * was made of by a collection or two, and is old itself by then. `how` tells apart what is made
 * of the same thing in several ways.
 */
export function madeOnce<Thing extends object, Value, How = unknown>(
  thing: Thing,
  make: (thing: Thing, how: How) => Value,
  how: How = make as How,
): Value {
  const holder = thing as { [key]?: Made };
  for (let made = holder[key]; made; made = made.next) {
    if (made.how === how) return made.value as Value;
  }
  const value = make(thing, how);
  // Not to be seen, so that a copy of the thing with other contents does not have it.
  const made: Made = { how, value, next: holder[key] };
  Object.defineProperty(holder, key, { value: made, configurable: true });
  return value;
}
