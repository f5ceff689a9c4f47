export const blockBytes = 64 * 1024;

const maxFreeBlocks = 256;
const freeBlocks: Buffer[] = [];

/**
 * Blocks for the bodies of unfinished messages. A block that is returned is used again at once;
 * left to the garbage collector, the bodies of rejected requests would stay in memory beside
 * those that take their place in the memory budget.
 */
export function takeBlock(): Buffer {
  return freeBlocks.pop() ?? Buffer.allocUnsafeSlow(blockBytes);
}

/** Nothing may read or write the block afterwards. */
export function returnBlock(block: Buffer): void {
  if (freeBlocks.length < maxFreeBlocks) freeBlocks.push(block);
}
