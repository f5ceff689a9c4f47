import type { Slice } from '../core/slice.js';

// A few milliseconds of sorting.
const defaultChunkLength = 4096;

/** Sorts as `Array.sort` does, with pauses. Returns the sorted array. */
export async function sortInSlices<Item>(
  items: Item[],
  compare: (a: Item, b: Item) => number,
  slice: Slice,
  chunkLength = defaultChunkLength,
): Promise<Item[]> {
  const steps = sortSteps(items, compare, chunkLength);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (slice.due()) await slice.pause();
  }
}

/** A merge sort that can pause after each step of some milliseconds. Returns the sorted array. */
export function* sortSteps<Item>(
  items: Item[],
  compare: (a: Item, b: Item) => number,
  chunkLength = defaultChunkLength,
): Generator<void, Item[], void> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += chunkLength) {
    runs.push(items.slice(at, at + chunkLength).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      merged.push(yield* mergeSteps(runs[i]!, runs[i + 1] ?? [], compare, chunkLength));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeSteps<Item>(
  left: Item[],
  right: Item[],
  compare: (a: Item, b: Item) => number,
  chunkLength: number,
): Generator<void, Item[], void> {
  if (right.length === 0) return left;
  const length = left.length + right.length;
  const merged: Item[] = [];
  let [i, j] = [0, 0];
  while (merged.length < length) {
    const stop = Math.min(merged.length + chunkLength, length);
    while (merged.length < stop) {
      const takeLeft = j >= right.length || (i < left.length && compare(left[i]!, right[j]!) <= 0);
      merged.push(takeLeft ? left[i++]! : right[j++]!);
    }
    yield;
  }
  return merged;
}
