/** Items that are read page by page: `for await (const item of list)`, or `await list` for all. */
export class Listing<Item> implements AsyncIterable<Item>, PromiseLike<Item[]> {
  constructor(private readonly items: AsyncGenerator<Item, void, void>) {}

  [Symbol.asyncIterator](): AsyncGenerator<Item, void, void> {
    return this.items;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- a list that is awaited is read whole
  then<Done = Item[], Failed = never>(
    done?: ((items: Item[]) => Done | PromiseLike<Done>) | null,
    failed?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Done | Failed> {
    return this.#all().then(done, failed);
  }

  async #all(): Promise<Item[]> {
    const items: Item[] = [];
    for await (const item of this.items) items.push(item);
    return items;
  }
}
