import type { RootDatabase } from 'lmdb';

/** lmdb's record of a write; `next` is that of the following write. */
interface WriteNote {
  next: WriteNote | null;
  /** The first record of the next transaction, if that was queued before this one was done. */
  nextTxn?: WriteNote | undefined;
}

/**
 * lmdb keeps its writes in a linked list and drops the first entries, but these still point to the
 * later ones. So once one entry is promoted to the old generation of the heap, all that follow are
 * too, and only a full garbage collection frees them. Here the list is cut after each commit, at an
 * entry that lmdb has finished with.
 */
export function cutWrittenList(root: RootDatabase<Buffer, Buffer>): void {
  let last: WriteNote | undefined;
  root.on('aftercommit', ({ next: first }: { next: WriteNote }) => {
    // lmdb searches from `first` on: the entry that was there last time is before it now.
    if (last && last !== first) {
      last.next = null;
      if (last.nextTxn) last.nextTxn = undefined;
    }
    last = first;
  });
}
