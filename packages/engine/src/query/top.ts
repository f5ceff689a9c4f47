/** The first `capacity` of all offered items, in a heap with the last of them on top. */
export class Top<Item> {
  readonly #heap: Item[] = [];

  constructor(
    private readonly capacity: number,
    private readonly compare: (a: Item, b: Item) => number,
  ) {}

  /** A new item must come before this one to be kept; `undefined` while there is room. */
  get last(): Item | undefined {
    return this.#heap.length < this.capacity ? undefined : this.#heap[0];
  }

  /** Keeps an item. Check `last` first. */
  add(item: Item): void {
    const heap = this.#heap;
    if (heap.length < this.capacity) {
      heap.push(item);
      this.#rise(heap.length - 1);
    } else if (this.capacity > 0) {
      heap[0] = item;
      this.#sink();
    }
  }

  /** All items, unordered. */
  items(): Item[] {
    return this.#heap;
  }

  #rise(from: number): void {
    const heap = this.#heap;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.compare(heap[at]!, heap[parent]!) <= 0) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) return;
      const right = left + 1;
      const larger =
        right < heap.length && this.compare(heap[right]!, heap[left]!) > 0 ? right : left;
      if (this.compare(heap[larger]!, heap[at]!) <= 0) return;
      this.#swap(at, larger);
      at = larger;
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b]!, heap[a]!];
  }
}
